# SPDX-License-Identifier: Apache-2.0
"""Autopilots of a simulated quorum: which schedules have them, what they are told, and what they do there."""

import random
from collections import Counter
from collections.abc import Iterator

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.quorum.autopilot import planning
from raftlog.quorum.autopilot.memory import AutopilotMemory
from raftlog.quorum.autopilot.planning import AutopilotPlan
from raftlog.quorum.autopilot.spec import AutopilotSpec, PromotionPolicy
from raftlog.quorum.describing.raft_status import RaftStatus
from raftlog.testing.simulator.choices import SeededChoices
from raftlog.testing.simulator.fault_plan import MOST_REPLICAS, FaultPlan, draw_fault_plan
from raftlog.testing.simulator.operating import autopilots
from raftlog.testing.simulator.operating.autopilots import spec_of
from raftlog.testing.simulator.runs.schedule import Schedule, ScheduleOptions, Token, plan_of, record, replay, run_seed
from raftlog.testing.simulator.simulation import Simulation

CALM: dict[str, object] = {
    "voters": 3,
    "observers": 1,
    "loss": 0.0,
    "duplication": 0.0,
    "rot": 0.0,
    "cut_interval_ms": 0,
    "pause_interval_ms": 0,
    "crash_interval_ms": 0,
    "change_interval_ms": 0,
    "kraft_version": 1,
    "is_on_files": False,
    "stabilize_ms": 500,
    "demote_later_ms": 0,
    "autopilot_look_ms": 100,
    "autopilot_max_lag": 100,
    "replacement_interval_ms": 0,
}


def calm_plan(**changes: object) -> FaultPlan:
    """Return a plan with an autopilot, without faults but those that are given."""
    return draw_fault_plan(random.Random(0)).changed(CALM | changes)


def test_a_quarter_of_the_schedules_have_autopilots() -> None:
    """On the model and on files; each of them has an observer, and each of its options is drawn."""
    plans = [plan_of(Token(each)) for each in range(2_000)]
    found = [each for each in plans if each.autopilot_look_ms]
    assert 0.2 * len(plans) < len(found) < 0.35 * len(plans)
    assert 0.2 * len(found) < sum(each.is_on_files for each in found) < 0.4 * len(found)
    assert all(each.observers for each in found)
    assert not any(each.disk_loss_interval_ms for each in found)
    times = [name for name in attrs.asdict(found[0]) if "_ms" in name and name != "disk_loss_interval_ms"]
    assert all(len({getattr(each, name) for each in found}) > 1 for name in times)
    specs = [spec for each in found if (spec := spec_of(each)) is not None]
    assert len(specs) > 0.8 * len(found)
    assert {each.policy for each in specs} == set(PromotionPolicy)
    assert {(each.is_memory_durable, each.observers) for each in found} >= {
        (False, 1),
        (False, 2),
        (True, 1),
        (True, 2),
    }


@given(st.integers(0, 10**6), st.integers(1, 7))
def test_each_plan_has_a_spec(seed: int, voters: int) -> None:
    """Whatever the number of voters is changed to: it has all replicas, and no more than there is room for.

    But where no policy can act: without observers, with one voter, or with two and one observer.
    """
    plan = plan_of(Token(seed)).with_voters(voters)
    spec = spec_of(plan)
    assert (spec is None) == (plan.observers == 0 or voters == 1 or (voters == 2 and plan.observers == 1))
    if spec is None:
        return
    assert spec.configured == frozenset(range(1, voters + 1))
    assert len(spec.replicas) == plan.voters + plan.observers <= MOST_REPLICAS


@pytest.mark.parametrize(("observers", "expected"), [(0, 0), (1, 1), (2, 1)])
def test_there_is_room_for_so_many_observers(observers: int, expected: int) -> None:
    """Beside seven voters there is room for one."""
    plan = draw_fault_plan(random.Random(0)).with_voters(7).with_observers(observers)
    assert (plan.voters, plan.observers) == (7, expected)


@pytest.mark.parametrize(
    ("voters", "changes", "policy", "min_sync"),
    [
        (3, {}, PromotionPolicy.UNDER_REPLICATED, None),
        (5, {"is_promotion_by_min_sync": True}, PromotionPolicy.UNDER_MIN_SYNC, 4),
        (3, {"is_promotion_by_min_sync": True}, PromotionPolicy.UNDER_MIN_SYNC, 3),
        (3, {"is_promotion_by_leader": True, "observers": 2}, PromotionPolicy.LEADER_IS_OBSERVER, 3),
        (3, {"is_promotion_by_leader": True, "observers": 1}, PromotionPolicy.UNDER_REPLICATED, None),
        (2, {"observers": 2}, PromotionPolicy.LEADER_IS_OBSERVER, 2),
    ],
)
def test_policies(voters: int, changes: dict[str, object], policy: PromotionPolicy, min_sync: int | None) -> None:
    """Below three voters only that of a leading observer can act."""
    spec = spec_of(calm_plan(voters=voters, **changes))
    assert spec is not None
    assert (spec.policy, spec.min_sync) == (policy, min_sync)


def test_without_faults_nothing_is_planned() -> None:
    """The configured voters remain, and the schedule ends well."""
    outcome = replay(Schedule(calm_plan()))[1]
    assert (outcome.violation, outcome.plans, outcome.voter_changes) == (None, 0, 0)


def with_steps(options: ScheduleOptions, seeds: range) -> Iterator[Token]:
    """Yield the tokens of schedules that have autopilots."""
    for seed in seeds:
        if plan_of(Token(seed)).autopilot_look_ms:
            yield Token(seed, options)


def test_a_machine_that_is_down_is_stood_in_for() -> None:
    """An observer is promoted for it, and after it has come back the configured voters vote again."""
    done: Counter[str] = Counter()
    for token in with_steps(ScheduleOptions(3, frozenset({"crashes", "autopilot"})), range(60)):
        outcome = run_seed(token)
        assert outcome.violation is None
        done += Counter({name: getattr(outcome, name) for name in ("promotions", "demotions", "returns")})
        if len(done) == 3:
            return
    pytest.fail(f"only {done}")


def test_a_schedule_with_an_autopilot_is_replayed_exactly() -> None:
    """From its choices, step by step."""
    for token in with_steps(ScheduleOptions(), range(60)):
        schedule, outcome = record(token)
        if outcome.plans:
            assert replay(schedule)[1].trace == outcome.trace
            return
    pytest.fail("no schedule has steps")


@pytest.mark.parametrize("is_durable", [False, True])
def test_the_memory_of_a_process(monkeypatch: pytest.MonkeyPatch, is_durable: bool) -> None:
    """A process that starts again begins with an empty one, unless it is durable."""
    empty: list[bool] = []

    def watched(spec: AutopilotSpec, status: RaftStatus, memory: AutopilotMemory, now_ms: int) -> AutopilotPlan:
        empty.append(memory == AutopilotMemory())
        found = planning.plan(spec, status, memory, now_ms)
        return attrs.evolve(found, memory=attrs.evolve(found.memory, looked_ms=now_ms))

    monkeypatch.setattr(autopilots, "plan", watched)
    plan = calm_plan(crash_interval_ms=5_000, is_memory_durable=is_durable)
    outcome = Simulation(SeededChoices(random.Random(0)), plan).run()
    assert outcome.violation is None
    assert outcome.crashes > 3
    assert sum(empty) == 4 if is_durable else sum(empty) > 4
