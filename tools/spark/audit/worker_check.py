# SPDX-License-Identifier: Apache-2.0
"""Checks, before anything is read, that the Python of the workers has the driver's version of raftlog."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from raftlog import __version__
from raftlog.errors import SparkJobError
from raftlog.tools.spark.spark_failure import INSTALL, failures_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WORK = "looking at the workers"
_COLUMNS = "python string, version string, problem string"


def check_workers(spark: "SparkSession") -> int:
    """Check that workers can import what an audit needs, and return how many tasks run at a time.

    Raises:
        SparkJobError: a worker cannot import raftlog, or has another version of it; or no job runs at all.
    """
    with failures_of(_WORK):
        rows = spark.range(4096).mapInArrow(_look(), _COLUMNS).collect()
    problems = {problem for row in rows if (problem := problem_of(row.python, row.version, row.problem)) is not None}
    if problems:
        raise SparkJobError(_WORK, f"{min(problems)}: {INSTALL}")
    return len(rows)


def problem_of(python: str, version: str, problem: str) -> str | None:
    """Return what is wrong with a worker, or None.

    Args:
        python: path of the Python that runs its tasks.
        version: of raftlog there; empty if it cannot be imported.
        problem: why the import failed; empty if it did not.
    """
    worker = f"the Python of a worker, {python},"
    if problem:
        return f"{worker} cannot run the audit ({problem})"
    return None if version == __version__ else f"{worker} has raftlog {version}, but the driver has {__version__}"


def _look() -> Callable[[Iterable[Any]], Iterator[Any]]:
    def look(batches: Iterable[Any]) -> Iterator[Any]:
        # Spark pickles a nested function by value. A module's function is pickled by name, and needs raftlog to load.
        import sys

        import pyarrow

        for _ in batches:
            pass
        found = {"python": sys.executable, "version": "", "problem": ""}
        try:
            import raftlog
            import raftlog.tools.auditing.survey.survey
            import raftlog.tools.spark.audit.executor_work

            found["version"] = raftlog.__version__
        except Exception as error:
            found["problem"] = str(error) if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
        yield pyarrow.RecordBatch.from_pylist([found], pyarrow.schema([(name, pyarrow.string()) for name in found]))

    return look
