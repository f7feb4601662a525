# SPDX-License-Identifier: Apache-2.0
"""Clients that append to whatever replica says that it leads, and an oracle that checks what they are told."""

import contextlib
from collections.abc import Iterable

from raftlog.errors import BufferExhaustedError, InvalidUpdateVersionError, NotLeaderError
from raftlog.quorum.roles.roles import Leader
from raftlog.quorum.seam.effects import AppendOutcome, EndAppend, EndRead, ReadOutcome
from raftlog.testing.simulator.applications.checked_machine import MachineKind
from raftlog.testing.simulator.applications.drawn_commands import DrawnCommands
from raftlog.testing.simulator.checks.client_oracle import ClientAppend, ClientOracle, ReadBegun, Told
from raftlog.testing.simulator.choices import Choices
from raftlog.testing.simulator.client_history import ClientHistory
from raftlog.testing.simulator.replica_process import ReplicaProcess
from raftlog.testing.simulator.violation import check
from raftlog.voters.kraft_version import KRaftVersion

_TOLD = {
    AppendOutcome.COMMITTED: Told.OK,
    AppendOutcome.FAILED: Told.FAILED,
    AppendOutcome.UNKNOWN: Told.UNKNOWN,
}


class Workload:
    """All clients.

    Args:
        oracle: is told what the clients are told.
        choices: makes all choices.
        kind: of the state machines, whose commands clients append.

    Attributes:
        history: takes down what clients ask for and are told; None for a run whose history nobody checks.
    """

    def __init__(self, oracle: ClientOracle, choices: Choices, kind: MachineKind) -> None:
        self.oracle = oracle
        self.history: ClientHistory | None = None
        self._choices = choices
        self._commands = DrawnCommands(kind, choices)
        self._waiting: dict[ReplicaProcess, dict[int, ClientAppend]] = {}
        self._reads: dict[tuple[ReplicaProcess, int], ReadBegun] = {}

    def append(self, process: ReplicaProcess) -> ClientAppend | None:
        """Append some records at a replica that believes to lead; None if it refuses."""
        numbers = self.oracle.next_numbers(1 + int(3 * self._choices.fraction(0, "values") ** 3))
        values = [self._commands.value(each) for each in numbers]
        try:
            appended = process.raft.append(values, epoch=process.raft.role.epoch)
        except (NotLeaderError, BufferExhaustedError):
            return None
        append = ClientAppend(numbers.start, len(numbers), appended.last_offset)
        if self.history is not None:
            self.history.append_called(process, append)
        return self._wait(process, appended.number, append)

    def upgrade(self, process: ReplicaProcess) -> None:
        """Ask a replica that believes to lead to upgrade kraft.version to 1; it may refuse."""
        version, epoch = KRaftVersion.KRAFT_VERSION_1, process.raft.role.epoch
        with contextlib.suppress(NotLeaderError, BufferExhaustedError, InvalidUpdateVersionError):
            appended = process.raft.upgrade_kraft_version(version, epoch=epoch)
            if appended is not None:
                self._wait(process, appended.number, ClientAppend(0, 0, appended.last_offset))

    def _wait(self, process: ReplicaProcess, number: int, append: ClientAppend) -> ClientAppend:
        waiting = self._waiting.setdefault(process, {})
        last = next(reversed(waiting.values())).last_offset if waiting else -1
        check(last < append.last_offset - append.count + 1, "offsets-in-order", "{} after {}", append, last)
        waiting[number] = append
        return append

    def append_ended(self, process: ReplicaProcess, effect: EndAppend) -> None:
        """Tell a client what became of its append: those of one leader end in the order of their offsets."""
        waiting = self._waiting.get(process, {})
        check(effect.number in waiting, "one-outcome", "an append that no client waits for: {}", effect)
        check(next(iter(waiting)) == effect.number, "offsets-in-order", "{} before {}", effect, waiting)
        append = waiting.pop(effect.number)
        check(append.last_offset == effect.last_offset, "offsets-in-order", "{} for {}", effect, append)
        self._tell(append, _TOLD[effect.outcome])

    def _tell(self, append: ClientAppend, told: Told) -> None:
        if self.history is not None:
            self.history.append_answered(append, told)
        self.oracle.ended(append, told)

    def read(self, process: ReplicaProcess, known_end: int, event: int) -> None:
        """Begin a read at a replica that believes to lead; it may refuse.

        Args:
            process: the replica.
            known_end: the highest high watermark that any replica has had.
            event: the number of the present event.
        """
        began = ReadBegun(self.oracle.acknowledged_end, known_end, process.raft.role.epoch, event)
        with contextlib.suppress(NotLeaderError):
            number = process.raft.read_barrier()
            self._reads[process, number] = began
            if self.history is not None:
                self.history.read_called(process, number)

    def read_ended(self, process: ReplicaProcess, effect: EndRead, committed_end: int) -> None:
        """Answer a read, or give it up."""
        began = self._reads.pop((process, effect.number), None)
        check(began is not None, "one-outcome", "a read that no client waits for: {}", effect)
        if effect.outcome is ReadOutcome.CONFIRMED and began is not None:
            if self.history is not None:
                self.history.read_confirmed(process, effect.number, effect.offset)
            self.oracle.read_confirmed(began, effect.offset, committed_end)
            process.confirmations.check_read(began.epoch, began.event)

    def check_ended(self, process: ReplicaProcess) -> None:
        """Check that no client waits for a replica that does not lead: nothing would ever answer it."""
        waiting = [*self._waiting.get(process, ()), *(number for each, number in self._reads if each is process)]
        is_leader = isinstance(process.raft.role, Leader)
        check(is_leader or not waiting, "requests-end", "{} leaves {} unanswered", process.raft.role, waiting)

    def crashed(self, process: ReplicaProcess) -> None:
        """Leave the clients of a process without an answer."""
        for append in self._waiting.pop(process, {}).values():
            self._tell(append, Told.UNKNOWN)

    def leader_among(self, processes: Iterable[ReplicaProcess]) -> ReplicaProcess | None:
        """Return a replica that believes to lead: any of them, if there are several."""
        leaders = [each for each in processes if isinstance(each.raft.role, Leader)]
        return self._choices.pick(leaders, "leader") if leaders else None
