# SPDX-License-Identifier: Apache-2.0
"""The records of a partition's segments as rows, for the comparison with its mirror."""

import bisect
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs
import numpy as np

from raftlog.errors import DecodeError, fresh_copy
from raftlog.invariants import present
from raftlog.records.batches.batch import CONTROL_FLAG, RecordBatch, TimestampType
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.iterator import ByteSource, Corruption, TornTail, ZeroPadding, split_runs
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.records.batches.record import RecordView
from raftlog.records.columns.columns import RECORD_COLUMNS, Chunk, RecordColumns, select_columns
from raftlog.records.columns.record_digests import record_digests
from raftlog.records.columns.record_selection import RecordSelection
from raftlog.records.columns.transactions import Transactions
from raftlog.storage.reading.file_source import open_source
from raftlog.storage.reading.index_seek import IndexSeek, head_at
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.comparing.log_sums import NO_RANGES, Ranges, uncovered
from raftlog.tools.mirrors.comparing.rows import ABORTED, MARKER, UNKNOWN, DigestRows, Int64s

_COLUMNS: Final = ("offset", "timestamp", "key", "value", "headers")
_MOST_UNKNOWN: Final = 1 << 16
"""So many adjacent offsets without a readable record are rows at a time."""
_ORIGIN: Final = 3
"""So many columns say where a record is from."""


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
        offset: after the last batch; of damaged ones at the end, after those whose headers go on there.
        epoch: the leader epoch of the last sound batch, or -1.
        newest_ms: the greatest timestamp of its records, in ms since the Unix epoch; None if there is no batch.
        is_append_time: whether the broker has stamped its first records or its last ones (LogAppendTime), and not their
            producer. A topic may have changed from one to the other.
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


def chunks_of(segments: Sequence[SegmentPlace], start: int, end: int, columns: Sequence[str]) -> Iterator[Chunk]:
    """Yield the data batches that may have records from an offset (inclusive) to another (exclusive), without damage.

    Raises:
        StorageError: a segment cannot be read.
    """
    for segment in overlapping(segments, start, end):
        with open_source(segment.path) as source:
            position = IndexSeek(segment.path, segment.base_offset).position_before(source, start)
            for piece in select_columns(source, columns, RecordSelection(start, end), start=position):
                if isinstance(piece, Chunk):
                    yield piece


def damage_of(path: str, piece: Corruption | TornTail) -> Finding:
    """Return the finding about bytes of a segment that are no batch."""
    return Finding(path, piece.rule, piece.reason, piece.position, piece.size_bytes)


def find_end(segments: Sequence[SegmentPlace], start_offset: int) -> LogEnd:
    """Return the end of a log, by the headers at the end of its last segment that has some, and by the first header.

    Damaged batches after these count, if their headers go on there: their records are not gone, but unknown.

    Args:
        segments: by ascending offset.
        start_offset: the first offset that the log has.

    Raises:
        StorageError: a segment cannot be read.
    """
    end = LogEnd(max(start_offset, segments[-1].base_offset))
    for segment in reversed(segments):
        with open_source(segment.path) as source:
            found = IndexSeek(segment.path, segment.base_offset).end(source)
            last = found.batch if isinstance(found.batch, RecordBatch) else None
            sound_end = segment.base_offset if last is None else last.next_offset
            offset = sound_end if found.damage is None else _claimed_end(source, found.damage, sound_end)
        end = attrs.evolve(end, offset=max(end.offset, offset))
        if last is not None:
            is_append_time = TimestampType.LOG_APPEND_TIME in (_first_timestamp_type(segments), last.timestamp_type)
            return LogEnd(end.offset, last.partition_leader_epoch, last.max_timestamp, is_append_time)
    return end


def _claimed_end(source: ByteSource, position: int, end: int) -> int:
    """Return the end of the damaged batches from a position on whose headers go on, one after the other, at an end."""
    while (head := head_at(source, position)) is not None:
        if not head.base_offset == end <= head.last_offset == end + head.record_count - 1:
            break
        position, end = head.next_position, head.last_offset + 1
    return end


def _first_timestamp_type(segments: Sequence[SegmentPlace]) -> TimestampType | None:
    """Return that of the first sound batch of a log; None if there is none."""
    for segment in segments:
        with open_source(segment.path) as source:
            run = next((piece for piece in split_runs(source) if isinstance(piece, BatchRun)), None)
            if run is not None:
                return run.batch(0).timestamp_type
    return None


@attrs.frozen(eq=False)
class LogPiece:
    """Adjacent batches of a log, as many as are read at a time, without what is out of bounds.

    Attributes:
        rows: the records that can be read.
        control: the offsets of control batches, which have no records for consumers.
        markers: the rows of control records, if they were asked for.
        covered: the offsets from the first record or control batch to the last one.
    """

    rows: DigestRows
    control: Ranges
    markers: DigestRows = attrs.field(factory=DigestRows.none)
    covered: OffsetRange = attrs.field(default=attrs.Factory(lambda self: self._span(), takes_self=True), init=False)

    def _span(self) -> OffsetRange:
        firsts = [*self.rows.offsets[:1].tolist(), *self.control[0].tolist()]
        ends = [*(self.rows.offsets[-1:] + 1).tolist(), *self.control[1].tolist()]
        return OffsetRange(min(firsts), max(ends)) if firsts else OffsetRange(0, 0)

    @property
    def gaps(self) -> Ranges:
        """The offsets between these that have neither."""
        if not len(self.control[0]) and self.covered.offset_count == len(self.rows):
            return NO_RANGES
        starts, ends = self._known
        return uncovered((starts, ends), int(starts[0]), int(ends[-1])) if len(starts) else NO_RANGES

    @property
    def _known(self) -> Ranges:
        """All offsets, as ranges."""
        offsets = self.rows.offsets
        if not len(self.control[0]):
            return offsets, offsets + 1
        starts = np.concatenate([offsets, self.control[0]])
        ends = np.concatenate([offsets + 1, self.control[1]])
        order = np.argsort(starts, kind="stable")
        return starts[order], np.maximum.accumulate(ends[order])

    def rows_before(self, end: int) -> Iterator[DigestRows]:
        """Yield the records before an offset, and an unknown one for each offset in a gap, some at a time."""
        gaps = self.gaps
        end = min(end, self.covered.end)
        if not len(gaps[0]):
            yield _merged([self.rows.between(self.covered.start, end), self.markers.between(self.covered.start, end)])
            return
        for first in range(self.covered.start, end, _MOST_UNKNOWN):
            last = min(first + _MOST_UNKNOWN, end)
            inside = (gaps[1] > first) & (gaps[0] < last)
            marks = np.zeros(last - first + 1, np.int64)
            marks[np.maximum(gaps[0][inside], first) - first] = 1
            marks[np.minimum(gaps[1][inside], last) - first] = -1
            unknown = first + np.flatnonzero(np.cumsum(marks)[:-1])
            width = self.rows.origins.shape[1] or self.markers.origins.shape[1]
            rows = [self.rows.between(first, last), self.markers.between(first, last), _unknown_rows(unknown, width)]
            yield _merged(rows)


@attrs.define(eq=False)
class LogTransactions:
    """The transactions of a log. They are searched for when the first batch is met that may be part of one.

    Args:
        find: searches for them.

    Attributes:
        found: the transactions; None until they were searched for.
    """

    found: Transactions | None = None
    _find: Callable[[], Transactions] = attrs.field(default=Transactions, alias="find")

    @property
    def has_aborted(self) -> bool:
        """Whether aborted ones are known."""
        return self.found is not None and bool(self.found.aborted)

    def all(self) -> Transactions:
        """Return all of them.

        Raises:
            StorageError: a segment cannot be read.
        """
        if self.found is None:
            self.found = self._find()
        return self.found


Unread = Corruption | TornTail | ZeroPadding | Finding
"""What is no batch; and a finding about one whose records cannot be read."""


class LogRows:
    """Reads the rows of one log, again and again. Its files do not change meanwhile.

    An offset that no sound batch covers has an unknown record, and so has one that its batch leaves out: a record that
    was compacted, or was cut out. Offsets of control records have none, or a marker. Records whose offsets do not rise
    are left out.

    Args:
        segments: by ascending offset.
        start_offset: the first offset that the log has.
        end_offset: the offset after the last one.
        transactions: of the log.
        with_timestamps: whether digests cover timestamps.
        with_places: whether logs are compared offset by offset: then digests cover offsets, control records have rows,
            and each row has its origin.

    Attributes:
        places: by path of a segment, the offset and byte position of batches that were read, ascending.

    Raises (by all methods that read):
        StorageError: a segment cannot be read.
        MissingExtraError: a codec's package is not installed.
    """

    def __init__(
        self,
        segments: Sequence[SegmentPlace],
        start_offset: int,
        end_offset: int,
        transactions: LogTransactions,
        *,
        with_timestamps: bool = True,
        with_places: bool = False,
    ) -> None:
        self.segments, self._transactions, self._with_timestamps = segments, transactions, with_timestamps
        self.with_places = with_places
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.places: dict[str, list[tuple[int, int]]] = {}

    @property
    def has_aborted(self) -> bool:
        """Whether a record that was read, or one after it, may be of an aborted transaction."""
        return self._transactions.has_aborted

    def without_timestamps(self) -> "LogRows":
        """Return what reads the same rows with digests that do not cover timestamps."""
        log = self.segments, self.start_offset, self.end_offset, self._transactions
        return LogRows(*log, with_timestamps=False, with_places=self.with_places)

    def placed(self) -> "LogRows":
        """Return what reads the same log for a comparison offset by offset."""
        log = self.segments, self.start_offset, self.end_offset, self._transactions
        return LogRows(*log, with_timestamps=self._with_timestamps, with_places=True)

    def within(self, segment: SegmentPlace, first: int, end: int) -> "LogRows":
        """Return what reads a part of a segment, from one offset (inclusive) to another (exclusive): it is small."""
        transactions = Transactions(self._transactions.all().between(first, end))
        log = (segment,), self.start_offset, self.end_of(segment), LogTransactions(transactions)
        return LogRows(*log, with_timestamps=self._with_timestamps, with_places=self.with_places)

    def segments_here(self) -> list[SegmentPlace]:
        """Return the segments from the log start on; the last one, too, if it has nothing, or nothing that is sound."""
        return list(overlapping(self.segments, self.start_offset, self.end_offset + 1))

    def read(self, start: int, end: int) -> Iterator[DigestRows]:
        """Yield the rows from an offset (inclusive) to another (exclusive), in order."""
        at, end = max(start, self.start_offset), min(end, self.end_offset)
        for segment in overlapping(self.segments, at, end):
            position = _position(self.places.get(segment.path, ()), at)
            for piece in self.pieces(segment, at, position):
                if isinstance(piece, LogPiece) and at < end:
                    yield from self._unknown_between(at, min(piece.covered.start, end))
                    yield from piece.rows_before(end)
                    at = piece.covered.end
                if at >= end:
                    return
        yield from self._unknown_between(at, end)

    def records(self, start: int, end: int) -> Iterator[RecordView]:
        """Yield the data records from an offset (inclusive) to another (exclusive) that can be read."""
        for chunk in chunks_of(self.segments, start, end, RECORD_COLUMNS):
            for batch in range(len(chunk.batches)):
                yield from chunk.objects(batch)

    def _unknown_between(self, start: int, end: int) -> Iterator[DigestRows]:
        for first in range(start, end, _MOST_UNKNOWN):
            yield _unknown_rows(np.arange(first, min(first + _MOST_UNKNOWN, end)), _ORIGIN * self.with_places)

    def pieces(
        self, segment: SegmentPlace, start: int, position: int = 0, stop: int | None = None
    ) -> Iterator[LogPiece | Unread]:
        """Yield what a segment has, in order. Its name, and that of the next one, say which offsets it may have.

        Args:
            segment: the one to read.
            start: the first wanted offset; each piece begins after the one before it.
            position: the byte position to start at, of a batch.
            stop: the byte position to end at, exclusive; None for the end of the file.
        """
        places = self.places.setdefault(segment.path, [])
        place = OffsetRange(max(start, segment.base_offset), self.end_of(segment))
        with open_source(segment.path) as source:
            for piece in self._read(source, position, stop):
                if isinstance(piece, Corruption | TornTail | ZeroPadding):
                    yield piece
                if not isinstance(piece, Chunk):
                    continue
                run = piece.batches.run
                first = run.batch(0).base_offset
                if not places or first > places[-1][0]:
                    places.append((first, run.start))
                for _, error in piece.errors:
                    if not isinstance(error, DecodeError):
                        raise fresh_copy(error)
                    yield Finding.of_error(error, segment.path)
                found = self._piece_of(piece, place)
                if found.covered.offset_count:
                    place = OffsetRange(found.covered.end, place.end)
                    yield found

    def _read(
        self, source: ByteSource, position: int, stop: int | None
    ) -> Iterator[Chunk | LegacyBatch | TornTail | ZeroPadding | Corruption]:
        """Yield what a segment has; batches from the first one of a transaction on with what is aborted."""
        while True:
            columns = (*_COLUMNS, *["is_aborted"][: self.has_aborted], *["is_control"][: self.with_places])
            # Rows are bounded by number, which is quicker.
            selection = RecordSelection(transactions=self._transactions.found, data_only=not self.with_places)
            for piece in select_columns(source, columns, selection, start=position, stop=stop):
                if isinstance(piece, Chunk) and self._has_news(piece):
                    position = piece.batches.run.start
                    break
                yield piece
            else:
                return

    def _has_news(self, chunk: Chunk) -> bool:
        """Whether batches are the first ones that may have aborted records, and must be read again."""
        if self._transactions.found is not None or not present(chunk.records, "records").is_marked:
            return False
        return bool(self._transactions.all().aborted)

    def end_of(self, segment: SegmentPlace) -> int:
        """Return the offset at which a segment ends, exclusive: where the next one begins, or at the log's end."""
        after = bisect.bisect_right(self.segments, segment.base_offset, key=lambda each: each.base_offset)
        ends = [each.base_offset for each in self.segments[after : after + 1]]
        return min([self.end_offset, *ends])

    def _piece_of(self, chunk: Chunk, place: OffsetRange) -> LogPiece:
        rows = _known_rows(present(chunk.records, "records"), with_timestamps=self._with_timestamps)
        if self.with_places:
            rows = attrs.evolve(rows, origins=_origins(chunk)).with_offsets()
        rows = _rising(rows, place)
        is_control = chunk.batches.to_numpy("attributes") & CONTROL_FLAG != 0
        if not is_control.any():
            return LogPiece(rows, NO_RANGES)
        first = chunk.batches.to_numpy("base_offset")[is_control].astype(np.int64)
        after = first + chunk.batches.to_numpy("last_offset_delta")[is_control] + 1
        is_within = (after > place.start) & (first < place.end)
        first, after = np.maximum(first[is_within], place.start), np.minimum(after[is_within], place.end)
        return LogPiece(rows.without_markers(), (first, after), rows.markers())


def _position(places: Sequence[tuple[int, int]], offset: int) -> int:
    """Return the byte position of a batch that is not after an offset, of those that are known."""
    at = bisect.bisect_right(places, offset, key=lambda each: each[0])
    return places[at - 1][1] if at else 0


def _known_rows(records: RecordColumns, *, with_timestamps: bool) -> DigestRows:
    offsets = records.to_numpy("offset").astype(np.int64)
    flags = np.zeros(len(offsets), np.uint8)
    if "is_aborted" in records.columns:
        flags[records.to_numpy("is_aborted")] = ABORTED
    if "is_control" in records.columns:
        flags[records.to_numpy("is_control")] = MARKER
    found = record_digests(records, with_timestamps=with_timestamps)
    digests = np.ascontiguousarray(found.to_numpy().view(np.uint64).T)
    return DigestRows(offsets, digests, flags)


def _rising(rows: DigestRows, place: OffsetRange) -> DigestRows:
    """Return the rows within a range whose offsets are above those of all such rows before them."""
    offsets = rows.offsets
    is_within = len(offsets) > 0 and place.start <= offsets[0] and offsets[-1] < place.end
    if is_within and bool((offsets[1:] > offsets[:-1]).all()):
        return rows
    rows = rows.where((offsets >= place.start) & (offsets < place.end))
    before = np.maximum.accumulate(np.append(place.start - 1, rows.offsets))[:-1]
    return rows.where(rows.offsets > before)


def _origins(chunk: Chunk) -> Int64s:
    """Return the leader epoch, the producer id and the timestamp of each record."""
    records = present(chunk.records, "records")
    batches = chunk.batches.to_numpy("base_offset").searchsorted(records.to_numpy("offset"), side="right") - 1
    headers = [chunk.batches.to_numpy(name)[batches] for name in ("partition_leader_epoch", "producer_id")]
    return np.stack([*headers, records.to_numpy("timestamp")], axis=1).astype(np.int64)


def _unknown_rows(offsets: Int64s, width: int) -> DigestRows:
    flags = np.full(len(offsets), UNKNOWN, np.uint8)
    no_digests, no_origins = np.zeros((len(offsets), 2), np.uint64), np.zeros((len(offsets), width), np.int64)
    return DigestRows(offsets, no_digests, flags, no_origins)


def _merged(parts: Sequence[DigestRows]) -> DigestRows:
    parts = [each for each in parts if len(each)]
    both = DigestRows.joined(parts)
    if len(parts) < 2:
        return both
    order = np.argsort(both.offsets, kind="stable")
    return DigestRows(both.offsets[order], both.digests[order], both.flags[order], both.origins[order])
