# SPDX-License-Identifier: Apache-2.0
"""A fault damages a clean copy, and names the place and the rules that must report it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import attrs

from raftlog.tools.catalogue.findings import Finding
from tests.planted.ground import Ground


@attrs.frozen
class Spot:
    """Where a fault was planted; what is None is not known, or is not to be judged.

    Attributes:
        path: of the file that a finding must name.
        position, offset, epoch: as in ``Finding``.
        other_path: of a file that may be named instead, where two contradict each other.
    """

    path: Path
    position: int | None = None
    offset: int | None = None
    epoch: int | None = None
    other_path: Path | None = None

    def is_named_by(self, finding: Finding) -> bool:
        """Whether a finding is about this place."""
        pairs = ((self.position, finding.position), (self.offset, finding.offset), (self.epoch, finding.epoch))
        is_file = finding.path in {str(self.path), str(self.other_path)}
        return is_file and all(mine in {None, theirs} for mine, theirs in pairs)


@attrs.frozen
class Fault:
    """A kind of fault.

    Attributes:
        name: its name.
        what: the damage, in a sentence.
        rules: one of these must report it, at the spot.
        grounds: names of the clean copies that it is planted in, in turns.
        plant: plants it at a place that the ground chooses.
    """

    name: str
    what: str
    rules: tuple[str, ...]
    grounds: tuple[str, ...]
    plant: Callable[[Ground], Spot]


class Faults:
    """The kinds of faults about one subject.

    Args:
        subject: what they have in common.
    """

    def __init__(self, subject: str) -> None:
        self.subject: Final = subject
        self._faults: list[Fault] = []

    def __iter__(self) -> Iterator[Fault]:
        return iter(self._faults)

    def kind(self, *rules: str, on: tuple[str, ...]) -> Callable[[Callable[[Ground], Spot]], Callable[[Ground], Spot]]:
        """Make a kind from a function: from its name, and the first line of its docstring.

        Args:
            rules: one of these must report it.
            on: names of grounds.
        """

        def add(plant: Callable[[Ground], Spot]) -> Callable[[Ground], Spot]:
            what = (plant.__doc__ or "").partition("\n")[0].rstrip(".")
            self.add(Fault(plant.__name__.replace("_", "-"), what, rules, on, plant))
            return plant

        return add

    def add(self, fault: Fault) -> None:
        """Add a kind."""
        self._faults.append(fault)
