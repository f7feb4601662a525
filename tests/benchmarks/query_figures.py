# SPDX-License-Identifier: Apache-2.0
"""Comparisons of ``raftlog query`` with DuckDB over Parquet, beside the decoding that it must do."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from tests.benchmarks.measure import Comparison, Mode, environment
from tests.benchmarks.operations import Worker
from tests.benchmarks.programs import RAFTLOG, Command

SHAPES: Final = ("small", "small-zstd")
_MOST_TIMES_AS_LONG: Final = 1.5
_PROGRAM: Final = (sys.executable, "-m", "tests.benchmarks.query_process")


class QueryFigures:
    """All comparisons of queries.

    Args:
        folder: for Parquet files and outputs.
        workers: a process for each mode, which makes the logs.
        size_mib: of a log.
    """

    def __init__(self, folder: Path, workers: Mapping[Mode, Worker], size_mib: float) -> None:
        self._folder = folder
        self._workers = workers
        self._size_mib = size_mib

    def all(self) -> Iterator[tuple[str, Callable[[str], Comparison]]]:
        """Yield the start of the ids of their rows, and what makes a comparison, given that."""
        for shape in SHAPES:
            yield f"query-{shape}", partial(self._grouped, shape)

    def _grouped(self, shape: str, row: str) -> Comparison:
        segment = Path(self._workers["compiled"].input(shape, self._size_mib))
        ours, theirs = commands(segment, self._folder / f"{shape}-{self._size_mib:g}.parquet")
        name = "decoding the keys, and DuckDB over Parquet"
        what = f"query, records by key, a log of {self._size_mib:g} MiB, {shape}, whole process"
        query, reference = (
            Command(each, "compiled", self._size_mib, self._folder / "queried") for each in (ours, theirs)
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
