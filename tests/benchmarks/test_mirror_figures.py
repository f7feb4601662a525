# SPDX-License-Identifier: Apache-2.0
"""What is measured of ``raftlog verify-mirror`` compares all records that the reference decodes."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.benchmarks.mirror_figures import SHAPES, commands
from tests.checkout import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_all_records_are_compared(shape: str, tmp_path: Path) -> None:
    """Each has its copy, each sync is true, and nothing is found."""
    compared, decoded = (
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for command in commands(tmp_path, shape, 1.5)
    )
    found = [json.loads(line) for line in compared.splitlines()]
    (pair,) = (line for line in found if line["kind"] == "pair")
    assert 2 * pair["compared"] == int(decoded)
    assert pair["anchors_equal"] == -(-pair["compared"] // 101)
    assert not [line for line in found if line["kind"] == "finding"]
