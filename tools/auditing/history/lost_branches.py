# SPDX-License-Identifier: Apache-2.0
"""Finds whether a log that left another one at some offset went on without what is proven to be committed."""

from collections.abc import Sequence

from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.history.log_lineages import log_lineage
from raftlog.tools.auditing.history.quorum_copies import copies_of
from raftlog.tools.auditing.history.replicas import replicas
from raftlog.tools.auditing.proof.lineage import completed, parting
from raftlog.tools.auditing.proof.proofs import Proof, proofs


def proofs_of(evidence: Sequence[PartitionEvidence]) -> list[Proof]:
    """Return what replicas of a raft log prove, and, where they are known, their log directories; else nothing."""
    return proofs(copies_of(replicas(evidence)))


def proof_of_branch(
    kept: PartitionEvidence, offset: int, other_epoch: int | None, found: Sequence[Proof]
) -> Proof | None:
    """Return what proves records of a log from an offset on, at which another log has another epoch; None if nothing.

    Args:
        kept: the log.
        offset: where the other one left it.
        other_epoch: the epoch of the other one there.
        found: by ``proofs_of`` all replicas.
    """
    if not kept.is_raft:
        return None
    lineage = log_lineage(kept)
    for proof in found:
        proven = completed(proof.lineage, [lineage])
        is_of_branch = parting(lineage, proven) is None and proof.point.offset > offset
        if is_of_branch and proven.epoch_at(offset) not in {None, other_epoch}:
            return proof
    return None
