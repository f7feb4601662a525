# SPDX-License-Identifier: Apache-2.0
"""Bytes of a segment that are missing, overwritten, or too many."""

from pathlib import Path

from raftlog.records.batches.batch import HEADER
from raftlog.records.files.index_entries import TIME_INDEX
from tests.planted.fault import Faults, Spot
from tests.planted.ground import QUORUMS, TOPICS, Ground, has_batches
from tests.planted.segments import Segment, in_the_middle

FAULTS = Faults("bytes")

_ALL = (*QUORUMS, *TOPICS)
_BROKEN = ("batch-length", "batch-overrun", "batch-magic", "batch-crc")
"""What bytes break that hold no batch."""


def last_log(ground: Ground, least_batches: int = 2) -> Segment:
    """Return the last segment of a log, of so many batches."""
    segments: dict[str, Segment] = {}
    for path in ground.files("**/*.log"):
        segments[str(path.parent)] = Segment(path)
    return segments[ground.pick(each for each, log in segments.items() if len(log.batches) >= least_batches)]


def _overwrite(segment: Segment, position: int, data: bytes) -> None:
    stored = segment.path.read_bytes()
    segment.path.write_bytes(stored[:position] + data + stored[position + len(data) :])


@FAULTS.kind("tail-torn", "tail-zero", on=_ALL)
def cut_inside_the_last_batch(ground: Ground) -> Spot:
    """A log ends inside its last batch."""
    segment = last_log(ground)
    position = segment.position(len(segment.batches) - 1)
    end = position + ground.between(1, len(segment.batches[-1]))
    segment.path.write_bytes(segment.path.read_bytes()[:end])
    return Spot(segment.path, position)


@FAULTS.kind("log-end", "snapshot-ahead", "index-beyond", on=QUORUMS)
def cut_between_batches(ground: Ground) -> Spot:
    """A metadata log has lost its last batches, as if they were not flushed."""
    segment = last_log(ground, 4)
    end = ground.between(1, 4)
    segment.batches = segment.batches[:-end]
    segment.save()
    ahead = [path for path in segment.path.parent.glob("*.checkpoint") if int(path.name[:20]) > _end_offset(segment)]
    return Spot(max(ahead, default=segment.path))


def _end_offset(segment: Segment) -> int:
    return segment.view(-1).next_offset


@FAULTS.kind("index-beyond", on=_ALL)
def log_shorter_than_its_indexes(ground: Ground) -> Spot:
    """A log has lost its last batches, but its indexes have not, as in a copy of a log that was being written."""
    logs = [path for path in ground.files("**/*.log") if _next_log(path) is None and _latest_offset(path) >= 0]
    segment = Segment(ground.pick(path for path in logs if Segment(path).view(-1).base_offset <= _latest_offset(path)))
    segment.batches.pop()
    segment.overwrite()
    return Spot(segment.path.with_suffix(".timeindex"), other_path=segment.path.with_suffix(".index"))


def _latest_offset(log: Path) -> int:
    """Return the offset in the last entry of a time index; -1 if there is none, or the log has one batch."""
    data = log.with_suffix(".timeindex").read_bytes()
    is_there = len(data) >= TIME_INDEX.entry_size and has_batches(log, 2)
    return int(log.stem) + int.from_bytes(data[-4:], "big") if is_there else -1


@FAULTS.kind("segment-gap", on=("dynamic", "wire"))
def cut_in_a_middle_segment(ground: Ground) -> Spot:
    """A segment of a metadata log, but not the last, has lost its last batches."""
    path = ground.pick(path for path in ground.files("*/*/*.log") if _next_log(path) is not None)
    segment = Segment(path)
    segment.batches = segment.batches[: -ground.between(1, 4)]
    segment.save()
    following = _next_log(path)
    assert following is not None
    return Spot(following, offset=_end_offset(segment))


@FAULTS.kind("segment-gap", on=("dynamic", "wire"))
def tear_in_a_middle_segment(ground: Ground) -> Spot:
    """A segment of a metadata log, but not the last, ends inside its last batch, or has zeros in place of it."""
    path = ground.pick(path for path in ground.files("*/*/*.log") if _next_log(path) is not None)
    segment = Segment(path)
    end_offset = segment.view(-2).next_offset
    _tear(ground, segment)
    return Spot(_next_log(path) or path, offset=end_offset)


@FAULTS.kind("tail-torn", "tail-zero", on=TOPICS)
def tear_in_a_middle_segment_of_a_topic(ground: Ground) -> Spot:
    """A segment of a topic, but not the last, ends inside its last batch, or has zeros in place of it."""
    segment = Segment(ground.pick(path for path in ground.files("**/*.log") if _next_log(path) is not None))
    _tear(ground, segment)
    return Spot(segment.path, segment.position(len(segment.batches) - 1))


def _tear(ground: Ground, segment: Segment) -> None:
    position, batch = segment.position(len(segment.batches) - 1), segment.batches[-1]
    if ground.below(2):
        _overwrite(segment, position, bytes(len(batch)))
    else:
        segment.path.write_bytes(segment.path.read_bytes()[: position + ground.between(1, len(batch))])


def _next_log(path: Path) -> Path | None:
    later = [other for other in sorted(path.parent.glob("*.log")) if other > path and other.stat().st_size]
    return later[0] if later else None


@FAULTS.kind(*_BROKEN, on=_ALL)
def zeros_in_the_middle(ground: Ground) -> Spot:
    """A batch in the middle of a segment is filled with zeros."""
    segment = Segment(ground.log())
    index = in_the_middle(ground, segment)
    _overwrite(segment, segment.position(index), bytes(len(segment.batches[index])))
    return Spot(segment.path, segment.position(index), segment.view(index).base_offset)


@FAULTS.kind(*_BROKEN, on=_ALL)
def sector_of_zeros(ground: Ground) -> Spot:
    """A sector of 512 bytes in the middle of a segment is filled with zeros."""
    segment = Segment(ground.log())
    start, end = len(segment.batches[0]), segment.position(len(segment.batches) - 1)
    position = ground.between(start, max(start + 1, end - 512))
    _overwrite(segment, position, bytes(min(512, end - position)))
    return _batch_at(segment, position)


@FAULTS.kind(*_BROKEN, on=_ALL)
def sector_of_other_bytes(ground: Ground) -> Spot:
    """A sector of 512 bytes in the middle of a segment is overwritten with unrelated bytes."""
    segment = Segment(ground.log())
    start, end = len(segment.batches[0]), segment.position(len(segment.batches) - 1)
    position = ground.between(start, max(start + 1, end - 512))
    _overwrite(segment, position, (b"#!/bin/sh\nexit 0\n" * 31)[: min(512, end - position)])
    return _batch_at(segment, position)


def _batch_at(segment: Segment, position: int) -> Spot:
    """Return where the batch is that holds a position."""
    index = max(index for index in range(len(segment.batches)) if segment.position(index) <= position)
    return Spot(segment.path, segment.position(index))


@FAULTS.kind("tail-zero", "tail-torn", on=_ALL)
def zeros_at_the_end(ground: Ground) -> Spot:
    """The last batches of a log are zeros, as if they were not written before the machine stopped."""
    segment = last_log(ground)
    position = segment.position(len(segment.batches) - 1)
    _overwrite(segment, position, bytes(len(segment.batches[-1])))
    return Spot(segment.path, position)


@FAULTS.kind("tail-zero", on=_ALL)
def zeros_after_the_end(ground: Ground) -> Spot:
    """A log has zeros after its last batch."""
    segment = last_log(ground)
    size = segment.path.stat().st_size
    segment.path.write_bytes(segment.path.read_bytes() + bytes(ground.between(1, 9000)))
    return Spot(segment.path, size)


@FAULTS.kind("tail-torn", *_BROKEN, on=_ALL)
def garbage_after_the_end(ground: Ground) -> Spot:
    """A log has unrelated bytes after its last batch."""
    segment = last_log(ground)
    size = segment.path.stat().st_size
    segment.path.write_bytes(segment.path.read_bytes() + b"something else entirely " * ground.between(1, 30))
    return Spot(segment.path, size)


@FAULTS.kind(*_BROKEN, on=_ALL)
def bytes_inserted(ground: Ground) -> Spot:
    """Bytes are inserted into a batch in the middle of a segment."""
    segment = Segment(ground.log())
    index = in_the_middle(ground, segment)
    at = ground.between(HEADER.size, len(segment.batches[index]))
    batch = segment.batches[index]
    return _resized(segment, index, batch[:at] + b"inserted" + batch[at:])


@FAULTS.kind(*_BROKEN, on=_ALL)
def bytes_removed(ground: Ground) -> Spot:
    """Bytes of a batch in the middle of a segment are missing."""
    segment = Segment(ground.log())
    index = in_the_middle(ground, segment)
    at = ground.between(20, len(segment.batches[index]) - 8)
    batch = segment.batches[index]
    return _resized(segment, index, batch[:at] + batch[at + 5 :])


def _resized(segment: Segment, index: int, batch: bytes) -> Spot:
    """Write other bytes in place of a batch, and the indexes that those who find it broken would make."""
    spot = Spot(segment.path, segment.position(index))
    segment.batches[index] = batch
    segment.save(without=index)
    return spot
