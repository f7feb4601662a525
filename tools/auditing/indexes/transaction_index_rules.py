# SPDX-License-Identifier: Apache-2.0
"""Compares a transaction index with its segment in both directions: entry to ABORT marker, and marker to entry.

A marker needs no entry if its transaction has no records in this segment. Such a marker ended nothing, or a transaction
of an earlier segment (the judgement of the partition compares that), or compaction removed the records.

A last stable offset is where the earliest transaction of another producer began that is open at the marker. If none is
open, it is the offset after the marker or, on a follower that appended many batches at once, where the next transaction
of another producer begins. That transaction may be gone: a follower truncates its log when the leader changes, and a
crash takes the end of the log; the entry stays.

Source: TransactionIndex, ProducerStateManager#lastStableOffset, CleanedTransactionMetadata.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from raftlog.records.files.file_names import FileKind
from raftlog.records.files.index_entries import MAX_RELATIVE_OFFSET, TRANSACTION_INDEX
from raftlog.tools.auditing.batches.batch_table import BatchTable
from raftlog.tools.auditing.evidence import LogExtent, StableOffset, SurveyTask
from raftlog.tools.auditing.indexes.index_file import AuditedIndex, OffsetsSought, SegmentShape
from raftlog.tools.auditing.producers.producer_history import is_whole
from raftlog.tools.auditing.producers.transaction_rules import UNKNOWN, AbortMarker
from raftlog.tools.catalogue.findings import Finding

_ENOUGH_PRODUCERS: Final = 2


class TransactionIndexSurvey:
    """Compares a transaction index with the batches of its segment.

    Args:
        task: the segment.
        path: path of the index, or of the segment if there is no index.
        data: the index's whole contents.
        shape: shape of the segment; it must take each table of batches before this survey does.

    Attributes:
        stable_offsets: last stable offsets that other segments decide: those before the segment, those past its end,
            and the first of the others, of two producers. (A transaction of an earlier segment that is open at a
            marker is open at the first ones, too, and can be of the producer of one of them only.)
    """

    def __init__(self, task: SurveyTask, path: str, data: bytes, shape: SegmentShape) -> None:
        self._file = AuditedIndex(path, TRANSACTION_INDEX, data, "tail-zero")
        fields = self._file.columns(">i2,>i8,>i8,>i8,>i8")
        self._versions, self._producers, self._firsts, self._lasts, self._stable_offsets = fields
        self._base_offset = task.base_offset or 0
        self._log_bytes = task.size_bytes
        self._sought = OffsetsSought(self._lasts)
        self._sought_stable = OffsetsSought(self._stable_offsets)
        self._reported = self._versions != 0
        self._shape = shape
        self.stable_offsets: list[StableOffset] = []
        self._producers_without_earlier: set[int] = set()
        self._was_removed = not {FileKind.OFFSET_INDEX, FileKind.TRANSACTION_INDEX} & task.indexes.keys()

    @property
    def first_offsets(self) -> dict[int, int]:
        """First offsets of aborted transactions by the offset of their marker; without entries found to be wrong."""
        sound = ~self._reported
        return dict(zip(self._lasts[sound].tolist(), self._firsts[sound].tolist(), strict=True))

    def take(self, table: BatchTable) -> None:
        """Find the entries whose markers are in the next batches."""
        if len(self._lasts):
            self._sought.take(table)
            self._sought_stable.take(table)

    def end(self, extent: LogExtent | None, aborted: Sequence[AbortMarker]) -> Iterator[Finding]:
        """Yield the findings about the index, after all batches were taken."""
        import numpy as np

        yield from self._file.byte_findings()
        for number in np.flatnonzero(self._reported).tolist():
            reason = f"unknown version {self._versions[number]} of an aborted transaction"
            yield self._file.finding("file-format", reason, number)
        markers = {marker.last_offset: marker for marker in aborted}
        own = [markers.pop(last, None) for last in self._lasts.tolist()]
        by_start = {(marker.producer_id, marker.first_offset): marker for marker in markers.values()}
        beyond = []
        for number, marker in enumerate(own):
            # An entry without a marker and a marker without an entry may belong together: one fault, not two.
            meant = by_start.get((int(self._producers[number]), int(self._firsts[number]))) if marker is None else None
            markers.pop(UNKNOWN if meant is None else meant.last_offset, None)
            if marker is None and meant is None and self._is_beyond(number, extent):
                beyond.append(number)
                continue
            wrong = self._wrong_entry(number, marker, extent, has_meaning=meant is not None)
            if wrong is not None:
                yield from self._report(number, wrong)
        yield from self._beyond(beyond)
        if len(self._file.data) % self._file.layout.entry_size == 0:  # Otherwise the last entry is cut off.
            yield from self._missing(markers.values())
        yield from self._disorder()

    def _report(self, number: int, reason: str) -> Iterator[Finding]:
        """Yield a finding about an entry, unless that entry was already reported."""
        if not self._reported[number]:
            self._reported[number] = True
            yield self._file.finding("transaction-index", reason, number, int(self._lasts[number]))

    def _is_beyond(self, number: int, extent: LogExtent | None) -> bool:
        return bool(self._lasts[number] >= (extent.end_offset if extent else self._base_offset))

    def _wrong_entry(
        self, number: int, marker: AbortMarker | None, extent: LogExtent | None, *, has_meaning: bool
    ) -> str | None:
        """Return the reason why an entry is wrong; None if it is right or cannot be judged.

        Args:
            number: index of the entry.
            marker: the ABORT marker at its last offset, or None.
            extent: extent of the segment's batches, or None.
            has_meaning: whether a marker without an entry has the same producer and first offset.
        """
        producer_id, last = int(self._producers[number]), int(self._lasts[number])
        if marker is None:
            is_in_hole = self._sought.positions[number] < 0 and last >= self._base_offset
            is_explained = is_in_hole or bool(self._shape.step_backs)
            return None if is_explained and not has_meaning else _without_marker(producer_id, last)
        if marker.producer_id != producer_id:
            return f"an entry of producer {producer_id}, but offset {last} aborts one of {marker.producer_id}"
        if (negative := min(int(self._firsts[number]), int(self._stable_offsets[number]))) < 0:
            return f"offset {negative} in the entry for the marker at {last}"
        if extent is None or not is_whole(extent):
            return None
        return self._wrong_first(int(self._firsts[number]), marker) or self._wrong_stable_offset(number, marker, extent)

    def _beyond(self, numbers: Sequence[int]) -> Iterator[Finding]:
        """Yield the entries past the log's end; those at the end of the index share one finding.

        If the log has a torn tail, the finding about it covers the entries at the end.
        """
        at_end = [number for index, number in enumerate(numbers) if len(self._lasts) - number == len(numbers) - index]
        for number in numbers[: len(numbers) - len(at_end)]:
            yield from self._report(number, _without_marker(int(self._producers[number]), int(self._lasts[number])))
        if at_end and self._log_bytes <= self._shape.end_position:
            first = int(self._lasts[at_end[0]])
            reason = f"{len(at_end)} entries from offset {first} on, past the log's end"
            yield self._file.finding("index-beyond", reason, at_end[0], first)

    def _wrong_first(self, first: int, marker: AbortMarker) -> str | None:
        begins_earlier = first < self._base_offset and not marker.is_beginning_here
        if first == marker.first_offset or begins_earlier:
            return None
        log = f"it begins at {marker.first_offset}" if marker.first_offset != UNKNOWN else "it has no records"
        return f"a transaction of producer {marker.producer_id} begins at offset {first}, but in the log {log}"

    def _wrong_stable_offset(self, number: int, marker: AbortMarker, extent: LogExtent) -> str | None:
        found, expected = int(self._stable_offsets[number]), marker.last_stable_offset
        marker_epoch = int(self._sought.epochs[number])
        is_none_open = expected > marker.last_offset
        is_past_end = is_none_open and extent.end_offset <= found <= self._base_offset + MAX_RELATIVE_OFFSET
        was_truncated = is_none_open and self._sought_stable.epochs[number] > marker_epoch
        begins_next = is_none_open and found == marker.next_first_offset
        is_earlier = found < self._base_offset  # It is of a transaction that began in an earlier segment.
        if not (found == expected or begins_next or was_truncated or is_past_end or is_earlier):
            return f"last stable offset {found} at the marker at {marker.last_offset}, where the log has {expected}"
        if not self._reported[number]:
            self._leave_to_others(StableOffset(found, marker.last_offset, marker_epoch, marker.producer_id), extent)
        return None

    def _leave_to_others(self, entry: StableOffset, extent: LogExtent) -> None:
        is_after_marker = entry.offset == entry.marker_offset + 1
        if is_after_marker or self._base_offset <= entry.offset < extent.end_offset:
            producers = self._producers_without_earlier
            if len(producers) == _ENOUGH_PRODUCERS or entry.producer_id in producers:
                return
            producers.add(entry.producer_id)
        elif entry.offset >= extent.end_offset and self._log_bytes > self._shape.end_position:
            return  # The finding about a torn tail covers it.
        self.stable_offsets.append(entry)

    def _missing(self, markers: Iterable[AbortMarker]) -> Iterator[Finding]:
        unlisted = [marker for marker in markers if marker.first_offset != UNKNOWN and marker.is_read]
        if self._was_removed and unlisted:
            reason = f"it has no .txnindex for {len(unlisted)} aborted transactions, and no .index: Kafka rebuilds both"
            yield Finding(self._file.path, "index-missing", reason)
        else:
            for marker in unlisted:
                producer = f"producer {marker.producer_id} from offset {marker.first_offset} on"
                reason = f"no entry for the transaction of {producer}, which offset {marker.last_offset} aborts"
                yield Finding(self._file.path, "transaction-index", reason, offset=marker.last_offset)

    def _disorder(self) -> Iterator[Finding]:
        import numpy as np

        lasts, reported = self._lasts, self._reported
        back = lasts[1:] <= lasts[:-1]
        for number in np.flatnonzero(back & ~reported[1:] & ~reported[:-1]).tolist():
            reason = f"last offset {lasts[number + 1]} follows {lasts[number]}"
            yield self._file.finding("index-order", reason, number + 1)


def _without_marker(producer_id: int, last_offset: int) -> str:
    return f"an entry of producer {producer_id} for offset {last_offset}, which has no ABORT marker"
