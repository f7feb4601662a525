# SPDX-License-Identifier: Apache-2.0
"""The names of ``MemoryFileSystem``: the current ones, and which of them are durable."""

from collections.abc import Iterable, Mapping

from raftlog.file_system import parent_directory
from raftlog.testing.file_system.crash_states import DIRECTORY, Fate, NameChange, rename
from raftlog.testing.file_system.pending_changes import Pending


class Names:
    """Names of files and directories.

    Attributes:
        current: the number of the file, or ``DIRECTORY``, by name.
        durable: the names that are certainly durable, in the same form; replaced rather than modified.
        pending: the changes since, in order.
    """

    def __init__(self, durable: Mapping[str, int]) -> None:
        self.current: dict[str, int] = dict(durable)
        self.durable: Mapping[str, int] = dict(durable)
        self.pending: list[Pending[NameChange]] = []

    def change(self, names: tuple[tuple[str, int | None], ...], files: Iterable[int | None] = ()) -> None:
        """Change names in one step, without making it durable.

        Args:
            names: as in ``NameChange``.
            files: numbers of the files concerned; 0 and None are ignored.
        """
        change = NameChange(names, frozenset(number for number in files if number))
        rename(self.current, change)
        self.pending.append(Pending(change))

    def open_changes(self, directory: str) -> list[Pending[NameChange]]:
        """Return the changes that a sync of a directory would cover if it began now."""
        return [
            each
            for each in self.pending
            if each.fate is Fate.OPEN and any(parent_directory(name) == directory for name, _ in each.change.names)
        ]

    def tidy(self) -> set[int]:
        """Forget changes whose outcome is known; return the numbers of all files that a name may still refer to."""
        for index in range(len(self.pending) - 1, 0, -1):
            if self.pending[index].fate is Fate.SETTLED:
                self._settle_what_comes_along(index)
        names = dict(self.durable)
        left: list[Pending[NameChange]] = []
        for each in self.pending:
            if each.fate is Fate.SETTLED and not any(each.change.conflicts(before.change) for before in left):
                rename(names, each.change)
            else:
                left.append(each)
        self.durable, self.pending = names, left
        live = {*names.values(), *self.current.values()}.union(*(each.change.files for each in left))
        return live - {DIRECTORY}

    def _settle_what_comes_along(self, index: int) -> None:
        """Settle the earlier changes that a settled change depends on."""
        change = self.pending[index].change
        for before in self.pending[:index]:
            if before.fate is not Fate.SETTLED and before.change.conflicts(change):
                before.fate = Fate.SETTLED
