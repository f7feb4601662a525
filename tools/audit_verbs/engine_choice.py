# SPDX-License-Identifier: Apache-2.0
"""The choice of engine for verbs with ``--engine auto``."""

import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from raftlog.tools.terminal.standard_error import say

LEAST_SPARK_SIZE: Final = 10 * 1024**3
"""In bytes; smaller audits finish on one machine before Spark has started."""
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""The variable that ``spark-submit`` sets for the Python that it starts."""
_REMOTE: Final = "SPARK_REMOTE"
"""The variable with the address of Spark Connect."""
_CONNECTED: Final = "pyspark.sql"


@attrs.frozen
class EngineChoice:
    """The chosen engine, and the reason.

    Attributes:
        is_spark: whether to read on Spark instead of this machine.
        reason: for the user.
    """

    is_spark: bool
    reason: str


def spark_at_hand(master: str | None, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return a clause that says which Spark can be used, without starting one; None if none is configured.

    Args:
        master: the value of ``--master``, or None.
        environment: variables of this process.
    """
    if importlib.util.find_spec("pyspark") is None:
        return None
    if master is not None:
        return f"Spark is at {master}"
    if _SUBMITTED in environment:
        return "this was started by spark-submit"
    if _REMOTE in environment:
        return f"Spark Connect is at {environment[_REMOTE]}"
    if _CONNECTED in sys.modules:
        from raftlog.tools.spark.session import existing_session

        return "this process has a Spark session" if existing_session() is not None else None
    return None


def is_for_spark(engine: str, master: str | None, paths: Sequence[str], program: str) -> bool:
    """Whether to read on Spark; a choice made for ``auto`` is reported on standard error.

    Args:
        engine: the value of ``--engine``.
        master: the value of ``--master``, or None.
        paths: the paths to read.
        program: name of the command, for the report.
    """
    if engine != "auto":
        return engine == "spark"
    spark = spark_at_hand(master)
    choice = choose_engine(spark, paths, 0 if spark is None else _size_of(paths))
    say(f"the engine is {'Spark' if choice.is_spark else 'local'}: {choice.reason}", program)
    return choice.is_spark


def _size_of(paths: Sequence[str]) -> int:
    from raftlog.tools.auditing.run.run import tasks_of

    return sum(task.size_bytes + task.indexes_size_bytes for task in tasks_of(paths, []))


def choose_engine(spark: str | None, paths: Sequence[str], size_bytes: int) -> EngineChoice:
    """Choose between this machine and Spark.

    Args:
        spark: the result of ``spark_at_hand``.
        paths: the paths to read.
        size_bytes: the size of all files there.
    """
    gibibytes = f"{size_bytes / 1024**3:.1f} GiB"
    if spark is None:
        return EngineChoice(False, "no Spark is configured (see --master)")
    if "-" in paths:
        return EngineChoice(False, "only this machine can read standard input")
    if size_bytes < LEAST_SPARK_SIZE:
        return EngineChoice(False, f"this machine reads {gibibytes} before Spark has started")
    return EngineChoice(True, f"{gibibytes} are to be read, and {spark}")
