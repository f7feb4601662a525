# SPDX-License-Identifier: Apache-2.0
"""Reading on where a disk gives some of a file's bytes back, and not others."""

import sys
from typing import Final

from raftlog.errors import StorageError, without_frames
from raftlog.records.batches.window import ByteSource, after_hole

BLOCK_SIZE: Final = 4096
"""What a disk loses at once, at least as far as one can tell through the page cache."""


class ReadableBytes:
    """The bytes of a file; zeros stand for those that the disk does not give back. A ``ByteSource``.

    Where a read fails, its blocks are read one by one, each of them once: a disk may take its time to say no.

    Args:
        source: the file.

    Attributes:
        failure: what the first read of a single block has raised; None as long as all bytes are the file's.
        first_gap: byte position of the first of the blocks that were not given; behind all where there is none.
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
        """Return whether the disk was asked for some of these bytes and did not give them.

        Args:
            position: byte position of the first.
            size: how many they are.
        """
        blocks = range(position // BLOCK_SIZE, -(-(position + size) // BLOCK_SIZE))
        if len(blocks) < len(self._gaps):
            return size > 0 and not self._gaps.isdisjoint(blocks)
        return size > 0 and any(block in blocks for block in self._gaps)  # Damage may be a hole of terabytes.

    def read_at(self, position: int, size: int) -> memoryview:
        """Return up to ``size`` bytes from a position: fewer only where the file ends."""
        blocks = range(position // BLOCK_SIZE, -(-(position + size) // BLOCK_SIZE))
        if not self._gaps or self._gaps.isdisjoint(blocks):
            try:
                return self._source.read_at(position, size)
            except StorageError:
                pass  # The blocks say which of them it is.
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
