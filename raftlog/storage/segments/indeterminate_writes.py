# SPDX-License-Identifier: Apache-2.0
"""What an error for want of room means: elsewhere that nothing has changed, here that nobody knows."""

from types import TracebackType

from raftlog.errors import OutOfSpaceError, StorageError


def as_storage_error(error: OutOfSpaceError) -> StorageError:
    """Return an error for want of room as one of the disk."""
    return StorageError(error.path, error.operation, error.cause)


class IndeterminateWrites:
    """Raises an error for want of room as one of the disk: something may have changed already.

    An ``OutOfSpaceError`` promises that the log is as it was. After a failed sync, and in the middle of a truncation,
    nobody can promise that, whatever the reason for the failure.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, OutOfSpaceError):
            raise as_storage_error(error) from error


INDETERMINATE_WRITES = IndeterminateWrites()
