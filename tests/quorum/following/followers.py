# SPDX-License-Identifier: Apache-2.0
"""Followers, for tests: replica 1 follows replica 2 in epoch 2, and fetches a snapshot of it."""

from collections import deque
from collections.abc import Sequence

from raftlog.log.replicated_log import ReplicatedLog
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.seam.effects import Effect, LogWork
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.records.messages.raft.fetch_messages import FetchRequest, FetchSnapshotRequest
from raftlog.records.messages.raft.raft_messages import RaftRequest
from raftlog.voters.voter_set import Endpoints, HostPort
from tests.quorum.fetched_snapshots import snapshot_bytes
from tests.quorum.messages import CLUSTER, LOCAL, fetch_response, fetch_snapshot_response
from tests.quorum.single_replica import LISTENER, SingleReplica, log_with, replica_key, voter_set_of

VOTERS = voter_set_of(map(replica_key, (1, 2, 3)))
SNAPSHOT = OffsetAndEpoch(10, 2)
DATA = snapshot_bytes(SNAPSHOT, VOTERS, [b"x" * 200, b"y" * 50])


class FollowerOfTwo(SingleReplica):
    """A replica whose work on the log can wait."""

    def __init__(
        self,
        log: ReplicatedLog | None = None,
        *,
        can_become_voter: bool = True,
        voters: Sequence[int] = (1, 2, 3),
        port: int = 9991,
        config: QuorumConfig | None = None,
        bootstrap_servers: tuple[HostPort, ...] = (),
    ) -> None:
        self.waiting: deque[LogWork] = deque()
        self.is_slow = False
        identity = ReplicaIdentity(
            key=LOCAL,
            cluster_id=CLUSTER,
            endpoints=Endpoints.of({LISTENER: ("localhost", port)}),
            listener=LISTENER,
            can_become_voter=can_become_voter,
            bootstrap_servers=bootstrap_servers,
        )
        stored = QuorumStateData(1, leader_id=2, leader_epoch=2)
        kept = log or log_with([(1, 3)], voter_set_of(map(replica_key, voters)))
        super().__init__(identity, config or QuorumConfig(), log=kept, stored=stored)

    def _carry_out(self, effect: Effect) -> None:
        if isinstance(effect, LogWork) and (self.is_slow or self.waiting):
            self.waiting.append(effect)
        else:
            super()._carry_out(effect)

    def work(self) -> None:
        """Carry out what waits first."""
        super()._carry_out(self.waiting.popleft())
        self.settle()

    @property
    def last_request(self) -> RaftRequest:
        """The request that was sent last."""
        return self.requests[-1].message

    @property
    def asked_position(self) -> int | None:
        """The position that the last request asks for; None if it is no FetchSnapshot."""
        message = self.last_request
        return message.topics[0].partitions[0].position if isinstance(message, FetchSnapshotRequest) else None

    @property
    def asked_offset(self) -> int | None:
        """The offset that the last request asks for; None if it is no Fetch."""
        message = self.last_request
        return message.topics[0].partitions[0].fetch_offset if isinstance(message, FetchRequest) else None

    def learn_high_watermark(self, offset: int) -> None:
        """The leader says how far the log is committed, in answer to the last request."""
        self.respond(self.requests[-1].number, fetch_response(2, 2, high_watermark=offset))

    def name(self, snapshot_id: OffsetAndEpoch = SNAPSHOT, leader: int = 2) -> None:
        """The leader names a snapshot in the answer to the last request."""
        epoch = self.raft.role.epoch
        self.respond(self.requests[-1].number, fetch_response(epoch, leader, snapshot_id=snapshot_id))

    def send_chunk(
        self,
        position: int,
        data: bytes,
        *,
        snapshot_id: OffsetAndEpoch = SNAPSHOT,
        size: int = len(DATA),
        error: int = 0,
        leader: int = 2,
    ) -> None:
        """The leader sends a chunk in answer to the last request."""
        answer = fetch_snapshot_response(self.raft.role.epoch, leader, snapshot_id, position, data, size, error=error)
        self.respond(self.requests[-1].number, answer)

    def stored_bytes(self, snapshot_id: OffsetAndEpoch = SNAPSHOT) -> bytes | None:
        """Return the bytes of a snapshot that the log lists."""
        reader = self.log.read_snapshot(snapshot_id)
        if reader is None:
            return None
        with reader:
            return bytes(reader.read_at(0, reader.size()))
