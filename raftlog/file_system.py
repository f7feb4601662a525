# SPDX-License-Identifier: Apache-2.0
"""What raftlog asks of a file system: everything that writes a log directory goes through this protocol.

``raftlog.storage.local_file_system`` is the real one. ``raftlog.testing.file_system.memory_file_system`` knows which
writes are not durable yet, and crashes and fails as it is told. Paths are text, with ``/`` between their parts.

What is durable, and when, is the point of the protocol:

- bytes, and a file's length, once ``OpenFile.sync`` has returned;
- a name that appears, changes or goes, once ``sync_directory`` of its directory has returned.

Before that a crash may keep any of them and lose any other. A sync that fails leaves nobody knowing what is on the
disk, and a second one would wrongly succeed: it is never repeated (fsyncgate).
"""

from collections.abc import Sequence
from typing import Any, Protocol, cast

from raftlog.errors import CorruptFileError, MissingFileError, OutOfSpaceError, StorageError


class OpenFile(Protocol):
    """A file that is open for reads, and for writes unless it was opened for reads alone; a ``ByteSource`` too."""

    @property
    def path(self) -> str:
        """The path that it was opened by."""
        ...

    def append(self, data: bytes | memoryview) -> None:
        """Write all of the bytes at the end.

        Raises:
            OutOfSpaceError: there is no room.
            StorageError: the write failed otherwise. In both cases some of the bytes may be there: ``size`` says how
                many, and it is for the caller to truncate them.
        """
        ...

    def write_at(self, position: int, data: bytes | memoryview) -> None:
        """Write all of the bytes at a position, over what is there.

        Raises:
            OutOfSpaceError, StorageError: as for ``append``.
        """
        ...

    def read_at(self, position: int, size: int) -> memoryview:
        """Return up to ``size`` bytes from a position: fewer only where the file ends.

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
        """Have the disk keep room for the file to grow to a length, or none, where it has that length or more.

        The length itself stays, and so does what is read. A sync has less to write down then: not where the bytes are,
        only that they are there. Where a file system cannot do that, or has no room, nothing happens.
        """
        ...

    def sync(self) -> None:
        """Make the bytes and the length durable (fdatasync).

        Raises:
            StorageError: what is on the disk is not known; do not call it again, and do not believe what it says.
        """
        ...

    def drop_cache(self, position: int) -> bool:
        """Have what is read from a position on come from the disk, and not from memory, where that can be had.

        After a sync that failed, memory may hold bytes as if they were on the disk. So the file is synced first, and
        what memory holds of it then is let go of.

        Args:
            position: byte position, inclusive; of what is before it, some may be let go of too.

        Returns:
            Whether that was done. Otherwise what is read may be in memory alone, though a sync succeeds.

        Raises:
            StorageError: as for ``sync``.
        """
        ...

    def close(self) -> None:
        """Let go of the file, without a sync. Closing twice is harmless."""
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
            create: make an empty file where there is none.

        Raises:
            MissingFileError: there is no such file, and ``create`` is not set.
            StorageError: it cannot be opened.
        """
        ...

    def open_for_reads(self, path: str) -> OpenFile:
        """Open a file for reads alone.

        Raises:
            MissingFileError: there is no such file.
            StorageError: it cannot be opened.
        """
        ...

    def exists(self, path: str) -> bool:
        """Say whether a file or directory of this name is there."""
        ...

    def list(self, directory: str) -> Sequence[str]:
        """Return the names in a directory, sorted.

        Raises:
            MissingFileError: there is no such directory.
            StorageError: it cannot be read.
        """
        ...

    def make_directory(self, directory: str) -> None:
        """Make a directory, and those above it, where there is none. Not durable until those above are synced."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Give a file another name in one step, in place of a file that has it.

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
        """Make names that appeared, changed or went in a directory durable.

        Raises:
            StorageError: as for ``OpenFile.sync``.
        """
        ...

    def failed_directory_syncs(self, directory: str) -> int:
        """Return how many syncs of a directory have failed, whoever asked for them, since this object was made."""
        ...

    def set_read_only(self, path: str) -> None:
        """Take the right to write from a file, so that no slip changes it."""
        ...

    def lock(self, path: str) -> FileLock:
        """Take the exclusive lock on a file, which is made where it is missing.

        Raises:
            DirectoryLockedError: another holds it.
            StorageError: it cannot be made.
        """
        ...


def parent_directory(path: str) -> str:
    """Return the directory of a path: ``.`` where it has none."""
    directory, slash, _ = path.rpartition("/")
    return (directory or slash) or "."


def join(directory: str, name: str) -> str:
    """Return the path of a name in a directory."""
    return f"{directory.removesuffix('/')}/{name}"


class OwnView:
    """A file system as one of its users sees it, who learns of each failed sync of a directory, also of another's.

    After a sync that failed, the next one has nothing to do, and succeeds: whoever shares a directory with others would
    take names for durable that are not. ``own_view`` makes it.
    """

    def __init__(self, files: FileSystem) -> None:
        self.files = files
        self._failures_seen: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.files, name)

    def begin(self, directory: str) -> None:
        """Take what failed in a directory before for known: of it nobody has changed a name through this view yet."""
        self._failures_seen[directory] = self.files.failed_directory_syncs(directory)

    def sync_directory(self, directory: str) -> None:
        """Make names that appeared, changed or went in a directory durable.

        Raises:
            StorageError: as for ``OpenFile.sync``; or a sync of that directory has failed since the last one here.
        """
        seen = self._failures_seen.get(directory, 0)
        try:
            self.files.sync_directory(directory)
        finally:
            failures = self._failures_seen[directory] = self.files.failed_directory_syncs(directory)
        if failures != seen:
            raise StorageError(directory, "sync directory", "a sync of it has failed that others have asked for")


def own_view(file_system: FileSystem, directory: str) -> FileSystem:
    """Return a view of a file system for one who changes names in a directory, beside others."""
    view = OwnView(file_system.files if isinstance(file_system, OwnView) else file_system)
    view.begin(directory)
    return cast("FileSystem", view)


def make_durable_directory(file_system: FileSystem, path: str) -> None:
    """Make a directory and those above it, where they are missing, each durable in the one above.

    Raises:
        StorageError: the disk failed. Some of them may be there.
    """
    places = [path]
    while not file_system.exists(places[-1]):
        places.append(parent_directory(places[-1]))
    for place in reversed(places):
        file_system.make_directory(place)
        # Also where it was there: whoever made it may not have come to this.
        file_system.sync_directory(parent_directory(place))


def read_file(file_system: FileSystem, path: str, max_size_bytes: int) -> bytes:
    """Return all of a small file.

    Raises:
        MissingFileError: there is no such file.
        CorruptFileError: it is larger than any file of its kind is.
        StorageError: it cannot be read.
    """
    file = file_system.open_for_reads(path)
    try:
        size = file.size()
        if size > max_size_bytes:
            raise CorruptFileError(f"{size} bytes, where {max_size_bytes} are the most", path=path)
        return bytes(file.read_at(0, size))
    finally:
        file.close()


def replace_file(file_system: FileSystem, path: str, data: bytes) -> None:
    """Put a file of these bytes in place of one of the name, so that a crash leaves the old one or the new one whole.

    The bytes go to ``<path>.tmp``, are synced, and take the name; the directory is synced. All is durable on return.

    Raises:
        OutOfSpaceError: the old file is there.
        StorageError: the old file may be there, or the new one; what is durable is not known.

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
        # The new file is there already, for want of room or not.
        raise StorageError(error.path, error.operation, error.cause) from error


def remove_if_there(file_system: FileSystem, path: str) -> bool:
    """Remove a file, and say whether it was there.

    Raises:
        StorageError: it is there and cannot be removed.
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
        return  # the error that is under way says more
