# SPDX-License-Identifier: Apache-2.0
"""Injected failures of a disk: which operation fails, and what it leaves."""

import enum
from typing import Final

import attrs

from raftlog.errors import OutOfSpaceError, StorageError


class Operation(enum.Enum):
    """The operations of a file system; the values are the words in its errors."""

    CREATE = "create"
    OPEN = "open"
    READ = "read"
    WRITE = "write"
    TRUNCATE = "truncate"
    SYNC = "sync"
    LIST = "list"
    MAKE_DIRECTORY = "make directory"
    RENAME = "rename"
    REMOVE = "remove"
    SYNC_DIRECTORY = "sync directory"
    SET_READ_ONLY = "set read-only"
    LOCK = "lock"


_NEEDS_NO_ROOM: Final = {
    Operation.OPEN,
    Operation.READ,
    Operation.LIST,
    Operation.TRUNCATE,
    Operation.REMOVE,
    Operation.SET_READ_ONLY,
}


@attrs.frozen
class Step:
    """An operation that was called, with its number from 1 on."""

    number: int
    operation: Operation
    path: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.number} {self.operation.value} {self.path}{self.detail and ' '}{self.detail}"


@attrs.define
class Fault:
    """A planned failure. A failing write may write some bytes first; other failing operations change nothing.

    A failed sync leaves the changes that it covered in doubt for ever: a later sync succeeds, and the bytes may be lost
    in a crash nevertheless (fsyncgate).

    Attributes:
        operation: the kind that fails; None for any.
        skip: how many operations of the kind succeed before.
        path_end: what the path must end with.
        is_full: whether the disk is full (ENOSPC), so that operations that need no space succeed; otherwise the disk
            fails (EIO).
        written_bytes: how many bytes of a write are written nevertheless.
        is_lasting: whether all later operations of the kind fail, too.
        is_spent: whether it has struck, and will not strike again.
    """

    operation: Operation | None = None
    skip: int = attrs.field(default=0, kw_only=True)
    path_end: str = attrs.field(default="", kw_only=True)
    is_full: bool = attrs.field(default=False, kw_only=True)
    written_bytes: int = attrs.field(default=0, kw_only=True)
    is_lasting: bool = attrs.field(default=False, kw_only=True)
    is_spent: bool = attrs.field(default=False, init=False)

    def strikes(self, step: Step) -> bool:
        """Return whether an operation fails, and count it."""
        if self.is_spent or self.operation not in {None, step.operation} or not step.path.endswith(self.path_end):
            return False
        if self.is_full and step.operation in _NEEDS_NO_ROOM:
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.is_spent = not self.is_lasting
        return True

    def error(self, step: Step) -> StorageError:
        """Return the error to raise."""
        if self.is_full:
            return OutOfSpaceError(step.path, step.operation.value, "no space left on device")
        return StorageError(step.path, step.operation.value, "input/output error")
