# SPDX-License-Identifier: Apache-2.0
"""Remembers which batches of a log were seen, so that a truncation can be told from growth, and its offset be found.

A batch is known again by its place and its first 61 bytes, which have its base offset, its leader epoch and its CRC.
"""

from array import array
from bisect import bisect_left
from typing import Final

import attrs

from raftlog.invariants import invariant
from raftlog.records.checksum import crc32c
from raftlog.records.limits import BATCH_OVERHEAD

_CRC_POSITION: Final = 17
DAMAGE_HEAD_SIZE: Final = 64 * 1024
"""How many bytes of damage are compared, at most."""
DEFAULT_LIMIT: Final = 1 << 18
"""How many batches are remembered by default, at least: up to twice as many, which take 28 MiB."""


def fingerprint(head: memoryview | bytes) -> int:
    """Return a number for the first bytes of a batch: their CRC-32C, and the CRC of the records that is among them.

    Of a batch they are its header, of damage as many as may have been repaired.
    """
    data = bytes(head)
    return crc32c(data) << 32 | int.from_bytes(data[_CRC_POSITION : _CRC_POSITION + 4], "big")


@attrs.frozen
class RememberedBatch:
    """A batch, or damaged bytes, at its place.

    Attributes:
        segment: base offset of the segment.
        position: byte position of its start.
        end_position: byte position after it.
        base_offset: of the batch; for damaged bytes, the offset after the batch before.
        next_offset: after the batch; for damaged bytes, the same as ``base_offset``.
        epoch: leader epoch; -1 if there is none.
        fingerprint: of its first bytes.
    """

    segment: int
    position: int
    end_position: int
    base_offset: int
    next_offset: int
    epoch: int
    fingerprint: int

    @property
    def head_size(self) -> int:
        """How many bytes its fingerprint is made of."""
        is_damage = self.base_offset == self.next_offset
        return min(DAMAGE_HEAD_SIZE if is_damage else BATCH_OVERHEAD, self.end_position - self.position)


class RememberedBatches:
    """The batches that were seen last, in the order of the log.

    Args:
        limit: how many are remembered at least; the oldest are forgotten at twice that.

    Attributes:
        has_forgotten: whether batches were forgotten because of the limit.
    """

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        invariant(limit > 0, "a memory of {} batches", limit)
        self._limit = limit
        self._numbers = tuple(array("q") for _ in range(6))
        self._fingerprints = array("Q")
        self.has_forgotten = False

    def __len__(self) -> int:
        return len(self._fingerprints)

    def __getitem__(self, index: int) -> RememberedBatch:
        segment, position, end_position, base_offset, next_offset, epoch = (each[index] for each in self._numbers)
        head = self._fingerprints[index]
        return RememberedBatch(segment, position, end_position, base_offset, next_offset, epoch, head)

    def add(self, batch: RememberedBatch) -> None:
        """Remember a batch after all others."""
        *numbers, head = attrs.astuple(batch)
        for column, number in zip(self._numbers, numbers, strict=True):
            column.append(number)
        self._fingerprints.append(head)
        if len(self) >= 2 * self._limit:
            self.has_forgotten = True
            self.forget_first(len(self) - self._limit)

    def truncate(self, count: int) -> None:
        """Forget all but the first ``count``, which are no longer there."""
        invariant(0 <= count <= len(self), "{} batches cut to {}", len(self), count)
        for column in (*self._numbers, self._fingerprints):
            del column[count:]
        self.has_forgotten &= count > 0

    def count_below(self, segment: int) -> int:
        """Return how many batches at the front are in segments before one."""
        return bisect_left(self._numbers[0], segment)

    def forget_first(self, count: int) -> None:
        """Forget the first ``count``, because they were deleted from the start of the log."""
        invariant(0 <= count <= len(self), "{} batches, the first {} forgotten", len(self), count)
        for column in (*self._numbers, self._fingerprints):
            del column[:count]

    def epoch_at(self, offset: int) -> int | None:
        """Return the epoch of the last remembered batch that holds an offset; None if none does."""
        for index in reversed(range(len(self))):
            if self._numbers[3][index] <= offset < self._numbers[4][index]:
                return self._numbers[5][index]
        return None
