# SPDX-License-Identifier: Apache-2.0
"""The RPCs of an election: Vote, BeginQuorumEpoch and EndQuorumEpoch.

Source: VoteRequestData, BeginQuorumEpochRequestData, EndQuorumEpochRequestData and their responses; KIP-595, KIP-853,
KIP-996.
"""

import uuid

import attrs

from raftlog.records.messages.raft.endpoints import LeaderEndpoint, NodeEndpoint
from raftlog.records.messages.schema import UnknownTags
from raftlog.uuid_text import ZERO_UUID


@attrs.frozen(kw_only=True)
class VoteRequestPartitionData:
    """Names a candidate and its log.

    Attributes:
        replica_epoch: the epoch of the sender: the one that it wants to lead, or its current one for a pre-vote.
        replica_id: the sender.
        replica_directory_id: the sender's directory; the zero uuid if it is not known.
        voter_directory_id: the receiver's directory; the zero uuid if it is not known.
        last_offset_epoch: the epoch of the last record in the sender's log.
        last_offset: the end of the sender's log, exclusive, despite its name.
        pre_vote: whether the sender only asks if it could win; the answer does not bind the voter.
    """

    partition_index: int
    replica_epoch: int
    replica_id: int
    replica_directory_id: uuid.UUID = ZERO_UUID
    voter_directory_id: uuid.UUID = ZERO_UUID
    last_offset_epoch: int
    last_offset: int
    pre_vote: bool = False
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class VoteRequestTopicData:
    """Groups the partitions of a topic."""

    topic_name: str
    partitions: tuple[VoteRequestPartitionData, ...]
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class VoteRequest:
    """Asks a voter for its vote, or for a pre-vote.

    Attributes:
        voter_id: the receiver; -1 if it is not known.
    """

    cluster_id: str | None = None
    voter_id: int = -1
    topics: tuple[VoteRequestTopicData, ...]
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class VoteResponsePartitionData:
    """Says whether a vote was granted, and which epoch and leader the voter knows.

    Attributes:
        leader_id: the leader that the voter knows; -1 if it knows none.
        leader_epoch: the voter's epoch.
    """

    partition_index: int
    error_code: int
    leader_id: int
    leader_epoch: int
    vote_granted: bool
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class VoteResponseTopicData:
    """Groups the partitions of a topic."""

    topic_name: str
    partitions: tuple[VoteResponsePartitionData, ...]
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class VoteResponse:
    """Answers a VoteRequest; with an error for the whole request, ``topics`` is empty."""

    error_code: int
    topics: tuple[VoteResponseTopicData, ...]
    node_endpoints: tuple[NodeEndpoint, ...] = ()
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class BeginQuorumEpochRequestPartitionData:
    """Names a new leader and its epoch.

    Attributes:
        voter_directory_id: the receiver's directory; the zero uuid if it is not known.
        leader_id: the sender.
    """

    partition_index: int
    voter_directory_id: uuid.UUID = ZERO_UUID
    leader_id: int
    leader_epoch: int
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class BeginQuorumEpochRequestTopicData:
    """Groups the partitions of a topic."""

    topic_name: str
    partitions: tuple[BeginQuorumEpochRequestPartitionData, ...]
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class BeginQuorumEpochRequest:
    """Tells a voter who was elected leader.

    Attributes:
        voter_id: the receiver; -1 if it is not known.
    """

    cluster_id: str | None = None
    voter_id: int = -1
    topics: tuple[BeginQuorumEpochRequestTopicData, ...]
    leader_endpoints: tuple[LeaderEndpoint, ...] = ()
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class BeginQuorumEpochResponsePartitionData:
    """Says which epoch and leader the voter knows; a ``leader_id`` of -1 is none."""

    partition_index: int
    error_code: int
    leader_id: int
    leader_epoch: int
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class BeginQuorumEpochResponseTopicData:
    """Groups the partitions of a topic."""

    topic_name: str
    partitions: tuple[BeginQuorumEpochResponsePartitionData, ...]
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class BeginQuorumEpochResponse:
    """Answers a BeginQuorumEpochRequest; with an error for the whole request, ``topics`` is empty."""

    error_code: int
    topics: tuple[BeginQuorumEpochResponseTopicData, ...]
    node_endpoints: tuple[NodeEndpoint, ...] = ()
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class EndQuorumEpochRequestReplicaInfo:
    """Names a voter that the resigning leader prefers as its successor."""

    candidate_id: int
    candidate_directory_id: uuid.UUID
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class EndQuorumEpochRequestPartitionData:
    """Names the leader that resigns, and its preferred successors, the best first.

    Attributes:
        leader_id: the sender.
        leader_epoch: the epoch that ends.
        preferred_successors: their ids, for version 0.
        preferred_candidates: their ids and directories, for version 1 and later.
    """

    partition_index: int
    leader_id: int
    leader_epoch: int
    preferred_successors: tuple[int, ...] = ()
    preferred_candidates: tuple[EndQuorumEpochRequestReplicaInfo, ...] = ()
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class EndQuorumEpochRequestTopicData:
    """Groups the partitions of a topic."""

    topic_name: str
    partitions: tuple[EndQuorumEpochRequestPartitionData, ...]
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class EndQuorumEpochRequest:
    """Tells a voter that the leader resigns, so that an election can start at once."""

    cluster_id: str | None = None
    topics: tuple[EndQuorumEpochRequestTopicData, ...]
    leader_endpoints: tuple[LeaderEndpoint, ...] = ()
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class EndQuorumEpochResponsePartitionData:
    """Says which epoch and leader the voter knows; a ``leader_id`` of -1 is none."""

    partition_index: int
    error_code: int
    leader_id: int
    leader_epoch: int
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class EndQuorumEpochResponseTopicData:
    """Groups the partitions of a topic."""

    topic_name: str
    partitions: tuple[EndQuorumEpochResponsePartitionData, ...]
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class EndQuorumEpochResponse:
    """Answers an EndQuorumEpochRequest; with an error for the whole request, ``topics`` is empty."""

    error_code: int
    topics: tuple[EndQuorumEpochResponseTopicData, ...]
    node_endpoints: tuple[NodeEndpoint, ...] = ()
    unknown_tags: UnknownTags = ()
