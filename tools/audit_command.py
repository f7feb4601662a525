# SPDX-License-Identifier: Apache-2.0
"""The command line of an audit, and what it says in the end: of ``raftlog audit``, and of the job on Spark."""

import argparse
from typing import TYPE_CHECKING

from raftlog.tools.auditing.crash_isolation import report_faults
from raftlog.tools.terminal.argument_parser import Parser
from raftlog.tools.terminal.audit_options import add_fail_on_option, add_messages_option, add_processes_option
from raftlog.tools.terminal.exit_codes import EXIT_CODES_HELP
from raftlog.tools.terminal.spool_option import add_spool_option
from raftlog.tools.terminal.text_width import fit_lines
from raftlog.tools.terminal.verb_output import write_lines

if TYPE_CHECKING:
    from raftlog.tools.auditing.run.full_audit import Engine


def audit_on(engine: "Engine", given: argparse.Namespace, program: str) -> int:
    """Audit on an engine, say how it came out on standard output, and return the exit code.

    Args:
        engine: surveys and judges.
        given: the options.
        program: who is at work.

    Raises:
        RaftLogError: the engine or the output directory fails.
    """
    from raftlog.tools.auditing.run.full_audit import audit_into  # Only now: numpy comes with it.
    from raftlog.tools.report.page import Report

    page = Report(given.paths)
    outcome = audit_into(given.out, given.paths, engine, page)
    account = outcome.account
    counts = f"{account.files} files, {account.bytes} bytes, {outcome.reused_files} unchanged and not read again"
    line = f"{account.verdict_line()}; {counts}; results of run {outcome.run_id} are in {given.out}"
    write_lines(fit_lines([line]))
    return report_faults(page.faults, account.exit_code(given.fail_on), program)


def parser_of(program: str) -> Parser:
    """Return what parses the command line.

    Args:
        program: that it is of.
    """
    parser = Parser(
        prog=program,
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
    parser.add_argument(
        "--engine",
        choices=("local", "spark", "auto"),
        default="local",
        help="who does the work: processes of this machine (the default), Spark, or the better one for the size",
    )
    parser.add_argument(
        "--master",
        metavar="URL",
        help="where Spark is: local[N], spark://HOST:PORT, sc://HOST (default: the session, or what spark-submit or"
        " SPARK_REMOTE says, else this machine); DIR and SRC are where its workers see them, too",
    )
    add_messages_option(parser)
    add_fail_on_option(parser)
    add_processes_option(parser)
    add_spool_option(parser)
    return parser
