# SPDX-License-Identifier: Apache-2.0
"""The records of a partition's segments as rows, for the comparison with its mirror."""

import bisect
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

import attrs
import numpy as np

from raftlog.errors import DecodeError, fresh_copy
from raftlog.invariants import present
from raftlog.records.batches.batch import CONTROL_FLAG, TimestampType
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.iterator import Corruption, TornTail, split_runs
from raftlog.records.columns.columns import Chunk, RecordColumns, select_columns
from raftlog.records.columns.record_digests import record_digests
from raftlog.records.columns.record_selection import RecordSelection
from raftlog.records.columns.transactions import Transactions
from raftlog.storage.reading.file_source import open_source
from raftlog.storage.reading.index_seek import IndexSeek
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.comparing.rows import ABORTED, UNKNOWN, DigestRows, Int64s

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


@attrs.frozen
class LogEnd:
    """The end of a log.

    Attributes:
        offset: after the last sound batch.
        epoch: the leader epoch of that batch, or -1.
        newest_ms: the greatest timestamp of its records, in ms since the Unix epoch; None if there is no batch.
        is_append_time: whether the broker has stamped its records (LogAppendTime), and not their producer.
    """

    offset: int
    epoch: int = -1
    newest_ms: int | None = None
    is_append_time: bool = False


def overlapping(segments: Sequence[SegmentPlace], start: int, end: int) -> Iterator[SegmentPlace]:
    """Yield the segments that may have an offset from one (inclusive) to another (exclusive), of all by offset."""
    for number, segment in enumerate(segments):
        is_before = number + 1 < len(segments) and segments[number + 1].base_offset <= start
        if not is_before and segment.base_offset < end:
            yield segment


def damage_of(path: str, piece: Corruption | TornTail) -> Finding:
    """Return the finding about bytes of a segment that are no batch."""
    return Finding(path, piece.rule, piece.reason, piece.position, piece.size_bytes)


def find_end(segments: Sequence[SegmentPlace], start_offset: int) -> LogEnd:
    """Return the end of a log, by the headers at the end of its last segment that has some.

    Args:
        segments: by ascending offset.
        start_offset: the first offset that the log has.

    Raises:
        StorageError: a segment cannot be read.
    """
    end = LogEnd(max(start_offset, segments[-1].base_offset))
    for segment in reversed(segments):
        with open_source(segment.path) as source:
            position = IndexSeek(segment.path, segment.base_offset).position_before(source, 1 << 62)
            runs = [piece for piece in split_runs(source, start=position) if isinstance(piece, BatchRun)]
        if runs:
            last = runs[-1].batch(len(runs[-1]) - 1)
            is_append_time = last.timestamp_type is TimestampType.LOG_APPEND_TIME
            offset = max(end.offset, last.next_offset)
            return LogEnd(offset, last.partition_leader_epoch, last.max_timestamp, is_append_time)
    return end


class LogRows:
    """Reads the rows of one log, again and again. Its files do not change meanwhile.

    An offset that no sound batch covers has an unknown record, and so has one that its batch leaves out: a record that
    was compacted, or was cut out. Offsets of control records have none.

    Args:
        segments: by ascending offset.
        start_offset: the first offset that the log has.
        end_offset: the offset after the last one.
        transactions: of the log.
        with_timestamps: whether digests cover timestamps.

    Attributes:
        has_aborted: whether a record may be of an aborted transaction.

    Raises (by ``read``):
        StorageError: a segment cannot be read.
        MissingExtraError: a codec's package is not installed.
    """

    def __init__(
        self,
        segments: Sequence[SegmentPlace],
        start_offset: int,
        end_offset: int,
        transactions: Transactions,
        *,
        with_timestamps: bool = True,
    ) -> None:
        self._segments, self._transactions, self._with_timestamps = segments, transactions, with_timestamps
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.has_aborted = bool(transactions.aborted)
        self._selection = RecordSelection(transactions=transactions)  # Rows are bounded by number, which is quicker.
        self._columns = (*_COLUMNS, "is_aborted") if self.has_aborted else _COLUMNS
        self._places: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self._damage: dict[tuple[str, int | None], Finding] = {}
        self._unknown: set[OffsetRange] = set()

    def without_timestamps(self) -> "LogRows":
        """Return what reads the same rows with digests that do not cover timestamps."""
        log = self._segments, self.start_offset, self.end_offset, self._transactions
        return LogRows(*log, with_timestamps=False)

    def read(self, start: int, end: int) -> Iterator[DigestRows]:
        """Yield the rows from an offset (inclusive) to another (exclusive), in order."""
        at, end = max(start, self.start_offset), min(end, self.end_offset)
        if at >= end:
            return
        for segment in overlapping(self._segments, at, end):
            for chunk in self._chunks(segment, at, end):
                rows, at = self._rows_of(chunk, at, end)
                yield rows
        if at < end:
            yield self._unknown_between(at, end)

    @property
    def damage(self) -> tuple[Finding, ...]:
        """What could not be read, of all that was read so far."""
        return tuple(self._damage.values())

    @property
    def holes(self) -> tuple[OffsetRange, ...]:
        """The offsets without a record and without a control batch, of all that was read so far, joined."""
        joined: list[OffsetRange] = []
        for each in sorted(self._unknown):
            if joined and each.start <= joined[-1].end:
                joined[-1] = OffsetRange(joined[-1].start, max(joined[-1].end, each.end))
            else:
                joined.append(each)
        return tuple(joined)

    def _chunks(self, segment: SegmentPlace, start: int, end: int) -> Iterator[Chunk]:
        places = self._places[segment.path]
        with open_source(segment.path) as source:
            for piece in select_columns(source, self._columns, self._selection, start=_position(places, start)):
                if isinstance(piece, Corruption | TornTail):
                    self._damage[segment.path, piece.position] = damage_of(segment.path, piece)
                if not isinstance(piece, Chunk):
                    continue
                run = piece.batches.run
                first = run.batch(0).base_offset
                if not places or first > places[-1][0]:
                    places.append((first, run.start))
                if first >= end:
                    return
                for _, error in piece.errors:
                    if not isinstance(error, DecodeError):
                        raise fresh_copy(error)
                    self._damage[segment.path, error.position] = Finding.of_error(error, segment.path)
                if run.batch(len(run) - 1).next_offset > start:
                    yield piece

    def _rows_of(self, chunk: Chunk, start: int, end: int) -> tuple[DigestRows, int]:
        """Return the rows of a chunk with those of unknown records from an offset on, and the offset after it."""
        records = present(chunk.records, "records")
        rows = _known_rows(records, with_timestamps=self._with_timestamps).between(start, end)
        run = chunk.batches.run
        after = min(max(start, run.batch(len(run) - 1).next_offset), end)
        if len(rows) == after - start:
            return rows, after
        first = chunk.batches.to_numpy("base_offset")
        last = first + chunk.batches.to_numpy("last_offset_delta")
        is_control = chunk.batches.to_numpy("attributes") & CONTROL_FLAG != 0
        covered = np.concatenate([rows.offsets, *_control_offsets(first[is_control], last[is_control])])
        gaps = _gaps(np.unique(covered), start, after)
        return _merged([rows, *(self._unknown_between(gap.start, gap.end) for gap in gaps)]), after

    def _unknown_between(self, start: int, end: int) -> DigestRows:
        self._unknown.add(OffsetRange(start, end))
        offsets = np.arange(start, min(end, start + _MOST_UNKNOWN))
        return DigestRows(offsets, np.zeros((len(offsets), 2), np.uint64), np.full(len(offsets), UNKNOWN, np.uint8))


def _position(places: Sequence[tuple[int, int]], offset: int) -> int:
    """Return the byte position of a batch that is not after an offset, of those that are known."""
    at = bisect.bisect_right(places, offset, key=lambda each: each[0])
    return places[at - 1][1] if at else 0


def _known_rows(records: RecordColumns, *, with_timestamps: bool) -> DigestRows:
    offsets = records.to_numpy("offset").astype(np.int64)
    flags = np.zeros(len(offsets), np.uint8)
    if "is_aborted" in records.columns:
        flags[records.to_numpy("is_aborted")] = ABORTED
    found = record_digests(records, with_timestamps=with_timestamps)
    digests = np.ascontiguousarray(found.to_numpy().view(np.uint64).T)
    return DigestRows(offsets, digests, flags)


def _control_offsets(first: Int64s, last: Int64s) -> Iterator[Int64s]:
    for start, end in zip(first.tolist(), last.tolist(), strict=True):
        yield np.arange(start, min(end + 1, start + _MOST_UNKNOWN))


def _gaps(covered: Int64s, start: int, end: int) -> Iterator[OffsetRange]:
    """Yield the ranges between two offsets that are not covered."""
    edges = np.concatenate([[start - 1], covered[(covered >= start) & (covered < end)], [end]])
    for gap in np.flatnonzero(np.diff(edges) > 1).tolist():
        yield OffsetRange(int(edges[gap]) + 1, int(edges[gap + 1]))


def _merged(parts: Sequence[DigestRows]) -> DigestRows:
    both = DigestRows.joined(parts)
    order = np.argsort(both.offsets, kind="stable")
    return DigestRows(both.offsets[order], both.digests[order], both.flags[order]) if len(parts) > 1 else both
