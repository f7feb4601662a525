# SPDX-License-Identifier: Apache-2.0
"""Compares a time index with its segment; ``index_rules`` explains what is accepted, and what is not judged.

Whether an earlier batch has a greater timestamp than an entry is not checked: it follows if entries increase, and each
matches its batch.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from raftlog.errors import DecodeError, MissingExtraError
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.files.index_entries import TIME_INDEX
from raftlog.tools.auditing.batches.batch_table import BatchTable
from raftlog.tools.auditing.evidence import LogExtent, SurveyTask
from raftlog.tools.auditing.indexes.index_file import AuditedIndex, OffsetsSought, SegmentShape
from raftlog.tools.auditing.producers.transaction_rules import AbortMarker
from raftlog.tools.catalogue.findings import Finding

if TYPE_CHECKING:
    from raftlog.tools.auditing.batches.batch_table import Flags, Longs

_MOST_BATCHES_READ: Final = 64
"""At most so many batches are decompressed to find out why an entry differs from the batch's header."""


class TimeIndexSurvey:
    """Compares a time index with the batches of its segment.

    Args:
        task: the segment.
        path: path of the index.
        data: its whole contents.
        shape: shape of the segment; it must take each table of batches before this survey does.
    """

    def __init__(self, task: SurveyTask, path: str, data: bytes, shape: SegmentShape) -> None:
        import numpy as np

        self._file = AuditedIndex(path, TIME_INDEX, data)
        self._timestamps, self._relative_offsets = self._file.columns(">i8,>i4")
        self._offsets = self._relative_offsets + (task.base_offset or 0)
        self._is_raft = task.is_raft
        self._log_bytes = task.size_bytes
        self._sought = OffsetsSought(self._offsets)
        self._explained = np.zeros(len(self._offsets), dtype=bool)
        self._of_records = np.zeros(len(self._offsets), dtype=bool)
        self._batches_read = 0
        self._shape = shape

    def take(self, table: BatchTable) -> None:
        """Find the entries whose offsets are in the next batches."""
        import numpy as np

        if len(self._offsets) == 0:
            return
        numbers, rows = self._sought.take(table)
        differ = np.flatnonzero(self._are_wrong(numbers))
        for at in differ[: _MOST_BATCHES_READ - self._batches_read].tolist():
            self._look_at_records(int(numbers[at]), table.run.batch(int(rows[at])))
        self._batches_read = min(self._batches_read + len(differ), _MOST_BATCHES_READ)

    def _are_wrong(self, numbers: "Longs") -> "Flags":
        """Return, for entries by their numbers, whether they differ from the header of the batch with their offset."""
        sought = self._sought
        is_other = ~sought.are_last[numbers] | (sought.max_timestamps[numbers] != self._timestamps[numbers])
        flags: Flags = is_other & (sought.positions[numbers] >= 0)
        return flags

    def _look_at_records(self, number: int, batch: RecordBatch) -> None:
        """Find out whether the batch's header is the fault, or the entry names a record inside the batch."""
        try:
            timestamps = {record.offset: record.timestamp for record in batch.records(check_crc=False)}
        except (DecodeError, MissingExtraError):
            self._explained[number] = True  # The survey of batches reports the fault of this one.
            return
        timestamp, offset = int(self._timestamps[number]), int(self._offsets[number])
        greatest = max(timestamps.values(), default=None)
        if timestamp != greatest:
            return
        if self._sought.are_last[number]:
            self._explained[number] = True  # The rule timestamp-max reports that the batch's header is wrong.
        elif not self._is_raft and offset == min(at for at, of in timestamps.items() if of == greatest):
            self._of_records[number] = True

    def end(self, extent: LogExtent | None, aborted: Sequence[AbortMarker]) -> Iterator[Finding]:
        """Yield the findings about the index, after all batches were taken."""
        import numpy as np

        negative = self._relative_offsets < 0
        differ = self._are_wrong(np.arange(len(self._offsets))) & ~negative
        wrong = differ & ~self._explained & ~self._of_records & ~self._are_shifted(differ)
        wrong &= ~self._shape.are_beside_step_back(self._sought.positions)  # Two batches may claim the offset.
        beyond = self._offsets >= (extent.end_offset if extent else 0)
        beyond &= ~negative & (self._sought.positions < 0)
        if self._is_raft and self._shape.step_backs:
            beyond[:] = False  # After a step back the log's offsets are lower than those in the index.
        yield from self._file.byte_findings()
        for number in np.flatnonzero(wrong).tolist():
            yield self._wrong_entry(number)
        yield from self._beyond(beyond, extent)
        yield from self._disorder(negative, wrong | beyond)
        if self._of_records.any():
            reason = f"{int(self._of_records.sum())} entries name a record inside a batch, not the batch's last"
            yield self._file.finding("index-append", reason, int(self._of_records.argmax()))

    def _are_shifted(self, differ: "Flags") -> "Flags":
        """Return which entries are wrong only because offsets before them are not consecutive; raft logs only.

        After the first break, an offset may belong to another batch than before. The survey of the log reports that.
        """
        import numpy as np

        if self._shape.first_break is None or not self._is_raft:
            return np.zeros(len(differ), dtype=bool)
        in_place = np.flatnonzero(~differ & (self._sought.positions >= self._shape.first_break))
        after = np.arange(len(differ)) > (int(in_place[-1]) if len(in_place) else -1)
        flags: Flags = after & (self._sought.positions >= self._shape.first_break)
        return flags

    def _wrong_entry(self, number: int) -> Finding:
        offset, timestamp = int(self._offsets[number]), int(self._timestamps[number])
        if not self._sought.are_last[number]:
            reason = f"the entry for offset {offset}, timestamp {timestamp}, at which no batch ends"
            return self._file.finding("index-entry", reason, number, offset)
        found = int(self._sought.max_timestamps[number])
        reason = f"the entry for offset {offset} has timestamp {timestamp}, the batch has {found}"
        return self._file.finding("index-timestamp", reason, number, offset)

    def _beyond(self, beyond: "Flags", extent: LogExtent | None) -> Iterator[Finding]:
        """Yield the entries for offsets past the log's end; those at the end of the index share one finding."""
        import numpy as np

        within = np.flatnonzero(~beyond)
        last_within = int(within[-1]) if len(within) else -1
        for number in np.flatnonzero(beyond).tolist():
            is_reported = self._log_bytes > self._shape.end_position or (self._is_raft and self._shape.ends_with_break)
            if number > last_within and is_reported:
                return  # The finding about the log's tail, or about its last batch's offset, covers it.
            offset = int(self._offsets[number])
            end = f"a log that ends at offset {extent.end_offset}" if extent else "a log without batches"
            reason = f"an entry for offset {offset} in {end}"
            if number > last_within:
                more = len(beyond) - number - 1
                reason += f", and {more} entries after it are also past the end" if more else ""
            yield self._file.finding("index-beyond", reason, number, offset)
            if number > last_within:
                return

    def _disorder(self, negative: "Flags", reported: "Flags") -> Iterator[Finding]:
        """Yield the entries that are out of order, unless they were already reported."""
        import numpy as np

        offsets, timestamps = self._relative_offsets, self._timestamps
        for number in np.flatnonzero(negative).tolist():
            reason = f"relative offset {offsets[number]} is negative"
            yield self._file.finding("time-index-order", reason, number)
        reported = reported | negative
        back = (offsets[1:] < offsets[:-1]) | (timestamps[1:] <= timestamps[:-1])
        for number in np.flatnonzero(back & ~reported[1:] & ~reported[:-1]).tolist():
            one, other = (f"timestamp {timestamps[at]} of offset {self._offsets[at]}" for at in (number + 1, number))
            yield self._file.finding("time-index-order", f"{one} follows {other}", number + 1)
