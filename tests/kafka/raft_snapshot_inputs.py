# SPDX-License-Identifier: Apache-2.0
"""Makes requests for snapshots, and responses with parts of one."""

from raftlog.log.memory_log import MemoryLog
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.roles.roles import leader_id
from raftlog.records.messages.raft.endpoints import NodeEndpoint, SnapshotId
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.fetch_messages import (
    FetchSnapshotRequest,
    FetchSnapshotRequestPartitionSnapshot,
    FetchSnapshotRequestTopicSnapshot,
    FetchSnapshotResponse,
    FetchSnapshotResponseLeaderIdAndEpoch,
    FetchSnapshotResponsePartitionSnapshot,
    FetchSnapshotResponseTopicSnapshot,
)
from raftlog.snapshot.writer import RecordsSnapshotWriter
from raftlog.uuid_text import ZERO_UUID
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import ReplicaKey, VoterSet
from tests.kafka.raft_comparison import snapshot_bytes
from tests.kafka.raft_draws import LOCAL
from tests.kafka.raft_voter_inputs import RaftVoterInputs
from tests.quorum.single_replica import replica_key


def write_snapshot(log: MemoryLog, snapshot_id: OffsetAndEpoch, voters: VoterSet | None, now_ms: int) -> None:
    """Store a snapshot without data; with voters it has kraft.version 1."""
    raw = log.create_snapshot_unchecked(snapshot_id)
    assert raw is not None
    version = KRaftVersion.KRAFT_VERSION_0 if voters is None else KRaftVersion.KRAFT_VERSION_1
    with RecordsSnapshotWriter(
        raw, now_ms, last_contained_log_timestamp=0, kraft_version=version, voter_set=voters
    ) as writer:
        writer.freeze(now_ms)


class RaftSnapshotInputs(RaftVoterInputs):
    """Draws requests for snapshots, and parts of a snapshot that a leader has."""

    def fetch_snapshot(self) -> FetchSnapshotRequest:
        """Return a request for a part of a snapshot."""
        draw, log = self.random, self.core.log
        key = replica_key(draw.choice([each for each in self.voter_ids if each != LOCAL.id] or [2]))
        if draw.random() < 0.1:
            key = draw.choice((replica_key(2, 7), ReplicaKey(5), ReplicaKey(-1), replica_key(4)))
        known = [each for each in log.snapshot_ids if each.offset > 0]
        snapshot_id, position = OffsetAndEpoch(0, 0), 0
        if known:
            snapshot_id = draw.choice(known)
            size = len(snapshot_bytes(log, snapshot_id))
            position = draw.choice((0, 0, 0, size // 2, size - 1, size, size + 1, -1))
        if draw.random() < 0.2:
            snapshot_id = OffsetAndEpoch(draw.randint(0, 9), draw.randint(0, 4))
        epoch = self.core.raft.role.epoch if draw.random() < 0.9 else self.epoch()
        partition = FetchSnapshotRequestPartitionSnapshot(
            partition=0 if draw.random() < 0.95 else 1,
            current_leader_epoch=epoch,
            snapshot_id=SnapshotId(end_offset=snapshot_id.offset, epoch=snapshot_id.epoch),
            position=position,
            replica_directory_id=key.directory_id or ZERO_UUID,
        )
        topic = FetchSnapshotRequestTopicSnapshot(name=self.topic_name(), partitions=(partition,))
        return FetchSnapshotRequest(
            cluster_id=self.cluster(),
            replica_id=key.id,
            max_bytes=draw.choice((1, 100, 1 << 20, 2**31 - 1)),
            topics=(topic,),
        )

    def offered_snapshot(self, epoch: int) -> OffsetAndEpoch | None:
        """Return the id of a snapshot that a leader has, and that is ahead of this replica's log.

        None if the log has nothing but a snapshot: then Kafka's mock log ends where its newest snapshot does, and is
        not restarted at it.
        """
        log = self.core.log
        if log.state.start_offset == log.state.end_offset > 0:
            return None
        least = max(1, log.last_fetched_epoch)
        last = self.random.randint(least, max(least, epoch))
        snapshot_id = OffsetAndEpoch(log.end_offset.offset + self.random.randint(1, 5), last)
        if snapshot_id not in self.offered:
            scratch = MemoryLog()
            is_dynamic = self.core.machine.last_kraft_version.is_reconfiguration_supported
            write_snapshot(scratch, snapshot_id, self.changed_voters() if is_dynamic else None, self.core.now_ms)
            self.offered[snapshot_id] = snapshot_bytes(scratch, snapshot_id)
        return snapshot_id

    def snapshot_response(self, request: FetchSnapshotRequest) -> FetchSnapshotResponse:
        """Return a part of a snapshot, or an error."""
        draw, asked = self.random, request.topics[0].partitions[0]
        snapshot_id = OffsetAndEpoch(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
        data, epoch = self.offered[snapshot_id], self.core.raft.role.epoch
        error, position, leader = ErrorCode.NONE, asked.position, leader_id(self.core.raft.role)
        choice = draw.random()
        if choice < 0.08:
            error = ErrorCode.SNAPSHOT_NOT_FOUND
        elif choice < 0.12:
            error = draw.choice((ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.UNKNOWN_LEADER_EPOCH))
        elif choice < 0.15:
            error, epoch, leader = ErrorCode.FENCED_LEADER_EPOCH, epoch + 1, None
        elif choice < 0.16:
            position += 1
        part = data[position : position + draw.choice((50, 200, len(data), len(data)))]
        if error:
            part, position = b"", 0
        found = asked.snapshot_id if not error else SnapshotId(end_offset=0, epoch=0)
        if not error and draw.random() < 0.03:
            found = draw.choice((SnapshotId(end_offset=-1, epoch=0), SnapshotId(end_offset=0, epoch=-1)))
        partition = FetchSnapshotResponsePartitionSnapshot(
            index=self.partition_index(),
            error_code=error,
            snapshot_id=found,
            current_leader=FetchSnapshotResponseLeaderIdAndEpoch(
                leader_id=-1 if leader is None else leader, leader_epoch=epoch
            ),
            size=0 if error else len(data),
            position=position,
            unaligned_records=part,
        )
        topic = FetchSnapshotResponseTopicSnapshot(name=self.topic_name(), partitions=(partition,))
        where = () if leader is None else (NodeEndpoint(node_id=leader, host="localhost", port=9990 + leader),)
        return FetchSnapshotResponse(throttle_time_ms=0, error_code=0, topics=(topic,), node_endpoints=where)
