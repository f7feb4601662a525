# SPDX-License-Identifier: Apache-2.0
"""Reading files of a log, read-only, wherever they are: ``open_source`` takes any path.

Files are read into buffers and never mapped: a mapping of a file that shrinks, as a live node's newest segment may,
kills the process that looks at it.
"""

import errno
import os
import stat
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, Final, Self

from raftlog.errors import StorageError
from raftlog.file_paths import is_remote, local_or_remote

if TYPE_CHECKING:
    from raftlog.storage.remote_file_source import RemoteFileSource

STANDARD_INPUT = "-"
"""The path that means standard input."""
_STANDARD_INPUT_DESCRIPTOR: Final = 0
"""Python's own object for it is missing where it was closed."""
_SEEK_DATA: Final[int | None] = getattr(os, "SEEK_DATA", None)
"""Missing on some platforms."""
_SPOOL_CHUNK_SIZE: Final = 1024 * 1024


class FileSource:
    """A local file that can be read anywhere; a pipe is copied to an unnamed temporary file first.

    Use it as a context manager. It is a ``raftlog.records.iterator.ByteSource``.

    Args:
        path: the file, or ``-`` for standard input.

    Raises:
        StorageError: the file cannot be opened or, if it is a pipe, read.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._spool: BinaryIO | None = None
        try:
            self._descriptor = _open(path)
            if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
                # Damage is found by looking ahead and back, which a pipe cannot do.
                self._spool = _spooled(self._descriptor)
                self._descriptor = self._spool.fileno()
        except (OSError, ValueError) as error:  # A ValueError, if there is a zero byte in the path.
            raise StorageError(path, "open", getattr(error, "strerror", None) or str(error)) from error

    def read_at(self, position: int, size: int) -> memoryview:
        """Return up to ``size`` bytes from a byte position: fewer only where the file ends.

        Raises:
            StorageError: the disk failed.
        """
        parts = []
        try:
            while size > 0 and (part := os.pread(self._descriptor, size, position)):
                parts.append(part)
                position += len(part)
                size -= len(part)
        except OSError as error:
            raise StorageError(self.path, f"read at position {position}", error.strerror or str(error)) from error
        return memoryview(parts[0] if len(parts) == 1 else b"".join(parts))

    def size(self) -> int:
        """Return the file's size in bytes, now."""
        return os.fstat(self._descriptor).st_size

    def after_hole(self, position: int) -> int:
        """Return a byte position, or the one after the hole of a sparse file that it is in, the end at most."""
        if _SEEK_DATA is None:
            return position
        try:
            return os.lseek(self._descriptor, position, _SEEK_DATA)
        except OSError as error:  # There is only a hole up to the end, or the file system does not say.
            return max(position, self.size()) if error.errno == errno.ENXIO else position

    def close(self) -> None:
        """Close the file."""
        if self._spool is None:
            os.close(self._descriptor)
        else:
            self._spool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _open(path: str) -> int:
    if path == STANDARD_INPUT:
        return os.dup(_STANDARD_INPUT_DESCRIPTOR)
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _spooled(descriptor: int) -> BinaryIO:
    """Copy a pipe to an unnamed temporary file, and close the pipe."""
    import tempfile  # Slow to import, and for pipes alone.

    spool = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the source
    try:
        while part := os.read(descriptor, _SPOOL_CHUNK_SIZE):
            spool.write(part)
        spool.flush()
    except BaseException:
        spool.close()
        raise
    finally:
        os.close(descriptor)
    return spool


def open_source(path: str) -> "FileSource | RemoteFileSource":
    """Open a file for reads: a local one, or one of any file system that ``pyarrow.fs`` opens, by its URI.

    Args:
        path: the file, or ``-`` for standard input.

    Raises:
        StorageError: it cannot be opened, or the URI holds credentials.
        MissingExtraError: pyarrow is not installed, and the path is a URI.
    """
    path = local_or_remote(path)
    if not is_remote(path):
        return FileSource(path)
    from raftlog.storage.remote_file_source import RemoteFileSource  # For URIs alone.

    return RemoteFileSource(path)


def read_file(path: str, max_size: int) -> bytes:
    """Return the bytes of a small file.

    Raises:
        StorageError: the file cannot be read, or has more than ``max_size`` bytes.
    """
    with open_source(path) as source:
        if source.size() > max_size:
            raise StorageError(path, "read", f"it has {source.size()} bytes, more than {max_size}")
        return bytes(source.read_at(0, max_size))
