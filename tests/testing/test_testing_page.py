# SPDX-License-Identifier: Apache-2.0
"""The code of docs/testing.md runs as it is shown, and is as short as it says."""

import re
import subprocess
import sys
from pathlib import Path

from tests.checkout import ROOT
from tests.hang_limit import HANG_S

PAGE = (ROOT / "docs" / "testing.md").read_text("utf-8")


def files() -> dict[str, str]:
    """Return the Python blocks of the page, by the names of their files."""
    return {
        block.partition("\n")[0].removeprefix("# "): block
        for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    }


def run_tests(folder: Path, *names: str) -> str:
    """Write all files into a folder, run pytest on some of them, and return what it printed."""
    for name, text in files().items():
        (folder / name).write_text(text, "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *names]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_bank_and_its_test_are_short() -> None:
    """Both together, with all their blank lines, have fewer than 60."""
    both = files()["bank.py"] + files()["test_bank.py"]
    assert len(both.splitlines()) < 60


def test_the_bank_is_the_one_of_our_tests() -> None:
    """So that what they show of it is true of the page."""
    ours = (ROOT / "tests" / "testing" / "bank.py").read_text("utf-8")
    assert ours.partition("\n")[2] == files()["bank.py"].partition("\n")[2]


def test_the_bank_survives(tmp_path: Path) -> None:
    """On all schedules of the page, and by rules."""
    assert "2 passed" in run_tests(tmp_path, "test_bank.py", "test_bank_quorum.py")


def test_the_contracts_are_collected(tmp_path: Path) -> None:
    """All of their tests pass, and there are many."""
    (count,) = re.findall(r"(\d+) passed", run_tests(tmp_path, "test_my_files.py", "test_my_log.py"))
    assert int(count) > 50
