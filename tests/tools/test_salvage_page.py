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
from tests.tools.salvage.partitions.test_partition_salvage import TRUTH, TXN, batches, brokers, metadata
from tests.tools.salvage.partitions.test_partition_salvage import spoil as spoil_partition
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
    commands = [arguments for arguments in COMMANDS if not {"--partition", "new"} & {*arguments}]
    assert [arguments[0] for arguments in commands] == ["salvage", "salvage", "quorum"]

    outcomes = [run(*arguments) for arguments in commands]

    assert [outcome.exit_code for outcome in outcomes] == [EXIT_CLEAN, EXIT_CLEAN, EXIT_SUSPICIOUS]
    after = everything(tmp_path)
    assert {name: after[name] for name in before} == before
    assert {name.split("/")[0] for name in after.keys() - before.keys()} == {"plan.json", "controller-new"}


def test_the_commands_of_the_page_make_a_partition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From two brokers' copies, of which one is damaged, and the metadata of two controllers."""
    for broker, directory in enumerate(brokers(tmp_path, 1, 2), 1):
        shutil.move(directory / TXN, directory / "orders-3")
        shutil.move(directory, tmp_path / f"broker-{broker}")
    spoil_partition(tmp_path / "broker-1", TRUTH[2].base_offset, partition="orders-3")
    shutil.move(metadata(tmp_path, "orders", voters=(8, 9), partitionId=3), tmp_path / "controller-1")
    shutil.copytree(tmp_path / "controller-1", tmp_path / "controller-2")
    own = tmp_path / "controller-2" / "meta.properties"
    own.write_text(own.read_text().replace("node.id=9", "node.id=8"))
    monkeypatch.chdir(tmp_path)
    commands = [arguments for arguments in COMMANDS if {"--partition", "new"} & {*arguments}]

    outcomes = [run(*arguments) for arguments in commands]

    assert [outcome.exit_code for outcome in outcomes] == [EXIT_CLEAN, EXIT_CLEAN]
    assert "The choice is PROVEN" in outcomes[0].text.replace("\n", " ")
    assert batches(tmp_path / "new" / "orders-3") == TRUTH


def test_the_page_quotes_what_the_command_says() -> None:
    """Each refusal of the page's table is a part of a message in the code."""
    rooms = (ROOT / "tools" / room for room in ("repair", "salvage"))
    sources = "".join(path.read_text("utf-8") for room in rooms for path in room.rglob("*.py"))
    for quoted in re.findall(r"^\| \*(.*?)\* \|", PAGE, re.MULTILINE):
        assert quoted in re.sub(r'"\s+f?"', "", sources), quoted
