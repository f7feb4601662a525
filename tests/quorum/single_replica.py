# SPDX-License-Identifier: Apache-2.0
"""One replica's consensus core over a log in memory, whose disk is as fast as a call: effects are done at once."""

import uuid
from collections.abc import Callable, Iterable, Sequence

import attrs

from raftlog.disk_work import DiskResult, DiskStep, DiskWork, nothing
from raftlog.invariants import present
from raftlog.log.memory_log import MemoryLog
from raftlog.log.replicated_log import ReplicatedLog
from raftlog.log.retention import Retention
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.driving.ports import Executor
from raftlog.quorum.driving.replica_driver import ReplicaDriver
from raftlog.quorum.election_states import check_transition
from raftlog.quorum.leadership import PendingAppend
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.seam.effects import (
    Delivering,
    Effect,
    EndAppend,
    EndRead,
    EndShutdown,
    Notice,
    NotifyLeaderChange,
    NotifyShutdown,
    SendRequest,
    SendResponse,
)
from raftlog.quorum.seam.identity import ReceivedRequest, ReplicaIdentity
from raftlog.records.batches.accumulator import BatchAccumulator
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.records.messages.raft.raft_messages import RaftRequest, RaftResponse
from raftlog.snapshot.paths import BOOTSTRAP_SNAPSHOT_ID
from raftlog.snapshot.raw import RawSnapshotWriter
from raftlog.snapshot.writer import RecordsSnapshotWriter
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import Endpoints, ReplicaKey, SupportedVersionRange, VoterNode, VoterSet

LISTENER = "CONTROLLER"


def replica_key(replica_id: int, directory: int | None = None) -> ReplicaKey:
    """Return a replica whose directory id has the replica's id, or another number, in both halves."""
    number = replica_id if directory is None else directory
    return ReplicaKey(replica_id, uuid.UUID(int=(number << 64) | number))


def voter_node(key: ReplicaKey, listener: str = LISTENER) -> VoterNode:
    """Return a voter that listens at ``localhost:9990 + id``."""
    endpoints = Endpoints.of({listener: ("localhost", 9990 + key.id)})
    return VoterNode(key, endpoints, SupportedVersionRange(0, 1))


def voter_set_of(keys: Iterable[ReplicaKey], listener: str = LISTENER) -> VoterSet:
    """Return a set of voters that listen at ``localhost:9990 + id``."""
    return VoterSet.of(voter_node(key, listener) for key in keys)


@attrs.define
class DictatedDraws:
    """Draws the same number, reduced to the bound, until it is told another one."""

    value: int = 0

    def election_timeout_ms(self, election_timeout_ms: int) -> int:
        """Return the timeout, plus the number."""
        return election_timeout_ms + self.value % election_timeout_ms if election_timeout_ms else 0

    def bootstrap_index(self, count: int) -> int:
        """Return the number, reduced to the count."""
        return self.value % count


def log_with(
    runs: Sequence[tuple[int, int]],
    bootstrap_voters: VoterSet | None = None,
    timestamp_ms: int = 0,
    retention: Retention | None = None,
) -> MemoryLog:
    """Return a flushed log with one batch per run: an epoch, and a number of records.

    Args:
        runs: in the order of the log.
        bootstrap_voters: of a snapshot with end offset 0 and kraft.version 1, or None for no such snapshot.
        timestamp_ms: of the records.
        retention: what cleaning keeps.
    """
    log = MemoryLog(retention)
    if bootstrap_voters is not None:
        write_bootstrap(log, bootstrap_voters)
    for epoch, count in runs:
        batches = BatchAccumulator(epoch, log.end_offset.offset)
        batches.append(epoch, [b"r"] * count, timestamp_ms)
        batches.force_drain()
        with batches.drain() as drained:
            for batch in drained:
                log.append_as_leader(batch.data, epoch)
    log.flush()
    return log


def write_bootstrap(log: ReplicatedLog, voters: VoterSet) -> None:
    """Write the snapshot of an empty log that has voters at kraft.version 1."""
    raw = log.create_snapshot_unchecked(BOOTSTRAP_SNAPSHOT_ID)
    assert raw is not None
    with RecordsSnapshotWriter(
        raw, 0, last_contained_log_timestamp=0, kraft_version=KRaftVersion.KRAFT_VERSION_1, voter_set=voters
    ) as writer:
        writer.freeze(0)


@attrs.define(eq=False)
class MemoryElectionState:
    """An election state in memory, with the rules of the one in files.

    Attributes:
        state: the one that was written last.
        may_vote: whether no vote may have been forgotten.
    """

    state: QuorumStateData | None = None
    may_vote: bool = True

    def prepare_write(self, state: QuorumStateData) -> DiskWork[DiskResult[QuorumStateData]]:
        """Prepare to keep a state, which is there once the work is finished."""
        check_transition(state, self.state, may_vote=self.may_vote)

        def take() -> DiskResult[QuorumStateData]:
            self.state = state
            return DiskResult(state, state.leader_epoch)

        return DiskWork([DiskStep(nothing)], take)


class SingleReplica(ReplicaDriver):
    """A core, its log and its stored election state. Effects on the network are collected.

    Attributes:
        log: its log.
        requests: those that were sent and not taken.
        responses: those that were sent and not taken.
        ended: the appends that have ended.
        reads: that have ended.
        shutdowns: that listeners were told of, or that are complete.
        deliveries: to listeners, in their order.
        leader_changes: that listeners were told, in their order.
        writer: the application's snapshot, or None.
        refused: numbers of snapshots of the application that were refused.
    """

    def __init__(
        self,
        identity: ReplicaIdentity,
        config: QuorumConfig,
        *,
        static_voters: VoterSet | None = None,
        log: ReplicatedLog | None = None,
        stored: QuorumStateData | None = None,
        draws: DictatedDraws | None = None,
        may_vote: bool = True,
        has_been_voter: bool = False,
        wall_ms: int = 0,
        executor: Executor | None = None,
        wake: Callable[[], object] = nothing,
        watch: Callable[[Effect], object] | None = None,
    ) -> None:
        self.log: ReplicatedLog = MemoryLog() if log is None else log
        self.identity, self.config = identity, config
        self.draws = draws or DictatedDraws()
        self.now_ms = 0
        self.started_wall_ms = wall_ms
        self.requests: list[SendRequest] = []
        self.responses: list[SendResponse] = []
        self.ended: list[EndAppend] = []
        self.shutdowns: list[EndShutdown | NotifyShutdown] = []
        self.reads: list[EndRead] = []
        self.deliveries: list[Delivering] = []
        self.leader_changes: list[NotifyLeaderChange] = []
        self.writer: RecordsSnapshotWriter | None = None
        self.refused: list[int] = []
        self._election_state = MemoryElectionState(stored, may_vote)
        super().__init__(
            self.log,
            self._election_state,
            identity=identity,
            config=config,
            draws=self.draws,
            network=self,
            application=self,
            static_voters=static_voters,
            has_been_voter=has_been_voter,
            executor=executor,
            wake=wake,
            watch=watch,
            monotonic_ms=0,
            wall_ms=wall_ms,
        )
        self.settle()

    @property
    def stored(self) -> QuorumStateData | None:
        """The election state that was written last."""
        return self._election_state.state

    @property
    def fetched(self) -> RawSnapshotWriter | None:
        """The snapshot that is being fetched."""
        return self._driven.fetched

    def send(self, effect: SendRequest | SendResponse) -> None:
        """Collect a message."""
        if isinstance(effect, SendRequest):
            self.requests.append(effect)
        else:
            self.responses.append(effect)

    def tell(self, effect: Notice | NotifyLeaderChange) -> None:
        """Keep what the application is told."""
        match effect:
            case EndAppend():
                self.ended.append(effect)
            case EndRead():
                self.reads.append(effect)
            case EndShutdown() | NotifyShutdown():
                self.shutdowns.append(effect)
            case NotifyLeaderChange():
                self.leader_changes.append(effect)
            case _:
                self.deliveries.append(effect)

    def write_snapshot(self, number: int, writer: RecordsSnapshotWriter) -> None:
        """Keep the writer."""
        self.writer = writer

    def snapshot_refused(self, number: int, reason: str) -> None:
        """Keep the number."""
        self.refused.append(number)

    def sleep(self, ms: int) -> None:
        """Let time pass."""
        self.now_ms += ms
        self.tick()

    def tick(self) -> None:
        """Let the core act at the present time."""
        self.raft.tick(self.now_ms, self.started_wall_ms + self.now_ms)
        self.settle()

    def request(self, token: object, message: RaftRequest, version: int, listener: str = LISTENER) -> None:
        """Deliver a request."""
        self.raft.receive_request(message, ReceivedRequest(token, version, listener))
        self.settle()

    def append(self, *values: bytes, epoch: int | None = None, at: int | None = None) -> PendingAppend:
        """Append records, in the epoch of the replica or another one."""
        wanted = self.raft.role.epoch if epoch is None else epoch
        appended = self.raft.append(values, epoch=wanted, required_base_offset=at)
        self.settle()
        return appended

    def close(self, number: int, next_offset: int | None = None) -> None:
        """Let a listener close what it was given."""
        self.raft.delivery_closed(number, next_offset)
        self.settle()

    def take_snapshot(self, end_offset: int, *values: bytes) -> OffsetAndEpoch | None:
        """Take a snapshot with some records, and return the id of the latest one."""
        number = self.raft.create_snapshot(end_offset)
        self.settle()
        if number is not None and number not in self.refused:
            if values:
                present(self.writer, "the application's snapshot").append(values, self.started_wall_ms + self.now_ms)
            self.raft.freeze_snapshot(number)
            self.settle()
        return self.log.latest_snapshot_id

    def respond(self, number: int, message: RaftResponse) -> None:
        """Deliver the response to a request."""
        self.raft.receive_response(number, message)
        self.settle()

    def take_requests(self) -> list[SendRequest]:
        """Return the requests that were sent, and forget them."""
        taken, self.requests = self.requests, []
        return taken

    def take_responses(self) -> list[SendResponse]:
        """Return the responses that were sent, and forget them."""
        taken, self.responses = self.responses, []
        return taken
