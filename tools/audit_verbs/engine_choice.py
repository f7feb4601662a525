# SPDX-License-Identifier: Apache-2.0
"""Chooses the engine of an audit for ``--engine auto``."""

import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

LEAST_SPARK_SIZE: Final = 10 * 1024**3
"""In bytes. One machine reads less than this while Spark is still starting."""
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""The variable that ``spark-submit`` sets for the Python process that it starts."""
_REMOTE: Final = "SPARK_REMOTE"
"""The variable by which a user names a Spark Connect server for all programs."""
_CONNECTED: Final = "pyspark.sql"


@attrs.frozen
class EngineChoice:
    """An engine, and why it was chosen.

    Attributes:
        is_spark: whether it is Spark; otherwise it is this machine.
        reason: why, for the user.
    """

    is_spark: bool
    reason: str


def spark_at_hand(master: str | None, environment: Mapping[str, str] = os.environ) -> str | None:
    """Describe the Spark that is available, without starting one; None if none was named.

    Args:
        master: the value of ``--master``, or None.
        environment: the environment variables of this process.
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

        return "there is a Spark session" if existing_session() is not None else None
    return None


def choose_engine(spark: str | None, paths: Sequence[str], size_bytes: int) -> EngineChoice:
    """Choose between this machine and Spark.

    Args:
        spark: the result of ``spark_at_hand``.
        paths: the paths to audit.
        size_bytes: their size.
    """
    gibibytes = f"{size_bytes / 1024**3:.1f} GiB"
    if spark is None:
        return EngineChoice(False, "no Spark was named to run on (--master)")
    if "-" in paths:
        return EngineChoice(False, "standard input can only be read here")
    if size_bytes < LEAST_SPARK_SIZE:
        return EngineChoice(False, f"{gibibytes} are read here before Spark would have started")
    return EngineChoice(True, f"{gibibytes} are to be read, and {spark}")
