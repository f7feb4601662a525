# SPDX-License-Identifier: Apache-2.0
"""``raftlog verify-mirror`` on a real mirror, on changed copies of it, and on what is no mirror."""

import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from raftlog.records.batches.record import Record, RecordView
from raftlog.records.messages.mirrors.mirror_records import (
    Checkpoint,
    MirrorRecordType,
    OffsetSync,
    read_mirror_record,
    write_mirror_record,
)
from raftlog.storage.reading.segment_reader import open_segment
from tests.tools.console import run
from tests.tools.mirrors.changed_mirror import (
    MIRROR,
    SYNCS,
    Entry,
    copied,
    log_bytes,
    move_syncs,
    remove_indexes,
    rewrite,
)
from tests.tools.mirrors.verb_runs import found, of_flow, refused, verified

SOUND = """\
A -> B: policy default, separator '.', offset.lag.max 10, read_uncommitted, as mm2-configs.A.internal of the target\
 says.
52 offset syncs are in mm2-offset-syncs.B.internal of the source.

heartbeats-0 -> A.heartbeats-0: 40 records compared, 6 of 6 anchors equal
internal-looking-0 -> A.internal-looking-0: 10 records compared, 2 of 2 anchors equal
orders-0 -> A.orders-0: 320 records compared, 25 of 25 anchors equal
orders-1 -> A.orders-1: 150 records compared, 12 of 12 anchors equal
tx.orders-0 -> A.tx.orders-0: 60 records compared, 7 of 7 anchors equal

Groups that move from A to B now:
GROUP    PARTITION  COMMITTED  GOES ON AT  BY      READ AGAIN  SKIPPED  MISSING  NEWEST IN SOURCE          NEWEST IN\
 TARGET
readers  orders-0         273         243  commit          30        0        0  2025-06-15T15:08:39.021Z \
 2025-06-15T15:08:39.021Z
readers  orders-1         150         150  commit           0        0        0  2025-06-15T15:09:09.007Z \
 2025-06-15T15:09:09.007Z

Groups that come back to A then:
GROUP    PARTITION  COMMITTED  GOES ON AT  BY      READ AGAIN  SKIPPED  MISSING  NEWEST IN SOURCE          NEWEST IN\
 TARGET
readers  orders-0         320         273  commit          47        0        0  2025-06-15T15:08:39.021Z \
 2025-06-15T15:08:39.021Z
readers  orders-1         150         150  commit           0        0        0  2025-06-15T15:09:09.007Z \
 2025-06-15T15:09:09.007Z

5 pairs, 580 records compared: no finding above harmless.
"""


def test_a_real_mirror_holds_what_its_source_holds() -> None:
    """All 580 records and 52 syncs of a real MirrorMaker; and so for programs."""
    outcome = run("verify-mirror", "--source", MIRROR / "n1", "--target", MIRROR / "n2")
    assert (outcome.exit_code, outcome.text, outcome.messages) == (0, SOUND, "")
    lines = verified(MIRROR / "n1", MIRROR / "n2")
    assert lines.of_kind("total") == [{"kind": "total", "pairs": 5, "compared": 580, "findings": {}}]
    assert sum(line["anchors_equal"] for line in lines.of_kind("pair")) == 52


Change = Callable[[list[RecordView]], Iterable[Entry]]


def without(at: int, *, shifts: bool) -> Change:
    def change(records: list[RecordView]) -> Iterator[Entry]:
        for index, record in enumerate(records):
            if index != at:
                yield index - (shifts and index > at), record

    return change


def with_change(at: int, **changes: Any) -> Change:
    def change(records: list[RecordView]) -> Iterator[Entry]:
        for index, record in enumerate(records):
            fields = {name: getattr(record, name) for name in ("offset", "timestamp", "key", "value", "headers")}
            yield index, Record(**(fields | changes)) if index == at else record

    return change


def with_more(at: int) -> Change:
    def change(records: list[RecordView]) -> Iterator[Entry]:
        stranger = Record(0, records[at - 1].timestamp + 1, b"nobody", b"knows")
        yield from enumerate([*records[:at], stranger, *records[at:]])

    return change


def in_other_order(at: int) -> Change:
    def change(records: list[RecordView]) -> Iterator[Entry]:
        yield from enumerate([*records[:at], records[at + 1], records[at], *records[at + 2 :]])

    return change


def shifted(at: int, by: int) -> Callable[[OffsetSync], OffsetSync | None]:
    def change(sync: OffsetSync) -> OffsetSync | None:
        if sync.key.partition != 0 or sync.downstream_offset < at:
            return sync
        if by < 0 and sync.downstream_offset == at:
            return None
        return attrs.evolve(sync, downstream_offset=sync.downstream_offset + by)

    return change


@pytest.mark.parametrize("at", [305, 308], ids=["between syncs", "at a sync"])
def test_a_lost_record_is_a_data_loss(at: int, tmp_path: Path) -> None:
    """The later ones move up, and the later syncs agree: both places are named, and nothing else is found."""
    source, target = copied(tmp_path)
    rewrite(target / "A.orders-0", without(at, shifts=True))
    move_syncs(source, "orders", shifted(at, -1))
    outcome = verified(source, target)
    assert (outcome.exit_code, found(outcome)) == (2, [("mirror.lost", at, at)])


def test_an_offset_without_a_record_is_a_hole(tmp_path: Path) -> None:
    """Somebody has cut a record out: its offset is missing, and with it the record of the source."""
    source, target = copied(tmp_path)
    rewrite(target / "A.orders-0", without(105, shifts=False))
    outcome = verified(source, target)
    assert (outcome.exit_code, found(outcome)) == (2, [("mirror.hole", 105, 105)])
    (line,) = [line for line in outcome.of_kind("finding") if line["rule"] == "mirror.hole"]
    assert line["reason"] == "offset 105 of A.orders-0 has no record: offset 105 of orders-0 should be there"


def test_a_compacted_target_has_no_holes(tmp_path: Path) -> None:
    """Heartbeats are compacted: what is missing proves nothing."""
    source, target = copied(tmp_path)
    rewrite(target / "A.heartbeats-0", without(20, shifts=False))
    outcome = verified(source, target)
    assert (outcome.exit_code, found(outcome)) == (0, [])
    (pair,) = [line for line in outcome.of_kind("pair") if line["source"]["topic"] == "heartbeats"]
    assert (pair["compared"], pair["unverifiable"]) == (39, 1)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"key": b"other"}, "key"),
        ({"value": b"other"}, "value"),
        ({"headers": ((b"more", None),)}, "headers"),
        ({"timestamp": 1}, "timestamp"),
        ({"key": b"other", "value": None}, "key and value"),
        ({"key": b"x", "value": b"", "headers": ((b"h", b""),), "timestamp": 7}, "key, value, headers and timestamp"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_changed_record_is_damage(changes: dict[str, Any], what: str, tmp_path: Path) -> None:
    """It is said which of its parts has changed."""
    source, target = copied(tmp_path)
    rewrite(target / "A.orders-0", with_change(150, **changes))
    outcome = verified(source, target)
    assert (outcome.exit_code, found(outcome)) == (2, [("mirror.changed", 150, 150)])
    (line,) = outcome.of_kind("finding")
    assert line["reason"] == f"offset 150 of A.orders-0 has another {what} than offset 150 of orders-0"


def test_changed_places_are_damage(tmp_path: Path) -> None:
    """Two neighbours are in another order."""
    source, target = copied(tmp_path)
    rewrite(target / "A.orders-0", in_other_order(150))
    outcome = verified(source, target)
    ((rule, ours, theirs),) = found(outcome)
    assert (outcome.exit_code, rule) == (2, "mirror.reordered")
    assert {ours, theirs} == {150, 151}


def test_a_foreign_record_is_suspicious(tmp_path: Path) -> None:
    """It may be the last copy of one that the source has lost."""
    source, target = copied(tmp_path)
    rewrite(target / "A.orders-0", with_more(150))
    move_syncs(source, "orders", shifted(150, 1))
    outcome = verified(source, target)
    assert (outcome.exit_code, found(outcome)) == (3, [("mirror.foreign", 150, 150)])


def test_what_others_wrote_is_one_finding(tmp_path: Path) -> None:
    """With the first offset, the time and the producer."""
    source, target = copied(tmp_path)

    def more(records: list[RecordView]) -> Iterator[Entry]:
        yield from enumerate([*records, *(Record(0, 1_800_000_000_000, b"new", b"%d" % each) for each in range(7))])

    rewrite(target / "A.orders-0", more, producer_id=77)
    outcome = verified(source, target)
    assert (outcome.exit_code, found(outcome)) == (3, [("mirror.written-to", 320, 320)])
    (line,) = outcome.of_kind("finding")
    start = "others wrote 7 records at the end of A.orders-0, from offset 320 on, first at 2027-"
    assert (line["reason"][: len(start)], line["reason"][-13:]) == (start, ", producer 77")


@pytest.mark.parametrize(
    ("rule", "number"),
    [("mirror.anchor", 3), ("mirror.sync", 9999), ("mirror.sync", -1)],
    ids=["of another record", "past the end", "negative"],
)
def test_a_wrong_sync_is_damage(rule: str, number: int, tmp_path: Path) -> None:
    """One that names another record, and one that names none."""
    source, target = copied(tmp_path)

    def change(sync: OffsetSync) -> OffsetSync:
        is_it = sync.key.partition == 0 and sync.upstream_offset == 110
        wrong = 113 if number == 3 else number
        return attrs.evolve(sync, downstream_offset=wrong) if is_it else sync

    move_syncs(source, "orders", change)
    outcome = verified(source, target)
    ((found_rule, ours, _),) = found(outcome)
    assert (outcome.exit_code, found_rule, ours) == (2, rule, 110)


def test_a_sync_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    """The others count, and the exit code is that of damage."""
    source, target = copied(tmp_path)
    rewrite(source / SYNCS, with_change(5, value=b"short"))
    outcome = verified(source, target)
    assert outcome.exit_code == 2
    assert "[mirror.sync]" in outcome.messages
    assert found(outcome) == []


def test_what_is_not_mirrored_yet_is_lag(tmp_path: Path) -> None:
    """It is harmless, and counted; what Connect says was mirrored is lost."""
    source, target = copied(tmp_path)
    rewrite(target / "A.orders-0", lambda records: enumerate(records[:300]))
    outcome = verified(source, target)
    rules = {rule for rule, *_ in found(outcome)}
    assert rules == {"mirror.lost"}
    for each in target.glob("mm2-offsets.A.internal-*"):
        shutil.rmtree(each)
    move_syncs(source, "orders", lambda sync: sync if sync.downstream_offset < 300 else None)
    outcome = verified(source, target)
    assert (outcome.exit_code, found(outcome)) == (0, [])
    (line,) = [line for line in outcome.of_kind("finding") if line["rule"] == "mirror.lag"]
    assert line["reason"] == "20 records at the end of the source not mirrored yet"


def test_options_count_more_than_the_configuration() -> None:
    """Wrong ones find nothing that could be compared."""
    arguments = ("--source", MIRROR / "n1", "--target", MIRROR / "n2")
    assert "mm2-offset-syncs_B_internal" in refused(*arguments, "--separator", "_")
    assert "mm2-offset-syncs.A.internal" in refused(*arguments, "--syncs", "target")
    outcome = verified(MIRROR / "n1", MIRROR / "n2", "--isolation", "read_committed")
    assert {rule for rule, *_ in found(outcome)} != set()
    right = ("--policy", "default", "--source-alias", "A", "--target-alias", "B", "--syncs", "source")
    assert found(verified(MIRROR / "n1", MIRROR / "n2", *right, "--isolation", "read_uncommitted")) == []


def test_what_is_no_mirror_is_refused(tmp_path: Path) -> None:
    """Clusters that are swapped, one cluster twice, no configuration, and the same alias twice: one line each."""
    one, two = MIRROR / "n1", MIRROR / "n2"
    assert "there are no offset syncs" in refused("--source", two, "--target", one)
    assert "the same cluster" in refused("--source", two, "--target", two)
    _, target = copied(tmp_path)
    shutil.rmtree(target / "mm2-configs.A.internal-0")
    assert "say --source-alias and --target-alias" in refused("--source", one, "--target", target)
    aliases = ("--source-alias", "A", "--target-alias", "B")
    assert found(verified(one, target, *aliases)) == []
    assert "alias" in refused("--source", one, "--target", target, "--source-alias", "A", "--target-alias", "A")
    assert "missing" in refused("--source", tmp_path / "missing", "--target", two)


def test_damage_makes_records_unverifiable(tmp_path: Path) -> None:
    """The audit's finding stands beside; what is around the damage is compared."""
    source, target = copied(tmp_path)
    (log,) = (target / "A.orders-0").glob("*.log")
    data = bytearray(log.read_bytes())
    data[200] ^= 1
    log.write_bytes(data)
    outcome = verified(source, target)
    assert outcome.exit_code == 2
    assert "[batch-crc]" in outcome.messages
    assert found(outcome) == []
    (pair,) = [line for line in outcome.of_kind("pair") if line["source"] == {"topic": "orders", "partition": 0}]
    assert (pair["compared"], pair["unverifiable"]) == (257, 63)


def test_a_checkpoint_that_is_ahead_is_a_data_loss(tmp_path: Path) -> None:
    """A group that moves would pass over records: those that it has not read, and that are before the checkpoint."""
    source, target = copied(tmp_path)

    def change(records: list[RecordView]) -> Iterator[Entry]:
        for record in records:
            read = read_mirror_record(MirrorRecordType.CHECKPOINT, record.key, record.value)
            assert isinstance(read, Checkpoint)
            is_it = (read.key.topic, read.key.partition, read.upstream_offset) == ("A.orders", 0, 273)
            key, value = write_mirror_record(attrs.evolve(read, downstream_offset=309) if is_it else read)
            yield record.offset, Record(record.offset, record.timestamp, key, value)

    rewrite(target / "A.checkpoints.internal-0", change)
    outcome = verified(source, target)
    assert (outcome.exit_code, found(outcome)) == (2, [("mirror.checkpoint-ahead", 273, 273)])
    (line,) = [line for line in outcome.of_kind("finding") if line["severity"] != "harmless"]
    assert line["reason"].startswith(
        "group readers: it goes on at offset 309 of the target, and offset 273 of the source"
    )


def test_a_gap_of_heartbeats_is_suspicious(tmp_path: Path) -> None:
    """The flow stood still: from when to when is said, and its name."""
    source, target = copied(tmp_path)
    rewrite(target / "heartbeats-0", lambda records: enumerate([*records[:10], *records[15:]]))
    outcome = verified(source, target)
    assert (outcome.exit_code, of_flow(outcome)) == (3, [("mirror.heartbeat-gap", "A -> B")])
    (line,) = outcome.of_kind("flow_finding")
    assert 11_000 < line["until_ms"] - line["since_ms"] < 13_000
    outcome = run("verify-mirror", "--source", source, "--target", target)
    assert "A -> B: suspicious: there is no heartbeat for " in outcome.text


def test_groups_that_move_are_told() -> None:
    """Where they go on, and how many records they read again, on the way out and on the way back."""
    moves = verified(MIRROR / "n1", MIRROR / "n2").of_kind("move")
    short = [(each["from"], each["source"]["partition"], each["position"], each["read_again"]) for each in moves]
    assert short == [("A", 0, 243, 30), ("A", 1, 150, 0), ("B", 0, 273, 47), ("B", 1, 150, 0)]
    assert all(each["skipped"] == each["missing"] == 0 for each in moves)


def test_times_that_the_target_has_stamped_are_not_compared(tmp_path: Path) -> None:
    """With LogAppendTime in the target, only key, value and headers count; a change of these is found as ever."""
    source, target = copied(tmp_path)
    rewrite(target / "A.orders-0", enumerate, append_time_ms=1_800_000_000_000)
    outcome = verified(source, target)
    assert (outcome.exit_code, found(outcome)) == (0, [])
    rewrite(target / "A.orders-0", with_change(150, value=b"other"), append_time_ms=1_800_000_000_000)
    outcome = verified(source, target)
    assert (outcome.exit_code, found(outcome)) == (2, [("mirror.changed", 150, 150)])
    (line,) = outcome.of_kind("finding")
    assert line["reason"] == "offset 150 of A.orders-0 has another value than offset 150 of orders-0"


@pytest.mark.parametrize("is_first", [True, False])
def test_a_target_may_have_stamped_a_part_of_its_records(is_first: bool, tmp_path: Path) -> None:
    """Whether its topic became one of LogAppendTime, or was one before, times are not compared."""
    source, target = copied(tmp_path)
    (log,) = (target / "A.orders-0").glob("*.log")
    with open_segment(str(log)) as segment:
        entries = list(enumerate(segment.records()))
    parts, stamp_ms = (entries[:150], entries[150:]), 1_800_000_000_000
    log.write_bytes(
        b"".join(log_bytes(part, append_time_ms=stamp_ms if part is parts[not is_first] else None) for part in parts)
    )
    remove_indexes(target / "A.orders-0")
    outcome = verified(source, target)
    assert (outcome.exit_code, found(outcome)) == (0, [])
