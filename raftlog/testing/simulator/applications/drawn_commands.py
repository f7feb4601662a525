# SPDX-License-Identifier: Apache-2.0
"""The commands of clients: two instances of a state machine are asked for each, and given the same choices.

The choices are drawn from those of the simulation, under names of their own.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from raftlog.testing.simulator.applications.checked_machine import CheckedMachine, MachineKind, cut
from raftlog.testing.simulator.choices import Choices
from raftlog.testing.simulator.violation import ViolationError

T = TypeVar("T")
_INVARIANT: Final = "machine-is-deterministic"


class DrawnCommandChoices:
    """A ``CommandChoices`` that notes what it is asked.

    Args:
        choices: of the simulation.

    Attributes:
        answers: so far, each with what was asked.
        has_failed: whether the choices of the simulation have raised an error, which is no fault of the state machine.
    """

    def __init__(self, choices: Choices) -> None:
        self.answers: list[tuple[str, int]] = []
        self.has_failed = False
        self._choices = choices

    def number(self, start: int, stop: int) -> int:
        """Return an integer in [start, stop)."""
        return self._answer(_number(start, stop), lambda: self._choices.number(start, stop, "command-number"))

    def pick(self, options: Sequence[T]) -> T:
        """Return one of some options."""
        indexes = range(len(options))
        return options[self._answer(_pick(options), lambda: self._choices.pick(indexes, "command-pick"))]

    def happens(self, probability: float) -> bool:
        """Whether something happens."""
        return bool(self._answer(_happens(probability), lambda: self._choices.happens(probability, "command-happens")))

    def _answer(self, asked: str, draw: Callable[[], int]) -> int:
        try:
            answer = draw()
        except BaseException:
            self.has_failed = True
            raise
        self.answers.append((asked, answer))
        return answer


class RepeatedChoices:
    """A ``CommandChoices`` that gives the answers of another one again.

    Args:
        answers: each with what was asked.

    Attributes:
        difference: the first time that anything else is asked, in words; empty if there is none.
        has_failed: False; there is nothing that could fail.
    """

    has_failed = False

    def __init__(self, answers: Sequence[tuple[str, int]]) -> None:
        self._left = list(reversed(answers))
        self.difference = ""

    def number(self, start: int, stop: int) -> int:
        """Return an integer in [start, stop)."""
        return self._answer(_number(start, stop), start)

    def pick(self, options: Sequence[T]) -> T:
        """Return one of some options."""
        return options[self._answer(_pick(options), 0)]

    def happens(self, probability: float) -> bool:
        """Whether something happens."""
        return bool(self._answer(_happens(probability), 0))

    def _answer(self, asked: str, calm: int) -> int:
        expected, answer = self._left.pop() if self._left else ("nothing", calm)
        if asked != expected and not self.difference:
            self.difference = f"one asks for {expected}, and the other for {asked}"
        return calm if self.difference else answer

    def end(self) -> None:
        """Note what was not asked."""
        if self._left and not self.difference:
            self.difference = f"one asks for {self._left[-1][0]}, and the other for nothing"


def _number(start: int, stop: int) -> str:
    return f"a number from {start}, below {stop}"


def _pick(options: Sequence[object]) -> str:
    return f"one of {len(options)} options"


def _happens(probability: float) -> str:
    return f"whether something of probability {probability} happens"


class DrawnCommands:
    """The commands of clients.

    Args:
        kind: of the state machine.
        choices: of the simulation.
    """

    def __init__(self, kind: MachineKind, choices: Choices) -> None:
        self._kind = kind
        self._choices = choices
        self._instance, self._other = CheckedMachine(kind), CheckedMachine(kind)
        self._count = 0

    def value(self, number: int) -> bytes:
        """Return a record value: a number that no other one has, and a new command.

        Raises:
            ViolationError: an instance fails, or both differ.
        """
        drawn = DrawnCommandChoices(self._choices)
        value = self._instance.value(number, drawn)
        repeated = RepeatedChoices(drawn.answers)
        other = self._other.value(number, repeated)
        repeated.end()
        self._count += 1
        if repeated.difference or other != value:
            gives = f"one gives {cut(self._instance.command_of(value))}, and the other"
            what = repeated.difference or f"{gives} {cut(self._other.command_of(other))}"
            asked = f"two instances that were asked for {self._count:,} commands, with the same choices, differ in the"
            raise ViolationError(_INVARIANT, f"{self._kind.name}: {asked} last: {what}")
        return value
