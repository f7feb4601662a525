# SPDX-License-Identifier: Apache-2.0
"""Compares an offset index with its segment; ``index_rules`` explains what is accepted, and what is not judged."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from raftlog.records.files.index_entries import OFFSET_INDEX
from raftlog.tools.auditing.batches.batch_table import BatchTable
from raftlog.tools.auditing.evidence import LogExtent, SurveyTask
from raftlog.tools.auditing.indexes.index_file import AuditedIndex, OffsetsSought, SegmentShape
from raftlog.tools.auditing.producers.transaction_rules import AbortMarker
from raftlog.tools.catalogue.findings import Finding

if TYPE_CHECKING:
    from raftlog.tools.auditing.batches.batch_table import Flags

INTERVAL_BYTES: Final = 4096
"""Bytes of log between two entries, by Kafka's default of ``index.interval.bytes``."""

_UNSEEN, _RIGHT, _NO_BATCH, _OTHER_OFFSET = range(4)


class OffsetIndexSurvey:
    """Compares an offset index with the batches of its segment.

    Args:
        task: the segment.
        path: path of the index.
        data: its whole contents.
        shape: shape of the segment; it must take each table of batches before this survey does.
    """

    def __init__(self, task: SurveyTask, path: str, data: bytes, shape: SegmentShape) -> None:
        import numpy as np

        self._file = AuditedIndex(path, OFFSET_INDEX, data)
        self._relative_offsets, self._positions = self._file.columns(">i4,>i4")
        self._offsets = self._relative_offsets + (task.base_offset or 0)
        self._log_bytes = task.size_bytes
        self._order = np.argsort(self._positions, kind="stable")
        self._sorted_positions = self._positions[self._order]
        self._verdicts = np.zeros(len(self._positions), dtype=np.int8)
        self._found_offsets = np.full(len(self._positions), -1, dtype=np.int64)
        self._sought = OffsetsSought(self._offsets)
        self._shape = shape

    def take(self, table: BatchTable) -> None:
        """Compare the entries whose positions are in the next batches, and find the entries whose offsets are there."""
        import numpy as np

        if len(self._positions) == 0:
            return
        self._sought.take(table)
        bounds = [int(table.positions[0]), self._shape.end_position]
        first, end = np.searchsorted(self._sorted_positions, bounds).tolist()
        numbers = self._order[first:end]
        rows = np.searchsorted(table.positions, self._positions[numbers], side="right") - 1
        found = table.rows(rows)
        is_start = found.positions == self._positions[numbers]
        is_right = found.last_offsets == self._offsets[numbers]
        self._found_offsets[numbers] = found.last_offsets
        self._verdicts[numbers] = np.where(is_start, np.where(is_right, _RIGHT, _OTHER_OFFSET), _NO_BATCH)

    def end(self, extent: LogExtent | None, aborted: Sequence[AbortMarker]) -> Iterator[Finding]:
        """Yield the findings about the index, after all batches were taken."""
        import numpy as np

        negative = (self._relative_offsets < 0) | (self._positions < 0)
        judged = ~negative & ~self._are_explained()
        for_appends = judged & self._are_of_appends()
        wrong = judged & (self._verdicts > _RIGHT) & ~for_appends
        beyond = ~negative & self._are_beyond()
        yield from self._file.byte_findings()
        for number in np.flatnonzero(wrong).tolist():
            yield self._wrong_entry(number)
        yield from self._beyond(beyond)
        yield from self._disorder(negative, wrong | beyond)
        if for_appends.any():
            reason = f"{int(for_appends.sum())} entries are for several batches that were appended together"
            yield self._file.finding("index-append", reason, int(for_appends.argmax()))
        yield from self._sparseness()

    def _are_of_appends(self) -> "Flags":
        """Return which entries are for an append of several batches: they name the last offset of a later batch.

        That batch must lie between the batches of the entries before and after.
        """
        import numpy as np

        sought = self._sought.positions
        nexts = np.concatenate((self._positions[1:], [np.iinfo(np.int64).max]))
        befores = np.concatenate(([0], sought[:-1]))  # A segment's first batch has no entry.
        is_between = (befores < self._positions) & (self._positions <= sought) & (sought < nexts)
        flags: Flags = (self._verdicts == _OTHER_OFFSET) & is_between & self._sought.are_last
        return flags

    def _are_explained(self) -> "Flags":
        """Return which entries are wrong only because batches before them were lost, doubled or put out of order."""
        import numpy as np

        explained = self._shape.are_beside_step_back(self._positions)
        if self._shape.first_break is None:
            return explained
        known = (self._verdicts != _UNSEEN) & (self._sought.positions >= 0)
        in_place = np.flatnonzero(known & (self._sought.positions == self._positions))
        off_from = int(in_place[-1]) + 1 if len(in_place) else 0
        after = np.arange(len(self._positions)) >= off_from
        explained |= after & (self._positions >= self._shape.first_break - self._shape.largest_batch_bytes)
        return explained

    def _are_beyond(self) -> "Flags":
        """Return which entries point past the log's end, except those whose batches moved when others were lost."""
        flags: Flags = self._positions >= max(self._shape.end_position, self._log_bytes)
        return flags if self._shape.first_break is None else flags & (self._sought.positions < 0)

    def _wrong_entry(self, number: int) -> Finding:
        offset, position = int(self._offsets[number]), int(self._positions[number])
        found = "no batch starts"
        if self._verdicts[number] == _OTHER_OFFSET:
            found = f"a batch ends at offset {self._found_offsets[number]}"
        reason = f"the entry for offset {offset} names position {position} of the log, where {found}"
        return self._file.finding("index-entry", reason, number, offset)

    def _beyond(self, beyond: "Flags") -> Iterator[Finding]:
        """Yield the entries that point past the end of the log; those at the end of the index share one finding."""
        import numpy as np

        within = np.flatnonzero(~beyond)
        last_within = int(within[-1]) if len(within) else -1
        end = max(self._shape.end_position, self._log_bytes)
        for number in np.flatnonzero(beyond).tolist():
            offset, position = int(self._offsets[number]), int(self._positions[number])
            reason = f"the entry for offset {offset} names position {position} of a log of {end} bytes"
            if number < last_within:
                yield self._file.finding("index-beyond", reason, number, offset)
            elif self._log_bytes <= self._shape.end_position:  # Otherwise the finding about the log's tail covers it.
                more = len(beyond) - number - 1
                reason += f", and {more} entries after it also point past the end" if more else ""
                yield self._file.finding("index-beyond", reason, number, offset)
                return
            else:
                return

    def _disorder(self, negative: "Flags", reported: "Flags") -> Iterator[Finding]:
        """Yield the entries that are out of order, unless they were already reported."""
        import numpy as np

        offsets, positions = self._relative_offsets, self._positions
        for number in np.flatnonzero(negative).tolist():
            reason = f"relative offset {offsets[number]} or position {positions[number]} is negative"
            yield self._file.finding("index-order", reason, number)
        reported = reported | negative
        back = (offsets[1:] <= offsets[:-1]) | (positions[1:] <= positions[:-1])
        for number in np.flatnonzero(back & ~reported[1:] & ~reported[:-1]).tolist():
            one, other = (f"offset {self._offsets[at]} at {positions[at]}" for at in (number + 1, number))
            yield self._file.finding("index-order", f"{one} follows {other}", number + 1)

    def _sparseness(self) -> Iterator[Finding]:
        """Yield one finding if many batches have no entry."""
        import numpy as np

        end = self._shape.end_position
        inside = np.sort(self._positions[(self._positions >= 0) & (self._positions < end)])
        gaps = np.diff(np.concatenate(([0], inside, [end])))
        widest = int(gaps.argmax())
        if gaps[widest] > max(16 * INTERVAL_BYTES, 4 * self._shape.largest_batch_bytes):
            start = int(inside[widest - 1]) if widest else 0
            reason = f"no entry for the {gaps[widest]} bytes of the log from position {start} on"
            yield Finding(self._file.path, "index-sparse", reason)
