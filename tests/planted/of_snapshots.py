# SPDX-License-Identifier: Apache-2.0
"""Snapshots that do not say what their name or their log does."""

import shutil
import uuid
from pathlib import Path
from typing import Any

import attrs

from raftlog.records.messages.control import (
    ControlValue,
    KRaftVersionRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from raftlog.records.messages.metadata import read_metadata_record, write_metadata_record
from tests.golden_files import GOLDEN
from tests.planted.fault import Faults, Spot
from tests.planted.ground import DYNAMIC, METADATA, QUORUMS, SOURCES, Ground
from tests.planted.segments import (
    Segment,
    change_record,
    control_batch,
    control_values,
    flip_bit,
    records_of,
    with_base_offset,
    with_control,
    with_epoch,
    with_records,
)

FAULTS = Faults("snapshots")

_NAME_BYTES = 20
_OTHER = uuid.UUID(int=4711)


def end_offset(path: Path) -> int:
    """Return where a snapshot ends, by its name."""
    return int(path.name[:_NAME_BYTES])


def _epoch(path: Path) -> int:
    return int(path.name[21:31])


def _snapshots(ground: Ground, *, within_log: bool = True) -> list[Path]:
    """Return the snapshots above offset 0, and within what the log beside them still has."""
    found = []
    for path in ground.files("*/*/*.checkpoint"):
        starts = [end_offset(log) for log in path.parent.glob("*.log")]
        if end_offset(path) > (min(starts) if within_log else 0):
            found.append(path)
    return found


def _renamed(path: Path, offset: int, epoch: int) -> Path:
    return path.rename(path.with_name(f"{offset:020}-{epoch:010}.checkpoint"))


@FAULTS.kind("snapshot-epoch", "snapshot-timestamp", on=QUORUMS)
def snapshot_of_other_content(ground: Ground) -> Spot:
    """A snapshot has the valid content of another snapshot of its replica."""
    found = _snapshots(ground)
    path = ground.pick(each for each in found if any(_are_two(each, other) for other in found))
    other = ground.pick(each for each in found if _are_two(path, each))
    path.write_bytes(other.read_bytes())
    return Spot(path, 0)


def _are_two(path: Path, other: Path) -> bool:
    return path != other and path.parent == other.parent


@FAULTS.kind("snapshot-footer", on=QUORUMS)
def snapshot_without_footer(ground: Ground) -> Spot:
    """A snapshot ends before its footer."""
    segment = Segment(ground.pick(_snapshots(ground)))
    segment.batches.pop()
    segment.overwrite()
    return Spot(segment.path)


@FAULTS.kind("snapshot-footer", on=QUORUMS)
def snapshot_cut(ground: Ground) -> Spot:
    """A snapshot ends inside a batch."""
    segment = Segment(ground.pick(_snapshots(ground)))
    size = segment.path.stat().st_size
    segment.path.write_bytes(segment.path.read_bytes()[: ground.between(size // 2, size)])
    return Spot(segment.path)


@FAULTS.kind("snapshot-footer", "snapshot-header", on=QUORUMS)
def snapshot_empty(ground: Ground) -> Spot:
    """A snapshot is empty, as if the file system lost its bytes in a crash."""
    path = ground.pick(_snapshots(ground))
    path.write_bytes(b"")
    return Spot(path)


@FAULTS.kind("snapshot-header", on=QUORUMS)
def snapshot_without_header(ground: Ground) -> Spot:
    """A snapshot lacks its first batch."""
    segment = Segment(ground.pick(_snapshots(ground)))
    del segment.batches[0]
    segment.overwrite()
    return Spot(segment.path, 0)


@FAULTS.kind("snapshot-offset", on=QUORUMS)
def snapshot_with_a_gap(ground: Ground) -> Spot:
    """The offsets of a snapshot's batches have a gap."""
    segment = Segment(ground.pick(_snapshots(ground)))
    last = len(segment.batches) - 1
    segment.batches[last] = with_base_offset(segment.batches[last], segment.view(last).base_offset + 5)
    segment.overwrite()
    return segment.spot(last)


@FAULTS.kind("snapshot-epoch", on=QUORUMS)
def snapshot_batch_of_other_epoch(ground: Ground) -> Spot:
    """A batch of a snapshot has another epoch."""
    segment = Segment(ground.pick(_snapshots(ground)))
    index = ground.below(len(segment.batches))
    segment.batches[index] = with_epoch(segment.batches[index], segment.view(index).partition_leader_epoch + 1)
    segment.overwrite()
    return segment.spot(index)


@FAULTS.kind("snapshot-control", on=QUORUMS)
def snapshot_with_control_in_the_middle(ground: Ground) -> Spot:
    """A snapshot has a control record between its data batches."""
    segment = Segment(ground.pick(_snapshots(ground)))
    footer = segment.view(-1)
    made = control_batch(segment.batches[-1], [KRaftVersionRecord(1)])
    segment.batches.insert(len(segment.batches) - 1, made)
    segment.batches[-1] = with_base_offset(segment.batches[-1], footer.base_offset + 1)
    segment.overwrite()
    return segment.spot(len(segment.batches) - 2)


@FAULTS.kind("batch-crc", on=QUORUMS)
def snapshot_flipped(ground: Ground) -> Spot:
    """A bit of a snapshot's records is flipped."""
    segment = Segment(ground.pick(_snapshots(ground)))
    index = ground.below(len(segment.batches))
    position = segment.position(index)
    flip_bit(segment.path, position + ground.between(21, len(segment.batches[index])), ground.below(8))
    return Spot(segment.path, position)


def _change_header(ground: Ground, change: Any, kind: type[ControlValue]) -> Spot:
    """Let a record of a snapshot's first batch say something else."""
    found = [path for path in _snapshots(ground) if any(isinstance(each, kind) for each in _header(path))]
    segment = Segment(ground.pick(found))
    segment.batches[0] = with_control(segment.batches[0], change, kind)
    segment.overwrite()
    return Spot(segment.path)


def _header(path: Path) -> list[ControlValue | None]:
    return control_values(Segment(path).batches[0])


@FAULTS.kind("snapshot-timestamp", on=QUORUMS)
def snapshot_timestamp_wrong(ground: Ground) -> Spot:
    """A snapshot's header has a timestamp that no batch has."""
    return _change_header(
        ground,
        lambda value: SnapshotHeaderRecord(value.last_contained_log_timestamp - ground.between(1, 10_000)),
        SnapshotHeaderRecord,
    )


@FAULTS.kind("snapshot-voters", on=QUORUMS)
def snapshot_of_other_voters(ground: Ground) -> Spot:
    """A snapshot lacks a voter."""
    return _change_header(ground, lambda value: VotersRecord(value.voters[:-1]), VotersRecord)


@FAULTS.kind("snapshot-voters", on=QUORUMS)
def snapshot_of_other_endpoints(ground: Ground) -> Spot:
    """A snapshot has a different port for a voter."""
    return _change_header(ground, _with_another_port, VotersRecord)


def _with_another_port(value: VotersRecord) -> VotersRecord:
    first, *rest = value.voters
    moved = tuple(attrs.evolve(each, port=each.port ^ 1) for each in first.endpoints)
    return VotersRecord((attrs.evolve(first, endpoints=moved), *rest))


@FAULTS.kind("snapshot-version", on=DYNAMIC)
def snapshot_of_other_version(ground: Ground) -> Spot:
    """A snapshot has kraft.version 0 and no voters, but the log has kraft.version 1."""
    ground.alone()  # In a log that starts above 0, a snapshot may be all that says it.
    segment = Segment(ground.pick(_snapshots(ground)))
    first, *others = segment.batches
    segment.batches[0] = with_records(first, records_of(first)[:1])
    missing = segment.view(0).record_count - 3
    segment.batches[1:] = [with_base_offset(each, int.from_bytes(each[:8], "big") + missing) for each in others]
    segment.overwrite()
    return Spot(segment.path)


@FAULTS.kind("snapshot-id", "snapshot-epoch", on=QUORUMS)
def snapshot_of_other_epoch(ground: Ground) -> Spot:
    """A snapshot has another epoch in its name and in its batches."""
    segment = Segment(ground.pick(_snapshots(ground)))
    epoch = _epoch(segment.path) + 1
    segment.batches = [with_epoch(batch, epoch) for batch in segment.batches]
    segment.overwrite()
    path = _renamed(segment.path, end_offset(segment.path), epoch)
    return Spot(path, offset=end_offset(path), epoch=epoch)


@FAULTS.kind("snapshot-boundary", on=QUORUMS)
def snapshot_inside_a_batch(ground: Ground) -> Spot:
    """A snapshot has an offset in its name that is inside a batch."""
    found = [(path, offset) for path in _snapshots(ground) for offset in _offsets_inside(path)]
    path, offset = ground.pick(found)
    inside = path.with_name(f"{offset:020}-{_epoch(path):010}.checkpoint")
    inside.write_bytes(path.read_bytes())
    return Spot(inside, offset=offset)


def _offsets_inside(path: Path) -> list[int]:
    """Return the offsets inside batches of a snapshot's epoch in the log beside it."""
    return [
        batch.base_offset + 1
        for log in path.parent.glob("*.log")
        for batch in Segment(log).views()
        if batch.record_count > 1 and batch.partition_leader_epoch == _epoch(path) and not batch.is_control
    ]


@FAULTS.kind("snapshot-ahead", on=QUORUMS)
def snapshot_ahead_of_the_log(ground: Ground) -> Spot:
    """A snapshot has an offset in its name that the log has not reached."""
    path = ground.pick(_snapshots(ground))
    ahead = path.with_name(f"{5000 + ground.below(1000):020}-{_epoch(path):010}.checkpoint")
    ahead.write_bytes(path.read_bytes())
    return Spot(ahead, offset=end_offset(ahead))


@FAULTS.kind("snapshot-ahead", "snapshot-order", on=QUORUMS)
def snapshot_renamed_beyond_the_log(ground: Ground) -> Spot:
    """A snapshot is renamed, with an end in its name that no log has reached."""
    path = ground.pick(_snapshots(ground))
    path = _renamed(path, 5000 + ground.below(1000), _epoch(path))
    return Spot(path, offset=end_offset(path))


@FAULTS.kind("snapshot-timestamp", "snapshot-order", on=QUORUMS)
def snapshot_renamed_within_the_log(ground: Ground) -> Spot:
    """A snapshot is renamed, with the end of another batch of its epoch in its name, earlier or later."""
    found = [(path, offset) for path in _snapshots(ground) for offset in _other_ends(path)]
    path, offset = ground.pick(found)
    return Spot(_renamed(path, offset, _epoch(path)), 0)


def _other_ends(path: Path) -> list[int]:
    """Return the ends of batches in the log beside a snapshot, of its epoch and of other times than its last record.

    The batch after an end has another time, too: a snapshot that ends where a transaction begins has that.
    """
    batches = [
        batch
        for log in path.parent.glob("*.log")
        for batch in Segment(log).views()
        if batch.partition_leader_epoch == _epoch(path)
    ]
    times = {batch.next_offset: batch.max_timestamp for batch in batches}
    after = {batch.base_offset: batch.max_timestamp for batch in batches}
    taken = {end_offset(each) for each in path.parent.glob("*.checkpoint")}
    last = times.get(end_offset(path))
    fits = {offset for offset, time in [*times.items(), *after.items()] if time == last}
    return [offset for offset in times if last is not None and offset not in fits and offset not in taken]


@FAULTS.kind("snapshot-order", on=("wire",))
def snapshot_renamed_to_the_log_start(ground: Ground) -> Spot:
    """A later snapshot has the name of the one that a log starts after, which is gone."""
    starts = [path for path in _snapshots(ground, within_log=False) if end_offset(path) == _start(path.parent) > 0]
    found = [
        (path, other)
        for path in starts
        for other in path.parent.glob("*.checkpoint")
        if end_offset(other) > end_offset(path) and _epoch(other) == _epoch(path)
    ]
    path, other = ground.pick(found)
    path.unlink()
    return Spot(other.rename(path), offset=end_offset(path))


@FAULTS.kind("log-start-uncovered", on=DYNAMIC)
def snapshots_deleted(ground: Ground) -> Spot:
    """All snapshots of a log that starts above 0 are missing."""
    starts = [path.parent for path in ground.files("*/*/*.checkpoint") if _start(path.parent) > 0]
    directory = ground.pick(starts)
    for path in directory.glob("*.checkpoint"):
        path.unlink()
    return Spot(directory / f"{_start(directory):020}.log", offset=_start(directory))


def _start(directory: Path) -> int:
    return min(end_offset(path) for path in directory.glob("*.log"))


@FAULTS.kind("snapshot-unfinished", on=QUORUMS)
def snapshot_unfinished(ground: Ground) -> Spot:
    """A writer that was killed has left the beginning of a snapshot."""
    path = ground.pick(_snapshots(ground))
    part = path.with_name(f"{end_offset(path) + 1:020}-{_epoch(path):010}.checkpoint.part")
    part.write_bytes(path.read_bytes()[:200])
    return Spot(part)


@FAULTS.kind("snapshot-id", "snapshot-timestamp", on=DYNAMIC)
def snapshot_of_another_cluster(ground: Ground) -> Spot:
    """A snapshot of another cluster lies beside a log, under its own name."""
    other = "dynamic" if ground.root.name == "wire" else "wire"
    places = [
        (path, log)
        for path in (GOLDEN / SOURCES[other]).glob(f"*/{METADATA}/*.checkpoint")
        for log in ground.files(f"*/{METADATA}")
        if _start(log) < end_offset(path) < max(map(end_offset, log.glob("*.log")))
        and all(end_offset(path) != end_offset(snapshot) for snapshot in log.glob("*.checkpoint"))
    ]
    path, log = ground.pick(places)
    (log / path.name).write_bytes(path.read_bytes())
    return Spot(log / path.name)


@FAULTS.kind("snapshot-twins", "snapshot-records", on=QUORUMS)
def snapshot_twin_differs(ground: Ground) -> Spot:
    """Two replicas have snapshots with the same id, but with different numbers of records."""
    found = _snapshots(ground)
    twins = [path for path in found if sum(other.name == path.name for other in found) > 1]
    path = ground.pick(twins)
    segment = Segment(path)
    index = ground.pick(index for index, batch in enumerate(segment.views()) if not batch.is_control)
    records = records_of(segment.batches[index])
    segment.batches[index] = with_records(segment.batches[index], records[:-1])
    segment.batches[-1] = with_base_offset(segment.batches[-1], segment.view(-1).base_offset - 1)
    segment.overwrite()
    return Spot(path, other_path=ground.pick(other for other in found if other.name == path.name and other != path))


@FAULTS.kind("snapshot-twins", on=DYNAMIC)
def snapshot_before_a_log_differs(ground: Ground) -> Spot:
    """The snapshot that a log starts after lacks a voter, or has another port for one; its twins elsewhere do not."""
    found = _snapshots(ground, within_log=False)
    path = ground.pick(
        path for path in found if end_offset(path) == _start(path.parent) > 0 and _has_twins(path, found)
    )
    segment = Segment(path)
    index = next(
        index
        for index, batch in enumerate(segment.views())
        if batch.is_control and any(isinstance(each, VotersRecord) for each in control_values(segment.batches[index]))
    )
    change = ground.pick(("lacks one", "port"))
    gone = ground.below(3)

    def other(value: VotersRecord) -> VotersRecord:
        if change == "port":
            return _with_another_port(value)
        return VotersRecord((*value.voters[:gone], *value.voters[gone + 1 :]))

    segment.batches[index] = with_control(segment.batches[index], other, VotersRecord)
    segment.overwrite()
    return Spot(path, offset=end_offset(path))


def _has_twins(path: Path, found: list[Path]) -> bool:
    return sum(other.name == path.name for other in found) > 1


@FAULTS.kind("snapshot-twins", "snapshot-records", on=QUORUMS)
def snapshot_twin_of_other_value(ground: Ground) -> Spot:
    """Two replicas have snapshots with the same id, one of which has a record twice in place of another record."""
    found = _snapshots(ground, within_log=False)
    path = ground.pick(path for path in found if _has_twins(path, found))
    _repeat_a_record(ground, path)
    return Spot(path, other_path=ground.pick(other for other in found if other.name == path.name and other != path))


@FAULTS.kind("snapshot-records", on=QUORUMS)
def snapshot_of_other_records(ground: Ground) -> Spot:
    """A snapshot without a twin has a record twice in place of another record; the CRC holds."""
    path = _continued(ground)
    _repeat_a_record(ground, path)
    return Spot(path, offset=end_offset(path))


@FAULTS.kind("snapshot-records", on=QUORUMS)
def snapshot_of_another_leader_epoch(ground: Ground) -> Spot:
    """A snapshot without a twin has another leader epoch for a partition; the CRC holds."""
    path = _continued(ground, "PartitionRecord")
    segment = Segment(path)
    partitions = {
        place: message
        for place, value in _data_records(segment).items()
        if (message := read_metadata_record(value)).type.name == "PartitionRecord"
    }
    index, number = ground.pick(partitions)
    record = partitions[index, number]
    changed = attrs.evolve(record, message={**record.message, "leaderEpoch": record.message["leaderEpoch"] + 1})
    segment.batches[index] = change_record(segment.batches[index], number, value=write_metadata_record(changed))
    segment.overwrite()
    return Spot(path, offset=end_offset(path))


def _repeat_a_record(ground: Ground, path: Path) -> None:
    """Write a record of a snapshot in place of another one, too."""
    segment = Segment(path)
    records = _data_records(segment)
    index, number = ground.pick(records)
    other = ground.pick(value for value in records.values() if value != records[index, number])
    segment.batches[index] = change_record(segment.batches[index], number, value=other)
    segment.overwrite()


def _continued(ground: Ground, kind: str = "TopicRecord") -> Path:
    """Leave one voter with a log from offset 0, and return a snapshot of it that has a record of some kind."""
    log = ground.alone() / METADATA
    return ground.pick(
        path
        for path in log.glob("*.checkpoint")
        if int(path.name[:20]) > 0
        and any(read_metadata_record(value).type.name == kind for value in _data_records(Segment(path)).values())
    )


def _data_records(segment: Segment) -> dict[tuple[int, int], bytes]:
    """Return the values of data records, by the number of their batch and their number in it."""
    return {
        (index, number): record.value or b""
        for index, batch in enumerate(segment.views())
        if not batch.is_control
        for number, record in enumerate(records_of(segment.batches[index]))
    }


@FAULTS.kind("bootstrap-differs", on=("dynamic",))
def initial_voters_differ(ground: Ground) -> Spot:
    """A node was formatted with another endpoint, or another directory, for one of the initial voters."""
    path = ground.file(f"*/{METADATA}/{0:020}-{0:010}.checkpoint")
    segment = Segment(path)
    index = next(index for index, batch in enumerate(segment.views()) if batch.is_control)
    is_moved = ground.below(2)

    def change(value: VotersRecord) -> VotersRecord:
        first, *rest = value.voters
        return (
            _with_another_port(value) if is_moved else VotersRecord((attrs.evolve(first, directory_id=_OTHER), *rest))
        )

    segment.batches[index] = with_control(segment.batches[index], change, VotersRecord)
    segment.overwrite()
    return Spot(path)


def _with_another_bootstrap(ground: Ground) -> Spot:
    """Change a record of the bootstrap.checkpoint of a node."""
    segment = Segment(ground.file("*/bootstrap.checkpoint"))
    index = next(index for index, batch in enumerate(segment.views()) if not batch.is_control)
    value = records_of(segment.batches[index])[0].value or b""
    segment.batches[index] = change_record(segment.batches[index], 0, value=value[:-2] + b"\1" + value[-1:])
    segment.overwrite()
    return Spot(segment.path)


@FAULTS.kind("bootstrap-differs", on=QUORUMS)
def bootstrap_differs(ground: Ground) -> Spot:
    """Before the first start, the bootstrap.checkpoint of a node has another feature level than those of the others."""
    for log in ground.files(f"*/{METADATA}"):
        shutil.rmtree(log)
    return _with_another_bootstrap(ground)


@FAULTS.kind("bootstrap-unlike", on=QUORUMS)
def bootstrap_of_another_release(ground: Ground) -> Spot:
    """The bootstrap.checkpoint of a node has another feature level; the quorum has run."""
    return _with_another_bootstrap(ground)
