# SPDX-License-Identifier: Apache-2.0
"""``raftlog verify``: checks the files of logs against all rules, and accounts for every byte of them."""

import argparse
import contextlib
import datetime
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO, Final

from raftlog.errors import RaftLogError, StorageError
from raftlog.records.rules import Severity
from raftlog.tools.auditing.crash_isolation import report_faults
from raftlog.tools.catalogue.audit_rules import ASKED_FOR, CATALOGUE
from raftlog.tools.terminal.argument_parser import Parser
from raftlog.tools.terminal.audit_options import (
    add_fail_on_option,
    add_messages_option,
    add_processes_option,
    prepare_to_survey,
    severity,
)
from raftlog.tools.terminal.exit_codes import EXIT_CLEAN, EXIT_CODES_HELP, EXIT_ERROR
from raftlog.tools.terminal.json_lines import json_line
from raftlog.tools.terminal.spool_option import add_spool_option
from raftlog.tools.terminal.standard_error import say
from raftlog.tools.terminal.text_width import output_width, wrap_line
from raftlog.tools.terminal.verb_output import add_format_option

if TYPE_CHECKING:
    from raftlog.tools.report.page import Report

_PROGRAM: Final = "raftlog verify"


def run(arguments: Sequence[str]) -> int:
    """Run ``raftlog verify`` with what follows it on the command line, and return the exit code."""
    parser = make_parser()
    given = parser.parse_args(arguments)
    if given.rules:
        return _list_rules(given.format)
    if not given.paths:
        parser.error("name a file or a directory")
    try:
        prepare_to_survey()
        return _verify(given)
    except RaftLogError as error:
        say(str(error), _PROGRAM)
        return EXIT_ERROR


def _verify(given: argparse.Namespace) -> int:
    from raftlog.tools.audit_verbs.verification import Verification  # Only now: numpy comes with it.

    if given.findings is not None:
        from raftlog.tools.own_file import check_outside  # Only needed for an output.

        check_outside(given.findings, given.paths)
    report_path: str | None = given.report
    report = None if report_path is None else _new_report(report_path, given.paths)
    with contextlib.nullcontext() if given.findings is None else _new_file(given.findings) as findings_output:
        verification = Verification(
            paths=given.paths,
            processes=given.processes,
            output_format=given.format,
            min_severity=Severity.HARMLESS if given.all else given.min_severity,
            fail_on=given.fail_on,
            output=sys.stdout.buffer,
            findings_output=findings_output,
            report=report,
            label=_PROGRAM,
            reads_messages=given.messages,
        )
        exit_code = verification.run()
    if report is not None and report_path is not None:
        from raftlog.tools.report.report_file import write_report

        write_report(report_path, report.html(finished=datetime.datetime.now(datetime.UTC)))
        exit_code = report_faults(report.faults, exit_code, _PROGRAM)
    return exit_code


def _new_report(path: str, paths: Sequence[str]) -> "Report":
    """Return an empty report, after checking that its file can be written."""
    from raftlog.tools.own_file import check_outside  # Only needed for a report.
    from raftlog.tools.report.page import Report
    from raftlog.tools.report.report_file import check_report_path

    check_outside(path, paths)
    check_report_path(path)
    return Report(paths)


def _new_file(path: str) -> BinaryIO:
    """Create a file. An existing one is never overwritten, since it may be one of those to verify.

    Raises:
        StorageError: the file exists, or cannot be created.
    """
    try:
        return open(path, "xb")  # noqa: PTH123 - closed by the caller
    except OSError as error:
        raise StorageError(path, "make", error.strerror or str(error)) from error


def _list_rules(output_format: str) -> int:
    for rule in CATALOGUE.values():
        if output_format == "text":
            only = f" (only by {ASKED_FOR[rule.id]})" if rule.id in ASKED_FOR else ""
            line = f"{rule.id:22} {rule.severity.value:10} {rule.claim}{only}"
            sys.stdout.write("".join(f"{part}\n" for part in wrap_line(line, output_width(), indent=34)))
            continue
        members = {"severity": rule.severity.value, "claim": rule.claim, "source": rule.source, "example": rule.example}
        sys.stdout.write(json_line("rule", None, rule=rule.id, **members, only_by=ASKED_FOR.get(rule.id)))
    return EXIT_CLEAN


def make_parser() -> Parser:
    """Return the parser of the verb's arguments."""
    parser = Parser(
        prog=_PROGRAM,
        description="Check the files of logs against all rules, and account for every byte of them.",
        epilog=f"The verified files are never written to. {EXIT_CODES_HELP}",
    )
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="a file, a partition's directory, a log directory, a directory of log directories, a pattern, or - for"
        " standard input; replicas of a partition are compared with each other",
    )
    parser.add_argument("--rules", action="store_true", help="list the rules, and exit")
    parser.add_argument("--findings", metavar="FILE", help="write all findings to a new file, as JSON lines")
    parser.add_argument(
        "--report",
        metavar="FILE.html",
        help="write a self-contained HTML page; an older report is replaced",
    )
    parser.add_argument(
        "--min-severity",
        type=severity,
        choices=tuple(Severity),
        default=Severity.SUSPICIOUS,
        metavar="SEVERITY",
        help="show only findings of this severity or worse (default: suspicious)",
    )
    parser.add_argument("--all", action="store_true", help="show harmless findings too")
    add_messages_option(parser)
    add_fail_on_option(parser)
    add_processes_option(parser)
    add_format_option(parser)
    add_spool_option(parser)
    return parser
