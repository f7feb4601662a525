# SPDX-License-Identifier: Apache-2.0
"""A quorum of drivers over real files, whose messages are Kafka's bytes on the way from one to the other."""

import random
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from raftlog.errors import WorkUnderWayError
from raftlog.file_system import FileSystem
from raftlog.log.replicated_log import Isolation
from raftlog.quorum.driving.ports import Executor
from raftlog.quorum.driving.replica_driver import ReplicaDriver
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Leader
from raftlog.quorum.seam.effects import EndAppend, Notice, NotifyLeaderChange, SendRequest, SendResponse
from raftlog.quorum.seam.identity import ReceivedRequest, ReplicaIdentity
from raftlog.records.messages.raft.raft_messages import RaftMessage, RaftRequest, RaftResponse, read_rpc, write_rpc
from raftlog.records.messages.schema import message_type
from raftlog.snapshot.writer import RecordsSnapshotWriter
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.segments.log_config import LogConfig
from raftlog.storage.state.leading import open_quorum_state
from raftlog.testing.simulator.choices import ChosenDraws, SeededChoices
from raftlog.voters.voter_set import Endpoints
from tests.hang_limit import HANG_S
from tests.quorum.driving.driven_replicas import ByHand
from tests.quorum.messages import CLUSTER
from tests.quorum.single_replica import LISTENER, replica_key, voter_set_of, write_bootstrap

STEP_MS = 10
SMALL = LogConfig(segment_size_bytes=2_000, index_interval_bytes=0)


def in_bytes(message: RaftMessage) -> tuple[RaftMessage, int]:
    """Return a message as the other side reads it, and the version: the latest one."""
    version = message_type(type(message).__name__).versions.highest
    return read_rpc(type(message), write_rpc(message, version), version), version


class FileReplica:
    """One replica, from its directory.

    Attributes:
        driver: of the replica.
        outcomes: of its appends, by their numbers.
    """

    def __init__(
        self, cluster: "FileCluster", replica_id: int, file_system: FileSystem, executor: Executor | None
    ) -> None:
        directory = cluster.directory(replica_id)
        self._cluster, self.id = cluster, replica_id
        self.log = FileLog.open(file_system, directory, SMALL)
        if self.log.latest_snapshot_id is None and self.log.end_offset.offset == 0:
            write_bootstrap(self.log, voter_set_of(map(replica_key, cluster.voter_ids)))
        self.outcomes: dict[int, EndAppend] = {}
        self.driver = ReplicaDriver(
            self.log,
            open_quorum_state(file_system, directory, self.log),
            identity=ReplicaIdentity(
                key=replica_key(replica_id),
                cluster_id=CLUSTER,
                endpoints=Endpoints.of({LISTENER: ("localhost", 9990 + replica_id)}),
                listener=LISTENER,
            ),
            config=QuorumConfig(append_linger_ms=0),
            draws=ChosenDraws(SeededChoices(random.Random(replica_id)), replica_id),
            network=self,
            application=self,
            executor=executor,
            wake=cluster.awake.set,
            monotonic_ms=cluster.now_ms,
            wall_ms=cluster.now_ms,
        )

    def send(self, effect: SendRequest | SendResponse) -> None:
        """Hand a message to the network."""
        self._cluster.watch(self.id, effect)
        self._cluster.sent.append((self.id, effect))

    def tell(self, effect: Notice | NotifyLeaderChange) -> None:
        """Keep what became of an append."""
        if isinstance(effect, EndAppend):
            assert effect.number not in self.outcomes
            self.outcomes[effect.number] = effect

    def write_snapshot(self, number: int, writer: RecordsSnapshotWriter) -> None:
        """Write an empty snapshot."""
        self.driver.raft.freeze_snapshot(number)

    def snapshot_refused(self, number: int, reason: str) -> None:
        """Fail: no snapshot of these tests is refused."""
        raise AssertionError(reason)

    def values(self) -> list[bytes | None]:
        """Return the values of all records in the log, committed or not."""
        return [record.value for record in self.log.records(isolation=Isolation.UNCOMMITTED)]


class FileCluster:
    """Replicas, and a network without faults between those that run.

    Attributes:
        voter_ids: of the voters.
        now_ms: the time of all clocks.
        running: the replicas that run, by id.
        sent: messages on their way, each with its sender.
        awake: set when a thread has done work for a disk.
        watch: called with the sender's id and each message, before that is on its way.
        disks: of the replicas that have a file system of their own, by id.
    """

    def __init__(
        self,
        path: str,
        file_system: FileSystem,
        voter_ids: Sequence[int],
        executor: Executor | None = None,
        watch: Callable[[int, SendRequest | SendResponse], object] = lambda *_: None,
        disks: Mapping[int, FileSystem] | None = None,
        started: Sequence[int] | None = None,
    ) -> None:
        self.watch = watch
        self.disks = dict(disks or {})
        self._path, self._file_system, self._executor = path, file_system, executor
        self.voter_ids, self.now_ms, self.awake = tuple(voter_ids), 0, threading.Event()
        self.running: dict[int, FileReplica] = {}
        self.sent: deque[tuple[int, SendRequest | SendResponse]] = deque()
        for each in voter_ids if started is None else started:
            self.disk(each).make_directory(self.directory(each))
            self.start(each)

    def directory(self, replica_id: int) -> str:
        """Return where the log of a replica is."""
        return self.directory_of(self._path, replica_id)

    @staticmethod
    def directory_of(path: str, replica_id: int) -> str:
        """Return where the log of a replica is, in a directory for all."""
        return f"{path}/n{replica_id}/__cluster_metadata-0"

    def start(self, replica_id: int) -> FileReplica:
        """Start a replica from its files."""
        self.running[replica_id] = replica = FileReplica(self, replica_id, self.disk(replica_id), self._executor)
        return replica

    def disk(self, replica_id: int) -> FileSystem:
        """Return the file system of a replica."""
        return self.disks.get(replica_id, self._file_system)

    def kill(self, replica_id: int) -> None:
        """End a replica without a word: its log is not closed, and its messages are lost."""
        del self.running[replica_id]

    def leader(self) -> FileReplica | None:
        """Return the leader of the latest epoch that has committed something in it, or None."""
        leaders = [each for each in self.running.values() if isinstance(each.driver.raft.role, Leader)]
        latest = max(leaders, key=lambda each: each.driver.raft.role.epoch, default=None)
        return None if latest is None or latest.driver.raft.high_watermark is None else latest

    def step(self) -> None:
        """Let time pass, and deliver what is on its way."""
        self.now_ms += STEP_MS
        for each in self.running.values():
            each.driver.raft.tick(self.now_ms, self.now_ms)
            self._settle(each.driver)
        for _ in range(len(self.sent)):
            self._deliver(*self.sent.popleft())

    def elect(self) -> FileReplica:
        """Let time pass until there is a leader."""
        for _ in range(2_000):
            found = self.leader()
            if found is not None:
                return found
            self.step()
        raise AssertionError("no leader was elected in 20 s")

    def append(self, leader: FileReplica, *values: bytes) -> EndAppend:
        """Append records, and return what became of them."""
        number = leader.driver.raft.append(values, epoch=leader.driver.raft.role.epoch).number
        for _ in range(2_000):
            if number in leader.outcomes:
                return leader.outcomes[number]
            self.step()
        raise AssertionError("an append did not end in 20 s")

    def equalize(self) -> None:
        """Let time pass until all logs are equal, and all that is in them is committed."""
        for _ in range(2_000):
            ends = {(each.log.end_offset.offset, each.log.high_watermark.offset) for each in self.running.values()}
            if len(ends) == 1 and len(set(next(iter(ends)))) == 1:
                return
            self.step()
        raise AssertionError(f"logs differ after 20 s: {ends}")

    def _settle(self, driver: ReplicaDriver) -> None:
        driver.settle()
        while not driver.is_settled:
            if isinstance(self._executor, ByHand):
                self._executor.run()
            else:
                assert self.awake.wait(HANG_S)
                self.awake.clear()
            driver.settle()

    def _deliver(self, sender_id: int, effect: SendRequest | SendResponse) -> None:
        message, version = in_bytes(effect.message)
        if isinstance(effect, SendRequest):
            receiver = self.running.get(effect.destination.id)
            if receiver is None:
                self._report_failure(sender_id, effect.number)
                return
            assert isinstance(message, RaftRequest)
            received = ReceivedRequest((sender_id, effect.number), version, LISTENER)
            receiver.driver.raft.receive_request(message, received)
        else:
            asker_id, number = cast("tuple[int, int]", effect.token)
            receiver = self.running.get(asker_id)
            if receiver is None:
                return
            assert isinstance(message, RaftResponse)
            receiver.driver.raft.receive_response(number, message)
        self._settle(receiver.driver)

    def _report_failure(self, sender_id: int, number: int) -> None:
        sender = self.running.get(sender_id)
        if sender is not None:
            sender.driver.raft.request_failed(number)
            self._settle(sender.driver)

    def close(self) -> None:
        """Stop all replicas in order."""
        for each in self.running.values():
            try:
                each.driver.stop()
            except WorkUnderWayError as error:
                raise AssertionError("work is under way though all is settled") from error
            each.log.close()
