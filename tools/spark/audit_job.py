# SPDX-License-Identifier: Apache-2.0
"""The audit as a Spark job, for ``raftlog audit --engine spark``, ``spark-submit`` and notebooks.

::

    spark-submit --py-files raftlog.whl audit_job.py SRC... --out DIR
    audit_job.main(["/mnt/logs", "--out", "/mnt/audit"], spark)
"""

import argparse
import contextlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from raftlog.errors import RaftLogError
from raftlog.tools.audit_command import audit_on, parser_of
from raftlog.tools.spark.audit.audit_engine import SparkEngine
from raftlog.tools.spark.session import session
from raftlog.tools.terminal.audit_options import prepare_to_survey
from raftlog.tools.terminal.exit_codes import EXIT_ERROR
from raftlog.tools.terminal.garbage_collector import collect_garbage_seldom
from raftlog.tools.terminal.standard_error import say

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PROGRAM: Final = "audit_job"
SETTINGS: Final = {"spark.sql.adaptive.enabled": "false"}
"""Settings of a session created for an audit. Its jobs fix their number of tasks, so adaptive planning has no use."""


def main(argv: Sequence[str] | None = None, spark: "SparkSession | None" = None) -> int:
    """Audit on Spark, and return the exit code of ``raftlog audit``.

    Args:
        argv: its arguments; None for those of this process. ``--engine`` is ignored.
        spark: the session to use, which is left running. With None, the session of this process is used; or else one
            is created, and stopped at the end.
    """
    given = parser_of(_PROGRAM).parse_args(argv)
    try:
        prepare_to_survey()
        return audit_on_spark(given, _PROGRAM, spark)
    except RaftLogError as error:
        say(str(error), _PROGRAM)
        return EXIT_ERROR


def audit_on_spark(given: argparse.Namespace, program: str, spark: "SparkSession | None" = None) -> int:
    """Audit on Spark, and return the exit code.

    Args:
        given: the parsed arguments.
        program: name of the command, for messages.
        spark: as for ``main``.

    Raises:
        RaftLogError: Spark cannot be started or fails, or the output directory cannot be used.
    """
    with contextlib.nullcontext(spark) if spark is not None else session(given.master, SETTINGS) as found:
        return audit_on(SparkEngine(found, given.paths, given.fresh, given.messages, program), given, program)


if __name__ == "__main__":
    collect_garbage_seldom()
    sys.exit(main())
