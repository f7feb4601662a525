# SPDX-License-Identifier: Apache-2.0
"""Limits the bytes that batches hold together until they are written.

Source: MemoryPool, BatchMemoryPool. Differs: Kafka hands out buffers of the largest size and never refuses one; here
bytes are only counted, each batch at its own size, and a request above the limit is refused.
"""

from typing import Final

import attrs

from raftlog.errors import BufferExhaustedError
from raftlog.records import limits

DEFAULT_MEMORY_LIMIT: Final = 12 * limits.MAX_BATCH_SIZE
"""Ten waiting batches, an open one and one that is being written, all of the largest size."""


@attrs.define(eq=False)
class MemoryPool:
    """Counts the bytes that are held, and refuses to hold more than the limit.

    The accumulators of successive epochs share one, so that batches of the last epoch count while they are written.

    Attributes:
        limit_bytes: how many bytes may be held at a time.

    Raises:
        ValueError: the limit is negative.
    """

    limit_bytes: int = attrs.field(default=DEFAULT_MEMORY_LIMIT)
    _held_bytes: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        if self.limit_bytes < 0:
            raise ValueError(f"not a limit: {self.limit_bytes} bytes")

    @property
    def held_bytes(self) -> int:
        """How many bytes all leases hold together."""
        return self._held_bytes

    def take(self, size_bytes: int) -> None:
        """Count more bytes as held, or fewer if the number is negative.

        Raises:
            BufferExhaustedError: they would be more than the limit.
            ValueError: more bytes would be returned than are held.
        """
        held = self._held_bytes + size_bytes
        if held < 0:
            raise ValueError(f"{-size_bytes} bytes cannot come back: {self._held_bytes} are held")
        if held > self.limit_bytes and size_bytes > 0:
            raise BufferExhaustedError(
                f"{size_bytes} bytes more than the {self._held_bytes} held are above the limit of {self.limit_bytes}"
            )
        self._held_bytes = held

    def lease(self) -> "MemoryLease":
        """Return a share of the pool that holds nothing yet."""
        return MemoryLease(self)


@attrs.define(eq=False)
class MemoryLease:
    """The bytes that one batch holds."""

    _pool: MemoryPool
    _size_bytes: int = attrs.field(default=0, init=False)

    @property
    def size_bytes(self) -> int:
        """How many bytes it holds."""
        return self._size_bytes

    def resize(self, size_bytes: int) -> None:
        """Hold this many bytes instead.

        Raises:
            BufferExhaustedError: the pool does not have that many; the lease is unchanged.
            ValueError: the number is negative.
        """
        if size_bytes < 0:
            raise ValueError(f"not a size: {size_bytes}")
        self._pool.take(size_bytes - self._size_bytes)
        self._size_bytes = size_bytes

    def release(self) -> None:
        """Return all bytes to the pool. A second call has no effect."""
        self.resize(0)
