# SPDX-License-Identifier: Apache-2.0
"""Rewriting the voters of what a real Kafka left: the plan, the directory that is made, and what is only read."""

import shutil
from pathlib import Path

import pytest

from raftlog.records.files.property_files import read_meta_properties
from raftlog.records.files.quorum_state import QuorumStateData, read_quorum_state
from raftlog.records.messages.control import VotersRecord, read_control_record
from raftlog.records.messages.voters import voter_set
from raftlog.uuid_text import uuid_to_text
from raftlog.voters.voter_set import DynamicVoter, VoterSet
from tests.tools.console import run
from tests.tools.repair.repaired import (
    DIRECTORY_IDS,
    LOG,
    NEW_DISK,
    STATIC,
    THREE,
    apply,
    batches,
    content,
    copied,
    everything,
    plan,
)


def rules(directory: Path) -> dict[str, str]:
    """What the audit finds above harmless, by rule."""
    found = run("verify", "--format", "jsonl", directory).of_kind("finding")
    return {each["rule"]: each["severity"] for each in found}


@pytest.mark.parametrize(("number", "offset"), [(-1, 213), (-1, 227), (-2, 220)])
def test_a_snapshot_that_was_moved_into_a_batch_is_not_kept(
    number: int, offset: int, quorum: Path, tmp_path: Path
) -> None:
    """No log can be opened with it: it is named, and all else is kept."""
    log = quorum / "n3" / LOG
    moved = log / f"{offset:020}-0000000004.checkpoint"
    kept = sorted(path.name for path in log.glob("*.checkpoint"))
    shutil.move(log / kept.pop(number), moved)  # The batch is from 211 to 227.
    planned = run("rewrite-voters", *arguments(quorum / "n3"), "--plan", tmp_path / "plan", "-j1")
    assert planned.exit_code == 0, planned.messages
    assert f"Not kept: {moved}: by its name it ends inside a batch" in planned.text
    assert apply(tmp_path / "plan", tmp_path / "new").exit_code == 0
    assert batches(tmp_path / "new")[:-1] == batches(quorum / "n3")
    assert sorted(path.name for path in (tmp_path / "new" / LOG).glob("*.checkpoint")) == kept
    assert rules(tmp_path / "new") == {"voters-rewritten": "suspicious"}


def arguments(directory: Path) -> list[str | Path]:
    """What is asked for: node 3 alone, without 2 and 4."""
    return [directory, "--initial-controllers", THREE, "--lost", "2", "--lost", "4"]


def test_one_record_is_added_and_nothing_else(quorum: Path, tmp_path: Path) -> None:
    """The result is the log that was kept, one control batch in its last epoch, and an election state with no vote."""
    file, out = tmp_path / "plan", tmp_path / "new"
    before = everything(quorum)
    assert plan(quorum / "n3", file=file).exit_code == 0
    assert apply(file, out).exit_code == 0

    assert everything(quorum) == before
    kept, made = batches(quorum / "n3"), batches(out)
    assert [bytes(each.buffer) for each in made[:-1]] == [bytes(each.buffer) for each in kept]
    last = made[-1]
    assert (last.base_offset, last.partition_leader_epoch, last.is_control) == (230, 4, True)
    assert last.base_timestamp == last.max_timestamp == content(file)["timestamp_ms"]
    (record,) = last.records()
    value = read_control_record(record.key, record.value).value
    assert isinstance(value, VotersRecord)
    assert voter_set(value) == VoterSet.of([DynamicVoter.parse(THREE).to_voter_node("CONTROLLER")])
    state = read_quorum_state((out / LOG / "quorum-state").read_bytes())
    assert state == QuorumStateData(1, leader_epoch=1004)
    meta = read_meta_properties((out / "meta.properties").read_bytes())
    assert (meta.version, meta.node_id, meta.cluster_id) == (1, 3, "MkU3OEVBNTcwNTJENDM2Qg")
    assert meta.directory_id is not None
    assert uuid_to_text(meta.directory_id) == DIRECTORY_IDS[3]
    assert rules(out) == {"voters-rewritten": "suspicious"}


def test_the_result_has_only_files_of_kafka(quorum: Path, tmp_path: Path) -> None:
    """What raftlog keeps beside a log of its own is not left: neither its recovery point, nor a lock."""
    file, out = tmp_path / "plan", tmp_path / "new"
    assert plan(quorum / "n3", file=file).exit_code == 0
    assert apply(file, out).exit_code == 0
    names = {path.name for path in out.rglob("*")}
    kept = {path.name for path in (quorum / "n3").rglob("*")}
    assert names <= kept | {"00000000000000000230.snapshot"}
    assert not [name for name in names if "raftlog" in name or name == ".lock"]


def test_a_brokers_log_becomes_a_controllers(quorum: Path, tmp_path: Path) -> None:
    """The log of a broker, which has no vote, is kept for a controller on a new disk; all voters are given up."""
    file, out = tmp_path / "plan", tmp_path / "new"
    voter = f"7@[::1]:9093:{NEW_DISK}"
    planned = plan(quorum / "n101", voters=voter, lost=["2,3", f"4:{DIRECTORY_IDS[4]}"], file=file)
    assert planned.exit_code == 0, planned.messages
    (fact,) = apply(file, out).objects
    assert (fact["node_id"], fact["end_offset"], fact["directory_id"]) == (7, 230, NEW_DISK)
    assert rules(out) == {"voters-rewritten": "suspicious"}
    assert content(file)["is_kept_voter"] is False
    assert [disk["node"] for disk in content(file)["never_start"]] == [
        f"{each}:{DIRECTORY_IDS[each]}" for each in (2, 3, 4)
    ]


def test_several_new_voters_have_the_same_log(quorum: Path, tmp_path: Path) -> None:
    """From one plan a directory is made for each new voter: the same bytes, and each its own owner."""
    file = tmp_path / "plan"
    voters = ",".join([THREE, f"8@h:9093:{NEW_DISK}", f"9@h:9093:{DIRECTORY_IDS[1]}"])
    assert plan(quorum / "n3", voters=voters, file=file).exit_code == 0
    for node in (3, 8, 9):
        assert apply(file, tmp_path / f"new{node}", "--node-id", str(node)).exit_code == 0
    logs = [everything(tmp_path / f"new{node}" / LOG) for node in (3, 8, 9)]
    assert [{name: data for name, (data, *_) in log.items()} for log in logs[1:]] == [
        {name: data for name, (data, *_) in logs[0].items()}
    ] * 2
    owners = [
        read_meta_properties((tmp_path / f"new{node}/meta.properties").read_bytes()).node_id for node in (3, 8, 9)
    ]
    assert owners == [3, 8, 9]
    assert run("quorum", *(tmp_path / f"new{node}" for node in (3, 8, 9))).exit_code == 0


def test_static_voters_are_named_by_the_configuration(tmp_path: Path) -> None:
    """At kraft.version 0 the log is kept as it is, and the line of configuration is printed."""
    static, file, out = copied(tmp_path, "static", STATIC), tmp_path / "plan", tmp_path / "new"
    planned = run(
        "rewrite-voters", static / "n1", "--initial-controllers", "1@host:9093", "--lost", "2,3", "--plan", file
    )
    assert planned.exit_code == 0, planned.messages
    assert "  controller.quorum.voters=1@host:9093" in planned.text.splitlines()
    assert apply(file, out).exit_code == 0
    assert [bytes(each.buffer) for each in batches(out)] == [bytes(each.buffer) for each in batches(static / "n1")]
    before = read_quorum_state((static / "n1" / LOG / "quorum-state").read_bytes())
    state = read_quorum_state((out / LOG / "quorum-state").read_bytes())
    assert state == QuorumStateData(0, leader_epoch=before.leader_epoch + 1000, current_voters=(1,))
    old, new = (read_meta_properties((each / "meta.properties").read_bytes()) for each in (static / "n1", out))
    assert new.directory_id == old.directory_id
    assert rules(out) == {}


def test_a_rewritten_quorum_can_be_rewritten_again(quorum: Path, tmp_path: Path) -> None:
    """The result is a source like any other, also right after the first rewrite, once its only voter is gone."""
    file, first, second = tmp_path / "plan", tmp_path / "first", tmp_path / "second"
    assert plan(quorum / "n3", file=file).exit_code == 0
    assert apply(file, first).exit_code == 0
    planned = plan(first, voters=f"5@h:9093:{NEW_DISK}", lost=["3"], file=file)
    assert planned.exit_code == 1, "voter 3 is at hand"
    (first / "meta.properties").write_text(
        f"version=1\nnode.id=55\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\ndirectory.id={NEW_DISK}\n"
    )
    file = tmp_path / "another plan"
    assert plan(first, voters=f"5@h:9093:{NEW_DISK}", lost=["3"], file=file).exit_code == 0
    assert apply(file, second).exit_code == 0
    assert batches(second)[-1].base_offset == 231
    assert rules(second) == {"voters-rewritten": "suspicious"}


def test_the_text_says_all_that_an_operator_must_know(quorum: Path, tmp_path: Path) -> None:
    """The plan names what is kept, what is given up, what is proven, and which disks must never start again."""
    given = ("--initial-controllers", THREE, "--lost", "2", "--lost", "4", "--plan", tmp_path / "a plan")
    text = run("rewrite-voters", quorum / "n3", quorum / "n1", *given).text
    assert f"Kept: the log in {quorum}/n3, of node 3:{DIRECTORY_IDS[3]}, a voter:" in text
    assert "offsets 0 to 230 (exclusive), last epoch 4" in text
    assert f"Read as evidence too: {quorum}/n1." in text
    assert "of offset 172 become" in text
    assert f"Given up for good: voters 2:{DIRECTORY_IDS[2]}, 4:{DIRECTORY_IDS[4]}." in text
    assert "Proven to be committed: offsets 0 to 229" in text
    assert text.count("Must never start again: ") == 3
    assert "--apply " + f"'{tmp_path}/a plan' --out NEW" in text
    made = run("rewrite-voters", "--apply", tmp_path / "a plan", "--out", tmp_path / "new").text
    assert "The audit says: voters {2:" in made
    assert "[voters-rewritten, suspicious]" in made
    assert made.count("Must never start again: ") == 3
    assert "must belong to the user that the node runs as" in made
    assert "add-controller" in made


def test_static_voters_are_told_to_all_nodes(tmp_path: Path) -> None:
    """What was made for kraft.version 0 ends with the line for every configuration, and adds no controller."""
    static, file = copied(tmp_path, "static", STATIC), tmp_path / "plan"
    given = ("--initial-controllers", "1@host:9093", "--lost", "2,3", "--plan", file)
    assert run("rewrite-voters", static / "n101", *given).exit_code == 0
    made = run("rewrite-voters", "--apply", file, "--out", tmp_path / "new").text
    assert "The audit says nothing." in made
    assert made.splitlines()[-1] == (
        "Configure every controller and every broker with controller.quorum.voters=1@host:9093"
    )
