# SPDX-License-Identifier: Apache-2.0
"""Faults of records and of syncs, in files: what the whole verb finds, and what it must find."""

import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import attrs

from raftlog.records.batches.record import Record, RecordView
from raftlog.records.messages.coordinator import (
    CONSUMER_OFFSETS,
    UnknownCoordinatorRecord,
    read_coordinator_record,
    write_coordinator_record,
)
from raftlog.records.messages.mirrors.mirror_records import (
    Checkpoint,
    MirrorRecordType,
    read_mirror_record,
    write_mirror_record,
)
from raftlog.tools.mirrors.comparing.differences import MirrorFault, OffsetRange
from raftlog.tools.mirrors.comparing.lifetimes import Sync
from tests.tools.mirrors.changed_mirror import with_contents
from tests.tools.mirrors.comparing.mirror_copies import FOREIGN, Mirror, Planted, real_mirrors
from tests.tools.mirrors.faulty.faulty_files import CHECKPOINTS, COMMITS, FaultyFiles, Told, joined_text, records_in

AHEAD, ODD, GAP = "mirror.checkpoint-ahead", "mirror.checkpoint-odd", "mirror.heartbeat-gap"
_RULES: Final = {
    MirrorFault.WRONG_ANCHOR: "mirror.anchor",
    MirrorFault.BAD_SYNC: "mirror.sync",
    MirrorFault.TARGET_SHRUNK: "mirror.shrunk",
}
"""Of those whose rule has another name."""
_INTERVAL_MS: Final = 2000
_HEARTBEATS: Final = "heartbeats-0"
_HEARTBEAT_KEY: Final = b"\x00\x01B\x00\x01A"
_HEARTBEAT_SIZE: Final = 10

Consequence = tuple[str, str, int]
"""A rule, what it is about, and an offset of the source, or a time."""


def verdict(files: FaultyFiles, planted: Planted) -> str:
    """Plant a fault in files, and return ``found``, or what went wrong."""
    mirror = planted.mirror
    (real,) = (each for each in real_mirrors() if each.pair == mirror.pair)
    with files.changes():
        files.write_mirror(mirror, real)
        checkpoints = _moved_checkpoints(files, mirror, real)
        found = files.findings(reads_committed=mirror.reads_committed)
    expected = Counter([*_of_checkpoints(mirror, checkpoints), *_gaps(mirror)])
    others = Counter(_consequence(each) for each in found if each.rule in {AHEAD, ODD, GAP})
    if others != expected:
        return f"consequences {dict(others)} instead of {dict(expected)}"
    return _own(planted, [each for each in found if each.rule not in {AHEAD, ODD, GAP}])


def _own(planted: Planted, found: Sequence[Told]) -> str:
    """Judge the findings that are about records and syncs."""
    rules = {_RULES.get(each, f"mirror.{each.value}") for each in planted.kinds}
    is_hole = planted.hole is not None and planted.mirror.name != _HEARTBEATS  # Those are compacted.
    if is_hole:
        rules = {"mirror.hole"}
    if not rules:
        return "found" if not found else f"false: {joined_text(found)}"
    if len(found) != 1 or found[0].rule not in rules or found[0].subject != planted.mirror.name:
        return f"{'missed' if not found else 'other'}: {joined_text(found)}"
    (each,) = found
    assert each.source is not None
    assert each.target is not None
    is_there = planted.is_at(each.source, each.target) and planted.words in each.reason
    if is_hole and planted.hole is not None:
        origins = planted.mirror.origins[planted.hole.start], planted.mirror.origins[planted.hole.end - 1] + 1
        is_there = (each.source, each.target) == (OffsetRange(*origins), planted.hole)
    return "found" if is_there else f"elsewhere: {joined_text(found)}"


# What follows from a fault, by the definitions


def _of_checkpoints(mirror: Mirror, checkpoints: Sequence[Checkpoint]) -> Iterator[Consequence]:
    """Yield the checkpoints after which a record is not read, and those that follow from no sync."""
    copies = {
        origin: offset
        for offset, origin in enumerate(mirror.origins)
        if origin != FOREIGN and mirror.target.contents[offset] is not None
    }
    translations = {each.downstream + step for each in mirror.syncs for step in (0, 1)}
    for each in checkpoints:
        unread = [origin for origin in copies if origin >= each.upstream_offset]
        is_ahead = bool(unread) and copies[min(unread)] < each.downstream_offset
        if is_ahead or each.downstream_offset > mirror.target.end_offset:
            yield AHEAD, mirror.name, each.upstream_offset
        elif mirror.has_all_syncs and each.downstream_offset not in translations:
            yield ODD, mirror.name, each.upstream_offset


def _gaps(mirror: Mirror) -> Iterator[Consequence]:
    """Yield the gaps between mirrored heartbeats that follow each other."""
    if mirror.name != _HEARTBEATS:
        return
    times: list[int | None] = []
    for each in mirror.target.contents:
        is_one = each is not None and each.key == _HEARTBEAT_KEY and len(each.value or b"") == _HEARTBEAT_SIZE
        times.append(int.from_bytes((each.value or b"")[2:], "big") if each is not None and is_one else None)
    known = sorted({each for each in times if each is not None})
    for before, after in pairwise(known):
        shown = [at for at, pair in enumerate(pairwise(times)) if pair == (before, after)]
        if shown and after - before > 3 * _INTERVAL_MS:
            yield GAP, "B -> A", shown[0]


def _consequence(each: Told) -> Consequence:
    place = each.target if each.rule == GAP else each.source
    assert place is not None
    return each.rule, each.subject, place.start


# Checkpoints of a task that has mirrored it so


@functools.cache
def _checkpoint_of(key: bytes, value: bytes) -> Checkpoint:
    read = read_mirror_record(MirrorRecordType.CHECKPOINT, key, value)
    assert isinstance(read, Checkpoint)
    return read


def checkpoint_of(record: RecordView) -> Checkpoint:
    """Return what a record says."""
    return _checkpoint_of(bytes(record.key or b""), bytes(record.value or b""))


def _moved_checkpoints(files: FaultyFiles, mirror: Mirror, real: Mirror) -> list[Checkpoint]:
    """Write the checkpoints and the offsets of groups that follow from the syncs, and return those of the partition."""
    place = mirror.pair.target, mirror.pair.partition
    checkpoints = [checkpoint_of(each) for each in records_in(files.target / CHECKPOINTS)]
    ours = [each for each in checkpoints if (each.key.topic, each.key.partition) == place]
    if not mirror.was_so:
        return ours
    moved = {each.downstream_offset: _translated(each, mirror.syncs, real.syncs) for each in ours}
    if any(before != after for before, after in moved.items()):
        files.rewrite(files.target / CHECKPOINTS, functools.partial(_with_checkpoint, place, moved))
        files.rewrite(files.target / COMMITS, functools.partial(_with_commit, place, moved))
    return [
        attrs.evolve(each, downstream_offset=downstream)
        for each in ours
        if (downstream := moved[each.downstream_offset]) is not None
    ]


def _translated(checkpoint: Checkpoint, syncs: Sequence[Sync], former: Sequence[Sync]) -> int | None:
    """Return where the sync that a checkpoint follows from is now, or the one before it."""
    downstream = checkpoint.downstream_offset
    old = next(each for each in reversed(former) if downstream - each.downstream in (0, 1))
    found = [each for each in syncs if each.upstream <= old.upstream]
    if not found:
        return None
    is_there = found[-1].upstream == old.upstream
    return found[-1].downstream + (downstream - old.downstream if is_there else 1)


def _with_checkpoint(
    place: tuple[str, int], moved: dict[int, int | None], record: RecordView
) -> Record | RecordView | None:
    read = checkpoint_of(record)
    if (read.key.topic, read.key.partition) != place:
        return record
    downstream = moved[read.downstream_offset]
    if downstream is None:
        return None
    return with_contents(record, *write_mirror_record(attrs.evolve(read, downstream_offset=downstream)))


def _with_commit(
    place: tuple[str, int], moved: dict[int, int | None], record: RecordView
) -> Record | RecordView | None:
    read = read_coordinator_record(CONSUMER_OFFSETS, record.key, record.value)
    if isinstance(read, UnknownCoordinatorRecord) or read.key_type.name != "OffsetCommitKey" or read.value is None:
        return record
    if (read.key["topic"], read.key["partition"]) != place:
        return record
    downstream = moved[read.value["offset"]]
    if downstream is None:
        return None
    return with_contents(
        record, *write_coordinator_record(attrs.evolve(read, value=read.value | {"offset": downstream}))
    )
