# SPDX-License-Identifier: Apache-2.0
"""Separates logs of one name that are not replicas of each other: they belong to two clusters with one id."""

import functools
import uuid
from collections.abc import Callable, Iterable
from typing import TypeVar

import attrs

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
    found: list[list[tuple[_Past, T]]] = []
    for value in values:
        past = _Past(evidence(value))
        group = next((group for group in found if not any(past.is_apart(other) for other, _ in group)), None)
        if group is None:
            found.append([(past, value)])
        else:
            group.append((past, value))
    return [[value for _, value in group] for group in found]


def first_leader(replica: PartitionEvidence) -> Statement | None:
    """Return the first LeaderChange of a log, or None."""
    return _first_leader(log_statements(replica))


@attrs.frozen
class _Past:
    """What shows which cluster has written a log. It is read once, however many logs it is compared with."""

    log: PartitionEvidence

    def is_apart(self, other: "_Past") -> bool:
        """Whether two clusters have written the two logs."""
        if not (self.is_raft and other.is_raft) or not self.openings.isdisjoint(other.openings):
            return False
        if self.directories and other.directories and self.directories.isdisjoint(other.directories):
            return True
        first, second = _first_leader(self.statements), _first_leader(other.statements)
        return (
            first is not None and second is not None and _where(first) == _where(second) and _who(first) != _who(second)
        )

    @functools.cached_property
    def is_raft(self) -> bool:
        return self.log.is_raft

    @functools.cached_property
    def openings(self) -> frozenset[tuple[int, int, int]]:
        """The first batches of epochs."""
        seen = (seen for segment in self.log.segments for seen in segment.epochs)
        return frozenset((each.epoch, each.start_offset, each.timestamp) for each in seen if each.opens_with_leader)

    @functools.cached_property
    def directories(self) -> frozenset[uuid.UUID]:
        """The ids of all directories that have voted by the log and its snapshots."""
        sets = [voters_of(statement) for statement in self.statements]
        sets += [snapshot.voter_set for snapshot in snapshot_statements(self.log)]
        keys = (key for voters in sets if voters is not None for key in voters.voter_keys)
        return frozenset(key.directory_id for key in keys if key.directory_id is not None)

    @functools.cached_property
    def statements(self) -> list[Statement]:
        return log_statements(self.log)


def _first_leader(statements: Iterable[Statement]) -> Statement | None:
    return next((each for each in statements if isinstance(each.value, LeaderChangeMessage)), None)


def _where(opening: Statement) -> tuple[int, int]:
    return opening.seen.epoch, opening.seen.offset


def _who(opening: Statement) -> tuple[int, frozenset[int]] | None:
    change = opening.value
    if not isinstance(change, LeaderChangeMessage):
        return None
    return change.leader_id, frozenset(voter.id for voter in change.voters)
