# SPDX-License-Identifier: Apache-2.0
"""The file system of this machine, behind the protocol of ``raftlog.file_system``.

Files are read with ``pread`` and written with ``pwrite``, so that no handle has a position of its own. Python itself
retries system calls that a signal interrupts.
"""

import contextlib
import errno
import fcntl
import functools
import mmap
import os
import stat
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, cast

from raftlog.errors import (
    DirectoryLockedError,
    MissingFileError,
    OutOfSpaceError,
    StorageError,
    TooManyOpenFilesError,
)
from raftlog.process_ownership import Owned
from raftlog.storage.directory_descriptors import DirectoryDescriptors

_NO_ROOM: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_DESCRIPTOR: Final = {errno.EMFILE, errno.ENFILE}
_REFUSALS: Final = (OSError, ValueError, OverflowError)
"""Python raises the last two, for a zero byte in a path and for a number that cannot be a file position."""
_CLOSED: Final = -1
_FULL_SYNC: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)
"""The call that makes data durable on macOS; other systems do not have it."""
_DROP_CACHE: Final[int | None] = getattr(os, "POSIX_FADV_DONTNEED", None)
"""Linux drops clean pages at once on this advice. After a failed sync, all pages are clean."""
_LARGEST_CACHED_PIECE: Final = mmap.PAGESIZE << 11
"""Linux caches a file in pieces of up to this many bytes (MAX_XAS_ORDER), and drops only pieces that lie wholly within
the range. So a range is aligned down to this size."""
_KEEP_LENGTH: Final = 1
"""Linux's FALLOC_FL_KEEP_SIZE, which Python does not define."""
_NEW_FILE_MODE: Final = 0o666
"""Before the process's umask is applied."""
_OWNER_MAY_READ: Final = stat.S_IRUSR


class _Reported:
    """Turns an operating system error in a block into a ``StorageError`` that names the path and the operation."""

    __slots__ = ("_operation", "_path")

    def __init__(self, path: str, operation: str) -> None:
        self._path = path
        self._operation = operation

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, _REFUSALS) and not isinstance(error, StorageError):
            raise _storage_error(error, self._path, self._operation) from error


def _storage_error(error: Exception, path: str, operation: str) -> StorageError:
    if not isinstance(error, OSError):
        return StorageError(path, operation, str(error))
    if error.errno in _NO_ROOM:
        kind: type[StorageError] = OutOfSpaceError
    elif error.errno in _NO_DESCRIPTOR:
        kind = TooManyOpenFilesError
    else:
        kind = MissingFileError if error.errno == errno.ENOENT else StorageError
    return kind(path, operation, error.strerror or str(error))


class LocalFile:
    """An open file: a ``raftlog.file_system.OpenFile``. Only one thread may use it at a time."""

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    @property
    def path(self) -> str:
        """The path that it was opened by."""
        return self._path

    def append(self, data: bytes | memoryview) -> None:
        """Write all of the bytes at the end.

        Raises:
            OutOfSpaceError: the disk is full.
            StorageError: the write failed otherwise. In both cases some of the bytes may have been written.
        """
        with _Reported(self._path, "append"):
            self._write(os.fstat(self._descriptor).st_size, data)

    def write_at(self, position: int, data: bytes | memoryview) -> None:
        """Write all of the bytes at a position, overwriting existing ones; a gap before it reads as zeros.

        Raises:
            OutOfSpaceError, StorageError: as for ``append``.
        """
        try:  # Without _Reported, as in ``sync``: appends use both, and should not create an object on success.
            size_bytes = len(data) if type(data) is bytes else memoryview(data).nbytes
            if os.pwrite(self._descriptor, data, position) < size_bytes:
                self._write(position, data)
        except _REFUSALS as error:
            raise _storage_error(error, self._path, f"write at position {position}") from error

    def _write(self, position: int, data: bytes | memoryview) -> None:
        rest = memoryview(data).cast("B")
        while (written := os.pwrite(self._descriptor, rest, position)) < len(rest):
            if written == 0:
                raise OSError(0, "the system wrote nothing")
            position += written
            rest = rest[written:]

    def read_at(self, position: int, size: int) -> memoryview:
        """Return up to ``size`` bytes from a position: fewer only if the file ends before.

        Raises:
            StorageError: the read failed.
        """
        parts = []
        with _Reported(self._path, f"read at position {position}"):
            # Never ask for more than the file has, because ``pread`` allocates what it is asked for.
            size = min(size, max(0, os.fstat(self._descriptor).st_size - position))
            while size > 0 and (part := os.pread(self._descriptor, size, position)):
                parts.append(part)
                position += len(part)
                size -= len(part)
        return memoryview(parts[0] if len(parts) == 1 else b"".join(parts))

    def size(self) -> int:
        """Return the file's length in bytes.

        Raises:
            StorageError: the file is closed.
        """
        with _Reported(self._path, "size"):
            return os.fstat(self._descriptor).st_size

    def truncate(self, size_bytes: int) -> None:
        """Cut the file to a length that is not above its own.

        Raises:
            StorageError: the length is above the file's; or the disk failed, and the length may have changed or not.
        """
        with _Reported(self._path, f"truncate to {size_bytes} bytes"):
            if size_bytes > os.fstat(self._descriptor).st_size:
                raise ValueError("it is shorter")
            os.ftruncate(self._descriptor, size_bytes)

    def reserve(self, size_bytes: int) -> None:
        """Preallocate space for the file to grow to a length; a length not above the file's own releases that space."""
        with contextlib.suppress(*_REFUSALS):
            length, fallocate = os.fstat(self._descriptor).st_size, _fallocate()
            is_enough = size_bytes <= length
            # If there is not enough space, the call may have allocated part of it.
            if is_enough or (fallocate and fallocate(self._descriptor, _KEEP_LENGTH, length, size_bytes - length) != 0):
                os.ftruncate(self._descriptor, length)  # To its own length, which releases the space after it.

    def sync(self) -> None:
        """Make the bytes and the length durable (fdatasync; on macOS F_FULLFSYNC).

        Raises:
            StorageError: what is on disk is unknown. Do not retry: a second sync may succeed although data is lost.
        """
        try:
            if _FULL_SYNC is None:
                os.fdatasync(self._descriptor)
            else:
                fcntl.fcntl(self._descriptor, _FULL_SYNC)
        except _REFUSALS as error:
            raise _storage_error(error, self._path, "sync") from error

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
        if _DROP_CACHE is None:
            return False
        self.sync()
        with _Reported(self._path, "drop cache"):
            start = position - position % _LARGEST_CACHED_PIECE
            os.posix_fadvise(self._descriptor, start, 0, _DROP_CACHE)  # Only clean pages are dropped.
        return True

    def close(self) -> None:
        """Close the file without a sync. Closing twice is harmless."""
        descriptor, self._descriptor = self._descriptor, _CLOSED
        if descriptor != _CLOSED:
            with contextlib.suppress(OSError):  # Nothing can be done about it, and ``close`` makes nothing durable.
                os.close(descriptor)


class LocalFileSystem:
    """The file system of this machine; a ``raftlog.file_system.FileSystem``.

    It keeps descriptors of the directories that it synced most recently, so that a sync needs no new descriptor.
    """

    def __init__(self) -> None:
        self._directories = DirectoryDescriptors()

    def open(self, path: str, *, create: bool = False) -> LocalFile:
        """Open a file for reads and writes.

        Args:
            path: of the file.
            create: make an empty file if there is none.

        Raises:
            MissingFileError: there is no such file, and ``create`` is not set; or no such directory.
            StorageError: it cannot be opened, or is not a regular file.
        """
        return _open(path, os.O_RDWR | (os.O_CREAT if create else 0))

    def open_for_reads(self, path: str) -> LocalFile:
        """Open a file for reads only.

        Raises:
            MissingFileError: there is no such file.
            StorageError: it cannot be opened, or is not a regular file.
        """
        return _open(path, os.O_RDONLY)

    def exists(self, path: str) -> bool:
        """Return whether a file or directory of this name exists.

        Raises:
            StorageError: this cannot be determined: a directory above may not be searched, or the disk failed.
        """
        with _Reported(path, "look up"):
            try:
                Path(path).stat()
            except (FileNotFoundError, NotADirectoryError):
                return False
            return True

    def list(self, directory: str) -> Sequence[str]:
        """Return the names in a directory, sorted.

        Raises:
            MissingFileError: there is no such directory.
            StorageError: it cannot be read.
        """
        with _Reported(directory, "list"):
            return sorted(entry.name for entry in Path(directory).iterdir())

    def make_directory(self, directory: str) -> None:
        """Make a directory and its parents, if missing. Not durable until the parents are synced.

        Raises:
            StorageError: it cannot be made, or a file has its name.
        """
        with _Reported(directory, "make directory"):
            Path(directory).mkdir(parents=True, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        """Rename a file atomically, replacing a file that has the new name.

        Raises:
            MissingFileError: there is no such source, or no directory for the target.
            StorageError: it failed; either name may hold the file.
        """
        with _Reported(source, f"rename to {target}"):
            Path(source).replace(target)

    def remove(self, path: str) -> None:
        """Remove a file's name.

        Raises:
            MissingFileError: there is no such file.
            StorageError: it failed.
        """
        with _Reported(path, "remove"):
            Path(path).unlink()

    def sync_directory(self, directory: str) -> None:
        """Make created, renamed and removed names in a directory durable.

        Raises:
            MissingFileError: there is no such directory.
            StorageError: as for ``LocalFile.sync``.
        """
        with _Reported(directory, "sync directory"):
            self._directories.sync(directory)

    def failed_directory_syncs(self, directory: str) -> int:
        """Return how many syncs of a directory have failed, for any caller, since this object was made."""
        return self._directories.failures(directory)

    def set_read_only(self, path: str) -> None:
        """Make a file readable by its owner only, and not writable, so that no mistake changes it.

        Kafka does the same with its snapshots, which may hold secrets.

        Raises:
            MissingFileError: there is no such file.
            StorageError: it failed.
        """
        with _Reported(path, "set read-only"):
            file = Path(path)
            file.chmod(stat.S_IMODE(file.stat().st_mode) & _OWNER_MAY_READ)

    def lock(self, path: str) -> "LocalFileLock":
        """Take the exclusive lock on a file, which is created if missing.

        It is a POSIX lock, as Java's is, so a running Kafka holds the same one. POSIX locks belong to the process, so a
        list of held locks keeps a second owner in the same process away.

        Raises:
            DirectoryLockedError: another process, or another owner in this one, holds it.
            StorageError: the file cannot be made, or the lock not be taken.

        Source: FileLock#tryLock.
        """
        with _Reported(path, "lock"), _HELD_LOCKS.guard:
            identity = _identity(path)
            # Look it up before opening: closing any descriptor of the file would release this process's lock.
            if any(held.identity == identity for held in _HELD_LOCKS):
                raise DirectoryLockedError(f"{path}: another owner in this process holds the lock")
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _NEW_FILE_MODE)
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError) as error:  # POSIX allows for both
                os.close(descriptor)
                raise DirectoryLockedError(f"{path}: another process holds the lock") from error
            except BaseException:
                os.close(descriptor)
                raise
            return LocalFileLock(path, descriptor)


class LocalFileLock(Owned):
    """A held lock. ``LocalFileSystem.lock`` makes it.

    A process that is forked from the owner does not hold the lock, and closes the inherited descriptor at once. If it
    closed it later, after taking the same lock for itself, that would release its own lock.

    Attributes:
        path: of the file.
        identity: device and inode of the file.
    """

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        status = os.fstat(descriptor)
        self.identity = (status.st_dev, status.st_ino)
        super().__init__(path)  # From here on a fork closes the descriptor.
        _HELD_LOCKS.add(self)

    def close(self) -> None:
        """Release the lock. The file stays. Closing twice is harmless."""
        with _HELD_LOCKS.guard:
            self._release()

    def disown(self) -> None:
        """Close the descriptor in a forked child: the parent holds the lock."""
        super().disown()
        with contextlib.suppress(OSError):
            self._release()

    def _release(self) -> None:
        descriptor, self._descriptor = self._descriptor, _CLOSED
        if descriptor != _CLOSED:
            _HELD_LOCKS.discard(self)
            os.close(descriptor)


class _HeldLocks(set[LocalFileLock]):
    """The locks that this process holds. Hold ``guard`` to read or change the set."""

    def __init__(self) -> None:
        super().__init__()
        self.guard = threading.Lock()


_HELD_LOCKS: Final = _HeldLocks()


def _renew_guard() -> None:
    _HELD_LOCKS.guard = threading.Lock()  # A thread that does not exist in the child may have held it.


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_guard)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = Path(path).stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


@functools.cache
def _fallocate() -> Callable[[int, int, int, int], int] | None:
    """Return Linux's fallocate, or None if there is none."""
    import ctypes  # Imported here, since commands that only read do not need it.

    library = ctypes.CDLL(None)
    call = getattr(library, "fallocate64", None) or getattr(library, "fallocate", None)
    if call is not None and sys.platform == "linux":
        call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
        return cast("Callable[[int, int, int, int], int]", call)
    return None


def _open(path: str, flags: int) -> LocalFile:
    with _Reported(path, "open"):
        # O_NONBLOCK, because opening a pipe without a writer would block.
        descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, _NEW_FILE_MODE)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise StorageError(path, "open", "not a regular file")
        return LocalFile(path, descriptor)
