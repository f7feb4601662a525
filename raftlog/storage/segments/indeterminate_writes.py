# SPDX-License-Identifier: Apache-2.0
"""Turns ``OutOfSpaceError`` into ``StorageError`` in blocks in which a full disk leaves the outcome indeterminate."""

from types import TracebackType

from raftlog.errors import OutOfSpaceError, StorageError


def as_storage_error(error: OutOfSpaceError) -> StorageError:
    """Return an ``OutOfSpaceError`` as a plain ``StorageError``."""
    return StorageError(error.path, error.operation, error.cause)


class IndeterminateWrites:
    """Context manager that raises an ``OutOfSpaceError`` of its block as a plain ``StorageError``.

    An ``OutOfSpaceError`` promises that the log is as it was. That cannot be promised after a failed sync or in the
    middle of a truncation, because something may have changed already.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, OutOfSpaceError):
            raise as_storage_error(error) from error


INDETERMINATE_WRITES = IndeterminateWrites()
