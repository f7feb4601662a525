# SPDX-License-Identifier: Apache-2.0
"""Opens files of a log for reads, local or remote: ``open_source`` takes any path.

Files are read into buffers and never mapped: if a mapped file shrinks, as a live node's newest segment may, accessing
the mapping kills the process. Devices are refused, as they may have no end; a pipe is copied up to a limit
(DECISIONS.md, 43).
"""

import contextlib
import errno
import os
import stat
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, Final, Self, TypeVar

from raftlog.errors import StorageError
from raftlog.file_paths import is_remote, local_or_remote

if TYPE_CHECKING:
    from raftlog.storage.reading.remote_file_source import RemoteFileSource

_Result = TypeVar("_Result")

STANDARD_INPUT = "-"
"""The path that means standard input."""
_STANDARD_INPUT_DESCRIPTOR: Final = 0
"""Used instead of ``sys.stdin``, which is None if standard input was closed."""
_SEEK_DATA: Final[int | None] = getattr(os, "SEEK_DATA", None)
"""Missing on some platforms."""
_SPOOL_CHUNK_SIZE: Final = 1024 * 1024
SPOOL_LIMIT_VARIABLE: Final = "RAFTLOG_SPOOL_LIMIT"
"""The environment variable that limits how many bytes of a pipe are copied, in this and in child processes."""
DEFAULT_SPOOL_LIMIT: Final = 2 * 1024 * 1024 * 1024
"""In bytes. No segment of Kafka is larger."""
_UNITS: Final = {"K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
_MOST_DIGITS: Final = 18
_KINDS: Final = (
    (stat.S_ISDIR, "it is a directory, not a file"),
    (stat.S_ISCHR, "it is a character device: files and pipes alone are read"),
    (stat.S_ISBLK, "it is a block device: files and pipes alone are read"),
    (stat.S_ISSOCK, "it is a socket: files and pipes alone are read"),
)


class FileSource:
    """A local file that can be read at any position; a pipe is copied to an unnamed temporary file first.

    Use it as a context manager. It is a ``raftlog.records.batches.iterator.ByteSource``.

    Args:
        path: the file, or ``-`` for standard input. Opening a named pipe waits for a writer.
        spool_limit: how many bytes of a pipe are copied at most; None takes the value of the environment variable
            ``RAFTLOG_SPOOL_LIMIT``, by default 2 GiB.

    Raises:
        StorageError: the file cannot be opened; or it is a pipe that cannot be read, or exceeds the limit; or it is
            a device, a directory or a socket. Nothing is left in the temporary directory.
    """

    def __init__(self, path: str, spool_limit: int | None = None) -> None:
        self.path = path
        self._spool: BinaryIO | None = None
        try:
            self._descriptor = _open(path)
            if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
                # Damage is found by looking ahead and back, which a pipe cannot do.
                self._spool = _spooled(self._descriptor, path, spool_limit)
                self._descriptor = self._spool.fileno()
        except StorageError:
            raise
        except (OSError, ValueError) as error:  # A zero byte in the path is a ValueError.
            raise StorageError(path, "open", getattr(error, "strerror", None) or str(error)) from error

    def read_at(self, position: int, size: int) -> memoryview:
        """Return up to ``size`` bytes from a byte position: fewer only if the file ends before.

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

    def modified_ns(self) -> int:
        """Return when the file was last written, in ns since 1970, now."""
        return os.fstat(self._descriptor).st_mtime_ns

    def device(self) -> int:
        """Return the number that the operating system has given to the file's file system."""
        return os.fstat(self._descriptor).st_dev

    def after_hole(self, position: int) -> int:
        """Return a byte position; if it is in a hole of a sparse file, the end of the hole, at most the file's end."""
        if _SEEK_DATA is None:
            return position
        try:
            return os.lseek(self._descriptor, position, _SEEK_DATA)
        except OSError as error:  # ENXIO: the hole reaches the end. Others: holes are not supported.
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
    """Open a file after checking its kind, because opening a device may have effects."""
    if path == STANDARD_INPUT:
        mode = os.fstat(_STANDARD_INPUT_DESCRIPTOR).st_mode
        if not stat.S_ISSOCK(mode):  # Some parent processes use sockets as pipes.
            _check_kind(path, mode)
        return os.dup(_STANDARD_INPUT_DESCRIPTOR)
    _check_kind(path, os.stat(path).st_mode)  # noqa: PTH116 - the path is kept as it was named
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check_kind(path, os.fstat(descriptor).st_mode)
    except StorageError:  # The file was replaced meanwhile.
        os.close(descriptor)
        raise
    return descriptor


def _check_kind(path: str, mode: int) -> None:
    for is_of_kind, cause in _KINDS:
        if is_of_kind(mode):
            raise StorageError(path, "open", cause)


def _limit() -> int:
    """Return how many bytes of a pipe are copied at most, according to the environment."""
    text = os.environ.get(SPOOL_LIMIT_VARIABLE, "")
    try:
        return parse_size(text) if text else DEFAULT_SPOOL_LIMIT
    except ValueError as error:
        raise ValueError(f"{SPOOL_LIMIT_VARIABLE}: {error}") from None


def parse_size(text: str) -> int:
    """Parse a number of bytes: digits, optionally with a suffix K, M, G or T for powers of 1024.

    Raises:
        ValueError: the text has another form.
    """
    digits, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS):
        raise ValueError(f"{text!r} is not a number of bytes, such as 500M or 8G")
    return int(digits) * _UNITS.get(unit, 1)


def _spooled(descriptor: int, path: str, limit: int | None) -> BinaryIO:
    """Copy a pipe to an unnamed temporary file, and close the pipe.

    Raises:
        StorageError: the pipe has more bytes than the limit, or there is no space for them.
        OSError: it cannot be read.
    """
    import tempfile  # Slow to import, and needed for pipes only.

    try:
        limit = _limit() if limit is None else limit
        spool: BinaryIO = _of_spool(path, lambda: tempfile.TemporaryFile())  # noqa: SIM115 - closed with the source
    except BaseException:
        os.close(descriptor)
        raise
    left = limit
    try:
        while part := os.read(descriptor, _SPOOL_CHUNK_SIZE):
            left -= len(part)
            if left < 0:
                cause = (
                    f"it has more than {limit} bytes, and no more of a pipe are copied to a temporary file: "
                    f"--spool-limit or {SPOOL_LIMIT_VARIABLE} raises that"
                )
                raise StorageError(path, "read", cause)
            _of_spool(path, spool.write, part)
        _of_spool(path, spool.flush)
    except BaseException:
        with contextlib.suppress(OSError):  # Closing flushes, which fails again if the disk is full.
            spool.close()
        raise
    finally:
        os.close(descriptor)
    return spool


def _of_spool(path: str, work: Callable[..., _Result], *given: object) -> _Result:
    """Call a function that uses the temporary file of a pipe; errors name that file as the cause."""
    try:
        return work(*given)
    except OSError as error:
        raise StorageError(path, "copy to a temporary file", error.strerror or str(error)) from error


def open_source(path: str, spool_limit: int | None = None) -> "FileSource | RemoteFileSource":
    """Open a file for reads: a local one, or one of any file system that ``pyarrow.fs`` opens, by its URI.

    Args:
        path: the file, or ``-`` for standard input.
        spool_limit: of a pipe, as for ``FileSource``.

    Raises:
        StorageError: it cannot be opened, is a device, is a pipe that exceeds the limit, or the URI holds credentials.
        MissingExtraError: pyarrow is not installed, and the path is a URI.
    """
    path = local_or_remote(path)
    if not is_remote(path):
        return FileSource(path, spool_limit)
    from raftlog.storage.reading.remote_file_source import RemoteFileSource  # Needed for URIs only.

    return RemoteFileSource(path)


def read_file(path: str, max_size: int) -> bytes:
    """Return the bytes of a small file.

    Raises:
        StorageError: the file cannot be read, or has more than ``max_size`` bytes.
    """
    with open_source(path, max_size) as source:
        if source.size() > max_size:
            raise StorageError(path, "read", f"it has {source.size()} bytes, more than {max_size}")
        return bytes(source.read_at(0, max_size))
