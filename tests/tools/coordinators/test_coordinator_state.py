# SPDX-License-Identifier: Apache-2.0
"""The state of a coordinator's partition is that of the latest records; transactions commit offsets at their end."""

import json
import re
from typing import Any

import pytest
from hypothesis import given

from raftlog.records.messages.control import LeaderChangeMessage, Voter, write_control_record
from raftlog.records.messages.coordinator import CONSUMER_OFFSETS
from raftlog.records.messages.schema import message_types
from raftlog.tools.coordinators.coordinator_state import (
    PENDING,
    CoordinatorBatch,
    CoordinatorChange,
    CoordinatorEntry,
    CoordinatorState,
    EntryKey,
)
from raftlog.tools.state.coordinator_reading import COORDINATOR_TOPICS, coordinator_logs, extent_of, state_at
from raftlog.tools.state.positions import Position
from tests.golden_files import GOLDEN
from tests.tools.coordinators.made_records import (
    Row,
    classic_group,
    commit,
    coordinator_record,
    coordinator_stories,
    marker,
)
from tests.tools.coordinators.naive_coordinator import naive_offsets

COMMITTED = marker(committed=True)
APP: EntryKey = ("OffsetCommit", "app", "orders", 0)


def state_of(*batches: CoordinatorBatch, topic: str = CONSUMER_OFFSETS) -> CoordinatorState:
    """The state after some batches."""
    state = CoordinatorState(topic)
    for batch in batches:
        state.apply(batch)
    return state


def batches_of(*rows: tuple[int, Row]) -> list[CoordinatorBatch]:
    """A batch for each record, with its producer: -1 for the coordinator, and 10 more for a marker."""
    return [
        CoordinatorBatch(offset + 1, 1000, producer % 10 if producer >= 0 else -1, producer >= 10, [(offset, *row)])
        for offset, (producer, row) in enumerate(rows)
    ]


def unreachable(error: Exception) -> None:
    """There is no damage in these files."""
    raise error


def offsets(state: CoordinatorState) -> dict[EntryKey, int]:
    """The offset of the record of each entry."""
    return {key: entry.offset for key, entry in state.entries.items()}


@given(coordinator_stories())
def test_every_prefix_has_the_state_of_a_naive_model(story: list[CoordinatorBatch]) -> None:
    """Whatever is committed, removed, pending, aborted and compacted away."""
    state = CoordinatorState(CONSUMER_OFFSETS)
    for number, batch in enumerate(story):
        state.apply(batch)
        latest, pending = naive_offsets(CONSUMER_OFFSETS, story[: number + 1])
        shown = sorted(entry.offset for key, entry in state.entries.items() if key[0] != PENDING)
        assert shown == sorted(latest.values())
        open_ones = {(key[1], entry.offset) for key, entry in state.entries.items() if key[0] == PENDING}
        assert open_ones == pending
        assert (state.end_offset, state.timestamp, state.refusals) == (batch.next_offset, batch.timestamp, [])


@given(coordinator_stories())
def test_the_changes_lead_from_nothing_to_the_state(story: list[CoordinatorBatch]) -> None:
    """Each begins with what the one before it left, and its record is in the batch that was applied."""
    changes: list[CoordinatorChange] = []
    state = CoordinatorState(CONSUMER_OFFSETS, changes.append)
    known: dict[EntryKey, CoordinatorEntry] = {}
    for batch in story:
        changes.clear()
        state.apply(batch)
        for each in changes:
            assert known.get(each.key) == each.before != each.after
            assert (batch.records[each.record_index][0], each.timestamp) == (each.offset, batch.timestamp)
            if each.after is None:
                del known[each.key]
            else:
                known[each.key] = each.after
    assert known == state.entries


@pytest.mark.parametrize(("is_committed", "expected"), [(True, {APP: 0}), (False, {})])
def test_an_offset_of_a_transaction_waits_for_its_marker(is_committed: bool, expected: dict[EntryKey, int]) -> None:
    """It is pending before, and of one producer only; afterwards it is the offset, or is gone."""
    first, other, last = batches_of(
        (1, commit("app", 0, 5)), (12, marker(committed=True)), (11, marker(committed=is_committed))
    )
    assert offsets(state_of(first)) == offsets(state_of(first, other)) == {(PENDING, 1, "app", "orders", 0): 0}
    assert offsets(state_of(first, other, last)) == expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([(1, commit("app", 0, 5)), (-1, commit("app", 0, 9)), (11, COMMITTED)], {APP: 1}),
        ([(-1, commit("app", 0, 9)), (1, commit("app", 0, 5)), (11, COMMITTED)], {APP: 1}),
        ([(1, commit("app", 0, 5)), (-1, commit("app", 0, None)), (11, COMMITTED)], {}),
        ([(-1, commit("app", 0, None)), (1, commit("app", 0, 5)), (11, COMMITTED)], {APP: 1}),
        ([(1, commit("app", 0, 5)), (1, commit("app", 0, 6)), (11, COMMITTED)], {APP: 1}),
        ([(2, commit("app", 0, 6)), (1, commit("app", 0, 5)), (11, COMMITTED), (12, COMMITTED)], {APP: 1}),
        ([(-1, commit("app", 0, 5)), (-1, commit("app", 0, 5, is_legacy=True))], {APP: 1}),
        ([(-1, classic_group("app", 1)), (-1, classic_group("app", None))], {}),
    ],
    ids=["later commit", "earlier commit", "tombstone after", "tombstone before", "twice", "two", "legacy", "group"],
)  # fmt: skip
def test_the_last_record_of_a_key_counts(rows: list[tuple[int, Row]], expected: dict[EntryKey, int]) -> None:
    """By the offset of the record, not of the marker; a tombstone removes what is pending, too."""
    assert offsets(state_of(*batches_of(*rows))) == expected


def test_what_cannot_be_read_has_no_effect() -> None:
    """A key without a type, an unknown type, a value that ends early; the rest of the batch has."""
    key, value = commit("app", 0, 5)
    assert value is not None
    rows = [(0, None, value), (1, b"\x00\x63", value), (2, key, value[:-1]), (3, key, value)]
    state = state_of(CoordinatorBatch(4, 1000, -1, False, rows))
    assert [(each.offset, each.record_index, each.is_unknown) for each in state.refusals] == [
        (0, 0, False),
        (1, 1, True),
        (2, 2, False),
    ]
    assert offsets(state) == {APP: 3}


def test_other_control_records_have_no_effect() -> None:
    """And a bad marker is refused: the transaction stays open."""
    first = batches_of((1, commit("app", 0, 5)))[0]
    leader = write_control_record(LeaderChangeMessage(1, (Voter(1),), (Voter(1),)))
    state = state_of(first, CoordinatorBatch(2, 1000, 1, True, [(1, *leader), (2, b"\x00", b"")]))
    assert offsets(state) == {(PENDING, 1, "app", "orders", 0): 0}
    assert [each.offset for each in state.refusals] == [2]


def test_every_type_of_record_is_an_entry() -> None:
    """And its tombstone removes it."""
    for topic in COORDINATOR_TOPICS:
        for name, kind in message_types("coordinator-records").items():
            if kind.schema.topic != topic or not name.endswith("Key"):
                continue
            key = kind.default()
            made = coordinator_record(name.removesuffix("Key"), key, {})
            removed = coordinator_record(name.removesuffix("Key"), key, None)
            assert len(state_of(*batches_of((-1, made)), topic=topic).entries) == 1, name
            is_left = name == "ShareUpdateKey"  # Kafka removes snapshots only.
            assert len(state_of(*batches_of((-1, made), (-1, removed)), topic=topic).entries) == is_left


@pytest.mark.parametrize(
    ("folder", "partition", "dump"),
    [
        ("groups", "__consumer_offsets-0", "offsets"),
        ("data-topics", "__consumer_offsets-0", "offsets"),
        ("data-topics", "__transaction_state-0", "transaction"),
        ("groups", "__share_group_state-0", "share"),
    ],
)
def test_real_states_are_what_kafkas_own_dump_says(folder: str, partition: str, dump: str) -> None:
    """At every offset that is the end of a batch: the last record of each key that is no tombstone."""
    text = (GOLDEN / folder / f"expected/n1.{partition}.{0:020}.log.{dump}.txt").read_text()
    (log,) = coordinator_logs([str(GOLDEN / folder / "data/n1" / partition)], partition.rpartition("-")[0])
    extent = extent_of(log, unreachable)
    last: dict[str, int] = {}
    checked = 0
    for line in text.splitlines():
        end = re.match(r"baseOffset: (\d+)", line)
        if end is not None:
            checked += _check(state_at(log, extent, Position(offset=int(end[1])), unreachable).state, last)
        found = re.match(r"\| offset: (\d+) .*? key: (\{.*\}) payload: (.*)$", line)
        if found is not None:
            parsed = json.loads(found[2])
            key = json.dumps(parsed["data"] if dump == "share" else parsed)  # Updates are about the snapshot's key.
            last.pop(key, None)
            if found[3] != "<DELETE>":
                last[key] = int(found[1])
    assert extent.gone == extent.start == 0
    assert checked + _check(state_at(log, extent, Position(), unreachable).state, last) > 1


def _check(state: CoordinatorState, last: dict[str, Any]) -> int:
    assert sorted(entry.offset for entry in state.entries.values()) == sorted(last.values())
    assert state.refusals == []
    return 1
