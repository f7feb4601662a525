# SPDX-License-Identifier: Apache-2.0
"""docs/salvage.md: its commands work as written, one after the other, on damaged copies of a real quorum."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from raftlog.tools.terminal.exit_codes import EXIT_CLEAN, EXIT_SUSPICIOUS
from tests.checkout import ROOT
from tests.golden_files import GOLDEN
from tests.tools.console import run
from tests.tools.repair.repaired import everything
from tests.tools.salvage.salvaged import spoil

PAGE = (ROOT / "docs" / "salvage.md").read_text("utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = [shlex.split(line)[1:] for block in BLOCKS for line in block.splitlines()]


def test_the_commands_of_the_page_make_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From two damaged directories to a whole one; what was given is as it was."""
    for node, name in (("n3", "controller-3"), ("n101", "broker-101")):
        shutil.copytree(GOLDEN / "dynamic-quorum/data" / node, tmp_path / name)
    spoil(tmp_path / "controller-3", 20)
    spoil(tmp_path / "broker-101", 100)
    monkeypatch.chdir(tmp_path)
    before = everything(tmp_path)
    assert [arguments[0] for arguments in COMMANDS] == ["salvage", "salvage", "quorum"]

    outcomes = [run(*arguments) for arguments in COMMANDS]

    assert [outcome.exit_code for outcome in outcomes] == [EXIT_CLEAN, EXIT_CLEAN, EXIT_SUSPICIOUS]
    after = everything(tmp_path)
    assert {name: after[name] for name in before} == before
    assert {name.split("/")[0] for name in after.keys() - before.keys()} == {"plan.json", "controller-new"}


def test_the_page_quotes_what_the_command_says() -> None:
    """Each refusal of the page's table is a part of a message in the code."""
    rooms = (ROOT / "tools" / room for room in ("repair", "salvage"))
    sources = "".join(path.read_text("utf-8") for room in rooms for path in room.glob("*.py"))
    for quoted in re.findall(r"^\| \*(.*?)\* \|", PAGE, re.MULTILINE):
        assert quoted in re.sub(r'"\s+f?"', "", sources), quoted
