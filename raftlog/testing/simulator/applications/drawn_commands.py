# SPDX-License-Identifier: Apache-2.0
"""The choices of commands, drawn from those of the simulation under names of their own."""

from collections.abc import Sequence
from typing import TypeVar

import attrs

from raftlog.testing.simulator.choices import Choices

T = TypeVar("T")


@attrs.frozen
class DrawnCommandChoices:
    """A ``CommandChoices``.

    Attributes:
        choices: of the simulation.
    """

    choices: Choices

    def number(self, start: int, stop: int) -> int:
        """Return an integer in [start, stop)."""
        return self.choices.number(start, stop, "command-number")

    def pick(self, options: Sequence[T]) -> T:
        """Return one of some options."""
        return self.choices.pick(options, "command-pick")

    def happens(self, probability: float) -> bool:
        """Whether something happens."""
        return self.choices.happens(probability, "command-happens")
