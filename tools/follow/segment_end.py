# SPDX-License-Identifier: Apache-2.0
"""Reads what a growing segment has after a position: whole batches, and whatever follows them."""

from collections.abc import Sequence
from typing import Final

import attrs

from raftlog.records import limits
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import ByteSource, Corruption, TornTail, ZeroPadding, split
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.tools.follow.remembered_batches import DAMAGE_HEAD_SIZE

_FEW_ZEROS: Final = 8
"""So many zeros at the end may be part of a batch."""
_NEWEST_MAGIC: Final = 2

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

    def is_open_in(self, source: ByteSource) -> bool:
        """Whether a writer in its last segment may still make a batch of what is unsound.

        It may, if no sound batch follows, and the file ends inside of a batch or with zeros, which may be space that
        was allocated before the batch is written into it.
        """
        if self.is_followed or not self.unsound:
            return False
        if not isinstance(self.unsound[-1], Corruption):
            return True
        return not any(source.read_at(max(0, source.size() - _FEW_ZEROS), _FEW_ZEROS))


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

    @property
    def is_part(self) -> bool:
        """Whether a part of a batch is there, as far as its header says."""
        return any(self.head)

    @property
    def has_bytes(self) -> bool:
        """Whether anything is there at all."""
        return bool(self.head)


def idle_end(source: ByteSource, segment: int, position: int) -> IdleEnd | None:
    """Return how a segment ends if no whole batch can follow a position; None if one may, and has to be looked for.

    That is so if nothing follows, or only a part of a header, or zeros where a header must be, or a header of a batch
    that ends beyond the end of the file: what looks like a batch after it is in its records. Zeros are the same at any
    position, as they were all read when they were found first. It takes one read of 61 bytes.
    """
    head = bytes(source.read_at(position, limits.BATCH_OVERHEAD))
    size = source.size()
    if not any(head):
        return IdleEnd(segment, position if position >= size else 0, size, head)
    if len(head) >= limits.HEADER_UP_TO_MAGIC:
        length = int.from_bytes(head[8 : limits.LOG_OVERHEAD], "big", signed=True)
        claimed = limits.LOG_OVERHEAD + length
        is_header = length >= limits.MIN_LEGACY_LENGTH and head[limits.LOG_OVERHEAD + 4] <= _NEWEST_MAGIC
        if not is_header or claimed > limits.MAX_STORED_BATCH_SIZE or position + claimed <= size:
            return None
    return IdleEnd(segment, position, size, head)


def head_size_of(piece: Unsound) -> int:
    """Return of how many bytes the fingerprint of damage is made: a repair may leave its header as it is."""
    return min(DAMAGE_HEAD_SIZE, piece.size_bytes)


@attrs.frozen
class ScannedEnd:
    """What a search for batches after a position has found, and by what to know that it would find the same again."""

    segment: int | None
    position: int
    size_bytes: int
    heads: tuple[bytes, bytes]
    end: SegmentEnd

    def is_of(self, source: ByteSource, segment: int | None, position: int) -> bool:
        """Whether the segment has the same size, and the same bytes at the position and where zeros began."""
        is_there = (segment, position, source.size()) == (self.segment, self.position, self.size_bytes)
        return is_there and _heads(source, position, self.end) == self.heads


def _heads(source: ByteSource, position: int, end: SegmentEnd) -> tuple[bytes, bytes]:
    last = end.unsound[-1].position if end.unsound else position
    head, at_last = (bytes(source.read_at(each, limits.BATCH_OVERHEAD)) for each in (position, last))
    return head, at_last


def read_batches(source: ByteSource, position: int, size_bytes: int) -> Sequence[Batch]:
    """Return the sound batches that are end to end from a position on.

    Args:
        source: the segment.
        position: byte position of the next batch.
        size_bytes: how much to read at most, unless the next batch is larger.

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
        return batches
    claimed = limits.LOG_OVERHEAD + int.from_bytes(part.data[8 : limits.LOG_OVERHEAD], "big", signed=True)
    if size_bytes < claimed <= source.size() - position:
        return read_batches(source, position, claimed)
    return ()


def scanned_end(source: ByteSource, segment: int | None, position: int) -> ScannedEnd:
    """Search what is after a position for a sound batch.

    Raises:
        StorageError: the disk failed.
    """
    size = source.size()
    unsound: list[Unsound] = []
    end = SegmentEnd((), unsound)
    for piece in split(source, start=position):
        if isinstance(piece, RecordBatch | LegacyBatch):
            end = SegmentEnd((), unsound, is_followed=True) if unsound else SegmentEnd((piece,))
            break
        unsound.append(piece)
    return ScannedEnd(segment, position, size, _heads(source, position, end), end)
