# SPDX-License-Identifier: Apache-2.0
"""A machine of the quorum: its process is started, crashed, paused, and given messages and time."""

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, Protocol

import attrs

from raftlog.disk_work import nothing
from raftlog.errors import RaftLogError
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Leader
from raftlog.quorum.seam.effects import EndAppend, EndRead, SendRequest, SendResponse
from raftlog.quorum.seam.identity import ReceivedRequest
from raftlog.records.messages.raft.api_versions_messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    ApiVersionsResponseSupportedFeatureKey,
)
from raftlog.records.messages.raft.election_messages import VoteRequest, VoteResponse
from raftlog.records.messages.raft.raft_messages import RaftRequest, RaftResponse
from raftlog.testing.simulator.checks.promises import PromiseCheck, named_epoch
from raftlog.testing.simulator.checks.voter_history import check_leader
from raftlog.testing.simulator.choices import Choices
from raftlog.testing.simulator.conduct.confirmations import Sending
from raftlog.testing.simulator.disks.directory import Directory, DiskJob
from raftlog.testing.simulator.fault_plan import FaultPlan
from raftlog.testing.simulator.network import Network
from raftlog.testing.simulator.replica_process import ReplicaProcess, SimulatedClock
from raftlog.testing.simulator.story import ReplicaState
from raftlog.testing.simulator.timeline import Timeline
from raftlog.testing.simulator.violation import check

FIRST_PORT = 9990
"""A replica listens at this port plus its id."""
REQUEST_VERSION = 17
_API_VERSIONS = ApiVersionsResponse(
    error_code=0,
    api_keys=(),
    supported_features=(ApiVersionsResponseSupportedFeatureKey(name="kraft.version", min_version=0, max_version=1),),
)
"""The answer of the server of a process, which does not ask its core."""
WALL_MS = 1_700_000_000_000
_RETRY_MS = 2_000
"""So long after its directory could not be opened, a process is started again."""
_SETTLES_PER_CHECK = 8
"""Queues are looked at so seldom: their status costs more than most events."""


class Envelope(NamedTuple):
    """A request on its way, to which the response will find back.

    Attributes:
        sender: the machine.
        process: the process on it that has sent the request; one that was started later gets no response.
        number: of the effect.
        request: the request.
        event: the number of the event in which it was sent.
    """

    sender: "Machine"
    process: ReplicaProcess
    number: int
    request: RaftRequest
    event: int


@attrs.frozen(eq=False)
class AdminRequest:
    """Stands for the sender of a request that comes from no replica, but from an operator or an autopilot."""


def _name_of(token: object) -> Hashable:
    """Return by what the answer to a request is known: cheap to compare, and the same for a duplicate."""
    if isinstance(token, Envelope):
        return token.sender.id, id(token.process), token.number
    return token


class MachineOwner(Protocol):
    """Is told what is not the machine's own business.

    Attributes:
        is_healing: whether faults have ended.
    """

    is_healing: bool

    def crashed(self, machine: "Machine", process: ReplicaProcess) -> None:
        """Note that the process of a machine has crashed."""
        ...

    def may_damage(self, machine: "Machine") -> bool:
        """Whether the disk of a machine may be damaged, so that its replica needs the others."""
        ...

    def read_ended(self, process: ReplicaProcess, effect: EndRead) -> None:
        """Note what became of a read."""
        ...

    def append_ended(self, process: ReplicaProcess, effect: EndAppend) -> None:
        """Note what became of an append."""
        ...


class Machine:
    """One machine with one directory.

    Attributes:
        id: of the replica.
        directory: what survives a crash.
        process: that runs; None after a crash.
        is_paused: whether the process gets no time and no messages for a while.
        is_crash_armed: whether it crashes as soon as it has records that are not synced.
        crash_count: how often it has crashed.
        lossy_crash_count: how often it has lost records by a crash.
        exit_count: how often its process has ended because the disk has failed.
    """

    def __init__(
        self,
        directory: Directory,
        machines: dict[int, "Machine"],
        timeline: Timeline,
        network: Network,
        choices: Choices,
        plan: FaultPlan,
        config: QuorumConfig,
        promises: PromiseCheck,
        owner: MachineOwner,
        injected: Counter[str],
    ) -> None:
        self.id = directory.identity.key.id
        self.directory = directory
        self.process: ReplicaProcess | None = None
        self.is_paused = False
        self.is_crash_armed = False
        self.crash_count = 0
        self.lossy_crash_count = 0
        self.exit_count = 0
        self._machines = machines
        self._timeline = timeline
        self._network = network
        self._choices = choices
        self._plan = plan
        self._config = config
        self._promises = promises
        self._owner = owner
        self._injected = injected
        self._deferred: list[Callable[[], None]] = []
        self._tick_ms: int | None = None
        self._settle_count = 0
        self._last_snapshot: OffsetAndEpoch | None = None

    # The process

    def _clock_error_ppm(self) -> int:
        error = self._plan.clock_error_ppm
        chosen = self._choices.number(-error, error + 1, "clock-error", self.id, calm=0) if error else 0
        self._injected["clock-error"] += chosen != 0
        return chosen

    def start(self) -> None:
        """Start a process on what the directory holds."""
        if self.process is not None:
            return
        refusal = self.directory.open()
        process = self._begun() if refusal is None else None
        if process is None:
            self._tell(f"cannot start: {refusal or 'the log cannot be read'}")
            self._timeline.after(_RETRY_MS, self.start)
            return
        self.is_paused, self._tick_ms = False, None
        self._deferred.clear()
        self.process = process
        self._tell(f"starts, log end {self.directory.ledger.end_offset}")
        self._settle(self.process)

    def _begun(self) -> ReplicaProcess | None:
        """Return a new process; None if it finds that its disk has failed, or was damaged."""
        rate = 1_000_000 + self._clock_error_ppm()
        now_ms = self._timeline.now_ms
        clock = SimulatedClock(now_ms, rate, WALL_MS + now_ms + (rate - 1_000_000) // 100)
        directory = self.directory
        try:
            return ReplicaProcess(directory, self, self._config, self._choices, self._plan, clock, now_ms)
        except RaftLogError:
            if not (directory.has_failed or directory.was_damaged):
                raise
            directory.ledger.is_refused = not directory.has_failed
            directory.exit(self._choices, ())
            return None

    def exit(self) -> None:
        """End the process, but not the machine: all that was written is still there, durable or not."""
        process, self.process = self.process, None
        self.is_crash_armed = False
        if process is not None:
            self.exit_count += 1
            process.exit(self._choices)
            self._tell("has an error of its disk, and ends")
            self._timeline.note(self.id, self.directory.ledger.end_offset)
            self._owner.crashed(self, process)

    def crash(self) -> None:
        """Crash the process: all that is not durable is lost."""
        process, self.process = self.process, None
        self.is_crash_armed = False
        if process is not None:
            self.crash_count += 1
            self._injected["crash"] += 1
            lost = process.crash(self._choices, lambda: self._owner.may_damage(self))
            self.lossy_crash_count += lost > 0
            self._tell(f"crashes; {lost} batches are lost" if lost else "crashes")
            self._timeline.note(self.id, self.directory.ledger.end_offset)
            self._owner.crashed(self, process)

    def replace_disk(self, directory: Directory) -> None:
        """Stop the process, and start another one on an empty directory."""
        self.crash()
        self.directory = directory
        self.start()

    def pause(self) -> None:
        """Give the process no time, and no messages."""
        self.is_paused = self.process is not None
        self._tell("is paused")

    def resume(self) -> None:
        """Let the process go on with what has come meanwhile."""
        if self.is_paused:
            self._tell("goes on")
        self.is_paused = False
        if self.process is not None:
            self.process.dialogue.resumed(self._timeline.now_ms)
        deferred, self._deferred = self._deferred, []
        for event in deferred:
            event()

    def _tell(self, words: str) -> None:
        """Tell the story of a fault, or its end."""
        if self._timeline.story is not None:
            self._timeline.story.fault(self._timeline.now_ms, self.id, words)
            if self.process is None:
                self._timeline.story.stopped(self._timeline.now_ms, self.id, self.directory.ledger.end_offset)

    def _give(self, process: ReplicaProcess, event: Callable[..., None], *arguments: Any) -> None:
        """Give something to a process, unless it has crashed; later, if it is paused."""
        if process is not self.process:
            return
        if self.is_paused:
            self._deferred.append(lambda: self._give(process, event, *arguments))
            return
        try:
            event(*arguments)
        except RaftLogError:
            if not self.directory.has_failed:
                raise
            self._end_failed()
            return
        self._settle(process)

    def settle(self) -> None:
        """Carry out what the core wants after a call from outside."""
        if self.process is not None:
            self._settle(self.process)

    def _end_failed(self) -> None:
        """End a process whose disk has failed: by itself, or with the machine."""
        if self._choices.happens(self._plan.failed_crashes, "failed-crash", self.id):
            self.crash()
        else:
            self.exit()

    def _settle(self, process: ReplicaProcess) -> None:
        try:
            process.settle()
        except RaftLogError:
            if not self.directory.has_failed:
                raise
            self._end_failed()
            return
        raft = process.raft
        if raft.halt_reason is not None:
            check(self.directory.has_failed, "no-halt", "{}: {}", self.id, raft.halt_reason)
            self._end_failed()
            return
        process.check_settled(self._timeline.now_ms)
        if isinstance(raft.role, Leader) or process.leadership.is_leading:
            core_ms = self._core_ms(process)
            process.leadership.settled(raft.role, core_ms, has_failed=self.directory.has_failed)
        if isinstance(raft.role, Leader):
            check_leader(self.directory.ledger)
        self._settle_count += 1
        if self._settle_count % _SETTLES_PER_CHECK == 0:
            for queue in raft.queues:
                check(queue.length <= queue.limit, "queues-are-bounded", "{}: {}", self.id, queue)
            process.check_cleaning(self._core_ms(process))
        ledger = self.directory.ledger
        self._timeline.note(self.id, ledger.end_offset, ledger.durable_end, ledger.high_watermark, raft.role.epoch)
        if self._timeline.story is not None:
            self._timeline.story.settled(
                ReplicaState(
                    at_ms=self._timeline.now_ms,
                    replica=self.id,
                    role=type(raft.role).__name__.lower(),
                    epoch=raft.role.epoch,
                    end=ledger.end_offset,
                    durable_end=ledger.durable_end,
                    high_watermark=ledger.high_watermark,
                )
            )
        is_unsynced = self.is_crash_armed and ledger.durable_end < ledger.end_offset
        if is_unsynced or (self._plan.snapshot_crashes and self._crashes_at_snapshot()):
            self.crash()
        else:
            self._plan_tick(process)

    def _crashes_at_snapshot(self) -> bool:
        """Whether the machine crashes now, because a snapshot is stored that the log has not restarted at yet."""
        ledger, known = self.directory.ledger, self._last_snapshot
        self._last_snapshot = last = ledger.snapshots[-1] if ledger.snapshots else None
        if self._owner.is_healing or last is None or last == known or last.offset <= ledger.end_offset:
            return False
        is_hit = self._choices.happens(self._plan.snapshot_crashes, "snapshot-crash", self.id)
        self._injected["snapshot-crash"] += is_hit
        return is_hit

    # Time

    def _plan_tick(self, process: ReplicaProcess) -> None:
        deadline_ms = process.raft.deadline_ms
        if deadline_ms is None:
            return
        due_ms = process.clock.true_ms(deadline_ms)
        if self._tick_ms is None or due_ms < self._tick_ms:
            self._tick_ms = due_ms
            self._timeline.after(max(0, due_ms - self._timeline.now_ms), self._tick_due, process, due_ms)

    def _tick_due(self, process: ReplicaProcess, due_ms: int) -> None:
        if process is self.process and self._tick_ms == due_ms:
            self._give(process, self._tick, process)

    def _tick(self, process: ReplicaProcess) -> None:
        self._tick_ms = None
        now_ms, deadline_ms = self._timeline.now_ms, process.raft.deadline_ms
        if deadline_ms is not None and process.clock.monotonic_ms(now_ms) >= deadline_ms:
            self._let_time_pass(process)

    def _let_time_pass(self, process: ReplicaProcess) -> None:
        now_ms, clock = self._timeline.now_ms, process.clock
        process.told_ms = core_ms = clock.monotonic_ms(now_ms)
        process.raft.tick(core_ms, clock.wall_ms(now_ms))
        if process.leadership.is_leading:
            process.leadership.settled(process.raft.role, core_ms, has_failed=self.directory.has_failed)
            process.leadership.ticked(process.raft.role, core_ms)

    def _core_ms(self, process: ReplicaProcess) -> int:
        return process.clock.monotonic_ms(self._timeline.now_ms)

    # Messages, and work for the disk

    def send_request(self, process: ReplicaProcess, effect: SendRequest) -> None:
        """Send a request to the machine that listens at its destination."""
        self._promises.request_sent(self.directory.ledger, effect.message)
        process.dialogue.sent(effect.destination, effect.message, self._core_ms(process))
        receiver = self._machines[effect.destination.port - FIRST_PORT]
        envelope = Envelope(self, process, effect.number, effect.message, self._timeline.event_count)
        self._network.send(self.id, receiver.id, receiver.request_arrived, envelope)

    def request_arrived(self, envelope: Envelope) -> None:
        """Give a request to the process; a machine without one refuses it. Its server answers ApiVersions."""
        if self.process is None:
            sender = envelope.sender
            self._network.send(self.id, sender.id, sender.request_failed, envelope)
            return
        if isinstance(envelope.request, ApiVersionsRequest):
            sender = envelope.sender
            self._network.send(self.id, sender.id, sender.response_arrived, envelope, _API_VERSIONS)
            return
        self._give(self.process, self._receive_request, self.process, envelope)

    def _receive_request(self, process: ReplicaProcess, envelope: Envelope) -> None:
        self._let_time_pass(process)
        listener = self.directory.identity.listener
        sending = Sending(envelope.process.directory.identity.key, envelope.event)
        process.confirmations.heard(sending, named_epoch(envelope.request))
        self._take(process, envelope.request, ReceivedRequest(envelope, REQUEST_VERSION, listener))

    def ask(self, process: ReplicaProcess, request: RaftRequest, expected_voters_offset: int | None = None) -> None:
        """Give a request of an operator to a process, after the time. Its effects are carried out when it settles."""
        self._let_time_pass(process)
        listener = self.directory.identity.listener
        self._take(process, request, ReceivedRequest(AdminRequest(), 1, listener, expected_voters_offset))

    def _take(self, process: ReplicaProcess, request: RaftRequest, received: ReceivedRequest) -> None:
        name, now_ms = _name_of(received.token), self._timeline.now_ms
        core_ms = process.clock.monotonic_ms(now_ms)
        process.dialogue.received(name, request, now_ms)
        process.leadership.received(name, request, core_ms)
        process.raft.receive_request(request, received)
        if isinstance(request, VoteRequest):
            process.dialogue.taken(name, process.raft.role, core_ms)

    def send_response(self, process: ReplicaProcess, effect: SendResponse) -> None:
        """Send a response to the machine that has sent the request."""
        envelope, name = effect.token, _name_of(effect.token)
        process.dialogue.answered(name, effect.message)
        process.leadership.answered(name, effect.message, self._core_ms(process))
        if not isinstance(envelope, Envelope):
            return
        self._promises.response_sent(self.directory.ledger, envelope.request, effect.message)
        sender = envelope.sender
        sending = Sending(self.directory.identity.key, self._timeline.event_count)
        self._network.send(self.id, sender.id, sender.response_arrived, envelope, effect.message, sending)

    def response_arrived(self, envelope: Envelope, response: RaftResponse, sending: Sending | None = None) -> None:
        """Give a response to the process that has sent the request; what a server answers by itself says no epoch."""
        self._give(envelope.process, self._receive_response, envelope, response, sending)

    def _receive_response(self, envelope: Envelope, response: RaftResponse, sending: Sending | None) -> None:
        self._let_time_pass(envelope.process)
        envelope.process.search.answered()
        if sending is not None:
            envelope.process.confirmations.heard(sending, named_epoch(response))
        if isinstance(response, VoteResponse):
            envelope.process.dialogue.answer_came(envelope.number, envelope.request, response)
        raft = envelope.process.raft
        envelope.process.named_snapshots.answered(response, is_refused=raft.snapshot_refusal is not None)
        raft.receive_response(envelope.number, response)

    def request_failed(self, envelope: Envelope) -> None:
        """Tell the process that its request was refused."""
        self._give(envelope.process, envelope.process.raft.request_failed, envelope.number)

    def later(self, process: ReplicaProcess, delay_ms: int, event: Callable[..., None], *arguments: Any) -> None:
        """Call a function of a process after a while, unless it has crashed by then."""
        self._timeline.after(delay_ms, self._give, process, event, *arguments)

    def work_begun(self, process: ReplicaProcess, job: DiskJob) -> None:
        """Begin some work for the disk."""
        duration_ms = 1 + self._choices.time_ms(self._plan.sync_ms, "sync", self.id)
        if self._plan.slow_sync and self._choices.happens(self._plan.slow_sync, "slow-sync", self.id):
            self._injected["slow-sync"] += 1
            duration_ms *= 50
        self._timeline.after(duration_ms, self._work_ended, process, job)

    def _work_ended(self, process: ReplicaProcess, job: DiskJob) -> None:
        """Do the work, unless the process has crashed. A paused process learns of it later."""
        if process is self.process:
            process.do_work(job)
            self._give(process, nothing)

    def append_ended(self, process: ReplicaProcess, effect: EndAppend) -> None:
        """Tell the clients what became of an append."""
        self._owner.append_ended(process, effect)

    def read_ended(self, process: ReplicaProcess, effect: EndRead) -> None:
        """Tell the clients what became of a read."""
        self._owner.read_ended(process, effect)
