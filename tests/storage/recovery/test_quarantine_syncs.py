# SPDX-License-Identifier: Apache-2.0
"""A log in quarantine fetches its lost records again, and a sync of them fails: which ones are durable.

The bytes of a failed sync are still in the page cache, and the next process reads them: the log then looks whole.
Records that it reports as flushed must survive a crash all the same.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs
import pytest

from raftlog.errors import RaftLogError
from raftlog.file_system import join
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.recovery.recovery_point import (
    FLUSH_MARK_NAME,
    RECOVERY_POINT_NAME,
    FlushMark,
    RecoveryPoint,
    StoredDurablePoint,
    load_durable_point,
    read_recovery_point,
)
from raftlog.testing.contracts.made_batches import raft_batch
from raftlog.testing.file_system.crash_states import CrashModel
from raftlog.testing.file_system.faults import Fault, Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.file_logs import BATCH_SIZE, DIRECTORY, cut, flip, install_snapshot, open_log, records_of, write_log

DURABLE: Final = 8
FEW: Final = CrashModel(sector_size_bytes=64, max_choices=32)
"""A batch is larger than a sector, so that a sync of one says nothing of those beside it."""
Act = Callable[[FileLog], object]


def damaged_at(offset: int) -> MemoryFileSystem:
    """The disk of a log of eight records that was closed in order; the record at an offset is damaged."""
    files = write_log(DURABLE)
    flip(files, join(DIRECTORY, f"{offset // 3 * 3:020}.log"), offset % 3 * BATCH_SIZE + BATCH_SIZE - 1)
    return files


def lost_from(offset: int) -> MemoryFileSystem:
    """The disk of the same log, without the records from an offset on."""
    files = write_log(DURABLE)
    for base_offset in range(offset // 3 * 3, DURABLE, 3):
        cut(files, join(DIRECTORY, f"{base_offset:020}.log"), max(0, offset - base_offset) * BATCH_SIZE)
    return files


def fetch(log: FileLog, end_offset: int, epoch: int = 1) -> None:
    """Append what a leader sends up to an offset, exclusive."""
    for offset in range(log.end_offset.offset, end_offset):
        log.append_as_follower(raft_batch(offset, epoch), epoch)


def failed(make: Callable[[], MemoryFileSystem], act: Act, operation: Operation) -> Iterator[MemoryFileSystem]:
    """Yield the disk after each sync of some work on a log has failed, and the process has ended."""
    for number in itertools.count():
        files = make()
        log = open_log(files)
        fault = Fault(operation, skip=number)
        files.faults.append(fault)
        try:
            act(log)
        except RaftLogError:
            yield files
        if not fault.is_spent:
            return
        files.faults.clear()


def check_what_is_flushed(files: MemoryFileSystem) -> bool:
    """Open a log on the same boot, and after each crash: what it says to be flushed stays. Say if it looks whole."""
    log = open_log(files)
    flushed, is_whole, start = log.flushed_offset, log.quarantine is None, log.start_offset
    told = records_of(log)[: flushed - start]
    for crashed in files.crash_states(FEW):
        again = open_log(crashed)
        assert (again.quarantine is None) >= is_whole
        assert records_of(again)[: flushed - start] == told
    return is_whole


@pytest.mark.parametrize("operation", [Operation.SYNC, Operation.SYNC_DIRECTORY])
@pytest.mark.parametrize("end_offset", [DURABLE - 1, DURABLE, DURABLE + 1])
@pytest.mark.parametrize("bad", [0, 2, 3, 6])
@pytest.mark.parametrize("make", [damaged_at, lost_from])
def test_what_was_fetched_again_is_on_the_disk(
    make: Callable[[int], MemoryFileSystem], bad: int, end_offset: int, operation: Operation
) -> None:
    """Wherever the loss is, and whether the log ends before the lost records, at their end or after it."""

    def act(log: FileLog) -> None:
        assert log.quarantine is not None
        fetch(log, end_offset)
        log.flush()

    found = [check_what_is_flushed(files) for files in failed(lambda: make(bad), act, operation)]
    assert found
    assert end_offset < DURABLE or operation is Operation.SYNC_DIRECTORY or any(found)


@pytest.mark.parametrize("end_offset", [DURABLE, DURABLE + 1])
def test_a_second_process_in_quarantine_trusts_no_more(end_offset: int) -> None:
    """Some of the lost records were fetched by one process, which ended in order, and the rest by the next one."""

    def made() -> MemoryFileSystem:
        files = damaged_at(2)
        with open_log(files) as log:
            fetch(log, 5)
        return files

    def act(log: FileLog) -> None:
        assert log.quarantine is not None
        fetch(log, end_offset)
        log.flush()

    assert any(list(map(check_what_is_flushed, failed(made, act, Operation.SYNC))))


@pytest.mark.parametrize("end_offset", [DURABLE - 1, DURABLE, DURABLE + 1])
def test_what_follows_a_snapshot_is_on_the_disk(end_offset: int) -> None:
    """A snapshot that ends before the lost records do replaces the damaged log, and records are fetched after it."""

    def act(log: FileLog) -> None:
        install_snapshot(log, 5, 1)
        assert log.truncate_to_latest_snapshot()
        fetch(log, end_offset)
        log.flush()

    assert [check_what_is_flushed(files) for files in failed(lambda: damaged_at(2), act, Operation.SYNC)]


def test_what_follows_a_snapshot_that_an_open_took_is_on_the_disk() -> None:
    """The same, where a process ended before it had put the snapshot in the log's place."""

    def made() -> MemoryFileSystem:
        files = lost_from(2)
        install_snapshot(open_log(files), 5, 1)
        return files

    def act(log: FileLog) -> None:
        assert (log.start_offset, log.end_offset.offset) == (5, 5)
        fetch(log, DURABLE + 1)
        log.flush()

    assert any(list(map(check_what_is_flushed, failed(made, act, Operation.SYNC))))


@pytest.mark.parametrize("name", [RECOVERY_POINT_NAME, FLUSH_MARK_NAME])
def test_one_of_both_files_is_enough(name: str) -> None:
    """Without the recovery point nothing is trusted, since marks do not say whether records were lost."""

    def act(log: FileLog) -> None:
        fetch(log, DURABLE + 1)
        log.flush()

    for files in failed(lambda: damaged_at(2), act, Operation.SYNC):
        files.remove(join(DIRECTORY, name))
        files.sync_directory(DIRECTORY)
        check_what_is_flushed(files)


def test_the_recovery_point_says_what_is_synced() -> None:
    """From the open that finds the loss on, until the log is whole again; and the flush mark says so at once."""
    files = damaged_at(2)

    def point() -> RecoveryPoint:
        return read_recovery_point(files.contents()[join(DIRECTORY, RECOVERY_POINT_NAME)])

    def synced() -> int | None:
        return load_durable_point(files, DIRECTORY).synced_end_offset

    before = point()
    assert (before.durable_end_offset, before.synced_end_offset) == (DURABLE, None)
    log = open_log(files)
    assert (point().durable_end_offset, point().synced_end_offset) == (DURABLE, 2)
    fetch(log, 4)
    log.flush()
    assert synced() in {2, 3}
    fetch(log, DURABLE)
    log.flush()
    assert log.quarantine is None
    assert (synced() or 0) < DURABLE
    fetch(log, DURABLE + 1)
    log.flush()
    assert synced() == DURABLE + 1
    log.close()
    assert point() == attrs.evolve(point(), durable_end_offset=DURABLE + 1, synced_end_offset=None)


@pytest.mark.parametrize(
    ("point", "marks", "synced"),
    [
        (None, (), None),
        (None, (FlushMark(1, 9),), 0),
        (RecoveryPoint(8, generation=1), (), 8),
        (RecoveryPoint(8, generation=1), (FlushMark(1, 9),), 9),
        (RecoveryPoint(8, generation=1, synced_end_offset=0), (), 0),
        (RecoveryPoint(8, generation=1, synced_end_offset=7), (FlushMark(1, 8),), 7),
        (RecoveryPoint(8, generation=1, synced_end_offset=7), (FlushMark(1, 9),), 9),
        (RecoveryPoint(8, generation=1, synced_end_offset=7), (FlushMark(0, 9),), 7),
    ],
)
def test_what_both_files_say_is_synced(point: Any, marks: Any, synced: int | None) -> None:
    """A mark above the durable end of its recovery point was written after all was synced; one at it may be a copy."""
    assert StoredDurablePoint(point, marks).synced_end_offset == synced
