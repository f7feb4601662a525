# SPDX-License-Identifier: Apache-2.0
"""``raftlog stats``: says what logs are made of, who writes the most, and what compaction or a snapshot would save."""

import argparse
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from raftlog.errors import RaftLogError
from raftlog.records.rules import Severity
from raftlog.tools.catalogue.audit_rules import UNREADABLE_RULES
from raftlog.tools.catalogue.findings import Finding, Tally
from raftlog.tools.own_file import check_outside
from raftlog.tools.terminal.argument_parser import Parser
from raftlog.tools.terminal.audit_options import prepare_to_survey
from raftlog.tools.terminal.exit_codes import EXIT_CODES_HELP, EXIT_ERROR
from raftlog.tools.terminal.spool_option import add_spool_option
from raftlog.tools.terminal.standard_error import say
from raftlog.tools.terminal.verb_output import write_lines, write_text

if TYPE_CHECKING:
    from raftlog.tools.stats.log_stats import StatsRequest

_PROGRAM: Final = "raftlog stats"
FORMATS: Final = ("table", "json")
_GROUPINGS: Final = ("partition", "type", "key", "producer", "codec", "hour")
_MOST_PREFIX_BYTES: Final = 1024
_DEFAULT_TOP: Final = 10


def run(arguments: Sequence[str]) -> int:
    """Run ``raftlog stats`` with what follows it on the command line, and return the exit code."""
    given = make_parser().parse_args(arguments)
    tally = Tally()
    try:
        _show(given, tally)
    except RaftLogError as error:
        say(str(error), _PROGRAM)
        return EXIT_ERROR
    return tally.exit_code


def make_parser() -> Parser:
    """Return the parser of the verb's arguments."""
    parser = Parser(
        prog=_PROGRAM,
        description="Count what logs are made of: batches, records, bytes and compression, by partition, type of"
        " record, prefix of the key, producer, codec and hour; and what compaction or a snapshot would save.",
        epilog=f"All current segments are read once; damaged batches are named and counted apart. {EXIT_CODES_HELP}",
    )
    what = "a log directory, a directory of log directories, a partition's directory, or a segment"
    parser.add_argument("paths", nargs="+", metavar="DIR", help=what)
    parser.add_argument(
        "--by",
        type=_groupings,
        default=frozenset(_GROUPINGS),
        metavar="NAME,...",
        help=f"what to group by: {', '.join(_GROUPINGS)} (default: all); what is not asked for is not decoded",
    )
    parser.add_argument(
        "--key-prefix",
        type=_key_prefix,
        default="8",
        metavar="N|TEXT",
        help="group keys by their first N bytes, or by what comes before TEXT (default: %(default)s)",
    )
    parser.add_argument(
        "--no-compaction", action="store_true", help="do not count what compaction would remove: that needs all keys"
    )
    parser.add_argument(
        "--top", type=_count, default=_DEFAULT_TOP, metavar="N", help="rows per table (default: %(default)s)"
    )
    parser.add_argument(
        "--report",
        metavar="FILE.html",
        help="also write the tables as a self-contained HTML page with charts; an older report is replaced",
    )
    parser.add_argument("--format", choices=FORMATS, default=FORMATS[0], help="how to print (default: %(default)s)")
    add_spool_option(parser)
    return parser


def _show(given: argparse.Namespace, tally: Tally) -> None:
    prepare_to_survey()
    if given.report is not None:
        check_outside(given.report, given.paths)
        from raftlog.tools.report.report_file import check_report_path  # Only needed for a report.

        check_report_path(given.report)
    request = _request(given)
    from raftlog.tools.stats.log_stats import count_logs  # Only now: numpy comes with it.

    def report(finding: Finding) -> None:
        tally.add(finding)
        tally.errors += finding.rule in UNREADABLE_RULES
        if finding.severity is not Severity.HARMLESS:
            say(str(finding), _PROGRAM)

    stats = count_logs(given.paths, request, report)
    if not stats.files:
        if tally.by_severity.total() == tally.by_severity[Severity.HARMLESS]:
            say("the paths have no segment", _PROGRAM)
        tally.errors += 1
        return
    if given.report is not None:
        from raftlog.tools.report.report_file import write_report
        from raftlog.tools.stats.stats_report import report_page

        write_report(given.report, report_page(stats, given.paths, given.top))
    if given.format == "json":
        from raftlog.tools.stats.stats_json import json_lines

        write_text(json_lines(stats))
    else:
        from raftlog.tools.stats.stats_text import text_lines

        write_lines(text_lines(stats, given.top))


def _request(given: argparse.Namespace) -> "StatsRequest":
    from raftlog.tools.stats.keys import KeyPrefix
    from raftlog.tools.stats.log_stats import StatsRequest

    text: str = given.key_prefix
    is_size = re.fullmatch("[0-9]+", text, re.ASCII) is not None
    prefix = KeyPrefix(int(text)) if is_size else KeyPrefix(separator=text.encode("utf-8", "surrogateescape"))
    return StatsRequest(given.by, prefix, not given.no_compaction)


def _groupings(text: str) -> frozenset[str]:
    names = text.split(",")
    for name in names:
        if name not in _GROUPINGS:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(_GROUPINGS)}")
    return frozenset(names)


def _key_prefix(text: str) -> str:
    is_size = re.fullmatch("[0-9]+", text, re.ASCII) is not None
    if not text or (is_size and (len(text) > 4 or not 1 <= int(text) <= _MOST_PREFIX_BYTES)):
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number from 1 to {_MOST_PREFIX_BYTES} nor a text")
    return text


def _count(text: str) -> int:
    if re.fullmatch("[1-9][0-9]{0,5}", text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 999999")
    return int(text)
