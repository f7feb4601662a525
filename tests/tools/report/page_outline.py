# SPDX-License-Identifier: Apache-2.0
"""Parses a report into a tree of elements, so that tests can ask for its text and tables."""

from collections.abc import Iterator
from html.parser import HTMLParser

import attrs

VOID = {"meta", "br"}


@attrs.define
class Node:
    """An element."""

    name: str
    attributes: dict[str, str | None]
    content: list["Node | str"] = attrs.field(factory=list)

    @property
    def children(self) -> list["Node"]:
        """The elements directly inside."""
        return [each for each in self.content if isinstance(each, Node)]

    def every(self) -> Iterator["Node"]:
        """All elements inside, in order."""
        waiting = self.children[::-1]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += node.children[::-1]

    def all(self, name: str) -> list["Node"]:
        """All elements of a name inside."""
        return [node for node in self.every() if node.name == name]

    @property
    def words(self) -> str:
        """All text inside."""
        return "".join(each if isinstance(each, str) else each.words for each in self.content)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.stack = [Node("", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, dict(attrs))
        self.stack[-1].content.append(node)
        if tag not in VOID:
            self.stack.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop().name == tag

    def handle_data(self, data: str) -> None:
        self.stack[-1].content.append(data)


def outline(page: str) -> Node:
    """Parse a page; each element must be closed."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    assert len(reader.stack) == 1
    return reader.stack[0]
