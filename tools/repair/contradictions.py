# SPDX-License-Identifier: Apache-2.0
"""Refuses a log that is contradicted by its own snapshots about voters or kraft.version, or by itself.

A node takes both from its newest snapshot and the log after that. If the snapshot is wrong, the voters are those of
nobody, or are looked for in the configuration, and a rewrite would be of another kind than the quorum is.
"""

from collections.abc import Iterator
from typing import Final

from raftlog.errors import DecodeError
from raftlog.records.rules import Severity
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.judgement.partition_rules import judge_partition
from raftlog.tools.catalogue.findings import Finding

_OF_VERSIONS: Final = frozenset({"voters-version", "kraft-version-order", "kraft-version-known"})
"""Rules about records of the log or of a snapshot that leave in doubt which kraft.version is in force."""
_OF_SNAPSHOTS: Final = frozenset({"snapshot-id", "snapshot-timestamp", "snapshot-voters", "snapshot-version"})
"""Rules about snapshots that the log beside them contradicts."""


def is_excused(rule: str) -> bool:
    """Whether a rule may be broken in what is made of a log that breaks it, too."""
    return rule not in _OF_VERSIONS | _OF_SNAPSHOTS


def check_agreement(evidence: PartitionEvidence) -> None:
    """Check that the log and the snapshots of a directory agree on the voters and on kraft.version.

    Args:
        evidence: of a metadata log, as ``raftlog quorum`` reads it.

    Raises:
        DecodeError: they contradict each other; both files are named.
    """
    for finding in _contradictions(evidence):
        other = _segment_beside(evidence, finding.path)
        against = "" if other is None else f" against {other}"
        raise DecodeError(
            f"{finding.reason} [{finding.rule}]{against}: a node would begin with what is wrong. Keep another copy, or"
            " what 'raftlog salvage' makes of this one, which leaves such a snapshot out",
            path=finding.path,
        )


def _contradictions(evidence: PartitionEvidence) -> Iterator[Finding]:
    snapshots = {file.task.path for file in evidence.snapshots_by_id.values()}
    for finding in judge_partition(evidence):
        is_of_snapshot = finding.path in snapshots and finding.severity >= Severity.DAMAGED
        if is_of_snapshot or not is_excused(finding.rule):
            yield finding


def _segment_beside(evidence: PartitionEvidence, path: str) -> str | None:
    """Return the segment that has the last record that a snapshot covers; None if it is none of the log's snapshots."""
    for snapshot_id, file in evidence.snapshots_by_id.items():
        if file.task.path == path:
            below = [each for each in evidence.segments if (each.task.base_offset or 0) < max(snapshot_id.offset, 1)]
            return below[-1].task.path if below else None
    return None
