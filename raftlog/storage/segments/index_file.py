# SPDX-License-Identifier: Apache-2.0
"""An index of a segment: its entries in memory, as the bytes of its file, and the file that gets them late.

A log knows all entries from its own scan at every start, and never believes a file. So the file is written where a
segment ends (roll, close); after a crash it is behind, and recovery brings it up.
"""

import enum
from bisect import bisect_right
from collections.abc import Callable
from typing import Final, Generic

from raftlog.errors import InvariantViolation, MissingFileError, StorageError
from raftlog.file_system import FileSystem
from raftlog.invariants import invariant
from raftlog.records.files.index_entries import Entry, IndexFormat

_MOST_PADDING: Final = 16 * 1024 * 1024
"""More than Kafka allots; what lies behind it is not looked at, and does no harm."""
_BEFORE_ALL: Final = (-1, -1)
"""What the first entry follows: none of its numbers is negative."""


class StoredIndex(enum.Enum):
    """What the file has, next to the entries that it should have."""

    EQUAL = "equal"
    """All of them, perhaps with the zeros that Kafka allots beforehand; where there are none, no file will do."""
    BEHIND = "behind"
    """The first of them, or none, as after a crash."""
    WRONG = "wrong"
    """Something else, or nothing that can be read."""


class IndexFile(Generic[Entry]):
    """Entries of one kind, in the order of the log.

    Args:
        file_system: where the file is.
        path: of the file; it need not be there.
        index_format: of an entry.
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
        """How many bytes at the file's front are known to be those of ``_data``."""

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
        """Add an entry of these numbers, which fit in their fields; otherwise it is a ``struct.error``."""
        last = self._last
        if last[0] >= fields[0] or last[1] >= fields[1]:
            raise InvariantViolation(f"{self.path}: entry {fields} after {last}, and both numbers grow")
        self._data += self._pack(*fields)
        self._last = fields

    def keep_first(self, count: int) -> None:
        """Drop all entries but the first ``count``."""
        size, held = count * self._entry_size, len(self._data)
        invariant(0 <= size <= held, "{}: {} bytes of entries are kept, of {}", self.path, size, held)
        invariant(held % self._entry_size == 0, "{}: {} bytes are no whole entries", self.path, held)
        del self._data[size:]
        self._stored_size = min(self._stored_size, len(self._data))
        self._last = self.last_entry or _BEFORE_ALL

    def count_up_to(self, value: int, key: Callable[[Entry], int]) -> int:
        """Return how many entries, which are sorted by ``key``, have one that is not above a value."""
        return bisect_right(range(len(self)), value, key=lambda index: key(self.entry(index)))

    def compare(self) -> StoredIndex:
        """Look what the file has, so that ``store`` writes only what is missing."""
        try:
            stored = self._read()
        except MissingFileError:
            return StoredIndex.BEHIND if self._data else StoredIndex.EQUAL
        except StorageError:
            return StoredIndex.WRONG
        self._stored_size = _common_size(self._data, stored)
        self._check_stored_size(self._stored_size)
        if not any(stored[self._stored_size :]):
            return StoredIndex.EQUAL if self._stored_size == len(self._data) else StoredIndex.BEHIND
        return StoredIndex.WRONG

    def store(self) -> None:
        """Make the file what the entries are, durably but for its name.

        Raises:
            OutOfSpaceError, StorageError: the file may hold anything, and will be compared at the next start.
        """
        file = self._file_system.open(self.path, create=True)
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

    def _check_stored_size(self, size: int) -> None:
        """Check how many bytes are taken for those of the file: never more than there are entries."""
        held = len(self._data)
        invariant(0 <= size <= held, "{}: {} bytes are stored, of {}", self.path, size, held)
        invariant(held % self._entry_size == 0, "{}: {} bytes are no whole entries", self.path, held)

    def _read(self) -> bytes:
        file = self._file_system.open_for_reads(self.path)
        try:
            return bytes(file.read_at(0, min(file.size(), len(self._data) + _MOST_PADDING)))
        finally:
            file.close()


def _common_size(one: bytearray, other: bytes) -> int:
    """Return how many bytes two buffers have in common at their front."""
    size = min(len(one), len(other))
    if one[:size] == other[:size]:
        return size
    return next(index for index in range(size) if one[index] != other[index])
