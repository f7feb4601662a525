# SPDX-License-Identifier: Apache-2.0
"""Crashes, failing disks and full disks during work in progress."""

import functools

import pytest

from raftlog.errors import (
    OutOfSpaceError,
    StorageError,
)
from raftlog.testing.contracts.made_batches import raft_batch
from raftlog.testing.file_system.crash_states import CrashModel, picked_state
from raftlog.testing.file_system.faults import Fault, Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.file_logs import (
    expected,
    fill,
    kill,
    open_log,
    records_of,
    segment_path,
)
from tests.storage.disk_works import RETRIES, SYNCS, WORKS, any_work, begin


@any_work
@pytest.mark.parametrize("moment", ["prepared", "run", "finished"])
def test_a_crash_at_any_moment_loses_nothing_that_was_flushed(name: str, moment: str) -> None:
    """After any of the steps, whether the disk wrote on its own or for a sync."""
    log = begin(file_system := MemoryFileSystem())
    is_shorter = name.startswith("truncate") or name == "start anew"
    flushed = {"truncate in a segment": 7, "truncate across segments": 5}.get(name, 7)
    images = [file_system.image()]
    work = WORKS[name](log)
    if moment != "prepared":
        file_system.during_sync = lambda _: images.append(file_system.image())
        file_system.on_change = lambda: images.append(file_system.image())
        work.run()
        file_system.during_sync = file_system.on_change = None
    if moment == "finished":
        work.finish()
        flushed = log.flushed_offset
    for after_crash in file_system.crash_states():
        again = open_log(after_crash)
        assert again.quarantine is None
        assert again.end_offset.offset >= flushed
        assert is_shorter or records_of(again)[: 7 - again.start_offset] == expected(again.start_offset, 7)
    assert len(images) > 2 or moment == "prepared"


@any_work
def test_a_sync_that_fails_is_the_end_of_the_log(name: str) -> None:
    """Finishing the work raises any operation's error, nothing later is accepted, and startup finds flushed records."""
    skip = 0
    while True:
        log = begin(file_system := MemoryFileSystem())
        flushed = min(log.flushed_offset, {"truncate across segments": 5}.get(name, 7))
        work = WORKS[name](log)
        fault = Fault(Operation.SYNC, skip=skip) if skip < 50 else Fault(Operation.SYNC_DIRECTORY, skip=skip - 50)
        file_system.faults.append(fault)
        work.run()
        if not fault.is_spent:
            if skip >= 50:
                break
            skip = 50
            continue
        with pytest.raises(StorageError) as raised:
            work.finish()
        for choose in (lambda count: 0, lambda count: count - 1):
            crashed = open_log(MemoryFileSystem(picked_state(file_system.image(), choose, CrashModel())))
            assert crashed.end_offset.offset >= log.flushed_offset
        for call in (log.flush, log.prepare_flush, functools.partial(log.append_as_leader, raft_batch(8, 1), 1)):
            with pytest.raises(StorageError) as again:
                call()
            assert str(again.value) == str(raised.value)
        file_system.faults.clear()
        started = open_log(kill(file_system))
        assert started.quarantine is None
        assert started.end_offset.offset >= flushed
        skip += 1
    assert skip > 50 or name == "flush"


@any_work
def test_a_failure_meanwhile_invalidates_the_result(name: str) -> None:
    """An append whose write fails while work is under way: the work ends in the same error, run before or after it."""
    for runs_first in (True, False):
        log = begin(file_system := MemoryFileSystem())
        work = WORKS[name](log)
        before = log._flushed_offset
        if runs_first:
            work.run()
        log._guard.note(StorageError("f", "write", "it failed meanwhile"))
        syncs = [step for step in file_system.steps if step.operation in SYNCS]
        if not runs_first:
            work.run()
        assert runs_first or [step for step in file_system.steps if step.operation in SYNCS] == syncs
        with pytest.raises(StorageError, match="meanwhile"):
            work.finish()
        assert log._flushed_offset == before


@pytest.mark.parametrize("name", ["append in a new epoch", "append that rolls", "new epoch", "start anew"])
def test_without_room_the_log_is_as_it_was(name: str) -> None:
    """If any write finds no space, the same work can be started again and succeeds, unless it cannot be undone."""
    skip, refused = 0, 0
    while True:
        log = begin(file_system := MemoryFileSystem())
        work = WORKS[name](log)
        before = (log.end_offset.offset, log.last_fetched_epoch, log.flushed_offset)
        fault = Fault(Operation.WRITE, skip=skip, is_full=True)
        file_system.faults.append(fault)
        work.run()
        try:
            work.finish()
        except OutOfSpaceError:
            refused += 1
            assert (log.end_offset.offset, log.last_fetched_epoch) == before[:2]
            assert log.flushed_offset >= before[2]
            file_system.faults.clear()
            epoch = 2 if "epoch" in name else 1
            RETRIES.get(name, functools.partial(fill, count=1, epoch=epoch))(log)
            assert log.last_fetched_epoch == (3 if name == "start anew" else epoch)
            log.close()
            assert open_log(file_system).quarantine is None
        except StorageError:
            pass
        if not fault.is_spent:
            break
        skip += 1
    assert refused


def test_a_roll_that_succeeded_stays_where_what_follows_did_not_fit() -> None:
    """A new epoch begins with a new segment, and does not fit: the segment is there, in memory as on the disk."""
    log = begin(file_system := MemoryFileSystem())
    fill(log, 1)
    work = log.prepare_append_as_leader(raft_batch(9, 2), 2)
    file_system.faults.append(Fault(Operation.WRITE, path_end="epoch-checkpoint.tmp", is_full=True))
    work.run()
    with pytest.raises(OutOfSpaceError):
        work.finish()
    file_system.faults.clear()
    assert (log.end_offset.offset, log.flushed_offset, log.last_fetched_epoch) == (9, 9, 1)
    log.truncate_to(8)
    assert segment_path(9) not in file_system.contents()
    fill(log, 1, epoch=2)
    log.close()
    assert records_of(open_log(file_system))[8:] == [raft_batch(8, 2)]
