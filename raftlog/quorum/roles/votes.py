# SPDX-License-Identifier: Apache-2.0
"""Counts the answers of voters to a candidate, or to a replica that asks whether it could win.

Source: EpochElection.
"""

from collections.abc import Iterable
from typing import Self

import attrs

from raftlog.voters.voter_set import ReplicaKey


@attrs.frozen
class Votes:
    """The votes of one election. The voters are those in force when it began.

    Attributes:
        voters: the replicas that are asked, in ascending order.
        granted: ids of the voters that granted their vote.
        rejected: ids of the voters that rejected it; disjoint from ``granted``.
    """

    voters: tuple[ReplicaKey, ...]
    granted: frozenset[int] = frozenset()
    rejected: frozenset[int] = frozenset()

    @classmethod
    def begin(cls, voters: Iterable[ReplicaKey], candidate_id: int) -> Self:
        """Begin an election of voters, in which the candidate votes for itself if it is one of them."""
        ordered = tuple(sorted(voters))
        return cls(ordered, granted=frozenset(each.id for each in ordered if each.id == candidate_id))

    def recorded(self, voter_id: int, *, is_granted: bool) -> Self:
        """Return the votes after a voter's answer. A repeated answer changes nothing.

        Raises:
            ValueError: the replica is not one of the voters, or has answered the opposite before. Call
                ``may_record`` first.
        """
        if not self.may_record(voter_id, is_granted=is_granted):
            raise ValueError(f"voter {voter_id}: {'granted' if is_granted else 'rejected'}, not expected in {self}")
        if is_granted:
            return attrs.evolve(self, granted=self.granted | {voter_id})
        return attrs.evolve(self, rejected=self.rejected | {voter_id})

    def may_record(self, voter_id: int, *, is_granted: bool) -> bool:
        """Whether an answer is that of a voter, and not the opposite of what the voter answered before."""
        opposite = self.rejected if is_granted else self.granted
        return voter_id not in opposite and any(each.id == voter_id for each in self.voters)

    @property
    def majority_size(self) -> int:
        """How many votes win."""
        return len(self.voters) // 2 + 1

    @property
    def is_won(self) -> bool:
        """Whether a majority has granted its votes."""
        return len(self.granted) >= self.majority_size

    @property
    def is_lost(self) -> bool:
        """Whether a majority can no longer be reached."""
        return len(self.voters) - len(self.rejected) < self.majority_size

    @property
    def unrecorded(self) -> tuple[ReplicaKey, ...]:
        """The voters that have not answered, in ascending order."""
        return tuple(each for each in self.voters if each.id not in self.granted and each.id not in self.rejected)
