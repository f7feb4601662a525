# SPDX-License-Identifier: Apache-2.0
"""Damage: what a start does not cut or delete, and how a log gets well again; the fault table, row by row."""

import pytest

from raftlog.errors import OutOfSpaceError, QuarantinedLogError, WorkUnderWayError
from raftlog.file_system import join
from raftlog.log.replicated_log import Isolation
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.storage.recovery.recovery_report import ActionKind
from raftlog.testing.contracts.made_batches import raft_batch
from raftlog.testing.crash_points import Promise, enumerate_crashes
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


def test_acknowledged_tail_that_is_missing_is_damage() -> None:
    """A log that ends below its durable point, as where a disk lied about a sync, is quarantined."""
    file_system = write_log(8)
    cut(file_system, segment_path(6), BATCH_SIZE)
    log = open_log(file_system)
    assert log.quarantine is not None
    assert (log.quarantine.first_bad_offset, log.quarantine.durable_end_offset) == (7, 8)
    assert log.quarantine.path == segment_path(6)
    assert log.end_offset.offset == 7


def test_torn_tail_after_a_clean_shutdown_is_damage() -> None:
    """After an orderly close all was durable: what is torn then was there."""
    file_system = write_log(8)
    cut(file_system, segment_path(6), 2 * BATCH_SIZE - 5)
    log = open_log(file_system)
    assert log.recovery.was_closed is True
    assert log.quarantine is not None
    assert log.quarantine.first_bad_offset == 7
    assert len(file_system.contents()[segment_path(6)]) == 2 * BATCH_SIZE - 5


def test_the_flush_mark_alone_proves_what_was_durable() -> None:
    """The recovery point is lazy; a batch below the flush mark is durable all the same."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 2)
    log.flush()
    assert b"durable_end_offset 0\n" in file_system.contents()[join(DIRECTORY, "raftlog-recovery-point")]
    file_system = kill(file_system)
    cut(file_system, segment_path(0), BATCH_SIZE)
    log = open_log(file_system)
    assert log.quarantine is not None
    assert (log.quarantine.first_bad_offset, log.quarantine.durable_end_offset) == (1, 2)


@pytest.mark.parametrize("offset", range(8))
def test_bit_rot_is_quarantined_wherever_it_is(offset: int) -> None:
    """A flipped bit below the durable point: nothing is cut or deleted, what is below it reads, nothing else does."""
    file_system = write_log(8)
    flip(file_system, segment_path(offset // 3 * 3), offset % 3 * BATCH_SIZE + 70)
    before = {path: data for path, data in file_system.contents().items() if path.endswith(".log")}
    log = open_log(file_system)
    quarantine = log.quarantine
    assert quarantine is not None
    assert (quarantine.first_bad_offset, quarantine.durable_end_offset) == (offset, 8)
    assert (quarantine.path, quarantine.position) == (segment_path(offset // 3 * 3), offset % 3 * BATCH_SIZE)
    assert records_of(log) == expected(0, offset)
    with pytest.raises(QuarantinedLogError):
        log.read(offset, Isolation.UNCOMMITTED)
    with pytest.raises(QuarantinedLogError):
        log.append_as_leader(raft_batch(offset, 1), 1)
    with pytest.raises(QuarantinedLogError):
        log.initialize_leader_epoch(2)
    after = {path: data for path, data in file_system.contents().items() if path.endswith(".log")}
    assert after == before
    assert any("quarantined from offset" in line for line in log.recovery.lines())


@pytest.mark.parametrize("offset", range(1, 8))
def test_nothing_is_read_while_damage_is_set_aside(offset: int) -> None:
    """The file that it is cut from may be another one by then; what follows it appends without a wait."""
    file_system = write_log(8)
    flip(file_system, segment_path(offset // 3 * 3), offset % 3 * BATCH_SIZE + 70)
    log = open_log(file_system)
    log.update_high_watermark(offset)
    work = log.prepare_append_as_follower(raft_batch(offset, 1), 1)
    for runs in (False, True):
        if runs:
            work.run()
        with pytest.raises(WorkUnderWayError):
            log.read(0, Isolation.UNCOMMITTED)
        with pytest.raises(WorkUnderWayError):
            log.create_snapshot(OffsetAndEpoch(offset, 1))
        assert log.end_offset.offset == offset
    work.finish()
    assert records_of(log) == expected(0, offset + 1)
    if offset % 3 != 2:  # Otherwise the segment is full.
        assert not log.prepare_append_as_follower(raft_batch(offset + 1, 1), 1).is_needed
    assert log.quarantine is not None


@pytest.mark.parametrize("offset", range(8))
def test_a_follower_repairs_a_quarantined_log(offset: int) -> None:
    """The damaged bytes are set aside, the records are fetched again, and once all are flushed the log is complete."""
    file_system = write_log(8)
    flip(file_system, segment_path(offset // 3 * 3), offset % 3 * BATCH_SIZE + 70)
    bad = file_system.contents()[segment_path(offset // 3 * 3)][offset % 3 * BATCH_SIZE :]
    log = open_log(file_system)
    for each in range(offset, 8):
        log.append_as_follower(raft_batch(each, 1), 1)
        assert log.quarantine is not None
        assert log.quarantine.first_bad_offset == each + 1
        assert records_of(log) == expected(0, each + 1)
    log.flush()
    assert log.quarantine is None
    fill(log, 1)
    aside = {path: data for path, data in file_system.contents().items() if ".damaged-" in path}
    assert bad in aside.values()
    log.close()
    log = open_log(file_system)
    assert log.quarantine is None
    assert records_of(log) == expected(0, 9)


def test_a_half_repaired_log_stays_in_quarantine() -> None:
    """A restart in the middle of a repair does not take the shorter log for a whole one."""
    file_system = write_log(8)
    flip(file_system, segment_path(3), 70)
    log = open_log(file_system)
    log.append_as_follower(raft_batch(3, 1), 1)
    log.flush()
    assert log.quarantine is not None
    log.close()
    log = open_log(file_system)
    assert log.quarantine is not None
    assert (log.quarantine.first_bad_offset, log.quarantine.durable_end_offset) == (4, 8)


def test_a_truncation_by_hand_ends_a_quarantine() -> None:
    """An operator who gives up what is damaged says so with a truncation, and it stays so."""
    file_system = write_log(8)
    flip(file_system, segment_path(3), BATCH_SIZE + 70)
    log = open_log(file_system)
    log.truncate_to(4)
    assert (log.quarantine, log.end_offset.offset) == (None, 4)
    fill(log, 2, epoch=2)
    log.close()
    log = open_log(file_system)
    assert log.quarantine is None
    assert records_of(log) == expected(0, 4) + expected(4, 6, epoch=2)
    assert any(".damaged-" in path for path in file_system.contents())


def test_a_truncation_above_the_damage_is_refused() -> None:
    """Refusing to remove unreadable records loses nothing: the log is unchanged, quarantine included."""
    file_system = write_log(8)
    flip(file_system, segment_path(3), BATCH_SIZE + 70)
    log = open_log(file_system)
    before = file_system.contents()
    for offset in (5, 6, 8, 100):
        with pytest.raises(QuarantinedLogError):
            log.truncate_to(offset)
    assert file_system.contents() == before
    assert log.quarantine is not None
    log.truncate_to(4)
    assert log.quarantine is None


@pytest.mark.parametrize("offset", [2, 4])
@pytest.mark.parametrize("ends_quarantine", [False, True])
def test_a_crash_in_a_truncation_keeps_what_was_durable_in_mind(offset: int, *, ends_quarantine: bool) -> None:
    """Until the damage is set aside every startup knows that records are missing, unless they were given up."""
    source = write_log(8)
    flip(source, segment_path(3), BATCH_SIZE + 70)

    def scenario(file_system: MemoryFileSystem, promise: Promise) -> None:
        log = open_log(file_system)
        if ends_quarantine:
            log.truncate_to(offset)
        else:
            log.truncate_to_end_offset(OffsetAndEpoch(offset, 1))
        promise("truncated")

    def check(file_system: MemoryFileSystem, promised: object) -> None:
        log = open_log(file_system)
        if promised is None or not ends_quarantine:
            assert offset <= log.end_offset.offset <= 4
            assert log.quarantine is None or log.quarantine.durable_end_offset == 8
            # The damage is where it was as long as the log is quarantined for it, and is set aside before that ends.
            aside = [path for path in file_system.contents() if ".damaged-" in path]
            assert log.quarantine is not None or (ends_quarantine and len(aside) == 2)
        else:
            assert (log.quarantine, log.end_offset.offset) == (None, offset)

    assert enumerate_crashes(scenario, check, start=source).is_complete


def test_without_room_to_set_damage_aside_a_truncation_changes_nothing() -> None:
    """After a crash, too, the log is quarantined until it is as long as it was."""
    file_system = write_log(3)
    flip(file_system, segment_path(0), 2 * BATCH_SIZE + 65)
    log = open_log(file_system)
    before = file_system.contents()
    file_system.faults.append(Fault(Operation.WRITE, is_full=True))
    with pytest.raises(OutOfSpaceError):
        log.truncate_to(2)
    assert file_system.contents() == before
    log = open_log(kill(file_system))
    assert log.quarantine is not None
    assert (log.quarantine.first_bad_offset, log.quarantine.durable_end_offset) == (2, 3)


def test_a_truncation_by_a_leader_does_not_end_a_quarantine() -> None:
    """A diverging leader says nothing about the records that were lost here."""
    file_system = write_log(8)
    flip(file_system, segment_path(3), BATCH_SIZE + 70)
    log = open_log(file_system)
    assert log.truncate_to_end_offset(OffsetAndEpoch(2, 1)) == 2
    assert log.quarantine is not None
    assert (log.quarantine.first_bad_offset, log.quarantine.durable_end_offset) == (2, 8)
    log.close()
    log = open_log(file_system)
    assert log.quarantine is not None
    assert log.quarantine.durable_end_offset == 8


def test_a_good_batch_after_a_bad_one_is_damage() -> None:
    """Above the durable point, too: in doubt it is damage, for the good one may have been acknowledged."""
    file_system = write_unflushed_log()
    flip(file_system, segment_path(6), BATCH_SIZE + 70)
    log = open_log(file_system)
    assert log.quarantine is not None
    assert (log.quarantine.first_bad_offset, log.quarantine.durable_end_offset) == (7, 9)


def test_a_bad_segment_followed_by_another_is_damage() -> None:
    """A segment was synced before the next one began: it cannot be torn."""
    file_system = write_log(8)
    forget_durable_point(file_system)
    cut(file_system, segment_path(3), 3 * BATCH_SIZE - 1)
    log = open_log(file_system)
    assert log.quarantine is not None
    assert (log.quarantine.first_bad_offset, log.quarantine.durable_end_offset) == (5, 8)


@pytest.mark.parametrize("missing", [0, 3])
def test_a_missing_segment_is_damage(missing: int) -> None:
    """A gap between segments is damage in the one before it; without the first, nothing is of use."""
    file_system = write_log(8)
    file_system.remove(segment_path(missing))
    log = open_log(file_system)
    assert log.quarantine is not None
    assert (log.quarantine.first_bad_offset, log.quarantine.durable_end_offset) == (missing, 8)
    for each in range(missing, 8):
        log.append_as_follower(raft_batch(each, 1), 1)
    log.flush()
    assert log.quarantine is None
    log.close()
    assert records_of(open_log(file_system)) == expected(0, 8)


@pytest.mark.parametrize(
    "stale",
    [
        raft_batch(3, 1),
        raft_batch(6, 1),
        raft_batch(9, 1),
        raft_batch(7, 0),
        RecordBatchBuilder(7, partition_leader_epoch=1, last_offset_delta=0),
    ],
    ids=["an older batch", "the batch before", "a later batch", "an older epoch", "a control batch without a type"],
)
def test_misdirected_write_is_damage_though_its_crc_holds(stale: bytes | RecordBatchBuilder) -> None:
    """A sound batch at a wrong place is as bad as bit rot."""
    file_system = write_log(8)
    if isinstance(stale, RecordBatchBuilder):
        stale.is_control = True
        stale.append(0, b"\0\0", b"\0\0")
        stale = stale.build()
    overwrite(file_system, segment_path(6), BATCH_SIZE, stale)
    log = open_log(file_system)
    assert log.quarantine is not None
    assert log.quarantine.first_bad_offset == 7
    assert log.quarantine.durable_end_offset >= 8


@pytest.mark.parametrize("length", [-1, 0, 13, 48, 10_000, 2**31 - 1])
def test_corrupted_length_is_bit_rot(length: int) -> None:
    """A length that cannot be is not followed, and costs no memory."""
    file_system = write_log(8)
    overwrite(file_system, segment_path(3), BATCH_SIZE + 8, length.to_bytes(4, "big", signed=True))
    log = open_log(file_system)
    assert log.quarantine is not None
    assert (log.quarantine.first_bad_offset, log.quarantine.durable_end_offset) == (4, 8)


def test_bit_rot_below_kafkas_snapshot_is_quarantined() -> None:
    """A bad batch followed by good ones is damage, in Kafka's directories too."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 8)
    make_snapshot(log, 6)
    log.close()
    forget_durable_point(file_system)
    flip(file_system, segment_path(0), 70)
    log = open_log(file_system)
    assert log.quarantine is not None
    assert (log.quarantine.first_bad_offset, log.quarantine.durable_end_offset) == (0, 8)


def _damaged_with_a_snapshot(snapshot_offset: int, bad_offset: int) -> MemoryFileSystem:
    """Return a log of 8 records with a snapshot, one of the records damaged."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 8)
    make_snapshot(log, snapshot_offset)
    log.close()
    flip(file_system, segment_path(bad_offset // 3 * 3), bad_offset % 3 * BATCH_SIZE + 70)
    return file_system


def test_a_quarantined_log_deletes_nothing() -> None:
    """A snapshot before the damage covers the records before it, but they stay, as everything else does."""
    log = open_log(file_system := _damaged_with_a_snapshot(6, 7))
    before = file_system.contents()
    log.update_high_watermark(7)
    assert log.snapshot_ids == (OffsetAndEpoch(6, 1),)
    assert not log.delete_before_snapshot(OffsetAndEpoch(6, 1))
    assert (log.start_offset, file_system.contents()) == (0, before)


def test_a_snapshot_above_the_damage_takes_no_sound_record_with_it() -> None:
    """The log does not restart at a snapshot that ends before sound records after the damage: they would be lost."""
    before = (file_system := _damaged_with_a_snapshot(5, 1)).contents()
    log = open_log(file_system)
    assert log.quarantine is not None
    assert (log.quarantine.first_bad_offset, log.quarantine.durable_end_offset) == (1, 8)
    assert (log.start_offset, log.snapshot_ids) == (0, (OffsetAndEpoch(5, 1),))
    segments = {path for path in before if path.endswith(".log")}
    assert {path: file_system.contents().get(path) for path in segments} == {path: before[path] for path in segments}


def test_log_start_without_a_snapshot_is_quarantined() -> None:
    """Records after a gap are unusable: the log is empty until all records, or a snapshot, are fetched again."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 8)
    assert log.delete_before_snapshot(make_snapshot(log, 6))
    log.close()
    file_system.remove(join(DIRECTORY, f"{6:020}-{1:010}.checkpoint"))
    log = open_log(file_system)
    assert (log.start_offset, log.end_offset.offset) == (0, 0)
    assert log.quarantine is not None
    assert (log.quarantine.first_bad_offset, log.quarantine.durable_end_offset) == (0, 8)
    install_snapshot(log, 9, 1)
    assert log.truncate_to_latest_snapshot()
    assert (log.start_offset, log.end_offset.offset) == (9, 9)
    fill(log, 1)
    log.close()
    assert records_of(open_log(file_system)) == expected(9, 10)
    assert any(".damaged-" in path for path in file_system.contents())


def test_appends_by_kafka_are_trusted() -> None:
    """Epochs that the recovery point does not know, and Kafka's checkpoint does, are sound."""
    file_system = write_log(3)
    overwrite(file_system, segment_path(0), 3 * BATCH_SIZE, raft_batch(3, 5) + raft_batch(4, 5))
    file_system.remove(join(DIRECTORY, "leader-epoch-checkpoint"))
    file_system.open(join(DIRECTORY, "leader-epoch-checkpoint"), create=True).append(b"0\n2\n1 0\n5 3\n")
    log = open_log(file_system)
    assert (log.quarantine, log.end_offset.offset, log.last_fetched_epoch) == (None, 5, 5)


@pytest.mark.parametrize("rotten", range(3, 8))
def test_damage_after_a_closed_log_is_not_a_torn_tail(rotten: int) -> None:
    """Kafka may have acknowledged these records: a complete batch that fails its checks is a loss."""
    file_system = write_log(3)
    open_log(file_system).close()
    data = bytearray(b"".join(raft_batch(offset, 1) for offset in range(3, 8)))
    data[(rotten - 3) * BATCH_SIZE + BATCH_SIZE - 3] ^= 1
    overwrite(file_system, segment_path(0), 3 * BATCH_SIZE, bytes(data))
    log = open_log(file_system)
    assert log.quarantine is not None
    assert log.quarantine.first_bad_offset == rotten
    assert {each.kind for each in log.recovery.actions} & {ActionKind.CUT} == set()


@pytest.mark.parametrize("size", [1, 16, 17, BATCH_SIZE - 1])
def test_a_torn_write_after_a_closed_log_is_truncated(size: int) -> None:
    """A tail that looks torn is torn there too, and so is any invalid batch that raftlog appended since."""
    file_system = write_log(3)
    open_log(file_system).close()
    overwrite(file_system, segment_path(0), 3 * BATCH_SIZE, raft_batch(3, 1)[:size])
    log = open_log(file_system)
    assert (log.quarantine, log.end_offset.offset) == (None, 3)
    log.append_as_leader(raft_batch(3, 1), 1)
    overwrite(file_system, segment_path(3) if file_system.exists(segment_path(3)) else segment_path(0), 20, b"\xff")
    again = open_log(kill(file_system))
    assert (again.quarantine, again.end_offset.offset) == (None, 3)


def _continued_by_kafka(offset: int, checkpoint: bytes) -> MemoryFileSystem:
    """Return a log that was durable up to 8, and that another program truncated at an offset, to write two batches."""
    file_system = write_log(8)
    base_offset = offset // 3 * 3
    for removed in range(base_offset + 3, 8, 3):
        file_system.remove(segment_path(removed))
    cut(file_system, segment_path(base_offset), offset % 3 * BATCH_SIZE)
    overwrite(file_system, segment_path(base_offset), offset % 3 * BATCH_SIZE, raft_batch(offset, 5))
    overwrite(file_system, segment_path(base_offset), (offset % 3 + 1) * BATCH_SIZE, raft_batch(offset + 1, 6))
    file_system.remove(join(DIRECTORY, "leader-epoch-checkpoint"))
    file_system.open(join(DIRECTORY, "leader-epoch-checkpoint"), create=True).append(checkpoint)
    return file_system


@pytest.mark.parametrize("offset", range(1, 6))
@pytest.mark.parametrize("is_torn", [False, True])
def test_a_truncation_by_kafka_is_trusted(offset: int, *, is_torn: bool) -> None:
    """A new epoch in log and checkpoint invalidates the durable point from its start on, and that is reported."""
    file_system = _continued_by_kafka(offset, b"0\n3\n1 0\n5 %d\n6 %d\n" % (offset, offset + 1))
    path = segment_path(offset // 3 * 3)
    if is_torn:
        overwrite(file_system, path, (offset % 3 + 2) * BATCH_SIZE, raft_batch(offset + 2, 6)[:-5])
    log = open_log(file_system)
    assert (log.quarantine, log.end_offset.offset, log.last_fetched_epoch) == (None, offset + 2, 6)
    assert records_of(log) == [*expected(0, offset), raft_batch(offset, 5), raft_batch(offset + 1, 6)]
    (taken,) = [action for action in log.recovery.actions if action.kind is ActionKind.TAKEN]
    assert f"epoch 5 at offset {offset}" in str(taken)
    assert "up to 8" in str(taken)
    fill(log, 1, epoch=6)
    log.close()
    log = open_log(file_system)
    assert (log.quarantine, log.recovery.durable_end_offset, log.recovery.actions) == (None, offset + 3, ())


@pytest.mark.parametrize(
    "checkpoint",
    [b"0\n1\n1 0\n", b"0\n2\n1 0\n5 3\n", b"0\n2\n1 0\n7 4\n", b"rotten", b"0\n2\n1 0\n6 5\n5 4\n"],
    ids=["not there", "another start", "another epoch", "unreadable", "out of order"],
)
def test_an_epoch_that_the_checkpoint_does_not_have_voids_nothing(checkpoint: bytes) -> None:
    """Batches of a higher epoch alone may be an accident: a log that ends below its durable point is damaged then."""
    log = open_log(_continued_by_kafka(4, checkpoint))
    assert log.quarantine is not None
    assert log.quarantine.durable_end_offset == 8


@pytest.mark.parametrize("position", [0, 1])
def test_records_that_kafka_has_kept_stay_durable(position: int) -> None:
    """Below the start of the new epoch the durable point holds: damage there is damage."""
    file_system = _continued_by_kafka(5, b"0\n3\n1 0\n5 5\n6 6\n")
    flip(file_system, segment_path(3), position * BATCH_SIZE + 70)
    log = open_log(file_system)
    assert log.quarantine is not None
    assert log.quarantine.first_bad_offset == 3 + position
