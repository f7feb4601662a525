# SPDX-License-Identifier: Apache-2.0
"""The argument parser of every verb."""

import argparse
import functools
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

from raftlog import __version__
from raftlog.tools.terminal.exit_codes import EXIT_CLEAN, EXIT_ERROR
from raftlog.tools.terminal.standard_error import say
from raftlog.tools.terminal.suggestion import suggestion
from raftlog.tools.terminal.text_width import terminal_columns, wrap_line

_WORD_WIDTH: Final = 10
"""The column width for words that a help lists: verbs and actions."""


class _ShowVersion(argparse.Action):
    """Prints the version and the form of the kernel, and exits."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from raftlog.records.kernel_choice import IS_COMPILED  # Imported here because it is slow.

        sys.stdout.write(f"raftlog {__version__} (kernel {'compiled' if IS_COMPILED else 'interpreted'})\n")
        parser.exit(EXIT_CLEAN)


class Parser(argparse.ArgumentParser):
    """An argument parser with ``--version``, whose usage errors exit with 1, like those of Kafka's tools."""

    def __init__(self, formatter_class: type[argparse.HelpFormatter] = argparse.HelpFormatter, **options: Any) -> None:
        formatter = functools.partial(formatter_class, width=_help_width() - 2)
        super().__init__(allow_abbrev=False, formatter_class=formatter, **options)
        self._given: list[str] = []
        self.add_argument("--version", action=_ShowVersion, nargs=0, help="print raftlog's version and exit")

    def format_help(self) -> str:
        """Return the help, with lines wrapped that argparse leaves wider than the terminal."""
        width = _help_width()
        lines = super().format_help().split("\n")
        return "\n".join(part for line in lines for part in wrap_line(line, width, indent=_help_indent(line)))

    def actions(self) -> list[argparse.Action]:
        """Return all options and arguments, in the order in which help shows them."""
        return list(self._actions)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse arguments, and keep them so that ``error`` can look for a mistyped option."""
        self._given = list(sys.argv[1:] if args is None else args)
        return super().parse_known_args(self._given, argparse.Namespace() if namespace is None else namespace)

    def error(self, message: str) -> NoReturn:
        """Report an error in one line, and exit. Prefers a mistyped option, which may cause other errors."""
        say(f"{self._mistyped_option() or message} (see {self.prog} --help)", self.prog)
        self.exit(EXIT_ERROR)

    def _mistyped_option(self) -> str | None:
        """Return the message for the first unknown option that resembles an existing one."""
        known = self._option_string_actions
        for word in self._given:
            name = word.partition("=")[0]
            if word == "--":
                return None  # All later words are paths.
            is_option = len(name) > 2 and name[0] == "-" and " " not in word
            if not is_option or name in known or (name[1] != "-" and name[:2] in known):
                continue
            near = suggestion(name, (each for each in known if each.startswith("--")))
            if near is not None:
                return f"no option is called {name}; did you mean {near}?"
        return None


def natural_number(text: str) -> int:
    """Return a number of 0 or more that an option gives, of 19 digits at most.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    if re.fullmatch("[0-9]{1,19}", text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 on")
    return int(text)


def word_list(answers: Mapping[str, str]) -> str:
    """Return lines for the end of a help: each word with its description, wrapped.

    Args:
        answers: the description of each word.
    """
    lines = (f"  {word:{_WORD_WIDTH}} {answer}" for word, answer in answers.items())
    width = _help_width()
    return "\n".join(part for line in lines for part in wrap_line(line, width, indent=_WORD_WIDTH + 3))


def _help_width() -> int:
    return terminal_columns(sys.__stdout__)


def _help_indent(line: str) -> int:
    """Return the indent for the continuation of a line: none for a paragraph, else more than that of the line."""
    own = len(line) - len(line.lstrip(" "))
    return own + 2 if own else 0
