# SPDX-License-Identifier: Apache-2.0
"""What clients asked for and were told, and when, for a checker of histories. Most runs have none."""

from collections.abc import Callable
from typing import NamedTuple

import attrs

from raftlog.testing.simulator.applications.checked_machine import Records, number_of
from raftlog.testing.simulator.applications.registers import REGISTERS
from raftlog.testing.simulator.checks.client_oracle import ClientAppend, Told
from raftlog.testing.simulator.checks.decoded import values_in
from raftlog.testing.simulator.replica_process import ReplicaProcess
from raftlog.testing.simulator.timeline import Timeline


class Instant(NamedTuple):
    """When a client called, or was answered. An answer precedes a call if its number of calls is lower.

    Attributes:
        calls: how many calls there had been in the run, with this one.
        at_ms: the virtual time.
    """

    calls: int
    at_ms: int


@attrs.define(eq=False)
class RecordedAppend:
    """An append that a replica has taken.

    Attributes:
        append: its values, and the offsets that the leader gave to them.
        replica: the id of the leader.
        called: when the client appended.
        told: what the client knows: ``Told.NOTHING`` if the run ended before.
        answered: when it was told so; None if it was not.
    """

    append: ClientAppend
    replica: int
    called: Instant
    told: Told = Told.NOTHING
    answered: Instant | None = None


class LogRead(NamedTuple):
    """What a replica has in its log when it confirms a read.

    Attributes:
        start_offset: of the log, inclusive: a snapshot has replaced the records below.
        end_offset: of the read, exclusive.
        records: between the two: the offset of each data record, and the number that it stands for.
    """

    start_offset: int
    end_offset: int
    records: tuple[tuple[int, int], ...]


@attrs.define(eq=False)
class RecordedRead:
    """A read that a replica has taken.

    Attributes:
        replica: the id of the leader.
        called: when the client began to read.
        confirmed: when the replica knew up to where to read; None if it never did.
        log: the records up to there; None likewise.
        answered: when a state machine of the replica had read them; None if none did.
        registers: its registers at that time; None likewise.
    """

    replica: int
    called: Instant
    confirmed: Instant | None = None
    log: LogRead | None = None
    answered: Instant | None = None
    registers: dict[int, int] | None = None


class ClientHistory:
    """Takes down the appends and reads of a run with the built-in state machine. It changes nothing in the run.

    Args:
        timeline: of the run.

    Attributes:
        appends: in the order of their calls.
        reads: in the order of their calls.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.appends: list[RecordedAppend] = []
        self.reads: list[RecordedRead] = []
        self._timeline = timeline
        self._calls = 0
        self._appends: dict[ClientAppend, RecordedAppend] = {}
        self._reads: dict[tuple[ReplicaProcess, int], RecordedRead] = {}

    def _now(self) -> Instant:
        return Instant(self._calls, self._timeline.now_ms)

    def _called(self) -> Instant:
        self._calls += 1
        return self._now()

    def append_called(self, process: ReplicaProcess, append: ClientAppend) -> None:
        """Note an append that a replica has taken."""
        recorded = RecordedAppend(append, process.directory.identity.key.id, self._called())
        self._appends[append] = recorded
        self.appends.append(recorded)

    def append_answered(self, append: ClientAppend, told: Told) -> None:
        """Note what a client is told of its append. Upgrades of kraft.version, which are none, are ignored."""
        recorded = self._appends.pop(append, None)
        if recorded is not None:
            recorded.told, recorded.answered = told, self._now()

    def read_called(self, process: ReplicaProcess, number: int) -> None:
        """Note a read that a replica has taken, by the number that its core has given to it."""
        recorded = RecordedRead(process.directory.identity.key.id, self._called())
        self._reads[process, number] = recorded
        self.reads.append(recorded)

    def read_confirmed(self, process: ReplicaProcess, number: int, end_offset: int) -> None:
        """Note up to where a replica is to read, exclusive; the client is answered when a state machine is there."""
        recorded = self._reads.pop((process, number), None)
        if recorded is not None:
            recorded.confirmed = self._now()
            recorded.log = _read_log(process, end_offset)
            process.application.when_read(end_offset, self._answering(recorded))

    def _answering(self, recorded: RecordedRead) -> Callable[[Records], None]:
        def answer(records: Records) -> None:
            numbers = map(number_of, records)
            recorded.answered, recorded.registers = self._now(), {each % REGISTERS: each for each in numbers}

        return answer


def _read_log(process: ReplicaProcess, end_offset: int) -> LogRead:
    """Return the records that the log of a replica was given, from its start to an offset, exclusive."""
    ledger, history = process.directory.ledger, process.directory.witness.history
    start_offset = ledger.start_offset
    records: list[tuple[int, int]] = []
    for batch in ledger.batches:
        if batch.base_offset >= end_offset:
            break
        content = history.content_of(batch)
        if not content.is_control:
            values = values_in(content)
            records += ((each, number_of(value)) for each, value in values if start_offset <= each < end_offset)
    return LogRead(start_offset, end_offset, tuple(records))
