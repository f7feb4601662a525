# SPDX-License-Identifier: Apache-2.0
"""The records of a partition's segments as rows, for the comparison with its mirror."""

from collections.abc import Iterator, Sequence
from typing import Final

import attrs
import numpy as np

from raftlog.records.batches.batch import CONTROL_FLAG
from raftlog.records.columns.columns import Chunk, RecordColumns, select_columns
from raftlog.records.columns.record_digests import record_digests
from raftlog.records.columns.record_selection import RecordSelection
from raftlog.records.columns.transactions import Transactions
from raftlog.storage.reading.file_source import open_source
from raftlog.storage.reading.index_seek import IndexSeek
from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.comparing.rows import ABORTED, UNKNOWN, Int64s, Rows

_COLUMNS: Final = ("offset", "timestamp", "key", "value", "headers")
_MOST_UNKNOWN: Final = 1 << 16
"""Of adjacent offsets without a readable record, so many are rows. No more than that can be told apart anyway."""


@attrs.frozen
class SegmentPlace:
    """A segment of a log.

    Attributes:
        path: of the file.
        base_offset: the first offset that it may hold.
    """

    path: str
    base_offset: int


class LogRows:
    """Reads the rows of one log, again and again. Its files do not change meanwhile.

    An offset that no sound batch covers has an unknown record, and so has one that its batch leaves out: a record that
    was compacted, or was cut out. Offsets of control records have none.

    Args:
        segments: by ascending offset.
        start_offset: the first offset that the log has.
        end_offset: the offset after the last one.
        transactions: of the log.

    Attributes:
        has_aborted: whether a record may be of an aborted transaction.

    Raises (by ``read``):
        StorageError: a segment cannot be read.
    """

    def __init__(
        self, segments: Sequence[SegmentPlace], start_offset: int, end_offset: int, transactions: Transactions
    ) -> None:
        self._segments = segments
        self.start_offset = start_offset
        self.end_offset = end_offset
        self._transactions = transactions
        self.has_aborted = bool(transactions.aborted)
        self._columns = (*_COLUMNS, "is_aborted") if self.has_aborted else _COLUMNS

    def read(self, start: int, end: int) -> Iterator[Rows]:
        """Yield the rows from an offset (inclusive) to another (exclusive), in order."""
        at, end = max(start, self.start_offset), min(end, self.end_offset)
        for number, segment in enumerate(self._segments):
            after = self._segments[number + 1].base_offset if number + 1 < len(self._segments) else self.end_offset
            if after <= at or segment.base_offset >= end:
                continue
            for chunk in self._chunks(segment, at, end):
                rows, at = _rows_of(chunk, at, end)
                yield rows
        if at < end:
            yield _unknown(at, end)

    def holes(self) -> list[OffsetRange]:
        """Return the offsets from the log start on that neither a record nor a control batch has, joined."""
        joined: list[OffsetRange] = []
        for rows in self.read(self.start_offset, self.end_offset):
            for offset in rows.offsets[rows.flags & UNKNOWN != 0].tolist():
                if joined and joined[-1].end == offset:
                    joined[-1] = OffsetRange(joined[-1].start, offset + 1)
                else:
                    joined.append(OffsetRange(offset, offset + 1))
        return joined

    def _chunks(self, segment: SegmentPlace, start: int, end: int) -> Iterator[Chunk]:
        selection = RecordSelection(start, end, transactions=self._transactions)
        with open_source(segment.path) as source:
            position = IndexSeek(segment.path, segment.base_offset).position_before(source, start)
            for piece in select_columns(source, self._columns, selection, start=position):
                if isinstance(piece, Chunk):
                    yield piece


def _rows_of(chunk: Chunk, start: int, end: int) -> tuple[Rows, int]:
    """Return the rows of a chunk with those of the unknown records from an offset on, and the offset after it."""
    batches = chunk.batches
    first, last = batches.to_numpy("base_offset"), batches.to_numpy("last_offset_delta")
    last = first + last
    rows = _known_rows(chunk.records) if chunk.records is not None else Rows.none()
    after = max(start, int(last[-1]) + 1)
    is_data = batches.to_numpy("attributes") & CONTROL_FLAG == 0
    covered = np.concatenate([rows.offsets, *_control_offsets(first[~is_data], last[~is_data])])
    missing = _missing(np.unique(covered), start, min(after, end))
    if len(missing):
        rows = _merged(rows, _unknown_rows(missing))
    return rows, after


def _known_rows(records: RecordColumns) -> Rows:
    offsets = records.to_numpy("offset").astype(np.int64)
    flags = np.zeros(len(offsets), np.uint8)
    if "is_aborted" in records.columns:
        flags[records.to_numpy("is_aborted")] = ABORTED
    digests = np.ascontiguousarray(record_digests(records).to_numpy().view(np.uint64).T)
    return Rows(offsets, digests, flags)


def _control_offsets(first: Int64s, last: Int64s) -> Iterator[Int64s]:
    for start, end in zip(first.tolist(), last.tolist(), strict=True):
        yield np.arange(start, min(end + 1, start + _MOST_UNKNOWN))


def _missing(covered: Int64s, start: int, end: int) -> Int64s:
    """Return the offsets in a range that are not covered; of a long gap, the first ones."""
    edges = np.concatenate([[start - 1], covered[(covered >= start) & (covered < end)], [end]])
    gaps = np.flatnonzero(np.diff(edges) > 1)
    parts = [np.arange(edges[gap] + 1, min(edges[gap + 1], edges[gap] + 1 + _MOST_UNKNOWN)) for gap in gaps.tolist()]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _unknown(start: int, end: int) -> Rows:
    return _unknown_rows(np.arange(start, min(end, start + _MOST_UNKNOWN)))


def _unknown_rows(offsets: Int64s) -> Rows:
    return Rows(offsets, np.zeros((len(offsets), 2), np.uint64), np.full(len(offsets), UNKNOWN, np.uint8))


def _merged(left: Rows, right: Rows) -> Rows:
    both = Rows.joined([left, right])
    order = np.argsort(both.offsets, kind="stable")
    return Rows(both.offsets[order], both.digests[order], both.flags[order])
