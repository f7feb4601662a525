# SPDX-License-Identifier: Apache-2.0
"""Checks, before anything is read, that the Python of the workers has the driver's version of raftlog."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from raftlog import __version__
from raftlog.errors import SparkJobError
from raftlog.tools.spark.spark_failure import INSTALL, failures_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WORK = "looking at the workers"
_OF_AN_AUDIT = ("raftlog.tools.auditing.survey.survey", "raftlog.tools.spark.audit.executor_work")
_COLUMNS = "python string, version string, problem string"


def check_workers(spark: "SparkSession", work: str = "the audit", modules: Sequence[str] = _OF_AN_AUDIT) -> int:
    """Check that workers can import what some work needs, and return how many tasks run at a time.

    Args:
        spark: the session to work in.
        work: names the work, for messages.
        modules: names of those that it needs.

    Raises:
        SparkJobError: a worker cannot import raftlog, or has another version of it; or no job runs at all.
    """
    with failures_of(_WORK):
        rows = spark.range(4096).mapInArrow(_look(modules), _COLUMNS).collect()
    found = (problem_of(row.python, row.version, row.problem, work) for row in rows)
    problems = {problem for problem in found if problem is not None}
    if problems:
        raise SparkJobError(_WORK, f"{min(problems)}: {INSTALL}")
    return len(rows)


def problem_of(python: str, version: str, problem: str, work: str = "the audit") -> str | None:
    """Return what is wrong with a worker, or None.

    Args:
        python: path of the Python that runs its tasks.
        version: of raftlog there; empty if it cannot be imported.
        problem: why the import failed; empty if it did not.
        work: names what was to be imported.
    """
    worker = f"the Python of a worker, {python},"
    if problem:
        return f"{worker} cannot run {work} ({problem})"
    return None if version == __version__ else f"{worker} has raftlog {version}, but the driver has {__version__}"


def _look(modules: Sequence[str]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def look(batches: Iterable[Any]) -> Iterator[Any]:
        # Spark pickles a nested function by value. A module's function is pickled by name, and needs raftlog to load.
        import importlib
        import sys

        import pyarrow

        for _ in batches:
            pass
        found = {"python": sys.executable, "version": "", "problem": ""}
        try:
            import raftlog

            for each in modules:
                importlib.import_module(each)
            found["version"] = raftlog.__version__
        except Exception as error:
            found["problem"] = str(error) if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
        yield pyarrow.RecordBatch.from_pylist([found], pyarrow.schema([(name, pyarrow.string()) for name in found]))

    return look
