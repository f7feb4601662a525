# SPDX-License-Identifier: Apache-2.0
"""``.index``: where in a segment some of its batches start.

Source: OffsetIndex.
"""

from raftlog.file_system import FileSystem
from raftlog.records.files.index_entries import OFFSET_INDEX, OffsetIndexEntry
from raftlog.storage.segments.index_file import IndexFile


class OffsetIndex(IndexFile[OffsetIndexEntry]):
    """Last offsets of batches, and the byte positions of their starts.

    Args:
        file_system: where the file is.
        path: of the file.
        base_offset: of the segment; offsets in entries are relative to it.
    """

    def __init__(self, file_system: FileSystem, path: str, base_offset: int) -> None:
        super().__init__(file_system, path, OFFSET_INDEX)
        self._base_offset = base_offset

    def add(self, last_offset: int, position: int) -> None:
        """Add an entry for a batch: its last offset and start position, both above those of the last entry."""
        self.append(last_offset - self._base_offset, position)

    def position_before(self, offset: int) -> int:
        """Return the nearest indexed position at or before the start of the batch that holds an offset."""
        count = self.count_up_to(offset - self._base_offset, lambda entry: entry.relative_offset)
        return self.entry(count - 1).position if count else 0

    def truncate(self, position: int) -> None:
        """Drop the entries of batches that start at or after a position."""
        self.keep_first(self.count_up_to(position - 1, lambda entry: entry.position))

    @property
    def last_offset(self) -> int | None:
        """The last offset of the last batch with an entry, or None."""
        entry = self.last_entry
        return None if entry is None else self._base_offset + entry.relative_offset
