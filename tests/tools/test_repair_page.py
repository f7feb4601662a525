# SPDX-License-Identifier: Apache-2.0
"""docs/repair.md: its commands work as written, one after the other, on what a real quorum left."""

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

PAGE = (ROOT / "docs" / "repair.md").read_text("utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = [shlex.split(line)[1:] for block in BLOCKS for line in block.splitlines()]


def test_the_commands_of_the_page_make_a_quorum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the seed question to a directory with one voter; what was given is as it was."""
    for node, name in (("n3", "controller-3"), ("n101", "broker-101")):
        shutil.copytree(GOLDEN / "dynamic-quorum/data" / node, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    before = everything(tmp_path)
    assert [arguments[0] for arguments in COMMANDS] == ["quorum", "rewrite-voters", "rewrite-voters"]

    outcomes = [run(*arguments) for arguments in COMMANDS]

    assert [outcome.exit_code for outcome in outcomes] == [EXIT_SUSPICIOUS, EXIT_CLEAN, EXIT_CLEAN]
    assert "Seed to go on from: node 3 (controller-3)" in outcomes[0].text
    after = everything(tmp_path)
    assert {name: after[name] for name in before} == before
    assert {name.split("/")[0] for name in after.keys() - before.keys()} == {"plan.json", "controller-new"}
    assert run("quorum", tmp_path / "controller-new").exit_code == EXIT_CLEAN


def test_the_page_quotes_what_the_command_says() -> None:
    """Each refusal of the page's table is a part of a message in the code."""
    sources = "".join(path.read_text("utf-8") for path in (ROOT / "tools" / "repair").glob("*.py"))
    for quoted in re.findall(r"^\| \*(.*?)\* \|", PAGE, re.MULTILINE):
        for part in quoted.split(" … "):
            assert part.removesuffix(" …") in re.sub(r'"\s+f?"', "", sources), quoted
