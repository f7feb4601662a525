# SPDX-License-Identifier: Apache-2.0
"""Tables of a report, in a frame that scrolls if the page is narrow, and its lists."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from raftlog.tools.report.markup import Markup, element, escaped, joined

_LONGEST_LINE: Final = 4000

Cell = str | Markup | int | None
"""The content of a cell; None is shown as a dash."""


def table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    numeric: Collection[int] = (),
    kind: str | None = None,
) -> Markup:
    """Return a table; the first cell of each row names it.

    Args:
        caption: of the table.
        columns: their names.
        rows: each with one cell per column.
        numeric: indexes of columns that are aligned on the right.
        kind: a class for the table.
    """
    head = joined(
        element("th", name, scope="col", class_="n" if index in numeric else None) for index, name in enumerate(columns)
    )
    body = joined(element("tr", *(_cell(index, cell, numeric) for index, cell in enumerate(row))) for row in rows)
    return framed(caption, element("thead", element("tr", head)), element("tbody", body), kind=kind)


def framed(caption: str, *parts: Markup, kind: str | None = None) -> Markup:
    """Return a table of finished parts in its frame, which scrolls by keyboard too."""
    inner = element("table", element("caption", caption), *parts, class_=kind)
    return element("div", inner, class_="frame", role="region", aria_label=caption, tabindex=0)


def facts(pairs: Iterable[tuple[str, Cell]]) -> Markup:
    """Return a definition list of names and values."""
    return element("dl", *(joined([element("dt", name), element("dd", _content(value))]) for name, value in pairs))


def listed(lines: Iterable[str]) -> Markup:
    """Return a list of sentences."""
    return element("ul", *(element("li", escaped(line, _LONGEST_LINE)) for line in lines))


def ordered(lines: Iterable[str]) -> Markup:
    """Return a numbered list of sentences."""
    return element("ol", *(element("li", escaped(line, _LONGEST_LINE)) for line in lines))


def plain_list(things: Iterable[object]) -> str:
    """Return things with commas between them; empty for none."""
    return ", ".join(map(str, things))


def _cell(index: int, cell: Cell, numeric: Collection[int]) -> Markup:
    if index == 0:
        return element("th", _content(cell), scope="row", class_="n" if index in numeric else None)
    return element("td", _content(cell), class_="n" if index in numeric else None)


def _content(cell: Cell) -> str | Markup:
    if cell is None or cell == "":
        return "-"
    return cell if isinstance(cell, str) else str(cell)
