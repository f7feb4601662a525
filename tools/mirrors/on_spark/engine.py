# SPDX-License-Identifier: Apache-2.0
"""Where ``raftlog verify-mirror`` reads logs: on this machine, or on Spark."""

import argparse
import contextlib
from collections.abc import Iterator
from typing import Final

from raftlog.errors import MissingExtraError
from raftlog.tools.audit_verbs.engine_choice import is_for_spark
from raftlog.tools.mirrors.reading.log_reading import LocalSummer, LogSummer

_MODULES: Final = ("raftlog.tools.mirrors.on_spark.spark_summer",)


@contextlib.contextmanager
def log_summer(given: argparse.Namespace, program: str) -> Iterator[LogSummer]:
    """Provide what reads the logs, as ``--engine`` and ``--master`` say.

    Args:
        given: the parsed arguments.
        program: name of the command, for messages.

    Raises:
        MissingExtraError: pyspark is not installed.
        NoJavaError: a session must be started here, and there is no Java for it.
        SparkJobError: Spark cannot be started, or its workers cannot read mirrors.
    """
    if not is_for_spark(given.engine, given.master, [*given.source, *given.target], program):
        yield LocalSummer()
        return
    try:
        from raftlog.tools.spark.audit.worker_check import check_workers
        from raftlog.tools.spark.audit_job import SETTINGS
        from raftlog.tools.spark.session import session
    except ImportError as error:
        raise MissingExtraError("spark", "--engine spark") from error
    from raftlog.tools.mirrors.on_spark.spark_summer import SparkSummer

    with session(given.master, SETTINGS) as spark:
        check_workers(spark, "verify-mirror", _MODULES)
        yield SparkSummer(spark)
