# SPDX-License-Identifier: Apache-2.0
"""The history of a run is what its clients asked for and were told, in order, and nothing else changes by it."""

import functools
import random

import attrs
import pytest

from raftlog.testing.simulator.application import SimulatedApplication
from raftlog.testing.simulator.applications.checked_machine import Records, number_of, value_of
from raftlog.testing.simulator.applications.registers import REGISTERS
from raftlog.testing.simulator.checks.client_oracle import Told
from raftlog.testing.simulator.checks.schedule_outcome import ScheduleOutcome
from raftlog.testing.simulator.choices import SeededChoices
from raftlog.testing.simulator.client_history import ClientHistory
from raftlog.testing.simulator.fault_plan import draw_fault_plan
from raftlog.testing.simulator.runs.schedule import Token, run_seed
from raftlog.testing.simulator.simulation import Simulation
from tests.testing.simulator.known_schedules import outcome_of


@functools.cache
def recorded(seed: int) -> tuple[Simulation, ClientHistory, ScheduleOutcome]:
    """Run a schedule with its history."""
    found: list[tuple[Simulation, ClientHistory]] = []

    def watch(simulation: Simulation) -> None:
        simulation.workload.history = ClientHistory(simulation.timeline)
        found.append((simulation, simulation.workload.history))

    outcome = run_seed(Token(seed), watch)
    return *found[0], outcome


@pytest.mark.parametrize("seed", [0, 2])
def test_a_history(seed: int) -> None:
    """In memory and on files: all events are the same as without it, and it has each append and read once, in order."""
    simulation, history, outcome = recorded(seed)
    assert outcome == outcome_of(seed)
    assert simulation.plan.is_on_files == (seed == 2)
    calls = [each.called.calls for each in history.appends] + [each.called.calls for each in history.reads]
    assert sorted(calls) == list(range(1, len(calls) + 1))
    told = [each.told for each in history.appends]
    assert (told.count(Told.OK), told.count(Told.UNKNOWN)) == (outcome.acknowledged, outcome.unknown)
    for append in history.appends:
        assert append.told is append.append.told
        assert (append.answered is None) == (append.told is Told.NOTHING)
        assert append.answered is None or append.called <= append.answered
    confirmed = [each for each in history.reads if each.confirmed is not None]
    assert len(confirmed) == outcome.reads
    for read in confirmed:
        assert read.confirmed is not None
        assert read.called <= read.confirmed
        assert read.answered is None or read.confirmed <= read.answered


def test_what_reads_see() -> None:
    """The log has the committed records below the offset; a state machine answers with a state there or after it."""
    simulation, history, _ = recorded(0)
    committed = simulation.oracle._offsets
    answered = [each for each in history.reads if each.answered is not None]
    assert len(answered) > 30
    for read in answered:
        assert read.log is not None
        assert read.registers is not None
        start, end, records = read.log
        expected = sorted((offset, number) for number, offset in committed.items() if start <= offset < end)
        assert list(records) == expected
        later = range(end, simulation.history.end_offset + 1)
        states = (map(number_of, simulation.replay.records_at(offset)) for offset in later)
        assert read.registers in [{each % REGISTERS: each for each in state} for state in states]


def application() -> SimulatedApplication:
    """Return the two state machines of a replica, which have read nothing."""
    plan = attrs.evolve(draw_fault_plan(random.Random(0)), listeners=2, is_on_files=False)
    simulation = Simulation(SeededChoices(random.Random(0)), plan)
    simulation.machines[1].start()
    process = simulation.machines[1].process
    assert process is not None
    return process.application


@pytest.mark.parametrize(("next_offset", "is_answered"), [(None, False), (4, False), (5, True), (6, True)])
def test_a_read_waits_for_a_state_machine(next_offset: int | None, is_answered: bool) -> None:
    """It is answered when one of them has read the records below its offset, once, with its state at that time."""
    some, answers = application(), list[Records]()
    _, second = some._listeners.values()
    second.contract.next_offset = next_offset
    second.machine.apply(3, value_of(27))
    some.when_read(5, answers.append)
    assert answers == [(value_of(27),)] * is_answered
    second.contract.next_offset = 7
    second.machine.apply(6, value_of(51))
    some._answer(second)
    some._answer(second)
    assert answers == [(value_of(27),)] if is_answered else [(value_of(51),)]
