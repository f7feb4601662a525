# SPDX-License-Identifier: Apache-2.0
"""Reads a log through a window that moves forward and drops the bytes before it."""

from typing import Protocol, runtime_checkable

from raftlog.errors import InvariantViolation
from raftlog.invariants import invariant


class ByteSource(Protocol):
    """Bytes that can be read at any position: a file, or a buffer."""

    def read_at(self, position: int, size: int) -> memoryview:
        """Return up to ``size`` bytes from a position, fewer only at the end of the source."""
        ...

    def size(self) -> int:
        """Return how many bytes there are now; a log that is being written grows."""
        ...


@runtime_checkable
class SparseSource(Protocol):
    """A source that knows where it has holes, without reading them."""

    def after_hole(self, position: int) -> int:
        """Return the position after the hole at a byte position, or the position itself if it is not in a hole."""
        ...


def after_hole(source: ByteSource, position: int) -> int:
    """Return the byte position after the hole at a position, or the position itself if the source knows of none."""
    return source.after_hole(position) if isinstance(source, SparseSource) else position


class Window:
    """A part of a source that is held in memory; it moves forward.

    Args:
        source: what is read.
        stop: where reading stops, exclusive; None means the end of the source.
        chunk_size: how many bytes to read at once, unless more are requested.

    Attributes:
        end: where reading ends: the known end of the source, or ``stop`` if that is earlier.
    """

    def __init__(self, source: ByteSource, stop: int | None, chunk_size: int) -> None:
        self._source = source
        self._stop = stop
        self._chunk_size = chunk_size
        self._data = memoryview(b"")
        self._start = 0
        self.end = self.limited(source.size())

    def limited(self, size: int) -> int:
        """Return a size of the source, or ``stop`` if that is less."""
        return size if self._stop is None else min(size, self._stop)

    def has_grown(self) -> bool:
        """Ask whether the source has more bytes now, and update ``end`` if so."""
        size = self.limited(self._source.size())
        if size <= self.end:
            return False
        self.end = size
        self._check_invariants()
        return True

    def look_past_stop(self) -> None:
        """Set ``end`` to the end of the source, ignoring ``stop``; ``end_at_stop`` undoes it."""
        self._check_invariants()
        self.end = self._source.size()

    def end_at_stop(self) -> None:
        """End again where reading is to stop."""
        self.end = self.limited(self.end)
        self._check_invariants()

    def _check_invariants(self) -> None:
        invariant(self.end >= 0, "a window from {} to {}", self._start, self.end)
        invariant(self._stop is None or self.end <= self._stop, "a window to {}, beyond {}", self.end, self._stop)

    def stops_inside(self) -> bool:
        """Whether ``end`` is due to ``stop``, so that the source may continue after it."""
        return self._stop is not None and self.end >= self._stop

    def view(self, position: int, size: int) -> memoryview:
        """Return up to ``size`` bytes at a position, fewer only at the end of the input."""
        size = max(0, min(size, self.end - position))
        at = position - self._start
        if at < 0 or at + size > len(self._data):
            wanted = max(size, min(self._chunk_size, self.end - position))
            self._data = self._source.read_at(position, wanted)
            if position < 0 or len(self._data) > wanted:
                raise InvariantViolation(f"a window of {len(self._data)} bytes at {position}: {wanted} were asked for")
            self._start = position
            at = 0
            self._end_after(position, size, len(self._data))
        return self._data[at : at + size]

    def rest(self, position: int) -> memoryview:
        """Return all bytes held from a position on; the last ``view`` must have started there."""
        return self._data[position - self._start : self.end - self._start]

    def peek(self, position: int, size: int) -> memoryview:
        """Return what ``view`` would, without moving the window."""
        size = max(0, min(size, self.end - position))
        at = position - self._start
        if at >= 0 and at + size <= len(self._data):
            return self._data[at : at + size]
        found = self._source.read_at(position, size)
        if len(found) > size:
            raise InvariantViolation(f"a look at {len(found)} bytes at {position}: {size} were asked for")
        self._end_after(position, size, len(found))
        return found

    def after_hole(self, position: int) -> int:
        """Return the first byte position, from ``position`` on, that may hold data, or the end."""
        return min(max(position, after_hole(self._source, position)), max(position, self.end))

    def _end_after(self, position: int, size: int, found: int) -> None:
        if found < size:  # The source has shrunk since its size was asked for.
            end, self.end = self.end, position + found
            invariant(0 <= position <= self.end < end, "a window to {} shrinks to {} at {}", end, self.end, position)
            invariant(found >= 0, "{} bytes found at {}", found, position)
