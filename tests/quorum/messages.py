# SPDX-License-Identifier: Apache-2.0
"""Requests to a replica of a quorum, and responses to its requests, with few words."""

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.seam.identity import METADATA_TOPIC_ID
from raftlog.records.batches.accumulator import BatchAccumulator
from raftlog.records.files.file_names import METADATA_TOPIC
from raftlog.records.messages.raft.api_versions_messages import (
    ApiVersionsResponse,
    ApiVersionsResponseSupportedFeatureKey,
)
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
    VoteRequest,
    VoteRequestPartitionData,
    VoteRequestTopicData,
    VoteResponse,
    VoteResponsePartitionData,
    VoteResponseTopicData,
)
from raftlog.records.messages.raft.endpoints import LeaderEndpoint, Listener, NodeEndpoint, SnapshotId
from raftlog.records.messages.raft.fetch_messages import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchRequestReplicaState,
    FetchResponse,
    FetchResponseEpochEndOffset,
    FetchResponseFetchableTopicResponse,
    FetchResponseLeaderIdAndEpoch,
    FetchResponseNodeEndpoint,
    FetchResponsePartitionData,
    FetchResponseSnapshotId,
    FetchSnapshotRequest,
    FetchSnapshotRequestPartitionSnapshot,
    FetchSnapshotRequestTopicSnapshot,
    FetchSnapshotResponse,
    FetchSnapshotResponseLeaderIdAndEpoch,
    FetchSnapshotResponsePartitionSnapshot,
    FetchSnapshotResponseTopicSnapshot,
)
from raftlog.records.messages.raft.voter_messages import (
    AddRaftVoterRequest,
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
    UpdateRaftVoterRequestKRaftVersionFeature,
)
from raftlog.uuid_text import ZERO_UUID
from raftlog.voters.voter_set import ReplicaKey
from tests.quorum.single_replica import LISTENER, replica_key

CLUSTER = "c"
LOCAL = replica_key(1)


def vote_request(
    candidate: ReplicaKey,
    epoch: int,
    log_end: OffsetAndEpoch,
    *,
    is_pre_vote: bool = False,
    to: ReplicaKey = LOCAL,
    cluster_id: str | None = CLUSTER,
) -> VoteRequest:
    """Return a candidate's request."""
    partition = VoteRequestPartitionData(
        partition_index=0,
        replica_epoch=epoch,
        replica_id=candidate.id,
        replica_directory_id=candidate.directory_id or ZERO_UUID,
        voter_directory_id=to.directory_id or ZERO_UUID,
        last_offset_epoch=log_end.epoch,
        last_offset=log_end.offset,
        pre_vote=is_pre_vote,
    )
    topic = VoteRequestTopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
    return VoteRequest(cluster_id=cluster_id, voter_id=to.id, topics=(topic,))


def vote_response(*, is_granted: bool, epoch: int, leader: int = -1, error: int = 0) -> VoteResponse:
    """Return a voter's answer; it knows where the leader listens."""
    partition = VoteResponsePartitionData(
        partition_index=0, error_code=error, leader_id=leader, leader_epoch=epoch, vote_granted=is_granted
    )
    topic = VoteResponseTopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
    return VoteResponse(error_code=0, topics=(topic,), node_endpoints=_node_endpoints(leader))


def begin_quorum_epoch_request(
    leader: int, epoch: int, *, to: ReplicaKey = LOCAL, cluster_id: str | None = CLUSTER
) -> BeginQuorumEpochRequest:
    """Return a leader's announcement."""
    partition = BeginQuorumEpochRequestPartitionData(
        partition_index=0, voter_directory_id=to.directory_id or ZERO_UUID, leader_id=leader, leader_epoch=epoch
    )
    topic = BeginQuorumEpochRequestTopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
    endpoints = (LeaderEndpoint(name=LISTENER, host="localhost", port=9990 + leader),)
    return BeginQuorumEpochRequest(cluster_id=cluster_id, voter_id=to.id, topics=(topic,), leader_endpoints=endpoints)


def begin_quorum_epoch_response(epoch: int, leader: int = -1, error: int = 0) -> BeginQuorumEpochResponse:
    """Return a voter's acknowledgement of a leader."""
    partition = BeginQuorumEpochResponsePartitionData(
        partition_index=0, error_code=error, leader_id=leader, leader_epoch=epoch
    )
    topic = BeginQuorumEpochResponseTopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
    return BeginQuorumEpochResponse(error_code=0, topics=(topic,), node_endpoints=_node_endpoints(leader))


def end_quorum_epoch_request(
    leader: int, epoch: int, candidates: tuple[ReplicaKey, ...] = (), *, cluster_id: str | None = CLUSTER
) -> EndQuorumEpochRequest:
    """Return a leader's resignation."""
    infos = tuple(
        EndQuorumEpochRequestReplicaInfo(candidate_id=each.id, candidate_directory_id=each.directory_id or ZERO_UUID)
        for each in candidates
    )
    partition = EndQuorumEpochRequestPartitionData(
        partition_index=0, leader_id=leader, leader_epoch=epoch, preferred_candidates=infos
    )
    topic = EndQuorumEpochRequestTopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
    return EndQuorumEpochRequest(cluster_id=cluster_id, topics=(topic,))


def end_quorum_epoch_response(epoch: int, leader: int = -1, error: int = 0) -> EndQuorumEpochResponse:
    """Return a voter's acknowledgement of a resignation."""
    partition = EndQuorumEpochResponsePartitionData(
        partition_index=0, error_code=error, leader_id=leader, leader_epoch=epoch
    )
    topic = EndQuorumEpochResponseTopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
    return EndQuorumEpochResponse(error_code=0, topics=(topic,), node_endpoints=_node_endpoints(leader))


def fetch_request(
    replica: ReplicaKey,
    epoch: int,
    log_end: OffsetAndEpoch,
    *,
    max_wait_ms: int = 500,
    high_watermark: int = 2**63 - 1,
    partition: int = 0,
    cluster_id: str | None = CLUSTER,
) -> FetchRequest:
    """Return the Fetch of a replica that has flushed its log up to an end."""
    asked = FetchRequestFetchPartition(
        partition=partition,
        current_leader_epoch=epoch,
        fetch_offset=log_end.offset,
        last_fetched_epoch=log_end.epoch,
        partition_max_bytes=0,
        replica_directory_id=replica.directory_id or ZERO_UUID,
        high_watermark=high_watermark,
    )
    return FetchRequest(
        cluster_id=cluster_id,
        replica_state=FetchRequestReplicaState(replica_id=replica.id),
        max_wait_ms=max_wait_ms,
        min_bytes=0,
        topics=(FetchRequestFetchTopic(topic_id=METADATA_TOPIC_ID, partitions=(asked,)),),
    )


def fetch_response(
    epoch: int,
    leader: int = -1,
    *,
    error: int = 0,
    records: bytes = b"",
    high_watermark: int = -1,
    diverging: OffsetAndEpoch | None = None,
    snapshot_id: OffsetAndEpoch | None = None,
) -> FetchResponse:
    """Return a response to a Fetch; the peer knows where the leader listens."""
    end, named = FetchResponseEpochEndOffset(), FetchResponseSnapshotId()
    if snapshot_id is not None:
        named = FetchResponseSnapshotId(end_offset=snapshot_id.offset, epoch=snapshot_id.epoch)
    if diverging is not None:
        end = FetchResponseEpochEndOffset(epoch=diverging.epoch, end_offset=diverging.offset)
    partition = FetchResponsePartitionData(
        partition_index=0,
        error_code=error,
        high_watermark=high_watermark,
        log_start_offset=0,
        diverging_epoch=end,
        snapshot_id=named,
        current_leader=FetchResponseLeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch),
        aborted_transactions=(),
        records=records,
    )
    topic = FetchResponseFetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=(partition,))
    endpoints = () if leader < 0 else (FetchResponseNodeEndpoint(node_id=leader, host="localhost", port=9990 + leader),)
    return FetchResponse(throttle_time_ms=0, responses=(topic,), node_endpoints=endpoints)


def add_voter_request(
    voter: ReplicaKey,
    *,
    port: int | None = None,
    listener: str = LISTENER,
    cluster_id: str | None = CLUSTER,
    ack_when_committed: bool = True,
) -> AddRaftVoterRequest:
    """Return a request to add a voter. The leader does not look at its timeout."""
    return AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=1,
        voter_id=voter.id,
        voter_directory_id=voter.directory_id or ZERO_UUID,
        listeners=_listeners(voter, listener, port),
        ack_when_committed=ack_when_committed,
    )


def remove_voter_request(voter: ReplicaKey, *, cluster_id: str | None = CLUSTER) -> RemoveRaftVoterRequest:
    """Return a request to remove a voter."""
    directory_id = voter.directory_id or ZERO_UUID
    return RemoveRaftVoterRequest(cluster_id=cluster_id, voter_id=voter.id, voter_directory_id=directory_id)


def api_versions_response(levels: tuple[int, int] | None = (0, 1), error: int = 0) -> ApiVersionsResponse:
    """Return a node's answer: the levels of kraft.version that it supports, if any, and no APIs."""
    features: tuple[ApiVersionsResponseSupportedFeatureKey, ...] = ()
    if levels is not None:
        features = (
            ApiVersionsResponseSupportedFeatureKey(name="kraft.version", min_version=levels[0], max_version=levels[1]),
        )
    return ApiVersionsResponse(error_code=error, api_keys=(), supported_features=features)


def update_voter_request(
    voter: ReplicaKey,
    epoch: int,
    *,
    port: int | None = None,
    listener: str = LISTENER,
    levels: tuple[int, int] = (0, 1),
    cluster_id: str | None = CLUSTER,
) -> UpdateRaftVoterRequest:
    """Return what a voter reports of itself: it listens at ``localhost:9990 + id``, or at another port."""
    feature = UpdateRaftVoterRequestKRaftVersionFeature(
        min_supported_version=levels[0], max_supported_version=levels[1]
    )
    return UpdateRaftVoterRequest(
        cluster_id=cluster_id,
        current_leader_epoch=epoch,
        voter_id=voter.id,
        voter_directory_id=voter.directory_id or ZERO_UUID,
        listeners=_listeners(voter, listener, port),
        kraft_version_feature=feature,
    )


def _listeners(voter: ReplicaKey, listener: str, port: int | None) -> tuple[Listener, ...]:
    return (Listener(name=listener, host="localhost", port=9990 + voter.id if port is None else port),)


def describe_quorum_request(topic: str = METADATA_TOPIC) -> DescribeQuorumRequest:
    """Return a tool's question about the quorum."""
    partition = DescribeQuorumRequestPartitionData(partition_index=0)
    return DescribeQuorumRequest(topics=(DescribeQuorumRequestTopicData(topic_name=topic, partitions=(partition,)),))


def fetch_snapshot_request(
    replica: ReplicaKey,
    epoch: int,
    snapshot_id: OffsetAndEpoch,
    position: int = 0,
    *,
    max_bytes: int = 2**31 - 1,
    partition: int = 0,
    cluster_id: str | None = CLUSTER,
) -> FetchSnapshotRequest:
    """Return the request of a replica for bytes of a snapshot."""
    asked = FetchSnapshotRequestPartitionSnapshot(
        partition=partition,
        current_leader_epoch=epoch,
        snapshot_id=SnapshotId(end_offset=snapshot_id.offset, epoch=snapshot_id.epoch),
        position=position,
        replica_directory_id=replica.directory_id or ZERO_UUID,
    )
    topic = FetchSnapshotRequestTopicSnapshot(name=METADATA_TOPIC, partitions=(asked,))
    return FetchSnapshotRequest(cluster_id=cluster_id, replica_id=replica.id, max_bytes=max_bytes, topics=(topic,))


def fetch_snapshot_response(
    epoch: int,
    leader: int,
    snapshot_id: OffsetAndEpoch,
    position: int = 0,
    data: bytes = b"",
    size: int = 0,
    *,
    error: int = 0,
) -> FetchSnapshotResponse:
    """Return a leader's response with bytes of a snapshot of some size, or with an error."""
    partition = FetchSnapshotResponsePartitionSnapshot(
        index=0,
        error_code=error,
        snapshot_id=SnapshotId(end_offset=snapshot_id.offset, epoch=snapshot_id.epoch),
        current_leader=FetchSnapshotResponseLeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch),
        size=size,
        position=position,
        unaligned_records=data,
    )
    topic = FetchSnapshotResponseTopicSnapshot(name=METADATA_TOPIC, partitions=(partition,))
    endpoints = _node_endpoints(leader)
    return FetchSnapshotResponse(throttle_time_ms=0, error_code=0, topics=(topic,), node_endpoints=endpoints)


def _node_endpoints(leader: int) -> tuple[NodeEndpoint, ...]:
    return () if leader < 0 else (NodeEndpoint(node_id=leader, host="localhost", port=9990 + leader),)


def records_at(offset: int, epoch: int, count: int) -> bytes:
    """Return one batch of records without keys."""
    batches = BatchAccumulator(epoch, offset)
    batches.append(epoch, [b"r"] * count, 0)
    batches.force_drain()
    with batches.drain() as drained:
        return b"".join(bytes(each.data) for each in drained)
