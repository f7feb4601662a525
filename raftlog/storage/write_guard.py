# SPDX-License-Identifier: Apache-2.0
"""Letting nothing happen after a write or a sync that failed."""

from types import TracebackType

from raftlog.errors import OutOfSpaceError, RaftLogError, StorageError, fresh_copy


class WriteGuard:
    """Stands before all that a log does; a context manager around what changes it.

    After a ``StorageError`` in such a block nobody knows what is on the disk, and every later one raises that again. So
    it is after what is no error of raftlog's: a block that was interrupted may have done half of its work. An
    ``OutOfSpaceError`` and refusals are let through: whoever raises them has left the log as it was.

    Attributes:
        failure: what has failed, or None.
        is_closed: whether the log was closed.
    """

    def __init__(self, path: str) -> None:
        self.failure: StorageError | None = None
        self.is_closed = False
        self._path = path

    def check(self) -> None:
        """Raise what has failed before.

        Raises:
            StorageError: something has, or the log is closed.
        """
        if self.failure is not None:
            raise fresh_copy(self.failure)
        if self.is_closed:
            raise StorageError(self._path, "use", "the log is closed")

    def __enter__(self) -> None:
        self.check()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.note(error)

    def note(self, error: BaseException) -> None:
        """Take note of what has come out of a block; for those that do without ``with``, which takes its time."""
        if self.failure is not None or isinstance(error, OutOfSpaceError):
            return
        if isinstance(error, StorageError):
            self.failure = fresh_copy(error)
        elif not isinstance(error, RaftLogError):
            self.failure = StorageError(self._path, "write", f"interrupted by {type(error).__name__}: {error}")
