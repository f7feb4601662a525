# SPDX-License-Identifier: Apache-2.0
"""Finds where a segment can be divided: at the starts of batches with a matching CRC.

The offset index gives a position near the wanted one, which is used only if the batch there confirms the entry. From
there on, or without an index from the last known position, headers lead from one batch to the next.
"""

import contextlib
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from raftlog.errors import StorageError
from raftlog.records import limits
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.window import ByteSource
from raftlog.records.files.index_entries import OFFSET_INDEX
from raftlog.storage.reading.file_source import read_file
from raftlog.storage.reading.index_seek import BatchHead, read_head

if TYPE_CHECKING:
    from raftlog.tools.spark.rows.arrays import Longs

_LEAST_WINDOW_SIZE: Final = 4 * 1024
_WINDOW_SIZE: Final = 64 * 1024
"""In bytes; a search by headers begins with small reads, as the index mostly leads to a place near the wanted one."""
_LARGEST_INDEX: Final = 64 * 1024 * 1024
_LARGEST_CHECKED: Final = 16 * 1024 * 1024
"""In bytes; the CRC of a larger batch is checked only when its rows are read."""


class Boundary(NamedTuple):
    """The start of a batch: its byte position, and its base offset."""

    position: int
    offset: int


class Boundaries:
    """Finds the starts of batches in one segment.

    Args:
        source: the segment.
        base_offset: the offset that its index entries are relative to, or None if unknown.
        index_path: of its offset index, or None if there is none.
    """

    def __init__(self, source: ByteSource, base_offset: int | None, index_path: str | None) -> None:
        self._source = source
        self._base_offset = base_offset
        self._index_path = index_path
        self._window = memoryview(b"")
        self._window_position = 0
        self._window_size = _LEAST_WINDOW_SIZE

    def first_from(
        self,
        start: int,
        end: int,
        *,
        position: int | None = None,
        base_offset: int | None = None,
        last_offset: int | None = None,
    ) -> Boundary | None:
        """Return the first boundary after ``start`` whose batch meets one of the given limits; None if there is none.

        Args:
            start: the byte position of a batch.
            end: byte position where the search ends, exclusive.
            position: least byte position of the batch.
            base_offset: least base offset of the batch.
            last_offset: least last offset of the batch.
        """
        offsets = [offset for offset in (base_offset, last_offset) if offset is not None]
        head = self.head(self._jump(start, position, min(offsets, default=None)))
        while head is not None and head.next_position < end:
            here = head.next_position
            head = self.head(here)
            if head is None:
                return None
            is_reached = (
                (position is not None and here >= position)
                or (base_offset is not None and head.base_offset >= base_offset)
                or (last_offset is not None and head.last_offset >= last_offset)
            )
            if is_reached and self._is_sound(here, head):
                return Boundary(here, head.base_offset)
        return None

    def cuts(self, start: int, end: int, size_bytes: int, max_offsets: int | None) -> Iterator[Boundary]:
        """Yield the boundaries at which to divide the bytes from ``start`` to ``end``.

        Args:
            start: the byte position of a batch.
            end: byte position of the end, exclusive.
            size_bytes: approximate size of a part.
            max_offsets: the most offsets that a part with several batches spans; None for no limit.
        """
        while (head := self.head(start)) is not None:
            most = None if max_offsets is None else head.base_offset + max_offsets
            cut = self.first_from(start, end, position=start + size_bytes, last_offset=most)
            if cut is None:
                return
            yield cut
            start = cut.position

    def head(self, position: int) -> BatchHead | None:
        """Return the header at a byte position, or None if no batch of magic 2 seems to start there."""
        at = position - self._window_position
        if at < 0 or at + limits.BATCH_OVERHEAD > len(self._window):
            self._window, self._window_position, at = self._source.read_at(position, self._window_size), position, 0
            self._window_size = min(2 * self._window_size, _WINDOW_SIZE)
        return read_head(self._window[at : at + limits.BATCH_OVERHEAD], position)

    def _jump(self, start: int, position: int | None, offset: int | None) -> int:
        """Return the position of an indexed batch before the wanted boundary; ``start`` if the index has none."""
        if self._base_offset is None:
            return start
        last_offsets, positions = self._index
        count = len(positions)
        if position is not None:
            count = min(count, int(positions.searchsorted(position)))
        if offset is not None:
            count = min(count, int(last_offsets.searchsorted(offset - self._base_offset)))
        if count == 0 or positions[count - 1] <= start:
            return start
        found, last_offset = int(positions[count - 1]), self._base_offset + int(last_offsets[count - 1])
        head = self.head(found)
        is_true = head is not None and head.spans(last_offset) and self._is_sound(found, head)
        return found if is_true else start

    @functools.cached_property
    def _index(self) -> "tuple[Longs, Longs]":
        """The entries of the index, as two columns, up to the first that does not increase, which is damage or unused.

        An index is only a hint. If it cannot be read, the search follows headers from the start.
        """
        import numpy as np

        data = b""
        if self._index_path is not None:
            with contextlib.suppress(StorageError):
                data = read_file(self._index_path, _LARGEST_INDEX)
        whole = len(data) - len(data) % OFFSET_INDEX.entry_size
        entries = np.frombuffer(data[:whole], dtype=">i4").reshape(-1, 2).astype(np.int64)
        falls = np.flatnonzero((np.diff(entries, axis=0, prepend=-1) <= 0).any(axis=1))
        entries = entries[: falls[0] if len(falls) else len(entries)]
        return entries[:, 0], entries[:, 1]

    def _is_sound(self, position: int, head: BatchHead) -> bool:
        size = head.next_position - position
        if size > _LARGEST_CHECKED:
            return True
        data = self._source.read_at(position, size)
        return len(data) == size and RecordBatch(data).crc_holds
