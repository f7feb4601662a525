# SPDX-License-Identifier: Apache-2.0
"""Snapshots in files: the order of what is done to the disk, and what is left when it fails or the machine crashes.

The contract of all raw snapshots is in ``tests/contracts/test_raw_snapshots.py``.
"""

from collections.abc import Callable

import pytest

from raftlog.errors import MissingFileError, OutOfSpaceError, SnapshotFrozenError, StorageError
from raftlog.file_system import FileSystem
from raftlog.offsets import OffsetAndEpoch
from raftlog.snapshot.directory import SnapshotDirectory
from raftlog.snapshot.file_raw import FileRawSnapshotReader, FileRawSnapshotWriter
from raftlog.snapshot.notifying import NotifyingRawSnapshotWriter
from raftlog.snapshot.paths import snapshot_name
from raftlog.testing.crash_points import CrashCounts, enumerate_crashes
from raftlog.testing.file_system.crash_states import CrashModel
from raftlog.testing.file_system.faults import Fault, Operation
from raftlog.testing.file_system.memory_file import MemoryFile
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.snapshot.snapshot_bytes import ID, written

DIRECTORY = "log"
NAME = "00000000000000000042-0000000003.checkpoint"
PART = "00000000000000000042-0000000003-7.checkpoint.part"
OLD_ID = OffsetAndEpoch(7, 1)
OLD = written([b"old"], snapshot_id=OLD_ID)
NEW = written([b"new" * 100, b"er" * 100])


def empty() -> MemoryFileSystem:
    """Return a file system with an empty directory."""
    file_system = MemoryFileSystem()
    file_system.make_directory(DIRECTORY)
    file_system.steps.clear()
    return file_system


def write(file_system: FileSystem, on_frozen: Callable[[OffsetAndEpoch], None] = lambda _: None) -> None:
    """Write a snapshot in two chunks."""
    part = FileRawSnapshotWriter(file_system, DIRECTORY, ID, "7")
    with NotifyingRawSnapshotWriter(part, on_frozen) as writer:
        writer.append(b"da")
        writer.append(b"ta")
        writer.freeze()


def contents(file_system: FileSystem, name: str) -> bytes:
    """Return all bytes of a file."""
    file = file_system.open_for_reads(f"{DIRECTORY}/{name}")
    return bytes(file.read_at(0, file.size()))


def test_it_is_synced_then_renamed_then_the_directory_is_synced() -> None:
    """When the freeze returns, the bytes under the name are durable, and so is the name."""
    file_system = empty()
    write(file_system)
    assert [(step.operation, step.path.removeprefix(f"{DIRECTORY}/")) for step in file_system.steps] == [
        (Operation.REMOVE, PART),
        (Operation.CREATE, PART),
        (Operation.WRITE, PART),
        (Operation.WRITE, PART),
        (Operation.SYNC, PART),
        (Operation.SET_READ_ONLY, PART),
        (Operation.RENAME, PART),
        (Operation.SYNC_DIRECTORY, DIRECTORY),
    ]
    assert file_system.list(DIRECTORY) == [NAME]
    with pytest.raises(StorageError, match="permission"):
        file_system.open(f"{DIRECTORY}/{NAME}")


@pytest.mark.parametrize(
    ("is_full", "skip", "step"),
    [
        *((False, step, step) for step in range(8)),
        *((True, skip, step) for skip, step in enumerate([1, 2, 3, 4, 6, 7])),  # The others need no room.
    ],
)
def test_a_failure_leaves_nothing_listed(is_full: bool, skip: int, step: int) -> None:
    """Whatever operation fails, the callback is not called, no part stays, and there is no second try."""
    told: list[OffsetAndEpoch] = []
    file_system = empty()
    file_system.open(f"{DIRECTORY}/{PART}", create=True).append(b"of a crash")
    file_system.steps.clear()
    file_system.faults.append(Fault(skip=skip, is_full=is_full, written_bytes=1))
    with pytest.raises(OutOfSpaceError if is_full else StorageError):
        write(file_system, told.append)
    assert told == []
    operations = [step.operation for step in file_system.steps]
    assert operations[step] not in operations[step + 1 :]
    # At first the part is that of a crash before; at last the name is there, and nobody knows whether it stays.
    assert list(file_system.list(DIRECTORY)) == {0: [PART], 7: [NAME]}.get(step, [])


def test_a_part_that_cannot_be_removed_does_not_hide_the_failure() -> None:
    """The error that comes out is the first one, and the part is left for the next start."""
    file_system = empty()
    file_system.faults += [Fault(Operation.SYNC), Fault(Operation.REMOVE, skip=1)]
    with pytest.raises(StorageError, match="sync"):
        write(file_system)
    assert file_system.list(DIRECTORY) == [PART]
    assert SnapshotDirectory(file_system, DIRECTORY).clean_up() == (PART,)


def test_after_a_failure_it_is_closed() -> None:
    """A writer whose disk failed takes nothing more, though the disk is well again."""
    file_system = empty()
    writer = FileRawSnapshotWriter(file_system, DIRECTORY, ID, "7")
    writer.append(b"da")
    file_system.faults.append(Fault(Operation.WRITE))
    with pytest.raises(StorageError):
        writer.append(b"ta")
    assert writer.size_bytes == 2
    with pytest.raises(SnapshotFrozenError):
        writer.append(b"ta")
    with pytest.raises(SnapshotFrozenError):
        writer.freeze()
    assert file_system.list(DIRECTORY) == []


def test_a_leftover_part_is_no_part_of_it() -> None:
    """A part of the same name, left by a crash, is removed before a new one begins."""
    file_system = empty()
    file_system.open(f"{DIRECTORY}/{PART}", create=True).append(b"of a crash")
    write(file_system)
    assert contents(file_system, NAME) == b"data"


def test_only_a_frozen_snapshot_is_read() -> None:
    """A part cannot be opened; a frozen snapshot knows its path, for errors."""
    file_system = empty()
    with FileRawSnapshotWriter(file_system, DIRECTORY, ID, "7"), pytest.raises(MissingFileError):
        FileRawSnapshotReader(file_system, DIRECTORY, ID)
    write(file_system)
    with FileRawSnapshotReader(file_system, DIRECTORY, ID) as reader:
        assert reader.path == f"{DIRECTORY}/{NAME}"


def crash_everywhere() -> CrashCounts:
    """Replace an old snapshot by a new one, crash it after each operation, and crash the clean-up after that."""
    start = empty()
    with SnapshotDirectory(start, DIRECTORY).create(OLD_ID) as old:
        old.append(OLD)
        old.freeze()

    def scenario(file_system: MemoryFileSystem, promise: Callable[[OffsetAndEpoch], None]) -> None:
        directory = SnapshotDirectory(file_system, DIRECTORY)
        with NotifyingRawSnapshotWriter(directory.create(ID), promise) as writer:
            writer.append(NEW[:300])
            writer.append(NEW[300:])
            writer.freeze()
        directory.delete(OLD_ID)

    def check(file_system: MemoryFileSystem, promised: OffsetAndEpoch | None) -> None:
        directory = SnapshotDirectory(file_system, DIRECTORY)
        directory.clean_up()
        ids = directory.snapshot_ids()
        assert (promised or OLD_ID) in ids
        assert list(file_system.list(DIRECTORY)) == sorted(map(snapshot_name, ids))
        for snapshot_id in ids:
            assert contents(file_system, snapshot_name(snapshot_id)) == {OLD_ID: OLD, ID: NEW}[snapshot_id]
            directory.verify(snapshot_id)

    return enumerate_crashes(scenario, check, start=start, crashes=2, model=CrashModel(sector_size_bytes=128))


def test_a_crash_anywhere_leaves_whole_snapshots() -> None:
    """After every crash, and one more during the clean-up, a listed snapshot is whole, and a frozen one is listed."""
    counts = crash_everywhere()
    print(counts)
    assert counts.is_complete
    assert counts.recoveries > 50


@pytest.mark.parametrize("forgotten", [(MemoryFile, "sync"), (MemoryFileSystem, "sync_directory")])
def test_a_forgotten_sync_is_caught(monkeypatch: pytest.MonkeyPatch, forgotten: tuple[type, str]) -> None:
    """The crashes above find a writer that does not sync the bytes, or the directory: they prove something."""
    monkeypatch.setattr(*forgotten, lambda *_: None)
    with pytest.raises(Exception, match=r"assert|no such file|header|footer") as caught:
        crash_everywhere()
    assert any("crash after" in note for note in caught.value.__notes__)
