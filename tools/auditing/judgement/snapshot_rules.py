# SPDX-License-Identifier: Apache-2.0
"""Snapshots beside their log: what they cover, and whether their ids and headers say what the log does."""

from collections.abc import Collection, Iterator

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.messages.control import SnapshotHeaderRecord
from raftlog.snapshot.paths import BOOTSTRAP_SNAPSHOT_ID
from raftlog.tools.auditing.evidence import BatchSeen, FileEvidence, PartitionEvidence
from raftlog.tools.auditing.history.epoch_runs import LogEpochs
from raftlog.tools.auditing.judgement.segment_rules import stray_offsets
from raftlog.tools.catalogue.audit_rules import DISORDER_RULES
from raftlog.tools.catalogue.findings import Finding


def judge_snapshots(
    evidence: PartitionEvidence, epochs: LogEpochs, *, is_tail_lost: bool, doubted: Collection[int | None] = ()
) -> Iterator[Finding]:
    """Report contradictions between the snapshots of a raft log and the log.

    Where a snapshot has the content of another, its header's timestamp is likely to tell. One that ends where the log
    has nothing any more cannot be compared. A snapshot whose own batches are of another epoch than its name says has
    been reported by its survey.

    Args:
        evidence: of the log.
        epochs: of the log.
        is_tail_lost: whether it was reported that the log has lost its end: then snapshots may end beyond it.
        doubted: epochs that batches were reported to be of wrongly.
    """
    yield from _uncovered_start(evidence)
    batches = {
        batch.snapshot_offset: batch
        for file in evidence.segments
        for batch in file.snapshot_batches
        if not _follows_disorder(batch, file)
    }
    for id_, snapshot in evidence.snapshots_by_id.items():
        if id_ == BOOTSTRAP_SNAPSHOT_ID or not evidence.segments:
            continue
        if id_.offset > evidence.end_offset:
            if not is_tail_lost and id_.offset > evidence.end_offset + stray_offsets(evidence):
                reason = (
                    f"it ends at offset {id_.offset}, the log ends at {evidence.end_offset}: the next start drops it"
                )
                yield Finding(snapshot.task.path, "snapshot-ahead", reason, offset=id_.offset, epoch=id_.epoch)
            continue
        at_end = epochs.span_at(id_.offset - 1)
        if at_end is None or at_end.epoch not in doubted:
            yield from _against_log(id_, snapshot, epochs, batches.get(id_.offset))


def _follows_disorder(batch: BatchSeen, segment: FileEvidence) -> bool:
    """Whether the offset of a batch may be that of another one, since those before it were reported."""
    return any(
        finding.rule in DISORDER_RULES and finding.position is not None and finding.position <= batch.position
        for finding in segment.findings
    )


def _uncovered_start(evidence: PartitionEvidence) -> Iterator[Finding]:
    """Compare the log's start, which is where its first segment does start, whatever that is called."""
    if not evidence.segments:
        return
    first = evidence.segments[0]
    log_start = evidence.start_offset
    if first.extent is not None:
        log_start = min(log_start, first.extent.start_offset)
    ends = [snapshot_id.offset for snapshot_id in evidence.snapshots_by_id]
    if log_start > max(ends, default=0):
        newest = f"the newest snapshot ends at {max(ends)}" if ends else "there is no snapshot"
        reason = f"the log starts at offset {log_start}, and {newest}: what stood between is gone"
        yield Finding(first.task.path, "log-start-uncovered", reason, offset=log_start)


def _against_log(
    id_: OffsetAndEpoch, snapshot: FileEvidence, epochs: LogEpochs, batch: BatchSeen | None
) -> Iterator[Finding]:
    """Yield the first thing that contradicts the log: the name, or else what the header says."""
    if is_of_other_epoch(snapshot):
        return
    problem = _epoch_problem(id_.offset, id_.epoch, epochs)
    if problem is not None:
        yield Finding(snapshot.task.path, "snapshot-id", problem, offset=id_.offset, epoch=id_.epoch)
    elif batch is not None and batch.last_offset >= id_.offset:
        span = f"{batch.base_offset} to {batch.last_offset}"
        reason = f"it ends at offset {id_.offset}, in the middle of a batch from {span}"
        yield Finding(snapshot.task.path, "snapshot-boundary", reason, offset=id_.offset, epoch=id_.epoch)
    elif batch is not None:
        yield from _timestamp(snapshot, batch)


def is_of_other_epoch(snapshot: FileEvidence) -> bool:
    """Whether a snapshot's survey found that its contents do not match its name."""
    return any(finding.rule == "snapshot-epoch" for finding in snapshot.findings)


def _epoch_problem(offset: int, epoch: int, epochs: LogEpochs) -> str | None:
    """Say what is wrong with the epoch of a snapshot that ends at an offset, if the log knows."""
    last = epochs.span_at(offset - 1)
    if last is not None:
        return None if last.epoch == epoch else f"epoch {epoch}, but offset {offset - 1} is of epoch {last.epoch}"
    following = epochs.span_at(offset)
    if following is not None and following.epoch < epoch:
        return f"epoch {epoch}, but offset {offset} behind it is of epoch {following.epoch}"
    return None


def _timestamp(snapshot: FileEvidence, batch: BatchSeen) -> Iterator[Finding]:
    for control, header in snapshot.control_values():
        if not isinstance(header, SnapshotHeaderRecord):
            continue
        if header.last_contained_log_timestamp != batch.max_timestamp:
            reason = (
                f"a last contained timestamp of {header.last_contained_log_timestamp}, but the batch that ends at"
                f" offset {batch.last_offset} has {batch.max_timestamp}: it may be another snapshot under this name"
            )
            yield Finding(
                snapshot.task.path, "snapshot-timestamp", reason, control.position, offset=0, epoch=control.epoch
            )
