# SPDX-License-Identifier: Apache-2.0
"""Separates logs of one name that are not replicas of each other: they belong to two clusters with one id."""

import uuid
from collections.abc import Callable, Iterable
from typing import TypeVar

from raftlog.records.messages.control import LeaderChangeMessage
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.history.quorum_statements import Statement, log_statements, snapshot_statements, voters_of

T = TypeVar("T")


def by_history(values: Iterable[T], evidence: Callable[[T], PartitionEvidence]) -> list[list[T]]:
    """Divide the replicas of a raft log by the clusters that wrote them; replicas of other logs stay together.

    Replicas belong to one cluster if they share an epoch's first batch. Otherwise they belong to two if their voters
    have no directory in common, or if the first batch of both starts the same epoch at the same offset with different
    leaders or voters. If nothing shows either, they are taken to belong to one.

    Args:
        values: the replicas, in any form.
        evidence: returns the evidence of a value.

    Returns:
        The values, in their order.
    """
    found: list[list[T]] = []
    for value in values:
        mine = evidence(value)
        group = next((group for group in found if not any(_are_apart(mine, evidence(other)) for other in group)), None)
        if group is None:
            found.append([value])
        else:
            group.append(value)
    return found


def first_leader(replica: PartitionEvidence) -> Statement | None:
    """Return the first LeaderChange of a log, or None."""
    statements = log_statements(replica)
    return next((each for each in statements if isinstance(each.value, LeaderChangeMessage)), None)


def _are_apart(one: PartitionEvidence, other: PartitionEvidence) -> bool:
    if not (one.is_raft and other.is_raft) or _openings(one) & _openings(other):
        return False
    mine, theirs = _directories(one), _directories(other)
    if mine and theirs and mine.isdisjoint(theirs):
        return True
    first, second = first_leader(one), first_leader(other)
    return first is not None and second is not None and _where(first) == _where(second) and _who(first) != _who(second)


def _openings(replica: PartitionEvidence) -> set[tuple[int, int, int]]:
    seen = (seen for segment in replica.segments for seen in segment.epochs)
    return {(each.epoch, each.start_offset, each.timestamp) for each in seen if each.opens_with_leader}


def _directories(replica: PartitionEvidence) -> set[uuid.UUID]:
    """Return the ids of all directories that have voted by a log and its snapshots."""
    sets = [voters_of(statement) for statement in log_statements(replica)]
    sets += [snapshot.voter_set for snapshot in snapshot_statements(replica)]
    keys = (key for voters in sets if voters is not None for key in voters.voter_keys)
    return {key.directory_id for key in keys if key.directory_id is not None}


def _where(opening: Statement) -> tuple[int, int]:
    return opening.seen.epoch, opening.seen.offset


def _who(opening: Statement) -> tuple[int, frozenset[int]] | None:
    change = opening.value
    if not isinstance(change, LeaderChangeMessage):
        return None
    return change.leader_id, frozenset(voter.id for voter in change.voters)
