# SPDX-License-Identifier: Apache-2.0
"""The front of a file that is being written to."""

import attrs

from raftlog.records.batches.window import ByteSource, after_hole


@attrs.frozen
class BoundedSource:
    """A file up to the size that it had when it was listed, so that all that is read later is at least as new.

    Attributes:
        source: the file; it may be longer or shorter now.
        limit: the size in bytes.
    """

    source: ByteSource
    limit: int

    def read_at(self, position: int, size: int) -> memoryview:
        """Return up to ``size`` bytes from a byte position, none of them beyond the limit."""
        return self.source.read_at(position, max(0, min(size, self.limit - position)))

    def size(self) -> int:
        """Return the size now, in bytes, or the limit if that is less."""
        return min(self.source.size(), self.limit)

    def after_hole(self, position: int) -> int:
        """Return the byte position after the hole at a position, at most the limit."""
        return max(position, min(after_hole(self.source, position), self.limit))
