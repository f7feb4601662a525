# SPDX-License-Identifier: Apache-2.0
"""Fits lines to the width of a terminal; output that is not for a terminal is never cut or wrapped."""

import os
import sys
from collections.abc import Iterable, Iterator
from typing import Final, TextIO

from raftlog.tools.terminal.standard_error import printable

_DEFAULT_COLUMNS: Final = 80
_LEAST_COLUMNS: Final = 20
_ELLIPSIS: Final = "…"


def terminal_columns(stream: TextIO | None) -> int:
    """Return how many columns a terminal has: from ``COLUMNS``, or else from the terminal, or else 80.

    Args:
        stream: the stream that the terminal shows; None if it is closed.
    """
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdecimal() and int(wanted):
        return max(_LEAST_COLUMNS, int(wanted))
    try:
        columns = os.get_terminal_size(stream.fileno()).columns  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):  # It is closed, or not a terminal.
        columns = 0
    return max(_LEAST_COLUMNS, columns or _DEFAULT_COLUMNS)


def output_width() -> int | None:
    """Return how wide lines on standard output may be; None for any width, if it is not a terminal."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    return terminal_columns(sys.stdout)


def cut_line(line: str, width: int | None) -> str:
    """Cut a line to a width, marked by an ellipsis; None is no limit."""
    if width is None or len(line) <= width:
        return line
    return f"{line[: width - 1]}{_ELLIPSIS}"


def wrap_line(line: str, width: int | None, *, indent: int | None = None, breaks_words: bool = False) -> list[str]:
    """Break a line at blanks, so that each part fits.

    Args:
        line: the line without its end.
        width: the width; None is no limit.
        indent: the indent of all parts but the first, if the width allows it; None for two more than the line's own.
        breaks_words: whether to break words that do not fit. Paths in prose stay whole, so that a user can copy them.
    """
    if width is None or len(line) <= width:
        return [line]
    import textwrap  # Imported here, as most output does not need it.

    own = len(line) - len(line.lstrip(" "))
    following = min(own + 2 if indent is None else indent, width // 4)
    return textwrap.wrap(
        line,
        width,
        subsequent_indent=" " * following,
        break_long_words=breaks_words,
        break_on_hyphens=False,
        replace_whitespace=False,
        expand_tabs=False,
    )


def fit_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines of text for people to read on standard output.

    Names and other text from files may contain anything, so invisible characters are escaped (``printable``). On a
    terminal, lines are wrapped.
    """
    width = output_width()
    for line in lines:
        yield from wrap_line(printable(line), width)
