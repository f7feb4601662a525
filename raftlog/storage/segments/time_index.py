# SPDX-License-Identifier: Apache-2.0
"""``.timeindex``: up to which offset of a segment no timestamp is above a given one.

Source: TimeIndex.
"""

from raftlog.file_system import FileSystem
from raftlog.invariants import invariant
from raftlog.records.files.index_entries import TIME_INDEX, TimeIndexEntry
from raftlog.storage.segments.index_file import IndexFile


class TimeIndex(IndexFile[TimeIndexEntry]):
    """Greatest timestamps so far, in ms, and the last offsets of the batches that have them.

    Args:
        file_system: where the file is.
        path: of the file.
        base_offset: of the segment; offsets in entries are relative to it.
    """

    def __init__(self, file_system: FileSystem, path: str, base_offset: int) -> None:
        super().__init__(file_system, path, TIME_INDEX)
        self._base_offset = base_offset
        self._last_timestamp = -1

    def add(self, timestamp: int, last_offset: int) -> None:
        """Add an entry for the greatest timestamp so far, unless the last entry has it already."""
        if timestamp > self._last_timestamp:
            self.append(timestamp, last_offset - self._base_offset)
            self._last_timestamp = timestamp

    def keep_first(self, count: int) -> None:
        """Drop all entries but the first ``count``."""
        super().keep_first(count)
        self._last_timestamp, _ = self.last_timestamp_and_offset
        self._check_invariants()

    def _check_invariants(self) -> None:
        """Check that the cached greatest timestamp is that of the last entry, in the segment."""
        last_timestamp, offset = self.last_timestamp_and_offset
        kept = self._last_timestamp
        invariant(last_timestamp == kept, "{}: last entry {}, remembered {}", self.path, last_timestamp, kept)
        invariant(offset >= self._base_offset, "{}: offset {}, base offset {}", self.path, offset, self._base_offset)

    @property
    def last_timestamp_and_offset(self) -> tuple[int, int]:
        """Timestamp and offset of the last entry; -1 and the base offset if there is none."""
        last = self.last_entry
        return (-1, self._base_offset) if last is None else (last.timestamp, self._base_offset + last.relative_offset)

    def truncate_after(self, last_offset: int) -> None:
        """Drop the entries above an offset."""
        self.keep_first(self.count_up_to(last_offset - self._base_offset, lambda entry: entry.relative_offset))
