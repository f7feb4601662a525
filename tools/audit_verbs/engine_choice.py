# SPDX-License-Identifier: Apache-2.0
"""Which engine an audit runs on, if nobody says."""

import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

LEAST_SPARK_SIZE: Final = 10 * 1024**3
"""In bytes: below, Spark is still starting when one machine is done."""
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""What ``spark-submit`` sets for the Python that it starts."""
_REMOTE: Final = "SPARK_REMOTE"
"""Where Spark Connect is, for every program of a user."""
_CONNECTED: Final = "pyspark.sql"


@attrs.frozen
class EngineChoice:
    """An engine, and why it is that one.

    Attributes:
        is_spark: whether it is Spark; else this machine.
        reason: for the user.
    """

    is_spark: bool
    reason: str


def spark_at_hand(master: str | None, environment: Mapping[str, str] = os.environ) -> str | None:
    """Say which Spark there is to run on, without starting one; None if nobody named any.

    Args:
        master: as the user has named it, or None.
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

        return "there is a session of Spark" if existing_session() is not None else None
    return None


def choose_engine(spark: str | None, paths: Sequence[str], size_bytes: int) -> EngineChoice:
    """Choose between this machine and Spark.

    Args:
        spark: what ``spark_at_hand`` says.
        paths: what is audited.
        size_bytes: how much that is.
    """
    gibibytes = f"{size_bytes / 1024**3:.1f} GiB"
    if spark is None:
        return EngineChoice(False, "nobody named a Spark to run on (--master)")
    if "-" in paths:
        return EngineChoice(False, "standard input is read here")
    if size_bytes < LEAST_SPARK_SIZE:
        return EngineChoice(False, f"{gibibytes} are read here before Spark has started")
    return EngineChoice(True, f"{gibibytes} are to be read, and {spark}")
