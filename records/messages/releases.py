# SPDX-License-Identifier: Apache-2.0
"""Kafka's release lines: the one table of what raftlog knows of each. A new release is a row here.

Schemas name the release that a message or a field came with (``since 4.1``), ``dump-log --dialect`` takes the releases
whose tool it was held against, and ``log init`` those whose choice of features it makes.
"""

from typing import Final

import attrs


@attrs.frozen
class Release:
    """A release line, such as 4.3. Releases are ordered by their numbers: 4.10 comes after 4.9.

    Attributes:
        numbers: major and minor.
        metadata_versions: names of the levels of ``metadata.version`` that came with it, oldest first.
        tells_messages: whether the schemas tell its messages from those of the release before.
        has_dump_tool: whether ``dump-log`` was held against its kafka-dump-log, and ``log init`` against its
            kafka-storage.
    """

    numbers: tuple[int, int]
    metadata_versions: tuple[str, ...] = attrs.field(eq=False)
    tells_messages: bool = attrs.field(default=True, eq=False)
    has_dump_tool: bool = attrs.field(default=True, eq=False)

    @property
    def name(self) -> str:
        """Its numbers with a dot, as in ``4.3``."""
        return f"{self.numbers[0]}.{self.numbers[1]}"

    def __str__(self) -> str:
        return self.name

    def __lt__(self, other: "Release") -> bool:
        return self.numbers < other.numbers

    def __le__(self, other: "Release") -> bool:
        return self.numbers <= other.numbers


def _release(
    name: str, increments: int, *, first: int = 0, is_old: bool = False, has_dump_tool: bool = True
) -> Release:
    """Make a row: a release with so many increments of ``metadata.version``, such as 4.3-IV0, from the first on."""
    major, minor = map(int, name.split("."))
    versions = tuple(f"{name}-IV{number}" for number in range(first, first + increments))
    return Release((major, minor), versions, not is_old, has_dump_tool and not is_old)


_FIRST_LEVEL: Final = 7
"""Of ``metadata.version``: 3.3-IV3 is the first that a controller's snapshot may have."""

RELEASES: Final = (
    _release("3.3", 1, first=3, is_old=True),
    _release("3.4", 1, is_old=True),
    _release("3.5", 3, is_old=True),
    _release("3.6", 3, is_old=True),
    _release("3.7", 5, is_old=True),
    _release("3.8", 1, is_old=True),
    _release("3.9", 1),
    _release("4.0", 4),
    _release("4.1", 2),
    _release("4.2", 2),
    _release("4.3", 1),
    _release("4.4", 3, has_dump_tool=False),
)
"""Every release that raftlog knows, oldest first."""

METADATA_VERSIONS: Final = {
    name: level
    for level, name in enumerate((name for each in RELEASES for name in each.metadata_versions), start=_FIRST_LEVEL)
}
"""The levels of ``metadata.version`` by name, oldest first; a release starts with the last one that has its name."""

LEVELS: Final = tuple(each.name for each in RELEASES if each.tells_messages)
"""The releases whose readers of messages are told apart, by name, oldest first."""

DIALECTS: Final = {each.name: each for each in RELEASES if each.has_dump_tool}
"""The releases whose tools raftlog follows, by name, oldest first."""
NEWEST_DIALECT: Final = max(DIALECTS.values(), key=lambda each: each.numbers)
"""What is followed unless another one is asked for."""
