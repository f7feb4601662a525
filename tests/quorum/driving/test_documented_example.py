# SPDX-License-Identifier: Apache-2.0
"""The examples of ``docs/quorum.md`` run as they are printed there."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.checkout import ROOT
from tests.hang_limit import HANG_S


def output_of(example: str, directory: Path) -> list[str]:
    """Run an example in a directory, and return the lines that it prints."""
    done = subprocess.run(
        [sys.executable, "-c", example],
        cwd=directory,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def examples() -> tuple[str, str]:
    """Return the example of one replica, and that of three."""
    page = (ROOT / "docs" / "quorum.md").read_text("utf-8")
    one, three = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return one, three


def test_the_example_of_the_driver_commits_a_record_in_each_run(tmp_path: Path) -> None:
    """The first run commits the start of epoch 1 and a record, the second one the same of epoch 2."""
    for high_watermark in (2, 4):
        append, mark = output_of(examples()[0], tmp_path)
        assert "COMMITTED" in append
        assert mark == str(high_watermark)


def test_the_example_of_three_replicas_prints_what_the_page_says(tmp_path: Path) -> None:
    """It goes on without a replica, with one more and with one less, and its logs start at snapshots."""
    page = (ROOT / "docs" / "quorum.md").read_text("utf-8")
    (documented,) = re.findall(r"It prints:\n\n```\n(.*?)```", page, re.DOTALL)
    assert output_of(examples()[1], tmp_path) == documented.splitlines()
    assert "get a 2 confirmed" in documented
