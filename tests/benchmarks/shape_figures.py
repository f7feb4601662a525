# SPDX-License-Identifier: Apache-2.0
"""Comparisons of a whole program with another one, on logs of some shapes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import ClassVar

import attrs

from tests.benchmarks.measure import Comparison, Mode
from tests.benchmarks.operations import Worker


@attrs.frozen
class ShapeFigures(ABC):
    """All comparisons of one kind.

    Attributes:
        folder: for outputs.
        workers: a process for each mode, which makes the logs.
        size_mib: of a log.
    """

    kind: ClassVar[str]
    shapes: ClassVar[tuple[str, ...]]

    folder: Path
    workers: Mapping[Mode, Worker]
    size_mib: float

    def all(self) -> Iterator[tuple[str, Callable[[str], Comparison]]]:
        """Yield the start of the ids of their rows, and what makes a comparison, given that."""
        for shape in self.shapes:
            yield f"{self.kind}-{shape}", partial(self.compared, shape)

    @abstractmethod
    def compared(self, shape: str, row: str) -> Comparison:
        """Return the comparison on a shape."""
