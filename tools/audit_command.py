# SPDX-License-Identifier: Apache-2.0
"""The command line and the closing message of an audit, for ``raftlog audit`` and for the Spark job."""

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
    """Audit on an engine, report the outcome on standard output, and return the exit code.

    Args:
        engine: runs the survey and the judgement.
        given: the options.
        program: the command's name, for messages.

    Raises:
        RaftLogError: the engine or the output directory fails.
    """
    from raftlog.tools.auditing.run.full_audit import audit_into  # Imported late, because it imports numpy.
    from raftlog.tools.report.page import Report

    page = Report(given.paths)
    outcome = audit_into(given.out, given.paths, engine, page)
    account = outcome.account
    counts = f"{account.files} files, {account.bytes} bytes, {outcome.reused_files} unchanged and not read again"
    line = f"{account.verdict_line()}; {counts}; results of run {outcome.run_id} are in {given.out}"
    write_lines(fit_lines([line]))
    return report_faults(page.faults, account.exit_code(given.fail_on), program)


def parser_of(program: str) -> Parser:
    """Return the parser of the command line.

    Args:
        program: the command's name, for messages.
    """
    parser = Parser(
        prog=program,
        description="Verify any number of log directories, and write the results as Parquet tables (runs, checks,"
        " findings, voter_timeline, epochs), a summary and an HTML report. Files that have not changed since the last"
        " run are not read again.",
        epilog=f"The audited directories are not written to. {EXIT_CODES_HELP}",
    )
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="SRC",
        help="a log directory, a directory of log directories, or any other path that verify takes",
    )
    parser.add_argument(
        "--out", required=True, metavar="DIR", help="directory of the results: a new one, or that of an earlier audit"
    )
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="read everything again: bit rot changes no file's size or time",
    )
    parser.add_argument(
        "--engine",
        choices=("local", "spark", "auto"),
        default="local",
        help="what does the work: processes of this machine (the default), Spark, or whichever suits the size",
    )
    parser.add_argument(
        "--master",
        metavar="URL",
        help="where Spark is: local[N], spark://HOST:PORT, sc://HOST (default: the current session, or what"
        " spark-submit or SPARK_REMOTE names, else this machine); its workers must see DIR and SRC at the same paths",
    )
    add_messages_option(parser)
    add_fail_on_option(parser)
    add_processes_option(parser)
    add_spool_option(parser)
    return parser
