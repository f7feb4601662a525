# SPDX-License-Identifier: Apache-2.0
"""The role in which a replica starts, according to its stored election state.

Source: QuorumState#initialize.
"""

from raftlog.offsets import MAX_EPOCH
from raftlog.quorum.roles.roles import Candidate, Follower, KnownLeader, Resigned, Role, Unattached
from raftlog.quorum.roles.transitions import Surroundings
from raftlog.quorum.roles.votes import Votes
from raftlog.records.files.quorum_state import UNKNOWN_ID, QuorumStateData
from raftlog.voters.voter_set import ReplicaKey


def starting_role(stored: QuorumStateData | None, last_epoch: int, around: Surroundings, *, may_stand: bool) -> Role:
    """Return the role to start in.

    A replica that led resumes nothing: it may have lost records that were not durable, and must not write other ones in
    the same epoch. It has resigned, unless it is the only voter and is elected again at once: it names itself as the
    leader, and without a role that says more its listeners would be told so. A candidate resumes its election, for
    which it has voted already.

    Args:
        stored: the election state, or None if this replica has never taken part in an election.
        last_epoch: of the log.
        around: what the role depends on.
        may_stand: whether this replica may stand for election.

    Differs: a replica that was a candidate, and is no voter, is unattached; Kafka does not start. One that voted for
    itself, and then learned of the leader that was elected, follows it (DECISIONS.md 54).
    """
    deadline = around.new_election_deadline_ms() if around.is_voter else None
    if stored is None or stored.leader_epoch < last_epoch:
        return Unattached(last_epoch, election_deadline_ms=deadline)
    epoch, key = stored.leader_epoch, around.local_key
    leader = None if stored.leader_id == UNKNOWN_ID else stored.leader_id
    is_elected_at_once = may_stand and around.voters.is_only_voter(key) and epoch < MAX_EPOCH
    if leader == key.id and not is_elected_at_once:
        return Resigned(epoch, key.id, (), _others(around), around.new_election_deadline_ms())
    voted = stored.voted_key
    if leader is None and voted is not None and _is_same(voted, key) and may_stand and around.is_voter:
        votes = Votes.begin(around.voters.voter_keys, key.id)
        return Candidate(epoch, key, votes, around.new_election_deadline_ms())
    endpoints = around.voters.listeners(leader) if leader not in (None, key.id) else None
    if leader is None or not endpoints:
        return Unattached(epoch, leader, voted, deadline)
    config, now_ms = around.config, around.now_ms
    return Follower(
        epoch,
        KnownLeader(leader, endpoints),
        voted,
        fetch_deadline_ms=now_ms + config.fetch_timeout_ms,
        update_deadline_ms=now_ms + config.update_voter_period_ms,
    )


def _others(around: Surroundings) -> tuple[ReplicaKey, ...]:
    return tuple(sorted(each for each in around.voters.voter_keys if each.id != around.local_key.id))


def _is_same(voted: ReplicaKey, key: ReplicaKey) -> bool:
    return voted.id == key.id and voted.directory_id in (None, key.directory_id)
