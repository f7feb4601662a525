# SPDX-License-Identifier: Apache-2.0
"""Makes requests that change the voters, and responses to such requests of the replica itself."""

from raftlog.records.messages.raft.api_versions_messages import (
    ApiVersionsResponse,
    ApiVersionsResponseSupportedFeatureKey,
)
from raftlog.records.messages.raft.endpoints import Listener
from raftlog.records.messages.raft.error_codes import ErrorCode
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
from tests.kafka.raft_draws import LOCAL, RaftDraws
from tests.quorum.single_replica import replica_key


class RaftVoterInputs(RaftDraws):
    """Draws requests that change the voters."""

    def joiner(self) -> ReplicaKey:
        """Return the replica that is to become a voter: one that has fetched, if there is one."""
        voters, leadership = self.voters, self.core.raft._replica.leadership
        fetched = [] if leadership is None else list(leadership.progress)
        known = [each for each in fetched if each.id not in voters.voter_ids and each.directory_id is not None]
        return known[-1] if known else replica_key(next(each for each in range(2, 9) if each not in voters.voter_ids))

    def _listeners(self, replica_id: int) -> tuple[Listener, ...]:
        host = self.random.choice(("localhost", "localhost", "moved"))
        usual = Listener(name=self.identity.listener, host=host, port=9990 + replica_id)
        if self.random.random() < 0.1:
            return self.random.choice(((), (Listener(name="OTHER", host=host, port=1),)))
        return (usual, Listener(name="OTHER", host=host, port=1)) if self.random.random() < 0.2 else (usual,)

    def update_voter(self) -> UpdateRaftVoterRequest:
        """Return what a voter reports of itself."""
        draw, epoch = self.random, self.core.raft.role.epoch
        voter_id = draw.choice([each for each in self.voter_ids if each != LOCAL.id or draw.random() < 0.1] or [2])
        known = self.voters.voters.get(voter_id)
        key = (
            known.voter_key if known is not None and known.voter_key.directory_id is not None else replica_key(voter_id)
        )
        if self.has_directories and draw.random() < 0.1:
            key = draw.choice((replica_key(2, 7), ReplicaKey(2), ReplicaKey(-1), replica_key(6)))
        least, most = draw.choice([(0, 1)] * 6 + [(1, 1), (0, 0), (-1, 1), (1, 0), (0, 2)])
        return UpdateRaftVoterRequest(
            cluster_id=self.cluster(),
            current_leader_epoch=epoch if draw.random() < 0.9 else epoch + draw.choice((-1, 1)),
            voter_id=key.id,
            voter_directory_id=key.directory_id or ZERO_UUID,
            listeners=self._listeners(key.id),
            kraft_version_feature=UpdateRaftVoterRequestKRaftVersionFeature(
                min_supported_version=least, max_supported_version=most
            ),
        )

    def add_voter(self) -> AddRaftVoterRequest:
        """Return an administrator's request, mostly for a replica that is no voter yet."""
        key = self.joiner()
        if self.random.random() < 0.1:
            key = self.random.choice((LOCAL, replica_key(2), replica_key(key.id, 7), ReplicaKey(key.id)))
        return AddRaftVoterRequest(
            cluster_id=self.cluster(),
            timeout_ms=self.random.choice((0, 1000, 60_000)),
            voter_id=key.id,
            voter_directory_id=key.directory_id or ZERO_UUID,
            listeners=self._listeners(key.id),
            ack_when_committed=self.random.random() < 0.5,
        )

    def remove_voter(self) -> RemoveRaftVoterRequest:
        """Return an administrator's request, mostly for a voter, and seldom for this replica."""
        keys = sorted(self.voters.voter_keys)
        others = [each for each in keys if each.id != LOCAL.id]
        key = self.random.choice(others if others and self.random.random() < 0.75 else keys or [LOCAL])
        if self.random.random() < 0.1:
            key = self.random.choice((replica_key(key.id, 7), ReplicaKey(key.id), replica_key(8), ReplicaKey(-1)))
        return RemoveRaftVoterRequest(
            cluster_id=self.cluster(), voter_id=key.id, voter_directory_id=key.directory_id or ZERO_UUID
        )

    def versions_response(self) -> ApiVersionsResponse:
        """Return what a replica that is to become a voter supports."""
        draw = self.random
        error = ErrorCode.NONE if draw.random() < 0.9 else draw.choice((ErrorCode.UNSUPPORTED_VERSION, ErrorCode.NONE))
        least, most = draw.choice([(0, 1)] * 8 + [(1, 1), (0, 0), (2, 3)])
        feature = ApiVersionsResponseSupportedFeatureKey(name="kraft.version", min_version=least, max_version=most)
        other = ApiVersionsResponseSupportedFeatureKey(name="metadata.version", min_version=7, max_version=29)
        features = (other,) if draw.random() < 0.05 else (other, feature)
        return ApiVersionsResponse(error_code=error, api_keys=(), supported_features=features)

    def describe(self) -> DescribeQuorumRequest:
        """Return the request of a tool."""
        index = 0 if self.random.random() < 0.95 else 1
        topic = DescribeQuorumRequestTopicData(
            topic_name=self.topic_name(), partitions=(DescribeQuorumRequestPartitionData(partition_index=index),)
        )
        return DescribeQuorumRequest(topics=(topic,))

    def joining_error(self) -> ErrorCode:
        """Return the error in a leader's response to a replica that asks to join."""
        usual = (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.DUPLICATE_VOTER, ErrorCode.VOTER_NOT_FOUND)
        return self.random.choice((*usual, ErrorCode.INVALID_REQUEST, ErrorCode.NOT_LEADER_OR_FOLLOWER))
