# SPDX-License-Identifier: Apache-2.0
"""Which role follows which: one table from a role and an event to a function and the roles that it returns.

An event that is not in the table for a role must not happen in that role: it raises ``IllegalTransitionError``. So do
events that contradict the role, such as an older epoch. The diagram in ``docs/quorum.md`` is made from the table.

Nothing here is made durable. The caller compares ``roles.election_state`` of both roles, and stores a state that has
changed before it tells anyone.

Source: QuorumState. Differs: leadership and votes are granted by the caller, which also checks them.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs

from raftlog.errors import IllegalTransitionError
from raftlog.offsets import MAX_EPOCH
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.draws import Draws
from raftlog.quorum.roles.roles import (
    Candidate,
    Follower,
    KnownLeader,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
    leader_id,
    voted_key,
)
from raftlog.quorum.roles.votes import Votes
from raftlog.voters.voter_set import ReplicaKey, VoterSet


@attrs.frozen
class Surroundings:
    """What a transition depends on besides the role and the event.

    Attributes:
        local_key: this replica, with its directory id.
        voters: the voter set in force.
        config: the timeouts.
        draws: the random choices.
        now_ms: monotonic time.
    """

    local_key: ReplicaKey
    voters: VoterSet
    config: QuorumConfig
    draws: Draws
    now_ms: int

    @property
    def is_voter(self) -> bool:
        """Whether this replica is a voter."""
        return self.voters.is_voter(self.local_key)

    def new_election_deadline_ms(self) -> int:
        """Draw the time at which a voter without a leader begins an election."""
        return self.now_ms + self.draws.election_timeout_ms(self.config.election_timeout_ms)


# Events


@attrs.frozen
class EpochLearned:
    """There is a higher epoch, whose leader is not known, or not where it listens."""

    epoch: int
    leader_id: int | None = None


@attrs.frozen
class LeaderLearned:
    """An epoch has a leader; or more endpoints of the leader became known."""

    epoch: int
    leader: KnownLeader


@attrs.frozen
class VoteGiven:
    """This replica gives its vote of this epoch to a candidate."""

    candidate: ReplicaKey


@attrs.frozen
class ElectionTimedOut:
    """No leader was found, or the election was not won, until the election deadline."""


@attrs.frozen
class FetchTimedOut:
    """No fetch has succeeded until the fetch deadline."""


@attrs.frozen
class ElectionLost:
    """So many voters have rejected a pre-vote that the others are no majority."""


@attrs.frozen
class ElectionWon:
    """A majority has granted its votes; or a voter is so old that it knows no pre-votes."""


@attrs.frozen
class LeadershipResigned:
    """The leader gives up its epoch. The preferred candidates come best first."""

    preferred_candidates: tuple[ReplicaKey, ...]


RoleEvent = (
    EpochLearned
    | LeaderLearned
    | VoteGiven
    | ElectionTimedOut
    | FetchTimedOut
    | ElectionLost
    | ElectionWon
    | LeadershipResigned
)

# Functions of the table


def _illegal(role: Role, event: RoleEvent, reason: str) -> IllegalTransitionError:
    return IllegalTransitionError(f"{event} in {role}: {reason}")


def _enter_epoch(role: Role, event: EpochLearned, around: Surroundings) -> Unattached:
    """Forget vote and leader of the old epoch. An election that this replica waits for is not put off."""
    if event.epoch <= role.epoch:
        raise _illegal(role, event, "the epoch is not higher")
    deadline: int | None = None
    if around.is_voter:
        waiting = isinstance(role, Unattached | Prospective | Candidate | Resigned)
        deadline = getattr(role, "election_deadline_ms", None) if waiting else None
        if isinstance(role, Prospective) and role.votes.is_lost:
            deadline = None
        if deadline is None:
            deadline = around.new_election_deadline_ms()
    return Unattached(event.epoch, event.leader_id, None, deadline)


def _follow(role: Role, event: LeaderLearned, around: Surroundings) -> Follower:
    if event.leader.id == around.local_key.id:
        raise _illegal(role, event, "a replica cannot follow itself")
    if event.epoch < role.epoch:
        raise _illegal(role, event, "the epoch is lower")
    is_same_epoch = event.epoch == role.epoch
    if is_same_epoch and leader_id(role) not in (None, event.leader.id):
        raise _illegal(role, event, "the epoch has another leader")
    config, now_ms = around.config, around.now_ms
    return Follower(
        event.epoch,
        event.leader,
        voted_key(role) if is_same_epoch else None,
        fetch_deadline_ms=now_ms + config.fetch_timeout_ms,
        update_deadline_ms=now_ms + config.update_voter_period_ms,
    )


def _follow_other_epoch(role: Role, event: LeaderLearned, around: Surroundings) -> Follower:
    if event.epoch == role.epoch:
        raise _illegal(role, event, "the leader of this epoch is, or was, this replica")
    return _follow(role, event, around)


def _follow_more_endpoints(role: Follower, event: LeaderLearned, around: Surroundings) -> Follower:
    if event.epoch == role.epoch and len(event.leader.endpoints) <= len(role.leader.endpoints):
        raise _illegal(role, event, "no more endpoints than before")
    return _follow(role, event, around)


def _vote(role: Unattached | Prospective, event: VoteGiven, around: Surroundings) -> Role:
    """Give the vote of this epoch. The candidate gets a whole election timeout to win; pre-votes are asked for anew."""
    if role.voted_key is not None or event.candidate.id == around.local_key.id or role.leader_id is not None:
        raise _illegal(role, event, "there is a vote or a leader, or the candidate is this replica")
    deadline = around.new_election_deadline_ms()
    if isinstance(role, Prospective):
        votes = Votes.begin(around.voters.voter_keys, around.local_key.id)
        return attrs.evolve(role, voted_key=event.candidate, votes=votes, election_deadline_ms=deadline)
    return attrs.evolve(role, voted_key=event.candidate, election_deadline_ms=deadline)


def _ask_for_pre_votes(role: Unattached | Candidate | Follower, event: RoleEvent, around: Surroundings) -> Prospective:
    if not around.is_voter or role.epoch >= MAX_EPOCH:
        raise _illegal(role, event, "observers begin no election, and there is no epoch after the highest")
    return Prospective(
        role.epoch,
        leader_id(role),
        role.leader if isinstance(role, Follower) else None,
        voted_key(role),
        Votes.begin(around.voters.voter_keys, around.local_key.id),
        around.new_election_deadline_ms(),
    )


def _give_up(role: Prospective, event: RoleEvent, around: Surroundings) -> Role:
    """Follow the leader again if it is known where it listens; otherwise look for one."""
    if role.leader is not None:
        return _follow(role, LeaderLearned(role.epoch, role.leader), around)
    is_waiting = not role.votes.is_lost
    deadline = role.election_deadline_ms if is_waiting else around.new_election_deadline_ms()
    return Unattached(role.epoch, role.leader_id, role.voted_key, deadline if around.is_voter else None)


def _stand(role: Prospective, event: RoleEvent, around: Surroundings) -> Candidate:
    if not around.is_voter or role.epoch >= MAX_EPOCH:
        raise _illegal(role, event, "observers are no candidates, and there is no epoch after the highest")
    votes = Votes.begin(around.voters.voter_keys, around.local_key.id)
    return Candidate(role.epoch + 1, around.local_key, votes, around.new_election_deadline_ms())


def _lead(role: Candidate, event: ElectionWon, around: Surroundings) -> Leader:
    if not role.votes.is_won:
        raise _illegal(role, event, "no majority has granted its vote")
    if not around.is_voter:
        raise _illegal(role, event, "an observer cannot be elected")
    return Leader(
        role.epoch,
        around.local_key.id,
        granting_voters=tuple(sorted(role.votes.granted)),
        voters=tuple(each.id for each in role.votes.voters),
    )


def _resign(role: Leader, event: LeadershipResigned, around: Surroundings) -> Resigned:
    others = sorted(each for each in around.voters.voter_keys if each.id != around.local_key.id)
    return Resigned(role.epoch, role.id, event.preferred_candidates, tuple(others), around.new_election_deadline_ms())


def _leave_resigned_epoch(role: Resigned, event: ElectionTimedOut, around: Surroundings) -> Unattached:
    if role.epoch >= MAX_EPOCH:
        raise _illegal(role, event, "there is no epoch after the highest")
    return Unattached(role.epoch + 1, None, None, role.election_deadline_ms if around.is_voter else None)


Function = Callable[[Any, Any, Surroundings], Role]

TRANSITIONS: Final[Mapping[tuple[type[Role], type[RoleEvent]], tuple[Function, tuple[type[Role], ...]]]] = (
    MappingProxyType(
        {
            (Unattached, EpochLearned): (_enter_epoch, (Unattached,)),
            (Unattached, LeaderLearned): (_follow, (Follower,)),
            (Unattached, VoteGiven): (_vote, (Unattached,)),
            (Unattached, ElectionTimedOut): (_ask_for_pre_votes, (Prospective,)),
            (Prospective, EpochLearned): (_enter_epoch, (Unattached,)),
            (Prospective, LeaderLearned): (_follow, (Follower,)),
            (Prospective, VoteGiven): (_vote, (Prospective,)),
            (Prospective, ElectionTimedOut): (_give_up, (Unattached, Follower)),
            (Prospective, ElectionLost): (_give_up, (Unattached, Follower)),
            (Prospective, ElectionWon): (_stand, (Candidate,)),
            (Candidate, EpochLearned): (_enter_epoch, (Unattached,)),
            (Candidate, LeaderLearned): (_follow, (Follower,)),
            (Candidate, ElectionTimedOut): (_ask_for_pre_votes, (Prospective,)),
            (Candidate, ElectionWon): (_lead, (Leader,)),
            (Leader, EpochLearned): (_enter_epoch, (Unattached,)),
            (Leader, LeaderLearned): (_follow_other_epoch, (Follower,)),
            (Leader, LeadershipResigned): (_resign, (Resigned,)),
            (Follower, EpochLearned): (_enter_epoch, (Unattached,)),
            (Follower, LeaderLearned): (_follow_more_endpoints, (Follower,)),
            (Follower, FetchTimedOut): (_ask_for_pre_votes, (Prospective,)),
            (Resigned, EpochLearned): (_enter_epoch, (Unattached,)),
            (Resigned, LeaderLearned): (_follow_other_epoch, (Follower,)),
            (Resigned, ElectionTimedOut): (_leave_resigned_epoch, (Unattached,)),
        }
    )
)
"""By role and event: the function, and the roles that it may return."""


def next_role(role: Role, event: RoleEvent, around: Surroundings) -> Role:
    """Return the role that follows from an event.

    Raises:
        IllegalTransitionError: the event must not happen in this role, or contradicts it.

    Source: QuorumState#transitionTo…
    """
    entry = TRANSITIONS.get((type(role), type(event)))
    if entry is None:
        raise _illegal(role, event, "this cannot happen")
    return entry[0](role, event, around)
