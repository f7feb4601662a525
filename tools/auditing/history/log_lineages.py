# SPDX-License-Identifier: Apache-2.0
"""The lineage of a log by its batches, and what contradicts it beside them."""

from raftlog.offsets import EpochEntry, OffsetAndEpoch
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.history.epoch_runs import LogEpochs
from raftlog.tools.auditing.history.quorum_statements import cut_offset, hole_offset
from raftlog.tools.auditing.proof.lineage import Lineage, parting


def log_lineage(evidence: PartitionEvidence) -> Lineage:
    """Return the epochs of a log's batches, except those that break the order."""
    spans = LogEpochs(evidence).spans
    return Lineage(tuple(EpochEntry(span.epoch, span.start_offset) for span in spans), evidence.end_offset)


def wrong_epoch_offset(evidence: PartitionEvidence) -> int | None:
    """Return the first offset of a raft log whose batch has an impossible epoch; None if there is none.

    No CRC covers a batch's epoch. It is wrong if it breaks the order, or begins without a LeaderChange: if the last
    batch claims a later epoch, Kafka's rule would elect the log for that.
    """
    epochs = LogEpochs(evidence)
    found = [run.seen.start_offset for run in epochs.doubted]
    found += [span.start_offset for span in epochs.spans[1:] if not span.first.seen.opens_with_leader]
    return min(found, default=None)


def contradicted_snapshots(evidence: PartitionEvidence) -> set[OffsetAndEpoch]:
    """Return the snapshots whose content, or the log beside them as far as that is sound, says that a name is wrong."""
    found = evidence.snapshots_by_id
    if not any(snapshot_id.offset > 0 for snapshot_id in found):
        return set()
    sound = log_lineage(evidence).cut(min(fault_offsets(evidence), default=evidence.end_offset))
    return {
        snapshot_id
        for snapshot_id, file in found.items()
        if any(finding.rule == "snapshot-epoch" for finding in file.findings)
        or parting(sound, Lineage.of_point(snapshot_id)) is not None
    }


def fault_offsets(evidence: PartitionEvidence) -> list[int]:
    """Return the first offset of each kind of fault: damaged, missing or misplaced, or of a wrong epoch."""
    found = (cut_offset(evidence), hole_offset(evidence), wrong_epoch_offset(evidence))
    return [offset for offset in found if offset is not None]
