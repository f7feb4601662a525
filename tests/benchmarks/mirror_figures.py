# SPDX-License-Identifier: Apache-2.0
"""Comparisons of ``raftlog verify-mirror`` with the decoding of both logs."""

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from tests.benchmarks.measure import Comparison, Mode
from tests.benchmarks.mirror_inputs import ALIASES, mirror
from tests.benchmarks.operations import Worker
from tests.benchmarks.programs import RAFTLOG, Command

SHAPES: Final = ("small", "tiny")
_MOST_TIMES_AS_LONG: Final = 3


class MirrorFigures:
    """All comparisons of mirrors.

    Args:
        folder: for outputs.
        workers: a process for each mode, which makes the logs.
        size_mib: of each of two logs.
    """

    def __init__(self, folder: Path, workers: Mapping[Mode, Worker], size_mib: float) -> None:
        self._folder = folder
        self._workers = workers
        self._size_mib = size_mib

    def all(self) -> Iterator[tuple[str, Callable[[str], Comparison]]]:
        """Yield the start of the ids of their rows, and what makes a comparison, given that."""
        for shape in SHAPES:
            yield f"mirror-{shape}", partial(self._compared, shape)

    def _compared(self, shape: str, row: str) -> Comparison:
        folder = Path(self._workers["compiled"].input(shape, self._size_mib)).parent.parent.parent
        ours, theirs = commands(folder, shape, self._size_mib)
        name = "decoding both logs"
        what = f"verify-mirror, two logs of {self._size_mib:g} MiB each, {shape}, whole process"
        verify, reference = (
            Command(each, "compiled", 2 * self._size_mib, self._folder / "compared") for each in (ours, theirs)
        )
        goals: dict[tuple[Mode, str], float] = {("compiled", name): 1 / _MOST_TIMES_AS_LONG}
        return Comparison(row, what, "MiB/s", {"compiled": verify}, {name: reference}, goals)


def commands(folder: Path, shape: str, size_mib: float) -> tuple[list[str], list[str]]:
    """Return the command that compares a log with its mirror, and the one that decodes both.

    Args:
        folder: where the logs are, or are to be made.
        shape: of the records.
        size_mib: of each log.
    """
    segments = mirror(folder, shape, size_mib)
    source, target = (each.parent.parent for each in segments)
    aliases = ["--source-alias", ALIASES[0], "--target-alias", ALIASES[1]]
    ours = [RAFTLOG, "verify-mirror", "--source", str(source), "--target", str(target), *aliases, "--format", "jsonl"]
    return ours, [sys.executable, "-m", "tests.benchmarks.mirror_process", *map(str, segments)]
