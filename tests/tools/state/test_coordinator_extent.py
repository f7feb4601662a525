# SPDX-License-Identifier: Apache-2.0
"""What a coordinator's log lacks is told by its reason, and a partition without an answer does not hide the others."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from raftlog.errors import DecodeError
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.tools.coordinators.coordinator_state import CoordinatorChange
from raftlog.tools.state import coordinators
from raftlog.tools.state.coordinator_reading import coordinator_logs, extent_of
from raftlog.tools.state.state_lines import ShownChange
from tests.checkout import ROOT
from tests.tools.console import run
from tests.tools.coordinators.made_records import classic_group, commit, coordinator_record
from tests.tools.made_logs import flip, write_log

SCHEMA = Draft202012Validator(json.loads((ROOT / "docs" / "state-1.schema.json").read_text()))
TOPIC = "__consumer_offsets"


def one(offset: int, *, time: int = 1_000) -> bytes:
    """A batch of one record."""
    builder = RecordBatchBuilder(offset, partition_leader_epoch=0)
    builder.append(time, *commit("app", offset, offset))
    return builder.build()


def partition(home: Path, number: int, *segments: tuple[int, list[bytes]], topic: str = TOPIC) -> Path:
    """Write a partition's segments, by base offset."""
    for base_offset, batches in segments:
        write_log(home / f"{topic}-{number}", *batches, name=f"{base_offset:020}.log")
    return home / f"{topic}-{number}"


def heads(*arguments: str | Path, exit_code: int = 0) -> list[dict[str, Any]]:
    """The lines about partitions."""
    outcome = run("state", "--format", "json", *arguments)
    assert outcome.exit_code == exit_code, outcome.messages
    for line in outcome.objects:
        SCHEMA.validate(line)
    return [each for each in outcome.objects if each["kind"].startswith("coordinator_")]


def counts(log: Path, exit_code: int = 0) -> tuple[int, ...]:
    """Start, end, and what compaction, something else and damage have taken."""
    (head,) = heads(log, exit_code=exit_code)
    names = ("start_offset", "log_end_offset", "compacted_count", "missing_count", "damaged_count", "damaged_places")
    return tuple(head[name] for name in names)


@pytest.mark.parametrize("base_offset", [0, 1, 7])
def test_a_partition_without_batches_is_empty_and_the_others_are_shown(base_offset: int, tmp_path: Path) -> None:
    """Its state is that at the base offset of its segment, at the end as at a time."""
    partition(tmp_path, 0, (0, [one(0)]))
    empty = partition(tmp_path, 1, (base_offset, []))
    for at in ("-0", "1970-01-01T00:00:02"):
        shown = heads(tmp_path, "--topic", TOPIC, "--at", at)
        assert [(each["start_offset"], each["log_end_offset"]) for each in shown] == [(0, 1), (base_offset,) * 2]
    assert counts(empty) == (base_offset, base_offset, 0, base_offset, 0, 0)
    assert heads(empty, "--history", "/")[1]["end_offset"] == 0


def test_a_log_ends_where_its_last_segment_begins(tmp_path: Path) -> None:
    """Also if that has no batch yet: the state there is that after the last batch."""
    log = partition(tmp_path, 0, (0, [one(0)]), (1, []))
    assert counts(log) == (0, 1, 0, 0, 0, 0)
    (head,) = heads(log, "--at", "1")
    assert (head["end_offset"], head["is_inside_batch"]) == (1, False)


def test_a_partition_that_begins_after_a_time_is_empty_if_it_begins_at_0(tmp_path: Path) -> None:
    """Else it is named, and the others are shown; alone, it is refused in one line."""
    partition(tmp_path, 0, (0, [one(0, time=1_000)]))
    partition(tmp_path, 1, (0, [one(0, time=5_000)]))
    late = partition(tmp_path, 2, (0, [one(3, time=5_000)]))
    both = (tmp_path, "--topic", TOPIC)
    for arguments in (("--at", "1970-01-01T00:00:02"), ("--between", "1970-01-01T00:00:02", "1970-01-01T00:00:09")):
        shown = heads(*both, *arguments)
        unknown = [each for each in shown if each["kind"] == "coordinator_unknown"]
        assert [(each["partition"], each["start_offset"]) for each in unknown] == [(2, 3)]
        firsts = {each["partition"]: each["end_offset"] for each in reversed(shown) if "end_offset" in each}
        assert firsts == {0: 1, 1: 0}
        text = run("state", *both, *arguments).text
        assert f"The state of {TOPIC}-2 is not known: " in " ".join(text.split())
    outcome = run("state", late, "--at", "1970-01-01T00:00:02")
    assert (outcome.exit_code, outcome.output, len(outcome.complaints)) == (1, b"", 1)
    assert "before the first record of the log, which begins at offset 3" in outcome.messages


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from(("there", "there", "compacted", "damaged")), min_size=1, max_size=9),
    st.sets(st.integers(1, 8)),
    st.sets(st.integers(0, 3)),
)
def test_offsets_without_records_are_counted_by_their_reason(
    tmp_path_factory: pytest.TempPathFactory, fates: list[str], rolls: set[int], lost: set[int]
) -> None:
    """Of any log of one-record batches, of which segments were lost: the same as by a walk over the offsets."""
    segments: list[tuple[int, list[int]]] = []
    for offset in range(len(fates)):
        if offset == 0 or offset in rolls:
            segments.append((offset, []))
        segments[-1][1].append(offset)
    kept = [each for number, each in enumerate(segments) if number not in lost] or segments[-1:]
    home = tmp_path_factory.mktemp("log")
    for base_offset, offsets in kept:
        batches = [_bytes_of(offset, fates[offset]) for offset in offsets]
        log = partition(home, 0, (base_offset, batches))
    is_damaged = any(fates[offset] == "damaged" for _, offsets in kept for offset in offsets)
    problems: list[DecodeError] = []
    (only,) = coordinator_logs([str(log)], TOPIC)
    found = extent_of(only, problems.append)
    missing = found.missing + only.first_offset
    assert (found.start, found.end, found.gone, missing, found.damaged) == _naive_counts(fates, kept)
    assert (found.damaged_places > 0) == is_damaged == (problems != [])


def _bytes_of(offset: int, fate: str) -> bytes:
    data = bytearray(b"" if fate == "compacted" else one(offset))
    if fate == "damaged":
        data[-1] ^= 1
    return bytes(data)


def _naive_counts(fates: list[str], kept: list[tuple[int, list[int]]]) -> tuple[int, ...]:
    """Walk back and forth from each offset without a record."""
    of_segment = {offset: base_offset for base_offset, offsets in kept for offset in offsets}
    there = {offset for offset in of_segment if fates[offset] == "there"}
    last_base = kept[-1][0]
    end = max([last_base, *(offset + 1 for offset in there)])
    start = min(there, default=end)
    gone = missing = damaged = 0
    for offset in range(end):
        if offset in there:
            continue
        before = max((each for each in there if each < offset), default=-1)
        after = min(each for each in [*there, *(base for base, _ in kept), end] if each > offset)
        bases = [base for base, _ in kept if before < base <= offset]
        left = max([before + 1, *bases])
        base = max((base for base, _ in kept if base <= offset), default=None)
        run_of = [each for each in range(left, after) if of_segment.get(each) == base]
        if base is not None and any(fates[each] == "damaged" for each in run_of):
            damaged += 1
        elif base is None or after not in there or of_segment[after] != base:
            missing += 1
        elif offset > start:
            gone += 1
    return start, end, gone, missing, damaged


def test_each_reason_has_its_sentence(tmp_path: Path) -> None:
    """Damage and a lost segment are not called compaction, and compaction is."""
    damaged = partition(tmp_path / "d", 0, (0, [one(0), one(1), one(2)]))
    flip(damaged / f"{0:020}.log", len(one(0)) + 80)
    text = run("state", damaged).text
    assert "1 damaged place: the records at 1 offset before the last sound batch cannot be read." in text
    lost = partition(tmp_path / "l", 0, (2, [one(2)]), (5, [one(5), one(7)]))
    lines = run("state", lost).text
    assert "The first segment begins at offset 2: what was before is not there: a segment is missing." in lines
    assert "Nothing is there at 2 offsets between segments: a segment is missing, or compaction" in lines
    assert "Compaction has removed 1 record after offset 2: a history does not have them." in lines
    assert "Compaction" not in text
    assert all("Records after the high watermark count" in each for each in (text, lines))


def test_a_torn_batch_is_damage_in_every_segment_but_the_last(tmp_path: Path) -> None:
    """Nothing is written to a segment after the next one has begun."""
    torn = one(1)[:-1]
    assert counts(partition(tmp_path / "a", 0, (0, [one(0), torn]))) == (0, 1, 0, 0, 0, 0)
    assert counts(partition(tmp_path / "b", 0, (0, [one(0), torn]), (2, [one(2)])), 2) == (0, 3, 0, 0, 1, 1)


def test_numbers_of_any_length_are_in_their_order(tmp_path: Path) -> None:
    """A group's id may be 5000 digits long, have zeros before it, or digits of another script."""
    ids = ["9", "10", "010", "1" * 5000, "2" * 4999, "\u0665", "a"]
    builder = RecordBatchBuilder(0, partition_leader_epoch=0)
    for group_id in ids:
        builder.append(1_000, *classic_group(group_id, 1))
    log = partition(tmp_path, 0, (0, [builder.build()]))
    outcome = run("state", log, "--format", "json")
    shown = [each["path"].removeprefix("/groups/") for each in outcome.objects[1:]]
    assert shown == ["9", "010", "10", "2" * 4999, "1" * 5000, "a", "\u0665"]
    assert run("state", log).exit_code == run("state", log, "--format", "tree").exit_code == 0


def test_groups_of_newer_protocols_do_not_claim_to_have_no_members(tmp_path: Path) -> None:
    """These are things of their own."""
    builder = RecordBatchBuilder(0, partition_leader_epoch=0)
    builder.append(1_000, *coordinator_record("ConsumerGroupMetadata", {"groupId": "c"}, {"epoch": 1}))
    builder.append(1_000, *classic_group("k", 1))
    outcome = run("state", "--format", "json", partition(tmp_path, 0, (0, [builder.build()])))
    assert {each["path"]: each["members"] is None for each in outcome.objects[1:]} == {
        "/groups/c": True,
        "/groups/k": False,
    }


def test_a_history_keeps_only_what_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes before the first position are not even made into things."""
    log = partition(tmp_path, 0, (0, [one(offset) for offset in range(20)]))
    made: list[int] = []
    right = coordinators._shown

    def noted(change: CoordinatorChange) -> ShownChange:
        made.append(change.offset)
        return right(change)

    monkeypatch.setattr(coordinators, "_shown", noted)
    run("state", log, "--between", "17", "19")
    assert made == [17, 18]
