# SPDX-License-Identifier: Apache-2.0
"""Opens that take files away are seen on a copy of the disk, with what a crash in the middle of them leaves."""

from collections.abc import Callable

import pytest

from raftlog.errors import StorageError
from raftlog.file_system import replace_file
from raftlog.testing.file_system.crash_states import DiskState
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from raftlog.testing.simulator.disks.moving_opens import moving_open, reads_of

SEGMENT = "log-0/00000000000000000007.log"
POINT = "log-0/raftlog-recovery-point"
DISK: DiskState = (("log-0", None, False), (SEGMENT, b"batches", False), (POINT, b"end 470", False))


def _writing(files: MemoryFileSystem) -> None:
    replace_file(files, POINT, b"end 1")


def _renaming(files: MemoryFileSystem) -> None:
    _writing(files)
    files.rename(SEGMENT, f"{SEGMENT}.superseded-5")
    files.sync_directory("log-0")


def _removing_and_failing(files: MemoryFileSystem) -> None:
    files.remove(SEGMENT)
    raise StorageError(POINT, "read", "input/output error")


def _for_a_moment(files: MemoryFileSystem) -> None:
    files.rename(SEGMENT, f"{SEGMENT}.swap")
    files.rename(f"{SEGMENT}.swap", SEGMENT)


@pytest.mark.parametrize(
    ("opens", "changes"), [(_writing, 0), (_renaming, 2), (_removing_and_failing, 1), (_for_a_moment, 0)]
)
def test_an_open_that_takes_files_away(opens: Callable[[MemoryFileSystem], None], changes: int) -> None:
    """From there on, all that changes the disk is listed, also of an open that fails then."""
    found = moving_open(DISK, opens)
    assert (0 if found is None else len(found.changes)) == changes


def test_what_a_crash_leaves() -> None:
    """After each of these changes: all of it, and what is durable; what came before the first one is there."""
    found = moving_open(DISK, _renaming)
    assert found is not None
    kept = {path: data for path, data, _ in DISK} | {POINT: b"end 1"}
    moved = {f"{path}.superseded-5" if path == SEGMENT else path: data for path, data in kept.items()}
    left = [{path: data for path, data, _ in each} for each in found.left]
    assert len(left) == 2
    assert kept in left
    assert moved in left
    assert [str(each).split()[1] for each in found.left.values()] == ["rename", "rename"]


def test_what_an_open_reads() -> None:
    """Each read, in order, also of an open that fails; the disk is as it was."""

    def reading(files: MemoryFileSystem) -> None:
        for path in (POINT, SEGMENT, POINT):
            files.open_for_reads(path).read_at(0, 1)
        _removing_and_failing(files)

    assert reads_of(DISK, reading) == [POINT, SEGMENT, POINT]
