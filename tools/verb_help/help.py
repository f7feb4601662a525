# SPDX-License-Identifier: Apache-2.0
"""``raftlog help``: the help of the command, of a verb or of an action of ``log``."""

from collections.abc import Sequence
from typing import Final

from raftlog.tools.log.verb import ACTIONS
from raftlog.tools.terminal.argument_parser import Parser
from raftlog.tools.terminal.exit_codes import EXIT_CLEAN
from raftlog.tools.terminal.suggestion import unknown_word
from raftlog.tools.verb_help.verbs import VERBS, load_verb, make_command_parser

_PROGRAM: Final = "raftlog help"


def run(arguments: Sequence[str]) -> int:
    """Run ``raftlog help`` with what follows it on the command line, and return the exit code."""
    parser = make_parser()
    given = parser.parse_args(arguments)
    if given.verb is None:
        make_command_parser().print_help()
        return EXIT_CLEAN
    if given.verb not in VERBS:
        parser.error(unknown_word("verb", given.verb, VERBS))
    if given.action is None:
        return load_verb(given.verb).run(["--help"])
    if given.verb != "log":
        parser.error(f"{given.verb} has no actions")
    if given.action not in ACTIONS:
        parser.error(unknown_word("action of log", given.action, ACTIONS))
    return load_verb(given.verb).run([given.action, "--help"])


def make_parser() -> Parser:
    """Return the parser of the verb's arguments."""
    parser = Parser(prog=_PROGRAM, description="Show the help of the command, of a verb or of an action of log.")
    parser.add_argument("verb", nargs="?", metavar="VERB", help="a verb of raftlog (default: the command itself)")
    parser.add_argument("action", nargs="?", metavar="ACTION", help="an action of log")
    return parser
