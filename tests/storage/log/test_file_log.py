# SPDX-License-Identifier: Apache-2.0
"""Tests of logs in files only: rolls, the order of writes, and failing disks."""

import contextlib
from collections.abc import Callable

import pytest

from raftlog.errors import CorruptBatchError, InvalidRecordError, OutOfSpaceError, StorageError
from raftlog.file_system import join
from raftlog.log.replicated_log import Isolation
from raftlog.offsets import OffsetAndEpoch, SegmentPosition
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.recovery.recovery_point import RECOVERY_POINT_NAME, RecoveryPoint
from raftlog.storage.segments.log_config import LogConfig
from raftlog.testing.contracts.made_batches import raft_batch, snapshot_bytes
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
from tests.strategies import TIMESTAMP, batch_bytes

DEFAULTS = LogConfig()


def steps_of(file_system: MemoryFileSystem, action: Callable[[], object]) -> list[tuple[Operation, str]]:
    """Do something, and return the changes that it made to the disk, in order, by file name."""
    before = file_system.step_count
    action()
    changes = {*Operation} - {Operation.OPEN, Operation.READ, Operation.LIST}
    steps = [step for step in file_system.steps if step.number > before and step.operation in changes]
    return [(step.operation, step.path.rpartition("/")[2]) for step in steps]


def test_leaving_a_with_block_closes_the_log() -> None:
    """Records appended in the block are durable after it, and the log was closed in order, even if the block raises."""
    file_system = MemoryFileSystem()
    with contextlib.suppress(ZeroDivisionError), open_log(file_system) as log:
        fill(log, 2)
        raise ZeroDivisionError
    with open_log(file_system.crash(lambda count: 0)) as log:
        assert (log.end_offset.offset, log.recovery.was_closed) == (2, True)


def test_a_flush_is_one_sync() -> None:
    """An append is one write, a flush is one sync and a mark that is not synced; nothing is made or renamed."""
    file_system = MemoryFileSystem()
    log = open_log(file_system, DEFAULTS)
    fill(log, 1)
    log.flush()
    name = segment_path(0).rpartition("/")[2]
    assert steps_of(file_system, lambda: fill(log, 2)) == [(Operation.WRITE, name)] * 2
    assert steps_of(file_system, log.flush) == [(Operation.SYNC, name), (Operation.WRITE, "raftlog-flush-mark")]
    assert steps_of(file_system, log.flush) == []
    assert log.flushed_offset == 3


def test_a_new_epoch_is_durable_before_its_first_batch() -> None:
    """The epoch checkpoint is replaced before the batch is written."""
    file_system = MemoryFileSystem()
    log = open_log(file_system, DEFAULTS)
    steps = steps_of(file_system, lambda: fill(log, 1, epoch=4))
    renames = [
        steps.index((Operation.RENAME, f"{name}.tmp")) for name in ("leader-epoch-checkpoint", RECOVERY_POINT_NAME)
    ]
    assert max(renames) < len(steps) - 2
    assert steps[-2:] == [(Operation.SYNC_DIRECTORY, DIRECTORY), (Operation.WRITE, segment_path(0).rpartition("/")[2])]
    assert file_system.contents()[join(DIRECTORY, "leader-epoch-checkpoint")] == b"0\n1\n4 0\n"


def test_a_roll_makes_everything_durable() -> None:
    """The old segment and its indexes are synced, and the new file's name is, before anything is written to it."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 3)
    assert log.flushed_offset == 0
    steps = steps_of(file_system, lambda: fill(log, 1))
    old, new = segment_path(0).rpartition("/")[2], segment_path(3).rpartition("/")[2]
    synced = [steps.index((Operation.SYNC, name)) for name in (old, old.replace(".log", ".index"))]
    assert max(synced) < steps.index((Operation.SYNC_DIRECTORY, DIRECTORY)) < steps.index((Operation.WRITE, new))
    assert log.flushed_offset == 3
    assert log.end_offset.segment_position == SegmentPosition(3, BATCH_SIZE)


def test_a_truncation_takes_back_what_was_durable_before_it_cuts() -> None:
    """First the recovery point, then later segments from the end, one by one, then the cut, synced."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 8)
    log.flush()
    steps = steps_of(file_system, lambda: log.truncate_to(1))
    names = [segment_path(base).rpartition("/")[2] for base in (0, 3, 6)]
    order = [
        steps.index((Operation.RENAME, f"{RECOVERY_POINT_NAME}.tmp")),
        steps.index((Operation.REMOVE, names[2])),
        steps.index((Operation.REMOVE, names[1])),
        steps.index((Operation.TRUNCATE, names[0])),
    ]
    assert order == sorted(order)
    between = steps[order[1] : order[2]]
    assert (Operation.SYNC_DIRECTORY, DIRECTORY) in between
    assert steps[order[3] + 1] == (Operation.SYNC, names[0])


def test_what_a_truncation_drops_is_read_before_anything_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged header refuses it, and the durable point stays; a header that is damaged later is not read again."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 8)
    log.flush()
    flip(file_system, segment_path(3), BATCH_SIZE)
    before = file_system.contents()
    with pytest.raises(CorruptBatchError):
        log.truncate_to(4)
    assert (file_system.contents(), log.end_offset.offset, log.flushed_offset) == (before, 8, 8)
    flip(file_system, segment_path(3), BATCH_SIZE)
    store = log._durable.store

    def rot_and_store(point: RecoveryPoint) -> None:
        flip(file_system, segment_path(3), BATCH_SIZE)
        store(point)

    monkeypatch.setattr(log._durable, "store", rot_and_store)
    log.truncate_to(4)
    monkeypatch.undo()
    assert (records_of(log), log.flushed_offset) == (expected(0, 4), 4)
    fill(log, 4)
    log.close()
    assert records_of(open_log(file_system)) == expected(0, 8)


def test_segments_are_deleted_only_after_the_new_start_is_durable() -> None:
    """A deletion is written down before anything goes."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 8)
    snapshot_id = make_snapshot(log, 6)
    steps = steps_of(file_system, lambda: log.delete_before_snapshot(snapshot_id))
    removed = [steps.index((Operation.REMOVE, segment_path(base).rpartition("/")[2])) for base in (0, 3)]
    assert steps.index((Operation.RENAME, f"{RECOVERY_POINT_NAME}.tmp")) < min(removed)
    assert log.start_offset == 6
    assert records_of(log) == expected(6, 8)


def test_all_segments_may_go() -> None:
    """A snapshot of the whole log rolls the active segment, so that it can go too."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 8)
    assert log.delete_before_snapshot(make_snapshot(log, 8))
    assert [path for path in file_system.contents() if path.endswith(".log")] == [segment_path(8)]
    assert (log.start_offset, log.end_offset.offset, log.last_fetched_epoch) == (8, 8, 1)
    fill(log, 1)
    log.close()
    assert records_of(open_log(file_system)) == expected(8, 9)


@pytest.mark.parametrize("written_bytes", [0, 1, BATCH_SIZE - 1, BATCH_SIZE])
def test_an_append_without_room_leaves_the_log_as_it_was(written_bytes: int) -> None:
    """ENOSPC and short writes: the partial bytes are truncated, and the log continues."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 1)
    file_system.faults.append(Fault(Operation.WRITE, is_full=True, written_bytes=written_bytes))
    with pytest.raises(OutOfSpaceError):
        fill(log, 1)
    assert len(file_system.contents()[segment_path(0)]) == BATCH_SIZE
    assert log.end_offset.offset == 1
    fill(log, 1)
    log.flush()
    assert records_of(open_log(kill(file_system))) == expected(0, 2)


@pytest.mark.parametrize("operation", [Operation.CREATE, Operation.WRITE])
@pytest.mark.parametrize("skip", range(6))
def test_a_roll_without_room_leaves_the_log_as_it_was(operation: Operation, skip: int) -> None:
    """Wherever a roll, or a new epoch, runs out of room, nothing has changed, and it works once there is some."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 3)
    log.flush()
    file_system.faults.append(Fault(operation, skip=skip, is_full=True, written_bytes=3))
    try:
        fill(log, 1, epoch=2)
    except OutOfSpaceError:
        assert (log.end_offset.offset, log.last_fetched_epoch) == (3, 1)
        fill(log, 1, epoch=2)
    assert records_of(log) == expected(0, 3) + expected(3, 4, epoch=2)
    log.close()
    assert records_of(open_log(file_system)) == expected(0, 3) + expected(3, 4, epoch=2)


def broken_calls(log: FileLog) -> list[Callable[[], object]]:
    """Every call that changes or reads the log."""
    return [
        lambda: fill(log, 1),
        lambda: log.append_as_follower(raft_batch(log.end_offset.offset, 1), 1),
        log.flush,
        lambda: log.read(0, Isolation.UNCOMMITTED),
        lambda: log.truncate_to(1),
        lambda: log.truncate_to_end_offset(OffsetAndEpoch(1, 1)),
        log.truncate_to_latest_snapshot,
        lambda: log.initialize_leader_epoch(9),
        lambda: log.create_snapshot(OffsetAndEpoch(1, 1)),
        lambda: log.create_snapshot_unchecked(OffsetAndEpoch(1, 1)),
        lambda: log.delete_before_snapshot(OffsetAndEpoch(1, 1)),
    ]


def test_a_sync_that_failed_is_never_tried_again() -> None:
    """After a failed sync the state of the disk is unknown: every later call raises, and nothing more is written."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 2)
    file_system.faults.append(Fault(Operation.SYNC))
    with pytest.raises(StorageError):
        log.flush()
    before = file_system.step_count
    for call in broken_calls(log):
        with pytest.raises(StorageError):
            call()
    log.close()
    assert not [step for step in file_system.steps if step.number > before]
    assert log.flushed_offset == 0


@pytest.mark.parametrize("fault", [Fault(Operation.WRITE), Fault(Operation.WRITE, written_bytes=9)])
def test_a_write_that_failed_breaks_the_log(fault: Fault) -> None:
    """EIO on a write: reopening the directory finds out what was written."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 2)
    log.flush()
    file_system.faults.append(fault)
    for _ in range(2):
        with pytest.raises(StorageError):
            fill(log, 1)
    with pytest.raises(StorageError):
        log.flush()
    log.close()
    assert records_of(open_log(kill(file_system))) == expected(0, 2)


def test_partial_bytes_that_cannot_be_cut_break_the_log() -> None:
    """Half a batch must not stay before a good one."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 1)
    file_system.faults.append(Fault(Operation.WRITE, is_full=True, written_bytes=9))
    file_system.faults.append(Fault(Operation.TRUNCATE))
    for _ in range(2):
        with pytest.raises(StorageError) as caught:
            fill(log, 1)
        assert not isinstance(caught.value, OutOfSpaceError)
    log.close()


def test_a_failed_mark_is_not_missed() -> None:
    """The flush mark is a proof when it is there, and no more."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 1)
    file_system.faults.append(Fault(Operation.WRITE, path_end="raftlog-flush-mark"))
    log.flush()
    fill(log, 1)
    log.flush()
    assert log.flushed_offset == 2


def test_a_closed_log_refuses_everything() -> None:
    """Closing twice is harmless; any other call is an error."""
    log = open_log(MemoryFileSystem())
    fill(log, 2)
    log.close()
    log.close()
    for call in broken_calls(log):
        with pytest.raises(StorageError):
            call()


def test_a_closed_log_freezes_no_snapshot() -> None:
    """The directory may be another owner's by then; nothing has its name changed there."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 2)
    log.update_high_watermark(2)
    snapshot_id = OffsetAndEpoch(2, 1)
    writer = log.create_snapshot(snapshot_id)
    assert writer is not None
    writer.append(snapshot_bytes(snapshot_id))
    log.close()
    with pytest.raises(StorageError, match="closed"):
        writer.freeze()
    assert not [path for path in file_system.contents() if path.endswith(".checkpoint")]
    writer.close()


def test_a_batch_that_rots_while_the_log_is_open_is_not_served() -> None:
    """Every read checks what it returns; a start puts the damage in quarantine."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 3)
    log.flush()
    flip(file_system, segment_path(0), BATCH_SIZE + 70)
    with pytest.raises(CorruptBatchError) as caught:
        log.read(0, Isolation.UNCOMMITTED)
    assert (caught.value.path, caught.value.position) == (segment_path(0), BATCH_SIZE)
    assert bytes(log.read(0, Isolation.UNCOMMITTED, 0).records) == raft_batch(0, 1)
    assert open_log(kill(file_system)).quarantine is not None


@pytest.mark.parametrize("position", [0, 8, 16, 24])
def test_a_header_that_rots_is_not_followed(position: int) -> None:
    """The search for a batch checks the headers on its way."""
    file_system = MemoryFileSystem()
    log = open_log(file_system, DEFAULTS)
    fill(log, 3)
    flip(file_system, segment_path(0), position)
    with pytest.raises(CorruptBatchError):
        log.read(2, Isolation.UNCOMMITTED)


def test_a_control_batch_without_structure_is_refused() -> None:
    """Batches that startup would call damaged are not appended."""
    log = open_log(MemoryFileSystem())
    builder = RecordBatchBuilder(0, partition_leader_epoch=1, is_control=True)
    builder.append(TIMESTAMP, b"\0\0\0", b"")
    data = builder.build()
    with pytest.raises(InvalidRecordError):
        log.append_as_leader(data, 1)
    with pytest.raises(InvalidRecordError):
        log.append_as_follower(data, 1)
    assert (log.end_offset.offset, log.last_fetched_epoch) == (0, 0)


def segment_bases(file_system: MemoryFileSystem) -> list[int]:
    """The base offsets of the segments that there are."""
    return [int(path.rpartition("/")[2][:20]) for path in sorted(file_system.contents()) if path.endswith(".log")]


def stamped(offset: int, timestamp: int) -> bytes:
    """A batch of one offset with a timestamp."""
    area = b"\x0c\0\0\0\1\1\0"  # A record of nulls.
    return batch_bytes(area, base_offset=offset, epoch=1, base_timestamp=timestamp, max_timestamp=timestamp, count=1)


def test_segments_roll_by_age() -> None:
    """A batch too far, in time, from a segment's first one begins the next; without timestamps age does not count."""
    file_system = MemoryFileSystem()
    log = open_log(file_system, LogConfig(segment_ms=1000))
    for offset, timestamp in enumerate([TIMESTAMP, TIMESTAMP + 1000, TIMESTAMP + 1001, TIMESTAMP + 500]):
        log.append_as_leader(stamped(offset, timestamp), 1)
    assert segment_bases(file_system) == [0, 2]
    log.close()
    log = open_log(file_system, LogConfig(segment_ms=1000))
    log.append_as_leader(stamped(4, TIMESTAMP + 2002), 1)
    assert segment_bases(file_system) == [0, 2, 4]
    other = MemoryFileSystem()
    log = open_log(other, LogConfig(segment_ms=0))
    for offset, timestamp in enumerate([-1, TIMESTAMP, -1]):
        log.append_as_leader(stamped(offset, timestamp), 1)
    assert segment_bases(other) == [0]


def test_segments_roll_by_full_indexes_and_far_offsets() -> None:
    """An index takes no more, or an offset is too far from the segment's base for it."""
    file_system = MemoryFileSystem()
    log = open_log(file_system, LogConfig(max_index_size_bytes=36, index_interval_bytes=0))
    fill(log, 5)
    assert segment_bases(file_system) == [0, 3]
    log.append_as_follower(batch_bytes(base_offset=5, epoch=1, last_offset_delta=2**31 - 2, count=2**31 - 1), 1)
    assert segment_bases(file_system) == [0, 3, 5]
    for offset in (2**31 + 4, 2**31 + 5):
        log.append_as_follower(batch_bytes(base_offset=offset, epoch=1, count=1), 1)
    assert segment_bases(file_system) == [0, 3, 5, 2**31 + 5]


def test_an_append_larger_than_a_segment_gets_one() -> None:
    """One append is in one segment, whatever its size."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 1)
    log.append_as_leader(b"".join(expected(1, 9)), 1)
    assert segment_bases(file_system) == [0, 1]
    assert records_of(log) == expected(0, 9)


def test_indexes_are_kafkas() -> None:
    """Six batches of 1697 bytes have the indexes that Kafka's LogSegment wrote for them."""
    file_system = MemoryFileSystem()
    log = open_log(file_system, DEFAULTS)
    for number in range(6):
        builder = RecordBatchBuilder(4 * number, partition_leader_epoch=1)
        builder.extend([(TIMESTAMP + number, None, bytes(400))] * 4)
        batch = builder.build()
        assert len(batch) == 1697
        log.append_as_leader(batch, 1)
    log.close()
    contents = file_system.contents()
    assert contents[segment_path(0, ".index")] == bytes.fromhex("0000000f000013e3")
    times = "0000018bcfe568030000000f0000018bcfe5680500000017"
    assert contents[segment_path(0, ".timeindex")] == bytes.fromhex(times)
    assert open_log(file_system, DEFAULTS).recovery.actions == ()


def test_clean_deletes_what_is_too_large_and_too_old() -> None:
    """Retention by size and by age, one snapshot after the other; the newest stays."""
    file_system = MemoryFileSystem()
    log = open_log(file_system, LogConfig(retention_bytes=1, retention_ms=None))
    fill(log, 3)
    assert not log.clean(0)
    for offset in (1, 2, 3):
        make_snapshot(log, offset)
    assert log.clean(0)
    assert (log.start_offset, log.snapshot_ids) == (3, (OffsetAndEpoch(3, 1),))
    log = open_log(MemoryFileSystem(), LogConfig(retention_bytes=None, retention_ms=10))
    fill(log, 3)
    for offset in (1, 2):
        make_snapshot(log, offset)
    assert not log.clean(10)
    assert log.clean(11)
    assert log.start_offset == 2


def test_an_installed_snapshot_takes_the_place_of_the_log() -> None:
    """The log restarts at a snapshot that is ahead, and at one of a later epoch that is not."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 8)
    log.flush()
    install_snapshot(log, 5, 2)
    assert log.truncate_to_latest_snapshot()
    assert (log.start_offset, log.end_offset.offset, log.last_fetched_epoch) == (5, 5, 2)
    assert segment_bases(file_system) == [5]
    fill(log, 2, epoch=3)
    log.flush()
    again = open_log(kill(file_system))
    assert again.quarantine is None
    assert records_of(again) == expected(5, 7, epoch=3)


def test_config_refuses_what_cannot_be() -> None:
    """Sizes are positive and fit in the indexes' 32 bits."""
    for bad in ({"segment_size_bytes": 0}, {"segment_size_bytes": 2**31}, {"segment_ms": -1}):
        with pytest.raises(ValueError):
            LogConfig(**bad)
    with pytest.raises(ValueError):
        LogConfig(max_index_size_bytes=23)


def test_the_high_watermark_is_looked_for_once() -> None:
    """Its position is cached, and correct after every change."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 4)
    for offset, place in ((2, (0, 2)), (3, (3, 0)), (4, (3, 1))):
        log.update_high_watermark(offset)
        for _ in range(2):
            metadata = log.high_watermark
            assert metadata.segment_position is not None
            position = metadata.segment_position
            assert (position.base_offset, position.position) == (place[0], place[1] * BATCH_SIZE)
    log.update_high_watermark(4)
    fill(log, 3)
    assert log.high_watermark.segment_position == SegmentPosition(3, BATCH_SIZE)
    before = file_system.step_count
    assert log.high_watermark == log.high_watermark
    assert file_system.step_count == before
    log.delete_before_snapshot(make_snapshot(log, 4))
    install_snapshot(log, 4 + 5, 7)
    assert log.truncate_to_latest_snapshot()
    assert log.high_watermark.segment_position == SegmentPosition(9, 0)


def test_a_log_may_start_inside_a_batch() -> None:
    """A snapshot that ends there takes the place of what is below; the batch is read whole, after a restart, too."""
    file_system = MemoryFileSystem()
    log = open_log(file_system, DEFAULTS)
    for offset, count, epoch in ((0, 5, 1), (5, 3, 1), (8, 2, 2)):
        log.append_as_leader(raft_batch(offset, epoch, count), epoch)
    log.flush()
    log.update_high_watermark(8)
    assert log.delete_before_snapshot(install_snapshot(log, 6, 1))
    for found in (log, open_log(kill(file_system), DEFAULTS)):
        assert (found.start_offset, found.quarantine) == (6, None)
        for offset in (6, 7):
            records = bytes(found.read(offset, Isolation.UNCOMMITTED).records)
            assert records == raft_batch(5, 1, 3) + raft_batch(8, 2, 2)
