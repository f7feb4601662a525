# SPDX-License-Identifier: Apache-2.0
"""The two indexes of a segment, and when a batch gets an entry in them.

A batch gets an entry if more than ``interval_bytes`` were appended from the start of the batch with the last entry to
its own start. So the first batch of a segment never gets one. When the segment ends, the time index gets a last entry
with the greatest timestamp.

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
"""The greatest relative offset that an entry can hold, and therefore that a segment may have."""
MAX_INDEXED_POSITION: Final = (1 << 31) - 1


@attrs.frozen
class IndexLimits:
    """How dense and how large indexes are.

    Attributes:
        interval_bytes: minimum distance of two entries (``index.interval.bytes``).
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
        """How many entries the time index takes; one more is reserved for the last entry of a segment."""
        return self.max_size_bytes // 12 - 1


class SegmentIndexes:
    """The indexes of one segment.

    Attributes:
        offsets: the offset index.
        times: the time index.
        max_offset: the last offset that entries can name, inclusive.
        max_timestamp: the greatest so far, in ms; -1 if there is none.
        is_full: whether the segment must end, because an index takes no more entries.
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
        """Add the next batch of the segment; it gets an entry if it is far enough from the last one with an entry.

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
        """How many entries each index still takes, at least: the time index skips entries without a new timestamp."""
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
        """Drop the batch at a position and all after it.

        Returns:
            The start of a batch: the batches from there to ``position`` must be added again.
        """
        self.offsets.truncate(position)
        last_offset = self.offsets.last_offset
        if last_offset is None:
            self.times.keep_first(0)
        else:
            self.times.truncate_after(last_offset)  # Keep the entries of the same batches.
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
        """Write both files; durable except for their names.

        Raises:
            OutOfSpaceError, StorageError: a file could not be written; the next open compares it.
        """
        self.offsets.store()
        self.times.store()

    def drop_files(self) -> None:
        """Remove files that hold entries, because the segment is about to be cut.

        Raises:
            StorageError: a file may be there or not.
        """
        self.offsets.drop_file()
        self.times.drop_file()

    def settle(self) -> tuple[tuple[str, StoredIndex], ...]:
        """Rewrite the files that differ from what a scan of the segment has found.

        Returns:
            The paths of the rewritten files, and how they differed.

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
