# SPDX-License-Identifier: Apache-2.0
"""``raftlog state`` shows groups, committed offsets and transactions, and their changes, and refuses in one line."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from raftlog.records.batches.builder import RecordBatchBuilder
from tests.checkout import ROOT
from tests.golden_files import GOLDEN
from tests.tools.console import run
from tests.tools.coordinators.made_records import Row, classic_group, commit, coordinator_record, marker
from tests.tools.made_logs import flip, write_log

SCHEMA = Draft202012Validator(json.loads((ROOT / "docs" / "state-1.schema.json").read_text()))
GROUPS = GOLDEN / "groups/data/n1/__consumer_offsets-0"
TOPICS = GOLDEN / "data-topics/data/n1"


def coordinator_batch(
    base_offset: int, *rows: Row, time: int, producer_id: int = -1, is_control: bool = False
) -> bytes:
    """A batch of the topic; a producer makes it a part of a transaction."""
    options: dict[str, Any] = {"is_control": is_control} if is_control else {}
    if producer_id >= 0:
        options |= {"producer_id": producer_id, "producer_epoch": 0, "is_transactional": True}
    builder = RecordBatchBuilder(base_offset, partition_leader_epoch=0, **options)
    for key, value in rows:
        builder.append(time, key, value)
    return builder.build()


def offsets_log(home: Path, number: int, *batches: bytes) -> Path:
    """Write a partition of the topic of groups and offsets."""
    write_log(home / f"__consumer_offsets-{number}", *batches)
    return home / f"__consumer_offsets-{number}"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A group, its offset, and the offset of a transaction."""
    return offsets_log(
        tmp_path / "b1",
        0,
        coordinator_batch(0, classic_group("app", 1), commit("app", 0, 10), time=1_000),
        coordinator_batch(2, commit("app", 1, 20), time=2_000, producer_id=7),
        coordinator_batch(3, marker(committed=True), time=3_000, producer_id=7, is_control=True),
        coordinator_batch(4, commit("app", 0, None), time=4_000),
    )


def state_json(*arguments: str | Path) -> list[dict[str, Any]]:
    """The JSON lines of a run without complaint, each of which keeps to the schema."""
    outcome = run("state", "--format", "json", *arguments)
    assert (outcome.exit_code, outcome.messages) == (0, "")
    for line in outcome.objects:
        SCHEMA.validate(line)
    return outcome.objects


def test_the_groups_of_a_real_broker_are_shown() -> None:
    """Each with its type and epoch, members with assignments while they are there, and the offsets that are left."""
    head, *things = state_json(GROUPS)
    assert (head["kind"], head["end_offset"], head["compacted_count"]) == ("coordinator_state", 40, 0)
    groups = {each["path"]: (each["type"], each["epoch"]) for each in things if each["kind"] == "group"}
    assert groups == {
        "/groups/classic": ("classic", 2),
        "/groups/newer": ("consumer", 3),
        "/groups/sharers": ("share", 4),
    }
    committed = {each["path"]: each["offset"] for each in things if each["kind"] == "committed_offset"}
    assert committed == {
        "/groups/classic/offsets/g1/1": 80,
        "/groups/newer/offsets/g1/0": 120,
        "/groups/newer/offsets/g1/1": 80,
    }
    (_, *earlier) = state_json(GROUPS, "--at", "5", "--path", "/groups/newer")
    (member,) = [each for each in earlier if each["kind"] == "group_member"]
    assert (member["client_id"], member["subscribed"]) == ("perf-consumer-client", ["g1"])
    assigned = {each["path"].split("/")[3]: each["assigned"] for each in earlier if each["kind"] == "assignment"}
    partitions = ["z110ATuUQu2am607PDOjpQ-0", "z110ATuUQu2am607PDOjpQ-1"]
    assert assigned == {"current_assignments": partitions, "target_assignments": partitions}
    (_, group) = state_json(GROUPS, "--at", "28", "--path", "/groups/classic")
    (of_group,) = group["members"]
    assert (of_group["subscribed"], of_group["assigned"]) == (["g1"], ["g1-0", "g1-1"])


def test_the_transactions_of_a_real_broker_are_shown() -> None:
    """By the topic's name in a log directory; the last state of each, and its history."""
    _, *found = state_json(TOPICS, "--topic", "__transaction_state")
    assert [(each["path"], each["state"], each["producer_epoch"]) for each in found] == [
        ("/transactions/t-0", "CompleteCommit", 1),
        ("/transactions/t-1", "CompleteAbort", 1),
    ]
    changes = state_json(TOPICS, "--topic", "__transaction_state", "--history", "/transactions/t-1")[1:-1]
    states = [each["after"]["state"] for each in changes]
    assert states[:4] == ["Empty", "Ongoing", "PrepareAbort", "CompleteAbort"]
    assert changes[1]["after"]["partitions"] == ["txn-1"]


def test_the_share_partitions_of_a_real_broker_are_shown() -> None:
    """An update is merged into the snapshot; at the end the tombstones have removed both."""
    log = GROUPS.parent / "__share_group_state-0"
    _, *found = state_json(log, "--at", "4")
    assert [(each["start_offset"], each["state_epoch"], each["delivery_complete_count"]) for each in found] == [
        (0, 2, 120),
        (0, 2, 80),
    ]
    batch = {"first_offset": 0, "last_offset": 119, "delivery_state": "acknowledged", "delivery_count": 1}
    assert found[0]["batches"] == [batch]
    assert "0..119 acknowledged x1" in run("state", log, "--at", "4").text
    assert len(state_json(log)) == 1
    assert len(state_json(log, "--history", "/share_partitions")) == 8


def test_an_offset_of_a_transaction_is_pending_until_it_ends(log: Path) -> None:
    """Before the marker it has a path of its own, with the producer; then it is the offset of the group."""
    _, *pending = state_json(log, "--at", "3", "--path", "/groups/app/pending_offsets")
    assert [(each["path"], each["offset"]) for each in pending] == [("/groups/app/pending_offsets/orders/1/7", 20)]
    _, *committed = state_json(log, "--path", "/groups/app/offsets")
    assert [(each["path"], each["offset"]) for each in committed] == [("/groups/app/offsets/orders/1", 20)]
    text = run("state", log, "--at", "3").text
    assert "Offsets of open transactions (1)" in text
    assert "GROUP  TOPIC   PARTITION  PRODUCER  OFFSET" in text


def test_changes_have_the_record_that_made_them(log: Path) -> None:
    """The end of a transaction removes what was pending, and sets the offset; a tombstone removes it."""
    _, *changes, last = state_json(log, "--between", "2", "-0")
    assert [
        (each["offset"], each["record"], each["path"].split("/")[3], each["after"] is None) for each in changes
    ] == [
        (2, "OffsetCommit", "pending_offsets", False),
        (3, "COMMIT", "pending_offsets", True),
        (3, "COMMIT", "offsets", False),
        (4, "OffsetCommit", "offsets", True),
    ]
    assert (last["end_offset"], {each["partition"] for each in changes}) == (5, {0})
    assert "Nothing changed." in run("state", log, "--between", "2", "2").text
    assert len(state_json(log, "--history", "/groups/app/offsets/orders/0", "--at", "4")) == 3


def test_a_time_is_over_all_partitions(log: Path, tmp_path: Path) -> None:
    """The batches of each up to the first later one; an offset is that of one partition."""
    offsets_log(tmp_path / "b1", 12, coordinator_batch(0, commit("job", 0, 1), time=2_500))
    both = (tmp_path / "b1", "--topic", "__consumer_offsets")
    heads = [each for each in state_json(*both) if each["kind"] == "coordinator_state"]
    assert [(each["partition"], each["end_offset"]) for each in heads] == [(0, 5), (12, 1)]
    at_time = state_json(*both, "--at", "1970-01-01T00:00:03")
    assert [each["end_offset"] for each in at_time[:2]] == [4, 1]
    assert [each["path"] for each in at_time[2:]] == [
        *("/groups/app", "/groups/app/offsets/orders/0", "/groups/app/offsets/orders/1"),
        "/groups/job/offsets/orders/0",
    ]
    assert len(run("state", *both, "--history", "/").text.split("before offset")) == 3
    assert "is an offset, and there are 2 partitions" in run("state", *both, "--at", "1").messages


def test_inside_a_batch_the_state_before_it_is_shown(log: Path) -> None:
    """And said; at the ends of the batch it is not."""
    assert "Offset 1 is inside a batch" in run("state", log, "--at", "1").text
    assert [each["end_offset"] for each in state_json(log, "--at", "1")] == [0]
    assert all("is inside" not in run("state", log, "--at", at).text for at in ("0", "2", "-0"))


def test_what_compaction_has_removed_is_said(tmp_path: Path) -> None:
    """What is below the first batch, and the records between; without such nothing is said."""
    whole = offsets_log(tmp_path / "whole", 0, coordinator_batch(0, commit("app", 0, 1), time=1_000))
    parts = (
        coordinator_batch(5, commit("app", 0, 1), time=1_000),
        coordinator_batch(9, commit("app", 1, 1), time=1_000),
    )
    cut = offsets_log(tmp_path / "cut", 0, *parts)
    sentence = "Compaction has removed what was below offset 5 and 3 records after offset 5"
    assert sentence in run("state", cut).text
    assert (state_json(cut)[0]["start_offset"], state_json(cut)[0]["compacted_count"]) == (5, 3)
    assert "Compaction" not in run("state", whole).text
    assert "no state at offset 4: the log has states from offset 5 to 10" in run("state", cut, "--at", "4").messages


def test_other_things_of_groups_are_shown_whole(tmp_path: Path) -> None:
    """In tables, in trees and in JSON, each by its path."""
    topology = coordinator_record("StreamsGroupTopology", {"groupId": "s"}, {"epoch": 3})
    log = offsets_log(tmp_path, 0, coordinator_batch(0, topology, time=1_000))
    (_, part) = state_json(log)
    assert (part["path"], part["record"], part["value"]["epoch"]) == ("/groups/s/topology", "StreamsGroupTopology", 3)
    assert "/groups/s/topology  StreamsGroupTopology" in run("state", log).text
    assert "topology\n      record: StreamsGroupTopology" in run("state", log, "--format", "tree").text


def test_damage_is_named_and_the_rest_is_shown(log: Path) -> None:
    """With its place and exit code 2, as for a record that cannot be read; one of an unknown type is suspicious."""
    path = log / f"{0:020}.log"
    data = path.read_bytes()
    flip(path, 80)
    outcome = run("state", log)
    assert (outcome.exit_code, len(outcome.complaints)) == (2, 1)
    assert f"{path}, position 0: " in outcome.messages
    for row, exit_code in ((commit("app", 0, 1)[0][:-1], 2), (b"\x00\x63", 3)):
        path.write_bytes(data + coordinator_batch(5, (row, b"\x00\x00"), time=5_000))
        outcome = run("state", log)
        assert (outcome.exit_code, len(outcome.complaints)) == (exit_code, 1)
        assert "the record at offset 5 (index 0) has no effect" in outcome.messages
        assert "Groups (1)" in outcome.text


def test_a_torn_tail_is_not_damage(log: Path) -> None:
    """The state ends before it."""
    path = log / f"{0:020}.log"
    path.write_bytes(path.read_bytes()[:-1])
    assert state_json(log)[0]["log_end_offset"] == 4


def refusals(log: Path, copy: Path) -> Iterator[tuple[tuple[str | Path, ...], str]]:
    """What has no answer, and a part of the line about it."""
    yield (log, "--at", "6"), "no state at offset 6: the log has states from offset 0 to 5"
    yield (log, "--at", "-6"), "no state at offset -1"
    yield (log, "--between", "4", "2"), "2 is before 4: 2 < 4"
    yield (log, "--path", "/none"), "there is nothing at /none"
    yield (log, copy), "give one replica of a partition"
    yield (log, "--topic", "__transaction_state"), "the paths have no log of __transaction_state"
    yield (log, "--topic", "orders"), "invalid choice"
    yield (log, "--against", log.parent), "--against compares a state of __cluster_metadata, not of __consumer_offsets"
    yield (log.parent / "none", "--topic", "__consumer_offsets"), "none"


def test_what_has_no_answer_is_refused_in_one_line(log: Path, tmp_path: Path) -> None:
    """With exit code 1, and nothing on standard output."""
    copy = shutil.copytree(log, tmp_path / "copy/__consumer_offsets-0")
    for arguments, expected in refusals(log, copy):
        outcome = run("state", *arguments)
        assert (outcome.exit_code, outcome.output, len(outcome.complaints)) == (1, b"", 1), arguments
        assert expected in outcome.messages
