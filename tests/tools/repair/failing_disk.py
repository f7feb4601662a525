# SPDX-License-Identifier: Apache-2.0
"""The local file system, of which one operation that changes something fails."""

from collections.abc import Callable
from typing import Any, Final

from raftlog.storage.local_file_system import LocalFileSystem

_CHANGES: Final = frozenset({"make_directory", "rename", "remove", "sync_directory", "set_read_only"})
_FILE_CHANGES: Final = frozenset({"append", "write_at", "truncate", "sync"})


class FailingDisk:
    """A file system over the local one.

    Args:
        at: number of the operation that fails, from 0 on.
        failure: makes the error, of the path and the operation.

    Attributes:
        count: how many operations there were.
    """

    def __init__(self, at: int, failure: Callable[[str, str], BaseException]) -> None:
        self.count = 0
        self._at, self._failure = at, failure
        self._below = LocalFileSystem()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._below, name)
        return self._watched(found, name) if name in _CHANGES else found

    def open(self, path: str, *, create: bool = False) -> "FailingFile":
        """Open a file; making one is a change."""
        if create:
            self.strike(path, "open")
        return FailingFile(self._below.open(path, create=create), self)

    def open_for_reads(self, path: str) -> "FailingFile":
        """Open a file for reads."""
        return FailingFile(self._below.open_for_reads(path), self)

    def strike(self, path: str, operation: str) -> None:
        """Count an operation, and fail if it is its turn."""
        number, self.count = self.count, self.count + 1
        if number == self._at:
            raise self._failure(path, operation)

    def _watched(self, call: Callable[..., Any], name: str) -> Callable[..., Any]:
        def watched(path: str, *arguments: str) -> Any:
            self.strike(path, name)
            return call(path, *arguments)

        return watched


class FailingFile:
    """An open file of such a disk."""

    def __init__(self, below: Any, disk: FailingDisk) -> None:
        self._below, self._disk = below, disk

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._below, name)
        if name not in _FILE_CHANGES:
            return found

        def watched(*arguments: Any) -> Any:
            self._disk.strike(self._below.path, name)
            return found(*arguments)

        return watched
