# SPDX-License-Identifier: Apache-2.0
"""Announces that a leader begins or ends an epoch, and handles such announcements of others.

Source: KafkaRaftClient#handleBeginQuorumEpochRequest, #handleEndQuorumEpochRequest, #pollResigned.
"""

import uuid
from collections.abc import Sequence
from typing import Any

import attrs

from raftlog.quorum.leadership import Leadership
from raftlog.quorum.replica import LocalReplica, SentRequest
from raftlog.quorum.requests import (
    asked_partition,
    is_addressee,
    leader_and_epoch,
    learn_leader,
    node_endpoints,
    voter_request_error,
)
from raftlog.quorum.responses import ResponseOutcome, handle_answer
from raftlog.quorum.roles.roles import Follower, Resigned
from raftlog.quorum.seam.identity import ReceivedRequest
from raftlog.records.messages.raft.election_messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochRequestPartitionData,
    BeginQuorumEpochRequestTopicData,
    BeginQuorumEpochResponse,
    BeginQuorumEpochResponsePartitionData,
    BeginQuorumEpochResponseTopicData,
    EndQuorumEpochRequest,
    EndQuorumEpochRequestPartitionData,
    EndQuorumEpochRequestReplicaInfo,
    EndQuorumEpochRequestTopicData,
    EndQuorumEpochResponse,
    EndQuorumEpochResponsePartitionData,
    EndQuorumEpochResponseTopicData,
)
from raftlog.records.messages.raft.endpoints import LeaderEndpoint
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.uuid_text import ZERO_UUID
from raftlog.voters.voter_set import Endpoints, ReplicaKey

# Requests of leaders


def handle_begin_quorum_epoch_request(
    replica: LocalReplica, received: ReceivedRequest, request: BeginQuorumEpochRequest
) -> BeginQuorumEpochResponse:
    """Follow a leader that announces itself.

    Source: KafkaRaftClient#handleBeginQuorumEpochRequest.
    """
    error, named = asked_partition(replica, request)
    if error:
        return BeginQuorumEpochResponse(error_code=error, topics=())
    error = _follow(replica, named, request.leader_endpoints, request.voter_id, named.voter_directory_id)
    partitions = (BeginQuorumEpochResponsePartitionData(**_state(replica, error)),)
    topic = BeginQuorumEpochResponseTopicData(topic_name=replica.identity.topic_name, partitions=partitions)
    endpoints = node_endpoints(replica, received)
    return BeginQuorumEpochResponse(error_code=ErrorCode.NONE, topics=(topic,), node_endpoints=endpoints)


def handle_end_quorum_epoch_request(
    replica: LocalReplica, received: ReceivedRequest, request: EndQuorumEpochRequest
) -> EndQuorumEpochResponse:
    """Prepare for an election, because the leader resigns; the most preferred candidate begins it at once.

    Source: KafkaRaftClient#handleEndQuorumEpochRequest.
    """
    error, named = asked_partition(replica, request)
    if error:
        return EndQuorumEpochResponse(error_code=error, topics=())
    error = _follow(replica, named, request.leader_endpoints, -1, ZERO_UUID)
    role = replica.role
    if not error and isinstance(role, Follower) and role.leader.id == named.leader_id:
        pause_ms = resignation_pause_ms(_place(replica, named), _candidate_count(named), replica)
        replica.role = attrs.evolve(role, fetch_deadline_ms=replica.now_ms + pause_ms)
    partitions = (EndQuorumEpochResponsePartitionData(**_state(replica, error)),)
    topic = EndQuorumEpochResponseTopicData(topic_name=replica.identity.topic_name, partitions=partitions)
    endpoints = node_endpoints(replica, received)
    return EndQuorumEpochResponse(error_code=ErrorCode.NONE, topics=(topic,), node_endpoints=endpoints)


def _follow(
    replica: LocalReplica,
    named: BeginQuorumEpochRequestPartitionData | EndQuorumEpochRequestPartitionData,
    endpoints: Sequence[LeaderEndpoint],
    voter_id: int,
    directory_id: uuid.UUID,
) -> ErrorCode:
    """Follow the leader of an announcement, and return the error for the answer.

    As in Kafka, the addressee is checked last: the epoch and its leader are facts, even if the request was meant for
    another replica.
    """
    error = voter_request_error(replica, named.leader_id, named.leader_epoch)
    if error:
        return error
    listeners = {each.name: (each.host, each.port) for each in endpoints}
    try:
        known = replica.known_leader(named.leader_id, Endpoints.of(listeners))
    except ValueError:
        return ErrorCode.INVALID_REQUEST
    where = Endpoints() if known is None else known.endpoints
    learn_leader(replica, named.leader_epoch, named.leader_id, where)
    is_ours = is_addressee(replica, voter_id, directory_id)
    return ErrorCode.NONE if is_ours else ErrorCode.INVALID_VOTER_KEY


def _state(replica: LocalReplica, error: ErrorCode) -> dict[str, Any]:
    """Return the fields that both answers have: the error, and the leader and the epoch that are known by now."""
    leader, epoch = leader_and_epoch(replica)
    return {"partition_index": 0, "error_code": error, "leader_id": leader, "leader_epoch": epoch}


def _candidate_count(named: EndQuorumEpochRequestPartitionData) -> int:
    return len(named.preferred_candidates) or len(named.preferred_successors)


def _place(replica: LocalReplica, named: EndQuorumEpochRequestPartitionData) -> int | None:
    """Return this replica's place among the preferred candidates, 0 for the first; None if it is not one."""
    key = replica.identity.key
    for place, each in enumerate(named.preferred_candidates):
        if each.candidate_id == key.id and each.candidate_directory_id in (ZERO_UUID, key.directory_id):
            return place
    return named.preferred_successors.index(key.id) if key.id in named.preferred_successors else None


def resignation_pause_ms(place: int | None, count: int, replica: LocalReplica) -> int:
    """Return how long a follower waits before it begins an election, after its leader has resigned.

    Args:
        place: of this replica among the preferred candidates: 0 for the first, None if it is not one of them.
        count: of the preferred candidates. If there are none, as after a restart, all begin at once.
        replica: this replica.

    Source: KafkaRaftClient#endEpochElectionBackoff.
    """
    longest = replica.config.election_backoff_max_ms
    if place == 0 or count == 0:
        return 0
    if place is None or place >= count:
        return longest
    return min(longest, (longest >> (count - 1)) << (place - 1))


# The leader's own announcements


def announce_leadership(replica: LocalReplica, leadership: Leadership) -> None:
    """Tell the voters that have not fetched of late who leads, and those that a read waits for.

    Source: KafkaRaftClient#maybeSendBeginQuorumEpochRequests.
    """
    interval_ms = replica.config.begin_quorum_epoch_interval_ms
    is_due = replica.now_ms >= leadership.begin_deadline_ms
    if not is_due and not leadership.reads.pending:
        return
    for node in replica.voters.voters.values():
        key, known = node.voter_key, leadership.progress_of(node)
        is_recent = known is not None and replica.now_ms - known.fetched_ms < interval_ms
        is_wanted = (is_due and not is_recent) or leadership.reads.is_awaited(key)
        destination = replica.voter_destination(key.id)
        if key.id == replica.identity.key.id or not is_wanted or destination is None:
            continue
        if replica.connections.is_ready(key.id, replica.now_ms):
            replica.send(destination, begin_quorum_epoch_request(replica, key))
    if is_due:
        leadership.begin_deadline_ms = replica.now_ms + interval_ms


def begin_quorum_epoch_request(replica: LocalReplica, voter: ReplicaKey) -> BeginQuorumEpochRequest:
    """Return the announcement that this replica leads, for a voter."""
    identity = replica.identity
    partition = BeginQuorumEpochRequestPartitionData(
        partition_index=0,
        voter_directory_id=voter.directory_id or ZERO_UUID,
        leader_id=identity.key.id,
        leader_epoch=replica.epoch,
    )
    topic = BeginQuorumEpochRequestTopicData(topic_name=identity.topic_name, partitions=(partition,))
    endpoints = tuple(
        LeaderEndpoint(name=name, host=address.host, port=address.port)
        for name, address in identity.endpoints.listeners.items()
    )
    return BeginQuorumEpochRequest(
        cluster_id=identity.cluster_id, voter_id=voter.id, topics=(topic,), leader_endpoints=endpoints
    )


def handle_begin_quorum_epoch_response(
    replica: LocalReplica, sent: SentRequest, response: BeginQuorumEpochResponse
) -> ResponseOutcome:
    """Learn from a voter that there is a later epoch; otherwise the voter has taken notice, and confirms reads.

    It has found itself to be the voter that the request names, with that directory: otherwise its answer is an error.
    """
    outcome, answer = handle_answer(replica, response)
    if outcome is not ResponseOutcome.CONTINUE:
        return outcome
    if replica.leadership is not None and answer.leader_id == replica.identity.key.id:
        named = sent.message.topics[0].partitions[0].voter_directory_id  # type: ignore[union-attr]
        key = ReplicaKey(sent.destination.id, None if named == ZERO_UUID else named)
        replica.leadership.reads.note_answer(key, sent.number)
    return ResponseOutcome.DONE


def announce_resignation(replica: LocalReplica, role: Resigned) -> None:
    """Tell the voters that have not acknowledged it that this replica has resigned."""
    for voter in role.unacknowledged:
        destination = replica.voter_destination(voter.id)
        if destination is not None and replica.connections.is_ready(voter.id, replica.now_ms):
            replica.send(destination, end_quorum_epoch_request(replica, role))


def end_quorum_epoch_request(replica: LocalReplica, role: Resigned) -> EndQuorumEpochRequest:
    """Return the announcement of a resignation, for any voter."""
    candidates = tuple(
        EndQuorumEpochRequestReplicaInfo(candidate_id=each.id, candidate_directory_id=each.directory_id or ZERO_UUID)
        for each in role.preferred_candidates
    )
    partition = EndQuorumEpochRequestPartitionData(
        partition_index=0, leader_id=role.id, leader_epoch=role.epoch, preferred_candidates=candidates
    )
    topic = EndQuorumEpochRequestTopicData(topic_name=replica.identity.topic_name, partitions=(partition,))
    return EndQuorumEpochRequest(cluster_id=replica.identity.cluster_id, topics=(topic,))


def handle_end_quorum_epoch_response(
    replica: LocalReplica, sent: SentRequest, response: EndQuorumEpochResponse
) -> ResponseOutcome:
    """Note that a voter knows of the resignation."""
    outcome, _ = handle_answer(replica, response)
    if outcome is not ResponseOutcome.CONTINUE:
        return outcome
    role = replica.role
    if isinstance(role, Resigned) and role.epoch == sent.epoch:
        left = tuple(each for each in role.unacknowledged if each.id != sent.destination.id)
        replica.role = attrs.evolve(role, unacknowledged=left)
    return ResponseOutcome.DONE
