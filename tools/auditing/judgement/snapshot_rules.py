# SPDX-License-Identifier: Apache-2.0
"""Compares the snapshots of a raft log with the log: their range, their ids and their headers."""

from collections.abc import Collection, Iterator

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.messages.control import SnapshotHeaderRecord
from raftlog.snapshot.paths import BOOTSTRAP_SNAPSHOT_ID
from raftlog.tools.auditing.evidence import BatchSeen, FileEvidence, PartitionEvidence
from raftlog.tools.auditing.history.epoch_runs import LogEpochs
from raftlog.tools.auditing.history.log_lineages import names_against_times
from raftlog.tools.auditing.judgement.segment_rules import stray_offsets
from raftlog.tools.auditing.proof.snapshot_names import NameFault, ms_text
from raftlog.tools.catalogue.audit_rules import DISORDER_RULES
from raftlog.tools.catalogue.findings import Finding


def judge_snapshots(
    evidence: PartitionEvidence, epochs: LogEpochs, *, is_tail_lost: bool, doubted: Collection[int | None] = ()
) -> Iterator[Finding]:
    """Report contradictions between the snapshots of a raft log and the log.

    If a snapshot has the content of another one, or another one's name, the timestamp in its header usually shows it,
    also where the log does not have the record before its end. A snapshot whose batches have another epoch than its
    name has been reported by its survey.

    Args:
        evidence: of the log.
        epochs: of the log.
        is_tail_lost: whether the log was reported to have lost its end: then snapshots may end after it.
        doubted: epochs of batches that were reported to have a wrong epoch.
    """
    yield from _uncovered_start(evidence)
    batches = {
        batch.snapshot_offset: batch
        for file in evidence.segments
        for batch in file.snapshot_batches
        if not _follows_disorder(batch, file)
    }
    faults = names_against_times([evidence])
    starts = {seen.start_offset: seen.timestamp for file in evidence.segments for seen in file.epochs}
    for id_, snapshot in evidence.snapshots_by_id.items():
        if id_ == BOOTSTRAP_SNAPSHOT_ID or not evidence.segments:
            continue
        wrong = faults.get(snapshot.task.path)
        if id_.offset > evidence.end_offset:
            if not is_tail_lost and id_.offset > evidence.end_offset + stray_offsets(evidence):
                yield _ahead(id_, snapshot, evidence, wrong)
            elif wrong is not None:
                yield misnamed(id_, snapshot.task.path, wrong.reason, is_certain=wrong.is_certain)
            continue
        at_end = epochs.span_at(id_.offset - 1)
        if at_end is None or at_end.epoch not in doubted:
            found = list(_against_log(id_, snapshot, epochs, batches.get(id_.offset), starts.get(id_.offset, -1)))
            yield from found
            if wrong is not None and not found:
                yield misnamed(id_, snapshot.task.path, wrong.reason, is_certain=wrong.is_certain)


def _ahead(id_: OffsetAndEpoch, snapshot: FileEvidence, log: PartitionEvidence, wrong: NameFault | None) -> Finding:
    reason = f"it ends at offset {id_.offset}, but the log ends at {log.end_offset}"
    if id_.epoch >= log.last_epoch:
        reason += ": startup discards the log"
    if wrong is not None:
        reason += f"; {wrong.reason}: it may be another snapshot under this name"
    return Finding(snapshot.task.path, "snapshot-ahead", reason, offset=id_.offset, epoch=id_.epoch)


def misnamed(id_: OffsetAndEpoch, path: str, wrong: str, *, is_certain: bool) -> Finding:
    """Return a finding that something contradicts the name of a snapshot, for certain or not."""
    reason = f"{wrong}: it may be another snapshot under this name" if is_certain else wrong
    rule = "snapshot-timestamp" if is_certain else "snapshot-order"
    return Finding(path, rule, reason, offset=id_.offset, epoch=id_.epoch)


def ending_amid_batches(evidence: PartitionEvidence) -> Iterator[str]:
    """Yield the paths of snapshots that end inside a batch of their log, which is reported as that."""
    for batch in (batch for file in evidence.segments for batch in file.snapshot_batches):
        if batch.last_offset >= batch.snapshot_offset:
            yield from (
                file.task.path for id_, file in evidence.snapshots_by_id.items() if id_.offset == batch.snapshot_offset
            )


def _follows_disorder(batch: BatchSeen, segment: FileEvidence) -> bool:
    """Whether the offset of a batch is doubtful because preceding batches were reported."""
    return any(
        finding.rule in DISORDER_RULES and finding.position is not None and finding.position <= batch.position
        for finding in segment.findings
    )


def _uncovered_start(evidence: PartitionEvidence) -> Iterator[Finding]:
    """Check that a snapshot reaches the log start, which is the start of the first segment's batches, not its name."""
    if not evidence.segments:
        return
    first = evidence.segments[0]
    log_start = evidence.start_offset
    if first.extent is not None:
        log_start = min(log_start, first.extent.start_offset)
    ends = [snapshot_id.offset for snapshot_id in evidence.snapshots_by_id]
    if log_start > max(ends, default=0):
        newest = f"the newest snapshot ends at {max(ends)}" if ends else "there is no snapshot"
        reason = f"the log starts at offset {log_start}, and {newest}: the records in between are missing"
        yield Finding(first.task.path, "log-start-uncovered", reason, offset=log_start)


def _against_log(
    id_: OffsetAndEpoch, snapshot: FileEvidence, epochs: LogEpochs, batch: BatchSeen | None, next_timestamp: int
) -> Iterator[Finding]:
    """Report the first contradiction to the log: that of the name, or else that of the header."""
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
        yield from _timestamp(snapshot, batch, {batch.max_timestamp, batch.next_timestamp, next_timestamp} - {-1})


def is_of_other_epoch(snapshot: FileEvidence) -> bool:
    """Whether a snapshot's survey found that its contents do not match its name."""
    return any(finding.rule == "snapshot-epoch" for finding in snapshot.findings)


def _epoch_problem(offset: int, epoch: int, epochs: LogEpochs) -> str | None:
    """Return the problem with the epoch of a snapshot that ends at an offset, as far as the log has its epoch."""
    last = epochs.span_at(offset - 1)
    if last is not None:
        return None if last.epoch == epoch else f"epoch {epoch}, but offset {offset - 1} has epoch {last.epoch}"
    following = epochs.span_at(offset)
    if following is not None and following.epoch < epoch:
        return f"epoch {epoch}, but offset {offset} after it has epoch {following.epoch}"
    return None


def _timestamp(snapshot: FileEvidence, batch: BatchSeen, right: Collection[int]) -> Iterator[Finding]:
    """Compare a header with the batch before the end, or after it: what a transaction begins with after a snapshot.

    Source: MetadataBatchLoader#loadBatch, which takes the time of a batch before it emits the image before that.
    """
    for control, header in snapshot.control_values():
        if not isinstance(header, SnapshotHeaderRecord):
            continue
        if header.last_contained_log_timestamp not in right:
            reason = (
                f"a last contained timestamp of {ms_text(header.last_contained_log_timestamp)}, but the batch that ends"
                f" at offset {batch.last_offset} has {ms_text(batch.max_timestamp)}: it may be another snapshot under"
                " this name"
            )
            yield Finding(
                snapshot.task.path, "snapshot-timestamp", reason, control.position, offset=0, epoch=control.epoch
            )
