# SPDX-License-Identifier: Apache-2.0
"""Findings about producers, in the same words within one segment and between two."""

from raftlog.tools.auditing.producers.producer_rows import is_written_already
from raftlog.tools.catalogue.findings import Finding


def sequence_fault(
    path: str, producer_id: int, epoch: int, found: int, expected: int, offset: int, position: int | None = None
) -> Finding:
    """Return the finding about a batch whose first sequence is not the next one of its producer's epoch."""
    rule = "sequence-twice" if is_written_already(found, expected) else "sequence-gap"
    reason = f"a batch of producer {producer_id}, epoch {epoch}, has sequence {found}, but {expected} is next"
    return Finding(path, rule, reason, position, offset=offset)


def epoch_fault(
    path: str, producer_id: int, found: int, expected: int, offset: int | None, position: int | None = None
) -> Finding:
    """Return the finding about a batch whose producer epoch does not fit those of the producer's batches around it."""
    reason = f"a batch of producer {producer_id} has producer epoch {found}, the one beside it {expected}"
    return Finding(path, "producer-epoch", reason, position, offset=offset)


def mixed_fault(path: str, producer_id: int, first_offset: int, offset: int, position: int | None = None) -> Finding:
    """Return the finding about a batch that is not transactional, in the middle of its producer's transaction."""
    reason = f"a batch of producer {producer_id} is not transactional, in its transaction from offset {first_offset}"
    return Finding(path, "transaction-mixed", reason, position, offset=offset)


def coordinator_fault(
    path: str, producer_id: int, found: int, before: int, offset: int, position: int | None = None
) -> Finding | None:
    """Return a finding if a marker's coordinator epoch is less than that of the marker before it.

    An unknown epoch is -1; a marker with an unknown epoch has no finding.
    """
    if found >= before or found < 0:
        return None
    reason = f"a marker of producer {producer_id} has coordinator epoch {found}, the one before it {before}"
    return Finding(path, "coordinator-epoch", reason, position, offset=offset)
