# SPDX-License-Identifier: Apache-2.0
"""Finds where to start reading a segment, by the indexes beside it.

An index is a hint: an entry is used only if the batch at its position matches. Without one, reading starts at the
beginning.
"""

import os
from collections.abc import Callable
from typing import Final

import attrs

from raftlog.errors import StorageError
from raftlog.file_paths import join_path, split_path
from raftlog.records import limits
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.iterator import ByteSource, Corruption, TornTail, is_likely_header, split_runs
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.records.files.file_names import FileKind
from raftlog.records.files.index_entries import OFFSET_INDEX, TIME_INDEX, Entry, IndexFormat, IndexPadding, PartialEntry
from raftlog.storage.reading.file_source import open_source

_MAX_OFFSET: Final = 2**63 - 1


@attrs.frozen
class BatchHead:
    """Fields of a batch's header, without a check of its CRC."""

    base_offset: int
    last_offset: int
    max_timestamp: int
    record_count: int
    next_position: int

    def spans(self, offset: int) -> bool:
        """Whether an offset is in the batch."""
        return self.base_offset <= offset <= self.last_offset


def head_at(source: ByteSource, position: int) -> BatchHead | None:
    """Read the header at a byte position, or return None if no batch of magic 2 seems to start there."""
    return None if position < 0 else read_head(source.read_at(position, limits.BATCH_OVERHEAD), position)


def read_head(head: memoryview, position: int) -> BatchHead | None:
    """Read a header from its 61 bytes and their byte position; None if they do not look like a header."""
    if len(head) < limits.BATCH_OVERHEAD or not is_likely_header(head):
        return None
    batch = RecordBatch(head)
    size = int.from_bytes(head[8:12], "big") + limits.LOG_OVERHEAD
    offsets = batch.base_offset, batch.last_offset
    return BatchHead(*offsets, batch.max_timestamp, batch.record_count, position + size)


@attrs.frozen
class SegmentTail:
    """What is at the end of a segment.

    Attributes:
        batch: the last batch whose CRC holds; None if there is none.
        damage: the byte position of the first damage, or torn batch, after it; None if there is none.
    """

    batch: RecordBatch | LegacyBatch | None
    damage: int | None = None


@attrs.frozen
class IndexSeek:
    """Finds positions in one segment.

    Attributes:
        path: of the segment; its indexes are beside it under the same name.
        base_offset: of the segment, or None if it is not known: then reading starts at the beginning.
    """

    path: str
    base_offset: int | None

    def position_before(self, source: ByteSource, offset: int) -> int:
        """Return the position of the last batch whose indexed offset is at or below an offset, or 0."""
        if self.base_offset is None:
            return 0
        wanted = offset - self.base_offset
        entry = _last_entry(
            self._sibling(FileKind.OFFSET_INDEX), OFFSET_INDEX, lambda each: each.relative_offset <= wanted
        )
        if entry is None:
            return 0
        head = head_at(source, entry.position)
        is_true = head is not None and head.spans(self.base_offset + entry.relative_offset)
        return entry.position if is_true else 0

    def end(self, source: ByteSource) -> SegmentTail:
        """Return what is at the end of the segment.

        It is read from the last indexed batch on; all of it, if that one and all after it are damaged.

        Raises:
            StorageError: the segment cannot be read.
        """
        position = self.position_before(source, _MAX_OFFSET)
        found = _end_from(source, position)
        return _end_from(source, 0) if found.batch is None and position else found

    def offset_before(self, source: ByteSource, timestamp: int) -> int:
        """Return the last indexed offset up to which every timestamp (ms) is before a given one, or 0."""
        if self.base_offset is None:
            return 0
        entry = _last_entry(self._sibling(FileKind.TIME_INDEX), TIME_INDEX, lambda each: each.timestamp < timestamp)
        if entry is None:
            return 0
        offset = self.base_offset + entry.relative_offset
        head = head_at(source, self.position_before(source, offset))
        while head is not None and head.last_offset < offset:
            head = head_at(source, head.next_position)
        is_true = head is not None and head.spans(offset) and head.max_timestamp == entry.timestamp
        return offset if is_true else 0

    def _sibling(self, kind: FileKind) -> str:
        directory, name = split_path(self.path)
        return join_path(directory, os.path.splitext(name)[0] + kind.value)  # noqa: PTH122


def _end_from(source: ByteSource, position: int) -> SegmentTail:
    last: BatchRun | LegacyBatch | None = None
    damage = None
    for piece in split_runs(source, start=position):
        if isinstance(piece, BatchRun | LegacyBatch):
            last, damage = piece, None
        elif isinstance(piece, Corruption | TornTail) and damage is None:
            damage = piece.position
    return SegmentTail(last.batch(len(last) - 1) if isinstance(last, BatchRun) else last, damage)


def _last_entry(path: str, index: IndexFormat[Entry], is_before: Callable[[Entry], bool]) -> Entry | None:
    """Return the last entry for which a condition holds, by bisection; None if there is none or reading fails."""
    found = None
    try:
        with open_source(path) as source:
            low, high = 0, source.size() // index.entry_size
            while low < high:
                middle = (low + high) // 2
                entry = next(index.scan(source.read_at(middle * index.entry_size, index.entry_size)), None)
                # Entries of zeros are padding after the last entry.
                if entry is None or isinstance(entry, IndexPadding | PartialEntry) or not is_before(entry):
                    high = middle
                else:
                    low, found = middle + 1, entry
    except StorageError:
        return None
    return found
