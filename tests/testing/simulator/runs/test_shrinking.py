# SPDX-License-Identifier: Apache-2.0
"""Shrunk schedules violate the same invariant, and none of their choices can be left out."""

import multiprocessing
import random
from collections import Counter
from typing import Any, Final

import attrs
import pytest

from raftlog.testing.simulator.checks.schedule_outcome import ScheduleOutcome
from raftlog.testing.simulator.choices import RecordedChoices, SeededChoices
from raftlog.testing.simulator.fault_plan import draw_fault_plan
from raftlog.testing.simulator.machine import Machine
from raftlog.testing.simulator.runs.schedule import Schedule, Token, record, replay
from raftlog.testing.simulator.runs.shrinking import shrink
from raftlog.testing.simulator.simulation import Simulation
from raftlog.testing.simulator.violation import ViolationError
from tests.testing.simulator.planted_bugs import BUGS

CRASHES: Final = 2

MINIMAL: Final = {
    # A run without faults shows it.
    "high-watermark-back": ("high-watermark-rises", 0, 0),
    "minority-commits": ("high-watermark-is-committed", 0, 0),
    "unflushed-fetch": ("fetch-is-durable", 1, 0),
    "R12-told": ("stored-before-sent", 0, 0),
    "written-twice": ("value-once", 0, 0),
    "told-twice": ("one-outcome", 0, 0),
    "snapshot-without-voters": ("voter-history", 0, 0),
    "delivered-twice": ("listener-in-order", 0, 0),
    "delivered-early": ("listener-is-committed", 0, 0),
    "leader-told-again": ("leader-told-once", 0, 0),
    "leader-told-early": ("leader-told-late", 0, 0),
    "no-pause": ("no-busy-loop", 0, 0),
    # Two candidates at once, or two appends before one of them is committed: one time must differ.
    "half-wins": ("one-leader-per-epoch", 0, 1),
    "votes-again": ("one-vote-per-epoch", 0, 1),
    "leader-told-wrong": ("leader-told-rightly", 0, 1),
    "R-acknowledged": ("acknowledged-is-committed", 0, 1),
    "told-when-written": ("acknowledged-is-committed", 0, 1),
    "reads-uncommitted": ("reads-are-committed", 0, 1),
    "told-out-of-order": ("offsets-in-order", 0, 1),
    # One crash.
    "epoch-back": ("epochs-rise", 0, 1),
    # One crash, which loses records.
    "K1-core": ("one-batch-per-offset-and-epoch", 1, 2),
}
"""Bugs, each with the invariant that finds it, a seed, and how many choices a schedule made by hand needs."""


def crashing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a second crash of one machine violate an invariant."""
    right, counts = Machine.crash, Counter[int]()
    started = Machine.start

    def start(self: Machine) -> None:
        if self.id == 1 and self.crash_count == 0 and self._timeline.now_ms == 0:
            counts.clear()
        started(self)

    def crash(self: Machine) -> None:
        right(self)
        counts[self.id] += 1
        if counts[self.id] == CRASHES:
            raise ViolationError("test", f"{self.id} has crashed twice")

    monkeypatch.setattr(Machine, "start", start)
    monkeypatch.setattr(Machine, "crash", crash)


def violated(token: Token) -> tuple[Schedule, ViolationError]:
    """Return the schedule of a token, and its violation."""
    schedule, outcome = record(token)
    assert outcome.violation is not None
    return schedule, outcome.violation


def test_no_choice_of_a_shrunk_schedule_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it need more than what makes a machine crash twice."""
    crashing(monkeypatch)
    schedule, violation = violated(Token(0))
    shrunk = shrink(schedule, violation)
    assert shrunk.is_finished
    assert shrunk.violation.invariant == "test"
    assert CRASHES <= shrunk.schedule.deviation_count <= 2 * CRASHES < schedule.deviation_count
    assert sum(name.kind == "crash" for name in shrunk.schedule.deviations) == CRASHES
    _, again = replay(shrunk.schedule)
    assert again.violation is not None
    assert str(again.violation) == str(shrunk.violation)
    for gone in shrunk.schedule.deviations:
        left = {name: value for name, value in shrunk.schedule.deviations.items() if name != gone}
        assert replay(Schedule(shrunk.schedule.plan, left))[1].violation is None


@pytest.mark.parametrize("runs", [1, 2, 7])
def test_a_limit_of_runs(runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found until then is returned, and still violates the invariant."""
    crashing(monkeypatch)
    schedule, violation = violated(Token(0))
    shrunk = shrink(schedule, violation, runs)
    assert (shrunk.runs, shrunk.is_finished) == (runs, False)
    assert replay(shrunk.schedule)[1].violation is not None


def test_another_violation_is_not_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """A schedule that violates another invariant only is not shrunk to."""
    crashing(monkeypatch)
    schedule, _ = violated(Token(0))
    other = ViolationError("other", "never happens")
    shrunk = shrink(schedule, other, 5)
    assert shrunk.schedule == schedule
    assert shrunk.violation is other


@pytest.mark.parametrize(("invariant", "end_ms"), [("test", 1_700 + 5_000), ("recovery", None)])
def test_a_violation_may_come_five_seconds_later(
    invariant: str, end_ms: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Schedules are run for so long after the best one so far; a quorum that does not recover shows it at the end."""
    crashing(monkeypatch)
    schedule, _ = violated(Token(0))
    ends: list[int | None] = []

    def ended(candidate: Schedule, end_ms: int | None = None) -> tuple[Schedule, ScheduleOutcome]:
        ends.append(end_ms)
        outcome = attrs.evolve(whole, violation=ViolationError(invariant, "fails"), ended_ms=1_700)
        return candidate, outcome

    _, whole = replay(schedule)
    shrunk = shrink(schedule, ViolationError(invariant, "fails"), run=ended)
    assert shrunk.is_finished
    assert shrunk.schedule.deviation_count == 0
    assert ends[0] is None
    assert set(ends[1:]) == {end_ms}


def _plainly_recorded(seed: int) -> tuple[Schedule, ViolationError]:
    """Return a schedule on the model, without autopilots and their observers, and its violation."""
    chance = random.Random(seed)
    plan = draw_fault_plan(chance)
    choices = RecordedChoices(SeededChoices(chance))
    violation = Simulation(choices, plan).run().violation
    assert violation is not None
    return Schedule(plan, choices.deviations), violation


def _shrunk_with(bug: str) -> tuple[str, bool, int, int]:
    """Plant a bug in this process, and return its name, whether the run without faults shows it, and the counts."""
    invariant, seed, _ = MINIMAL[bug]
    BUGS[bug].plant()
    schedule, violation = _plainly_recorded(seed)
    assert violation.invariant == invariant
    shrunk = shrink(schedule, violation)
    calm: Any = replay(attrs.evolve(shrunk.schedule, deviations={}))[1].violation
    is_calm_enough = calm is not None and calm.invariant == invariant
    return bug, is_calm_enough, shrunk.schedule.deviation_count, schedule.deviation_count


@pytest.mark.slow
def test_shrunk_schedules_are_nearly_as_small_as_those_made_by_hand() -> None:
    """For each of 21 planted bugs at most twice the choices are left; the smallest need none."""
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        shrunk = {bug: numbers for bug, *numbers in pool.map(_shrunk_with, MINIMAL, chunksize=1)}
    assert len(shrunk) >= 20
    for bug, (_, _, minimal) in MINIMAL.items():
        is_calm_enough, left, before = shrunk[bug]
        assert left <= 2 * minimal, bug
        assert is_calm_enough == (minimal == 0), bug
        assert left <= before
