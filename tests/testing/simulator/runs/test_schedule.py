# SPDX-License-Identifier: Apache-2.0
"""Options and tokens of schedules: each value does what it says, and names that are none are refused."""

import functools
import random
from collections import Counter

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import OptionError
from raftlog.testing.simulator.disks.file_directory import CRASH_FAULTS
from raftlog.testing.simulator.disks.simulated_disk import ERRORS, MISREADS
from raftlog.testing.simulator.fault_plan import AIMED_SHARE, FaultPlan, Storage, draw_fault_plan, with_disks
from raftlog.testing.simulator.runs.campaign import FAULTS, MARKS, Totals
from raftlog.testing.simulator.runs.schedule import (
    SWITCHES,
    Schedule,
    ScheduleOptions,
    Token,
    plan_of,
    replay,
    run_seed,
)
from tests.testing.simulator.many_schedules import outcomes

OPTIONS = st.builds(
    ScheduleOptions,
    st.none() | st.integers(3, 7),
    st.frozensets(st.sampled_from(list(SWITCHES))).map(lambda each: each | {"loss"} if each else each)
    | st.just(frozenset(SWITCHES)),
    st.sampled_from(Storage),
)


@given(st.integers(0, 1 << 70), OPTIONS)
def test_a_token_names_its_schedule(seed: int, options: ScheduleOptions) -> None:
    """It is read as it is written, and has no blanks."""
    token = Token(seed, options)
    assert Token.parse(str(token)) == token
    assert " " not in str(token)


@pytest.mark.parametrize(
    "text",
    ["", "4711", "s1", "s1-", "s1--1", "s1-x", "s1-1-v", "s1-1-", "S1-1", "s1-1 ", "s1-1-v3-loss+", "s1-1-loss-v3"],
)
def test_a_token_that_is_none(text: str) -> None:
    """It is refused."""
    with pytest.raises(OptionError, match=r"token|faults"):
        Token.parse(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("s0-1", "generator 0"),
        ("s2-1", "generator 2"),
        ("s1-1-v0", "0 is not from 1 to 7"),
        ("s1-1-v8", "8 is not from 1 to 7"),
        ("s1-1-fire", "no fire"),
        ("s1-1-v2-rot", "rot can never happen: it needs a crash"),
        ("s1-1-lying-syncs+rot", "lying-syncs can never happen: .*; rot can never happen"),
        ("s1-1-model-misreads", "misreads can never happen: the model has none"),
    ],
)
def test_a_token_of_what_there_is_not(text: str, reason: str) -> None:
    """The reason is said."""
    with pytest.raises(OptionError, match=reason):
        Token.parse(text)


def test_limits_of_options() -> None:
    """Voters from 1 to 7; one fault that can happen is enough."""
    assert [ScheduleOptions(each).voters for each in (1, 7)] == [1, 7]
    assert ScheduleOptions(3, frozenset({"rot", "crashes"})).voters == 3
    assert ScheduleOptions(2, frozenset({"rot", "loss"})).voters == 2
    assert ScheduleOptions(None, frozenset({"misreads", "loss"}), Storage.MODEL).voters is None


@pytest.mark.parametrize("storage", Storage)
def test_storage(storage: Storage) -> None:
    """It is the given one, and the rest of a plan does not depend on it."""
    for seed in range(20):
        plan, drawn = (plan_of(Token(seed, ScheduleOptions(storage=each))) for each in (storage, Storage.DRAWN))
        if storage is not Storage.DRAWN:
            assert plan.is_on_files == (storage is Storage.FILES)
        if plan.is_on_files == drawn.is_on_files:
            assert plan == drawn


@given(st.integers(0, 10**6), st.sampled_from(list(SWITCHES)))
def test_a_switch_switches_one_kind_of_faults_off(seed: int, name: str) -> None:
    """The rest of the plan stays as it was drawn."""
    plan = draw_fault_plan(random.Random(seed))
    off = ScheduleOptions(None, frozenset(SWITCHES) - {name}).applied(plan)
    assert off == FaultPlan(**(attrs.asdict(plan) | dict(SWITCHES[name])))


@pytest.mark.parametrize("voters", range(1, 8))
def test_each_number_of_voters(voters: int) -> None:
    """All invariants hold, without faults and, for the fewest and the most, with them."""
    options = ScheduleOptions(voters)
    plan = options.applied(draw_fault_plan(random.Random(voters)))
    assert plan.voters == voters
    assert replay(Schedule(plan), end_ms=5_000)[1].violation is None
    if voters in {1, 7}:
        assert run_seed(Token(voters, options)).violation is None


@pytest.mark.parametrize("end_ms", [1, 999, 1_000])
def test_the_end_of_a_run(end_ms: int) -> None:
    """It ends at the time that is given, and does not recover."""
    _, outcome = replay(Schedule(draw_fault_plan(random.Random(0))), end_ms)
    assert (outcome.ended_ms, outcome.healed_ms) == (end_ms, 0)


some_seconds = functools.partial(run_seed, end_ms=20_000)


def test_outcomes_do_not_depend_on_processes() -> None:
    """Nor does their order."""
    alone, together = (list(outcomes(range(3, 6), processes, some_seconds)) for processes in (1, 2))
    assert alone == together
    assert [token.seed for token, _ in alone] == list(range(3, 6))


def test_totals() -> None:
    """They add up, and name what no schedule came to."""
    totals = Totals()
    for token, outcome in outcomes(range(2), 1, run_seed, ScheduleOptions(3, frozenset({"loss"}))):
        totals.add(token, outcome)
    assert totals.schedules == 2
    assert "crashes" in totals.missed
    assert "leaders" not in totals.missed
    assert set(totals.sums) == {*MARKS, *FAULTS}
    assert "loss" not in totals.missed
    assert {"duplicate", "bit-rot"} <= set(totals.missed)


def test_more_tasks_than_are_given_ahead() -> None:
    """All seeds run, in their order, whatever is under way at once."""
    names = [token.seed for token, _ in outcomes(range(200), 2, str)]
    assert names == list(range(200))


def test_enough_schedules_are_on_files() -> None:
    """At least a quarter, and the faults of disks are then drawn; other seeds mean what they would mean without."""
    on_files = 0
    defaults = {each.name: each.default for each in attrs.fields(FaultPlan) if each.default is not attrs.NOTHING}
    for seed in range(400):
        plan = with_disks(draw_fault_plan(random.Random(seed)), random.Random(f"disks of {seed}"))
        on_files += plan.is_on_files
        assert plan.changed(defaults) == draw_fault_plan(random.Random(seed))
    assert 100 <= on_files <= 150


def test_every_fault_is_counted_under_a_known_name() -> None:
    """What schedules inject is in the table, and some of them have each kind of fault of disks."""
    seen: Counter[str] = Counter()
    of_disks = {*ERRORS, *MISREADS, *CRASH_FAULTS}
    for seed in range(16):
        seen += Counter(run_seed(Token(seed, ScheduleOptions(storage=Storage.FILES))).injected)
        if of_disks <= set(seen):
            break
    assert set(seen) <= set(FAULTS)
    assert of_disks <= set(seen)


def test_schedules_crash_at_fetched_snapshots() -> None:
    """A quarter of them may, and all with aimed faults; all with snapshots; some do; without crashes, none does."""
    tokens = [Token(seed) for seed in range(200)]
    plans = {token: plan for token in tokens if (plan := plan_of(token)).snapshot_crashes}
    drawn = [token for token, plan in plans.items() if not plan.is_aimed]
    assert 0.15 * len(tokens) <= len(drawn) <= 0.35 * len(tokens)
    assert len(plans) - len(drawn) == sum(plan_of(token).is_aimed for token in tokens)
    assert all(plan.snapshot_interval for plan in plans.values())
    assert any(run_seed(token).injected.get("snapshot-crash") for token in list(plans)[:8])
    without = ScheduleOptions(faults=frozenset(SWITCHES) - {"crashes"})
    assert not any(plan_of(Token(token.seed, without)).snapshot_crashes for token in plans)


def test_aimed_faults_are_on_files_alone() -> None:
    """In a quarter of these schedules, with frequent snapshots and damage; all else is as it would be without."""
    files = [plan_of(Token(seed, ScheduleOptions(storage=Storage.FILES))) for seed in range(400)]
    aimed = [plan for plan in files if plan.is_aimed]
    assert 0.7 < len(aimed) / len(files) / AIMED_SHARE < 1.3
    assert {(plan.snapshot_interval, plan.snapshot_crashes, plan.rot) for plan in aimed} == {(40, 0.8, 0.5)}
    assert {plan.snapshot_interval for plan in files if not plan.is_aimed} == {0, 40, 150}
    assert not any(plan_of(Token(seed, ScheduleOptions(storage=Storage.MODEL))).is_aimed for seed in range(50))
