# SPDX-License-Identifier: Apache-2.0
"""Reads what a growing segment has after a position: whole batches, and whatever follows them."""

from collections.abc import Sequence

import attrs

from raftlog.records import limits
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import ByteSource, Corruption, TornTail, ZeroPadding, split
from raftlog.records.batches.legacy import LegacyBatch

Batch = RecordBatch | LegacyBatch
Unsound = TornTail | ZeroPadding | Corruption


@attrs.frozen
class SegmentEnd:
    """What was read after a position. At most one of the two has anything.

    Attributes:
        batches: sound ones, end to end from the position on.
        unsound: what is there instead. Only a writer or time can say what becomes of it.
        is_followed: whether a sound batch follows what is unsound.
    """

    batches: Sequence[Batch] = ()
    unsound: Sequence[Unsound] = ()
    is_followed: bool = False


@attrs.frozen
class _Part:
    """Some bytes of a segment, at the positions that they have there."""

    start: int
    data: memoryview

    def read_at(self, position: int, size: int) -> memoryview:
        at = position - self.start
        return self.data[at : at + size]

    def size(self) -> int:
        return self.start + len(self.data)


@attrs.frozen
class IdleEnd:
    """An end of a segment that need not be read again as long as it has the same size and next header."""

    segment: int
    position: int
    size_bytes: int
    head: bytes


def idle_end(source: ByteSource, segment: int, position: int) -> IdleEnd | None:
    """Return how a segment ends if no whole batch can follow a position; None if one may, and has to be looked for.

    That is so if nothing follows, or only a part of a header, or zeros where a header must be, or a header whose length
    leads beyond the end of the file. It takes one read of 61 bytes.
    """
    head = bytes(source.read_at(position, limits.BATCH_OVERHEAD))
    size = source.size()
    length = int.from_bytes(head[8 : limits.LOG_OVERHEAD], "big", signed=True)
    is_short = len(head) < limits.HEADER_UP_TO_MAGIC or position + limits.LOG_OVERHEAD + length > size
    return IdleEnd(segment, position, size, head) if is_short or not any(head) else None


def read_end(source: ByteSource, position: int, size_bytes: int) -> SegmentEnd:
    """Read on after a position.

    Args:
        source: the segment.
        position: byte position of the next batch.
        size_bytes: how much to read at most, unless the next batch is larger, or no batch is there.

    Raises:
        StorageError: the disk failed.
    """
    part = _Part(position, source.read_at(position, size_bytes))
    batches: list[Batch] = []
    for piece in split(part, start=position):
        if not isinstance(piece, RecordBatch | LegacyBatch):
            break
        batches.append(piece)
    if batches:
        return SegmentEnd(batches)
    unsound: list[Unsound] = []
    for piece in split(source, start=position):  # Not the part, in which even a sound batch may be cut off.
        if isinstance(piece, RecordBatch | LegacyBatch):
            return SegmentEnd((), unsound, is_followed=True) if unsound else SegmentEnd((piece,))
        unsound.append(piece)
    return SegmentEnd((), unsound)
