# SPDX-License-Identifier: Apache-2.0
"""Describes the quorum to a tool that asks its leader: the voters, the observers, and how far each of them is.

Source: KafkaRaftClient#handleDescribeQuorumRequest, RaftUtil#singletonDescribeQuorumResponse.
"""

from typing import Final, NamedTuple

from raftlog.quorum.leadership import Leadership, ReplicaProgress
from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.requests import listeners_of, only_partition
from raftlog.quorum.seam.identity import ReceivedRequest
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.voter_messages import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponseNode,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseReplicaState,
    DescribeQuorumResponseTopicData,
)
from raftlog.uuid_text import ZERO_UUID
from raftlog.voters.voter_set import ReplicaKey, VoterNode

OBSERVER_SESSION_TIMEOUT_MS: Final = 300_000
"""A leader forgets an observer that has not fetched for this long, when it next describes the quorum."""

_VERSION_WITH_DIRECTORIES: Final = 2
"""From this version on, the response has directory ids, addresses of the voters, and texts of errors."""

_TEXTS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: (
        "For requests intended only for the leader, this error indicates that the broker is not the current leader. "
        "For requests intended for any replica, this error indicates that the broker is not a replica of the topic "
        "partition."
    ),
}
"""The texts of Kafka's Errors, which its tools print."""


def handle_describe_quorum_request(
    replica: LocalReplica, received: ReceivedRequest, request: DescribeQuorumRequest
) -> DescribeQuorumResponse:
    """Describe the quorum as its leader.

    Each partition of a request that does not name exactly this log gets UNKNOWN_TOPIC_OR_PARTITION; a replica that does
    not lead answers NOT_LEADER_OR_FOLLOWER.

    Source: KafkaRaftClient#handleDescribeQuorumRequest.
    """
    if only_partition(replica, request.topics) is None:
        return _error_response(received, request, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    leadership = replica.leadership
    if leadership is None:
        return _error_response(received, request, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    forget_idle_observers(replica, leadership)
    voters = tuple(replica.voters.voters.values())
    described = DescribeQuorumResponsePartitionData(
        partition_index=0,
        error_code=ErrorCode.NONE,
        leader_id=replica.identity.key.id,
        leader_epoch=leadership.epoch,
        high_watermark=-1 if replica.high_watermark is None else replica.high_watermark,
        current_voters=tuple(_voter_state(replica, leadership, each, received.version) for each in voters),
        observers=_observer_states(replica, leadership, received.version),
    )
    topic = DescribeQuorumResponseTopicData(topic_name=replica.identity.topic_name, partitions=(described,))
    nodes = tuple(map(_node, voters)) if received.version >= _VERSION_WITH_DIRECTORIES else ()
    return DescribeQuorumResponse(error_code=ErrorCode.NONE, topics=(topic,), nodes=nodes)


def forget_idle_observers(replica: LocalReplica, leadership: Leadership) -> None:
    """Forget the observers that have not fetched for ``OBSERVER_SESSION_TIMEOUT_MS``.

    Source: LeaderState#clearInactiveObservers.
    """
    for key, known in list(leadership.progress.items()):
        is_idle = replica.now_ms - known.fetched_ms >= OBSERVER_SESSION_TIMEOUT_MS
        if is_idle and not replica.voters.is_voter(key):
            del leadership.progress[key]


class _Described(NamedTuple):
    """What is said of a replica: the end of its log, exclusive, and times of day; -1 is unknown."""

    end_offset: int = -1
    fetched_wall_ms: int = -1
    caught_up_wall_ms: int = -1


def _voter_state(
    replica: LocalReplica, leadership: Leadership, node: VoterNode, version: int
) -> DescribeQuorumResponseReplicaState:
    if node.is_voter(replica.identity.key):
        return _leader_state(replica, node.voter_key, version)
    known = leadership.progress_of(node)
    return _replica_state(node.voter_key, _Described() if known is None else _described(known), version)


def _observer_states(
    replica: LocalReplica, leadership: Leadership, version: int
) -> tuple[DescribeQuorumResponseReplicaState, ...]:
    """Return the replicas that fetch and are no voters; a leader that is to be removed is one of them."""
    observers = sorted((key, known) for key, known in leadership.progress.items() if not replica.voters.is_voter(key))
    states = [_replica_state(key, _described(known), version) for key, known in observers]
    if not replica.is_voter:
        states.append(_leader_state(replica, replica.identity.key, version))
    return tuple(states)


def _described(known: ReplicaProgress) -> _Described:
    return _Described(known.end_offset, known.fetched_wall_ms, known.caught_up_wall_ms)


def _leader_state(replica: LocalReplica, key: ReplicaKey, version: int) -> DescribeQuorumResponseReplicaState:
    """Return the leader's own state: it has all of its log, now."""
    end, wall_ms = replica.log.state.end_offset, replica.wall_ms
    return _replica_state(key, _Described(end, wall_ms, wall_ms), version)


def _replica_state(key: ReplicaKey, known: _Described, version: int) -> DescribeQuorumResponseReplicaState:
    directory_id = key.directory_id if version >= _VERSION_WITH_DIRECTORIES else None
    return DescribeQuorumResponseReplicaState(
        replica_id=key.id,
        replica_directory_id=directory_id or ZERO_UUID,
        log_end_offset=known.end_offset,
        last_fetch_timestamp=known.fetched_wall_ms,
        last_caught_up_timestamp=known.caught_up_wall_ms,
    )


def _node(voter: VoterNode) -> DescribeQuorumResponseNode:
    return DescribeQuorumResponseNode(node_id=voter.voter_key.id, listeners=listeners_of(voter.listeners))


def _error_response(
    received: ReceivedRequest, request: DescribeQuorumRequest, error: ErrorCode
) -> DescribeQuorumResponse:
    """Return an error for each partition of a request. As in Kafka, the numbers beside it are 0, and say nothing."""
    text = _TEXTS[error] if received.version >= _VERSION_WITH_DIRECTORIES else ""
    topics = tuple(
        DescribeQuorumResponseTopicData(
            topic_name=topic.topic_name,
            partitions=tuple(
                DescribeQuorumResponsePartitionData(
                    partition_index=each.partition_index,
                    error_code=error,
                    error_message=text,
                    leader_id=0,
                    leader_epoch=0,
                    high_watermark=0,
                    current_voters=(),
                    observers=(),
                )
                for each in topic.partitions
            ),
        )
        for topic in request.topics
    )
    return DescribeQuorumResponse(error_code=ErrorCode.NONE, topics=topics)
