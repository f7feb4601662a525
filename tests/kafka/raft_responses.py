# SPDX-License-Identifier: Apache-2.0
"""Makes responses to the requests of a replica, which answer what was asked."""

import uuid

from raftlog.quorum.roles.roles import Candidate, Follower, leader_id
from raftlog.records.messages.raft.api_versions_messages import ApiVersionsRequest
from raftlog.records.messages.raft.election_messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    BeginQuorumEpochResponsePartitionData,
    BeginQuorumEpochResponseTopicData,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    EndQuorumEpochResponsePartitionData,
    EndQuorumEpochResponseTopicData,
    VoteRequest,
    VoteResponse,
    VoteResponsePartitionData,
    VoteResponseTopicData,
)
from raftlog.records.messages.raft.endpoints import NodeEndpoint
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.fetch_messages import (
    FetchRequest,
    FetchResponse,
    FetchResponseEpochEndOffset,
    FetchResponseFetchableTopicResponse,
    FetchResponseLeaderIdAndEpoch,
    FetchResponseNodeEndpoint,
    FetchResponsePartitionData,
    FetchResponseSnapshotId,
    FetchSnapshotRequest,
)
from raftlog.records.messages.raft.raft_messages import RaftRequest, RaftResponse
from raftlog.records.messages.raft.voter_messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
    UpdateRaftVoterResponseCurrentLeader,
)
from tests.kafka.raft_draws import LOCAL
from tests.kafka.raft_snapshot_inputs import RaftSnapshotInputs


class RaftResponses(RaftSnapshotInputs):
    """Draws responses of peers and of bootstrap servers."""

    def response(self, request: RaftRequest) -> RaftResponse:
        """Return a response of a peer or a bootstrap server."""
        match request:
            case ApiVersionsRequest():
                return self.versions_response()
            case FetchSnapshotRequest():
                return self.snapshot_response(request)
            case AddRaftVoterRequest():
                return AddRaftVoterResponse(throttle_time_ms=0, error_code=self.joining_error(), error_message=None)
            case RemoveRaftVoterRequest():
                return RemoveRaftVoterResponse(throttle_time_ms=0, error_code=self.joining_error(), error_message=None)
        return self._replica_response(request)

    def _replica_response(self, request: RaftRequest) -> RaftResponse:
        """Return a response that says which epoch and which leader the peer knows."""
        is_calm = self.is_favoured and self.random.random() < 0.8
        epoch = self.core.raft.role.epoch if is_calm else self.epoch()
        leader = -1 if self.random.random() < 0.5 else self.leader_of(epoch)
        known = leader_id(self.core.raft.role)
        if epoch == self.core.raft.role.epoch and known is not None and leader >= 0:
            leader = known
        if known is None and not isinstance(self.core.raft.role, Candidate) and self.random.random() < 0.003:
            leader = LOCAL.id  # Kafka dies of it.
        error = ErrorCode.NONE
        if epoch > self.core.raft.role.epoch:
            error = ErrorCode.FENCED_LEADER_EPOCH
        elif self.random.random() < 0.1:
            error = self.random.choice(
                (ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.INVALID_VOTER_KEY)
            )
        if isinstance(request, UpdateRaftVoterRequest) and epoch <= self.core.raft.role.epoch:
            error = self.random.choice((error, error, ErrorCode.UNSUPPORTED_VERSION))
        has_endpoint = leader >= 0 and (leader not in self.voter_ids or self.random.random() < 0.8)
        match request:
            case VoteRequest():
                return self._vote_response(epoch, leader, error, has_endpoint=has_endpoint)
            case FetchRequest():
                return self._fetch_response(epoch, leader, error, has_endpoint=has_endpoint)
            case BeginQuorumEpochRequest():
                begin_partition = BeginQuorumEpochResponsePartitionData(
                    partition_index=self.partition_index(), error_code=error, leader_id=leader, leader_epoch=epoch
                )
                begin_topic = BeginQuorumEpochResponseTopicData(
                    topic_name=self.topic_name(), partitions=(begin_partition,)
                )
                return BeginQuorumEpochResponse(
                    error_code=0, topics=(begin_topic,), node_endpoints=self._endpoints(leader, is_there=has_endpoint)
                )
            case EndQuorumEpochRequest():
                partition = EndQuorumEpochResponsePartitionData(
                    partition_index=self.partition_index(), error_code=error, leader_id=leader, leader_epoch=epoch
                )
                topic = EndQuorumEpochResponseTopicData(topic_name=self.topic_name(), partitions=(partition,))
                return EndQuorumEpochResponse(
                    error_code=0, topics=(topic,), node_endpoints=self._endpoints(leader, is_there=has_endpoint)
                )
            case UpdateRaftVoterRequest():
                where = ("localhost", 9990 + leader) if has_endpoint else ("", 0)
                current = UpdateRaftVoterResponseCurrentLeader(
                    leader_id=leader, leader_epoch=epoch, host=where[0], port=where[1]
                )
                return UpdateRaftVoterResponse(throttle_time_ms=0, error_code=error, current_leader=current)
        raise TypeError(request)

    def _endpoints(self, leader: int, *, is_there: bool) -> tuple[NodeEndpoint, ...]:
        return (NodeEndpoint(node_id=leader, host="localhost", port=9990 + leader),) if is_there else ()

    def _vote_response(self, epoch: int, leader: int, error: int, *, has_endpoint: bool) -> VoteResponse:
        if self.random.random() < 0.03:
            top = self.random.choice((ErrorCode.UNSUPPORTED_VERSION, ErrorCode.BROKER_NOT_AVAILABLE))
            return VoteResponse(error_code=top, topics=())
        is_granted = error == ErrorCode.NONE and self.random.random() < (0.95 if self.is_favoured else 0.6)
        role = self.core.raft.role
        if isinstance(role, Candidate) and self.core.log.last_fetched_epoch == role.epoch:
            # Another replica has led this epoch, so no majority can grant its votes.
            is_granted = False
        if is_granted:
            leader, has_endpoint = -1, False
        partition = VoteResponsePartitionData(
            partition_index=self.partition_index(),
            error_code=error,
            leader_id=leader,
            leader_epoch=epoch,
            vote_granted=is_granted,
        )
        topic = VoteResponseTopicData(topic_name=self.topic_name(), partitions=(partition,))
        endpoints = self._endpoints(leader, is_there=has_endpoint)
        return VoteResponse(error_code=0, topics=(topic,), node_endpoints=endpoints)

    def _fetch_response(self, epoch: int, leader: int, error: int, *, has_endpoint: bool) -> FetchResponse:
        role, log = self.core.raft.role, self.core.log
        diverging, records, mark, snapshot_id = FetchResponseEpochEndOffset(), b"", -1, FetchResponseSnapshotId()
        is_leader = type(role).__name__ == "Follower" and epoch == role.epoch and error == ErrorCode.NONE
        if is_leader:
            leader, has_endpoint = leader_id(role) or 0, True
            ends = self.batch_ends()
            known = log.state.high_watermark
            mark = self.random.choice([-1, *(each for each in ends if each >= known)])
            # A snapshot that is fetched must still be ahead of the log when it is there.
            is_restarting = isinstance(role, Follower) and role.fetching_snapshot is not None
            choice, cuts = self.random.random(), [each for each in ends if each > 0 and known <= each]
            if choice < 0.2 and cuts:
                cut = self.random.choice(cuts)
                diverging = FetchResponseEpochEndOffset(epoch=self.epoch_before(cut), end_offset=cut)
            elif choice < 0.23:
                offered = self.offered_snapshot(epoch)
                if offered is not None:
                    snapshot_id = FetchResponseSnapshotId(end_offset=offered.offset, epoch=offered.epoch)
            elif choice < 0.24:
                end, last = self.random.choice(((log.end_offset.offset + 1, -1), (-1, epoch)))
                snapshot_id = FetchResponseSnapshotId(end_offset=end, epoch=last)
            elif choice < 0.7 and not is_restarting:
                records = self.records(log.end_offset.offset, max(log.last_fetched_epoch, 1), epoch)
        elif error == ErrorCode.NONE:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        partition = FetchResponsePartitionData(
            partition_index=self.partition_index(),
            error_code=error,
            high_watermark=mark,
            log_start_offset=0,
            diverging_epoch=diverging,
            snapshot_id=snapshot_id,
            current_leader=FetchResponseLeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch),
            aborted_transactions=(),
            records=records,
        )
        topic_id = self.identity.topic_id if self.random.random() < 0.98 else uuid.UUID(int=7)
        topic = FetchResponseFetchableTopicResponse(topic_id=topic_id, partitions=(partition,))
        endpoints = (
            (FetchResponseNodeEndpoint(node_id=leader, host="localhost", port=9990 + leader),) if has_endpoint else ()
        )
        return FetchResponse(throttle_time_ms=0, responses=(topic,), node_endpoints=endpoints)
