# SPDX-License-Identifier: Apache-2.0
"""What a committed entry costs the leader of three, and a follower, in the processor's time.

All that a process does for it is counted but sockets and the disk: the core, its driver, messages encoded and decoded,
and the log in memory, which checks every batch as one in files does. The configuration is the default one.
"""

import random
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import attrs

from raftlog.log.memory_log import MemoryLog
from raftlog.quorum.driving.replica_driver import ReplicaDriver
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Leader
from raftlog.quorum.seam.effects import AppendOutcome, EndAppend, Notice, NotifyLeaderChange, SendRequest, SendResponse
from raftlog.quorum.seam.identity import ReceivedRequest, ReplicaIdentity
from raftlog.records.messages.raft.raft_messages import RaftMessage, RaftRequest, RaftResponse, read_rpc, write_rpc
from raftlog.records.messages.schema import message_type
from raftlog.snapshot.writer import RecordsSnapshotWriter
from raftlog.testing.simulator.choices import ChosenDraws, SeededChoices
from raftlog.voters.voter_set import Endpoints
from tests.benchmarks.inputs import Row
from tests.benchmarks.measure import Timing
from tests.quorum.messages import CLUSTER
from tests.quorum.single_replica import LISTENER, MemoryElectionState, replica_key, voter_set_of, write_bootstrap

ENTRIES_AT_ONCE: Final = 64
_IDS: Final = (1, 2, 3)
_CONFIG: Final = QuorumConfig()


class Delivery(NamedTuple):
    """A message on its way.

    Attributes:
        receiver_id, sender_id: of the replicas.
        number: of the request.
        kind: of the message.
        data: its bytes.
        version: of the message.
    """

    receiver_id: int
    sender_id: int
    number: int
    kind: type[RaftMessage]
    data: bytes
    version: int


@attrs.define(eq=False)
class Member:
    """One replica of the quorum, and how long it has worked.

    Attributes:
        id: of the replica.
        sent: where its messages go.
        cpu_s: the processor's time.
        committed: how many appends it was told to be committed.
    """

    id: int
    sent: deque[Delivery]
    cpu_s: float = 0
    committed: int = 0
    driver: ReplicaDriver = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        log = MemoryLog()
        write_bootstrap(log, voter_set_of(map(replica_key, _IDS)))
        self.driver = ReplicaDriver(
            log,
            MemoryElectionState(),
            identity=ReplicaIdentity(
                key=replica_key(self.id),
                cluster_id=CLUSTER,
                endpoints=Endpoints.of({LISTENER: ("localhost", 9990 + self.id)}),
                listener=LISTENER,
            ),
            config=_CONFIG,
            draws=ChosenDraws(SeededChoices(random.Random(self.id)), self.id),
            network=self,
            application=self,
            monotonic_ms=0,
            wall_ms=0,
        )

    def send(self, effect: SendRequest | SendResponse) -> None:
        """Encode a message."""
        message = effect.message
        kind = type(message)
        version = message_type(kind.__name__).versions.highest
        if isinstance(effect, SendRequest):
            receiver_id, number = effect.destination.id, effect.number
        else:
            receiver_id, number = effect.token  # type: ignore[misc]  # that _receive has made
        self.sent.append(Delivery(receiver_id, self.id, number, kind, write_rpc(message, version), version))

    def tell(self, effect: Notice | NotifyLeaderChange) -> None:
        """Count what was committed."""
        if isinstance(effect, EndAppend):
            assert effect.outcome is AppendOutcome.COMMITTED
            self.committed += 1

    def write_snapshot(self, number: int, writer: RecordsSnapshotWriter) -> None:
        """Fail: no snapshot is written here."""
        raise AssertionError(f"snapshot {number}: {writer}")

    def snapshot_refused(self, number: int, reason: str) -> None:
        """Fail: no snapshot is written here."""
        raise AssertionError(f"snapshot {number}: {reason}")

    def receive(self, delivery: Delivery) -> None:
        """Decode a message, and do what follows from it."""
        began = time.thread_time()
        message = read_rpc(delivery.kind, delivery.data, delivery.version)
        if isinstance(message, RaftRequest):
            received = ReceivedRequest((delivery.sender_id, delivery.number), delivery.version, LISTENER)
            self.driver.raft.receive_request(message, received)
        else:
            assert isinstance(message, RaftResponse)
            self.driver.raft.receive_response(delivery.number, message)
        self.driver.settle()
        self.cpu_s += time.thread_time() - began

    def append(self, appends: Iterable[list[bytes]], now_ms: int) -> None:
        """Append records, each list in one call, and let the time pass for which they are collected."""
        began = time.thread_time()
        raft = self.driver.raft
        epoch = raft.role.epoch
        for values in appends:
            raft.append(values, epoch=epoch)
        raft.tick(now_ms, now_ms)
        self.driver.settle()
        self.cpu_s += time.thread_time() - began


class Quorum:
    """Three replicas in this process, and a network without faults between them.

    Attributes:
        members: by id.
        leader: of them.
        follower: one of the others.
    """

    def __init__(self) -> None:
        self._sent: deque[Delivery] = deque()
        self._now_ms = 0
        self.members = {each: Member(each, self._sent) for each in _IDS}
        self.leader = self._elect()
        self.follower = next(each for each in self.members.values() if each is not self.leader)

    def _elect(self) -> Member:
        while True:
            self._now_ms += 10
            for each in self.members.values():
                each.driver.raft.tick(self._now_ms, self._now_ms)
                each.driver.settle()
            self._deliver()
            for each in self.members.values():
                if isinstance(each.driver.raft.role, Leader) and each.driver.raft.high_watermark is not None:
                    return each

    def _deliver(self) -> None:
        while self._sent:
            delivery = self._sent.popleft()
            self.members[delivery.receiver_id].receive(delivery)

    def commit(self, appends: list[list[bytes]]) -> None:
        """Append records, and wait until each replica knows that they are committed."""
        before = self.leader.committed
        self._now_ms += _CONFIG.append_linger_ms
        self.leader.append(appends, self._now_ms)
        self._deliver()
        assert self.leader.committed == before + len(appends)
        assert len({each.driver.raft.high_watermark for each in self.members.values()}) == 1


def lead_in_one_call(batches: list[list[Row]]) -> Timing:
    """Commit 64 records that an application appends in one call."""
    return _time(batches, ENTRIES_AT_ONCE, lambda values: [values])


def lead_in_many_calls(batches: list[list[Row]]) -> Timing:
    """Commit 64 records that an application appends in 64 calls."""
    return _time(batches, ENTRIES_AT_ONCE, lambda values: [[value] for value in values])


def lead_one_at_a_time(batches: list[list[Row]]) -> Timing:
    """Commit one record after the other."""
    return _time(batches, 1, lambda values: [values])


def _time(batches: list[list[Row]], at_once: int, appends: Callable[[list[bytes]], list[list[bytes]]]) -> Timing:
    """Return the leader's time, and beside it the time of a follower."""
    values = [row[2] or b"" for rows in batches for row in rows]
    groups = [values[first : first + at_once] for first in range(0, len(values) - at_once + 1, at_once)]
    quorum = Quorum()
    for each in quorum.members.values():
        each.cpu_s = 0
    began = time.perf_counter()
    for group in groups:
        quorum.commit(appends(group))
    wall_s = time.perf_counter() - began
    count = len(groups) * at_once
    size_bytes = sum(len(value) for group in groups for value in group)
    return Timing(count, size_bytes, quorum.leader.cpu_s, wall_s, quorum.follower.cpu_s)
