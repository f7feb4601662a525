# SPDX-License-Identifier: Apache-2.0
"""A log in files while work for its disk is in progress: what continues, what is refused, what is in force."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import (
    OffsetOutOfRangeError,
    RaftLogError,
    StorageError,
    WorkUnderWayError,
)
from raftlog.log.replicated_log import Isolation
from raftlog.storage.segments.log_config import LogConfig
from raftlog.testing.contracts.made_batches import raft_batch
from raftlog.testing.file_system.faults import Step
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.file_logs import (
    DIRECTORY,
    expected,
    fill,
    open_log,
    records_of,
    segment_path,
)
from tests.storage.disk_works import HOLDS_APPENDS, START, WORKS, any_work, begin


@any_work
def test_the_three_parts_do_what_the_blocking_call_does(name: str) -> None:
    """The files are the same in the end, and so is what a start makes of them."""
    states = []
    for is_whole in (False, True):
        log = begin(file_system := MemoryFileSystem())
        work = WORKS[name](log)
        if is_whole:
            work.complete()
        else:
            work.run()
            work.finish()
        states.append(
            (log.start_offset, log.high_watermark, log.end_offset, log.flushed_offset, file_system.contents())
        )
    assert states[0] == states[1]


@any_work
def test_no_second_work_is_begun(name: str) -> None:
    """Neither in the second form nor in the first: it is refused, and nothing has changed."""
    log = begin(file_system := MemoryFileSystem())
    work = WORKS[name](log)
    before = file_system.contents()
    for call in (
        log.prepare_flush,
        log.flush,
        lambda: log.truncate_to(log.end_offset.offset),
        lambda: log.initialize_leader_epoch(9),
        lambda: log.append_as_leader(raft_batch(log.end_offset.offset, 9), 9),
        lambda: log.delete_before_snapshot(START),
        log.truncate_to_latest_snapshot,
        lambda: log.clean(0),
    ):
        with pytest.raises(WorkUnderWayError, match="must be finished first"):
            call()
    assert file_system.contents() == before
    work.complete()
    log.flush()
    assert log.flushed_offset == log.end_offset.offset


@any_work
@pytest.mark.parametrize("is_run", [False, True])
def test_appends_continue_or_are_refused(name: str, is_run: bool) -> None:
    """Appends that do not touch the work continue, before and after it is run; the next flush covers them."""
    log = begin(MemoryFileSystem())
    work = WORKS[name](log)
    if is_run:
        work.run()
    batch, end_offset = raft_batch(log.end_offset.offset, 1), log.end_offset.offset
    if name in HOLDS_APPENDS:
        for append in (log.append_as_leader, log.append_as_follower, log.prepare_append_as_leader):
            with pytest.raises(WorkUnderWayError):
                append(batch, 1)
        assert log.end_offset.offset == end_offset
        return
    log.append_as_leader(batch, 1)
    assert not is_run or work.finish().value in (8, True)
    if is_run:
        assert (log.flushed_offset, log.end_offset.offset) == (8, 9)
        log.flush()
        assert log.flushed_offset == 9


@any_work
@pytest.mark.parametrize("is_run", [False, True])
def test_reads_continue(name: str, is_run: bool) -> None:
    """Remaining records are read as before; a read of records to be truncated is refused, but is not called damage."""
    log = begin(MemoryFileSystem())
    log.update_high_watermark(6)
    work = WORKS[name](log) if "truncate across" not in name else log.prepare_truncate_to(6)
    cut = {"truncate in a segment": 7, "truncate across segments": 6}.get(name, 8)
    if is_run:
        work.run()
    assert [bytes(log.read(offset, Isolation.UNCOMMITTED, 0).records) for offset in range(cut)] == expected(0, cut)
    assert log.high_watermark.offset == 6
    assert bytes(log.read(0, Isolation.COMMITTED).records) == b"".join(expected(0, 3))
    if cut < 8:
        with pytest.raises(WorkUnderWayError):
            log.read(cut, Isolation.UNCOMMITTED)
    with pytest.raises(OffsetOutOfRangeError):
        log.read(99, Isolation.UNCOMMITTED)


@any_work
def test_the_high_watermark_stays_below_what_will_be_left(name: str) -> None:
    """Records that are about to be truncated are never committed meanwhile."""
    log = begin(MemoryFileSystem())
    work = WORKS[name](log)
    log.update_high_watermark(99)
    work.complete()
    assert log.start_offset <= log.high_watermark.offset <= log.end_offset.offset


@any_work
@pytest.mark.parametrize("is_run", [False, True])
def test_closing_ends_what_is_under_way(name: str, is_run: bool) -> None:
    """Work is cancelled if it was not run, and in force if it was; finishing it later changes nothing."""
    log = begin(file_system := MemoryFileSystem())
    work = WORKS[name](log)
    if is_run:
        work.run()
    log.close()
    before = file_system.contents()
    if is_run:
        work.finish()
    else:
        with pytest.raises(StorageError, match="closed"):
            work.finish()
        with pytest.raises(WorkUnderWayError):
            work.run()
    assert file_system.contents() == before
    again = open_log(file_system)
    assert again.quarantine is None
    if not is_run and name != "start anew":  # Which the next start does, as a snapshot is ahead.
        assert again.recovery.was_closed
        assert records_of(again)[:8] == expected(0, 8)


def test_a_log_is_not_closed_under_what_is_run() -> None:
    """The files stay open: a closed one could be another's by then."""
    log = begin(file_system := MemoryFileSystem())
    work = log.prepare_flush()
    refused = []

    def close(_: Step) -> None:
        with pytest.raises(WorkUnderWayError):
            log.close()
        refused.append(True)

    file_system.during_sync = close
    work.run()
    file_system.during_sync = None
    assert refused
    assert work.finish().value == 8
    log.close()


def test_a_sync_does_not_cover_later_appends() -> None:
    """Whether it comes before or after the sync began: flushed is what was there when the flush was prepared."""
    log = open_log(file_system := MemoryFileSystem(), LogConfig())
    fill(log, 8)
    work = log.prepare_flush()
    fill(log, 1)
    file_system.during_sync = lambda _: fill(log, 1)
    work.run()
    file_system.during_sync = None
    assert (work.finish().value, log.flushed_offset, log.end_offset.offset) == (8, 8, 10)
    ends = set()
    for after_crash in file_system.crash_states():
        again = open_log(after_crash)
        assert again.quarantine is None
        ends.add(again.end_offset.offset)
    assert ends == {9, 10}  # The sync itself has covered what was there when it began; nobody was told.


def test_an_earlier_result_is_distinguished() -> None:
    """A flush whose result comes once more after a truncation and a new leader: it says so, and nothing changes."""
    log = begin(MemoryFileSystem())
    work = log.prepare_flush()
    work.run()
    early = work.finish()
    assert (early.value, early.epoch, early.generation) == (8, 1, log.generation)
    cut = log.prepare_truncate_to(7)
    cut.run()
    assert cut.finish().value == 7
    assert log.generation > early.generation
    entered = log.prepare_leader_epoch(5).complete()
    assert (entered.epoch, entered.generation) == (5, log.generation)
    pointers = (log.flushed_offset, log.end_offset)
    late = work.finish()
    assert late is early
    assert (late.epoch, late.generation) != (log.last_fetched_epoch, log.generation)
    assert (log.flushed_offset, log.end_offset) == pointers


def test_the_generation_grows_over_starts() -> None:
    """Results from before a restart are distinguished as well."""
    log = begin(file_system := MemoryFileSystem())
    first = log.generation
    log.truncate_to(7)
    second = log.generation
    log.close()
    assert first < second < open_log(file_system).generation


def test_bytes_that_wait_are_a_copy() -> None:
    """Whoever lent them may write over them at once."""
    log = begin(MemoryFileSystem())
    lent = bytearray(raft_batch(8, 2))
    work = log.prepare_append_as_leader(memoryview(lent), 2)
    lent[:] = bytes(len(lent))
    assert work.complete().value == (8, 8)
    assert bytes(log.read(8, Isolation.UNCOMMITTED).records) == raft_batch(8, 2)


def test_an_append_that_needs_no_sync_is_done_at_once() -> None:
    """There is nothing to run, and the change is in force before it is finished."""
    log = begin(MemoryFileSystem())
    work = log.prepare_append_as_leader(raft_batch(8, 1), 1)
    assert (work.is_needed, log.end_offset.offset, work.finish().value) == (False, 9, (8, 8))
    follower = log.prepare_append_as_follower(raft_batch(9, 1)[:20], 1)
    assert (follower.is_needed, follower.finish().value) == (False, None)


@given(st.lists(st.sampled_from(list(WORKS)), min_size=1, max_size=4), st.booleans())
def test_pointers_keep_their_order_whatever_is_under_way(names: list[str], is_run: bool) -> None:
    """Start, high watermark, flushed and end: before, between and after, one work after the other."""
    log = begin(MemoryFileSystem())
    for name in names:
        work = None
        with contextlib.suppress(RaftLogError, AssertionError):  # It is not for a log that has moved on.
            work = WORKS[name](log)
        if work is None:
            continue
        for is_now in (False, True):
            if is_now and is_run and work.is_needed:
                work.run()
            assert log.start_offset <= log.high_watermark.offset <= log.end_offset.offset
            assert log.flushed_offset <= log.end_offset.offset
        work.finish() if is_run else work.complete()
        assert log.start_offset <= log.high_watermark.offset <= log.end_offset.offset
        assert log.start_offset <= log.flushed_offset <= log.end_offset.offset


def test_the_lock_error_names_the_files() -> None:
    """Whoever is refused learns what must be finished."""
    log = begin(MemoryFileSystem())
    work = log.prepare_flush()
    assert work.paths[0] == segment_path(6)
    assert DIRECTORY in work.paths
    with pytest.raises(WorkUnderWayError, match=segment_path(6)):
        log.flush()
