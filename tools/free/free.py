# SPDX-License-Identifier: Apache-2.0
"""``raftlog free``: says what could be removed on a full disk, in safe order; it removes and writes nothing."""

import argparse
from collections.abc import Sequence
from typing import Final

from raftlog.errors import RaftLogError
from raftlog.records.rules import Severity
from raftlog.storage.reading.file_source import parse_size
from raftlog.tools.catalogue.audit_rules import UNREADABLE_RULES
from raftlog.tools.catalogue.findings import Finding, Tally
from raftlog.tools.terminal.argument_parser import Parser
from raftlog.tools.terminal.audit_options import add_processes_option, prepare_to_survey
from raftlog.tools.terminal.exit_codes import EXIT_ERROR, EXIT_SUSPICIOUS
from raftlog.tools.terminal.standard_error import say
from raftlog.tools.terminal.verb_output import add_format_option, write_lines, write_text

_PROGRAM: Final = "raftlog free"
_EXIT_CODES: Final = (
    "Exit codes: 0 listed, 1 usage or I/O, 2 a metadata log is damaged, 3 only suspicious findings, or less than --need"
    " stays free, 130 interrupted."
)


def run(arguments: Sequence[str]) -> int:
    """Run ``raftlog free`` with what follows it on the command line, and return the exit code."""
    given = make_parser().parse_args(arguments)
    tally = Tally()
    try:
        suffices = _show(given, tally)
    except RaftLogError as error:
        say(str(error), _PROGRAM)
        return EXIT_ERROR
    return tally.exit_code or (EXIT_SUSPICIOUS if suffices is False else 0)


def make_parser() -> Parser:
    """Return the parser of the verb's arguments."""
    parser = Parser(
        prog=_PROGRAM,
        description="For a node that cannot start since its disk is full: list what could be removed, the most harmless"
        " first, with the bytes that come free and the reason. Nothing is removed, and nothing is written.",
        epilog="Metadata logs are read and audited first; of topics, only names are read. The node must be stopped."
        f" {_EXIT_CODES}",
    )
    what = "a log directory, a directory of log directories, or a partition's directory"
    parser.add_argument("paths", nargs="+", metavar="DIR", help=what)
    parser.add_argument(
        "--need",
        type=_size,
        metavar="SIZE",
        help="stop once SIZE bytes come free, such as 500M or 8G; enough is what startup does not take again",
    )
    add_processes_option(parser)
    add_format_option(parser)
    return parser


def _show(given: argparse.Namespace, tally: Tally) -> bool | None:
    """Print what may be removed, and return whether it is enough; None if ``--need`` was not given."""
    prepare_to_survey()
    from raftlog.tools.free.free_lines import FreePlan, json_lines, text_lines
    from raftlog.tools.free.offers import counted
    from raftlog.tools.free.planning import check_one_file_system, offers_of
    from raftlog.tools.free.surveyed import check_locks, survey_directories  # Only now: numpy comes with it.

    surveyed = survey_directories(given.paths, given.processes)
    if given.need is not None:
        check_one_file_system([*(each.directory for each in surveyed.partitions), *surveyed.deleted])
    for finding in surveyed.findings:
        _report(finding, tally)
    offers = offers_of(surveyed)
    check_locks(surveyed.log_directories)  # Again: a node that was started meanwhile uses what was found.
    plan = FreePlan(list(counted(offers.found, given.need)), offers.kept, given.need)
    if given.format == "text":
        write_lines(text_lines(plan))
    else:
        write_text(json_lines(plan))
    return plan.suffices


def _report(finding: Finding, tally: Tally) -> None:
    tally.add(finding)
    tally.errors += finding.rule in UNREADABLE_RULES
    if finding.severity is not Severity.HARMLESS:
        say(str(finding), _PROGRAM)


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
