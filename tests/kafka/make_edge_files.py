# SPDX-License-Identifier: Apache-2.0
"""Writes the files of tests/golden/damaged/data: the same bytes on every machine.

python -m tests.kafka.make_edge_files
"""

import shutil
from pathlib import Path

from tests.golden_files import GOLDEN
from tests.kafka import edge_indexes, edge_logs, edge_values
from tests.kafka.edge_case import Case

DAMAGED = GOLDEN / "damaged"


def all_cases() -> list[Case]:
    """Every edge case, by name."""
    cases = [*edge_logs.cases(), *edge_indexes.cases(), *edge_values.cases()]
    names = [case.name for case in cases]
    assert len(names) == len(set(names)), "two cases of one name"
    return sorted(cases, key=lambda case: case.name)


def write_files(root: Path) -> None:
    """Writes every case's files under `root`."""
    for case in all_cases():
        folder = root / case.folder
        folder.mkdir(parents=True)
        for name, data in case.files.items():
            (folder / name).write_bytes(data)


if __name__ == "__main__":
    shutil.rmtree(DAMAGED / "data", ignore_errors=True)
    write_files(DAMAGED)
