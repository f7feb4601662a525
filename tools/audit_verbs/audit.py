# SPDX-License-Identifier: Apache-2.0
"""``raftlog audit``: verify any number of log directories, and write tables of the results.

The output directory keeps the evidence of each file. So an interrupted run continues where it stopped, and a later run
reads only the files that have changed.
"""

import argparse
from collections.abc import Sequence
from typing import Final

from raftlog.errors import MissingExtraError, RaftLogError
from raftlog.tools.audit_command import audit_on, parser_of
from raftlog.tools.audit_verbs.engine_choice import is_for_spark
from raftlog.tools.terminal.argument_parser import Parser
from raftlog.tools.terminal.audit_options import prepare_to_survey
from raftlog.tools.terminal.exit_codes import EXIT_ERROR
from raftlog.tools.terminal.standard_error import say

_PROGRAM: Final = "raftlog audit"


def run(arguments: Sequence[str]) -> int:
    """Run ``raftlog audit`` with what follows it on the command line, and return the exit code."""
    given = make_parser().parse_args(arguments)
    try:
        prepare_to_survey()
        is_spark = is_for_spark(given.engine, given.master, given.paths, _PROGRAM)
        return _audit_on_spark(given) if is_spark else _audit_here(given)
    except RaftLogError as error:
        say(str(error), _PROGRAM)
        return EXIT_ERROR


def make_parser() -> Parser:
    """Return the parser of the verb's arguments."""
    return parser_of(_PROGRAM)


def _audit_here(given: argparse.Namespace) -> int:
    from raftlog.tools.auditing.run.local_engine import LocalEngine

    return audit_on(LocalEngine(given.paths, given.processes, given.fresh, given.messages, _PROGRAM), given, _PROGRAM)


def _audit_on_spark(given: argparse.Namespace) -> int:
    try:
        from raftlog.tools.spark.audit_job import audit_on_spark
    except ImportError as error:
        raise MissingExtraError("spark", "--engine spark") from error
    return audit_on_spark(given, _PROGRAM)
