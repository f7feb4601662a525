# SPDX-License-Identifier: Apache-2.0
"""Choices are recorded and made again exactly, and are calm where none is given."""

import math
import random
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.testing.simulator.choices import ChoiceName, ChosenDraws, RecordedChoices, ReplayedChoices, SeededChoices
from raftlog.testing.simulator.runs.schedule import Schedule, Token, plan_of, replay
from tests.testing.simulator.known_schedules import outcome_of, recorded

ASKED = st.lists(
    st.tuples(
        st.sampled_from(("happens", "time_ms", "number", "fraction", "pick")),
        st.sampled_from(("loss", "delay")),
        st.lists(st.integers(1, 3), max_size=2),
    ),
    max_size=30,
)
CALM = {"happens": False, "time_ms": 7, "number": 2, "fraction": 0.25, "pick": "a"}
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "happens": (0.5,),
    "time_ms": (7.5,),
    "number": (2, 6),
    "fraction": (0.25,),
    "pick": ("abc",),
}


def made(choices: Any, asked: list[tuple[str, str, list[int]]]) -> list[Any]:
    """Return what is chosen."""
    return [getattr(choices, method)(*ARGUMENTS[method], f"{method}-{kind}", *of) for method, kind, of in asked]


@given(ASKED, st.integers(0, 1000))
def test_what_was_recorded_is_made_again(asked: list[tuple[str, str, list[int]]], seed: int) -> None:
    """A recorder changes no choice, notes no calm one, and what it notes is enough."""
    recorded = RecordedChoices(SeededChoices(random.Random(seed)))
    chosen = made(recorded, asked)
    assert chosen == made(SeededChoices(random.Random(seed)), asked)
    assert len(recorded.deviations) == sum(
        value != CALM[method] for value, (method, _, _) in zip(chosen, asked, strict=True)
    )
    replayed = ReplayedChoices(recorded.deviations)
    assert made(replayed, asked) == chosen
    assert replayed.used == recorded.deviations


@given(ASKED, st.integers(0, 1000), st.data())
def test_a_choice_keeps_its_name(asked: list[tuple[str, str, list[int]]], seed: int, data: st.DataObject) -> None:
    """If some choices become calm, the others stay as they are."""
    recorded = RecordedChoices(SeededChoices(random.Random(seed)))
    chosen = made(recorded, asked)
    gone = data.draw(st.sets(st.sampled_from(list(recorded.deviations)))) if recorded.deviations else set()
    left = {name: value for name, value in recorded.deviations.items() if name not in gone}
    counts: dict[tuple[str, tuple[int, ...]], int] = {}
    expected = []
    for value, (method, kind, of) in zip(chosen, asked, strict=True):
        key = f"{method}-{kind}", tuple(of)
        name = ChoiceName(*key, counts.get(key, 0))
        counts[key] = name.number + 1
        expected.append(CALM[method] if name in gone else value)
    assert made(ReplayedChoices(left), asked) == expected


@pytest.mark.parametrize(("value", "nearest"), [(-1, 2), (1, 2), (2, 2), (5, 5), (6, 5), (99, 5)])
def test_a_value_that_is_not_possible_any_more(value: int, nearest: int) -> None:
    """It is the nearest possible one."""
    assert ReplayedChoices({ChoiceName("kept", (), 0): value}).number(2, 6, "kept") == nearest


@pytest.mark.parametrize(
    ("value", "nearest"), [(-1, 0), (0, 0), (274, 274), (275, 275), (276, 275), (10**400, 275), (1e300, 275)]
)
def test_a_time_that_is_not_possible(value: float, nearest: int) -> None:
    """It is at most what the generator can draw: the smallest of its numbers above 0 has a logarithm."""
    longest = SeededChoices(_Extreme()).time_ms(7.5, "delay")
    assert longest == 275
    assert ReplayedChoices({ChoiceName("delay", (), 0): value}).time_ms(7.5, "delay") == nearest


class _Extreme(random.Random):
    def random(self) -> float:
        return math.nextafter(1.0, 0.0)


@pytest.mark.parametrize(("value", "nearest"), [(-0.5, 0.0), (0.0, 0.0), (0.5, 0.5)])
def test_a_fraction_that_is_not_possible(value: float, nearest: float) -> None:
    """Nor is it 1 or more: the draw of an index would be past the end."""
    assert ReplayedChoices({ChoiceName("part", (), 0): value}).fraction(0.1, "part") == nearest
    assert ReplayedChoices({ChoiceName("part", (), 0): 1.0}).fraction(0.1, "part") < 1


def test_certainty_takes_no_number() -> None:
    """So that a fault that a seed always has can be told apart without changing what the seed means."""
    chance = random.Random(1)
    assert SeededChoices(chance).happens(1, "crash")
    assert chance.random() == random.Random(1).random()


@pytest.mark.parametrize("timeout_ms", [0, 1, 300])
def test_draws_of_a_replica(timeout_ms: int) -> None:
    """A timeout is from once to twice, exclusive; calm ones of the voters differ."""
    for seed in range(20):
        drawn = ChosenDraws(SeededChoices(random.Random(seed)), 1).election_timeout_ms(timeout_ms)
        assert timeout_ms <= drawn < 2 * timeout_ms or drawn == timeout_ms == 0
    calm = [ChosenDraws(ReplayedChoices({}), each).election_timeout_ms(300) for each in range(1, 8)]
    assert len(set(calm)) == 7


@pytest.mark.parametrize("seed", [0, 3, 5])
def test_a_schedule_is_recorded_and_replayed_exactly(seed: int) -> None:
    """Event by event: by its seed, while it is recorded, and by its choices."""
    schedule, outcome = recorded(seed)
    assert outcome == outcome_of(seed)
    used, replayed = replay(schedule)
    assert replayed == outcome
    assert used == schedule


@pytest.mark.parametrize("seed", range(4))
def test_without_choices_nothing_goes_wrong(seed: int) -> None:
    """A run of calm choices has one leader, loses nothing, crashes never, and all clients get answers."""
    plan = plan_of(Token(seed))
    _, outcome = replay(Schedule(attrs.evolve(plan, upgrade_ms=0)))
    assert outcome.violation is None
    assert (outcome.leaders, outcome.lost, outcome.crashes, outcome.unknown) == (1, 0, 0, 0)
    assert outcome.acknowledged > 100
