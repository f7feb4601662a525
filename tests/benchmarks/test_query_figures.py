# SPDX-License-Identifier: Apache-2.0
"""What is compared with ``raftlog query`` answers the same question."""

import subprocess
from pathlib import Path

import pytest

from tests.benchmarks import inputs
from tests.benchmarks.query_figures import SHAPES, commands
from tests.checkout import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_both_programs_find_the_same_keys(shape: str, tmp_path: Path) -> None:
    """Whole processes, as they are measured; the reference counts all records that it decodes."""
    segment = inputs.file(tmp_path, shape, 0.5)
    answers = [
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for command in commands(segment, tmp_path / "records.parquet")
    ]
    assert answers[0] == answers[1]
    assert len(answers[0].splitlines()) == 6
