# SPDX-License-Identifier: Apache-2.0
"""The protocol of a file system: everything that writes a log directory goes through it.

``raftlog.storage.local_file_system`` is the real one. ``raftlog.testing.file_system.memory_file_system`` knows which
writes are not durable yet, and can be told to crash and to fail. Paths are text, with ``/`` between their parts.

The protocol defines when a change is durable:

- bytes, and a file's length, once ``OpenFile.sync`` has returned;
- a created, renamed or removed name, once ``sync_directory`` of its directory has returned.

Before that, a crash may keep any of these changes and lose any other. After a failed sync, what is on disk is unknown,
and a second sync would wrongly succeed. So a failed sync is never repeated (fsyncgate).
"""

from collections.abc import Sequence
from typing import Any, Protocol, cast

from raftlog.errors import CorruptFileError, MissingFileError, OutOfSpaceError, StorageError


class OpenFile(Protocol):
    """A file that is open for reads, and for writes unless it was opened for reads only; a ``ByteSource`` too."""

    @property
    def path(self) -> str:
        """The path that it was opened by."""
        ...

    def append(self, data: bytes | memoryview) -> None:
        """Write all of the bytes at the end.

        Raises:
            OutOfSpaceError: the disk is full.
            StorageError: the write failed otherwise. In both cases some of the bytes may have been written: ``size``
                tells how many, and the caller must truncate them.
        """
        ...

    def write_at(self, position: int, data: bytes | memoryview) -> None:
        """Write all of the bytes at a position, overwriting existing ones.

        Raises:
            OutOfSpaceError, StorageError: as for ``append``.
        """
        ...

    def read_at(self, position: int, size: int) -> memoryview:
        """Return up to ``size`` bytes from a position: fewer only if the file ends before.

        Raises:
            StorageError: the read failed.
        """
        ...

    def size(self) -> int:
        """Return the file's length in bytes."""
        ...

    def truncate(self, size_bytes: int) -> None:
        """Cut the file to a length that is not above its own.

        Raises:
            StorageError: the length may or may not have changed.
        """
        ...

    def reserve(self, size_bytes: int) -> None:
        """Preallocate space for the file to grow to a length; a length not above the file's own releases that space.

        Neither the file's length nor what is read changes. Later syncs are cheaper, because the blocks are allocated
        already. Best effort: nothing happens if the file system does not support this, or has no space.
        """
        ...

    def sync(self) -> None:
        """Make the bytes and the length durable (fdatasync).

        Raises:
            StorageError: what is on disk is unknown. Do not retry: a second sync may succeed although data is lost.
        """
        ...

    def drop_cache(self, position: int) -> bool:
        """Drop the page cache from a position on, if possible, so that later reads come from the disk.

        After a failed sync, the page cache may hold bytes as if they were on disk. The file is synced first, because
        only clean pages can be dropped.

        Args:
            position: byte position, inclusive; some pages before it may be dropped too.

        Returns:
            Whether the cache was dropped. If not, bytes that are read may be in memory only, even if a sync succeeds.

        Raises:
            StorageError: as for ``sync``.
        """
        ...

    def close(self) -> None:
        """Close the file without a sync. Closing twice is harmless."""
        ...


class FileLock(Protocol):
    """A lock on a path that no other process, and no other owner in this one, holds."""

    def close(self) -> None:
        """Release the lock. The file stays."""
        ...


class FileSystem(Protocol):
    """Names and files. Every failure is a ``StorageError`` that names the path and the operation."""

    def open(self, path: str, *, create: bool = False) -> OpenFile:
        """Open a file for reads and writes.

        Args:
            path: of the file.
            create: make an empty file if there is none.

        Raises:
            MissingFileError: there is no such file, and ``create`` is not set.
            StorageError: it cannot be opened.
        """
        ...

    def open_for_reads(self, path: str) -> OpenFile:
        """Open a file for reads only.

        Raises:
            MissingFileError: there is no such file.
            StorageError: it cannot be opened.
        """
        ...

    def exists(self, path: str) -> bool:
        """Return whether a file or directory of this name exists."""
        ...

    def list(self, directory: str) -> Sequence[str]:
        """Return the names in a directory, sorted.

        Raises:
            MissingFileError: there is no such directory.
            StorageError: it cannot be read.
        """
        ...

    def make_directory(self, directory: str) -> None:
        """Make a directory and its parents, if missing. Not durable until the parents are synced."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Rename a file atomically, replacing a file that has the new name.

        Raises:
            MissingFileError: there is no such source.
            StorageError: it failed; either name may hold the file.
        """
        ...

    def remove(self, path: str) -> None:
        """Remove a file's name.

        Raises:
            MissingFileError: there is no such file.
            StorageError: it failed.
        """
        ...

    def sync_directory(self, directory: str) -> None:
        """Make created, renamed and removed names in a directory durable.

        Raises:
            StorageError: as for ``OpenFile.sync``.
        """
        ...

    def failed_directory_syncs(self, directory: str) -> int:
        """Return how many syncs of a directory have failed, for any caller, since this object was made."""
        ...

    def set_read_only(self, path: str) -> None:
        """Remove write permission from a file, so that no mistake changes it."""
        ...

    def lock(self, path: str) -> FileLock:
        """Take the exclusive lock on a file, which is created if missing.

        Raises:
            DirectoryLockedError: another process, or another owner in this one, holds it.
            StorageError: the file cannot be made, or the lock not be taken.
        """
        ...


def parent_directory(path: str) -> str:
    """Return the directory of a path; ``.`` if it has none."""
    directory, slash, _ = path.rpartition("/")
    return (directory or slash) or "."


def join(directory: str, name: str) -> str:
    """Return the path of a name in a directory."""
    return f"{directory.removesuffix('/')}/{name}"


class OwnView:
    """A file system that reports every failed sync of a directory to this user, even if another user asked for it.

    After a failed sync, the next one has nothing to do, and succeeds. So one of several users of a directory could
    treat names as durable that are not. ``own_view`` makes this object.
    """

    def __init__(self, files: FileSystem) -> None:
        self.files = files
        self._failures_seen: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.files, name)

    def begin(self, directory: str) -> None:
        """Ignore earlier failed syncs of a directory: no name in it was changed through this view yet."""
        self._failures_seen[directory] = self.files.failed_directory_syncs(directory)

    def sync_directory(self, directory: str) -> None:
        """Make created, renamed and removed names in a directory durable.

        Raises:
            StorageError: as for ``OpenFile.sync``; or another user's sync of it has failed since the last one here.
        """
        seen = self._failures_seen.get(directory, 0)
        try:
            self.files.sync_directory(directory)
        finally:
            failures = self._failures_seen[directory] = self.files.failed_directory_syncs(directory)
        if failures != seen:
            raise StorageError(directory, "sync directory", "a sync that another user asked for has failed")


def own_view(file_system: FileSystem, directory: str) -> FileSystem:
    """Return a view of a file system for one of several users that change names in a directory."""
    view = OwnView(file_system.files if isinstance(file_system, OwnView) else file_system)
    view.begin(directory)
    return cast("FileSystem", view)


def make_durable_directory(file_system: FileSystem, path: str) -> None:
    """Make a directory and its parents, if missing, and make each durable in its parent.

    Raises:
        StorageError: the disk failed. Some of them may exist.
    """
    places = [path]
    while not file_system.exists(places[-1]):
        places.append(parent_directory(places[-1]))
    for place in reversed(places):
        file_system.make_directory(place)
        # Even if it existed: the process that made it may have crashed before syncing.
        file_system.sync_directory(parent_directory(place))


def read_file(file_system: FileSystem, path: str, max_size_bytes: int) -> bytes:
    """Return all of a small file.

    Raises:
        MissingFileError: there is no such file.
        CorruptFileError: it is larger than any file of its kind can be.
        StorageError: it cannot be read.
    """
    file = file_system.open_for_reads(path)
    try:
        size = file.size()
        if size > max_size_bytes:
            raise CorruptFileError(f"{size} bytes, above the maximum of {max_size_bytes}", path=path)
        return bytes(file.read_at(0, size))
    finally:
        file.close()


def replace_file(file_system: FileSystem, path: str, data: bytes) -> None:
    """Write a file atomically: after a crash, either the old file or the new one is there, complete.

    The bytes are written to ``<path>.tmp`` and synced; the file is renamed, and the directory synced. All is durable on
    return.

    Raises:
        OutOfSpaceError: the old file is there.
        StorageError: the old or the new file is there; what is durable is unknown.

    Source: Utils#atomicMoveWithFallback, CheckpointFile#write.
    """
    temporary = path + ".tmp"
    remove_if_there(file_system, temporary)
    try:
        file = file_system.open(temporary, create=True)
        try:
            file.append(data)
            file.sync()
        finally:
            file.close()
        file_system.rename(temporary, path)
    except StorageError:
        _remove_quietly(file_system, temporary)
        raise
    try:
        file_system.sync_directory(parent_directory(path))
    except OutOfSpaceError as error:
        # The new file is there already, so this must not look as if nothing had changed.
        raise StorageError(error.path, error.operation, error.cause) from error


def remove_if_there(file_system: FileSystem, path: str) -> bool:
    """Remove a file if it exists; return whether it did.

    Raises:
        StorageError: it exists and cannot be removed.
    """
    try:
        file_system.remove(path)
    except MissingFileError:
        return False
    return True


def _remove_quietly(file_system: FileSystem, path: str) -> None:
    try:
        file_system.remove(path)
    except StorageError:
        return  # The error that is being raised is more useful.
