# SPDX-License-Identifier: Apache-2.0
"""What is said to be impossible is injected by no schedule, and what is not said to be is injected by some."""

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import OptionError
from raftlog.testing.simulator.checks.schedule_outcome import ScheduleOutcome
from raftlog.testing.simulator.choices import SeededChoices
from raftlog.testing.simulator.disks.damage import DAMAGES
from raftlog.testing.simulator.disks.simulated_disk import ERRORS, MISREADS
from raftlog.testing.simulator.fault_plan import FaultPlan, Storage
from raftlog.testing.simulator.machine import Machine
from raftlog.testing.simulator.runs.possible_faults import impossible_faults, limited_faults
from raftlog.testing.simulator.runs.schedule import SWITCHES, ScheduleOptions, Token, plan_of
from raftlog.testing.simulator.simulation import Simulation

MODEL, FILES = Storage.MODEL, Storage.FILES
INJECTED: Final = {
    "loss": ("loss",),
    "duplicates": ("duplicate",),
    "cuts": ("cut", "one-way-cut"),
    "crashes": ("crash", "armed-crash"),
    "rot": ("lost-batches", *DAMAGES),
    "pauses": ("pause",),
    "clocks": ("clock-error",),
    "slow-syncs": ("slow-sync",),
    "disk-errors": ERRORS,
    "misreads": MISREADS,
    "torn-writes": ("torn-crash",),
    "lying-syncs": ("lying-sync",),
    "autopilot": ("replaced-disk",),
    "lost-disks": ("lost-disk",),
    "beyond-atlas": (*DAMAGES, *MISREADS, "torn-crash", "lying-sync", "read-error"),
}
"""The kinds that are counted, by the switch; the other switches are seen otherwise."""
NEVER, SOON, SEEDS, END_MS = 2, 40, 600, 16_000
"""How many schedules show that a fault is impossible, and within how many it comes; seeds to take them from."""
CRASHING: Final = ("crashes", "disk-errors", "misreads", "autopilot")


def is_seen(name: str, plan: FaultPlan, outcome: ScheduleOutcome) -> bool:
    """Whether a schedule had a kind of faults."""
    if name == "voter-changes":
        return outcome.voter_changes > 0
    if name == "upgrades":
        return outcome.upgrades > 0
    if name == "reordering":
        return not plan.is_delay_even
    is_so = name != "beyond-atlas" or plan.is_beyond_atlas
    return is_so and any(outcome.injected.get(each) for each in INJECTED[name])


def schedules(name: str, faults: frozenset[str], voters: int | None, storage: Storage) -> Iterator[bool]:
    """Yield whether schedules had a kind of faults: those whose plan was drawn with it, before others were taken away.

    They may be ones that cannot be asked for.
    """
    off = {field: value for each in SWITCHES if each not in faults for field, value in SWITCHES[each].items()}
    needed = "replacement_interval_ms" if name == "autopilot" else next(iter(SWITCHES[name]))
    for seed in range(SEEDS):
        drawn = plan_of(Token(seed, ScheduleOptions(voters, storage=storage)))
        if getattr(drawn, needed) != SWITCHES[name][needed]:
            plan = drawn.changed(off)
            outcome = Simulation(SeededChoices(random.Random(seed)), plan).run(END_MS)
            yield is_seen(name, plan, outcome)


def _cases() -> Iterator[tuple[str, tuple[str, ...], int, Storage]]:
    for name, (voters, storage) in itertools.product(SWITCHES, ((1, MODEL), (3, FILES))):
        yield name, (), voters, storage
    for name, other in itertools.product(("rot", "torn-writes", "lying-syncs"), (*CRASHING, "loss")):
        yield name, (other,), 3, FILES
    yield from (("rot", (other,), 3, MODEL) for other in ("crashes", "autopilot"))
    yield from (("lost-disks", ("voter-changes",), voters, MODEL) for voters in (1, 2, 3))
    for others in (("misreads",), ("disk-errors",), ("rot",), ("rot", "crashes"), ("crashes",)):
        yield "beyond-atlas", others, 3, FILES


@pytest.mark.slow
@pytest.mark.parametrize(("name", "others", "voters", "storage"), list(_cases()), ids=str)
def test_faults_are_possible_as_it_is_said(name: str, others: tuple[str, ...], voters: int, storage: Storage) -> None:
    """Alone, and beside what they may need: some of the first schedules have them, or none has."""
    faults = frozenset((name, *others))
    seen = schedules(name, faults, voters, storage)
    if name in impossible_faults(faults, voters, storage):
        assert not any(itertools.islice(seen, NEVER))
    else:
        assert any(itertools.islice(seen, SOON))


FAULTS = st.frozensets(st.sampled_from(list(SWITCHES)))
VOTERS = st.none() | st.integers(1, 7)


@given(FAULTS, FAULTS, VOTERS, st.sampled_from(Storage))
def test_more_faults_make_none_impossible(
    some: frozenset[str], more: frozenset[str], voters: int | None, storage: Storage
) -> None:
    """Nor do files: a drawn storage may be that. Options are refused if nothing that they name can happen."""
    impossible = impossible_faults(some, voters, storage).keys()
    assert impossible <= some
    assert impossible_faults(some | more, voters, storage).keys() & some <= impossible
    assert impossible_faults(some, voters, FILES).keys() <= impossible
    assert impossible_faults(some, voters, Storage.DRAWN) == impossible_faults(some, voters, FILES)
    if some and impossible == some:
        with pytest.raises(OptionError, match="can never happen"):
            ScheduleOptions(voters, some, storage)
    else:
        assert ScheduleOptions(voters, some, storage).faults == some


@pytest.mark.parametrize(
    ("faults", "voters", "is_limited"),
    [
        ({"rot", "crashes"}, 2, True),
        ({"rot", "crashes"}, 3, False),
        ({"rot", "crashes"}, None, False),
        ({"misreads"}, 1, True),
        ({"loss"}, 1, False),
        ({"rot", "voter-changes"}, 2, False),
    ],
)
def test_damage_to_few_voters(faults: set[str], voters: int | None, is_limited: bool) -> None:
    """Below three it is to observers only, which is said; unless voters are added, or schedules go beyond the atlas."""
    assert bool(list(limited_faults(frozenset(faults), voters))) == is_limited


def test_a_disk_that_is_replaced_ends_its_process_by_a_crash() -> None:
    """So both who change the voters, an operator and autopilots, bring the faults about that crashes have."""
    plan = plan_of(Token(0, ScheduleOptions(3, frozenset({"rot", "voter-changes"}), MODEL)))
    simulation = Simulation(SeededChoices(random.Random(0)), plan.with_observers(1).changed({"rot": 1.0}))
    for machine in simulation.machines.values():
        machine.start()
    simulation.timeline.run(3_000)
    simulation._membership.replace_disk(3_000)
    assert simulation.injected["replaced-disk"] == simulation.injected["crash"] == 1


@pytest.mark.slow
@pytest.mark.parametrize(("voters", "is_damaged"), [(2, False), (3, True)])
def test_voters_are_damaged_from_three_on(voters: int, is_damaged: bool) -> None:
    """As ``limited_faults`` says: with two, the disks that rot are those of observers."""
    damaged: set[int] = set()
    for seed in range(5):
        plan = plan_of(Token(seed, ScheduleOptions(voters, frozenset({"rot", "crashes"}), MODEL)))
        simulation = Simulation(SeededChoices(random.Random(seed)), plan.changed({"rot": 1.0}))
        may_damage = simulation.may_damage

        def noted(machine: Machine, may_damage: Callable[..., bool] = may_damage) -> bool:
            if not may_damage(machine):
                return False
            damaged.add(machine.id)
            return True

        simulation.may_damage = noted  # type: ignore[method-assign]
        simulation.run(END_MS)
    assert bool(damaged & set(range(1, voters + 1))) == is_damaged
    assert damaged
