# SPDX-License-Identifier: Apache-2.0
"""Makes requests to a replica, and responses to its requests, that follow its state.

Epochs are near the replica's, logs end near its log, and responses answer what was asked. Random junk would get no
further than ``FENCED_LEADER_EPOCH``.
"""

import random
from collections.abc import Sequence

from raftlog.log.replicated_log import Isolation
from raftlog.quorum.roles.roles import leader_id
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.batches.accumulator import BatchAccumulator
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
from raftlog.records.messages.raft.endpoints import LeaderEndpoint, NodeEndpoint
from raftlog.records.messages.raft.error_codes import ErrorCode
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
)
from raftlog.records.messages.raft.raft_messages import RaftRequest, RaftResponse
from raftlog.records.messages.raft.voter_messages import (
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
    UpdateRaftVoterResponseCurrentLeader,
)
from raftlog.uuid_text import ZERO_UUID
from raftlog.voters.voter_set import ReplicaKey
from tests.quorum.single_replica import SingleReplica, replica_key

TOPIC = "metadata"
LOCAL = replica_key(1)


class RaftInputs:
    """Draws messages for a replica.

    Args:
        seeded: of all choices.
        core: the replica.
        identity: of the replica.
        voter_ids: of the voters that its log or configuration names.
    """

    def __init__(
        self, seeded: random.Random, core: SingleReplica, identity: ReplicaIdentity, voter_ids: Sequence[int]
    ) -> None:
        self.random = seeded
        self.core = core
        self.identity = identity
        self.voter_ids = voter_ids
        self.is_favoured = seeded.random() < 0.5
        """Whether most voters vote for this replica, and few others act."""

    def _epoch(self) -> int:
        return max(0, self.core.raft.role.epoch + self.random.choice((-1, 0, 0, 0, 0, 1, 1, 2)))

    def _other(self) -> ReplicaKey:
        return self.random.choice([replica_key(each) for each in (2, 3, 4, 5)])

    def _cluster(self) -> str | None:
        return self.random.choice([self.identity.cluster_id] * 12 + [None, "other"])

    def _addressee(self) -> tuple[int, ReplicaKey]:
        choices = [(LOCAL.id, LOCAL)] * 10 + [(-1, ReplicaKey(1)), (LOCAL.id, ReplicaKey(1)), (2, LOCAL)]
        return self.random.choice([*choices, (LOCAL.id, replica_key(1, 9))])

    def vote(self) -> VoteRequest:
        """Return a candidate's request."""
        epoch, candidate, (voter_id, voter) = self._epoch(), self._other(), self._addressee()
        if self.random.random() < 0.05:
            candidate = self.random.choice((replica_key(2, 7), ReplicaKey(3), ReplicaKey(-1)))
        log = self.core.log
        offset = log.end_offset.offset + self.random.choice((-1, 0, 0, 0, 1))
        last = log.last_fetched_epoch + self.random.choice((-1, 0, 0, 0, 1))
        partition = VoteRequestPartitionData(
            partition_index=0 if self.random.random() < 0.97 else 1,
            replica_epoch=epoch,
            replica_id=candidate.id,
            replica_directory_id=candidate.directory_id or ZERO_UUID,
            voter_directory_id=voter.directory_id or ZERO_UUID,
            last_offset_epoch=last,
            last_offset=offset,
            pre_vote=self.random.random() < 0.4,
        )
        topic = VoteRequestTopicData(topic_name=TOPIC, partitions=(partition,))
        return VoteRequest(cluster_id=self._cluster(), voter_id=voter_id, topics=(topic,))

    def _leader_of(self, epoch: int) -> int:
        """Return a leader for an epoch: the known one, as two leaders of one epoch are a fault that Kafka dies of."""
        known = leader_id(self.core.raft.role)
        is_known = epoch == self.core.raft.role.epoch and known is not None
        if is_known and self.random.random() < 0.99:
            assert known is not None
            return known
        return self.random.choice([each for each in self.voter_ids if each != LOCAL.id] or [2])

    def begin(self) -> BeginQuorumEpochRequest | None:
        """Return a leader's announcement; None if only this replica can be the leader."""
        epoch, (voter_id, voter) = self._epoch(), self._addressee()
        leader = self._leader_of(epoch)
        if leader == LOCAL.id:
            return None
        partition = BeginQuorumEpochRequestPartitionData(
            partition_index=0, voter_directory_id=voter.directory_id or ZERO_UUID, leader_id=leader, leader_epoch=epoch
        )
        topic = BeginQuorumEpochRequestTopicData(topic_name=TOPIC, partitions=(partition,))
        endpoint = LeaderEndpoint(name=self.identity.listener, host="localhost", port=9990 + leader)
        more = LeaderEndpoint(name="OTHER", host="elsewhere", port=1)
        unnamed = () if leader in self.voter_ids else (endpoint,)
        endpoints = self.random.choice(((endpoint,), (endpoint,), (endpoint, more), unnamed))
        cluster = self._cluster()
        return BeginQuorumEpochRequest(
            cluster_id=cluster, voter_id=voter_id, topics=(topic,), leader_endpoints=endpoints
        )

    def end(self) -> EndQuorumEpochRequest | None:
        """Return a leader's resignation; None if only this replica can be the leader."""
        epoch = self._epoch()
        leader = self._leader_of(epoch)
        if leader == LOCAL.id:
            return None
        keys = [LOCAL, *(replica_key(each) for each in (2, 3, 4) if each != leader)]
        chosen = self.random.sample(keys, self.random.randint(0, len(keys)))
        candidates = tuple(
            EndQuorumEpochRequestReplicaInfo(
                candidate_id=each.id, candidate_directory_id=each.directory_id or ZERO_UUID
            )
            for each in chosen
        )
        partition = EndQuorumEpochRequestPartitionData(
            partition_index=0, leader_id=leader, leader_epoch=epoch, preferred_candidates=candidates
        )
        topic = EndQuorumEpochRequestTopicData(topic_name=TOPIC, partitions=(partition,))
        endpoint = LeaderEndpoint(name=self.identity.listener, host="localhost", port=9990 + leader)
        endpoints = self.random.choice(((endpoint,), () if leader in self.voter_ids else (endpoint,)))
        return EndQuorumEpochRequest(cluster_id=self._cluster(), topics=(topic,), leader_endpoints=endpoints)

    def fetch(self) -> FetchRequest:
        """Return the Fetch of a replica that is near this one's log end."""
        log, draw = self.core.log, self.random
        others = [each for each in self.voter_ids if each != LOCAL.id] or [2]
        key = replica_key(draw.choice(others))
        if draw.random() < 0.2:
            key = draw.choice([*(replica_key(each) for each in (1, 2, 3, 4, 5)), replica_key(2, 7), ReplicaKey(-1)])
        ends = self._batch_ends()
        offset = draw.choice([*ends, *ends[-2:], *[ends[-1]] * 4, ends[-1] + 1])
        fetched_epoch = log.epoch_at_offset(min(offset, ends[-1]) - 1) if offset > 0 and ends[-1] else 0
        if draw.random() < 0.15:
            # Below the log's first epoch, Kafka's mock log answers otherwise than its real one.
            first = log.epoch_at_offset(0) if ends[-1] else 0
            fetched_epoch = max(first, fetched_epoch + draw.choice((-1, 1)))
        epoch = self.core.raft.role.epoch
        if draw.random() < 0.1:
            epoch += draw.choice((-1, 1))
        known = -1 if self.core.raft.high_watermark is None else self.core.raft.high_watermark
        partition = FetchRequestFetchPartition(
            partition=0 if draw.random() < 0.98 else 1,
            current_leader_epoch=epoch,
            fetch_offset=offset,
            last_fetched_epoch=fetched_epoch,
            log_start_offset=-1,
            partition_max_bytes=draw.choice((0, 1 << 20)),
            replica_directory_id=key.directory_id or ZERO_UUID,
            high_watermark=draw.choice((known, known, known, known - 1 if known >= 0 else -1, 2**63 - 1)),
        )
        topic = FetchRequestFetchTopic(topic_id=self.identity.topic_id, partitions=(partition,))
        return FetchRequest(
            cluster_id=self._cluster(),
            replica_state=FetchRequestReplicaState(replica_id=key.id, replica_epoch=-1),
            max_wait_ms=draw.choice((0, 500, 500, 3000, 3000, 60_000)) if draw.random() < 0.97 else -1,
            min_bytes=0,
            max_bytes=draw.choice((8 << 20, 100)),
            topics=(topic,),
        )

    # Responses to the replica's own requests

    def response(self, request: RaftRequest) -> RaftResponse:
        """Return a response of a peer or a bootstrap server."""
        is_calm = self.is_favoured and self.random.random() < 0.8
        epoch = self.core.raft.role.epoch if is_calm else self._epoch()
        leader = -1 if self.random.random() < 0.5 else self._leader_of(epoch)
        known = leader_id(self.core.raft.role)
        if epoch == self.core.raft.role.epoch and known is not None and leader >= 0:
            leader = known
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
                    partition_index=0, error_code=error, leader_id=leader, leader_epoch=epoch
                )
                begin_topic = BeginQuorumEpochResponseTopicData(topic_name=TOPIC, partitions=(begin_partition,))
                return BeginQuorumEpochResponse(
                    error_code=0, topics=(begin_topic,), node_endpoints=self._endpoints(leader, is_there=has_endpoint)
                )
            case EndQuorumEpochRequest():
                partition = EndQuorumEpochResponsePartitionData(
                    partition_index=0, error_code=error, leader_id=leader, leader_epoch=epoch
                )
                topic = EndQuorumEpochResponseTopicData(topic_name=TOPIC, partitions=(partition,))
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
        if is_granted:
            leader, has_endpoint = -1, False
        partition = VoteResponsePartitionData(
            partition_index=0, error_code=error, leader_id=leader, leader_epoch=epoch, vote_granted=is_granted
        )
        topic = VoteResponseTopicData(topic_name=TOPIC, partitions=(partition,))
        endpoints = self._endpoints(leader, is_there=has_endpoint)
        return VoteResponse(error_code=0, topics=(topic,), node_endpoints=endpoints)

    def _fetch_response(self, epoch: int, leader: int, error: int, *, has_endpoint: bool) -> FetchResponse:
        role, log = self.core.raft.role, self.core.log
        diverging, records, mark = FetchResponseEpochEndOffset(), b"", -1
        is_leader = type(role).__name__ == "Follower" and epoch == role.epoch and error == ErrorCode.NONE
        if is_leader:
            leader, has_endpoint = leader_id(role) or 0, True
            ends = self._batch_ends()
            known = log.state.high_watermark
            mark = self.random.choice([-1, *(each for each in ends if each >= known)])
            choice, cuts = self.random.random(), [each for each in ends if each > 0 and known <= each]
            if choice < 0.2 and cuts:
                cut = self.random.choice(cuts)
                diverging = FetchResponseEpochEndOffset(epoch=log.epoch_at_offset(cut - 1), end_offset=cut)
            elif choice < 0.7:
                records = self._records(log.end_offset.offset, max(log.last_fetched_epoch, 1), epoch)
        elif error == ErrorCode.NONE:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        partition = FetchResponsePartitionData(
            partition_index=0,
            error_code=error,
            high_watermark=mark,
            log_start_offset=0,
            diverging_epoch=diverging,
            current_leader=FetchResponseLeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch),
            aborted_transactions=(),
            records=records,
        )
        topic = FetchResponseFetchableTopicResponse(topic_id=self.identity.topic_id, partitions=(partition,))
        endpoints = (
            (FetchResponseNodeEndpoint(node_id=leader, host="localhost", port=9990 + leader),) if has_endpoint else ()
        )
        return FetchResponse(throttle_time_ms=0, responses=(topic,), node_endpoints=endpoints)

    def _batch_ends(self) -> list[int]:
        """Return where the log may be cut, or committed up to: Kafka's mock log holds whole batches."""
        return [0, *(each.next_offset for each in self.core.log.batches(isolation=Isolation.UNCOMMITTED))]

    def _records(self, offset: int, least_epoch: int, epoch: int) -> bytes:
        """Return one batch of an epoch that a leader of ``epoch`` may send."""
        if epoch < least_epoch:
            return b""
        batches = BatchAccumulator(self.random.randint(least_epoch, epoch), offset)
        batches.append(batches.epoch, [b"r"] * self.random.randint(1, 3), self.core.now_ms)
        batches.force_drain()
        with batches.drain() as drained:
            return b"".join(bytes(each.data) for each in drained)
