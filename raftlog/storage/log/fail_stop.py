# SPDX-License-Identifier: Apache-2.0
"""Fail-stop: refuses everything after a failed write or sync, and in a process that does not own the log."""

from types import TracebackType

from raftlog.errors import ForkedProcessError, OutOfSpaceError, RaftLogError, StorageError, fresh_copy
from raftlog.process_ownership import Owned


class FailStop(Owned):
    """Guards all operations of a log; a context manager around operations that change it.

    After a ``StorageError`` in such a block, it is unknown what is on disk, so every later block raises that error
    again. The same holds after an exception that is not raftlog's, because the block may be half done. After an
    ``OutOfSpaceError`` or a refusal, operations continue: these leave the log as it was.

    In a process that was forked from the owner, every block raises a ``ForkedProcessError``, also for reads, because
    the child does not see what the parent appends and truncates.

    Attributes:
        failure: the failed operation, or the fork; None if there was neither.
        is_closed: whether the log was closed.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.failure: StorageError | ForkedProcessError | None = None
        self.is_closed = False
        self._path = path

    def check(self) -> None:
        """Raise the error of an earlier failure, if there was one.

        Raises:
            StorageError: an earlier operation has failed, or the log is closed.
            ForkedProcessError: this process was forked from the owner.
        """
        if self.failure is not None:
            raise fresh_copy(self.failure)
        if self.is_closed:
            raise StorageError(self._path, "use", "the log is closed")

    def disown(self) -> None:
        """Refuse everything in a forked child, even if an earlier failure was recorded: the parent owns the log."""
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
        """Record the error that ended a block. Hot paths call this directly, because ``with`` is slower."""
        if self.failure is not None or isinstance(error, OutOfSpaceError):
            return
        if isinstance(error, StorageError):
            self.failure = fresh_copy(error)
        elif not isinstance(error, RaftLogError):
            self.failure = StorageError(self._path, "write", f"interrupted by {type(error).__name__}: {error}")
