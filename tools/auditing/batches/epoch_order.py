# SPDX-License-Identifier: Apache-2.0
"""Collects the epochs of a segment's batches, and reports batches whose epoch is out of sequence."""

from collections.abc import Set

import attrs

from raftlog.records.batches.batch import RecordBatch
from raftlog.tools.auditing.batches.batch_table import BatchTable
from raftlog.tools.auditing.batches.offset_rules import BatchStep
from raftlog.tools.auditing.batches.sequence_outliers import Verdict
from raftlog.tools.auditing.evidence import EpochSeen
from raftlog.tools.auditing.finding_limit import FindingLimit
from raftlog.tools.catalogue.findings import Finding


@attrs.frozen
class EpochStep:
    """A batch as a step in the sequence of epochs.

    Attributes:
        batch: the batch.
        is_corroborated: whether it starts with a LeaderChange, as each new epoch of a raft log does.
    """

    batch: BatchStep
    is_corroborated: bool

    @property
    def start(self) -> int:
        """Its epoch."""
        return self.batch.epoch

    @property
    def end(self) -> int:
        """Its epoch: the next batch may have the same one."""
        return self.batch.epoch

    @property
    def furthest_end(self) -> int:
        """Its epoch."""
        return self.batch.epoch


class EpochOrder:
    """Collects the epochs of batches, and reports those that are out of sequence.

    Args:
        limit: receives the findings.
        openings: byte positions of the batches that start with a LeaderChange.

    Attributes:
        seen: the epochs of batches that are in sequence, in order.
        repaired: for batches of ``openings`` that are out of sequence: the epoch that they belong to, by position.
    """

    def __init__(self, limit: FindingLimit, openings: Set[int]) -> None:
        self._limit = limit
        self._openings = openings
        self._stray: list[BatchStep] = []
        self._stray_count = 0
        self.seen: list[EpochSeen] = []
        self.repaired: dict[int, int] = {}

    def settle(self, verdict: Verdict[EpochStep]) -> None:
        """Process the verdict on one batch."""
        step = verdict.step.batch
        if not verdict.is_in_sequence:
            self._note_stray(step)
            return
        opening = self._report_stray(step)
        if self.seen and self.seen[-1].epoch == step.epoch:
            self._extend(step.end)
            return
        has_leader = step.position in self._openings or opening is not None
        first = opening or step
        self.seen.append(EpochSeen(step.epoch, first.start, first.position, step.end, first.timestamp, has_leader))

    def skip(self, table: BatchTable, first: RecordBatch, last: RecordBatch) -> None:
        """Take all batches of a table except its last one; the caller has checked that they are in sequence.

        Args:
            table: the batches.
            first: the table's first batch.
            last: the last batch to take: the one before the table's last.
        """
        self._report_stray(None)
        epoch = first.partition_leader_epoch
        if self.seen and self.seen[-1].epoch == epoch == last.partition_leader_epoch:
            self._extend(last.next_offset)
            return
        epochs = table.epochs[:-1]
        changes = ((epochs[1:] != epochs[:-1]).nonzero()[0] + 1).tolist()
        for start, end in zip([0, *changes], [*changes, len(epochs)], strict=True):
            self._extend_or_begin(table.run.batch(start), table.run.batch(end - 1).next_offset)

    def _extend_or_begin(self, first: RecordBatch, end_offset: int) -> None:
        epoch = first.partition_leader_epoch
        if self.seen and self.seen[-1].epoch == epoch:
            self._extend(end_offset)
            return
        has_leader = first.position in self._openings
        start_offset, timestamp = first.base_offset, first.max_timestamp
        self.seen.append(EpochSeen(epoch, start_offset, first.position, end_offset, timestamp, has_leader))

    def finish(self) -> None:
        """Report the remaining findings."""
        self._report_stray(None)

    def _extend(self, end_offset: int) -> None:
        last = self.seen[-1]
        self.seen[-1] = EpochSeen(  # attrs.evolve takes five times as long, and this runs twice per chunk.
            last.epoch, last.start_offset, last.position, end_offset, last.timestamp, last.opens_with_leader
        )

    def _note_stray(self, step: BatchStep) -> None:
        """Add an out-of-sequence batch to its run of one epoch; only the first batch and openings are kept."""
        if self._stray and self._stray[0].epoch != step.epoch:
            self._report_stray(None)
        self._stray_count += 1
        if not self._stray or step.position in self._openings:
            self._stray.append(step)

    def _report_stray(self, following: BatchStep | None) -> BatchStep | None:
        """Report consecutive out-of-sequence batches as one finding.

        Args:
            following: the batch in sequence that follows them; None if it is unknown, or has the preceding epoch.

        Returns:
            The last of them if it opens the epoch of the batch that follows, else None.
        """
        if not self._stray:
            return None
        stray, count = self._stray, self._stray_count
        self._stray, self._stray_count = [], 0
        before = self.seen[-1].epoch if self.seen else None
        after = before if following is None else following.epoch
        self._limit.add(self._finding(stray[0], count, before, after))
        opens = after != before and stray[-1].position in self._openings
        for step in stray:
            if step.position in self._openings and after is not None:
                self.repaired[step.position] = after if opens or before is None else before
        return stray[-1] if opens else None

    def _finding(self, first: BatchStep, count: int, before: int | None, after: int | None) -> Finding:
        what = f"{count} batches" if count > 1 else "a batch"
        place = f"before epoch {after}" if before is None else f"between epochs {before} and {after}"
        reason = f"{what} of epoch {first.epoch} {place}"
        return Finding(self._limit.path, "epoch-order", reason, first.position, offset=first.start, epoch=first.epoch)
