# SPDX-License-Identifier: Apache-2.0
"""A disk that fails at the n-th operation, for every n: nothing that was flushed is lost, and nothing is invented."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from raftlog.errors import LogError, OutOfSpaceError, StorageError
from raftlog.log.epochs import LeaderEpochs
from raftlog.offsets import EpochEntry, OffsetAndEpoch
from raftlog.storage.local_file_system import LocalFile, LocalFileSystem
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.recovery.leader_epoch_checkpoint import LeaderEpochCheckpoint
from raftlog.storage.recovery.recovery_point import load_durable_point
from raftlog.testing.contracts.made_batches import raft_batch
from raftlog.testing.file_system.faults import Fault, Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.file_logs import (
    BATCH_SIZE,
    DIRECTORY,
    expected,
    fill,
    flip,
    install_snapshot,
    kill,
    make_snapshot,
    open_log,
    records_of,
    segment_path,
)


class Promises:
    """The reports to a scenario so far."""

    def __init__(self) -> None:
        self.flushed = 0


def scenario(log: FileLog, promises: Promises) -> None:
    """Do a bit of everything."""
    fill(log, 4)
    log.flush()
    promises.flushed = 4
    fill(log, 4, epoch=2)
    log.flush()
    promises.flushed = 6  # What lies above may be truncated from here on.
    log.truncate_to(6)
    fill(log, 2, epoch=3)
    log.flush()
    promises.flushed = 8
    log.delete_before_snapshot(make_snapshot(log, 4, 1))
    install_snapshot(log, 20, 4)
    log.truncate_to_latest_snapshot()
    promises.flushed = 20
    fill(log, 1, epoch=4)
    log.close()
    promises.flushed = 21


def check(file_system: MemoryFileSystem, promises: Promises) -> None:
    """Open what is left, and look at it."""
    log = open_log(file_system)
    assert log.quarantine is None
    assert promises.flushed <= log.end_offset.offset
    for offset, batch in enumerate(records_of(log), log.start_offset):
        assert batch in [raft_batch(offset, epoch) for epoch in range(1, 5)]
    epoch = log.last_fetched_epoch + 1
    fill(log, 1, epoch)
    log.close()
    assert open_log(file_system).last_fetched_epoch == epoch


@pytest.mark.parametrize("is_full", [False, True])
@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_whichever_operation_fails_nothing_flushed_is_lost(is_full: bool, stride: int) -> None:
    """After the error the process ends; the next startup finds everything promised, and continues."""
    skip = 0
    while True:
        file_system, promises = MemoryFileSystem(), Promises()
        fault = Fault(skip=skip, is_full=is_full, written_bytes=7)
        try:
            log = open_log(file_system)
            file_system.faults.append(fault)
            scenario(log, promises)
        except StorageError:
            pass
        if not fault.is_spent:
            break
        check(kill(file_system), promises)
        skip += stride
    assert skip > (40 if is_full else 150)


@pytest.mark.parametrize("stride", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_a_log_on_a_full_disk_continues_when_there_is_space(stride: int) -> None:
    """Where there was no room, the call may be made again, and in the end all is there; other errors are the end."""
    skip = 0
    while True:
        log = open_log(file_system := MemoryFileSystem())
        fault = Fault(skip=skip, is_full=True, written_bytes=7)
        file_system.faults.append(fault)
        try:
            _append_truncate_and_delete(log)
        except StorageError:
            with pytest.raises(StorageError):
                log.flush()
        else:
            file_system.faults.clear()
            assert records_of(log) == [raft_batch(4, 2), raft_batch(5, 3)]
        if not fault.is_spent:
            break
        skip += stride
    assert skip > 20


def _again(call: Callable[[], object]) -> None:
    """Make a call, and once more if there was no room."""
    try:
        call()
    except OutOfSpaceError:
        call()


def _append_truncate_and_delete(log: FileLog) -> None:
    for offset, epoch in enumerate((1, 1, 1, 1, 2, 2)):
        _again(lambda offset=offset, epoch=epoch: log.append_as_leader(raft_batch(offset, epoch), epoch))  # type: ignore[misc]
    log.flush()
    _again(lambda: log.truncate_to(5))
    assert (log.end_offset.offset, log.last_fetched_epoch) == (5, 2)
    _again(lambda: log.append_as_leader(raft_batch(5, 3), 3))
    snapshot_id = OffsetAndEpoch(4, 1)
    _again(lambda: make_snapshot(log, 4, 1))
    _again(lambda: log.delete_before_snapshot(snapshot_id))
    assert log.snapshot_ids == (snapshot_id,)


def test_misuse_changes_nothing() -> None:
    """Refused calls leave the files alone."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 4)
    log.flush()
    log.update_high_watermark(3)
    before = file_system.contents()
    for call in (
        lambda: log.truncate_to(2),
        lambda: log.append_as_leader(raft_batch(5, 1), 1),
        lambda: log.append_as_leader(raft_batch(3, 1), 1),
        lambda: log.create_snapshot(OffsetAndEpoch(4, 1)) and None,
    ):
        with pytest.raises((LogError, ValueError)):
            call()
    assert not log.delete_before_snapshot(OffsetAndEpoch(3, 1))
    assert not log.truncate_to_latest_snapshot()
    assert log.read_snapshot(OffsetAndEpoch(3, 1)) is None
    assert file_system.contents() == before


def without_room_for_epoch_five(count: int) -> tuple[FileLog, MemoryFileSystem]:
    """Return a flushed log of so many records of epoch 4, after the first batch of epoch 5 did not fit."""
    log = open_log(file_system := MemoryFileSystem())
    fill(log, count, epoch=4)
    log.flush()
    file_system.faults.append(Fault(Operation.WRITE, path_end=".log", is_full=True))
    with pytest.raises(OutOfSpaceError):
        log.append_as_follower(raft_batch(count, 5), 5)
    return log, file_system


def test_an_epoch_whose_batch_did_not_fit_is_taken_back() -> None:
    """A batch of a lower epoch, from the next leader, is not damage after a restart."""
    log, file_system = without_room_for_epoch_five(2)
    assert (log.end_offset.offset, log.last_fetched_epoch) == (2, 4)
    log.append_as_follower(raft_batch(2, 4), 6)
    log.flush()
    log = open_log(kill(file_system))
    assert (log.quarantine, log.end_offset.offset, log.last_fetched_epoch) == (None, 3, 4)


def test_an_epoch_whose_batch_did_not_fit_is_taken_back_after_a_truncation() -> None:
    """Both files that witness epochs have those of the batches, although the truncation has dropped no epoch."""
    log, file_system = without_room_for_epoch_five(6)
    log.truncate_to_end_offset(OffsetAndEpoch(5, 4))
    for offset in range(5, 9):
        log.append_as_follower(raft_batch(offset, 4), 6)
    log.flush()
    epochs = LeaderEpochs((EpochEntry(4, 0),))
    assert LeaderEpochCheckpoint(file_system, DIRECTORY).load() == epochs
    assert load_durable_point(file_system, DIRECTORY).epochs == epochs


def test_records_acknowledged_after_a_failed_truncation_are_kept() -> None:
    """After a truncation without disk space for some step, a later flushed record that is damaged is noticed."""
    skip = 0
    while True:
        log = open_log(file_system := MemoryFileSystem())
        fill(log, 6)
        log.flush()
        fault = Fault(skip=skip, is_full=True)
        file_system.faults.append(fault)
        with contextlib.suppress(StorageError):
            with contextlib.suppress(OutOfSpaceError):
                log.truncate_to(4)
            file_system.faults.clear()
            fill(log, 1, epoch=1)
            log.flush()
            last_offset = log.flushed_offset - 1
            file_system = kill(file_system)
            flip(file_system, segment_path(last_offset // 3 * 3), last_offset % 3 * BATCH_SIZE + 70)
            assert open_log(file_system).quarantine is not None
        if not fault.is_spent:
            break
        skip += 1
    assert skip > 3


def test_an_append_that_was_interrupted_is_the_last() -> None:
    """Nobody knows what a write has left that Ctrl-C has ended: nothing may be written over half of it."""
    log = open_log(file_system := MemoryFileSystem())
    fill(log, 2)
    log.flush()

    def interrupt() -> None:
        if file_system.steps[-1].operation is Operation.WRITE and file_system.steps[-1].path.endswith(".log"):
            raise KeyboardInterrupt

    file_system.on_change = interrupt
    with pytest.raises(KeyboardInterrupt):
        log.append_as_leader(b"".join(expected(2, 5)), 1)
    file_system.on_change = None
    with pytest.raises(StorageError, match="KeyboardInterrupt"):
        fill(log, 1)
    log = open_log(kill(file_system))
    assert records_of(log) == expected(0, 5)


class CountingFiles(LocalFileSystem):
    """Counts the files that are open, and fails to remove or rename segments."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[LocalFile] = []

    def open(self, path: str, *, create: bool = False) -> LocalFile:
        """Open a file for reads and writes."""
        self.opened.append(super().open(path, create=create))
        return self.opened[-1]

    def open_for_reads(self, path: str) -> LocalFile:
        """Open a file for reads alone."""
        self.opened.append(super().open_for_reads(path))
        return self.opened[-1]

    def remove(self, path: str) -> None:
        """Remove a file, unless it is a segment."""
        if path.endswith(".log"):
            raise StorageError(path, "remove", "input/output error")
        super().remove(path)

    def rename(self, source: str, target: str) -> None:
        """Rename a file, unless it is a segment."""
        if source.endswith(".log"):
            raise StorageError(source, "rename", "input/output error")
        super().rename(source, target)

    def open_paths(self) -> list[str]:
        """Return the paths of the files that are open."""
        found = []
        for file in self.opened:
            with contextlib.suppress(StorageError):
                file.size()
                found.append(file.path)
        return found


def test_a_failing_open_leaves_no_file_open(tmp_path: Path) -> None:
    """If a restart at a snapshot fails, all opened files are closed."""
    directory = str(tmp_path / "log")
    log = FileLog.open(LocalFileSystem(), directory)
    fill(log, 3)
    log.flush()
    install_snapshot(log, 9, 2)
    log.close()
    files = CountingFiles()
    with pytest.raises(StorageError):
        FileLog.open(files, directory)
    assert files.opened
    assert files.open_paths() == []


def test_no_crash_brings_back_records_without_room() -> None:
    """The first of two batches was written whole before the disk was full; both have failed."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 1)
    log.flush()
    file_system.faults.append(Fault(Operation.WRITE, is_full=True, written_bytes=BATCH_SIZE + 9))
    with pytest.raises(OutOfSpaceError):
        log.append_as_leader(raft_batch(1, 1) + raft_batch(2, 1), 1)
    states = 0
    for after_crash in file_system.crash_states():
        states += 1
        assert records_of(open_log(after_crash)) == expected(0, 1)
    assert states


def test_a_log_whose_failed_records_cannot_be_removed_refuses_everything() -> None:
    """If the removal is not durable, it is unknown what a crash leaves."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 1)
    file_system.faults += [Fault(Operation.WRITE, is_full=True, written_bytes=9), Fault(Operation.SYNC, is_full=True)]
    for _ in range(2):
        with pytest.raises(StorageError) as caught:
            fill(log, 1)
        assert not isinstance(caught.value, OutOfSpaceError)
