# SPDX-License-Identifier: Apache-2.0
"""The local file system, of which one operation that changes something fails."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from raftlog.errors import OutOfSpaceError, StorageError
from raftlog.storage.local_file_system import LocalFileSystem
from tests.tools.console import Outcome
from tests.tools.repair.repaired import everything

Failure = Callable[[str, str], BaseException]
"""Makes the error of an operation, of the path and the operation."""

_CHANGES: Final = frozenset({"make_directory", "rename", "remove", "sync_directory", "set_read_only"})
_FILE_CHANGES: Final = frozenset({"append", "write_at", "truncate", "sync"})


class FailingDisk:
    """A file system over the local one.

    Args:
        at: number of the operation that fails, from 0 on.
        failure: makes the error, of the path and the operation.

    Attributes:
        count: how many operations there were.
    """

    def __init__(self, at: int, failure: Callable[[str, str], BaseException]) -> None:
        self.count = 0
        self._at, self._failure = at, failure
        self._below = LocalFileSystem()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._below, name)
        return self._watched(found, name) if name in _CHANGES else found

    def open(self, path: str, *, create: bool = False) -> "FailingFile":
        """Open a file; making one is a change."""
        if create:
            self.strike(path, "open")
        return FailingFile(self._below.open(path, create=create), self)

    def open_for_reads(self, path: str) -> "FailingFile":
        """Open a file for reads."""
        return FailingFile(self._below.open_for_reads(path), self)

    def strike(self, path: str, operation: str) -> None:
        """Count an operation, and fail if it is its turn."""
        number, self.count = self.count, self.count + 1
        if number == self._at:
            raise self._failure(path, operation)

    def _watched(self, call: Callable[..., Any], name: str) -> Callable[..., Any]:
        def watched(path: str, *arguments: str) -> Any:
            self.strike(path, name)
            return call(path, *arguments)

        return watched


class FailingFile:
    """An open file of such a disk."""

    def __init__(self, below: Any, disk: FailingDisk) -> None:
        self._below, self._disk = below, disk

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._below, name)
        if name not in _FILE_CHANGES:
            return found

        def watched(*arguments: Any) -> Any:
            self._disk.strike(self._below.path, name)
            return found(*arguments)

        return watched


def _full(path: str, operation: str) -> BaseException:
    return OutOfSpaceError(path, operation, os.strerror(errno.ENOSPC))


def _failing(path: str, operation: str) -> BaseException:
    return StorageError(path, operation, os.strerror(errno.EIO))


def _interrupted(path: str, operation: str) -> BaseException:
    return KeyboardInterrupt()


def _steps() -> Iterator[int]:
    yield from range(400)
    raise AssertionError("it never ends")


each_failure = pytest.mark.parametrize(
    ("failure", "exit_code", "stride"),
    [
        (_full, 1, 11),
        (_failing, 1, 13),
        (_interrupted, 130, 13),
        pytest.param(_full, 1, 1, marks=pytest.mark.slow),
        pytest.param(_interrupted, 130, 1, marks=pytest.mark.slow),
    ],
    ids=["full disk", "I/O error", "interrupt", "full disk, everywhere", "interrupt, everywhere"],
)
"""With the exit code, and how many operations are between two that fail, each in a run of its own."""


def check_all_or_nothing(
    path: Path,
    failure: Failure,
    exit_code: int,
    stride: int,
    apply: Callable[[FailingDisk, Path], Outcome],
    least: int = 60,
) -> None:
    """Carry a plan out again and again while one operation fails, a later one each time, until none does.

    Args:
        path: a directory with the plan and the quorum, in which the new directory is made.
        failure: of the operation.
        exit_code: of a run that has failed.
        stride: from an operation that fails to the next one.
        apply: carries the plan out on a disk, and makes a directory.
        least: how many operations there are at least.
    """
    before = everything(path)
    new = path / "new"
    failed = 0
    for at in _steps():
        disk = FailingDisk(at * stride, failure)
        outcome = apply(disk, new)
        if disk.count <= at * stride:
            break
        if outcome.exit_code == 0:  # Some failures are harmless: of what is only kept beside a log.
            assert new.is_dir()
            shutil.rmtree(new)
            continue
        failed += 1
        assert outcome.exit_code == exit_code, (at, outcome.messages)
        assert len(outcome.complaints) == (exit_code == 1)
        assert everything(path) == before
        assert sorted(each.name for each in path.iterdir()) == ["plan", "quorum"]
    assert outcome.exit_code == 0
    assert failed * stride > least
