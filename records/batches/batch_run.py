# SPDX-License-Identifier: Apache-2.0
"""Finds adjacent batches of magic 2, many at a time."""

from collections.abc import Iterator
from typing import Self

import attrs

from raftlog.errors import InvariantViolation
from raftlog.records.batches.batch import CRC_START, RecordBatch
from raftlog.records.checksum import crc32c
from raftlog.records.kernel_choice import kernel
from raftlog.records.limits import BATCH_OVERHEAD, LOG_OVERHEAD


@attrs.frozen
class BatchRun:
    """Adjacent batches whose CRC matches.

    Attributes:
        data: the bytes that contain them.
        position: byte position of ``data`` in its file.
        positions: where each batch starts in ``data``, as 64-bit integers.
        sizes: how many bytes each batch has, as 32-bit integers.
    """

    data: memoryview
    position: int
    positions: memoryview
    sizes: memoryview

    @classmethod
    def of(cls, batch: RecordBatch) -> Self:
        """Return a run of one batch, whose CRC must match."""
        positions, sizes = memoryview(bytearray(8)).cast("q"), memoryview(bytearray(4)).cast("i")
        sizes[0] = batch.size_bytes
        return cls(batch.buffer, batch.position, positions, sizes)

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def start(self) -> int:
        """Byte position in the file of the first batch."""
        return self.position + int(self.positions[0])

    @property
    def end(self) -> int:
        """Byte position in the file after the last batch."""
        return self.position + int(self.positions[-1]) + int(self.sizes[-1])

    def batch(self, index: int) -> RecordBatch:
        """Return one of the batches."""
        position = self.positions[index]
        return RecordBatch(
            self.data[position : position + self.sizes[index]], self.position + position, crc_is_checked=True
        )

    def batches(self) -> Iterator[RecordBatch]:
        """Yield the batches in order."""
        data, start = self.data, self.position
        for position, size in zip(self.positions, self.sizes, strict=True):
            yield RecordBatch(data[position : position + size], start + position, crc_is_checked=True)

    def part(self, first: int, last: int) -> "BatchRun":
        """Return the batches from ``first`` (inclusive) to ``last`` (exclusive)."""
        return BatchRun(self.data, self.position, self.positions[first:last], self.sizes[first:last])


class RunFinder:
    """Finds runs, and reuses its scratch memory from call to call."""

    def __init__(self) -> None:
        self._positions = _longs(0)
        self._sizes = _ints(0)
        self._unchecked = _ints(0)

    def find(self, data: memoryview, position: int) -> tuple[BatchRun | None, int]:
        """Return the run of whole batches at the start of ``data``, or None if the first batch is not whole and sound.

        Args:
            data: bytes of a log, from the start of a batch on.
            position: byte position of ``data`` in its file.

        Returns:
            The run, and how many bytes after it were checked in vain: a batch whose CRC does not match, and batches
                after it whose CRC was checked before.
        """
        most = len(data) // BATCH_OVERHEAD
        if len(self._positions) < most:
            self._positions, self._sizes, self._unchecked = _longs(most), _ints(most), _ints(most)
        found, unchecked, end, rule = kernel.scan(data, 0, self._positions[:most], self._sizes, self._unchecked)
        if kernel.RULE_IDS[rule] == "batch-crc":
            end += int.from_bytes(data[end + 8 : end + 12], "big") + LOG_OVERHEAD
        if not 0 <= unchecked <= found <= most:
            raise InvariantViolation(f"position {position}: {found} batches, {unchecked} unchecked, in room for {most}")
        count = self._count_sound(data, found, unchecked)
        if count == 0:
            return None, end
        positions = memoryview(bytearray(self._positions[:count])).cast("q")
        run = BatchRun(data, position, positions, memoryview(bytearray(self._sizes[:count])).cast("i"))
        size_bytes = run.end - position
        if not 0 < size_bytes <= len(data):
            raise InvariantViolation(f"position {position}: batches of {size_bytes} bytes in {len(data)}")
        return run, end - size_bytes

    def _count_sound(self, data: memoryview, count: int, unchecked: int) -> int:
        """Return how many batches precede the first one whose CRC does not match."""
        for index in self._unchecked[:unchecked]:
            start = self._positions[index]
            crc = crc32c(data[start + CRC_START : start + self._sizes[index]])
            if crc != int.from_bytes(data[start + 17 : start + 21], "big"):
                return index
        return count


def _longs(count: int) -> memoryview:
    return memoryview(bytearray(8 * count)).cast("q")


def _ints(count: int) -> memoryview:
    return memoryview(bytearray(4 * count)).cast("i")
