# SPDX-License-Identifier: Apache-2.0
"""Rules about the offsets of a segment's batches: duplicate, out of sequence or missing ones, and the first one."""

from collections.abc import Iterable

import attrs
import numpy as np

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.files.index_entries import MAX_RELATIVE_OFFSET
from raftlog.tools.auditing.batches.batch_table import OFFSETS_HAVE_GAPS, BatchTable
from raftlog.tools.auditing.evidence import OffsetHoles, SurveyTask
from raftlog.tools.auditing.finding_limit import MOST_OF_A_RULE, FindingLimit
from raftlog.tools.catalogue.findings import Finding


@attrs.frozen
class BatchStep:
    """A batch as a step in the sequence of offsets.

    In a raft log a batch has one record per offset. If the header contradicts that, ``end`` is the lesser and
    ``furthest_end`` the greater of the two possible ends.

    Attributes:
        position: byte position in the file.
        start: its base offset.
        end: end of its offsets by its last offset, exclusive.
        furthest_end: end of its offsets by its record count, exclusive.
        epoch: partition leader epoch.
        timestamp: max timestamp in ms.
        follows_fault: whether the preceding batch has unknown offsets.
        damage: findings about the bytes before it that are not a batch.
    """

    position: int
    start: int
    end: int
    furthest_end: int
    epoch: int
    timestamp: int
    follows_fault: bool = False
    damage: tuple[Finding, ...] = ()

    @property
    def is_corroborated(self) -> bool:
        """Always true: a batch's place is stronger evidence than a later batch that no other batch follows."""
        return True


@attrs.define
class _Gap:
    """Offsets that are missing before a batch, unless later batches turn out to hold them."""

    start: int
    following: BatchStep
    found: int = 0


@attrs.define
class _Stray:
    """Consecutive out-of-sequence batches; each starts where the preceding one ends."""

    first: BatchStep
    end: int
    batch_count: int = 1


class OffsetRules:
    """Reports problems with the offsets of one segment, given the verdicts on whether batches are in sequence.

    Args:
        task: the segment.
        limit: receives the findings.

    Attributes:
        starts_too_low: whether a first batch was reported to start below the offset in the segment's name.
    """

    def __init__(self, task: SurveyTask, limit: FindingLimit) -> None:
        self._task = task
        self._limit = limit
        self._next = task.base_offset
        self._start: int | None = None
        self._damage: list[Finding] = []
        self._gap: _Gap | None = None
        self._stray: _Stray | None = None
        self._reach = 0
        self._stray_offsets = 0
        self._all_stray_offsets = 0
        self._is_explained = False
        self._goes_too_far = False
        self._missing, self._holes = 0, 0
        self._first_hole: tuple[int, int] | None = None
        self.starts_too_low = False
        self._misplaced_from: int | None = None

    @property
    def span(self) -> tuple[int, int] | None:
        """First offset (inclusive) and end offset (exclusive) of the batches in sequence; None if there are none."""
        return None if self._start is None or self._next is None else (self._start, self._next)

    @property
    def holes(self) -> OffsetHoles | None:
        """Offsets that are missing without damage; None if none is missing, and for raft logs."""
        if self._first_hole is None:
            return None
        position, offset = self._first_hole
        return OffsetHoles(offset, position, self._missing, self._holes)

    @property
    def stray_offsets(self) -> int:
        """Number of offsets in batches that are out of sequence."""
        return self._all_stray_offsets

    @property
    def misplaced_from(self) -> int | None:
        """The first offset in whose place a batch has another one, or an impossible one; None if there is none.

        In a raft log, so is one at which offsets are missing.
        """
        return self._misplaced_from

    def note_misplaced(self, offset: int | None = None) -> None:
        """Note that a batch is not where it should be; None for the offset that is next."""
        found = self._next if offset is None else offset
        if found is not None and (self._misplaced_from is None or found < self._misplaced_from):
            self._misplaced_from = found

    def has_room(self, count: int) -> bool:
        """Whether one more finding of damage may be held back, in addition to ``count`` that the caller holds."""
        return count + len(self._damage) < MOST_OF_A_RULE

    def may_skip_to(self, end_offset: int) -> bool:
        """Whether offsets up to ``end_offset`` need no new ``segment-reach`` finding."""
        return self._goes_too_far or not self._is_too_far(end_offset)

    def skip(self, table: BatchTable, first: RecordBatch, last: RecordBatch) -> None:
        """Take all batches of a table except its last one; the caller has checked that they are in sequence.

        Args:
            table: the batches.
            first: the table's first batch.
            last: the last batch to take: the one before the table's last.
        """
        self._report_stray()
        self._report_gap()
        self._start = first.base_offset if self._start is None else self._start
        reached = first.base_offset if self._next is None else self._next
        if reached != first.base_offset or table.disorder & OFFSETS_HAVE_GAPS:
            self._note_holes_in(table, reached)
        self._next = self._reach = last.next_offset
        self._stray_offsets, self._is_explained = 0, False

    def settle(self, step: BatchStep, is_in_sequence: bool) -> None:
        """Process the verdict on one batch."""
        self._damage += step.damage
        self._is_explained |= step.follows_fault
        if step.follows_fault:
            self.note_misplaced()
        if self._start is None and self._next is not None and step.start < self._next:
            self._report_start(step)
            if is_in_sequence:
                self._accept(step)
            else:
                self._stray_offsets += step.end - step.start
        elif is_in_sequence:
            self._report_stray()
            self._report_gap()
            self._judge_step(step)
            self._accept(step)
        else:
            self._note_stray(step)

    def finish(self, damage: Iterable[Finding]) -> None:
        """Report the remaining findings, including damage after the last batch."""
        self._report_stray()
        self._report_gap()
        self._damage += damage
        for finding in self._damage:
            rest = f"{finding.reason}; what was from offset {self._next or 0} on is lost with it"
            self._limit.add(attrs.evolve(finding, reason=rest, offset=self._next))
        if (holes := self.holes) is not None:
            counts = f"{holes.missing_count} offsets are missing at {holes.hole_count} places"
            reason = f"{counts}, the first is {holes.start_offset}"
            path, offset = self._limit.path, holes.start_offset
            self._limit.add(Finding(path, "offset-compacted", reason, holes.position, offset=offset))

    def _accept(self, step: BatchStep) -> None:
        self._start = step.start if self._start is None else self._start
        self._next, self._reach = step.end, step.furthest_end
        self._stray_offsets, self._is_explained = 0, False

    def _judge_step(self, step: BatchStep) -> None:
        """Check the start and end of a batch that is in sequence."""
        missing = 0 if self._next is None else step.start - self._next
        if self._damage:
            self._report_damage(step.start)
        elif not self._goes_too_far and self._is_too_far(step.end):
            self._goes_too_far = True
            self.note_misplaced()
            reason = f"offsets up to {step.end - 1} in a segment that starts at {self._task.base_offset}"
            self._add("segment-reach", reason, step)
        elif missing > self._stray_offsets and not self._is_explained and self._next is not None:
            is_within_reach = self._task.is_raft and step.start <= self._reach
            self._gap = None if is_within_reach else _Gap(self._next, step)

    def _is_too_far(self, end_offset: int) -> bool:
        return self._task.base_offset is not None and end_offset - 1 - self._task.base_offset > MAX_RELATIVE_OFFSET

    def _note_holes_in(self, table: BatchTable, reached: int) -> None:
        """Count the holes before each batch of a table, except the last batch."""
        ends = np.concatenate(([reached], table.end_offsets[:-2]))
        missing = table.base_offsets[:-1] - ends
        rows = missing.nonzero()[0]
        if len(rows):
            first = int(rows[0])
            self._note_holes(int(missing.sum()), len(rows), int(table.positions[first]), int(ends[first]))

    def _note_holes(self, missing: int, count: int, position: int, offset: int) -> None:
        self._missing += missing
        self._holes += count
        self._first_hole = self._first_hole or (position, offset)

    def _note_stray(self, step: BatchStep) -> None:
        self.note_misplaced()
        span = step.end - step.start
        self._stray_offsets += span
        self._all_stray_offsets += span
        if self._gap is not None and self._gap.start <= step.start and step.end <= self._gap.following.start:
            self._gap.found += span
        if step.damage:  # The damage reaches into this batch's header, where no CRC covers the offset.
            self._report_stray()
            return
        if self._stray is not None and step.start == self._stray.end:
            self._stray.end = step.end
            self._stray.batch_count += 1
            return
        self._report_stray()
        self._stray = _Stray(step, step.end)

    def _report_start(self, step: BatchStep) -> None:
        self.starts_too_low = True
        self.note_misplaced()
        reason = f"it starts at offset {step.start}, below the {self._task.base_offset} of its name"
        self._add("segment-start", reason, step)

    def _report_stray(self) -> None:
        if self._stray is None:
            return
        stray, self._stray = self._stray, None
        many = f" in {stray.batch_count} batches" if stray.batch_count > 1 else ""
        place = "ahead of the others" if self._next is None else f"where offset {self._next} is next"
        reason = f"offsets {stray.first.start} to {stray.end - 1}{many} {place}"
        self._add("offset-order", reason, stray.first)

    def _report_gap(self) -> None:
        if self._gap is None:
            return
        gap, self._gap = self._gap, None
        missing = gap.following.start - gap.start
        if missing > gap.found and not self._task.is_raft:
            self._note_holes(missing, 1, gap.following.position, gap.start)
        elif missing > gap.found:
            self.note_misplaced(gap.start)
            reason = f"offset {gap.following.start} where {gap.start} is next: {missing} offsets are missing"
            self._add("offset-gap", reason, gap.following)

    def _report_damage(self, next_offset: int) -> None:
        lost = "no offset is lost"
        if self._next is None:
            lost = f"what was before offset {next_offset} is lost"
        elif next_offset > self._next:
            last = next_offset - 1
            lost = f"offset {last} is lost" if last == self._next else f"offsets {self._next} to {last} are lost"
            lost += ", unless compaction removed them" if self._holes else ""
        together = f", with {len(self._damage) - 1} more faults in a row" if len(self._damage) > 1 else ""
        for finding in self._damage:
            self._limit.add(attrs.evolve(finding, reason=f"{finding.reason}; {lost}{together}", offset=self._next))
        self._damage = []

    def _add(self, rule: str, reason: str, step: BatchStep) -> None:
        self._limit.add(Finding(self._limit.path, rule, reason, step.position, offset=step.start, epoch=step.epoch))
