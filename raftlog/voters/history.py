# SPDX-License-Identifier: Apache-2.0
"""A history of values by log offset: which value was in force from which offset on.

Entries are added in the order of the log. The newest are dropped when the log is truncated, and the oldest when a
snapshot replaces them.
"""

import itertools
from collections.abc import Iterator
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from sortedcontainers import SortedDict

from raftlog.errors import InvariantViolation, NonContiguousAppendError
from raftlog.invariants import invariant

BOOTSTRAP_OFFSET: Final = -1
"""The offset of values from the snapshot with end offset 0: before the log's first record."""

T = TypeVar("T")


class HistoryEntry(NamedTuple, Generic[T]):
    """A value, and the offset (inclusive) from which on it is in force."""

    offset: int
    value: T


class LogHistory(Protocol[T]):
    """Values by offset. No operation but ``add`` can fail.

    Source: LogHistory.
    """

    def add(self, offset: int, value: T) -> None:
        """Add a value that is in force from an offset on, until the next entry's.

        Args:
            offset: inclusive; -1 for a value in force before the log's first record.
            value: the value in force.

        Raises:
            NonContiguousAppendError: the offset is below -1, or not above the last entry's.
        """
        ...

    def value_at_or_before(self, offset: int) -> T | None:
        """Return the value of the last entry at or below an offset, or None if there is none."""
        ...

    def last_entry(self) -> HistoryEntry[T] | None:
        """Return the newest entry, or None if there is none."""
        ...

    def entries(self) -> Iterator[HistoryEntry[T]]:
        """Yield all entries, oldest first."""
        ...

    def truncate_new_entries(self, end_offset: int) -> None:
        """Forget every entry at or above an offset: the log ends there now."""
        ...

    def truncate_old_entries(self, start_offset: int) -> None:
        """Forget every entry that is no longer in force at an offset: values at or above it remain known."""
        ...

    def clear(self) -> None:
        """Forget all entries."""
        ...


class TreeMapLogHistory(LogHistory[T]):
    """A history in a sorted map.

    Operations take O(log n) time for n entries; truncations also take time proportional to the entries dropped.

    Source: TreeMapLogHistory.
    """

    def __init__(self) -> None:
        self._values: SortedDict[int, T] = SortedDict()

    def add(self, offset: int, value: T) -> None:
        """Add a value that is in force from an offset on, until the next entry's.

        Raises:
            NonContiguousAppendError: the offset is below -1, or not above the last entry's.

        Source: TreeMapLogHistory#addAt.
        """
        least = self._values.peekitem()[0] + 1 if self._values else BOOTSTRAP_OFFSET
        if offset < least:
            raise NonContiguousAppendError(f"an entry at offset {offset}, but the next one must be at {least} or above")
        count = len(self._values)
        self._values[offset] = value
        invariant(len(self._values) == count + 1, "{} entries after adding offset {} to {}", len(self), offset, count)
        last = self._values.peekitem()[0]
        invariant(last == offset, "last offset {} after adding {}", last, offset)

    def value_at_or_before(self, offset: int) -> T | None:
        """Return the value of the last entry at or below an offset, or None if there is none."""
        index = self._values.bisect_right(offset)
        return self._values.peekitem(index - 1)[1] if index else None

    def last_entry(self) -> HistoryEntry[T] | None:
        """Return the newest entry, or None if there is none."""
        return HistoryEntry(*self._values.peekitem()) if self._values else None

    def entries(self) -> Iterator[HistoryEntry[T]]:
        """Yield all entries, oldest first. Nothing may be added or dropped meanwhile."""
        return itertools.starmap(HistoryEntry, self._values.items())

    def truncate_new_entries(self, end_offset: int) -> None:
        """Forget every entry at or above an offset: the log ends there now."""
        before = self.last_entry()
        while self._values and self._values.peekitem()[0] >= end_offset:
            self._values.popitem()
        last = self.last_entry()
        invariant(last is None or last.offset < end_offset, "truncated at {}, but ends with {}", end_offset, last)
        is_kept = before is None or before.offset >= end_offset or last == before
        invariant(is_kept, "truncated at {}, ends with {}, before with {}", end_offset, last, before)

    def truncate_old_entries(self, start_offset: int) -> None:
        """Forget every entry below the last one at or below an offset.

        Values at or above the offset remain known.
        """
        before = self.last_entry()
        while len(self._values) > 1 and self._values.peekitem(1)[0] <= start_offset:
            self._values.popitem(0)
        last = self.last_entry()
        invariant(last == before, "trimmed at {}, ends with {}, before with {}", start_offset, last, before)
        is_cut = len(self._values) < 2 or self._values.peekitem(1)[0] > start_offset
        invariant(is_cut, "trimmed at {}, but begins with two entries below", start_offset)

    def clear(self) -> None:
        """Forget all entries."""
        self._values.clear()

    def __len__(self) -> int:
        return len(self._values)

    def check_invariants(self) -> None:
        """Check what must hold after every operation: offsets increase, from -1 on, and each has its value.

        Raises:
            InvariantViolation: it does not.
        """
        offsets = list(self._values)
        is_sound = len(offsets) == len(self._values) and offsets == sorted(set(offsets))
        if not is_sound or min(offsets, default=BOOTSTRAP_OFFSET) < BOOTSTRAP_OFFSET:
            raise InvariantViolation(f"a history's offsets do not grow from {BOOTSTRAP_OFFSET} on: {offsets[:20]}")
