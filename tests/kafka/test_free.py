# SPDX-License-Identifier: Apache-2.0
"""A real controller starts, leads and goes on after all that `raftlog free` offers is removed."""

from pathlib import Path

from tests.kafka import dump_tool
from tests.kafka.controller import Controller
from tests.kafka.test_interchange import wait_until_registered
from tests.kafka.test_rewritten_voters import DYNAMIC, NODE_3, findings, rewrite
from tests.tools.free.made_directories import free, names_of, partition, remove
from tests.tools.repair.repaired import LOG

pytestmark = dump_tool.marks("a real Kafka")


def test_a_controller_leads_after_all_offers_are_removed(tmp_path: Path) -> None:
    """Its log then starts inside of what the newest snapshot covers; what it left before is gone or made anew."""
    controller = Controller(tmp_path / "new", node_id=3)
    voter = f"3@localhost:{controller.port}:{NODE_3}"
    lost = ("--lost", "2", "--lost", "4")
    fact = rewrite(controller.directory, tmp_path / "plan", DYNAMIC / "n3", "--initial-controllers", voter, *lost)
    end = fact["end_offset"]
    left = ["00000000000000000010.log.deleted", "00000000000000000005.index", f"{end:020}-0000000009-1.checkpoint.part"]
    partition(controller.directory / LOG, *left)

    lines = free(controller.directory)
    for line in lines:
        if line["kind"] == "offer":
            for path in (line["path"], *line["others"]):
                remove(Path(path))
    assert {*left, "00000000000000000000.log"} <= set(names_of(lines))
    start = min(int(path.stem) for path in (controller.directory / LOG).glob("*.log"))
    assert start > 0

    with controller.running():
        found = wait_until_registered(controller, fact["quorum_epoch"])

    assert (found[0].base_offset, found[-1].next_offset > end) == (start, True)
    assert findings(controller.directory, tmp_path) == {"voters-rewritten": "suspicious"}
