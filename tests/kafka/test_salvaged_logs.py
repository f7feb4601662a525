# SPDX-License-Identifier: Apache-2.0
"""A real controller starts from a directory that `raftlog salvage` has made, leads, and goes on."""

import shutil
from pathlib import Path

import pytest

from tests.kafka import dump_tool
from tests.kafka.controller import Controller
from tests.kafka.test_interchange import messages, wait_until_registered
from tests.kafka.test_rewritten_voters import DYNAMIC, NODE_3, findings, rewrite
from tests.tools.console import run
from tests.tools.repair.repaired import LOG, batches
from tests.tools.salvage.salvaged import spoil

pytestmark = dump_tool.marks("a real Kafka")


def damaged(path: Path, kind: str) -> list[Path]:
    """Copies of a controller and a broker, both damaged: in other places, in the same one, or not at all."""
    three, broker = (Path(shutil.copytree(DYNAMIC / node, path / node)) for node in ("n3", "n101"))
    if kind != "poison":
        spoil(three, 70)
        spoil(broker, 70 if kind == "hole" else 100)
    for checkpoint in (three / LOG).glob("*.checkpoint") if kind != "mended" else ():
        if int(checkpoint.name[:20]):
            checkpoint.unlink()
    return [three] if kind == "poison" else [three, broker]


@pytest.mark.parametrize("kind", ["mended", "hole", "poison"])
def test_a_controller_leads_on_a_salvaged_log(kind: str, tmp_path: Path) -> None:
    """From two damaged logs, from what is after a hole with a broker's snapshot, and with a record replaced.

    Two of three voters are gone, so that the salvaged node becomes the only one, and elects itself.
    """
    sources = damaged(tmp_path / "old", kind)
    options = ("--replace", "90") if kind == "poison" else ()
    planned = run("salvage", *sources, "--node-id", "3", *options, "--plan", tmp_path / "salvage")
    assert planned.exit_code == 0, planned.messages
    made = run("salvage", "--apply", tmp_path / "salvage", "--out", tmp_path / "whole")
    assert made.exit_code == 0, made.messages
    assert (batches(tmp_path / "whole")[0].base_offset > 0) == (kind == "hole")

    controller = Controller(tmp_path / "new", node_id=3)
    voter = f"3@localhost:{controller.port}:{NODE_3}"
    lost = ("--lost", "2", "--lost", "4")
    fact = rewrite(controller.directory, tmp_path / "plan", tmp_path / "whole", "--initial-controllers", voter, *lost)
    before = len(controller.batches())
    with controller.running():
        found = wait_until_registered(controller, fact["quorum_epoch"])

    assert found[before].base_offset == fact["end_offset"] == 231
    assert messages(found[before:], "RegisterControllerRecord")[0]["controllerId"] == 3
    assert findings(controller.directory, tmp_path) == {"voters-rewritten": "suspicious"}
