# SPDX-License-Identifier: Apache-2.0
"""Checks the order of batches in a segment: their offsets, their epochs, and gaps between them.

Most chunks of a log are entirely in order, which a few comparisons of whole columns prove. Batches are examined one by
one only if a chunk is not in order. A chunk's last batch is always examined, because only the next chunk can prove it.

Source: LogValidator, LeaderEpochFileCache, BatchAccumulator.
"""

from collections.abc import Set
from typing import Final

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.tools.auditing.batches.batch_table import (
    COUNTS_DIFFER,
    EPOCHS_GO_BACK,
    OFFSETS_CANNOT_BE,
    OFFSETS_GO_BACK,
    OFFSETS_HAVE_GAPS,
    BatchTable,
)
from raftlog.tools.auditing.batches.epoch_order import EpochOrder
from raftlog.tools.auditing.batches.offset_rules import BatchStep, OffsetRules
from raftlog.tools.auditing.batches.sequence_outliers import OutlierSearch
from raftlog.tools.auditing.evidence import EpochSeen, OffsetHoles, SurveyTask
from raftlog.tools.auditing.finding_limit import FindingLimit
from raftlog.tools.catalogue.findings import Finding

_DISORDER: Final = OFFSETS_CANNOT_BE | OFFSETS_GO_BACK | EPOCHS_GO_BACK
_RAFT_DISORDER: Final = _DISORDER | OFFSETS_HAVE_GAPS | COUNTS_DIFFER
"""The flags of a table whose batches must be examined one by one."""


class BatchOrder:
    """Checks the offsets and epochs of one segment.

    Args:
        task: the segment.
        limit: receives the findings.
        openings: byte positions of the batches that start with a LeaderChange. The caller adds to it, and adds a
            batch's position before it passes the batch to ``take``.
    """

    def __init__(self, task: SurveyTask, limit: FindingLimit, openings: Set[int]) -> None:
        self._limit = limit
        self._openings = openings
        self._is_raft = task.is_raft
        self._end_offset = 1 << 63 if task.next_base_offset is None else task.next_base_offset
        self._disorder = _RAFT_DISORDER if task.is_raft else _DISORDER
        self._offset_search: OutlierSearch[BatchStep] = OutlierSearch(task.base_offset)
        self._offsets = OffsetRules(task, limit)
        self._epochs = EpochOrder(limit, openings, is_raft=task.is_raft)
        self._damage: tuple[Finding, ...] = ()
        self._follows_fault = False

    @property
    def next_offset(self) -> int:
        """The least offset at which the next batch may start, as far as is known; 0 if unknown."""
        return self._offset_search.end or 0

    def take(self, table: BatchTable) -> None:
        """Check the next batches of the segment."""
        rest = table.run.part(len(table) - 1, len(table)) if self._skip_in_order(table) else table.run
        for batch in rest.batches():
            self._take_batch(batch)

    def take_legacy(self, batch: LegacyBatch, first_offset: int) -> None:
        """Check the next message of magic 0 or 1, which has no epoch.

        Args:
            batch: the message.
            first_offset: the least offset of the messages inside it.
        """
        if not 0 <= first_offset <= batch.last_offset:
            self._follows_fault = True
            return
        end = batch.last_offset + 1
        self._take_step(self._step(batch.position, first_offset, end, end, -1, batch.max_timestamp))

    def note_damage(self, finding: Finding) -> None:
        """Take a finding about bytes that are not a batch; the next batch determines which offsets are lost there."""
        if self._offsets.has_room(len(self._damage)):
            self._damage = (*self._damage, finding)
        else:
            self._limit.add(finding)

    def finish(self) -> None:
        """Report the remaining findings; call after the last batch."""
        for verdict in self._offset_search.finish():
            self._settle(verdict.step, verdict.is_in_sequence)
        self._epochs.finish()
        if self._follows_fault:
            self._offsets.note_misplaced()
        self._offsets.finish(self._damage)

    @property
    def span(self) -> tuple[int, int] | None:
        """First offset (inclusive) and end offset (exclusive) of the batches in sequence; None if there are none."""
        return self._offsets.span

    @property
    def holes(self) -> OffsetHoles | None:
        """Offsets that are missing without damage; None if none is missing, and for raft logs."""
        return self._offsets.holes

    @property
    def starts_too_low(self) -> bool:
        """Whether a first batch was reported to start below the offset in the segment's name."""
        return self._offsets.starts_too_low

    @property
    def stray_offsets(self) -> int:
        """Number of offsets in batches that are out of sequence."""
        return self._offsets.stray_offsets

    @property
    def misplaced_from(self) -> int | None:
        """The first offset in whose place a batch has another one; None if there is none."""
        return self._offsets.misplaced_from

    @property
    def epochs(self) -> list[EpochSeen]:
        """The epochs of batches that are in sequence."""
        return self._epochs.seen

    def epoch_at(self, position: int, epoch: int) -> int:
        """Return a control batch's epoch: ``epoch``, its own, unless the surrounding batches show another."""
        return self._epochs.repaired.get(position, epoch)

    def _skip_in_order(self, table: BatchTable) -> bool:
        """Take all batches except the last at once if all are in order, and return whether they were."""
        if len(table) == 1 or self._damage or self._follows_fault or table.disorder & self._disorder:
            return False
        first, last = table.run.batch(0), table.run.batch(len(table) - 2)
        if table.least_epoch < 0 or not self._continues_from(first, table.run.batch(len(table) - 1)):
            return False
        for verdict in self._offset_search.flush():
            self._settle(verdict.step, verdict.is_in_sequence)
        if not self._epochs.continues_at(first.partition_leader_epoch):
            return False
        self._offsets.skip(table, first, last)
        self._epochs.skip(table, first, last)
        self._offset_search.skip_to(last.next_offset)
        return True

    def _continues_from(self, first: RecordBatch, last: RecordBatch) -> bool:
        """Whether batches that are in order among themselves also continue the batches taken so far."""
        is_next = not self._is_raft or first.base_offset == self._offset_search.end
        is_inside = last.base_offset < self._end_offset
        in_line = is_next and is_inside and self._offset_search.continues_at(first.base_offset)
        return in_line and self._offsets.may_skip_to(last.next_offset)

    def _take_batch(self, batch: RecordBatch) -> None:
        start, end, count = batch.base_offset, batch.base_offset + batch.last_offset_delta + 1, batch.record_count
        if not 0 <= start < end < 1 << 63:
            self._follows_fault = True
            return
        furthest_end = start + count if count > 0 else end
        if self._is_raft:  # If the two differ, which is reported, the next batch may start at either.
            end, furthest_end = min(end, furthest_end), max(end, furthest_end)
        epoch, timestamp = batch.partition_leader_epoch, batch.max_timestamp
        step = self._step(batch.position, start, end, furthest_end, epoch, timestamp)
        if self._jumps_out(start):
            for verdict in self._offset_search.flush():
                self._settle(verdict.step, verdict.is_in_sequence)
            self._settle(step, is_in_sequence=False)
        else:
            self._take_step(step)

    def _jumps_out(self, start: int) -> bool:
        """Whether a batch starts at an offset of the following segment, other than the end of the preceding batch.

        A segment whose first batch starts exactly there may be that segment, under another name.
        """
        line = self._offset_search
        is_renamed = self.span is None and start == self._end_offset
        return start >= self._end_offset and start != line.end and line.continues_at(start) and not is_renamed

    def _step(self, position: int, start: int, end: int, furthest_end: int, epoch: int, timestamp: int) -> BatchStep:
        step = BatchStep(position, start, end, furthest_end, epoch, timestamp, self._follows_fault, self._damage)
        self._follows_fault, self._damage = False, ()
        return step

    def _take_step(self, step: BatchStep) -> None:
        for verdict in self._offset_search.take(step):
            self._settle(verdict.step, verdict.is_in_sequence)

    def _settle(self, step: BatchStep, is_in_sequence: bool) -> None:
        self._offsets.settle(step, is_in_sequence)
        if is_in_sequence and step.epoch >= 0:
            self._epochs.take(step)
