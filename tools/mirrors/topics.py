# SPDX-License-Identifier: Apache-2.0
"""``raftlog topics``: whose topics lie in log directories, as MirrorMaker's names say."""

import argparse
from collections.abc import Sequence
from typing import Final

from raftlog.errors import RaftLogError
from raftlog.records.rules import Severity
from raftlog.tools.catalogue.audit_rules import UNREADABLE_RULES
from raftlog.tools.catalogue.findings import Tally
from raftlog.tools.mirrors.found_topics import FoundTopics, find_topics
from raftlog.tools.mirrors.naming_options import add_naming_options, naming_policy
from raftlog.tools.mirrors.topic_lines import ClassifiedTopics, json_lines, text_lines
from raftlog.tools.terminal.argument_parser import Parser
from raftlog.tools.terminal.exit_codes import EXIT_CODES_HELP, EXIT_ERROR
from raftlog.tools.terminal.standard_error import say
from raftlog.tools.terminal.verb_output import add_format_option, write_lines, write_text

_PROGRAM: Final = "raftlog topics"


def run(arguments: Sequence[str]) -> int:
    """Run ``raftlog topics`` with what follows it on the command line, and return the exit code."""
    given = make_parser().parse_args(arguments)
    try:
        return _show(given)
    except RaftLogError as error:
        say(str(error), _PROGRAM)
        return EXIT_ERROR


def make_parser() -> Parser:
    """Return the parser of the verb's arguments."""
    parser = Parser(
        prog=_PROGRAM,
        description="List the topics in log directories, and what their names say under a replication policy of"
        " MirrorMaker: which are local, mirrors, heartbeats, offset syncs, checkpoints, or internal.",
        epilog="Only names and small files are read, so nodes may run. Directories of several clusters may be given at"
        f" once. {EXIT_CODES_HELP}",
    )
    what = "a log directory, a directory of log directories, or a partition's directory"
    parser.add_argument("paths", nargs="+", metavar="DIR", help=what)
    add_naming_options(parser)
    add_format_option(parser)
    return parser


def _show(given: argparse.Namespace) -> int:
    policy = naming_policy(given)
    found = find_topics(given.paths)
    topics = ClassifiedTopics(found, policy)
    if given.format == "text":
        write_lines(text_lines(topics))
    else:
        write_text(json_lines(topics))
    return _report(found)


def _report(found: FoundTopics) -> int:
    """Say what is wrong with what was read, and return the exit code."""
    tally = Tally()
    for finding in found.problems:
        tally.add(finding)
        tally.errors += finding.rule in UNREADABLE_RULES
        if finding.severity is not Severity.HARMLESS:
            say(str(finding), _PROGRAM)
    for path in found.unnamed:
        say(f"{path}: left out, since Kafka gives no partition's directory such a name", _PROGRAM)
    return tally.exit_code
