# SPDX-License-Identifier: Apache-2.0
"""HTML and SVG as text. What is not made here is escaped: a file's name is never markup.

Characters that a reader cannot see, or that turn around what stands beside them, are shown as escapes.
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
"""Most texts are no more than that, and are shown as they are."""
_VOID: Final = frozenset({"meta", "br"})


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def visible(text: str, limit: int = 600) -> str:
    """Return a text in which everything can be seen, and which is not too long; what it leaves out is counted."""
    shown = _UNSEEN.sub(_escape, text[:limit])
    return shown if len(text) <= limit else f"{shown}… ({len(text) - limit} more characters)"


def element(name: str, /, *children: str | Markup | None, **attributes: Hashable) -> Markup:
    """Return an element.

    Args:
        name: of the element.
        children: markup, texts to escape, and None for nothing.
        attributes: a trailing underscore is dropped, others become hyphens; what is None is left out.
    """
    start = "".join([name, *(_attribute(key, value) for key, value in attributes.items() if value is not None)])
    if name in _VOID:
        return Markup(f"<{start}>")
    return Markup(f"<{start}>{joined(children)}</{name}>")


def joined(parts: Iterable[str | Markup | None]) -> Markup:
    """Return parts one after the other; those that are no markup are escaped."""
    return Markup("".join(part if isinstance(part, Markup) else escaped(part) for part in parts if part is not None))


def escaped(text: str, limit: int = 600) -> Markup:
    """Return a text as markup that shows it, cut as ``visible`` does."""
    if len(text) <= limit and _PLAIN.fullmatch(text):
        return Markup(text)
    return Markup(html.escape(visible(text, limit)))


@functools.lru_cache(typed=True)
def _attribute(name: str, value: Hashable) -> str:
    name = name.rstrip("_").replace("_", "-")
    return f' {name}="{escaped(str(value))}"'


def _escape(match: re.Match[str]) -> str:
    return character_escape(ord(match[0]))
