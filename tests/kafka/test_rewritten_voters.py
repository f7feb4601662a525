# SPDX-License-Identifier: Apache-2.0
"""A real controller starts from the directory that `raftlog rewrite-voters` has made, leads, and goes on."""

import json
import shutil
from pathlib import Path
from typing import Any, Final

import pytest

from tests.golden_files import GOLDEN
from tests.kafka import dump_tool
from tests.kafka.controller import Controller
from tests.kafka.live_quorum import BROKER, CONTROLLERS, LiveQuorum
from tests.kafka.test_interchange import log_verb, messages, wait_until_registered
from tests.tools.console import run

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
    """A controller of an older release leads after three voters became one, in a directory made for that release."""
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
    fact = rewrite(controller.directory, tmp_path / "plan", old, "--initial-controllers", one, *lost)

    with controller.running():
        wait_until_registered(controller, fact["quorum_epoch"])

    assert findings(controller.directory, tmp_path)["voters-rewritten"] == "suspicious"


def test_a_broker_goes_on_and_the_voters_are_three_again(tmp_path: Path) -> None:
    """Two of three controllers are lost: the broker joins the new quorum with its old directory, and voters are added.

    Its topics serve, one is made, and the voters grow by AddRaftVoter; the audit tells the rewrite, and nothing else.
    """
    live = LiveQuorum(tmp_path / "live", tmp_path / "work")
    with live.running():
        with live.loaded(transactions=60):
            pass
        for node in (*CONTROLLERS, BROKER):
            live.kill(node)
        plan = rewritten_to_three(live, tmp_path)
        for node in (1, 2):
            (live.path / f"n{node}").rename(tmp_path / f"lost{node}")
            live.format_observer(node, plan["cluster_id"])
        for node in (3, BROKER, 1, 2):
            live.start(node)

        old, new, topics, voters = live.grown(3, "deleted", (1, 2))

        assert int(old) > 0
        assert int(new) == 0
        assert {"deleted", "compacted", "transactions", "made-after"} <= set(topics.split())
        assert voters.split() == ["1", "2", "3"]
        for node in (BROKER, 1, 2, 3):  # A broker waits five minutes for a controller that lets it go.
            live.stop(node)
        found = run("verify", "--format", "jsonl", *(live.path / f"n{node}" for node in (1, 2, 3, BROKER)))
        severe = [each for each in found.of_kind("finding") if each["severity"] != "harmless"]
        assert {each["rule"] for each in severe} <= {"voters-rewritten"}, severe


def rewritten_to_three(live: LiveQuorum, tmp_path: Path) -> dict[str, Any]:
    """Put a directory in which node 3 is the only voter in place of node 3's, and return the plan's content."""
    file = tmp_path / "plan"
    options = ("--initial-controllers", live.voter(3), "--lost", "1", "--lost", "2", "--plan", file)
    directories = [live.path / "n3", live.path / f"n{BROKER}"]
    planned = run("rewrite-voters", *directories, *options)
    if planned.exit_code != 0:  # The broker has more than the controller that is left.
        assert "more up to date" in planned.messages or "lacks committed records" in planned.messages
        planned = run("rewrite-voters", *reversed(directories), *options)
    assert planned.exit_code == 0, planned.messages
    made = run("rewrite-voters", "--apply", file, "--out", live.path / "new")
    assert made.exit_code == 0, made.messages
    (live.path / "n3").rename(tmp_path / "old3")
    (live.path / "new").rename(live.path / "n3")
    content: dict[str, Any] = json.loads(file.read_text())["content"]
    for _ in content["move_aside"]:
        (live.path / f"n{BROKER}/__cluster_metadata-0").rename(tmp_path / "aside")
    return content
