# SPDX-License-Identifier: Apache-2.0
"""A file system in memory whose disk does not give some ranges of bytes back."""

from typing import Any

from raftlog.errors import StorageError
from raftlog.testing.file_system.memory_file import MemoryFile
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem


class UnreadableFiles(MemoryFileSystem):
    """A copy of a file system; all of it is durable.

    Args:
        files: the files.
        unreadable: for each path, the byte positions at which a read fails. They belong to the file under any name, and
            not to another file that gets the name.
    """

    def __init__(self, files: MemoryFileSystem, unreadable: dict[str, range]) -> None:
        settled = MemoryFileSystem.settled(files)
        vars(self).update(vars(settled))
        self._bad = {self._names.current[path]: positions for path, positions in unreadable.items()}

    def unreadable(self, path: str, positions: range) -> None:
        """Let other bytes of a file be bad, also for who has it open already."""
        self._bad[self._names.current[path]] = positions

    def settled(self) -> "UnreadableFiles":
        """Return a copy with the same bad ranges."""
        bad = {path: self._bad[number] for path, number in self._names.current.items() if number in self._bad}
        return UnreadableFiles(self, bad)

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        """Open a file for reads and writes."""
        return self._failing(super().open(path, create=create))

    def open_for_reads(self, path: str) -> MemoryFile:
        """Open a file for reads alone."""
        return self._failing(super().open_for_reads(path))

    def _failing(self, file: MemoryFile) -> MemoryFile:
        read_at: Any = file.read_at

        def read_or_fail(position: int, size: int) -> memoryview:
            bad = self._bad.get(file._inode.number, range(0))
            if max(position, bad.start) < min(position + size, bad.stop):
                raise StorageError(file.path, f"read at position {position}", "input/output error")
            found: memoryview = read_at(position, size)
            return found

        file.read_at = read_or_fail  # type: ignore[method-assign]
        return file
