# SPDX-License-Identifier: Apache-2.0
"""The import contracts of pyproject.toml hold, each catches what it is there for, and no large folder lacks one."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.checkout import ROOT

LAYERS = "Layers go one way"
PURE = "Pure layers do no I/O and own no clock"
CYCLES = "No cycles inside a layer"
MOST_WITHOUT_LAYERS = 8
"""How many modules a folder may have before they are divided into layers."""
MOST_MODULES = 15

PLANTED = {
    "a floor that knows the wire format": ("offsets.py", "import raftlog.records.batches.batch", LAYERS),
    "records that know snapshots": ("records/limits.py", "import raftlog.snapshot", LAYERS),
    "snapshots that know storage": ("snapshot/__init__.py", "import raftlog.storage", LAYERS),
    "storage that knows the tools": ("storage/__init__.py", "import raftlog.tools.terminal.exit_codes", LAYERS),
    "two values that know each other": ("uuid_text.py", "import raftlog.offsets", LAYERS),
    "a layer that sees others through raftlog": ("voters/voter_set.py", "from raftlog import RecordBatch", LAYERS),
    "a module that is in no layer": ("stray.py", "", LAYERS),
    "a value that reads the clock": ("voters/voter_set.py", "import time", PURE),
    "a codec that opens files": ("records/batches/compression.py", "from pathlib import Path", PURE),
    "an import inside a function": ("records/batches/batch.py", "def f():\n    import os", PURE),
    "a cycle": ("records/limits.py", "import raftlog.records.batches.batch", CYCLES),
}


def layer_contracts() -> dict[str, tuple[str, list[list[str]]]]:
    """Return the package and the layers, the highest first, of each contract about layers, by the contract's name."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    return {
        contract["name"]: (contract["containers"][0], [layer.split(" | ") for layer in contract["layers"]])
        for contract in contracts
        if contract["type"] == "layers"
    }


def folders() -> dict[str, set[str]]:
    """Return the names of modules and folders in each package of the checkout, by the package's name."""
    found: dict[str, set[str]] = {}
    for place, subfolders, names in os.walk(ROOT / "raftlog", followlinks=True):
        subfolders[:] = [name for name in subfolders if (Path(place) / name / "__init__.py").exists()]
        modules = {name.removesuffix(".py") for name in names if name.endswith(".py")} - {"__init__"}
        package = ".".join(Path(place).relative_to(ROOT).parts)
        found[package] = modules | set(subfolders)
    return found


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


def test_an_import_upwards_is_caught_in_every_folder(checkout: Path) -> None:
    """Where the lowest layer of each folder imports the highest one, each contract about layers is broken."""
    for package, layers in layer_contracts().values():
        place = checkout.joinpath(*package.split("."), layers[-1][0])
        module = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        with module.open("a", encoding="utf-8") as text:
            text.write(f"\nimport {package}.{layers[0][0]}\n")
    code, report = lint(checkout)
    assert code == 1
    assert [name for name in layer_contracts() if f"{name} BROKEN" not in report] == []


def test_every_large_folder_has_layers() -> None:
    """A folder of more than eight modules and folders has a contract about its layers, and none has many modules."""
    known = folders()
    large = {package for package, names in known.items() if len(names) > MOST_WITHOUT_LAYERS}
    assert large - {package for package, _ in layer_contracts().values()} == set()
    for package, names in known.items():
        assert len([name for name in names if f"{package}.{name}" not in known]) <= MOST_MODULES, package
