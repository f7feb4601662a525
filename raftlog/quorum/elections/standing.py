# SPDX-License-Identifier: Apache-2.0
"""Stands for election: first asks the voters if it could win, then for their votes in a new epoch.

Source: KafkaRaftClient#pollProspective, #pollCandidate, #maybeSendVoteRequests, #handleVoteResponse.
"""

import attrs

from raftlog.quorum.replica import LocalReplica, SentRequest
from raftlog.quorum.responses import ResponseOutcome, handle_answer
from raftlog.quorum.roles.roles import Candidate, Prospective
from raftlog.quorum.roles.transitions import ElectionLost, ElectionTimedOut, ElectionWon, FetchTimedOut
from raftlog.records.messages.raft.election_messages import (
    VoteRequest,
    VoteRequestPartitionData,
    VoteRequestTopicData,
    VoteResponse,
    VoteResponsePartitionData,
)
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.uuid_text import ZERO_UUID
from raftlog.voters.voter_set import ReplicaKey


def begin_election(replica: LocalReplica, event: ElectionTimedOut | FetchTimedOut) -> None:
    """Ask for pre-votes, because there is no leader. The only voter of a quorum leads at once.

    Source: KafkaRaftClient#transitionToProspective.
    """
    replica.change_role(event)
    advance_election(replica)


def advance_election(replica: LocalReplica) -> None:
    """Move on if the election is won: from pre-votes to votes, and from votes to leading."""
    while isinstance(replica.role, Prospective | Candidate) and replica.role.votes.is_won:
        replica.change_role(ElectionWon())


def stand_for_election(replica: LocalReplica) -> None:
    """Give up an election that was lost or has taken too long; otherwise ask the voters that have not answered."""
    role = replica.role
    if isinstance(role, Prospective) and role.votes.is_lost:
        replica.change_role(ElectionLost())
    elif isinstance(role, Prospective) and role.election_deadline_ms <= replica.now_ms and replica.shutdown is None:
        replica.change_role(ElectionTimedOut())
    elif isinstance(role, Candidate) and role.election_deadline_ms <= replica.now_ms and replica.may_begin_election:
        begin_election(replica, ElectionTimedOut())
    # Past its deadline, a candidate whose log is being worked on asks no voter: the time of this election is over, and
    # the next one begins when the log is at rest. One that must not begin another, as in a shutdown, goes on with this.
    elif (
        isinstance(role, Prospective | Candidate)
        and not role.votes.is_lost
        and (replica.now_ms < role.election_deadline_ms or replica.is_log_at_rest)
    ):
        for voter in role.votes.unrecorded:
            destination = replica.voter_destination(voter.id)
            if destination is not None and replica.connections.is_ready(voter.id, replica.now_ms):
                replica.send(destination, vote_request(replica, voter, is_pre_vote=isinstance(role, Prospective)))


def vote_request(replica: LocalReplica, voter: ReplicaKey, *, is_pre_vote: bool) -> VoteRequest:
    """Return the request for a voter's vote, or pre-vote."""
    key, log_end = replica.identity.key, replica.log.end
    partition = VoteRequestPartitionData(
        partition_index=0,
        replica_epoch=replica.epoch,
        replica_id=key.id,
        replica_directory_id=key.directory_id or ZERO_UUID,
        voter_directory_id=voter.directory_id or ZERO_UUID,
        last_offset_epoch=log_end.epoch,
        last_offset=log_end.offset,
        pre_vote=is_pre_vote,
    )
    topic = VoteRequestTopicData(topic_name=replica.identity.topic_name, partitions=(partition,))
    return VoteRequest(cluster_id=replica.identity.cluster_id, voter_id=voter.id, topics=(topic,))


def handle_vote_response(replica: LocalReplica, sent: SentRequest, response: VoteResponse) -> ResponseOutcome:
    """Count a vote. A voter that knows no pre-votes counts as if all had granted theirs.

    Source: KafkaRaftClient#handleVoteResponse.
    """
    if response.error_code == ErrorCode.UNSUPPORTED_VERSION and isinstance(replica.role, Prospective):
        replica.change_role(ElectionWon())
        advance_election(replica)
        return ResponseOutcome.DONE
    outcome, answer = handle_answer(replica, response)
    if outcome is ResponseOutcome.CONTINUE:
        _record(replica, sent, answer)
        return ResponseOutcome.DONE
    return outcome


def _record(replica: LocalReplica, sent: SentRequest, answer: VoteResponsePartitionData) -> None:
    """Count an answer, unless it is to another kind of election, or contradicts an earlier one."""
    role, voter_id = replica.role, sent.destination.id
    if not isinstance(role, Prospective | Candidate) or sent.epoch != role.epoch:
        return
    if not role.votes.may_record(voter_id, is_granted=answer.vote_granted):
        return
    replica.role = attrs.evolve(role, votes=role.votes.recorded(voter_id, is_granted=answer.vote_granted))
    if isinstance(role, Prospective) and replica.role.votes.is_lost:
        replica.change_role(ElectionLost())
    advance_election(replica)
