# SPDX-License-Identifier: Apache-2.0
"""Three replicas with small logs and many snapshots, on a network that loses messages, with crashes and elections."""

import random
import zlib
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from raftlog.invariants import instance_of, present
from raftlog.log.memory_log import MemoryLog
from raftlog.log.replicated_log import Isolation
from raftlog.log.retention import Retention
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import CLEANING_INTERVAL_MS, QuorumConfig
from raftlog.quorum.roles.roles import Leader
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.records.messages.raft.raft_messages import RaftRequest, RaftResponse
from raftlog.snapshot.reader import RecordsSnapshotReader
from raftlog.voters.voter_set import Endpoints, HostPort
from tests.quorum.messages import CLUSTER
from tests.quorum.single_replica import LISTENER, DictatedDraws, SingleReplica, log_with, replica_key, voter_set_of

IDS = (1, 2, 3)
CONFIG = QuorumConfig(append_linger_ms=0, fetch_snapshot_max_bytes=150, fetch_max_bytes=300)
SERVERS = tuple(HostPort("localhost", 9990 + each) for each in IDS)


class Message(NamedTuple):
    """A request, or the response to one.

    Attributes:
        source: the replica that asks.
        run: how often it had been started.
        number: of the request.
        target: the replica that is asked.
        request: what it asks.
        response: None for the request itself.
    """

    source: int
    run: int
    number: int
    target: int
    request: RaftRequest
    response: RaftResponse | None = None


class SnapshotCluster:
    """The replicas, the messages on their way, and what is known to be committed.

    Args:
        seed: of all choices.

    Attributes:
        fetched: how many times a replica restarted its log at a snapshot that it had fetched.
        leaders: by the epoch, the replica that led it.
        cut_off: the replica that no message reaches, or None.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.messages: list[Message] = []
        self.committed: dict[int, bytes] = {}
        self.batches: dict[tuple[int, int], bytes] = {}
        self.runs = dict.fromkeys(IDS, 0)
        self.replicas: dict[int, SingleReplica] = {}
        self.leaders: dict[int, int] = {}
        self.fetched = self.count = 0
        self.cut_off: int | None = None
        voters = voter_set_of(map(replica_key, IDS))
        for each in IDS:
            self._start(each, log_with([], voters, retention=Retention(max_bytes=600, max_age_ms=None)), None)

    def _start(self, replica_id: int, log: MemoryLog, stored: QuorumStateData | None) -> None:
        identity = ReplicaIdentity(
            key=replica_key(replica_id),
            cluster_id=CLUSTER,
            endpoints=Endpoints.of({LISTENER: ("localhost", 9990 + replica_id)}),
            listener=LISTENER,
            bootstrap_servers=SERVERS,
        )
        draws = DictatedDraws(self.random.randrange(10_000))
        self.replicas[replica_id] = SingleReplica(identity, CONFIG, log=log, stored=stored, draws=draws)
        self._collect(replica_id)

    def _collect(self, replica_id: int) -> None:
        """Send what a replica has sent."""
        core = self.replicas[replica_id]
        for sent in core.take_requests():
            target = sent.destination.port - 9990
            self.messages.append(Message(replica_id, self.runs[replica_id], sent.number, target, sent.message))
        for answer in core.take_responses():
            asked = instance_of(answer.token, Message)
            self.messages.append(asked._replace(response=answer.message))

    # What happens

    def step(self, loss: float) -> None:
        """Let one thing happen, and check what must always hold.

        Args:
            loss: the share of the messages that are lost.
        """
        what = self.random.random()
        if what < 0.75 and self.messages:
            message = self.messages.pop(self.random.randrange(len(self.messages)))
            is_cut = self.cut_off in (message.source, message.target)
            if not is_cut and self.random.random() >= loss:
                self._deliver(message)
                if self.random.random() < loss:
                    self.messages.append(message)
        elif what < 0.9:
            self.sleep(self.random.choice((1, 20, 100, 500)))
        elif what < 0.96:
            self._append()
        elif what < 0.985:
            self._take_snapshot(self.random.choice(IDS))
        elif what < 0.988 and loss:
            self._crash(self.random.choice(IDS))
        elif what < 0.997:
            self._clean(self.random.choice(IDS))
        elif loss:
            self.cut_off = self.random.choice((*IDS, None))
        self.count += 1
        if self.count % _STEPS_BETWEEN_CHECKS == 0:
            self.check()

    def _deliver(self, message: Message) -> None:
        if message.response is None:
            self.replicas[message.target].request(message, message.request, version=_VERSION)
            self._collect(message.target)
        elif message.run == self.runs[message.source]:
            core = self.replicas[message.source]
            start = core.log.start_offset
            core.respond(message.number, message.response)
            has_restarted = core.log.start_offset == core.log.end_offset.offset > start
            self.fetched += has_restarted
            self._collect(message.source)

    def sleep(self, ms: int) -> None:
        """Let time pass for all."""
        for each in IDS:
            self.replicas[each].sleep(ms)
            self._collect(each)

    def _append(self) -> None:
        for each, core in self.replicas.items():
            if isinstance(core.raft.role, Leader) and core.raft.high_watermark is not None:
                core.append(*(self.random.randbytes(3) for _ in range(self.random.randint(1, 3))))
                core.tick()
                self._collect(each)

    def _take_snapshot(self, replica_id: int) -> None:
        """Take a snapshot of all that is committed, whose content says what that is."""
        self.check()  # So that all that is committed is known.
        core = self.replicas[replica_id]
        end = core.raft.high_watermark
        if end and core.raft._replica.log.state.latest_snapshot_id is not None and end in self._batch_ends(core):
            core.take_snapshot(end, self._digest(end))
            self._collect(replica_id)

    def _batch_ends(self, core: SingleReplica) -> set[int]:
        latest = present(core.log.latest_snapshot_id, "a snapshot").offset
        return {each.next_offset for each in _batches(core) if each.next_offset >= latest}

    def _clean(self, replica_id: int) -> None:
        """Make the replica's next cleaning due."""
        core = self.replicas[replica_id]
        core.raft._replica.snapshots.clean_ms -= CLEANING_INTERVAL_MS
        core.tick()
        self._collect(replica_id)

    def _crash(self, replica_id: int) -> None:
        core = self.replicas[replica_id]
        log = instance_of(core.log, MemoryLog)
        log.crash()
        self.runs[replica_id] += 1
        self._start(replica_id, log, core.stored)

    def settle(self) -> None:
        """Let the network and time be kind, until nothing is left to do."""
        self.cut_off = None
        for turn in range(400):
            for message in self._taken():
                self._deliver(message)
            if turn < 200:
                self._append_once()
            self.sleep(20)
        self.check()

    def _taken(self) -> Iterator[Message]:
        """Yield the messages that are on their way now; their answers come later."""
        taken, self.messages = self.messages, []
        yield from taken

    def _append_once(self) -> None:
        if self.random.random() < 0.1:
            self._append()

    # What holds

    def check(self) -> None:
        """Check all replicas against what is known of the others."""
        for replica_id, core in self.replicas.items():
            raft, log = core.raft, core.log
            assert raft.halt_reason is None, raft.halt_reason
            if isinstance(raft.role, Leader):
                assert self.leaders.setdefault(raft.role.epoch, replica_id) == replica_id
            latest = present(log.latest_snapshot_id, "a snapshot")
            committed = raft._replica.committed_offset
            assert log.start_offset <= latest.offset <= max(committed, latest.offset) <= log.end_offset.offset
            if log.start_offset:
                assert present(log.earliest_snapshot_id, "a snapshot").offset == log.start_offset
            self._check_batches(core, committed)
            for each in log.snapshot_ids:
                if each.offset:
                    assert _content(core, each) == self._digest(each.offset)

    def _check_batches(self, core: SingleReplica, committed: int) -> None:
        for batch in _batches(core):
            data, place = bytes(batch.buffer), (batch.partition_leader_epoch, batch.base_offset)
            assert self.batches.setdefault(place, data) == data
            if batch.next_offset <= committed:
                assert self.committed.setdefault(batch.base_offset, data) == data

    def _digest(self, end_offset: int) -> bytes:
        """Return a checksum of all committed batches below an offset."""
        found = 0
        for offset in sorted(each for each in self.committed if each < end_offset):
            found = zlib.crc32(self.committed[offset], found)
        return b"%d:%d" % (end_offset, found)


_STEPS_BETWEEN_CHECKS: Final = 5
_VERSION: Final = 17
"""High enough for every field that the replicas read."""


def _batches(core: SingleReplica) -> Iterator[RecordBatch]:
    return core.log.batches(isolation=Isolation.UNCOMMITTED)


def _content(core: SingleReplica, snapshot_id: OffsetAndEpoch) -> Any:
    with present(core.log.read_snapshot(snapshot_id), "a listed snapshot") as raw:
        (batch,) = (each for each in RecordsSnapshotReader.of(raw) if isinstance(each, RecordBatch))
        return bytes(next(batch.records()).value or b"")
