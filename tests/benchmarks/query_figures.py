# SPDX-License-Identifier: Apache-2.0
"""Comparisons of ``raftlog query`` with DuckDB over Parquet, beside the decoding that it must do."""

import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.benchmarks.measure import Comparison, Mode, environment
from tests.benchmarks.programs import RAFTLOG, Command
from tests.benchmarks.shape_figures import ShapeFigures

SHAPES: Final = ("small", "small-zstd")
_MOST_TIMES_AS_LONG: Final = 1.5
_PROGRAM: Final = (sys.executable, "-m", "tests.benchmarks.query_process")


class QueryFigures(ShapeFigures):
    """All comparisons of queries."""

    kind = "query"
    shapes = SHAPES

    def compared(self, shape: str, row: str) -> Comparison:
        """Return the comparison on a shape."""
        segment = Path(self.workers["compiled"].input(shape, self.size_mib))
        ours, theirs = commands(segment, self.folder / f"{shape}-{self.size_mib:g}.parquet")
        name = "decoding the keys, and DuckDB over Parquet"
        what = f"query, records by key, a log of {self.size_mib:g} MiB, {shape}, whole process"
        query, reference = (
            Command(each, "compiled", self.size_mib, self.folder / "queried") for each in (ours, theirs)
        )
        goals: dict[tuple[Mode, str], float] = {("compiled", name): 1 / _MOST_TIMES_AS_LONG}
        return Comparison(row, what, "MiB/s", {"compiled": query}, {name: reference}, goals)


def commands(segment: Path, parquet: Path) -> tuple[list[str], list[str]]:
    """Return the commands that group the records of a log with one segment by key: raftlog's, and the reference's.

    Args:
        segment: the segment.
        parquet: a file to be made from it, unless it is there.
    """
    directory = segment.parent.parent
    if not parquet.exists():
        sql = 'SELECT key, value, "offset", timestamp FROM records'
        command = [RAFTLOG, "query", sql, str(directory), "--format", "parquet", "--out", str(parquet)]
        subprocess.run(command, check=True, env=environment("compiled"))
    return [*_PROGRAM, "query", str(directory)], [*_PROGRAM, "reference", str(segment), str(parquet)]
