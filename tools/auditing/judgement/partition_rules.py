# SPDX-License-Identifier: Apache-2.0
"""Compares the files of one partition with each other."""

from collections.abc import Iterator
from typing import Final

import attrs

from raftlog.tools.auditing.agreement.controller_rules import judge_controllers
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence
from raftlog.tools.auditing.history.epoch_runs import LogEpochs
from raftlog.tools.auditing.judgement.election_rules import judge_election
from raftlog.tools.auditing.judgement.empty_rules import judge_empty
from raftlog.tools.auditing.judgement.epoch_rules import judge_epochs
from raftlog.tools.auditing.judgement.segment_rules import has_lost_tail, judge_log_end, judge_segments
from raftlog.tools.auditing.judgement.snapshot_rules import is_of_other_epoch, judge_snapshots
from raftlog.tools.auditing.judgement.voter_rules import judge_voters
from raftlog.tools.auditing.producers.producer_rules import judge_producers
from raftlog.tools.catalogue.findings import Finding

_OTHER_CONTENT: Final = frozenset({"snapshot-id", "snapshot-timestamp", "snapshot-boundary"})
"""Rules whose findings show that a snapshot does not match its name."""
_OF_CONTENT: Final = frozenset({"snapshot-voters", "snapshot-version"})


def judge_partition(evidence: PartitionEvidence) -> Iterator[Finding]:
    """Report contradictions between the files of a partition, all of which were surveyed.

    Findings of surveys are not repeated, nor are their consequences reported. For example, a log that lost its end is
    not also reported as ending before its snapshots, and the voters of a snapshot that does not match its name, or its
    twins on other replicas, are not compared.
    """
    epochs = LogEpochs(evidence)
    yield from judge_empty(evidence)
    yield from judge_segments(evidence)
    of_epochs = list(judge_epochs(evidence, epochs))
    yield from of_epochs
    if not evidence.is_raft:
        yield from judge_producers(evidence)
        return
    log_end = list(judge_log_end(evidence))
    is_tail_lost = has_lost_tail(evidence) or any(finding.rule == "log-end-durable" for finding in log_end)
    doubted = {finding.epoch for finding in of_epochs if finding.rule == "epoch-opening"}
    snapshots = list(judge_snapshots(evidence, epochs, is_tail_lost=is_tail_lost, doubted=doubted))
    yield from snapshots
    if not any(finding.rule == "snapshot-ahead" for finding in snapshots):
        yield from log_end
    others = {finding.path for finding in snapshots if finding.rule in _OTHER_CONTENT}
    others |= {file.task.path for file in evidence.snapshots if is_of_other_epoch(file) or _differs_from_twin(file)}
    own = attrs.evolve(evidence, files=tuple(file for file in evidence.files if file.task.path not in others))
    uncomparable = _paths_of_uncomparable(evidence)
    for finding in judge_voters(own):
        if finding.path not in uncomparable or finding.rule not in _OF_CONTENT:
            yield finding
    yield from judge_election(evidence)
    yield from judge_controllers(evidence)
    yield from _judge_records(own)
    yield from judge_producers(evidence)


def _judge_records(evidence: PartitionEvidence) -> Iterator[Finding]:
    if any(file.task.reads_messages for file in evidence.files):
        from raftlog.tools.auditing.agreement.snapshot_records import judge_snapshot_records  # Rarely asked for.

        yield from judge_snapshot_records(evidence)


def _differs_from_twin(snapshot: FileEvidence) -> bool:
    return any(finding.rule == "snapshot-twins" for finding in snapshot.findings)


def _paths_of_uncomparable(evidence: PartitionEvidence) -> set[str]:
    """Return the paths of snapshots that end where the log has no records, so that it cannot contradict them."""
    ends = {batch.snapshot_offset for file in evidence.segments for batch in file.snapshot_batches}
    return {file.task.path for id_, file in evidence.snapshots_by_id.items() if id_.offset not in ends}
