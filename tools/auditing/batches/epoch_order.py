# SPDX-License-Identifier: Apache-2.0
"""Collects the epochs of a segment's batches, and reports batches whose epoch is out of sequence.

No CRC covers a batch's epoch. Where it falls, either the batches before have one that is too high, or those after have
one that is too low. In a raft log the LeaderChange decides that opens each epoch: batches that claim a later epoch
without it are wrong. Otherwise the fewer batches are.
"""

from collections.abc import Sequence, Set

import attrs

from raftlog.records.batches.batch import RecordBatch
from raftlog.tools.auditing.batches.batch_table import BatchTable
from raftlog.tools.auditing.batches.offset_rules import BatchStep
from raftlog.tools.auditing.evidence import EpochSeen
from raftlog.tools.auditing.finding_limit import FindingLimit
from raftlog.tools.catalogue.findings import Finding


@attrs.define
class _Run:
    """Consecutive batches of one epoch.

    Attributes:
        seen: what becomes part of the evidence.
        batch_count: number of batches.
        openings: positions of the batches that start with a LeaderChange.
        last: the last batch, unless it was taken with others at once.
        is_excused: whether damage or a fault before it may have taken its LeaderChange.
    """

    seen: EpochSeen
    batch_count: int
    openings: list[int]
    last: BatchStep | None = None
    is_excused: bool = False

    @property
    def epoch(self) -> int:
        return self.seen.epoch

    def extend(self, end_offset: int, last_timestamp: int, batch_count: int) -> None:
        """Add batches at the end: up to an offset (exclusive), the last of them with a timestamp."""
        seen = self.seen  # attrs.evolve takes five times as long, and this runs twice per chunk.
        self.seen = EpochSeen(
            seen.epoch,
            seen.start_offset,
            seen.position,
            end_offset,
            seen.timestamp,
            seen.opens_with_leader,
            last_timestamp,
        )
        self.batch_count += batch_count
        self.last = None


class EpochOrder:
    """Collects the epochs of batches, and reports those that are out of sequence.

    Args:
        limit: receives the findings.
        openings: byte positions of the batches that start with a LeaderChange.
        is_raft: whether each epoch starts with a LeaderChange.

    Attributes:
        repaired: for batches of ``openings`` that are out of sequence: the epoch that they belong to, by position.
    """

    def __init__(self, limit: FindingLimit, openings: Set[int], *, is_raft: bool) -> None:
        self._limit = limit
        self._openings = openings
        self._is_raft = is_raft
        self._runs: list[_Run] = []
        self._low: list[_Run] = []
        self.repaired: dict[int, int] = {}

    @property
    def seen(self) -> list[EpochSeen]:
        """The epochs of batches that are in sequence, in order."""
        return [run.seen for run in self._runs]

    def continues_at(self, epoch: int) -> bool:
        """Whether a batch of an epoch would be in sequence, with no earlier batch left in doubt."""
        return not self._low and (not self._runs or epoch >= self._runs[-1].epoch)

    def take(self, step: BatchStep) -> None:
        """Take the next batch whose offsets are in sequence."""
        if self._low and not self._low[-1].epoch <= step.epoch < self._runs[-1].epoch:
            self._settle(is_over=True)
        if self._low or not self.continues_at(step.epoch):
            self._add(self._low, step)
            self._settle(is_over=False)
        else:
            self._add(self._runs, step)

    def skip(self, table: BatchTable, first: RecordBatch, last: RecordBatch) -> None:
        """Take all batches of a table except its last one; the caller has checked that they are in sequence.

        Args:
            table: the batches.
            first: the table's first batch.
            last: the last batch to take: the one before the table's last.
        """
        epoch = first.partition_leader_epoch
        if self._runs and self._runs[-1].epoch == epoch == last.partition_leader_epoch:
            self._runs[-1].extend(last.next_offset, last.max_timestamp, len(table) - 1)
            return
        epochs = table.epochs[:-1]
        changes = ((epochs[1:] != epochs[:-1]).nonzero()[0] + 1).tolist()
        for start, end in zip([0, *changes], [*changes, len(epochs)], strict=True):
            self._extend_or_begin(table.run.batch(start), table.run.batch(end - 1), end - start)

    def finish(self) -> None:
        """Report the remaining findings."""
        self._settle(is_over=True, is_end=True)

    def _extend_or_begin(self, first: RecordBatch, last: RecordBatch, count: int) -> None:
        epoch = first.partition_leader_epoch
        if self._runs and self._runs[-1].epoch == epoch:
            self._runs[-1].extend(last.next_offset, last.max_timestamp, count)
            return
        opens = first.position in self._openings
        times = first.max_timestamp, opens, last.max_timestamp
        seen = EpochSeen(epoch, first.base_offset, first.position, last.next_offset, *times)
        self._runs.append(_Run(seen, count, [first.position] if opens else []))

    def _add(self, runs: list[_Run], step: BatchStep) -> None:
        opens = step.position in self._openings
        if runs and runs[-1].epoch == step.epoch:
            runs[-1].extend(step.end, step.timestamp, 1)
        else:
            seen = EpochSeen(step.epoch, step.start, step.position, step.end, step.timestamp, opens, step.timestamp)
            runs.append(_Run(seen, 0, [], is_excused=step.follows_fault or bool(step.damage)))
            runs[-1].batch_count = 1
        runs[-1].last = step
        if opens:
            runs[-1].openings.append(step.position)

    def _settle(self, *, is_over: bool, is_end: bool = False) -> None:
        """Judge the batches of lower epochs, or those of the higher epochs before them, as soon as one is certain.

        Args:
            is_over: whether no further batch belongs to them.
            is_end: whether no further batch follows at all.
        """
        if not self._low:
            return
        low, self._low = self._low, []
        first = next(index for index, run in enumerate(self._runs) if run.epoch > low[0].epoch)
        high = self._runs[first:]
        if self._are_too_high(high, low, is_end=is_end):
            del self._runs[first:]
            self._leave_out(high, low[0])
            for run in low:
                self._append(run)
        elif is_over:
            self._leave_out(low, None)
        else:
            self._low = low

    def _are_too_high(self, high: Sequence[_Run], low: Sequence[_Run], *, is_end: bool) -> bool:
        is_opened = any(run.openings for run in high)
        before = self._runs[-len(high) - 1 : -len(high)]
        if self._is_raft and before and not is_opened and not high[0].is_excused:
            return True
        if is_opened and not any(run.openings for run in low):
            # A LeaderChange alone may be one of the lower epoch, unless that goes on from before it.
            return _count(high) == 1 < _count(low) and low[0].epoch not in {run.epoch for run in before}
        more = _count(low) - _count(high)
        return more > 0 or (more == 0 and is_end and not is_opened)

    def _append(self, run: _Run) -> None:
        if self._runs and self._runs[-1].epoch == run.epoch:
            self._runs[-1].extend(run.seen.end_offset, run.seen.last_timestamp, run.batch_count)
            self._runs[-1].openings += run.openings
        else:
            self._runs.append(run)

    def _leave_out(self, stray: Sequence[_Run], following: _Run | None) -> None:
        """Report runs that are out of sequence, and find the epoch to which their LeaderChanges belong.

        Args:
            stray: the runs.
            following: the run in sequence that follows them; None if it is unknown, or has the preceding epoch.
        """
        before = self._runs[-1].epoch if self._runs else None
        after = before if following is None else following.epoch
        for run in stray:
            self._limit.add(self._finding(run, before, after))
        last = stray[-1]
        opens = after != before and last.last is not None and last.openings[-1:] == [last.last.position]
        own = after if opens or before is None else before
        if own is not None:
            self.repaired.update((position, own) for run in stray for position in run.openings)
        if opens and following is not None and last.last is not None:
            step = last.last
            seen = following.seen
            following.seen = EpochSeen(
                seen.epoch, step.start, step.position, seen.end_offset, step.timestamp, True, seen.last_timestamp
            )

    def _finding(self, run: _Run, before: int | None, after: int | None) -> Finding:
        first = run.seen
        what = f"{run.batch_count} batches" if run.batch_count > 1 else "a batch"
        place = f"before epoch {after}" if before is None else f"between epochs {before} and {after}"
        reason = f"{what} of epoch {first.epoch} {place}"
        return Finding(
            self._limit.path, "epoch-order", reason, first.position, offset=first.start_offset, epoch=first.epoch
        )


def _count(runs: Sequence[_Run]) -> int:
    return sum(run.batch_count for run in runs)
