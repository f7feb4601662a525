# SPDX-License-Identifier: Apache-2.0
"""``raftlog audit``: verify any number of log directories, and leave tables of the results.

A run that was interrupted goes on where it was, and one over directories that have changed a little reads only what has
changed: the output directory keeps what is known of each file.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from raftlog.errors import RaftLogError
from raftlog.tools.audit_options import add_fail_on_option, add_messages_option, add_processes_option, prepare_to_survey
from raftlog.tools.auditing.own_fault import tell_faults
from raftlog.tools.command_line import Parser
from raftlog.tools.exit_codes import EXIT_CODES_HELP, EXIT_ERROR
from raftlog.tools.standard_error import printable, say

_PROGRAM: Final = "raftlog audit"


def run(arguments: Sequence[str]) -> int:
    """Run ``raftlog audit`` with what follows it on the command line, and return the exit code."""
    given = _parser().parse_args(arguments)
    try:
        prepare_to_survey(_PROGRAM)
        return _audit(given)
    except RaftLogError as error:
        say(str(error), _PROGRAM)
        return EXIT_ERROR


def _audit(given: argparse.Namespace) -> int:
    from raftlog.tools.auditing.full_audit import audit_into  # Only now: numpy comes with it.
    from raftlog.tools.report.page import Report

    page = Report(given.paths)
    outcome = audit_into(
        given.out,
        given.paths,
        given.processes,
        page,
        is_fresh=given.fresh,
        reads_messages=given.messages,
        label=_PROGRAM,
    )
    account = outcome.account
    counts = f"{account.files} files, {account.bytes} bytes, {outcome.reused_files} unchanged and not read again"
    line = printable(f"{account.verdict_line()}; {counts}; results of run {outcome.run_id} are in {given.out}")
    sys.stdout.buffer.write(f"{line}\n".encode("utf-8", "surrogateescape"))
    sys.stdout.buffer.flush()
    return tell_faults(page.faults, account.exit_code(given.fail_on), _PROGRAM)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=_PROGRAM,
        description="Verify any number of log directories, and leave the results as Parquet tables (runs, checks,"
        " findings, voter_timeline, epochs), a summary and a page to read. What has not changed since the last run is"
        " not read again.",
        epilog=f"Nothing is written to what is audited. {EXIT_CODES_HELP}",
    )
    parser.add_argument(
        "paths", nargs="+", metavar="SRC", help="a log directory, a directory of those, or what verify takes else"
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="where the results go: a new directory, or its own")
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="read everything again: bits that rot on a disk change no file's size or time",
    )
    add_messages_option(parser)
    add_fail_on_option(parser)
    add_processes_option(parser)
    return parser
