# SPDX-License-Identifier: Apache-2.0
"""Commands of two instances that are given the same choices: equal, or it is said where they begin to differ."""

import random
from collections.abc import Callable, Sequence
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.testing.simulator.applications.checked_machine import MachineKind, value_of
from raftlog.testing.simulator.applications.drawn_commands import DrawnCommandChoices, DrawnCommands, RepeatedChoices
from raftlog.testing.simulator.choices import ReplayedChoices, SeededChoices
from raftlog.testing.simulator.violation import ViolationError
from raftlog.testing.state_machine import CommandChoices
from tests.testing.bank import Bank
from tests.testing.wrong_banks import Quick

Asks = Callable[[CommandChoices], object]
ASKS: st.SearchStrategy[Asks] = st.one_of(
    st.tuples(st.integers(-9, 9), st.integers(1, 9)).map(lambda each: lambda of: of.number(each[0], sum(each))),
    st.lists(st.integers(0, 3), min_size=1).map(lambda each: lambda of: of.pick(each)),
    st.sampled_from([0.0, 0.3, 1.0]).map(lambda each: lambda of: of.happens(each)),
)


def seeded(seed: int = 0) -> SeededChoices:
    """Return choices at random."""
    return SeededChoices(random.Random(seed))


@given(st.lists(ASKS, max_size=9), st.integers(0, 9))
def test_the_same_questions_get_the_same_answers(asks: Sequence[Asks], seed: int) -> None:
    """And they are those of the choices of the simulation."""
    drawn = DrawnCommandChoices(seeded(seed))
    found = [each(drawn) for each in asks]
    repeated = RepeatedChoices(drawn.answers)
    assert [each(repeated) for each in asks] == found
    repeated.end()
    assert repeated.difference == ""


@given(st.lists(ASKS, max_size=9), st.lists(ASKS, max_size=9))
def test_other_questions_are_noted(first: Sequence[Asks], second: Sequence[Asks]) -> None:
    """The first one that differs, or is missing; their answers are possible ones."""
    drawn, other = DrawnCommandChoices(seeded()), DrawnCommandChoices(seeded())
    for each in first:
        each(drawn)
    for each in second:
        each(other)
    repeated = RepeatedChoices(drawn.answers)
    for each in second:
        each(repeated)
    repeated.end()
    assert (repeated.difference == "") is (
        [asked for asked, _ in drawn.answers] == [asked for asked, _ in other.answers]
    )


class Chancy(Bank):
    """Its commands depend on random numbers."""

    def command(self, choices: CommandChoices) -> bytes:
        """Return one of many commands."""
        return b"%d" % random.getrandbits(60)


class Numbered(Bank):
    """Instances count their commands together."""

    count: ClassVar[list[int]] = [0]

    def command(self, choices: CommandChoices) -> bytes:
        """Return the next number."""
        self.count[0] += 1
        return b"%d" % self.count[0]


class Curious(Bank):
    """Only every second instance has anything to ask."""

    instances: ClassVar[list[int]] = [0]

    def __init__(self) -> None:
        super().__init__()
        self.instances[0] += 1
        self.is_curious = self.instances[0] % 2 == 1

    def command(self, choices: CommandChoices) -> bytes:
        """Ask or not."""
        return b"%d" % (self.is_curious and choices.number(0, 1))


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        (
            Chancy,
            "Chancy: two instances that were asked for 1 commands, with the same choices, differ in the last: one",
        ),
        (Numbered, "differ in the last: one gives b'1', and the other b'2'"),
        (Curious, "one asks for a number from 0, below 1, and the other for nothing"),
    ],
)
def test_instances_that_differ(machine: type[Bank], words: str) -> None:
    """It is said how."""
    with pytest.raises(ViolationError) as raised:
        DrawnCommands(MachineKind(machine), seeded()).value(0)
    assert raised.value.invariant == "machine-is-deterministic"
    assert words in raised.value.description


def test_the_same_commands() -> None:
    """They follow the number of the record; earlier calls may matter."""

    class Counting(Bank):
        def command(self, choices: CommandChoices) -> bytes:
            self.accounts["alice"] += 1
            return b"%d" % self.accounts["alice"]

    commands = DrawnCommands(MachineKind(Counting), ReplayedChoices({}))
    assert [commands.value(each) for each in (7, 9)] == [value_of(7) + b"101", value_of(9) + b"102"]


class StopTest(BaseException):
    """What Hypothesis raises to end a run."""


class Ended(SeededChoices):
    """Choices that have come to an end."""

    def number(self, start: int, stop: int, kind: str, *of: int, calm: int | None = None) -> int:
        """Raise."""
        raise StopTest


def test_errors_of_choices_are_none_of_the_machine() -> None:
    """They end the run; the machine's own do not."""
    with pytest.raises(StopTest):
        DrawnCommands(MachineKind(Bank), Ended(random.Random(0))).value(0)
    with pytest.raises(ViolationError, match=r"Quick\.command raised GeneratorExit"):
        DrawnCommands(MachineKind(Quick), Ended(random.Random(0))).value(0)
