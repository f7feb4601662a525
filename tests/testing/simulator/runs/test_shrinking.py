# SPDX-License-Identifier: Apache-2.0
"""Shrunk schedules violate the same invariant, and none of their choices can be left out."""

import multiprocessing
import random
from collections import Counter
from typing import Final

import attrs
import pytest

from raftlog.testing.simulator.checks.schedule_outcome import ScheduleOutcome
from raftlog.testing.simulator.choices import ChoiceName, Deviations, RecordedChoices, SeededChoices
from raftlog.testing.simulator.fault_plan import FaultPlan, draw_fault_plan
from raftlog.testing.simulator.machine import Machine
from raftlog.testing.simulator.runs.schedule import Schedule, Token, record, replay
from raftlog.testing.simulator.runs.shrinking import shrink
from raftlog.testing.simulator.simulation import Simulation
from raftlog.testing.simulator.violation import ViolationError
from tests.testing.simulator.planted_bugs import BUGS

CRASHES: Final = 2
BY_HAND_MS: Final = 6_500
"""A schedule made by hand shows its bug by then."""

CALM: Final = {
    "high-watermark-back": ("high-watermark-rises", 0),
    "minority-commits": ("high-watermark-is-committed", 0),
    "unflushed-fetch": ("fetch-is-durable", 1),
    "R12-told": ("stored-before-sent", 0),
    "written-twice": ("value-once", 0),
    "told-twice": ("one-outcome", 0),
    "snapshot-without-voters": ("voter-history", 0),
    "delivered-twice": ("listener-in-order", 0),
    "delivered-early": ("listener-is-committed", 0),
    "leader-told-again": ("leader-told-once", 0),
    "leader-told-early": ("leader-told-late", 0),
    "no-pause": ("no-busy-loop", 0),
}
"""Bugs that a run without faults shows, each with the invariant that finds it, and a seed."""

PLAN: Final = FaultPlan(
    voters=3,
    observers=0,
    delay_ms=3.0,
    is_delay_even=True,
    loss=0.03,
    duplication=0.06,
    cut_interval_ms=2000,
    is_cut_one_way=True,
    crash_interval_ms=2000,
    armed_crashes=0.6,
    rot=0.5,
    pause_interval_ms=2000,
    change_interval_ms=1500,
    kraft_version=1,
    upgrade_ms=0,
    clock_error_ppm=1000,
    sync_ms=5.0,
    slow_sync=0.01,
    append_interval_ms=300,
    listeners=1,
    listener_delay_ms=30.0,
    snapshot_interval=40,
    retention_bytes=0,
    do_voters_ask_bootstrap=False,
)
"""Three voters, and all faults of a model of disks, one every second or two."""


def once(*kinds: str) -> dict[ChoiceName, int | float]:
    """Return choices that let some faults happen the first time that they can."""
    return {ChoiceName(kind, (), 0): 1 for kind in kinds}


TOGETHER: Final = {ChoiceName("election-timeout", (2,), 0): 0.0}
SOON: Final = {ChoiceName("append-interval", (), 5): 5}
BY_HAND: Final[dict[str, tuple[str, int, Deviations]]] = {
    # Two candidates at once.
    "half-wins": ("one-leader-per-epoch", 2, TOGETHER),
    "votes-again": ("one-vote-per-epoch", 2, TOGETHER),
    # Appends or a read while another append is not committed.
    "R-acknowledged": ("acknowledged-is-committed", 1, SOON),
    "told-when-written": ("acknowledged-is-committed", 1, SOON),
    "told-out-of-order": ("offsets-in-order", 0, SOON),
    "reads-uncommitted": ("reads-are-committed", 0, once("read")),
    "R-read-fetch": ("reads-are-confirmed", 0, {ChoiceName("read", (), 2): 1}),
    "F8-read-by-old-fetch": ("reads-are-confirmed", 0, {ChoiceName("read", (), 2): 1}),
    # The leader crashes, and starts again; or it does so when it has records that are not durable.
    "epoch-back": ("epochs-rise", 0, once("crash")),
    "leader-told-wrong": ("leader-told-rightly", 0, once("crash")),
    "F1-pre-votes-count": ("one-leader-per-epoch", 3, once("crash")),
    "K1-core": ("one-batch-per-offset-and-epoch", 0, once("crash", "crash-armed")),
    # The leader is cut off.
    "K5-end": ("leaders-are-in-touch", 0, once("cut")),
    "truncates-committed": ("high-watermark-is-kept", 0, once("cut")),
    # The operator removes the leader.
    "K9-resigns": ("removed-leaders-resign", 2, once("change")),
    "two-removed": ("voter-sets-overlap", 0, once("change")),
    "K7": ("pre-votes-keep-leaders", 0, once("change")),
    "R-unknown": ("failed-never", 0, once("change")),
    # A state machine takes nothing.
    "K20-listener": ("listeners-pause", 0, {ChoiceName("nothing-read", (1,), 1): 1}),
}
"""Bugs that need faults, each with the invariant that finds it, a seed, and the least choices, made by hand."""


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


@pytest.mark.parametrize("needed", ["none", "cut", "crash", "loss"])
def test_the_choices_of_one_kind_are_tried_alone(needed: str) -> None:
    """After the whole schedule and the calm one, those of which there are the fewest first, until some are enough."""
    counts = {"loss": 40, "cut": 2, "crash": 9}
    schedule = Schedule(PLAN, {ChoiceName(kind, (), each): 1 for kind in counts for each in range(counts[kind])})
    violation, tried = ViolationError("test", "fails"), list[Counter[str]]()

    def run(candidate: Schedule, end_ms: int | None = None) -> tuple[Schedule, ScheduleOutcome]:
        tried.append(Counter(each.kind for each in candidate.deviations))
        is_found = needed == "none" or ChoiceName(needed, (), 1) in candidate.deviations
        return candidate, attrs.evolve(calm, violation=violation if is_found else None)

    calm = replay(Schedule(PLAN), 0)[1]
    shrunk = shrink(schedule, violation, run=run)
    order = [Counter(counts), Counter(), *(Counter({kind: counts[kind]}) for kind in ("cut", "crash", "loss"))]
    at = 2 if needed == "none" else 3 + ["cut", "crash", "loss"].index(needed)
    assert tried[:at] == order[:at]
    assert set(shrunk.schedule.deviations) == (set() if needed == "none" else {ChoiceName(needed, (), 1)})


@pytest.mark.parametrize("first", [0, 3])
def test_one_choice_at_its_first_occasion_may_be_enough(first: int) -> None:
    """Also if no such choice was made, and others are needed beside a later one; it has the value of the first."""
    later = {ChoiceName("cut", (), each): 1 + each for each in range(first, 5)}
    lost = {ChoiceName("loss", (1, 2), each): 1 for each in range(3)}
    needed = {ChoiceName("cut", (), 4), *lost}
    enough = {ChoiceName("cut", (), 0): 1 + first}

    def run(candidate: Schedule, end_ms: int | None = None) -> tuple[Schedule, ScheduleOutcome]:
        is_found = needed <= candidate.deviations.keys() or candidate.deviations == enough
        return candidate, attrs.evolve(calm, violation=violation if is_found else None)

    violation, calm = ViolationError("test", "fails"), replay(Schedule(PLAN), 0)[1]
    shrunk = shrink(Schedule(PLAN, later | lost), violation, run=run)
    assert shrunk.schedule.deviations == enough
    assert shrunk.is_finished


@pytest.mark.parametrize("needed", [1, 2])
def test_a_fault_that_the_schedule_never_came_to_may_be_enough(needed: int) -> None:
    """It had ended before; such a fault is tried only if more than one choice would be left."""
    lost = {ChoiceName("loss", (1, 2), each): 1 for each in range(2)}
    change, tried = once("change"), list[Deviations]()

    def run(candidate: Schedule, end_ms: int | None = None) -> tuple[Schedule, ScheduleOutcome]:
        tried.append(candidate.deviations)
        is_found = len(candidate.deviations.keys() & lost.keys()) >= needed or candidate.deviations == change
        return candidate, attrs.evolve(calm, violation=violation if is_found else None)

    violation, calm = ViolationError("test", "fails"), replay(Schedule(PLAN), 0)[1]
    shrunk = shrink(Schedule(PLAN, lost), violation, run=run)
    assert shrunk.schedule.deviation_count == 1
    assert (change in tried) == (shrunk.schedule.deviations == change) == (needed > 1)


def test_the_faults_of_the_whole_schedule_are_there_for_one_choice() -> None:
    """Those that were switched off on the way are tried again, and then switched off if they are not needed."""
    cut, lost = ChoiceName("cut", (), 3), {ChoiceName("loss", (1, 2), each): 1 for each in range(2)}
    enough = {cut._replace(number=0): 1}

    def run(candidate: Schedule, end_ms: int | None = None) -> tuple[Schedule, ScheduleOutcome]:
        is_alone = candidate.deviations == enough and candidate.plan.cut_interval_ms > 0
        is_found = is_alone or candidate.deviations.keys() >= lost.keys()
        return candidate, attrs.evolve(calm, violation=violation if is_found else None)

    violation, calm = ViolationError("test", "fails"), replay(Schedule(PLAN), 0)[1]
    plan = shrink(Schedule(PLAN, {cut: 1} | lost), violation, run=run).schedule.plan
    assert (plan.cut_interval_ms, plan.loss) == (PLAN.cut_interval_ms, 0)


def _recorded(plan: FaultPlan | None, seed: int) -> tuple[Schedule, ViolationError]:
    """Return the schedule of a plan, or else of a drawn one on the model without autopilots, and its violation."""
    chance = random.Random(seed)
    plan = plan or draw_fault_plan(chance)
    choices = RecordedChoices(SeededChoices(chance))
    violation = Simulation(choices, plan).run().violation
    assert violation is not None
    return Schedule(plan, choices.deviations), violation


def _shrunk_with(bug: str) -> tuple[str, int, int]:
    """Plant a bug in this process, and return its name, how many choices it takes shrunk, and by hand.

    Those by hand are enough, and none of them can be left out.
    """
    BUGS[bug].plant()
    if bug in CALM:
        invariant, seed = CALM[bug]
        (schedule, violation), by_hand = _recorded(None, seed), Schedule(PLAN)
    else:
        invariant, seed, deviations = BY_HAND[bug]
        (schedule, violation), by_hand = _recorded(PLAN, seed), Schedule(PLAN, deviations)
    assert violation.invariant == invariant, bug
    if by_hand.deviations:
        assert _found(by_hand) == invariant, bug
        for name in by_hand.deviations:
            left = {each: value for each, value in by_hand.deviations.items() if each != name}
            assert _found(attrs.evolve(by_hand, deviations=left)) != invariant, (bug, name)
    return bug, shrink(schedule, violation).schedule.deviation_count, by_hand.deviation_count


def _found(schedule: Schedule) -> str | None:
    violation = replay(schedule, BY_HAND_MS)[1].violation
    return None if violation is None else violation.invariant


@pytest.mark.parametrize(
    "step",
    [pytest.param(4, marks=pytest.mark.slow, id="some"), pytest.param(1, marks=pytest.mark.volume, id="all")],
)
def test_shrunk_schedules_are_nearly_as_small_as_those_made_by_hand(step: int) -> None:
    """At most twice the choices are left, for each of some planted bugs: 12 of 31 need none, and 19 some."""
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        shrunk = pool.map(_shrunk_with, [*CALM, *BY_HAND][::step], chunksize=1)
    assert (len(CALM), len(BY_HAND)) == (12, 19)
    for bug, left, minimal in shrunk:
        assert left <= 2 * minimal, bug
        assert (minimal == 0) == (bug in CALM), bug
