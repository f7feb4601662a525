# SPDX-License-Identifier: Apache-2.0
"""The choices of a simulation: what may go otherwise than in a run without faults, each under a name of its own.

Each choice has a calm value: a message arrives after the mean delay, no fault happens, a state machine reads all that
it is given. A run is determined by its fault plan and by its deviations: the choices that are not calm. They are named
by their kind, by whom they are about, and by a number that counts those of one kind about the same, so that a choice
keeps its name when others are made calm.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

import attrs

T = TypeVar("T")


class ChoiceName(NamedTuple):
    """The name of a choice.

    Attributes:
        kind: what is chosen, such as ``loss``.
        of: ids of the replicas that it is about, such as sender and receiver.
        number: of the choice, among those of one kind about the same, from 0.
    """

    kind: str
    of: tuple[int, ...]
    number: int


Deviations = Mapping[ChoiceName, int | float]
"""The choices of a run that are not calm."""


class Choices(Protocol):
    """Makes the choices of a simulation, the only ones that it depends on. Each method takes a kind, and ids."""

    def happens(self, probability: float, kind: str, *of: int) -> bool:
        """Whether something happens. Calm: it does not."""
        ...

    def time_ms(self, mean_ms: float, kind: str, *of: int) -> int:
        """Return a time of 0 or more, of a process without memory with this mean. Calm: the mean."""
        ...

    def number(self, start: int, stop: int, kind: str, *of: int, calm: int | None = None) -> int:
        """Return an integer in [start, stop). Calm: the first, unless another one is given."""
        ...

    def fraction(self, calm: float, kind: str, *of: int) -> float:
        """Return a number in [0, 1)."""
        ...

    def pick(self, options: Sequence[T], kind: str, *of: int) -> T:
        """Return one of some options. Calm: the first."""
        ...


class Chance(Protocol):
    """The methods of ``random.Random`` that a simulation uses."""

    def random(self) -> float:
        """Return a number in [0, 1)."""
        ...

    def randrange(self, start: int, stop: int) -> int:
        """Return an integer in [start, stop)."""
        ...

    def choice(self, seq: Sequence[T]) -> T:
        """Return one of the elements."""
        ...


class SeededChoices:
    """Choices at random.

    Args:
        chance: makes them.
    """

    def __init__(self, chance: Chance) -> None:
        self._random = chance.random
        self._chance = chance

    def happens(self, probability: float, kind: str, *of: int) -> bool:
        """Whether something happens; what is certain takes no number from the generator."""
        return probability >= 1 or self._random() < probability

    def time_ms(self, mean_ms: float, kind: str, *of: int) -> int:
        """Return a time."""
        return int(-mean_ms * math.log(1.0 - self._random()))

    def number(self, start: int, stop: int, kind: str, *of: int, calm: int | None = None) -> int:
        """Return an integer in [start, stop)."""
        return self._chance.randrange(start, stop)

    def fraction(self, calm: float, kind: str, *of: int) -> float:
        """Return a number in [0, 1)."""
        return self._random()

    def pick(self, options: Sequence[T], kind: str, *of: int) -> T:
        """Return one of some options."""
        return options[self._chance.randrange(0, len(options))]


class _NamedChoices:
    """Counts the choices of each kind."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, tuple[int, ...]]] = Counter()

    def _name(self, kind: str, of: tuple[int, ...]) -> ChoiceName:
        number = self._counts[kind, of]
        self._counts[kind, of] = number + 1
        return ChoiceName(kind, of, number)


class RecordedChoices(_NamedChoices):
    """Notes those choices of another source that are not calm.

    Args:
        source: makes them.

    Attributes:
        deviations: so far, in the order in which they were made.
    """

    def __init__(self, source: Choices) -> None:
        super().__init__()
        self._source = source
        self.deviations: dict[ChoiceName, int | float] = {}

    def happens(self, probability: float, kind: str, *of: int) -> bool:
        """Whether something happens."""
        return bool(self._note(int(self._source.happens(probability, kind, *of)), 0, kind, of))

    def time_ms(self, mean_ms: float, kind: str, *of: int) -> int:
        """Return a time."""
        return self._note(self._source.time_ms(mean_ms, kind, *of), int(mean_ms), kind, of)

    def number(self, start: int, stop: int, kind: str, *of: int, calm: int | None = None) -> int:
        """Return an integer in [start, stop)."""
        return self._note(self._source.number(start, stop, kind, *of), start if calm is None else calm, kind, of)

    def fraction(self, calm: float, kind: str, *of: int) -> float:
        """Return a number in [0, 1)."""
        return self._note(self._source.fraction(calm, kind, *of), calm, kind, of)

    def pick(self, options: Sequence[T], kind: str, *of: int) -> T:
        """Return one of some options."""
        return options[self._note(self._source.number(0, len(options), kind, *of), 0, kind, of)]

    def _note(self, value: "Number", calm: "Number", kind: str, of: tuple[int, ...]) -> "Number":
        name = self._name(kind, of)
        if value != calm:
            self.deviations[name] = value
        return value


class ReplayedChoices(_NamedChoices):
    """Makes the choices of another run again, and calm ones where that run had none.

    A value that is not possible any more, because the run has changed around it, is the nearest possible one.

    Args:
        deviations: of that run.

    Attributes:
        used: those that were asked for.
    """

    def __init__(self, deviations: Deviations) -> None:
        super().__init__()
        self._deviations = deviations
        self.used: dict[ChoiceName, int | float] = {}

    def happens(self, probability: float, kind: str, *of: int) -> bool:
        """Whether something happens."""
        return bool(self._value(kind, of, 0))

    def time_ms(self, mean_ms: float, kind: str, *of: int) -> int:
        """Return a time."""
        return min(max(0, int(self._value(kind, of, int(mean_ms)))), int(mean_ms * _MOST_MEANS))

    def number(self, start: int, stop: int, kind: str, *of: int, calm: int | None = None) -> int:
        """Return an integer in [start, stop)."""
        return min(max(start, int(self._value(kind, of, start if calm is None else calm))), stop - 1)

    def fraction(self, calm: float, kind: str, *of: int) -> float:
        """Return a number in [0, 1)."""
        return min(max(0.0, float(self._value(kind, of, calm))), _BELOW_1)

    def pick(self, options: Sequence[T], kind: str, *of: int) -> T:
        """Return one of some options."""
        return options[self.number(0, len(options), kind, *of)]

    def _value(self, kind: str, of: tuple[int, ...], calm: float) -> int | float:
        name = self._name(kind, of)
        value = self._deviations.get(name)
        if value is None:
            return calm
        self.used[name] = value
        return value


Number = TypeVar("Number", int, float)
_BELOW_1: Final = math.nextafter(1.0, 0.0)
_MOST_MEANS: Final = -math.log(1.0 - _BELOW_1)
"""The longest time that is drawn, by the mean of such times."""


@attrs.frozen
class ChosenDraws:
    """The random choices of a replica, a ``Draws``.

    Calm timeouts of different replicas differ: where all are equal, votes split for ever.

    Attributes:
        choices: makes them.
        replica_id: of the replica.
    """

    choices: Choices
    replica_id: int

    def election_timeout_ms(self, election_timeout_ms: int) -> int:
        """Return the timeout, or up to twice as long (exclusive)."""
        calm = (self.replica_id - 1) % _CALM_TIMEOUTS / _CALM_TIMEOUTS
        return election_timeout_ms + int(
            self.choices.fraction(calm, "election-timeout", self.replica_id) * election_timeout_ms
        )

    def bootstrap_index(self, count: int) -> int:
        """Return one of the bootstrap servers."""
        return int(self.choices.fraction(0.0, "bootstrap-server", self.replica_id) * count)


_CALM_TIMEOUTS: Final = 8
