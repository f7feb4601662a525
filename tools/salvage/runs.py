# SPDX-License-Identifier: Apache-2.0
"""Reads one replica's log as runs: sound batches of one epoch that follow each other, byte by byte.

A batch is sound if its CRC holds, and its numbers, its control records and the form of its records are possible.

A run is as small as a run of a thousand batches: what is kept grows with the epochs and the faults of a log, not with
its size.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Final

import attrs

from raftlog.errors import DecodeError, RaftLogError
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.control_batch import control_batch_problem
from raftlog.records.batches.iterator import ByteSource, split
from raftlog.records.messages.control import ControlRecordType, read_control_key

_LAST_OFFSET: Final = (1 << 63) - 1


@attrs.frozen
class Run:
    """Sound batches of one epoch in one segment, each of which begins where the one before it ends.

    Attributes:
        file: name of the segment.
        position, end_position: of its bytes, inclusive and exclusive.
        start_offset, end_offset: inclusive and exclusive.
        epoch: of all its batches.
        batch_count: at least 1.
        opens_with_leader: whether its first batch begins with a LeaderChange.
        is_linked_before: whether the batch directly before it, or the name of its file, says where it starts.
        is_linked_after: whether the batch directly after it, or the name of the next file, says where it ends.
        crc: of its first batch, as stored.
    """

    file: str
    position: int
    end_position: int
    start_offset: int
    end_offset: int
    epoch: int
    batch_count: int = 1
    opens_with_leader: bool = False
    is_linked_before: bool = False
    is_linked_after: bool = False
    crc: int = 0

    @property
    def size_bytes(self) -> int:
        """Of its batches."""
        return self.end_position - self.position


@attrs.frozen
class NamedSegment:
    """A file of a replica's log.

    Attributes:
        file: its name.
        base_offset: that its name says.
    """

    file: str
    base_offset: int


def read_runs(
    source: ByteSource, segment: NamedSegment, next_base_offset: int | None, refuted: Collection[int] = ()
) -> Iterator[Run]:
    """Yield the runs of a segment, in the order of its bytes, whatever offsets they claim.

    Args:
        source: the segment's bytes. Memory use is that of ``split``.
        segment: its name.
        next_base_offset: that the name of the next segment says; None if there is none.
        refuted: positions of batches that are damaged by what is before them.

    Raises:
        StorageError: the disk failed.
        MissingExtraError: a batch is compressed, and the codec's package is not installed.
    """
    growing: _Growing | None = None
    before: int | None = segment.base_offset  # Where the next batch starts, by what is directly before it.
    for piece in split(source):
        if not isinstance(piece, RecordBatch) or piece.position in refuted or not _is_sound(piece):
            before = None
            continue
        is_linked = before == piece.base_offset
        before = piece.next_offset
        if growing is not None and is_linked and _is_of_epoch(piece, growing.first.partition_leader_epoch):
            growing.end_position = piece.position + piece.size_bytes
            growing.end_offset = before
            growing.batch_count += 1
            continue
        if growing is not None:
            yield growing.run(segment.file, is_linked_after=is_linked)
        growing = _Growing(piece, piece.position + piece.size_bytes, before, is_linked)
    if growing is not None:
        yield growing.run(segment.file, is_linked_after=growing.end_offset == next_base_offset)


@attrs.define
class _Growing:
    """The run that the next batch may belong to."""

    first: RecordBatch
    end_position: int
    end_offset: int
    is_linked_before: bool
    batch_count: int = 1

    def run(self, file: str, *, is_linked_after: bool) -> Run:
        return Run(
            file,
            self.first.position,
            self.end_position,
            self.first.base_offset,
            self.end_offset,
            self.first.partition_leader_epoch,
            self.batch_count,
            opens_with_leader(self.first),
            self.is_linked_before,
            is_linked_after,
            self.first.crc,
        )


def next_bases(segments: Sequence[NamedSegment]) -> Iterable[tuple[NamedSegment, int | None]]:
    """Return each segment of a log, by ascending base offset, with the base offset of the next one."""
    return zip_longest(segments, [each.base_offset for each in segments[1:]])


def _is_sound(batch: RecordBatch) -> bool:
    """Whether a batch whose CRC holds can be one that a raft leader has written: a writer may be faulty, too."""
    if min(batch.base_offset, batch.partition_leader_epoch, batch.last_offset_delta) < 0:
        return False
    count: int = batch.record_count
    if count != batch.last_offset_delta + 1 or batch.base_offset > _LAST_OFFSET - count:
        return False
    if batch.is_control and control_batch_problem(batch, knows_levels=True) is not None:
        return False
    try:
        offsets = [record.offset for record in batch.records(check_crc=False)]
    except DecodeError:
        return False
    return offsets == list(range(batch.base_offset, batch.base_offset + count))


def _is_of_epoch(batch: RecordBatch, epoch: int) -> bool:
    """Whether a batch can go on in the epoch of the one before it: a LeaderChange begins another one."""
    return batch.partition_leader_epoch == epoch and not opens_with_leader(batch)


def opens_with_leader(batch: RecordBatch) -> bool:
    """Whether the first record of a batch is a LeaderChange."""
    if not batch.is_control:
        return False
    try:
        first = next(batch.records(check_crc=False), None)
        return first is not None and read_control_key(first.key) is ControlRecordType.LEADER_CHANGE
    except RaftLogError:
        return False
