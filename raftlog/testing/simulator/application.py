# SPDX-License-Identifier: Apache-2.0
"""The application of a simulated replica: a state machine that listens, and writes snapshots of its state.

It has a register for each remainder of a value. It reads what it is given after a while, all of it, a part, or nothing.
"""

from collections.abc import Callable
from typing import Final

import attrs

from raftlog.errors import InvalidSnapshotIdError, OffsetOutOfRangeError, SnapshotError, WorkUnderWayError
from raftlog.log.replicated_log import Isolation
from raftlog.quorum.raft import Raft
from raftlog.quorum.seam.effects import (
    DeliverBatches,
    DeliverBootstrap,
    Delivering,
    DeliverSnapshot,
    NotifyLeaderChange,
)
from raftlog.records.batches.batch import RecordBatch
from raftlog.snapshot.reader import RecordsSnapshotReader
from raftlog.snapshot.writer import RecordsSnapshotWriter
from raftlog.testing.simulator.checks.decoded import numbers_in, value_of
from raftlog.testing.simulator.checks.listener_contract import ListenerContract
from raftlog.testing.simulator.checks.replay import REGISTERS, Registers
from raftlog.testing.simulator.choices import Choices
from raftlog.testing.simulator.disks.directory import Directory
from raftlog.testing.simulator.fault_plan import FaultPlan

Later = Callable[..., None]
"""Calls a function with arguments after a delay in ms, unless the process has crashed by then."""


@attrs.define(eq=False)
class StateMachine:
    """A state machine.

    Attributes:
        contract: checks what it is given.
        registers: its state.
    """

    contract: ListenerContract
    registers: Registers = attrs.field(factory=dict)


HURRIED_MS: Final = 100
"""How slow state machines are on the average, at most, while a quorum recovers: they then catch up."""


class SimulatedApplication:
    """The state machines of one process.

    Args:
        directory: whose log they read.
        choices: makes all choices.
        plan: how fast they are, and how often they write a snapshot.
        later: calls them.

    Attributes:
        is_hurried: whether they are at most ``HURRIED_MS`` slow on the average, so that they catch up.
    """

    def __init__(self, directory: Directory, choices: Choices, plan: FaultPlan, later: Later) -> None:
        self._directory = directory
        self._choices = choices
        self._id = directory.identity.key.id
        self._plan = plan
        self._later = later
        self._listeners: dict[int, StateMachine] = {}
        self._writer: tuple[int, RecordsSnapshotWriter] | None = None
        self._creating: tuple[int, Registers] | None = None
        self._last_snapshot = 0
        self.is_hurried = False

    def _delay_ms(self) -> int:
        mean_ms = self._plan.listener_delay_ms
        mean_ms = min(mean_ms, HURRIED_MS) if self.is_hurried else mean_ms
        return self._choices.time_ms(mean_ms, "listener-delay", self._id)

    def begin(self, raft: Raft) -> None:
        """Register the state machines with a core."""
        self._raft = raft
        for _ in range(self._plan.listeners):
            contract = ListenerContract(self._directory.witness.history, self._directory.ledger)
            self._listeners[raft.register_listener()] = StateMachine(contract)

    def has_read(self, end_offset: int) -> bool:
        """Whether all state machines have read the records below an offset, and have the state that follows."""
        for each in self._listeners.values():
            next_offset = each.contract.next_offset
            if next_offset is None or next_offset < end_offset:
                return False
            self._directory.witness.replay.check_registers(next_offset, each.registers)
        return True

    # What it is given

    def told(self, effect: Delivering | NotifyLeaderChange) -> None:
        """Take note of a leader, or begin to read what is delivered."""
        contract = self._listeners[effect.listener].contract
        if isinstance(effect, NotifyLeaderChange):
            contract.leader_told(effect.epoch, effect.leader_id)
            return
        if isinstance(effect, DeliverBatches):
            contract.batches_delivered(effect.offset, effect.end_offset)
        else:
            contract.snapshot_delivered(effect.snapshot_id)
        self._later(self._delay_ms(), self._read, effect)

    def _read(self, effect: Delivering) -> None:
        listener = self._listeners[effect.listener]
        next_offset = None if self._choices.happens(0.03, "nothing-read", self._id) else self._taken(listener, effect)
        listener.contract.closed(next_offset)
        self._raft.delivery_closed(effect.number, next_offset)
        self._consider_snapshot(listener)

    def _taken(self, listener: StateMachine, effect: Delivering) -> int | None:
        if isinstance(effect, DeliverBatches):
            return self._read_batches(listener, effect)
        if isinstance(effect, DeliverBootstrap):
            return effect.snapshot_id.offset
        return self._load(listener, effect)

    def _load(self, listener: StateMachine, effect: DeliverSnapshot) -> int | None:
        """Load a snapshot, unless a later one has replaced the whole log meanwhile."""
        raw = self._directory.log.read_snapshot(effect.snapshot_id)
        if raw is None:
            return None
        listener.registers = {}
        for batch in RecordsSnapshotReader.of(raw):
            if isinstance(batch, RecordBatch):
                self._apply(listener, batch)
        self._directory.witness.replay.check_registers(effect.snapshot_id.offset, listener.registers)
        return effect.snapshot_id.offset

    def _read_batches(self, listener: StateMachine, effect: DeliverBatches) -> int | None:
        """Read records, or a part of them, unless a snapshot has replaced the log meanwhile."""
        offset, end_offset = effect.offset, effect.end_offset
        if self._choices.happens(0.1, "part-read", self._id):
            end_offset = self._choices.number(offset + 1, end_offset + 1, "read-end", self._id)
        try:
            for batch in self._directory.log.batches(offset, Isolation.UNCOMMITTED):
                if batch.base_offset >= end_offset:
                    break
                listener.contract.read(batch)
                self._apply(listener, batch, offset, end_offset)
                offset = min(batch.next_offset, end_offset)
        except (OffsetOutOfRangeError, WorkUnderWayError):
            pass
        return offset if offset > effect.offset else None

    def _apply(self, listener: StateMachine, batch: RecordBatch, offset: int = 0, end_offset: int = 2**62) -> None:
        """Apply the records of a batch from an offset, inclusive, to another one, exclusive."""
        if not batch.is_control:
            for each, number in numbers_in(batch):
                if offset <= each < end_offset:
                    listener.registers[number % REGISTERS] = number

    # Snapshots

    def _consider_snapshot(self, listener: StateMachine) -> None:
        """Begin a snapshot where a state machine is, if it has read enough since the last one."""
        interval, offset = self._plan.snapshot_interval, listener.contract.next_offset
        if not interval or offset is None or offset - self._last_snapshot < interval or self._creating is not None:
            return
        try:
            number = self._raft.create_snapshot(offset)
        except (SnapshotError, InvalidSnapshotIdError):  # One is being frozen, or a later one was fetched.
            return
        self._last_snapshot = offset
        if number is not None:
            self._creating = number, dict(listener.registers)

    def write_snapshot(self, number: int, writer: RecordsSnapshotWriter) -> None:
        """Begin to write a snapshot."""
        self._writer = number, writer
        self._later(self._delay_ms(), self._write, number)

    def snapshot_refused(self, number: int) -> None:
        """Forget a snapshot."""
        if self._creating is not None and self._creating[0] == number:
            self._creating = None

    def _write(self, number: int) -> None:
        """Write the state, and have it frozen; or give it up."""
        if self._creating is None or self._writer is None or self._creating[0] != number:
            return
        (_, registers), (_, writer) = self._creating, self._writer
        self._creating = self._writer = None
        if self._choices.happens(0.1, "snapshot-abandoned", self._id):
            self._raft.abandon_snapshot(number)
            return
        if registers:
            writer.append([value_of(each) for each in registers.values()], 0)
        self._raft.freeze_snapshot(number)
