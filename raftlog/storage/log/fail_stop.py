# SPDX-License-Identifier: Apache-2.0
"""Letting nothing happen after a write or a sync that failed, and nothing in a process that does not own the log."""

from types import TracebackType

from raftlog.errors import ForkedProcessError, OutOfSpaceError, RaftLogError, StorageError, fresh_copy
from raftlog.process_ownership import Owned


class FailStop(Owned):
    """Stands before all that a log does; a context manager around what changes it.

    After a ``StorageError`` in such a block nobody knows what is on the disk, and every later one raises that again. So
    it is after what is no error of raftlog's: a block that was interrupted may have done half of its work. An
    ``OutOfSpaceError`` and refusals are let through: whoever raises them has left the log as it was.

    In a process that was forked from the owner every block raises a ``ForkedProcessError``, reads too: what the parent
    appends and truncates does not show there.

    Attributes:
        failure: what has failed, or the fork; None as long as all is well.
        is_closed: whether the log was closed.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.failure: StorageError | ForkedProcessError | None = None
        self.is_closed = False
        self._path = path

    def check(self) -> None:
        """Raise what has failed before.

        Raises:
            StorageError: something has, or the log is closed.
            ForkedProcessError: this process was forked from the owner.
        """
        if self.failure is not None:
            raise fresh_copy(self.failure)
        if self.is_closed:
            raise StorageError(self._path, "use", "the log is closed")

    def disown(self) -> None:
        """Take note, in a child, that the log belongs to the parent: that comes before all that has failed there."""
        super().disown()
        self.failure = self.disowned

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
