# SPDX-License-Identifier: Apache-2.0
"""Makes HTML and SVG text. All text that this module did not make is escaped, so that a file name cannot inject markup.

Invisible characters, and those that change the direction of text, are shown as escapes.
"""

import functools
import html
import re
from collections.abc import Hashable, Iterable
from typing import Final

from raftlog.tools.terminal.standard_error import HIDDEN_RANGES, character_escape

_UNSEEN: Final = re.compile(
    f"[{''.join(f'{chr(first)}-{chr(last)}' for first, last in HIDDEN_RANGES)}\ufffe\uffff\ud800-\udfff]"
)
_PLAIN: Final = re.compile("[ !#-%(-;=?-~]*")
"""Text that needs no escaping; the fast path for most texts."""
_VOID: Final = frozenset({"meta", "br"})


class Markup(str):
    """Text that is markup, and is not escaped again."""

    __slots__ = ()


def visible(text: str, limit: int = 600) -> str:
    """Return a text with invisible characters as escapes, cut after ``limit`` characters; the rest is counted."""
    shown = _UNSEEN.sub(_escape, text[:limit])
    return shown if len(text) <= limit else f"{shown}… ({len(text) - limit} more characters)"


def element(name: str, /, *children: str | Markup | None, **attributes: Hashable) -> Markup:
    """Return an element.

    Args:
        name: of the element.
        children: markup, texts to escape, and None for nothing.
        attributes: in their names, a trailing underscore is dropped, and others become hyphens. Those that are None are
            left out.
    """
    start = "".join([name, *(_attribute(key, value) for key, value in attributes.items() if value is not None)])
    if name in _VOID:
        return Markup(f"<{start}>")
    return Markup(f"<{start}>{joined(children)}</{name}>")


def joined(parts: Iterable[str | Markup | None]) -> Markup:
    """Return parts in a row; those that are not markup are escaped, and None is left out."""
    return Markup("".join(part if isinstance(part, Markup) else escaped(part) for part in parts if part is not None))


def escaped(text: str, limit: int = 600) -> Markup:
    """Return a text as markup, cut as ``visible`` does."""
    if len(text) <= limit and _PLAIN.fullmatch(text):
        return Markup(text)
    return Markup(html.escape(visible(text, limit)))


@functools.lru_cache(typed=True)
def _attribute(name: str, value: Hashable) -> str:
    name = name.rstrip("_").replace("_", "-")
    return f' {name}="{escaped(str(value))}"'


def _escape(match: re.Match[str]) -> str:
    return character_escape(ord(match[0]))
