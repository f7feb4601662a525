# SPDX-License-Identifier: Apache-2.0
"""The import contracts of pyproject.toml hold, and each of them catches what it is there to catch."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

LAYERS = "Layers go one way"
PURE = "Pure layers do no I/O and own no clock"
CYCLES = "No cycles inside a layer"

PLANTED = {
    "a floor that knows the wire format": ("offsets.py", "import raftlog.records.batch", LAYERS),
    "records that know snapshots": ("records/limits.py", "import raftlog.snapshot", LAYERS),
    "snapshots that know storage": ("snapshot/__init__.py", "import raftlog.storage", LAYERS),
    "storage that knows the tools": ("storage/__init__.py", "import raftlog.tools.exit_codes", LAYERS),
    "two values that know each other": ("kraft_version.py", "import raftlog.offsets", LAYERS),
    "a layer that sees others through raftlog": ("voter_set.py", "from raftlog import RecordBatch", LAYERS),
    "a module that is in no layer": ("stray.py", "", LAYERS),
    "a value that reads the clock": ("voter_set.py", "import time", PURE),
    "a codec that opens files": ("records/compression.py", "from pathlib import Path", PURE),
    "an import inside a function": ("records/batch.py", "def f():\n    import os", PURE),
    "a cycle": ("records/limits.py", "import raftlog.records.batch", CYCLES),
}


def lint(folder: Path) -> tuple[int, str]:
    """Check the contracts of a checkout; return the exit code and the report, its lines joined."""
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    command = [sys.executable, "-c", program, "--no-cache", "--no-logo"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return result.returncode, " ".join(result.stdout.split())


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Copy what the contracts are about."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "raftlog", tmp_path / "raftlog", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_the_contracts_hold() -> None:
    """No module imports upwards, no pure module does I/O, no layer has a cycle."""
    code, report = lint(ROOT)
    assert code == 0, report


@pytest.mark.parametrize("case", PLANTED)
def test_a_planted_import_is_caught(checkout: Path, case: str) -> None:
    """One import that breaks a contract breaks the check, and the report names the contract."""
    path, line, contract = PLANTED[case]
    with (checkout / "raftlog" / path).open("a", encoding="utf-8") as module:
        module.write(f"\n{line}\n")
    code, report = lint(checkout)
    assert code == 1
    assert f"{contract} BROKEN" in report
