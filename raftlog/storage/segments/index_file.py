# SPDX-License-Identifier: Apache-2.0
"""An index of a segment: entries in memory, in the bytes of the file, and the file that they are written to later.

A log never trusts an index file: it rebuilds all entries by a scan on every open. So the file need only be written when
a segment ends (on roll or close). After a crash it lacks entries, and recovery completes it. A truncation removes it.
"""

import enum
from bisect import bisect_right
from collections.abc import Callable
from typing import Final, Generic

from raftlog.errors import InvariantViolation, MissingFileError, StorageError
from raftlog.file_system import FileSystem, remove_if_there
from raftlog.invariants import invariant
from raftlog.records.files.index_entries import Entry, IndexFormat

_MOST_PADDING: Final = 16 * 1024 * 1024
"""More than Kafka preallocates. Bytes after that are not read, and do no harm."""
_BEFORE_ALL: Final = (-1, -1)
"""What the first entry follows: none of its numbers is negative."""


class StoredIndex(enum.Enum):
    """How an index file compares with the entries that it should have."""

    EQUAL = "equal"
    """It has all entries, perhaps followed by the zeros that Kafka preallocates. Without entries, it may be missing."""
    INCOMPLETE = "incomplete"
    """It lacks the last entries, or all, as after a crash."""
    WRONG = "wrong"
    """It has other entries, or cannot be read."""


class IndexFile(Generic[Entry]):
    """Entries of one kind, in the order of the log.

    Args:
        file_system: where the file is.
        path: of the file; it need not exist.
        index_format: how an entry is stored.
    """

    def __init__(self, file_system: FileSystem, path: str, index_format: IndexFormat[Entry]) -> None:
        self.path = path
        self._file_system = file_system
        self._format: IndexFormat[Entry] = index_format
        self._entry_size = index_format.entry_size
        self._pack = index_format.pack
        self._data = bytearray()
        self._last: tuple[int, ...] = _BEFORE_ALL
        """What the last entry was made of."""
        self._stored_size = 0
        """How many bytes at the start of the file are known to equal those of ``_data``."""
        self._has_file = False
        """Whether the file is known to hold entries, perhaps others than those of ``_data``."""

    def __len__(self) -> int:
        return len(self._data) // self._entry_size

    def entry(self, index: int) -> Entry:
        """Return an entry by its number, from 0 on."""
        start = index * self._entry_size
        entry: Entry = next(self._format.entries(bytes(self._data[start : start + self._entry_size])))
        return entry

    @property
    def last_entry(self) -> Entry | None:
        """The last entry, or None."""
        return self.entry(len(self) - 1) if self._data else None

    def append(self, *fields: int) -> None:
        """Add an entry of these numbers; a ``struct.error`` if one does not fit in its field."""
        last = self._last
        if last[0] >= fields[0] or last[1] >= fields[1]:
            raise InvariantViolation(f"{self.path}: entry {fields} after {last}, and both numbers grow")
        self._data += self._pack(*fields)
        self._last = fields

    def keep_first(self, count: int) -> None:
        """Drop all entries but the first ``count``."""
        size, held = count * self._entry_size, len(self._data)
        invariant(0 <= size <= held, "{}: {} bytes kept, of {}", self.path, size, held)
        invariant(held % self._entry_size == 0, "{}: {} bytes are not whole entries", self.path, held)
        del self._data[size:]
        self._stored_size = min(self._stored_size, len(self._data))
        self._last = self.last_entry or _BEFORE_ALL

    def count_up_to(self, value: int, key: Callable[[Entry], int]) -> int:
        """Return how many entries have a key not above a value; they must be sorted by ``key``."""
        return bisect_right(range(len(self)), value, key=lambda index: key(self.entry(index)))

    def compare(self) -> StoredIndex:
        """Compare the file with the entries; ``store`` then writes only what is missing."""
        try:
            stored = self._read()
        except MissingFileError:
            return StoredIndex.INCOMPLETE if self._data else StoredIndex.EQUAL
        except StorageError:
            return StoredIndex.WRONG
        self._stored_size, self._has_file = _common_size(self._data, stored), any(stored)
        self._check_stored_size(self._stored_size)
        if not any(stored[self._stored_size :]):
            return StoredIndex.EQUAL if self._stored_size == len(self._data) else StoredIndex.INCOMPLETE
        return StoredIndex.WRONG

    def store(self) -> None:
        """Write the entries to the file; durable except for its name.

        Raises:
            OutOfSpaceError, StorageError: the file may hold anything; the next open compares it.
        """
        file = self._file_system.open(self.path, create=True)
        self._has_file = True
        try:
            size = file.size()
            self._stored_size = min(self._stored_size, size)
            self._check_stored_size(self._stored_size)
            if self._stored_size < size:
                file.truncate(self._stored_size)
            if self._stored_size < len(self._data):
                file.append(bytes(self._data[self._stored_size :]))
            file.sync()
        finally:
            file.close()
        self._stored_size = len(self._data)

    def drop_file(self) -> None:
        """Remove the file if it holds entries, because some of them are to be dropped. ``store`` makes it again.

        Otherwise it would name batches that the segment has no more, to whoever reads it before it is stored again.

        Raises:
            StorageError: the file may be there or not; the next open compares it.
        """
        if self._has_file:
            self._check_stored_size(self._stored_size)
            self._has_file, self._stored_size = False, 0
            self._check_stored_size(self._stored_size)
            remove_if_there(self._file_system, self.path)

    def _check_stored_size(self, size: int) -> None:
        """Check how many bytes are taken for those of the file: never more than there are entries."""
        held = len(self._data)
        invariant(0 <= size <= held, "{}: {} bytes stored, of {}", self.path, size, held)
        invariant(held % self._entry_size == 0, "{}: {} bytes are not whole entries", self.path, held)

    def _read(self) -> bytes:
        file = self._file_system.open_for_reads(self.path)
        try:
            return bytes(file.read_at(0, min(file.size(), len(self._data) + _MOST_PADDING)))
        finally:
            file.close()


def _common_size(one: bytearray, other: bytes) -> int:
    """Return the length of the common prefix of two buffers."""
    size = min(len(one), len(other))
    if one[:size] == other[:size]:
        return size
    return next(index for index in range(size) if one[index] != other[index])
