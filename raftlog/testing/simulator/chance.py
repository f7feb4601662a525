# SPDX-License-Identifier: Apache-2.0
"""The one source of randomness of a simulation, and how its numbers become times."""

import math
from collections.abc import Sequence
from typing import Protocol, TypeVar

import attrs

T = TypeVar("T")


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


def exponential_ms(chance: Chance, mean_ms: float) -> int:
    """Return a time of 0 or more, of a process without memory with this mean."""
    return int(-mean_ms * math.log(1.0 - chance.random()))


@attrs.frozen
class RandomDraws:
    """The random choices of a replica."""

    chance: Chance

    def election_timeout_ms(self, election_timeout_ms: int) -> int:
        """Return the timeout, or up to twice as long (exclusive)."""
        return election_timeout_ms + int(self.chance.random() * election_timeout_ms)

    def bootstrap_index(self, count: int) -> int:
        """Return one of the bootstrap servers."""
        return int(self.chance.random() * count)
