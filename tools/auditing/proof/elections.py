# SPDX-License-Identifier: Apache-2.0
"""Whom Kafka's own rule would elect among given replicas.

A candidate asks the voters that its own log names, committed or not. Each grants its vote, unless its own log is more
up to date: the epochs of the last records are compared first, then the ends.

Source: KafkaRaftClient#handleVoteRequest, QuorumState#canGrantVote.
"""

from collections.abc import Sequence

import attrs

from raftlog.quorum.voting import can_be_elected
from raftlog.tools.auditing.proof.copies import Copy, of_voters
from raftlog.voters.voter_set import VoterSet


@attrs.frozen
class Electability:
    """Whether a replica could be elected.

    Attributes:
        by_present: by the votes of the replicas that are given.
        with_absent: with those of its voters that are not given, if these have nothing more.
    """

    by_present: bool
    with_absent: bool


def chance(
    candidate: Copy, copies: Sequence[Copy], usual: VoterSet, *, absent_may_vote: bool = True
) -> Electability | None:
    """Return whether a replica could be elected; None if it is no voter, or not the most up-to-date copy of one.

    Args:
        candidate: one of the copies.
        copies: the replicas that are started.
        usual: the voters of a log that names none.
        absent_may_vote: whether absent voters would vote for it: not if it lacks what is committed.
    """
    voters = candidate.voters_in_force
    voters = voters if len(voters) else usual
    there = of_voters(copies, voters)
    if not any(each is candidate for each in there):
        return None
    if not (candidate.can_start and candidate.votes):
        return Electability(by_present=False, with_absent=False)
    ends = [each.end for each in there if each.can_start and each.votes]
    absent = len(voters) - len(there) if absent_may_vote else 0
    by_present = can_be_elected(candidate.end, ends, voters.majority_size)
    with_absent = by_present or can_be_elected(candidate.end, ends, voters.majority_size, absent)
    return Electability(by_present, with_absent)


def electable(copies: Sequence[Copy], usual: VoterSet) -> list[Copy]:
    """Return the replicas that could be elected if exactly these are started."""
    chances = ((each, chance(each, copies, usual)) for each in copies)
    return [each for each, found in chances if found is not None and found.by_present]
