# SPDX-License-Identifier: Apache-2.0
"""The application of a simulated replica: a state machine that listens, and writes snapshots of its state.

It reads what it is given after a while, all of it, a part, or nothing.
"""

from collections.abc import Callable, Iterator, Sequence
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
from raftlog.testing.simulator.applications.checked_machine import CheckedMachine, Records
from raftlog.testing.simulator.applications.difference import Restored
from raftlog.testing.simulator.checks.decoded import values_in
from raftlog.testing.simulator.checks.listener_contract import ListenerContract
from raftlog.testing.simulator.checks.replay import records_of
from raftlog.testing.simulator.choices import Choices
from raftlog.testing.simulator.disks.directory import Directory
from raftlog.testing.simulator.fault_plan import FaultPlan

Later = Callable[..., None]
"""Calls a function with arguments after a delay in ms, unless the process has crashed by then."""

Answer = Callable[[Records], None]
"""Is given the state of a state machine."""


@attrs.define(eq=False)
class ListeningMachine:
    """A state machine that listens.

    Attributes:
        contract: checks what it is given.
        machine: applies it.
        restores: the snapshots from which it was restored, in order.
    """

    contract: ListenerContract
    machine: CheckedMachine
    restores: list[Restored] = attrs.field(factory=list)


_PIECE_BYTES: Final = 4 << 20
"""So many bytes of a snapshot are written at once: a batch holds twice as many."""
HURRIED_MS: Final = 100
"""How slow state machines are on the average, at most, while a quorum recovers: they then catch up."""


class SimulatedApplication:
    """The state machines of one process.

    Args:
        directory: whose log they read.
        choices: makes all choices.
        plan: how fast they are, and how often they write a snapshot.
        later: calls them.
        core_ms: the time that the core was told last.
        pause_ms: for how long a state machine that has taken nothing is given nothing.

    Attributes:
        is_hurried: whether they are at most ``HURRIED_MS`` slow on the average, so that they catch up.
    """

    def __init__(
        self,
        directory: Directory,
        choices: Choices,
        plan: FaultPlan,
        later: Later,
        core_ms: Callable[[], int],
        pause_ms: int,
    ) -> None:
        self._directory = directory
        self._choices = choices
        self._id = directory.identity.key.id
        self._plan = plan
        self._later = later
        self._core_ms = core_ms
        self._pause_ms = pause_ms
        self._listeners: dict[int, ListeningMachine] = {}
        self._writer: tuple[int, RecordsSnapshotWriter] | None = None
        self._creating: tuple[int, Records] | None = None
        self._last_snapshot = 0
        self._answers: list[tuple[int, Answer]] = []
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
            machine = CheckedMachine(self._directory.witness.replay.kind)
            self._listeners[raft.register_listener()] = ListeningMachine(contract, machine)

    def knows_leader(self, epoch: int, leader_id: int) -> bool:
        """Whether all state machines were told last that a replica leads an epoch."""
        return all(each.contract.knows(epoch, leader_id) for each in self._listeners.values())

    def has_read(self, end_offset: int) -> bool:
        """Whether all state machines have read the records below an offset, and have the state that follows."""
        for each in self._listeners.values():
            next_offset = each.contract.next_offset
            if next_offset is None or next_offset < end_offset:
                return False
            self._checked_records(each, next_offset)
        return True

    def _checked_records(self, listener: ListeningMachine, end_offset: int) -> Records:
        """Return the state of a state machine that has read the records below an offset."""
        listener.machine.check()
        records = listener.machine.records()
        self._directory.witness.replay.check_state(end_offset, records, listener.restores)
        return records

    def when_read(self, end_offset: int, answer: Answer) -> None:
        """Answer as soon as a state machine has read the records below an offset; never, if the process ends before.

        Args:
            end_offset: exclusive. The state machine may have read later records, too.
            answer: is called once.
        """
        self._answers.append((end_offset, answer))
        for each in self._listeners.values():
            self._answer(each)

    def _answer(self, listener: ListeningMachine) -> None:
        """Answer what one state machine can answer."""
        next_offset, waiting = listener.contract.next_offset, self._answers
        if next_offset is not None:
            self._answers = [each for each in waiting if each[0] > next_offset]
            for end_offset, answer in waiting:
                if end_offset <= next_offset:
                    answer(listener.machine.records())

    # What it is given

    def told(self, effect: Delivering | NotifyLeaderChange) -> None:
        """Take note of a leader, or begin to read what is delivered."""
        contract = self._listeners[effect.listener].contract
        if isinstance(effect, NotifyLeaderChange):
            contract.leader_told(effect.epoch, effect.leader_id)
            return
        contract.given(self._core_ms())
        if isinstance(effect, DeliverBatches):
            contract.batches_delivered(effect.offset, effect.end_offset)
        else:
            contract.snapshot_delivered(effect.snapshot_id)
        self._later(self._delay_ms(), self._read, effect)

    def _read(self, effect: Delivering) -> None:
        listener = self._listeners[effect.listener]
        next_offset = None if self._choices.happens(0.03, "nothing-read", self._id) else self._taken(listener, effect)
        listener.contract.closed(next_offset)
        if next_offset is None:
            listener.contract.paused(self._core_ms() + self._pause_ms)
        self._raft.delivery_closed(effect.number, next_offset)
        if self._answers:
            self._answer(listener)
        self._consider_snapshot(listener, self._checked_records(listener, listener.contract.next_offset or 0))

    def _taken(self, listener: ListeningMachine, effect: Delivering) -> int | None:
        if isinstance(effect, DeliverBatches):
            return self._read_batches(listener, effect)
        if isinstance(effect, DeliverBootstrap):
            return effect.snapshot_id.offset
        return self._load(listener, effect)

    def _load(self, listener: ListeningMachine, effect: DeliverSnapshot) -> int | None:
        """Load a snapshot, unless a later one has replaced the whole log meanwhile."""
        raw = self._directory.log.read_snapshot(effect.snapshot_id)
        if raw is None:
            listener.contract.snapshot_gone(effect.snapshot_id)
            return None
        read_end, end_offset = listener.contract.next_offset or 0, effect.snapshot_id.offset
        self._directory.witness.replay.restore(listener.machine, end_offset, records_of(RecordsSnapshotReader.of(raw)))
        listener.restores.append(Restored(read_end, end_offset))
        return end_offset

    def _read_batches(self, listener: ListeningMachine, effect: DeliverBatches) -> int | None:
        """Read records, or a part of them, unless a snapshot has replaced the log meanwhile."""
        offset, end_offset = effect.offset, effect.end_offset
        if self._choices.happens(0.1, "part-read", self._id):
            end_offset = self._choices.number(offset + 1, end_offset + 1, "read-end", self._id)
        try:
            for batch in self._directory.log.batches(offset, Isolation.UNCOMMITTED):
                if batch.base_offset >= end_offset:
                    break
                listener.contract.read(batch)
                _apply(listener.machine, batch, offset, end_offset)
                offset = min(batch.next_offset, end_offset)
        except (OffsetOutOfRangeError, WorkUnderWayError):
            pass
        return offset if offset > effect.offset else None

    # Snapshots

    def _consider_snapshot(self, listener: ListeningMachine, records: Records) -> None:
        """Begin a snapshot where a state machine is, if it has read enough since the last one."""
        interval, offset = self._plan.snapshot_interval, listener.contract.next_offset
        if not interval or offset is None or offset - self._last_snapshot < interval or self._creating is not None:
            return
        self._begin(offset, records)

    def begin_snapshot(self) -> None:
        """Begin a snapshot where the first state machine is, unless one is being written, or it has read nothing."""
        listener = next(iter(self._listeners.values()))
        offset = listener.contract.next_offset
        if offset is not None and offset > self._last_snapshot and self._creating is None:
            self._begin(offset, self._checked_records(listener, offset))

    def _begin(self, offset: int, records: Records) -> None:
        try:
            number = self._raft.create_snapshot(offset)
        except (SnapshotError, InvalidSnapshotIdError):  # One is being frozen, or a later one was fetched.
            return
        self._last_snapshot = offset
        if number is not None:
            self._creating = number, records

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
        (_, records), (_, writer) = self._creating, self._writer
        self._creating = self._writer = None
        if self._choices.happens(0.1, "snapshot-abandoned", self._id):
            self._raft.abandon_snapshot(number)
            return
        for piece in _pieces(records):
            writer.append(piece, 0)
        self._raft.freeze_snapshot(number)


def _pieces(records: Records) -> Iterator[Sequence[bytes]]:
    """Yield the records in pieces that fit into a batch each."""
    first, size_bytes = 0, 0
    for index, each in enumerate(records):
        if size_bytes + len(each) > _PIECE_BYTES:
            yield records[first:index]
            first, size_bytes = index, 0
        size_bytes += len(each)
    if records:
        yield records[first:]


def _apply(machine: CheckedMachine, batch: RecordBatch, offset: int, end_offset: int) -> None:
    """Apply the records of a batch from an offset, inclusive, to another one, exclusive."""
    if not batch.is_control:
        for each, value in values_in(batch):
            if offset <= each < end_offset:
                machine.apply(each, value)
