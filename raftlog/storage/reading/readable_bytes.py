# SPDX-License-Identifier: Apache-2.0
"""Reads a file of which the disk can read only some bytes."""

import sys
from typing import Final

from raftlog.errors import StorageError, without_frames
from raftlog.records.batches.window import ByteSource, after_hole

BLOCK_SIZE: Final = 4096
"""The unit in which bytes become unreadable, as seen through the page cache."""


class ReadableBytes:
    """The bytes of a file, with zeros for those that the disk cannot read. A ``ByteSource``.

    If a read fails, its blocks are read one by one. A block that fails is not retried, because failing may take long.

    Args:
        source: the file.

    Attributes:
        failure: the error of the first block that could not be read; None as long as all bytes are the file's.
        first_gap: byte position of the first unreadable block so far; ``sys.maxsize`` if there is none.
    """

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._gaps: set[int] = set()
        self.failure: StorageError | None = None
        self.first_gap = sys.maxsize

    def size(self) -> int:
        """Return the file's length in bytes.

        Raises:
            StorageError: as of the source.
        """
        return self._source.size()

    def has_gap(self, position: int, size: int) -> bool:
        """Return whether a read of some of these bytes has failed.

        Args:
            position: byte position of the first.
            size: how many bytes.
        """
        blocks = range(position // BLOCK_SIZE, -(-(position + size) // BLOCK_SIZE))
        if len(blocks) < len(self._gaps):
            return size > 0 and not self._gaps.isdisjoint(blocks)
        return size > 0 and any(block in blocks for block in self._gaps)  # Damage may be a hole of terabytes.

    def read_at(self, position: int, size: int) -> memoryview:
        """Return up to ``size`` bytes from a position: fewer only if the file ends before."""
        blocks = range(position // BLOCK_SIZE, -(-(position + size) // BLOCK_SIZE))
        if not self._gaps or self._gaps.isdisjoint(blocks):
            try:
                return self._source.read_at(position, size)
            except StorageError:
                pass  # Read block by block to find the unreadable ones.
        end = min(position + size, self.size())
        parts = []
        for block in blocks:
            first, last = max(position, block * BLOCK_SIZE), min(end, (block + 1) * BLOCK_SIZE)
            parts.append(self._block(block, first, max(0, last - first)))
        return memoryview(b"".join(parts))

    def after_hole(self, position: int) -> int:
        """Return a byte position, or the one after the hole of the file that it is in."""
        return after_hole(self._source, position)

    def _block(self, block: int, position: int, size: int) -> memoryview:
        if size > 0 and block not in self._gaps:
            try:
                return self._source.read_at(position, size)
            except StorageError as error:
                self._gaps.add(block)
                self.failure = self.failure or without_frames(error)
                self.first_gap = min(self.first_gap, block * BLOCK_SIZE)
        return memoryview(bytes(size))
