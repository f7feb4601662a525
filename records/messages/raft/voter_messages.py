# SPDX-License-Identifier: Apache-2.0
"""The RPCs about a quorum's voters: AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter and DescribeQuorum.

Source: AddRaftVoterRequestData, RemoveRaftVoterRequestData, UpdateRaftVoterRequestData, DescribeQuorumRequestData and
their responses; KIP-595, KIP-836, KIP-853.
"""

import uuid

import attrs

from raftlog.records.messages.raft.endpoints import Listener
from raftlog.records.messages.schema import UnknownTags
from raftlog.uuid_text import ZERO_UUID


@attrs.frozen(kw_only=True)
class AddRaftVoterRequest:
    """Asks the leader to add a voter.

    Attributes:
        timeout_ms: how long the leader may take.
        listeners: where the new voter listens.
        ack_when_committed: whether the answer waits until the new voter set is committed, or only until the leader has
            written it.
    """

    cluster_id: str | None
    timeout_ms: int
    voter_id: int
    voter_directory_id: uuid.UUID
    listeners: tuple[Listener, ...]
    ack_when_committed: bool = True
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class AddRaftVoterResponse:
    """Answers an AddRaftVoterRequest."""

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class RemoveRaftVoterRequest:
    """Asks the leader to remove a voter."""

    cluster_id: str | None
    voter_id: int
    voter_directory_id: uuid.UUID
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class RemoveRaftVoterResponse:
    """Answers a RemoveRaftVoterRequest."""

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class UpdateRaftVoterRequestKRaftVersionFeature:
    """Names the levels of kraft.version that a voter supports, both ends inclusive."""

    min_supported_version: int
    max_supported_version: int
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class UpdateRaftVoterRequest:
    """Reports a voter's addresses and supported levels of kraft.version to the leader.

    Attributes:
        current_leader_epoch: the sender's epoch.
        voter_id: the sender.
    """

    cluster_id: str | None
    current_leader_epoch: int
    voter_id: int
    voter_directory_id: uuid.UUID
    listeners: tuple[Listener, ...]
    kraft_version_feature: UpdateRaftVoterRequestKRaftVersionFeature
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class UpdateRaftVoterResponseCurrentLeader:
    """Names the leader that the answering replica knows, and its address; -1 is none."""

    leader_id: int = -1
    leader_epoch: int = -1
    host: str
    port: int
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class UpdateRaftVoterResponse:
    """Answers an UpdateRaftVoterRequest."""

    throttle_time_ms: int
    error_code: int
    current_leader: UpdateRaftVoterResponseCurrentLeader = UpdateRaftVoterResponseCurrentLeader(host="", port=0)
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class DescribeQuorumRequestPartitionData:
    """Names a partition."""

    partition_index: int
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class DescribeQuorumRequestTopicData:
    """Groups the partitions of a topic."""

    topic_name: str
    partitions: tuple[DescribeQuorumRequestPartitionData, ...]
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class DescribeQuorumRequest:
    """Asks the leader about the voters and observers of a quorum."""

    topics: tuple[DescribeQuorumRequestTopicData, ...]
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class DescribeQuorumResponseReplicaState:
    """Reports what the leader knows of a replica.

    Attributes:
        replica_directory_id: the zero uuid if it is not known.
        log_end_offset: the end of the replica's log, exclusive; -1 if it is not known.
        last_fetch_timestamp: when the replica last fetched, in ms; -1 if it is not known, and for the leader.
        last_caught_up_timestamp: when the replica last had all of the leader's log, in ms; -1 if it is not known.
    """

    replica_id: int
    replica_directory_id: uuid.UUID = ZERO_UUID
    log_end_offset: int
    last_fetch_timestamp: int = -1
    last_caught_up_timestamp: int = -1
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class DescribeQuorumResponsePartitionData:
    """Reports the leader, the high watermark, and what the leader knows of each replica.

    Attributes:
        high_watermark: the leader's, exclusive; -1 if it is not known.
    """

    partition_index: int
    error_code: int
    error_message: str | None = ""
    leader_id: int
    leader_epoch: int
    high_watermark: int
    current_voters: tuple[DescribeQuorumResponseReplicaState, ...]
    observers: tuple[DescribeQuorumResponseReplicaState, ...]
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class DescribeQuorumResponseTopicData:
    """Groups the partitions of a topic."""

    topic_name: str
    partitions: tuple[DescribeQuorumResponsePartitionData, ...]
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class DescribeQuorumResponseNode:
    """Names the address of a voter or observer."""

    node_id: int
    listeners: tuple[Listener, ...]
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class DescribeQuorumResponse:
    """Answers a DescribeQuorumRequest."""

    error_code: int
    error_message: str | None = ""
    topics: tuple[DescribeQuorumResponseTopicData, ...]
    nodes: tuple[DescribeQuorumResponseNode, ...] = ()
    unknown_tags: UnknownTags = ()
