# SPDX-License-Identifier: Apache-2.0
"""Reads one file of a remote file system, in few and large requests, since each takes a round trip."""

from types import TracebackType
from typing import Final, Self

from raftlog.errors import MissingFileError, StorageError, fresh_copy
from raftlog.storage.reading.remote_file_system import open_remote, remote_failure, remote_status

_LEAST_REQUEST: Final = 1024 * 1024
_LARGEST_REQUEST: Final = 8 * 1024 * 1024
"""In bytes, unless the caller asks for more. Sequential reads double the request size up to this limit."""
_KEPT_COUNT: Final = 4
"""How many responses are kept, for reads slightly ahead or back."""


class RemoteFileSource:
    """A remote file that can be read at any position, with bounded read-ahead. A context manager and a ``ByteSource``.

    After a failed request, which pyarrow has retried, all later reads fail, too. A file that is read only in part looks
    damaged, so its bytes are useless, and each further request may take seconds.

    Args:
        path: the URI of the file.

    Raises:
        MissingFileError: there is no such file.
        StorageError: it cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = open_remote(path)
        self._answers: list[tuple[int, memoryview]] = []
        self._request_size = _LEAST_REQUEST
        self._failure: StorageError | None = None
        try:
            self._size: int = self._file.size()
        except Exception as error:
            self._file.close()
            raise remote_failure(path, "open", error) from error

    def read_at(self, position: int, size: int) -> memoryview:
        """Return up to ``size`` bytes from a byte position: fewer only if the file ends before.

        Raises:
            MissingFileError: the file was deleted meanwhile.
            StorageError: the file system cannot read them.
        """
        parts = []
        size = max(0, min(size, self._size - position))
        while size > 0 and (part := self._kept(position) or self._ask(position, size)):
            part = part[:size]
            parts.append(part)
            position += len(part)
            size -= len(part)
        return parts[0] if len(parts) == 1 else memoryview(b"".join(parts))

    def size(self) -> int:
        """Return the file's size in bytes when it was opened; an object in a store does not grow.

        Raises:
            StorageError: a read has failed.
        """
        if self._failure is not None:
            raise fresh_copy(self._failure)
        return self._size

    def close(self) -> None:
        """Close the file."""
        self._answers.clear()
        self._file.close()

    def _kept(self, position: int) -> memoryview:
        """Return kept bytes from a position on; empty if there are none."""
        for start, data in reversed(self._answers):
            if start <= position < start + len(data):
                return data[position - start :]
        return memoryview(b"")

    def _ask(self, position: int, size: int) -> memoryview:
        """Request bytes, and read ahead if the file is read sequentially."""
        is_next = any(position == start + len(data) for start, data in self._answers)
        self._request_size = min(2 * self._request_size, _LARGEST_REQUEST) if is_next else _LEAST_REQUEST
        wanted = min(max(size, self._request_size), self._size - position)
        if self._failure is not None:
            raise fresh_copy(self._failure)
        try:
            data = memoryview(self._file.read_at(wanted, position))
        except Exception as error:
            self._failure = self._read_failure(position, error)
            raise fresh_copy(self._failure) from error
        if len(data) < wanted:
            cause = f"it has ended at {position + len(data)} of {self._size} bytes: it was replaced while it was read"
            self._failure = StorageError(self.path, f"read at position {position}", cause)
            raise fresh_copy(self._failure)
        self._answers = [*self._answers[-_KEPT_COUNT + 1 :], (position, data)]
        return data

    def _read_failure(self, position: int, error: Exception) -> StorageError:
        operation = f"read at position {position}"
        try:
            remote_status(self.path)  # If the file was deleted, the error of the read itself is unspecific.
        except MissingFileError as missing:
            return MissingFileError(self.path, operation, missing.cause)
        except StorageError:
            pass  # Report the error of the read.
        return remote_failure(self.path, operation, error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
