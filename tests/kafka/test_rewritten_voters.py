# SPDX-License-Identifier: Apache-2.0
"""A real controller starts from the directory that `raftlog rewrite-voters` has made, leads, and goes on."""

import json
import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.golden_files import GOLDEN
from tests.kafka import dump_tool
from tests.kafka.controller import Controller
from tests.kafka.live_quorum import BROKER, CONTROLLERS, LiveQuorum
from tests.kafka.test_interchange import log_verb, messages, wait_until_registered
from tests.tools.console import run
from tests.tools.repair.repaired import LOG, batches
from tests.tools.salvage.salvaged import spoil

pytestmark = dump_tool.marks("a real Kafka")

DYNAMIC: Final = GOLDEN / "dynamic-quorum/data"
STATIC: Final = GOLDEN / "static-upgrade/before-upgrade"
NODE_3: Final = "5_Wp38SKlmI15kjtncBbcA"
NEW_DISK: Final = "AQIDBAUGBwgJCgsMDQ4PEA"


def rewrite(directory: Path, plan: Path, kept: Path, *options: str) -> dict[str, int]:
    """Plan and make a directory from a copy of another; return the facts of the result."""
    copy = plan.with_name(f"{kept.name}-copy")
    shutil.copytree(kept, copy)
    planned = run("rewrite-voters", copy, *options, "--plan", plan)
    assert planned.exit_code == 0, planned.messages
    made = run("rewrite-voters", "--apply", plan, "--out", directory, "--format", "jsonl")
    assert made.exit_code == 0, made.messages
    (fact,) = made.objects
    return fact


def findings(directory: Path, tmp_path: Path) -> dict[str, str]:
    """What `raftlog verify` finds above harmless, by rule, without the tests' own files in the directory."""
    copy = tmp_path / "audited"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(directory, copy, ignore=shutil.ignore_patterns("controller.*"))
    found = run("verify", "--format", "jsonl", copy).of_kind("finding")
    return {each["rule"]: each["severity"] for each in found}


@pytest.mark.parametrize(
    ("kept", "directory_id"),
    [("n3", NODE_3), ("n3", NEW_DISK), ("n101", NEW_DISK)],
    ids=["of its own directory", "of its log on another disk", "of a broker's directory"],
)
def test_a_controller_leads_alone(kept: str, directory_id: str, tmp_path: Path) -> None:
    """Three voters become one: it elects itself in a new epoch, registers, and writes; the audit tells the rewrite."""
    controller = Controller(tmp_path / "new", node_id=3)
    voter = f"3@localhost:{controller.port}:{directory_id}"
    lost = ("2", "4") if directory_id == NODE_3 else ("2", "3", "4")
    options = [option for each in lost for option in ("--lost", each)]
    fact = rewrite(controller.directory, tmp_path / "plan", DYNAMIC / kept, "--initial-controllers", voter, *options)
    before = len(controller.batches())

    with controller.running():
        batches = wait_until_registered(controller, fact["quorum_epoch"])

    new = batches[before:]
    assert new[0].base_offset == fact["end_offset"]
    assert new[0].partition_leader_epoch > fact["quorum_epoch"]
    assert messages(new, "RegisterControllerRecord")[0]["controllerId"] == 3
    assert findings(controller.directory, tmp_path) == {"voters-rewritten": "suspicious"}


@pytest.mark.parametrize("kept", ["n1", "n101"])
def test_a_controller_of_static_voters_leads_alone(kept: str, tmp_path: Path) -> None:
    """At kraft.version 0 the configuration names the only voter, and the log is the one that was kept."""
    controller = Controller(tmp_path / "new", node_id=1)
    controller.static_voters = f"1@localhost:{controller.port}"
    options = ("--initial-controllers", controller.static_voters, "--lost", "2", "--lost", "3")
    fact = rewrite(controller.directory, tmp_path / "plan", STATIC / kept, *options)

    with controller.running():
        batches = wait_until_registered(controller, fact["quorum_epoch"])

    assert batches[-1].partition_leader_epoch > fact["quorum_epoch"]
    assert findings(controller.directory, tmp_path) == {}


@pytest.mark.parametrize("release", ["3.9.1", "4.1.2"])
def test_older_releases_lead_alone(release: str, tmp_path: Path) -> None:
    """A controller of an older release leads after three voters became one, in a directory made for that release.

    Two copies of its log are damaged, each elsewhere, and it is salvaged from both before.
    """
    controller = Controller(tmp_path / "new", release=release)
    directories = ("AQIDBAUGBwgJCgsMDQ4PEA", "EBESExQVFhcYGRobHB0eHw", "EBESExQVFhcYGRobHB0eHg")
    one, two, three = (f"{each}@localhost:{controller.port}:{id_}" for each, id_ in enumerate(directories, 1))
    old = tmp_path / "old"
    options = ("--standalone", "--directory-id", directories[0], "--release-version", release.rpartition(".")[0])
    listener = f"CONTROLLER://localhost:{controller.port}"
    log_verb("init", old, "-t", "demo", "--node-id", "1", "--listener", listener, *options)
    log_verb("append", old, "--voters", f"{one},{two}", data=b"")
    log_verb("append", old, "--force", "--voters", f"{one},{two},{three}", data=b"")
    lost = ("--lost", "2", "--lost", "3")
    whole = salvaged(tmp_path, old)
    fact = rewrite(controller.directory, tmp_path / "plan", whole, "--initial-controllers", one, *lost)

    with controller.running():
        wait_until_registered(controller, fact["quorum_epoch"])

    assert findings(controller.directory, tmp_path)["voters-rewritten"] == "suspicious"


def salvaged(tmp_path: Path, directory: Path) -> Path:
    """The directory of node 1 that is made of two copies of another one, whose first and last batch are damaged."""
    first, *_, last = batches(directory)
    copies = [Path(shutil.copytree(directory, tmp_path / name)) for name in ("first", "last")]
    for copy, batch in zip(copies, (first, last), strict=True):
        spoil(copy, batch.base_offset)
    salvage(tmp_path / "whole", tmp_path / "salvage", *copies, "--node-id", "1")
    assert [bytes(each.buffer) for each in batches(tmp_path / "whole")] == [
        bytes(each.buffer) for each in batches(directory)
    ]
    return tmp_path / "whole"


def salvage(out: Path, plan: Path, *arguments: str | Path) -> None:
    """Plan a salvage, and carry it out."""
    planned = run("salvage", *arguments, "--plan", plan)
    assert planned.exit_code == 0, planned.messages
    made = run("salvage", "--apply", plan, "--out", out)
    assert made.exit_code == 0, made.messages


def test_a_broker_goes_on_and_the_voters_are_three_again(tmp_path: Path) -> None:
    """Two of three controllers are lost, and the third is damaged: its log is salvaged with what the broker has of it.

    The old majority comes back for a while, before the new quorum leads and after it, and is told each time. The broker
    joins the new quorum with its old directory, its topics serve, one is made, and the voters grow by AddRaftVoter.
    """
    live = LiveQuorum(tmp_path / "live", tmp_path / "work")
    with live.running():
        with live.loaded(transactions=60):
            pass
        for node in (*CONTROLLERS, BROKER):
            live.kill(node)
        cluster_id = salvaged_and_rewritten(live, tmp_path)
        lost = [(live.path / f"n{node}").rename(tmp_path / f"lost{node}") for node in (1, 2)]
        old_majority_leads(live, lost)
        told = run("quorum", live.path / "n3", *lost)
        assert "Fork: node 3" in told.text  # Nobody has elected it yet: what the old majority has committed holds.
        assert "Keep down until these have a leader and no lag: node 3" in told.text

        for node in (1, 2):
            live.format_observer(node, cluster_id)
        for node in (3, BROKER, 1, 2):
            live.start(node)
        old, new, topics, voters = live.grown(3, "deleted", (1, 2))

        assert int(old) > 0
        assert int(new) == 0
        assert {"deleted", "compacted", "transactions", "made-after"} <= set(topics.split())
        assert voters.split() == ["1", "2", "3"]
        for node in (BROKER, 1, 2, 3):  # A broker waits five minutes for a controller that lets it go.
            live.stop(node)
        nodes = [live.path / f"n{node}" for node in (1, 2, 3, BROKER)]
        found = run("verify", "--format", "jsonl", *nodes)
        severe = [each for each in found.of_kind("finding") if each["severity"] != "harmless"]
        assert {each["rule"] for each in severe} <= {"voters-rewritten"}, severe

        assert_both_told(*nodes, *lost)
        nodes[:2] = [directory.rename(tmp_path / f"new{directory.name}") for directory in nodes[:2]]
        old_majority_leads(live, lost)
        assert_both_told(*nodes, *lost)


def salvaged_and_rewritten(live: LiveQuorum, tmp_path: Path) -> str:
    """Put a directory in which node 3 is the only voter in place of node 3's, and return the cluster's id.

    The log of node 3 is damaged in its middle before, so that it is salvaged with the broker's.
    """
    damaged, broker = live.path / "n3", live.path / f"n{BROKER}"
    whole = batches(damaged)
    spoil(damaged, whole[len(whole) // 2].base_offset)
    salvage(tmp_path / "whole", tmp_path / "salvage", damaged, broker, "--node-id", "3")
    end_offset = batches(tmp_path / "whole")[-1].next_offset
    assert end_offset >= max(whole[-1].next_offset, batches(broker)[-1].next_offset)

    plan = tmp_path / "plan"
    options = ("--initial-controllers", live.voter(3), "--lost", "1", "--lost", "2", "--plan", plan)
    planned = run("rewrite-voters", tmp_path / "whole", broker, *options)
    assert planned.exit_code == 0, planned.messages
    made = run("rewrite-voters", "--apply", plan, "--out", live.path / "new")
    assert made.exit_code == 0, made.messages
    damaged.rename(tmp_path / "old3")
    (live.path / "new").rename(damaged)
    content = json.loads(plan.read_text())["content"]
    for _ in content["move_aside"]:
        (broker / LOG).rename(tmp_path / "aside")
    return str(content["cluster_id"])


def old_majority_leads(live: LiveQuorum, lost: list[Path]) -> None:
    """Start controllers 1 and 2 on their old disks, until both have records of a new leader, and stop them."""
    before = max(batch.partition_leader_epoch for directory in lost for batch in batches(directory))
    places = [live.path / f"n{node}" for node in (1, 2)]
    for node, disk, place in zip((1, 2), lost, places, strict=True):
        disk.rename(place)
        live.start(node)

    def led() -> bool:
        return all(batches(place)[-1].partition_leader_epoch > before for place in places)

    live.wait_until(1, led, "leader of the old majority")
    for node, disk, place in zip((1, 2), lost, places, strict=True):
        live.kill(node)
        place.rename(disk)


def assert_both_told(*directories: Path) -> None:
    """Assert that `raftlog quorum` calls two lineages proven, and `raftlog verify` the worst of it by name, once."""
    told = run("quorum", *directories)
    assert told.exit_code == 2
    assert "two lineages" in told.text
    lost = [
        each
        for each in run("verify", "--format", "jsonl", *directories).of_kind("finding")
        if each["severity"] == "data-loss"
    ]
    assert [each["rule"] for each in lost] == ["committed-lost"]
