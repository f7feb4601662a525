# SPDX-License-Identifier: Apache-2.0
"""The two indexes of a segment, and when a batch gets an entry in them.

A batch gets an entry when more than ``interval_bytes`` were appended since the batch that got the last one, which
counts, and this one does not; so the first batch of a segment never does. A last entry with the greatest timestamp
goes to the time index when the segment ends.

Source: LogSegment#append, LogSegment#onBecomeInactiveSegment.
"""

from typing import Final

import attrs

from raftlog.errors import InvariantViolation
from raftlog.file_system import FileSystem, join
from raftlog.invariants import invariant
from raftlog.records.files.file_names import FileKind, FileName
from raftlog.storage.segments.index_file import StoredIndex
from raftlog.storage.segments.offset_index import OffsetIndex
from raftlog.storage.segments.time_index import TimeIndex

MAX_RELATIVE_OFFSET: Final = (1 << 31) - 1
"""What an entry can name; so no offset of a segment is further from its base offset."""
MAX_INDEXED_POSITION: Final = (1 << 31) - 1


@attrs.frozen
class IndexLimits:
    """How dense and how large indexes are.

    Attributes:
        interval_bytes: how many bytes lie between two entries at least (``index.interval.bytes``).
        max_size_bytes: of each of the files (``segment.index.bytes``).
    """

    interval_bytes: int = 4096
    max_size_bytes: int = 10 * 1024 * 1024

    @property
    def max_offset_entries(self) -> int:
        """How many entries the offset index takes."""
        return self.max_size_bytes // 8

    @property
    def max_time_entries(self) -> int:
        """How many entries the time index takes; one place more is kept for the last entry of a segment."""
        return self.max_size_bytes // 12 - 1


class SegmentIndexes:
    """The indexes of one segment.

    Attributes:
        offsets: the offset index.
        times: the time index.
        max_offset: the last offset that entries can name, inclusive.
        max_timestamp: the greatest so far, in ms; -1 where there is none.
        is_full: whether the segment must end, since an index takes no more.
    """

    def __init__(self, file_system: FileSystem, directory: str, base_offset: int, limits: IndexLimits) -> None:
        def path(kind: FileKind) -> str:
            return join(directory, str(FileName(kind, base_offset=base_offset)))

        self.offsets = OffsetIndex(file_system, path(FileKind.OFFSET_INDEX), base_offset)
        self.times = TimeIndex(file_system, path(FileKind.TIME_INDEX), base_offset)
        self.max_offset: Final = base_offset + MAX_RELATIVE_OFFSET
        self.max_timestamp, self._offset_of_max_timestamp = self.times.last_timestamp_and_offset
        self._bytes_since_entry = 0
        self._interval_bytes = limits.interval_bytes
        self._most_entries = (limits.max_offset_entries, limits.max_time_entries)
        self._note_room()

    def add(self, position: int, size_bytes: int, last_offset: int, max_timestamp: int) -> None:
        """Take note of the next batch of the segment.

        Args:
            position: of its start.
            size_bytes: header included.
            last_offset: its last offset, inclusive.
            max_timestamp: in ms, or -1.
        """
        if max_timestamp > self.max_timestamp:
            self.max_timestamp, self._offset_of_max_timestamp = max_timestamp, last_offset
        bytes_since_entry = self._bytes_since_entry
        if bytes_since_entry > self._interval_bytes:
            if bytes_since_entry > position or self._offset_of_max_timestamp > last_offset:
                raise InvariantViolation(
                    f"{self.offsets.path}: {bytes_since_entry} bytes since an entry, at position {position}, "
                    f"and the greatest timestamp at offset {self._offset_of_max_timestamp}, after {last_offset}"
                )
            self.offsets.add(last_offset, position)
            self.times.add(self.max_timestamp, self._offset_of_max_timestamp)
            bytes_since_entry = 0
            self._room -= 1
            if self._room <= 0:
                self._note_room()
        self._bytes_since_entry = bytes_since_entry + size_bytes

    def _note_room(self) -> None:
        most_offsets, most_times = self._most_entries
        self._room = min(most_offsets - len(self.offsets), most_times - len(self.times))
        """How many entries each index takes, at least: one of times is left out where no timestamp is new."""
        self._check_invariants()
        self.is_full = self._room <= 0

    def _check_invariants(self) -> None:
        """Check the time index against the greatest timestamp so far."""
        path = self.times.path
        timestamp, offset = self.times.last_timestamp_and_offset
        greatest, its_offset = self.max_timestamp, self._offset_of_max_timestamp
        invariant(timestamp <= greatest, "{}: {} is above the greatest timestamp, {}", path, timestamp, greatest)
        invariant(offset <= its_offset, "{}: {} is above the offset of the greatest, {}", path, offset, its_offset)

    def rewind(self, position: int) -> int:
        """Go back to before the batch at a position.

        Returns:
            Where a batch starts from which on, up to ``position``, batches must be added again.
        """
        self.offsets.truncate(position)
        last_offset = self.offsets.last_offset
        if last_offset is None:
            self.times.keep_first(0)
        else:
            self.times.truncate_behind(last_offset)  # Those that came with the entries that are left.
        self._bytes_since_entry = 0
        self._note_room()
        self.max_timestamp, self._offset_of_max_timestamp = self.times.last_timestamp_and_offset
        self._check_invariants()
        last_place = self.offsets.last_entry
        return 0 if last_place is None else last_place.position

    def seal(self) -> None:
        """Add the last entry of the segment."""
        self.times.add(self.max_timestamp, self._offset_of_max_timestamp)
        self._note_room()

    def store(self) -> None:
        """Write both files, durably but for their names.

        Raises:
            OutOfSpaceError, StorageError: a file could not be written; the next start compares it.
        """
        self.offsets.store()
        self.times.store()

    def settle(self) -> tuple[tuple[str, StoredIndex], ...]:
        """Write the files anew that are not what a scan of the segment has found.

        Returns:
            The paths of those that were, and what they had.

        Raises:
            OutOfSpaceError, StorageError: as for ``store``.
        """
        found = []
        for index in (self.offsets, self.times):
            stored = index.compare()
            if stored is not StoredIndex.EQUAL:
                index.store()
                found.append((index.path, stored))
        return tuple(found)
