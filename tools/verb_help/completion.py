# SPDX-License-Identifier: Apache-2.0
"""``raftlog completion``: a script that completes verbs, actions, options and their values in a shell.

The script is made from the parsers of the verbs, and starts no process while a user types.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from raftlog.tools.log.verb import ACTIONS, make_action_parser
from raftlog.tools.terminal.argument_parser import Parser
from raftlog.tools.terminal.exit_codes import EXIT_CLEAN
from raftlog.tools.verb_help.completion_scripts import SCRIPTS, Command, Option
from raftlog.tools.verb_help.verbs import VERBS, load_verb, make_command_parser

_EPILOG: Final = (
    'For bash, put eval "$(raftlog completion bash)" into ~/.bashrc. For zsh, put eval "$(raftlog completion zsh)" into'
    " ~/.zshrc, after compinit. For fish, write the script to ~/.config/fish/completions/raftlog.fish."
)


def run(arguments: Sequence[str]) -> int:
    """Run ``raftlog completion`` with what follows it on the command line, and return the exit code."""
    given = make_parser().parse_args(arguments)
    sys.stdout.write(SCRIPTS[given.shell](list(commands())))
    return EXIT_CLEAN


def make_parser() -> Parser:
    """Return the parser of the verb's arguments."""
    parser = Parser(
        prog="raftlog completion",
        description="Print a script that completes verbs, options and their values in a shell.",
        epilog=_EPILOG,
    )
    parser.add_argument("shell", choices=tuple(SCRIPTS), metavar="SHELL", help=f"one of {', '.join(SCRIPTS)}")
    return parser


def commands() -> Iterator[Command]:
    """Yield everything that can be completed: the command itself, each verb, each action of ``log``, and their help."""
    answers = {name: verb.description for name, verb in VERBS.items()}
    yield _command((), make_command_parser(), answers)
    for name in VERBS:
        words = {"log": ACTIONS, "help": answers}.get(name)
        yield _command((name,), load_verb(name).make_parser(), words)
    for name in ACTIONS:
        yield _command(("log", name), make_action_parser(name))
    yield Command(("help", "log"), (), ACTIONS)


def _command(words: tuple[str, ...], parser: Parser, following: Mapping[str, str] | None = None) -> Command:
    """Describe a parser.

    Args:
        words: the words that lead to it on the command line.
        parser: the parser of the words after those.
        following: the verbs or actions that may follow, with their descriptions; None for the parser's own choices.
    """
    actions = parser.actions()
    own = {choice: "" for action in actions if not action.option_strings for choice in _choices(action)}
    options = tuple(_option(parser, action) for action in actions if action.option_strings)
    return Command(words, options, own if following is None else following)


def _option(parser: Parser, action: argparse.Action) -> Option:
    return Option(
        tuple(action.option_strings),
        (action.help or "") % {**vars(action), "prog": parser.prog},
        _choices(action),
        takes_value=action.nargs != 0,
        may_repeat=type(action).__name__ == "_AppendAction",
    )


def _choices(action: argparse.Action) -> tuple[str, ...]:
    return tuple(str(getattr(choice, "value", choice)) for choice in action.choices or ())
