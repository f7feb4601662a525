# SPDX-License-Identifier: Apache-2.0
"""Kafka's release lines, in one table. To add a release, add a row.

Schemas name the release that introduced a message or a field (``since 4.1``). ``dump-log --dialect`` accepts the
releases whose tool its output was compared with, and ``log init`` those whose default features it writes.
"""

from typing import Final, NamedTuple


class Release(NamedTuple):
    """A release line, such as 4.3. Releases are ordered by their numbers: 4.10 comes after 4.9.

    A named tuple, because the class of a command line's option is made each time that the command starts.

    Attributes:
        numbers: major and minor.
        metadata_versions: names of the levels of ``metadata.version`` that it introduced, oldest first.
        has_own_messages: whether the schemas distinguish its messages from those of the release before.
        has_dump_tool: whether ``dump-log`` was compared with its kafka-dump-log, and ``log init`` with its
            kafka-storage.
    """

    numbers: tuple[int, int]
    metadata_versions: tuple[str, ...]
    has_own_messages: bool = True
    has_dump_tool: bool = True

    @property
    def name(self) -> str:
        """Its numbers with a dot, as in ``4.3``."""
        return f"{self.numbers[0]}.{self.numbers[1]}"

    def __str__(self) -> str:
        return self.name


def _release(
    name: str, increments: int, *, first: int = 0, is_old: bool = False, has_dump_tool: bool = True
) -> Release:
    """Make a row: a release with ``increments`` levels of ``metadata.version``, such as 4.3-IV0, from ``first`` on."""
    major, minor = map(int, name.split("."))
    versions = tuple(f"{name}-IV{number}" for number in range(first, first + increments))
    return Release((major, minor), versions, not is_old, has_dump_tool and not is_old)


_FIRST_LEVEL: Final = 7
"""The level of 3.3-IV3, the lowest ``metadata.version`` that a controller's snapshot may have."""

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

LEVELS: Final = tuple(each.name for each in RELEASES if each.has_own_messages)
"""The releases whose readers of messages differ from those of the release before, by name, oldest first."""

DIALECTS: Final = {each.name: each for each in RELEASES if each.has_dump_tool}
"""The releases whose tools raftlog follows, by name, oldest first."""
NEWEST_DIALECT: Final = max(DIALECTS.values())
"""The default release to follow."""
