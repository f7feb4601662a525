# SPDX-License-Identifier: Apache-2.0
"""The edge cases' files are what their generator writes."""

from pathlib import Path

from tests.kafka.make_edge_files import DAMAGED, write_files


def test_the_generator_writes_the_committed_files(tmp_path: Path) -> None:
    """Every file under tests/golden/damaged/data is reproduced byte for byte, and no other file exists."""
    write_files(tmp_path)

    written = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    committed = {
        path.relative_to(DAMAGED): path.read_bytes() for path in (DAMAGED / "data").rglob("*") if path.is_file()
    }
    assert written == committed
