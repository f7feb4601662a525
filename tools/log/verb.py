# SPDX-License-Identifier: Apache-2.0
"""``raftlog log``: make a log directory, write to it and show it; for tests, demos and learning.

Kafka can read what it writes. It acts as the only voter of a quorum; if there are other voters, it needs ``--force``.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final

from raftlog.tools.terminal.argument_parser import Parser, word_list
from raftlog.tools.terminal.exit_codes import EXIT_CLEAN, EXIT_CODES_HELP, EXIT_DAMAGE, EXIT_ERROR
from raftlog.tools.terminal.standard_error import say
from raftlog.tools.terminal.suggestion import unknown_word

ACTIONS: Final = {
    "init": "make a log directory, as kafka-storage format does",
    "append": "append records from standard input, in a new epoch",
    "info": "show the contents of a log directory, and change nothing",
    "snapshot": "write a snapshot of the log, and let it replace the log",
    "truncate": "drop the end of the log, or its damaged part",
}
"""Each action and what it does; ``init`` is run by ``raftlog.tools.log.log_init.run``."""

Action = Callable[[argparse.Namespace, int], int]
"""Called with the options and the time, in ms since the Unix epoch; returns an exit code."""


def run(arguments: Sequence[str]) -> int:
    """Run ``raftlog log`` with what follows it on the command line, and return the exit code."""
    if not arguments or arguments[0] not in ACTIONS:
        return _run_without_action(arguments)
    name, *rest = arguments
    parser = make_action_parser(name)
    given = parser.parse_args(rest)
    return _run(_load_action(name).run, given, parser.prog)


def make_action_parser(name: str) -> Parser:
    """Return the parser of the arguments of an action."""
    parser = Parser(prog=f"raftlog log {name}", description=f"{ACTIONS[name].capitalize()}.", epilog=EXIT_CODES_HELP)
    parser.add_argument("directory", metavar="DIR", help="the log directory: it has meta.properties")
    _load_action(name).add_options(parser)
    return parser


def _load_action(name: str) -> Any:
    return import_module(f"raftlog.tools.log.log_{name}")


def _run(action: Action, given: argparse.Namespace, program: str) -> int:
    """Run an action, and turn errors into one line and an exit code."""
    from raftlog.errors import DecodeError, QuarantinedLogError, RaftLogError, UnsupportedVersionError

    try:
        return action(given, time.time_ns() // 1_000_000)
    except UnsupportedVersionError as error:
        say(str(error), program)
        return EXIT_ERROR
    except (DecodeError, QuarantinedLogError) as error:
        say(str(error), program)
        return EXIT_DAMAGE
    except (RaftLogError, ValueError) as error:
        say(str(error), program)
        return EXIT_ERROR


def _run_without_action(arguments: Sequence[str]) -> int:
    parser = make_parser()
    if arguments and not arguments[0].startswith("-"):
        parser.error(unknown_word("action of log", arguments[0], ACTIONS))
    parser.parse_args(arguments)
    return EXIT_CLEAN


def make_parser() -> Parser:
    """Return the parser of ``raftlog log`` without an action: its help lists the actions."""
    parser = Parser(
        prog="raftlog log",
        description="Make a log directory, write to it and look at it: for tests, demos and learning.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=word_list(ACTIONS) + f"\n\n'raftlog log ACTION --help' says more. {EXIT_CODES_HELP}",
    )
    parser.add_argument("action", choices=ACTIONS, metavar="ACTION", help="one of those below")
    return parser
