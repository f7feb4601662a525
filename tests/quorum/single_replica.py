# SPDX-License-Identifier: Apache-2.0
"""One replica's consensus core over a log in memory, whose disk is as fast as a call: effects are done at once."""

import uuid
from collections.abc import Iterable, Sequence

import attrs

from raftlog.errors import DecodeError, InvalidSnapshotIdError, OutOfSpaceError
from raftlog.invariants import present
from raftlog.log.control_records import KRaftControlRecordStateMachine, update_state
from raftlog.log.memory_log import MemoryLog
from raftlog.log.replicated_log import Isolation, ReplicatedLog
from raftlog.log.retention import Retention
from raftlog.log.snapshots import begin_snapshot
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.leadership import PendingAppend
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.raft import Raft, StartingPoint
from raftlog.quorum.seam.effects import (
    AppendAsFollower,
    AppendAsLeader,
    DeliverBatches,
    DeliverBootstrap,
    Delivering,
    DeliverSnapshot,
    Effect,
    EndAppend,
    EndRead,
    EndShutdown,
    EnterEpoch,
    FlushLog,
    Notice,
    NotifyLeaderChange,
    NotifyShutdown,
    RaiseHighWatermark,
    ReadLog,
    SendRequest,
    SendResponse,
    StoreElectionState,
    TruncateToEndOffset,
)
from raftlog.quorum.seam.identity import ReceivedRequest, ReplicaIdentity
from raftlog.quorum.seam.log_view import LogView, control_record_view, log_view
from raftlog.quorum.seam.snapshot_effects import (
    AbandonFetchedSnapshot,
    AbandonSnapshot,
    AppendToFetchedSnapshot,
    BeginFetchedSnapshot,
    BeginSnapshot,
    CleanLog,
    FetchedSnapshotWork,
    FreezeFetchedSnapshot,
    FreezeSnapshot,
    ReadSnapshot,
    RestartAtLatestSnapshot,
    SnapshotChunk,
    SnapshotEffect,
)
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


class SingleReplica:
    """A core, its log and its stored election state. Effects on the network are collected.

    Attributes:
        raft: the core.
        log: its log.
        stored: its election state.
        requests: those that were sent and not taken.
        responses: those that were sent and not taken.
        ended: the appends that have ended.
        reads: that have ended.
        shutdowns: that listeners were told of, or that are complete.
        deliveries: to listeners, in their order.
        leader_changes: that listeners were told, in their order.
        fetched: the snapshot that is being fetched, or None.
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
    ) -> None:
        self.log: ReplicatedLog = MemoryLog() if log is None else log
        self.machine = KRaftControlRecordStateMachine(static_voters or VoterSet())
        self.stored = stored
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
        self.fetched: RawSnapshotWriter | None = None
        self.writer: RecordsSnapshotWriter | None = None
        self.refused: list[int] = []
        found = StartingPoint(log=self._view(), stored=stored, may_vote=may_vote, has_been_voter=has_been_voter)
        self.raft = Raft(identity, config, self.draws, found, monotonic_ms=0, wall_ms=wall_ms)
        self.settle()

    def _view(self) -> LogView:
        update_state(self.machine, self.log)
        return log_view(self.log, control_record_view(self.machine))

    def settle(self) -> None:
        """Carry out effects until there are no more."""
        while effects := self.raft.take_effects():
            for effect in effects:
                self._carry_out(effect)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case SendRequest() | SendResponse():
                self._send(effect)
            case (
                EndAppend()
                | EndShutdown()
                | NotifyShutdown()
                | EndRead()
                | DeliverBatches()
                | DeliverSnapshot()
                | DeliverBootstrap()
                | NotifyLeaderChange()
            ):
                self._tell(effect)
            case StoreElectionState():
                self.stored = effect.state
                self.raft.stored(effect.number)
            case RaiseHighWatermark():
                self.log.update_high_watermark(effect.offset)
            case EnterEpoch():
                self.log.initialize_leader_epoch(effect.epoch)
                self._report(effect.number)
            case AppendAsLeader():
                self.log.append_as_leader(effect.batches, effect.epoch)
                self._report(effect.number)
            case ReadLog():
                read = self.log.read(effect.offset, Isolation.UNCOMMITTED, effect.max_size_bytes)
                self.raft.log_read(effect.number, bytes(read.records))
            case AppendAsFollower():
                self.log.append_as_follower(effect.records, effect.epoch)
                self._report(effect.number)
            case FlushLog():
                self.log.flush()
                self._report(effect.number)
            case TruncateToEndOffset():
                self.log.truncate_to_end_offset(effect.end_offset)
                self._report(effect.number)
            case ReadSnapshot() | BeginSnapshot() | FreezeSnapshot() | AbandonSnapshot():
                self._carry_out_on_snapshot(effect)
            case _:
                self._carry_out_on_fetched_snapshot(effect)

    def _send(self, effect: SendRequest | SendResponse) -> None:
        if isinstance(effect, SendRequest):
            self.requests.append(effect)
        else:
            self.responses.append(effect)

    def _carry_out_on_fetched_snapshot(self, effect: FetchedSnapshotWork | CleanLog) -> None:
        try:
            match effect:
                case BeginFetchedSnapshot():
                    self.fetched = self.log.create_snapshot_unchecked(effect.snapshot_id)
                case AppendToFetchedSnapshot():
                    present(self.fetched, "the fetched snapshot").append_at(effect.position, effect.data)
                case FreezeFetchedSnapshot():
                    present(self.fetched, "the fetched snapshot").freeze()
                    self._drop_fetched()
                case AbandonFetchedSnapshot():
                    self._drop_fetched()
                case CleanLog():
                    self.log.prepare_clean(effect.wall_ms).complete()
                case RestartAtLatestSnapshot():
                    self.log.truncate_to_latest_snapshot()
        except (DecodeError, OutOfSpaceError) as error:
            self._drop_fetched()
            self.raft.snapshot_refused(effect.number, str(error))
        else:
            self._report(effect.number)

    def _drop_fetched(self) -> None:
        if self.fetched is not None:
            self.fetched.close()
        self.fetched = None

    def _carry_out_on_snapshot(self, effect: SnapshotEffect) -> None:
        match effect:
            case ReadSnapshot():
                self.raft.snapshot_read(effect.number, self._read_snapshot(effect))
            case BeginSnapshot():
                try:
                    self.writer = begin_snapshot(
                        self.log, self.machine, effect.snapshot_id.offset, now_ms=effect.wall_ms
                    )
                except InvalidSnapshotIdError as error:
                    self.refused.append(effect.number)
                    self.raft.snapshot_refused(effect.number, str(error))
            case FreezeSnapshot():
                present(self.writer, "the application's snapshot").freeze(effect.wall_ms)
                self.raft.snapshot_frozen(effect.number)
            case AbandonSnapshot():
                present(self.writer, "the application's snapshot").close()

    def _read_snapshot(self, effect: ReadSnapshot) -> SnapshotChunk | None:
        reader = self.log.read_snapshot(effect.snapshot_id)
        if reader is None:
            return None
        with reader:
            return SnapshotChunk(reader.size(), bytes(reader.read_at(effect.position, effect.max_size_bytes)))

    def _tell(self, effect: Notice | NotifyLeaderChange) -> None:
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

    def _report(self, number: int) -> None:
        self.raft.log_changed(number, self._view())

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
                present(self.writer, "the application's snapshot").append(values, self.now_ms)
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
