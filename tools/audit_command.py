# SPDX-License-Identifier: Apache-2.0
"""The arguments and the last line of an audit, shared by ``raftlog audit`` and the Spark job."""

import argparse
from typing import TYPE_CHECKING

from raftlog.tools.auditing.crash_isolation import report_faults
from raftlog.tools.terminal.argument_parser import Parser
from raftlog.tools.terminal.audit_options import (
    add_engine_options,
    add_fail_on_option,
    add_messages_option,
    add_processes_option,
)
from raftlog.tools.terminal.exit_codes import EXIT_CODES_HELP
from raftlog.tools.terminal.spool_option import add_spool_option
from raftlog.tools.terminal.text_width import fit_lines
from raftlog.tools.terminal.verb_output import write_lines

if TYPE_CHECKING:
    from raftlog.tools.auditing.run.full_audit import Engine


def audit_on(engine: "Engine", given: argparse.Namespace, program: str) -> int:
    """Audit on an engine, write the outcome as a line to standard output, and return the exit code.

    Args:
        engine: surveys and judges.
        given: the parsed arguments.
        program: name of the command, for messages.

    Raises:
        RaftLogError: the engine fails, or the output directory cannot be used.
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
    """Return the parser of an audit's arguments.

    Args:
        program: name of the command that takes them.
    """
    parser = Parser(
        prog=program,
        description="Verify any number of log directories, and write the results as Parquet tables (runs, checks,"
        " findings, voter_timeline, epochs), a summary and an HTML page. Files that have not changed since the last"
        " run are not read again.",
        epilog=f"The audited files are never written to. {EXIT_CODES_HELP}",
    )
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="SRC",
        help="a log directory, a directory of log directories, or any other path that verify takes",
    )
    parser.add_argument(
        "--out",
        required=True,
        metavar="DIR",
        help="where to write the results: a new directory or that of an earlier audit, or a URI such as s3://BUCKET/KEY",
    )
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="read every file again: bit rot on a disk changes neither size nor modification time",
    )
    add_engine_options(parser, "DIR and SRC")
    add_messages_option(parser)
    add_fail_on_option(parser)
    add_processes_option(parser)
    add_spool_option(parser)
    return parser
