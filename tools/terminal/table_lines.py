# SPDX-License-Identifier: Apache-2.0
"""Tables of aligned columns that fit on the terminal."""

from collections.abc import Iterator, Sequence
from typing import Final

from raftlog.tools.terminal.standard_error import printable
from raftlog.tools.terminal.text_width import cut_line, output_width

_GAP: Final = 2
_LEAST_WIDTH: Final = 10
"""Columns of text are cut to no less than this, which is enough for a date."""


def table(rows: Sequence[Sequence[object]], numeric: frozenset[int] = frozenset()) -> list[str]:
    """Return rows as lines of aligned columns, two blanks apart.

    On a terminal that is too narrow, texts are cut, starting with the last column, and then lines; an ellipsis marks
    each cut. Other output is never cut.

    Args:
        rows: the first has the names of the columns.
        numeric: indexes of right-aligned columns.
    """
    texts = [[printable(str(cell)) for cell in row] for row in rows]
    columns = list(zip(*texts, strict=True))
    width = output_width()
    widths = [max(map(len, column)) for column in columns]
    if width is not None:
        widths = _narrowed(widths, [_least_width(column) for column in columns], width)
    return [cut_line("  ".join(_aligned(row, widths, numeric)).rstrip(), width) for row in texts]


def table_width(rows: Sequence[Sequence[object]]) -> int:
    """Return the width of an uncut table."""
    widths = [max(len(printable(str(cell))) for cell in column) for column in zip(*rows, strict=True)]
    return sum(widths) + _GAP * (len(widths) - 1)


def _least_width(column: Sequence[str]) -> int:
    """Return the least width of a column; numbers are never cut."""
    numbers = [len(cell) for cell in column[1:] if cell.lstrip("-").isdecimal()]
    return max([_LEAST_WIDTH, *numbers]) if len(numbers) < len(column) - 1 else max(map(len, column))


def _narrowed(widths: Sequence[int], least_widths: Sequence[int], width: int) -> list[int]:
    """Return widths of columns that fit if possible; the last columns are narrowed first."""
    narrowed = list(widths)
    for index in reversed(range(len(narrowed))):
        too_wide = sum(narrowed) + _GAP * (len(narrowed) - 1) - width
        narrowed[index] -= max(0, min(too_wide, narrowed[index] - least_widths[index]))
    return narrowed


def _aligned(row: Sequence[str], widths: Sequence[int], numeric: frozenset[int]) -> Iterator[str]:
    for index, (cell, width) in enumerate(zip(row, widths, strict=True)):
        text = cut_line(cell, width)
        yield text.rjust(width) if index in numeric else text.ljust(width)
