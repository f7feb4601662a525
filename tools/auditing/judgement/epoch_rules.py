# SPDX-License-Identifier: Apache-2.0
"""Judges the epochs of a log: their order over segments, their LeaderChanges, and leader-epoch-checkpoint."""

import itertools
from collections.abc import Iterator, Sequence

from raftlog.records.files.file_names import FileKind
from raftlog.records.messages.control import ControlRecordType, control_key
from raftlog.records.rules import Severity
from raftlog.tools.auditing.evidence import ControlSeen, EpochSeen, FileEvidence, PartitionEvidence
from raftlog.tools.auditing.history.epoch_runs import EpochSpan, LogEpochs
from raftlog.tools.catalogue.findings import Finding

_LEADER_CHANGE_KEY = control_key(ControlRecordType.LEADER_CHANGE)


def judge_epochs(evidence: PartitionEvidence, epochs: LogEpochs) -> Iterator[Finding]:
    """Report problems with the epochs of a log.

    A batch with a wrong epoch is reported once: as out of order, or else, in a raft log, because its epoch does not
    start with a LeaderChange (which, unlike the epoch, is covered by the CRC). Reported epochs are not compared with
    the checkpoint.
    """
    for run in epochs.broken_between_segments:
        reason = f"epoch {run.seen.epoch}, but the segment next to it continues with another one"
        yield run.finding("epoch-order", reason)
    unopened = list(_unopened(evidence, epochs)) if evidence.is_raft else []
    for span in unopened:
        reason = f"epoch {span.epoch} starts at offset {span.start_offset} without a LeaderChange"
        yield span.first.finding("epoch-opening", reason)
    around = {span.epoch for span in unopened} | _epochs_before(epochs.spans, unopened)
    if evidence.is_raft:
        yield from _second_leaders(evidence, epochs, around)
    yield from _Comparison(evidence, epochs, around).findings()


def _unopened(evidence: PartitionEvidence, epochs: LogEpochs) -> Iterator[EpochSpan]:
    """Yield epochs whose first batch is known but has no LeaderChange. A log may start within an epoch."""
    end_offset = 0 if evidence.start_offset == 0 else -1
    for span in epochs.spans:
        is_first_batch = span.start_offset == end_offset
        if (
            is_first_batch
            and not span.first.seen.opens_with_leader
            and not _is_damaged(span.first.file, span.first.seen.position)
        ):
            yield span
        end_offset = span.end_offset


def _is_damaged(file: FileEvidence, position: int) -> bool:
    """Whether another problem with a batch may hide or misplace its LeaderChange."""
    return any(each.position == position and each.severity >= Severity.DAMAGED for each in file.findings)


def _epochs_before(spans: Sequence[EpochSpan], unopened: Sequence[EpochSpan]) -> set[int]:
    wanted = {span.epoch for span in unopened}
    return {before.epoch for before, span in itertools.pairwise(spans) if span.epoch in wanted}


def _second_leaders(evidence: PartitionEvidence, epochs: LogEpochs, reported: set[int]) -> Iterator[Finding]:
    by_epoch = {span.epoch: span for span in epochs.spans}
    for file in evidence.segments:
        for control in file.controls:
            span = by_epoch.get(control.epoch)
            if span is None or control.key[:4] != _LEADER_CHANGE_KEY or control.epoch in reported:
                continue
            if control.offset > span.start_offset and not _is_damaged(file, control.position):
                yield _second_leader(file, control, span)


def _second_leader(file: FileEvidence, control: ControlSeen, span: EpochSpan) -> Finding:
    reason = f"a LeaderChange at offset {control.offset} of epoch {span.epoch}, which starts at {span.start_offset}"
    return Finding(
        file.task.path, "epoch-leader", reason, control.position, offset=control.batch_offset, epoch=control.epoch
    )


class _Comparison:
    """Compares leader-epoch-checkpoint with the log."""

    def __init__(self, evidence: PartitionEvidence, epochs: LogEpochs, reported: set[int]) -> None:
        self._evidence = evidence
        self._epochs = epochs
        self._checkpoint = evidence.small_file(FileKind.LEADER_EPOCH_CHECKPOINT)
        self._explained = reported | {run.seen.epoch for run in epochs.doubted}

    def findings(self) -> Iterator[Finding]:
        """Report contradictions."""
        if self._checkpoint is None:
            yield from self._without_checkpoint()
        elif (
            not self._checkpoint.findings
        ):  # Otherwise it cannot be read, or is out of order, which is reported already.
            yield from self._entries_without_batches(self._checkpoint)
            yield from self._starts(self._checkpoint)

    def _without_checkpoint(self) -> Iterator[Finding]:
        if self._epochs.spans:
            path = self._epochs.spans[0].first.file.task.path
            yield Finding(path, "epochs-missing", "there is no leader-epoch-checkpoint; Kafka rebuilds it from the log")

    def _entries_without_batches(self, checkpoint: FileEvidence) -> Iterator[Finding]:
        present = {span.epoch for span in self._epochs.spans} | self._explained
        log_start, log_end = self._evidence.start_offset, self._evidence.end_offset
        entries = checkpoint.epochs
        for entry, following in itertools.zip_longest(entries, entries[1:]):
            if entry.epoch in present:
                continue
            if entry.start_offset >= log_end:
                if following is None:
                    reason = f"epoch {entry.epoch} at {entry.start_offset}, but the log ends at {log_end}"
                    yield _finding(checkpoint, "epochs-beyond", reason, entry)
                continue
            end_offset = log_end if following is None else following.start_offset
            contradicted = self._epochs.overlapping(max(entry.start_offset, log_start), end_offset)
            if contradicted and self._evidence.is_raft and not self._explained & {each.epoch for each in contradicted}:
                self._explained |= {each.epoch for each in contradicted}
                reason = (
                    f"epoch {entry.epoch} at {entry.start_offset}, but the log has epoch {contradicted[0].epoch} there"
                )
                yield _finding(checkpoint, "epochs-start", reason, entry)

    def _starts(self, checkpoint: FileEvidence) -> Iterator[Finding]:
        by_epoch = {entry.epoch: entry for entry in checkpoint.epochs}
        missing = []
        end_before = 0
        for span in self._epochs.spans:
            entry = by_epoch.get(span.epoch)
            if span.epoch not in self._explained:
                if entry is None:
                    missing += [] if self._is_forgotten(checkpoint, span) else [span]
                elif not self._may_start(checkpoint, entry, end_before, span.start_offset):
                    reason = f"epoch {span.epoch} at {entry.start_offset}, whose first batch is at {span.start_offset}"
                    yield _finding(checkpoint, "epochs-start", reason, entry)
            end_before = span.end_offset
        if missing:
            names = ", ".join(f"{span.epoch} (from {span.start_offset} on)" for span in missing[:5])
            more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
            first = missing[0]
            reason = f"no entry for epoch {names}{more}, although the log has batches of it"
            yield Finding(checkpoint.task.path, "epochs-missing", reason, offset=first.start_offset, epoch=first.epoch)

    def _may_start(self, checkpoint: FileEvidence, entry: EpochSeen, end_before: int, start_offset: int) -> bool:
        """Whether an epoch may have started at an offset: after the preceding epoch, and not after its own first batch.

        The first epoch starts at the log start, which may be within the first segment or before it.
        """
        is_first = entry is checkpoint.epochs[0]
        if is_first and self._is_log_start(entry.start_offset):
            return True
        return (end_before <= entry.start_offset or is_first) and entry.start_offset <= start_offset

    def _is_log_start(self, offset: int) -> bool:
        """Whether the log may start at an offset: a raft log starts where a snapshot ends, or anywhere without one."""
        ends = [snapshot_id.offset for snapshot_id in self._evidence.snapshots_by_id]
        is_unknown = not self._evidence.is_raft or (not ends and self._evidence.start_offset > 0)
        return is_unknown or offset in ends

    def _is_forgotten(self, checkpoint: FileEvidence, span: EpochSpan) -> bool:
        """Whether the log starts after an epoch, within the first segment or within a later epoch.

        If the log cannot start within that later epoch, the entry is reported.
        """
        first = next(iter(checkpoint.epochs), None)
        if first is None or span.end_offset > first.start_offset:
            return False
        there = self._epochs.span_at(first.start_offset)
        return self._is_log_start(first.start_offset) or (there is not None and there.start_offset < first.start_offset)


def _finding(checkpoint: FileEvidence, rule: str, reason: str, entry: EpochSeen) -> Finding:
    return Finding(checkpoint.task.path, rule, reason, offset=entry.start_offset, epoch=entry.epoch)
