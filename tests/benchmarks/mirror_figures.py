# SPDX-License-Identifier: Apache-2.0
"""Comparisons of ``raftlog verify-mirror`` with the decoding of both logs."""

import sys
from pathlib import Path
from typing import Final

from tests.benchmarks.measure import Comparison, Mode
from tests.benchmarks.mirror_inputs import ALIASES, mirror
from tests.benchmarks.programs import RAFTLOG, Command
from tests.benchmarks.shape_figures import ShapeFigures

SHAPES: Final = ("small", "tiny")
_MOST_TIMES_AS_LONG: Final = 3


class MirrorFigures(ShapeFigures):
    """All comparisons of mirrors; the size is that of each of two logs."""

    kind = "mirror"
    shapes = SHAPES

    def compared(self, shape: str, row: str) -> Comparison:
        """Return the comparison on a shape."""
        folder = Path(self.workers["compiled"].input(shape, self.size_mib)).parent.parent.parent
        ours, theirs = commands(folder, shape, self.size_mib)
        name = "decoding both logs"
        what = f"verify-mirror, two logs of {self.size_mib:g} MiB each, {shape}, whole process"
        verify, reference = (
            Command(each, "compiled", 2 * self.size_mib, self.folder / "compared") for each in (ours, theirs)
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
