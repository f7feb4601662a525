# SPDX-License-Identifier: Apache-2.0
"""Making a salvaged directory: all of it or nothing, whatever fails, and at which operation."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from raftlog.errors import OutOfSpaceError, StorageError
from raftlog.tools.salvage import salvage
from raftlog.tools.salvage.building import _segments
from raftlog.tools.salvage.merging import Piece
from tests.tools.repair.failing_disk import FailingDisk
from tests.tools.repair.repaired import everything
from tests.tools.salvage.salvaged import apply, plan, spoil


class CountedPiece(Piece):
    """A piece that counts how often its size is asked for."""

    asked = 0

    @property
    def size_bytes(self) -> int:
        """As it is."""
        CountedPiece.asked += 1
        return super().size_bytes


def test_segments_are_cut_in_one_pass() -> None:
    """At most 1 GiB in each, and one of a source begins another; the work grows with the pieces, not their square."""
    size = 1 << 20
    pieces = [
        CountedPiece(
            number % 2, "0.log", 0 if number == 3000 else size, size + (0 if number == 3000 else size), 0, 1, 1
        )
        for number in range(5000)
    ]
    found = [segment for _, segment in _segments(pieces, 0)]
    assert [len(segment) for segment in found] == [1024, 1024, 952, 1024, 976]
    assert [piece for segment in found for piece in segment] == pieces
    assert CountedPiece.asked <= 2 * len(pieces) + len(found)
    assert [(start, segment) for start, segment in _segments([], 7)] == [(7, [])]


def _full(path: str, operation: str) -> BaseException:
    return OutOfSpaceError(path, operation, os.strerror(errno.ENOSPC))


def _failing(path: str, operation: str) -> BaseException:
    return StorageError(path, operation, os.strerror(errno.EIO))


def _interrupted(path: str, operation: str) -> BaseException:
    return KeyboardInterrupt()


def _steps() -> Iterator[int]:
    yield from range(400)
    raise AssertionError("it never ends")


@pytest.mark.parametrize(
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
def test_a_failure_at_any_operation_leaves_nothing(
    failure: Callable[[str, str], BaseException],
    exit_code: int,
    stride: int,
    quorum: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Until the last operation has succeeded, nothing has the final name, nothing else stays, and sources are whole."""
    spoil(quorum / "n3", 20)
    planned = plan(quorum / "n3", quorum / "n101", file=tmp_path / "plan", options=("--node-id", "3"))
    assert planned.exit_code == 0, planned.messages
    before = everything(tmp_path)
    new = tmp_path / "new"
    failed = 0
    for at in _steps():
        disk = FailingDisk(at * stride, failure)
        monkeypatch.setattr(salvage, "LocalFileSystem", lambda disk=disk: disk)
        outcome = apply(tmp_path / "plan", new)
        if disk.count <= at * stride:
            break
        if outcome.exit_code == 0:  # Some failures are harmless: of what is only kept beside a log.
            shutil.rmtree(new)
            continue
        failed += 1
        assert outcome.exit_code == exit_code, (at, outcome.messages)
        assert len(outcome.complaints) == (exit_code == 1)
        assert everything(tmp_path) == before
        assert sorted(path.name for path in tmp_path.iterdir()) == ["plan", "quorum"]
    assert outcome.exit_code == 0
    assert failed * stride > 60
