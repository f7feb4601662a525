# SPDX-License-Identifier: Apache-2.0
"""A file system that reads from another one, and keeps all writes in memory.

It lets a tool open a log as its owner would, see what that finds and does, and change nothing. It takes no lock, so
writes of another process may become visible meanwhile.
"""

from collections.abc import Sequence

from raftlog.errors import MissingFileError, StorageError
from raftlog.file_system import FileLock, FileSystem, OpenFile, parent_directory


class _Content:
    """The content of a file: the start of a stored file, if any, followed by bytes in memory."""

    def __init__(self, stored: OpenFile | None) -> None:
        self._stored = stored
        self._kept_size = 0 if stored is None else stored.size()
        self._tail = bytearray()

    @property
    def size_bytes(self) -> int:
        return self._kept_size + len(self._tail)

    def read_at(self, position: int, size: int) -> memoryview:
        end = min(position + size, self.size_bytes)
        kept = self._read_kept(position, min(end, self._kept_size))
        if end <= self._kept_size:
            return kept
        start = max(0, position - self._kept_size)
        tail = bytes(memoryview(self._tail)[start : max(start, end - self._kept_size)])
        return memoryview(bytes(kept) + tail)

    def _read_kept(self, position: int, end: int) -> memoryview:
        if self._stored is None or position >= end:
            return memoryview(b"")
        return self._stored.read_at(position, end - position)

    def write_at(self, position: int, data: bytes | memoryview) -> None:
        if not data:
            return
        if position < self._kept_size:  # The overwritten bytes, and all after them, move to memory.
            self._tail[:0] = self._read_kept(position, self._kept_size)
            self._kept_size = position
        start = position - self._kept_size
        self._tail.extend(bytes(max(0, start - len(self._tail))))
        self._tail[start : start + len(data)] = data

    def truncate(self, size_bytes: int) -> None:
        self._kept_size = min(self._kept_size, size_bytes)
        del self._tail[size_bytes - self._kept_size :]

    def close(self) -> None:
        if self._stored is not None:
            self._stored.close()


class OverlayFile:
    """An open file. It is a ``raftlog.file_system.OpenFile``; ``close`` does nothing, as the overlay closes it."""

    def __init__(self, path: str, content: _Content) -> None:
        self._path = path
        self._content = content

    @property
    def path(self) -> str:
        """The path that it was opened by."""
        return self._path

    def append(self, data: bytes | memoryview) -> None:
        """Add bytes at the end, in memory."""
        self._content.write_at(self._content.size_bytes, data)

    def write_at(self, position: int, data: bytes | memoryview) -> None:
        """Write bytes at a position, in memory."""
        self._content.write_at(position, data)

    def read_at(self, position: int, size: int) -> memoryview:
        """Return up to ``size`` bytes from a position, fewer only at the end of the file.

        Raises:
            StorageError: the underlying file could not be read.
        """
        return self._content.read_at(position, size)

    def size(self) -> int:
        """Return the file's length in bytes."""
        return self._content.size_bytes

    def truncate(self, size_bytes: int) -> None:
        """Cut the file to a length, in memory.

        Raises:
            StorageError: the length is above the file's, or negative.
        """
        if not 0 <= size_bytes <= self._content.size_bytes:
            raise StorageError(self._path, f"truncate to {size_bytes} bytes", f"it has {self._content.size_bytes}")
        self._content.truncate(size_bytes)

    def drop_cache(self, position: int) -> bool:
        """Return False: there are no written pages to drop."""
        return False

    def reserve(self, size_bytes: int) -> None:
        """Do nothing: there is room."""

    def sync(self) -> None:
        """Do nothing: nothing here is ever durable."""

    def close(self) -> None:
        """Do nothing: the overlay closes the files that it has opened."""


class _NoLock:
    """Replaces the lock, which a reader does not need."""

    def close(self) -> None:
        """Do nothing."""


class OverlayFileSystem:
    """A ``raftlog.file_system.FileSystem`` over another one, which it only reads.

    Args:
        below: the underlying file system.
    """

    def __init__(self, below: FileSystem) -> None:
        self._below = below
        self._contents: dict[str, _Content | None] = {}
        """Files that were opened or renamed here; None if removed."""
        self._directories: set[str] = set()
        self._opened: list[_Content] = []

    def open(self, path: str, *, create: bool = False) -> OverlayFile:
        """Open a file; what is written to it stays in memory.

        Raises:
            MissingFileError: there is no such file, and ``create`` is not set.
            StorageError: it cannot be opened.
        """
        content = self._find(path)
        if content is None:
            if not create:
                raise MissingFileError(path, "open", "No such file or directory")
            content = self._contents[path] = _Content(None)
        return OverlayFile(path, content)

    def open_for_reads(self, path: str) -> OverlayFile:
        """Open a file for reads.

        Raises:
            MissingFileError: there is no such file.
            StorageError: it cannot be opened.
        """
        return self.open(path)

    def _find(self, path: str) -> _Content | None:
        if path not in self._contents:
            try:
                content = _Content(self._below.open_for_reads(path))
            except MissingFileError:
                return None
            self._opened.append(content)
            self._contents[path] = content
        return self._contents[path]

    def exists(self, path: str) -> bool:
        """Return whether a file or directory of this name exists."""
        if path in self._contents:
            return self._contents[path] is not None
        return path in self._directories or self._below.exists(path)

    def list(self, directory: str) -> Sequence[str]:
        """Return the names in a directory, sorted.

        Raises:
            MissingFileError: there is no such directory.
            StorageError: it cannot be read.
        """
        is_only_here = directory in self._directories and not self._below.exists(directory)
        names = set() if is_only_here else set(self._below.list(directory))
        for path, content in self._contents.items():
            if parent_directory(path) == directory.rstrip("/"):
                name = path.rpartition("/")[2]
                names = names - {name} if content is None else names | {name}
        return sorted(names)

    def make_directory(self, directory: str) -> None:
        """Make a directory, in memory, unless it exists."""
        self._directories.add(directory)

    def rename(self, source: str, target: str) -> None:
        """Rename a file, in memory.

        Raises:
            MissingFileError: there is no such source.
        """
        content = self._find(source)
        if content is None:
            raise MissingFileError(source, f"rename to {target}", "No such file or directory")
        self._contents[source] = None
        self._contents[target] = content

    def remove(self, path: str) -> None:
        """Remove a file's name, in memory.

        Raises:
            MissingFileError: there is no such file.
        """
        if not self.exists(path):
            raise MissingFileError(path, "remove", "No such file or directory")
        self._contents[path] = None

    def sync_directory(self, directory: str) -> None:
        """Do nothing: nothing here is ever durable."""

    def failed_directory_syncs(self, directory: str) -> int:
        """Return 0, since no sync fails."""
        return 0

    def set_read_only(self, path: str) -> None:
        """Do nothing: files in the overlay stay writable."""

    def lock(self, path: str) -> FileLock:
        """Take no lock, and make no file."""
        return _NoLock()

    def close(self) -> None:
        """Close the underlying files."""
        for content in self._opened:
            content.close()
