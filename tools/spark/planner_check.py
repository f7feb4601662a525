# SPDX-License-Identifier: Apache-2.0
"""Checks that the Python with which Spark plans queries can import raftlog.

Spark calls a Python data source in a worker of its own on the driver, by ``PYSPARK_PYTHON`` and not by the Python that
runs this. With Spark Connect, that is a Python of the server.
"""

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource

from raftlog import __version__
from raftlog.errors import SparkJobError
from raftlog.tools.spark.spark_failure import INSTALL, failures_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WORK: Final = "registering the source"
_NAME: Final = "raftlog_planner_check"


def check_planner(spark: "SparkSession") -> None:
    """Check that queries of a session can be planned.

    Raises:
        SparkJobError: the Python that plans cannot import raftlog, or has another version of it, or does not start.
    """
    with failures_of(_WORK):
        spark.dataSource.register(_probe())
        told = spark.read.format(_NAME).load().schema.fields[0].metadata
    if (problem := problem_of(told["python"], told["version"], told["problem"])) is not None:
        raise SparkJobError(_WORK, problem)


def problem_of(python: str, version: str, problem: str) -> str | None:
    """Return what is wrong with the Python that plans, in one line; None if nothing is.

    Args:
        python: its path.
        version: of raftlog there; empty if it cannot be imported.
        problem: why the import failed; empty if it did not.
    """
    planner = f"the Python that plans queries, {python},"
    if problem:
        return f"{planner} cannot run raftlog ({problem}): {INSTALL}, before the session starts"
    if version != __version__:
        return f"{planner} has raftlog {version}, but this one has {__version__}: {INSTALL}, before the session starts"
    return None


def _probe() -> type[DataSource]:
    name = _NAME

    class Probe(DataSource):  # Spark pickles a nested class by value; one of a module needs raftlog to be loaded.
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> Any:
            import sys

            from pyspark.sql.types import StringType, StructField, StructType

            found = {"python": sys.executable, "version": "", "problem": ""}
            try:
                import raftlog.tools.spark.source.planning

                found["version"] = raftlog.__version__
            except Exception as error:
                found["problem"] = f"{type(error).__name__}: {error}"
            return StructType([StructField("x", StringType(), True, found)])

    return Probe
