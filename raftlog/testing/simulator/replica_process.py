# SPDX-License-Identifier: Apache-2.0
"""One run of a replica's process: its core, which is driven over a simulated disk, from a start to a crash."""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from raftlog.log.control_records import KRaftControlRecordStateMachine, update_state
from raftlog.log.replicated_log import Isolation
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.raft import Raft, StartingPoint
from raftlog.quorum.seam.effects import (
    AppendAsFollower,
    AppendAsLeader,
    Effect,
    EndAppend,
    EndRead,
    EnterEpoch,
    FlushLog,
    RaiseHighWatermark,
    ReadLog,
    SendRequest,
    SendResponse,
    StoreElectionState,
    TruncateToEndOffset,
)
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.quorum.seam.log_view import LogView, control_record_view, log_view
from raftlog.testing.simulator.chance import Chance, RandomDraws
from raftlog.testing.simulator.checks.disk_witness import DiskWitness
from raftlog.testing.simulator.checks.ledger import Ledger
from raftlog.testing.simulator.simulated_log import SimulatedLog
from raftlog.voters.voter_set import VoterSet


class Host(Protocol):
    """What a process gets from the machine and network around it."""

    def send_request(self, process: "ReplicaProcess", effect: SendRequest) -> None:
        """Send a request."""
        ...

    def send_response(self, process: "ReplicaProcess", effect: SendResponse) -> None:
        """Send a response."""
        ...

    def append_ended(self, process: "ReplicaProcess", effect: EndAppend) -> None:
        """Tell a client what became of its append."""
        ...

    def read_ended(self, process: "ReplicaProcess", effect: EndRead) -> None:
        """Tell a client what became of its read."""
        ...

    def sync(self, process: "ReplicaProcess", done: Callable[[], None]) -> None:
        """Call a function when a sync that begins now has ended."""
        ...


class SimulatedClock:
    """A clock that runs too fast or too slowly, and shows another time of day than others.

    Args:
        started_ms: true time at which its monotonic time was 0.
        rate_ppm: of its speed: 1,000,000 is right.
        wall_ms: time of day at the start, in ms since the Unix epoch.
    """

    def __init__(self, started_ms: int, rate_ppm: int, wall_ms: int) -> None:
        self._started_ms = started_ms
        self._rate_ppm = rate_ppm
        self._wall_ms = wall_ms

    def monotonic_ms(self, now_ms: int) -> int:
        """Return what the clock shows at a true time."""
        return (now_ms - self._started_ms) * self._rate_ppm // 1_000_000

    def wall_ms(self, now_ms: int) -> int:
        """Return the time of day that the clock shows at a true time."""
        return self._wall_ms + self.monotonic_ms(now_ms)

    def true_ms(self, monotonic_ms: int) -> int:
        """Return the first true time at which the clock shows a time."""
        return self._started_ms + -(-monotonic_ms * 1_000_000 // self._rate_ppm)


class Directory:
    """What survives a crash of a replica.

    Attributes:
        log: the log.
        ledger: what the witness knows of this directory, with the durable election state.
    """

    def __init__(self, witness: DiskWitness, identity: ReplicaIdentity, voters: VoterSet) -> None:
        self.identity = identity
        self.witness = witness
        self.ledger: Ledger = witness.add(identity.key, voters.voter_keys)
        self.log = SimulatedLog(witness, self.ledger)


class ReplicaProcess:
    """A core and its disk. The disk does one thing at a time, in the order of the effects.

    Attributes:
        raft: the core.
        directory: of its log.
        clock: of its machine.
        is_halted: whether the core has stopped for good.
    """

    def __init__(
        self, directory: Directory, host: Host, config: QuorumConfig, chance: Chance, clock: SimulatedClock, now_ms: int
    ) -> None:
        self.directory = directory
        self.clock = clock
        self._host = host
        self._log = directory.log
        self._machine = KRaftControlRecordStateMachine(VoterSet())
        self._disk: deque[Effect] = deque()
        self._finish: Callable[[], None] | None = None
        found = StartingPoint(log=self._view(), stored=directory.ledger.state)
        self.raft = Raft(
            directory.identity,
            config,
            RandomDraws(chance),
            found,
            monotonic_ms=clock.monotonic_ms(now_ms),
            wall_ms=clock.wall_ms(now_ms),
        )

    def _view(self) -> LogView:
        update_state(self._machine, self._log)
        return log_view(self._log, control_record_view(self._machine))

    def settle(self) -> None:
        """Carry out the effects of the core, as far as the disk is fast enough."""
        raft, host, disk, witness = self.raft, self._host, self._disk, self.directory.witness
        while effects := raft.take_effects():
            for effect in effects:
                match effect:
                    case SendRequest():
                        host.send_request(self, effect)
                    case SendResponse():
                        host.send_response(self, effect)
                    case EndAppend():
                        host.append_ended(self, effect)
                    case EndRead():
                        host.read_ended(self, effect)
                    case ReadLog():
                        read = self._log.read(effect.offset, Isolation.UNCOMMITTED, effect.max_size_bytes)
                        raft.log_read(effect.number, read.records)
                    case _:
                        if isinstance(effect, StoreElectionState):
                            witness.asked_to_store(self.directory.ledger, effect.state)
                        disk.append(effect)
            self._work()

    def _work(self) -> None:
        """Do what can be done on the disk without waiting, and begin the next sync."""
        while self._disk and self._finish is None:
            effect = self._disk[0]
            match effect:
                case RaiseHighWatermark():
                    self._log.update_high_watermark(effect.offset)
                    self._disk.popleft()
                case AppendAsLeader():
                    self._log.append_as_leader(effect.batches, effect.epoch)
                    self._done(effect)
                case AppendAsFollower():
                    self._log.append_as_follower(effect.records, effect.epoch)
                    self._done(effect)
                case _:
                    self._finish = self._prepared(effect)
                    self._host.sync(self, self.synced)

    def _prepared(self, effect: Effect) -> Callable[[], None]:
        """Return what makes the sync of an effect durable."""
        match effect:
            case StoreElectionState():
                return lambda: self.directory.witness.stored(self.directory.ledger, effect.state)
            case EnterEpoch():
                work = self._log.prepare_leader_epoch(effect.epoch)
                return lambda: (work.complete(), None)[1]
            case FlushLog():
                flush = self._log.prepare_flush()
                return lambda: (flush.complete(), None)[1]
            case TruncateToEndOffset():
                cut = self._log.prepare_truncate_to_end_offset(effect.end_offset)
                return lambda: (cut.complete(), None)[1]
        raise TypeError(f"not an effect on the disk: {effect}")

    def synced(self) -> None:
        """Note that the sync that was under way has ended."""
        effect, finish = self._disk[0], self._finish
        assert finish is not None
        finish()
        self._finish = None
        if isinstance(effect, StoreElectionState):
            self._disk.popleft()
            self.raft.stored(effect.number)
        else:
            self._done(effect)
        self._work()
        self.settle()

    def _done(self, effect: Effect) -> None:
        self._disk.popleft()
        self.raft.log_changed(effect.number, self._view())

    def crash(self, chance: Chance) -> int:
        """End, and lose what was not durable; return how many batches were lost.

        The sync that is under way may have ended on the disk, without the process being told.
        """
        if self._finish is not None and chance.random() < 0.2:
            self._finish()
        unsynced = self._log.unsynced_batch_count
        kept = chance.randrange(0, unsynced + 1) if unsynced and chance.random() < 0.2 else 0
        self._log.crash(kept)
        return unsynced - kept
