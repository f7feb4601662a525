# SPDX-License-Identifier: Apache-2.0
"""Makes requests to a replica that follow its state.

Epochs are near the replica's, and logs end near its log. Random junk would get no further than
``FENCED_LEADER_EPOCH``.
"""

import uuid

from raftlog.records.messages.raft.election_messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochRequestPartitionData,
    BeginQuorumEpochRequestTopicData,
    EndQuorumEpochRequest,
    EndQuorumEpochRequestPartitionData,
    EndQuorumEpochRequestReplicaInfo,
    EndQuorumEpochRequestTopicData,
    VoteRequest,
    VoteRequestPartitionData,
    VoteRequestTopicData,
)
from raftlog.records.messages.raft.endpoints import LeaderEndpoint
from raftlog.records.messages.raft.fetch_messages import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchRequestReplicaState,
)
from raftlog.uuid_text import ZERO_UUID
from raftlog.voters.voter_set import ReplicaKey
from tests.kafka.raft_draws import LOCAL
from tests.kafka.raft_responses import RaftResponses
from tests.quorum.single_replica import replica_key


class RaftInputs(RaftResponses):
    """Draws requests to a replica, and responses to its own."""

    def vote(self) -> VoteRequest:
        """Return a candidate's request."""
        epoch, candidate, (voter_id, voter) = self.epoch(), self.other(), self.addressee()
        if self.random.random() < 0.05:
            candidate = self.random.choice((replica_key(2, 7), ReplicaKey(3), ReplicaKey(-1)))
        log = self.core.log
        offset = log.end_offset.offset + self.random.choice((-1, 0, 0, 0, 1))
        last = log.last_fetched_epoch + self.random.choice((-1, 0, 0, 0, 1))
        if self.random.random() < 0.02:
            offset = -1
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
        topic = VoteRequestTopicData(topic_name=self.topic_name(), partitions=(partition,))
        return VoteRequest(cluster_id=self.cluster(), voter_id=voter_id, topics=(topic,))

    def begin(self) -> BeginQuorumEpochRequest | None:
        """Return a leader's announcement; None if only this replica can be the leader."""
        epoch, (voter_id, voter) = self.epoch(), self.addressee()
        leader = self.leader_of(epoch) if self.random.random() < 0.98 else -1
        if leader == LOCAL.id:
            return None
        partition = BeginQuorumEpochRequestPartitionData(
            partition_index=0, voter_directory_id=voter.directory_id or ZERO_UUID, leader_id=leader, leader_epoch=epoch
        )
        topic = BeginQuorumEpochRequestTopicData(topic_name=self.topic_name(), partitions=(partition,))
        endpoint = LeaderEndpoint(name=self.identity.listener, host="localhost", port=9990 + leader)
        more = LeaderEndpoint(name="OTHER", host="elsewhere", port=1)
        unnamed = () if leader in self.voter_ids else (endpoint,)
        endpoints = self.random.choice(((endpoint,), (endpoint,), (endpoint, more), unnamed))
        cluster = self.cluster()
        return BeginQuorumEpochRequest(
            cluster_id=cluster, voter_id=voter_id, topics=(topic,), leader_endpoints=endpoints
        )

    def end(self) -> EndQuorumEpochRequest | None:
        """Return a leader's resignation; None if only this replica can be the leader."""
        epoch = self.epoch()
        leader = self.leader_of(epoch) if self.random.random() < 0.98 else -1
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
        is_old = self.random.random() < 0.1
        partition = EndQuorumEpochRequestPartitionData(
            partition_index=0 if self.random.random() < 0.98 else 1,
            leader_id=leader,
            leader_epoch=epoch,
            preferred_successors=tuple(each.id for each in chosen) if is_old else (),
            preferred_candidates=() if is_old else candidates,
        )
        topic = EndQuorumEpochRequestTopicData(topic_name=self.topic_name(), partitions=(partition,))
        endpoint = LeaderEndpoint(name=self.identity.listener, host="localhost", port=9990 + leader)
        endpoints = self.random.choice(((endpoint,), () if leader in self.voter_ids else (endpoint,)))
        return EndQuorumEpochRequest(cluster_id=self.cluster(), topics=(topic,), leader_endpoints=endpoints)

    def fetch(self) -> FetchRequest:
        """Return the Fetch of a replica that is near this one's log end."""
        draw = self.random
        others = [each for each in self.voter_ids if each != LOCAL.id] or [2]
        key = replica_key(draw.choice(others))
        if draw.random() < 0.2:
            key = draw.choice([*(replica_key(each) for each in (1, 2, 3, 4, 5)), ReplicaKey(-1)])
        if self.has_directories and draw.random() < 0.03:
            key = replica_key(2, 7)
        if draw.random() < 0.15:
            key = self.joiner()
        ends = self.batch_ends()
        offset = draw.choice([*ends, *ends[-2:], *[ends[-1]] * 4, ends[-1] + 1, max(0, ends[0] - 1), 0])
        if draw.random() < 0.04:
            # In the middle of a batch, which replicas with an id do not ask for (DECISIONS.md, 54).
            key, offset = ReplicaKey(-1), draw.randint(ends[0], ends[-1])
        fetched_epoch = self.epoch_before(min(offset, ends[-1]))
        if draw.random() < 0.15:
            # Below the log's first epoch, Kafka's mock log answers otherwise than its real one.
            first = self.epoch_before(min(ends[0] + 1, ends[-1]))
            fetched_epoch = max(first, fetched_epoch + draw.choice((-1, 1)))
        epoch = self.core.raft.role.epoch
        if draw.random() < 0.1:
            epoch += draw.choice((-1, 1))
        if draw.random() < 0.02:
            offset, fetched_epoch, epoch = draw.choice(
                ((-1, fetched_epoch, epoch), (offset, -1, epoch), (offset, epoch + 1, epoch), (offset, 0, -1))
            )
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
        topic_id = self.identity.topic_id if draw.random() < 0.98 else uuid.UUID(int=7)
        topic = FetchRequestFetchTopic(topic_id=topic_id, partitions=(partition,))
        is_old = self.has_directories and draw.random() < 0.1
        max_wait_ms = draw.choice((0, 500, 500, 3000, 3000, 60_000)) if draw.random() < 0.97 else -1
        if self._is_waiting(key):
            # raftlog answers the first one early; Kafka would count its later answer as a sign of the replica.
            max_wait_ms = min(0, max_wait_ms)
        return FetchRequest(
            cluster_id=self.cluster(),
            replica_id=key.id if is_old else -1,
            replica_state=FetchRequestReplicaState(replica_id=-1 if is_old else key.id, replica_epoch=-1),
            max_wait_ms=max_wait_ms,
            min_bytes=0,
            max_bytes=draw.choice((8 << 20, 100)),
            topics=(topic,),
        )

    def _is_waiting(self, key: ReplicaKey) -> bool:
        """Whether a Fetch of a replica is parked. Those without an id are not told apart."""
        leadership = self.core.raft._replica.leadership
        parked = () if leadership is None else leadership.parked
        return key.id >= 0 and any(each.id == key.id for each in parked)
