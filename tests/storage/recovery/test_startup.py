# SPDX-License-Identifier: Apache-2.0
"""Startup recovery of faulty directories: the fault table, row by row."""

import pytest

from raftlog.errors import StorageError
from raftlog.file_system import join
from raftlog.offsets import OffsetAndEpoch
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.recovery.recovery_report import ActionKind
from raftlog.testing.contracts.made_batches import raft_batch, snapshot_bytes
from raftlog.testing.crash_points import enumerate_crashes
from raftlog.testing.file_system.faults import Fault, Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.file_logs import (
    BATCH_SIZE,
    DIRECTORY,
    cut,
    expected,
    fill,
    flip,
    forget_durable_point,
    install_snapshot,
    kill,
    make_snapshot,
    open_log,
    overwrite,
    records_of,
    segment_path,
    write_log,
    write_unflushed_log,
)


def put_snapshot(file_system: MemoryFileSystem, snapshot_id: OffsetAndEpoch) -> OffsetAndEpoch:
    """Put a snapshot in the directory without the log's knowledge, as a crash may."""
    path = join(DIRECTORY, f"{snapshot_id.offset:020}-{snapshot_id.epoch:010}.checkpoint")
    file_system.open(path, create=True).append(snapshot_bytes(snapshot_id))
    return snapshot_id


def kinds(log) -> set[ActionKind]:  # type: ignore[no-untyped-def]
    """The kinds of actions that the start took."""
    return {action.kind for action in log.recovery.actions}


@pytest.mark.parametrize("left", [1, 16, 17, 60, BATCH_SIZE - 1])
def test_torn_tail_above_the_durable_point_is_cut(left: int) -> None:
    """An unacknowledged torn write is truncated and reported."""
    file_system = write_unflushed_log()
    cut(file_system, segment_path(6), 2 * BATCH_SIZE + left)
    log = open_log(file_system)
    assert (log.end_offset.offset, log.quarantine) == (8, None)
    assert ActionKind.CUT in kinds(log)
    assert any(line.startswith(f"{segment_path(6)}: cut: {left} bytes") for line in log.recovery.lines())
    assert records_of(log) == expected(0, 8)
    assert len(file_system.contents()[segment_path(6)]) == 2 * BATCH_SIZE


def test_zero_filled_tail_is_cut() -> None:
    """Zeros after the last batch, as ext4 leaves them, are a torn tail."""
    file_system = write_unflushed_log()
    overwrite(file_system, segment_path(6), 3 * BATCH_SIZE, bytes(5000))
    log = open_log(file_system)
    assert (log.end_offset.offset, log.quarantine) == (9, None)
    assert ActionKind.CUT in kinds(log)


def test_zeros_in_place_of_the_last_batch_are_cut() -> None:
    """An unflushed batch with only its length on the disk is a torn tail."""
    file_system = write_unflushed_log()
    overwrite(file_system, segment_path(6), 2 * BATCH_SIZE, bytes(BATCH_SIZE))
    log = open_log(file_system)
    assert (log.end_offset.offset, log.quarantine) == (8, None)


def test_kafkas_directory_is_durable_up_to_its_newest_snapshot() -> None:
    """Without our files, a batch below a snapshot that verifies was committed: if it is bad, that is damage."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 3)
    make_snapshot(log, 3)
    log.close()
    forget_durable_point(file_system)
    torn = file_system.settled()
    cut(file_system, segment_path(0), 3 * BATCH_SIZE - 1)
    assert open_log(file_system).start_offset == 3  # All that was lost is in the snapshot.
    overwrite(torn, segment_path(0), 3 * BATCH_SIZE, raft_batch(3, 1)[:-1])
    log = open_log(torn)
    assert (log.start_offset, log.end_offset.offset, log.quarantine) == (0, 3, None)


@pytest.mark.parametrize("is_torn", [False, True])
def test_a_log_of_kafkas_that_ends_below_a_snapshot_of_a_lower_epoch_is_damaged(*, is_torn: bool) -> None:
    """By its epoch the snapshot is not ahead of the log, but the committed records that it covers are missing."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 3, epoch=2)
    log.close()
    forget_durable_point(file_system)
    snapshot_id = put_snapshot(file_system, OffsetAndEpoch(6, 1))
    if is_torn:
        cut(file_system, segment_path(0), 3 * BATCH_SIZE - 1)
    log = open_log(file_system)
    assert log.quarantine is not None
    assert (log.quarantine.first_bad_offset, log.quarantine.durable_end_offset) == (2 if is_torn else 3, 6)
    assert log.snapshot_ids == (snapshot_id,)


def test_wrong_and_missing_indexes_are_rebuilt() -> None:
    """Indexes follow from the segment: they are compared with it, and rebuilt if they differ."""
    file_system = write_log(8)
    whole = {path: data for path, data in file_system.contents().items() if path.endswith("index")}
    file_system.remove(segment_path(0, ".index"))
    flip(file_system, segment_path(3, ".index"), 7)
    cut(file_system, segment_path(3, ".timeindex"), 13)
    overwrite(file_system, segment_path(6, ".index"), 0, bytes(800))
    log = open_log(file_system)
    rebuilt = {action.path for action in log.recovery.actions if action.kind is ActionKind.REBUILT}
    assert rebuilt == {
        segment_path(0, ".index"),
        segment_path(3, ".index"),
        segment_path(3, ".timeindex"),
        segment_path(6, ".index"),
    }
    log.close()
    assert {path: data for path, data in file_system.contents().items() if path.endswith("index")} == whole


def test_allotted_zeros_are_no_entries() -> None:
    """An index that Kafka has allotted, and not filled, is right as it is."""
    file_system = write_log(2)
    overwrite(file_system, segment_path(0, ".timeindex"), 24, bytes(1200))
    assert open_log(file_system).recovery.actions == ()


@pytest.mark.parametrize("data", [b"", b"0\n1\n1 0\n", b"0\n2\n1 0\n3 5\n", b"\xff", None])
def test_wrong_epoch_checkpoint_is_rebuilt(data: bytes | None) -> None:
    """The epochs follow from the batches."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 3, epoch=1)
    fill(log, 3, epoch=3)
    log.close()
    path = join(DIRECTORY, "leader-epoch-checkpoint")
    assert file_system.contents()[path] == b"0\n2\n1 0\n3 3\n"
    file_system.remove(path)
    if data is not None:
        file_system.open(path, create=True).append(data)
    log = open_log(file_system)
    assert kinds(log) == {ActionKind.REBUILT}
    assert file_system.contents()[path] == b"0\n2\n1 0\n3 3\n"


def test_an_epoch_that_was_entered_and_never_came_is_dropped() -> None:
    """A leader's epoch without a batch is forgotten after a restart. Source: kraft-facts on initializeLeaderEpoch."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 3)
    log.initialize_leader_epoch(7)
    assert log.last_fetched_epoch == 7
    log.close()
    log = open_log(file_system)
    assert log.last_fetched_epoch == 1


def test_crash_between_snapshot_and_truncation_is_finished() -> None:
    """A snapshot that is ahead of the log wins at the next start."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 5)
    log.flush()
    snapshot_id = install_snapshot(log, 20, 4)
    log = open_log(kill(file_system))
    assert (log.start_offset, log.end_offset.offset, log.last_fetched_epoch) == (20, 20, 4)
    assert (log.snapshot_ids, log.quarantine) == ((snapshot_id,), None)
    assert (log.recovery.start_offset, log.recovery.end_offset) == (20, 20)


def test_rotten_snapshot_is_set_aside_and_an_older_one_used() -> None:
    """A snapshot that does not verify is not listed, and the log continues from the one before it."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 8)
    make_snapshot(log, 3)
    make_snapshot(log, 6)
    log.close()
    rotten = join(DIRECTORY, f"{6:020}-{1:010}.checkpoint")
    file_system.remove(rotten)
    file_system.open(rotten, create=True)  # As ext4 leaves it.
    log = open_log(file_system)
    assert log.snapshot_ids == (OffsetAndEpoch(3, 1),)
    assert (log.start_offset, log.quarantine) == (0, None)
    assert kinds(log) == {ActionKind.SET_ASIDE}
    assert f"{rotten}.damaged-0" in file_system.contents()


def test_a_start_inside_a_segment_is_remembered() -> None:
    """Kafka forgets it; ours is there after a restart, as long as a snapshot covers it."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 8)
    make_snapshot(log, 4)
    log.delete_before_snapshot(make_snapshot(log, 5))
    assert (log.start_offset, log.snapshot_ids) == (5, (OffsetAndEpoch(5, 1),))
    log.close()
    log = open_log(file_system)
    assert (log.start_offset, log.high_watermark.offset) == (5, 5)
    assert records_of(log) == expected(5, 8)
    assert segment_path(0) not in file_system.contents()
    log.close()
    file_system.remove(join(DIRECTORY, f"{5:020}-{1:010}.checkpoint"))
    assert open_log(file_system).quarantine is not None


def test_segments_that_a_deletion_left_are_removed() -> None:
    """Segments that a crash brings back although a snapshot covers them are removed at the next startup."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 11)
    first = file_system.contents()[segment_path(0)]
    log.delete_before_snapshot(make_snapshot(log, 7))
    log.close()
    file_system.open(segment_path(0), create=True).append(first)
    old = join(DIRECTORY, f"{3:020}-{1:010}.checkpoint")
    put_snapshot(file_system, OffsetAndEpoch(3, 1))
    log = open_log(file_system)
    assert {action.path for action in log.recovery.actions} == {segment_path(0), old}
    assert (log.start_offset, log.snapshot_ids, log.quarantine) == (7, (OffsetAndEpoch(7, 1),), None)
    assert records_of(log) == expected(7, 11)


def test_a_damaged_recovery_point_is_reported_and_the_mark_counts() -> None:
    """Where the recovery point does not check, the flush marks say what was durable."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 2)
    log.flush()
    file_system = kill(file_system)
    flip(file_system, join(DIRECTORY, "raftlog-recovery-point"), 50)
    log = open_log(file_system)
    assert kinds(log) >= {ActionKind.IGNORED}
    assert (log.recovery.durable_end_offset, log.end_offset.offset, log.quarantine) == (2, 2, None)


def test_old_marks_do_not_count_after_a_truncation() -> None:
    """Durable records that were truncated are not damage."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 8)
    log.flush()
    log.truncate_to(2)
    log = open_log(kill(file_system))
    assert (log.end_offset.offset, log.quarantine) == (2, None)


def test_producer_snapshots_above_the_end_are_removed() -> None:
    """Kafka's producer state for removed offsets is removed with them; all other files are left alone."""
    file_system = write_unflushed_log()
    for offset in (3, 8, 9):
        file_system.open(segment_path(offset, ".snapshot"), create=True).append(b"\0\1Hg\x4b\xc7\0\0\0\0")
    cut(file_system, segment_path(6), 3 * BATCH_SIZE - 1)
    open_log(file_system)
    left = [path for path in file_system.contents() if path.endswith(".snapshot")]
    assert left == [segment_path(3, ".snapshot"), segment_path(8, ".snapshot")]


def test_failures_of_a_start_leave_nothing_that_another_start_cannot_mend() -> None:
    """Whichever operation of a start fails, the next start finds the log whole."""
    source = write_unflushed_log()
    cut(source, segment_path(6), 3 * BATCH_SIZE - 1)
    skip = 0
    while True:
        file_system = source.settled()
        fault = Fault(skip=skip)
        file_system.faults.append(fault)
        try:
            log = open_log(file_system)
            assert log.end_offset.offset == 8 or log.quarantine is not None  # A read that fails is damage.
        except StorageError:
            pass
        if not fault.is_spent:
            break
        log = open_log(kill(file_system))
        assert (log.end_offset.offset, log.quarantine) == (8, None)
        skip += 1
    assert skip > 30


def test_a_new_directory_is_an_empty_log() -> None:
    """A directory that is not there is made."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    assert (log.start_offset, log.end_offset.offset, log.recovery.actions) == (0, 0, ())
    assert log.recovery.lines() == ("the log holds offsets 0 to 0 (exclusive)",)


def test_a_snapshot_that_was_refused_is_refused_by_a_restart() -> None:
    """A snapshot of a later epoch that ends below the log start takes nothing with it but itself."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 8, epoch=2)
    log.flush()
    snapshot_id = make_snapshot(log, 5, epoch=2)
    assert log.delete_before_snapshot(snapshot_id)
    put_snapshot(file_system, OffsetAndEpoch(3, 9))
    log = open_log(kill(file_system))
    assert (log.start_offset, log.snapshot_ids, log.quarantine) == (5, (snapshot_id,), None)
    assert records_of(log) == expected(5, 8, epoch=2)


def test_a_restart_at_a_snapshot_is_reported_and_done_once() -> None:
    """Records that a snapshot replaces are kept and reported; the next startup finds nothing to do."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 5)
    log.flush()
    make_snapshot(log, 3)
    install_snapshot(log, 20, 4)
    before = file_system.contents()
    log = open_log(file_system := kill(file_system))
    after = file_system.contents()
    assert {action.kind for action in log.recovery.actions} == {ActionKind.SUPERSEDED}
    kept = {action.path: action.copy for action in log.recovery.actions}
    older = join(DIRECTORY, f"{3:020}-{1:010}.checkpoint")
    assert kept == {path: f"{path}.superseded-{20:020}-{4:010}" for path in (segment_path(0), segment_path(3), older)}
    assert all(after[str(copy)] == before[path] and path not in after for path, copy in kept.items())
    for _ in range(2):
        log = open_log(file_system := kill(file_system))
        assert (log.recovery.actions, log.start_offset) == ((), 20)
        assert not any(step.path.endswith(".log") for step in file_system.steps if step.operation is Operation.REMOVE)


def test_a_log_that_starts_at_its_snapshot_keeps_the_ones_of_lower_epochs() -> None:
    """An empty log is of the epoch of the snapshot that it starts at: none of that epoch is ahead of it."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 4, epoch=3)
    log.flush()
    snapshot_id = make_snapshot(log, 4, epoch=3)
    assert log.delete_before_snapshot(snapshot_id)
    other = put_snapshot(file_system, OffsetAndEpoch(9, 2))
    log = open_log(kill(file_system))
    assert (log.snapshot_ids, log.recovery.actions, log.end_offset.offset) == ((other, snapshot_id), (), 4)


def test_a_snapshot_that_reads_again_makes_the_log_whole_again() -> None:
    """Where a disk failed for a while, the next start finds all as it was, and nothing in its way."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 8)
    log.delete_before_snapshot(make_snapshot(log, 6))
    log.close()
    file_system.faults.append(Fault(Operation.READ, path_end=".checkpoint"))
    log = open_log(file_system)
    assert log.quarantine is not None
    log.close()
    log = open_log(file_system)
    assert (log.start_offset, log.quarantine, log.snapshot_ids) == (6, None, (OffsetAndEpoch(6, 1),))
    assert records_of(log) == expected(6, 8)
    log.close()
    assert open_log(file_system).recovery.actions == ()


def test_a_crash_while_restarting_at_a_snapshot_leaves_no_hole() -> None:
    """Segments are removed from the end: after a crash in between, the next startup begins at the snapshot."""
    source = MemoryFileSystem()
    log = open_log(source)
    fill(log, 9)
    log.flush()
    snapshot_id = install_snapshot(log, 2, 9)

    def check(file_system: MemoryFileSystem, promised: object) -> None:
        found = open_log(file_system)
        assert (found.quarantine, found.start_offset, found.snapshot_ids) == (None, 2, (snapshot_id,))

    assert enumerate_crashes(lambda file_system, promise: open_log(file_system), check, start=kill(source)).is_complete


def test_a_crash_in_a_truncation_leaves_no_hole() -> None:
    """Segments are removed from the end: after a crash in between, a prefix of the log is left."""
    source = MemoryFileSystem()
    log = open_log(source)
    fill(log, 9)
    log.close()

    def check(file_system: MemoryFileSystem, promised: object) -> None:
        found = open_log(file_system)
        assert found.quarantine is None
        assert records_of(found) == expected(0, found.end_offset.offset)
        assert found.end_offset.offset in {1, 2, 3, 6, 9}

    assert enumerate_crashes(lambda file_system, promise: open_log(file_system).truncate_to(1), check, start=source)


def test_the_result_of_startup_is_durable() -> None:
    """The writes of a killed process may be only in memory; once they are reported as flushed, no crash loses them."""
    file_system = MemoryFileSystem()
    fill(open_log(file_system), 2)
    log = open_log(file_system)
    assert log.flushed_offset == 2
    log = open_log(file_system.crash(lambda count: 0))
    assert (log.quarantine, records_of(log)) == (None, expected(0, 2))


def test_the_directories_above_a_new_log_are_durable() -> None:
    """Flushed records survive even if the parent directories had to be created."""
    file_system = MemoryFileSystem()
    log = FileLog.open(file_system, "made/for/it")
    log.append_as_leader(raft_batch(0, 1), 1)
    log.flush()
    log = FileLog.open(file_system.crash(lambda count: 0), "made/for/it")
    assert records_of(log) == [raft_batch(0, 1)]


def test_log_truncated_to_its_start_inside_a_segment_opens_as_it_was_closed() -> None:
    """All batches of its segment are below the start: they give the empty log no epoch, and nothing is rebuilt."""
    file_system = write_log(3)
    log = open_log(file_system)
    assert log.delete_before_snapshot(make_snapshot(log, 2))
    log.truncate_to(2)
    state = log.state
    log.close()
    log = open_log(file_system)
    assert (log.state, log.last_fetched_epoch, log.recovery.actions) == (state, 1, ())


@pytest.mark.parametrize("start_offset", [6, 7, 8])
def test_records_after_the_snapshot_that_a_log_starts_at_are_not_lost_unseen(start_offset: int) -> None:
    """A log starts at a snapshot, and loses all of its last segment: an open does not take that for a removal."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 8)
    assert log.delete_before_snapshot(make_snapshot(log, start_offset))
    last = [path for path, data in file_system.contents().items() if path.endswith(".log") and data][-1:]
    log.close()
    for path in last:
        cut(file_system, path, 0)
    is_lost = start_offset < 8
    for _ in range(2):
        log = open_log(file_system := kill(file_system))
        assert (log.start_offset, log.end_offset.offset) == (start_offset, start_offset)
        assert (log.quarantine is not None) == is_lost
        if log.quarantine is not None:
            assert (log.quarantine.first_bad_offset, log.quarantine.durable_end_offset) == (start_offset, 8)
