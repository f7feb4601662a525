# SPDX-License-Identifier: Apache-2.0
"""Answers Vote requests: may this replica give its vote, or would it?

A vote is made durable before the answer is sent. A pre-vote promises nothing. A request of a higher epoch moves this
replica to that epoch, whatever the answer is.

Source: KafkaRaftClient#handleVoteRequest, EpochState#canGrantVote.
"""

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.requests import (
    asked_partition,
    is_addressee,
    leader_and_epoch,
    node_endpoints,
    voter_request_error,
)
from raftlog.quorum.roles.roles import Follower, Leader, Prospective, Unattached, voted_key
from raftlog.quorum.roles.transitions import EpochLearned, VoteGiven
from raftlog.quorum.seam.identity import ReceivedRequest
from raftlog.quorum.voting import is_up_to_date
from raftlog.records.messages.raft.election_messages import (
    VoteRequest,
    VoteRequestPartitionData,
    VoteResponse,
    VoteResponsePartitionData,
    VoteResponseTopicData,
)
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.voters.voter_set import ReplicaKey


def handle_vote_request(replica: LocalReplica, received: ReceivedRequest, request: VoteRequest) -> VoteResponse:
    """Answer a request, and give the vote if it is granted."""
    error, asked = asked_partition(replica, request)
    if error:
        return VoteResponse(error_code=error, topics=())
    error, is_granted = _answer(replica, request.voter_id, asked)
    leader, epoch = leader_and_epoch(replica)
    answer = VoteResponsePartitionData(
        partition_index=0, error_code=error, leader_id=leader, leader_epoch=epoch, vote_granted=is_granted
    )
    topic = VoteResponseTopicData(topic_name=replica.identity.topic_name, partitions=(answer,))
    endpoints = node_endpoints(replica, received)
    return VoteResponse(error_code=ErrorCode.NONE, topics=(topic,), node_endpoints=endpoints)


def _answer(replica: LocalReplica, voter_id: int, asked: VoteRequestPartitionData) -> tuple[ErrorCode, bool]:
    """Return the error, and whether the vote is granted."""
    if not _is_possible(asked):
        return ErrorCode.INVALID_REQUEST, False
    error = voter_request_error(replica, asked.replica_id, asked.replica_epoch)
    if error:
        return error, False
    if asked.replica_epoch > replica.epoch:
        replica.change_role(EpochLearned(asked.replica_epoch))
    if not is_addressee(replica, voter_id, asked.voter_directory_id):
        return ErrorCode.INVALID_VOTER_KEY, False
    candidate = ReplicaKey(asked.replica_id, asked.replica_directory_id)
    log_end = OffsetAndEpoch(asked.last_offset, asked.last_offset_epoch)
    is_granted = may_grant_vote(replica, candidate, log_end, is_pre_vote=asked.pre_vote)
    if is_granted and not asked.pre_vote and voted_key(replica.role) is None:
        replica.change_role(VoteGiven(candidate))
    return ErrorCode.NONE, is_granted


def _is_possible(asked: VoteRequestPartitionData) -> bool:
    """Whether a request can be true: a candidate's epoch is higher than that of its last record."""
    least_epoch = asked.last_offset_epoch + (0 if asked.pre_vote else 1)
    return min(asked.last_offset, asked.last_offset_epoch) >= 0 and asked.replica_epoch >= least_epoch


def may_grant_vote(replica: LocalReplica, candidate: ReplicaKey, log_end: OffsetAndEpoch, *, is_pre_vote: bool) -> bool:
    """Whether this replica grants a vote, or a pre-vote, in its own epoch.

    Args:
        replica: this replica, which need not be a voter: it may not have read yet that it is one.
        candidate: who asks.
        log_end: end of the candidate's log, exclusive, with the epoch of its last record.
        is_pre_vote: whether the candidate only asks if it could win.

    A replica that may have forgotten a vote, or has lost records, grants none, nor does one in an epoch that it is said
    to have led. It grants none to a replica with its own id either, which must have another directory. A follower that
    is in touch with its leader grants no pre-vote. An observer stays one when it is not any more, and may be a voter
    already without knowing.

    Source: EpochState#canGrantVote. Differs: DECISIONS.md 54.
    """
    role = replica.role
    if not replica.may_stand or isinstance(role, Leader) or candidate.id == replica.identity.key.id:
        return False
    is_current = is_up_to_date(log_end, replica.log.end)
    if is_pre_vote:
        return is_current and not (isinstance(role, Follower) and role.is_in_touch(replica.now_ms))
    if not isinstance(role, Unattached | Prospective):
        return False
    voted = role.voted_key
    if replica.disowned_epoch == replica.epoch:
        return False
    if voted is not None:
        return voted.id == candidate.id and voted.directory_id in (None, candidate.directory_id)
    return role.leader_id is None and is_current
