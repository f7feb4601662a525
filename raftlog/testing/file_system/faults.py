# SPDX-License-Identifier: Apache-2.0
"""Failures of a disk that are told to happen: at which operation, and what it leaves."""

import enum
from typing import Final

import attrs

from raftlog.errors import OutOfSpaceError, StorageError


class Operation(enum.Enum):
    """What a file system is asked to do; the words are those of its errors."""

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
    """An operation that the file system was asked for, with its number from 1 on."""

    number: int
    operation: Operation
    path: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.number} {self.operation.value} {self.path}{self.detail and ' '}{self.detail}"


@attrs.define
class Fault:
    """A failure to come. A write that fails may write something first; all else that fails changes nothing.

    A sync that fails leaves what it was to make durable in doubt for ever: a later sync returns, and the bytes may be
    gone after a crash all the same (fsyncgate).

    Attributes:
        operation: what fails; None: anything.
        skip: how many operations of the kind go well before.
        path_end: what the path must end with.
        is_full: whether it is for want of room (ENOSPC), so that what needs none goes well, and not that the disk fails
            (EIO).
        written_bytes: how much of a write is written all the same.
        is_lasting: whether it goes on failing.
        is_spent: whether it has struck, and will not do so again.
    """

    operation: Operation | None = None
    skip: int = attrs.field(default=0, kw_only=True)
    path_end: str = attrs.field(default="", kw_only=True)
    is_full: bool = attrs.field(default=False, kw_only=True)
    written_bytes: int = attrs.field(default=0, kw_only=True)
    is_lasting: bool = attrs.field(default=False, kw_only=True)
    is_spent: bool = attrs.field(default=False, init=False)

    def strikes(self, step: Step) -> bool:
        """Say whether an operation fails, and count it."""
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
        """Return what is raised."""
        if self.is_full:
            return OutOfSpaceError(step.path, step.operation.value, "no space left on device")
        return StorageError(step.path, step.operation.value, "input/output error")
