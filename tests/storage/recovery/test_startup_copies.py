# SPDX-License-Identifier: Apache-2.0
"""Startup copies bytes before truncating them, keeps what it replaces, and reports losses, even if covered."""

from typing import Final

import pytest

from raftlog.errors import OutOfSpaceError, StorageError, TruncationBelowHighWatermarkError
from raftlog.file_system import join
from raftlog.offsets import OffsetAndEpoch
from raftlog.storage.recovery.recovery_report import ActionKind
from raftlog.storage.segments.damaged_files import MOST_TORN_TAILS
from raftlog.testing.contracts.made_batches import raft_batch, snapshot_bytes
from raftlog.testing.file_system.faults import Fault, Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.file_logs import (
    BATCH_SIZE,
    DIRECTORY,
    covered,
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
    told,
    write_log,
    write_unflushed_log,
)
from tests.strategies import legacy_message

SECTOR: Final = 512
SNAPSHOT: Final = OffsetAndEpoch(8, 1)


def snapshot_path(offset: int, epoch: int = 1) -> str:
    """The path of a snapshot."""
    return join(DIRECTORY, f"{offset:020}-{epoch:010}.checkpoint")


def kafkas(snapshot_offset: int = 0) -> MemoryFileSystem:
    """Return the directory of a log of 8 records, as Kafka would have written it."""
    log = open_log(file_system := MemoryFileSystem())
    fill(log, 8)
    if snapshot_offset:
        make_snapshot(log, snapshot_offset)
    log.close()
    forget_durable_point(file_system)
    return file_system


@pytest.mark.parametrize("bit", range(8))
@pytest.mark.parametrize("position", [0, 7, 8, 11, 16, 17, 21, 23, 57, 61, 70, BATCH_SIZE - 1])
@pytest.mark.parametrize("snapshot_offset", [0, 7])
def test_rot_in_the_last_batch_of_kafkas_log_is_quarantined(snapshot_offset: int, position: int, bit: int) -> None:
    """A complete batch that does not check may have been committed: nothing is cut, and the report says where it is."""
    file_system = kafkas(snapshot_offset)
    path, at = segment_path(6), BATCH_SIZE + position
    byte = file_system.contents()[path][at]
    overwrite(file_system, path, at, bytes([byte ^ 1 << bit]))
    before = file_system.contents()[path]
    log = open_log(file_system)
    assert not told(log, ActionKind.CUT)
    assert file_system.contents()[path] == before
    assert log.quarantine is not None
    assert (log.quarantine.path, log.quarantine.position) == (path, BATCH_SIZE)
    assert (log.quarantine.first_bad_offset, log.quarantine.durable_end_offset) == (7, 8)
    log.close()
    log = open_log(file_system)
    assert log.quarantine is not None
    log.append_as_follower(raft_batch(7, 1), 1)
    log.flush()
    assert log.quarantine is None


@pytest.mark.parametrize("left", [1, 11, 12, 16, 17, 60, BATCH_SIZE - 1])
@pytest.mark.parametrize("snapshot_offset", [0, 6, 7])
def test_a_torn_tail_of_kafkas_log_is_truncated_and_kept(snapshot_offset: int, left: int) -> None:
    """A batch that is cut short at the end of the file, above the newest snapshot, is copied, and cut."""
    file_system = kafkas(snapshot_offset)
    cut(file_system, segment_path(6), BATCH_SIZE + left)
    torn = file_system.contents()[segment_path(6)][BATCH_SIZE:]
    log = open_log(file_system)
    (action,) = told(log, ActionKind.CUT)
    assert (log.quarantine, log.end_offset.offset) == (None, 7)
    assert action.copy == f"{segment_path(6)}.torn-{BATCH_SIZE}"
    assert file_system.contents()[action.copy] == torn
    assert action.copy in str(action)


def test_a_torn_tail_below_kafkas_snapshot_is_lost() -> None:
    """The snapshot shows that the record was committed: the log restarts there, and reports the loss."""
    file_system = kafkas(8)
    cut(file_system, segment_path(6), 2 * BATCH_SIZE - 1)
    bad = file_system.contents()[segment_path(6)]
    log = open_log(file_system)
    (lost,) = told(log, ActionKind.LOST)
    assert lost.path == segment_path(6)
    assert f"from offset 7 (position {BATCH_SIZE}) on" in lost.detail
    assert (log.start_offset, log.quarantine) == (8, None)
    assert bad in file_system.contents().values()


@pytest.mark.parametrize("zeros", [1, 8, SECTOR, 100_000])
def test_zeros_after_kafkas_log_are_truncated_and_kept(zeros: int) -> None:
    """They were allotted and never written."""
    file_system = kafkas()
    overwrite(file_system, segment_path(6), 2 * BATCH_SIZE, bytes(zeros))
    log = open_log(file_system)
    (action,) = told(log, ActionKind.CUT)
    assert (log.quarantine, log.end_offset.offset) == (None, 8)
    assert file_system.contents()[str(action.copy)] == bytes(zeros)


def _with_a_large_last_batch(*, is_ours: bool) -> tuple[MemoryFileSystem, bytes]:
    log = open_log(file_system := MemoryFileSystem())
    fill(log, 2)
    log.flush()
    batch = raft_batch(2, 1, value=b"x" * 2000)
    log.append_as_leader(batch, 1)
    file_system = kill(file_system)
    if not is_ours:
        forget_durable_point(file_system)
    return file_system, batch


@pytest.mark.parametrize("is_ours", [False, True])
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_missing_last_sector_is_torn(more: int, *, is_ours: bool) -> None:
    """Zeros from a sector's boundary on are; one byte later they are rot, which only our durable point may excuse."""
    file_system, batch = _with_a_large_last_batch(is_ours=is_ours)
    path = segment_path(2)
    boundary = len(batch) // SECTOR * SECTOR + more
    overwrite(file_system, path, boundary, bytes(len(batch) - boundary))
    torn = file_system.contents()[path]
    log = open_log(file_system)
    if more > 0 and not is_ours:
        assert log.quarantine is not None
        assert file_system.contents()[path] == torn
    else:
        (action,) = told(log, ActionKind.CUT)
        assert (log.quarantine, log.end_offset.offset) == (None, 2)
        assert file_system.contents()[str(action.copy)] == torn


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("durable", [6, 7, 8, 9])
def test_a_sound_batch_of_an_old_magic_is_not_torn(durable: int, magic: int) -> None:
    """Wherever the durable point is: it checks, and no leader of a raft log writes it."""
    log = open_log(file_system := MemoryFileSystem())
    fill(log, durable)
    log.flush()
    fill(log, 9 - durable)
    file_system = kill(file_system)
    path = segment_path(6)
    message = legacy_message(magic, 7, None, b"value")
    overwrite(file_system, path, BATCH_SIZE, message)
    cut(file_system, path, BATCH_SIZE + len(message))
    before = file_system.contents()[path]
    log = open_log(file_system)
    assert log.quarantine is not None
    assert log.quarantine.first_bad_offset == 7
    assert "magic" in log.quarantine.reason
    assert file_system.contents()[path] == before


@pytest.mark.parametrize("start", [2, 3, 4])
def test_a_segment_that_ends_at_the_log_start_is_deleted(start: int) -> None:
    """One that ends there, or below, is what a crash left of a deletion; one that ends above holds the first record."""
    log = open_log(file_system := MemoryFileSystem())
    fill(log, 8)
    first, *_ = (file_system.contents()[segment_path(each)] for each in (0, 3))
    log.delete_before_snapshot(make_snapshot(log, start))
    log.close()
    if start > 2:
        file_system.open(segment_path(0), create=True).append(first)
    log = open_log(file_system)
    assert (segment_path(0) in file_system.contents()) == (start < 3)
    assert {action.path for action in log.recovery.actions} == (set() if start < 3 else {segment_path(0)})
    assert (log.start_offset, log.quarantine) == (start, None)
    assert records_of(log) == expected(start, 8)


def test_a_torn_tail_of_ours_is_kept() -> None:
    """Whatever is at or above the durable point, rot included."""
    file_system = write_unflushed_log()
    flip(file_system, segment_path(6), 2 * BATCH_SIZE + 70)
    bad = file_system.contents()[segment_path(6)][2 * BATCH_SIZE :]
    log = open_log(file_system)
    (action,) = told(log, ActionKind.CUT)
    assert (log.quarantine, log.end_offset.offset) == (None, 8)
    assert file_system.contents()[str(action.copy)] == bad


def test_a_crash_between_copy_and_cut_makes_no_second_copy() -> None:
    """However often a start is killed there, the next finds the copy, and takes that for its own."""
    file_system = write_unflushed_log()
    cut(file_system, segment_path(6), 3 * BATCH_SIZE - 1)
    for _ in range(3):
        file_system.faults.append(Fault(Operation.TRUNCATE, path_end=".log"))
        with pytest.raises(StorageError):
            open_log(file_system)
        file_system = kill(file_system)
    log = open_log(file_system)
    assert [path for path in file_system.contents() if ".torn-" in path] == [told(log, ActionKind.CUT)[0].copy]


def test_another_tail_at_the_same_place_is_another_copy() -> None:
    """The copy of an earlier crash stays what it is."""
    file_system = write_unflushed_log()
    copies = []
    for value in (b"one", b"two"):
        overwrite(file_system, segment_path(6), 2 * BATCH_SIZE, raft_batch(8, 1, value=value)[:-1])
        cut(file_system, segment_path(6), 2 * BATCH_SIZE + len(raft_batch(8, 1, value=value)) - 1)
        log = open_log(file_system)
        copies.append(told(log, ActionKind.CUT)[0].copy)
        file_system = kill(file_system)
    assert copies == [f"{segment_path(6)}.torn-{2 * BATCH_SIZE}", f"{segment_path(6)}.torn-{2 * BATCH_SIZE}-1"]
    contents = file_system.contents()
    assert [contents[str(copy)] for copy in copies] == [raft_batch(8, 1, value=b)[:-1] for b in (b"one", b"two")]


def test_no_more_than_some_torn_tails_are_kept() -> None:
    """The ones lowest in the log go, one with each new one, and the report says so."""
    log = open_log(file_system := MemoryFileSystem())
    log.close()
    for count in range(MOST_TORN_TAILS + 2):
        log = open_log(file_system)
        fill(log, 1)
        log.flush()
        file_system = kill(file_system)
        path = max(path for path in file_system.contents() if path.endswith(".log"))
        file_system.open(path).append(raft_batch(count + 1, 1)[:-1])
        before = {path for path in file_system.contents() if ".torn-" in path}
        log = open_log(file_system)
        after = {path for path in file_system.contents() if ".torn-" in path}
        assert len(after) == min(count + 1, MOST_TORN_TAILS)
        assert {action.path for action in told(log, ActionKind.REMOVED)} == before - after
        assert after - before == {told(log, ActionKind.CUT)[0].copy}
        file_system = kill(file_system)
    assert f"{segment_path(0)}.torn-{BATCH_SIZE}" not in after


def test_without_room_for_the_copy_nothing_is_cut() -> None:
    """The error reports the full disk, whatever step of the copy needs space; once there is some, the log opens."""
    source = write_unflushed_log()
    cut(source, segment_path(6), 3 * BATCH_SIZE - 1)
    for skip in range(1000):
        file_system = source.settled()
        fault = Fault(is_full=True, skip=skip, is_lasting=True, written_bytes=10)
        file_system.faults.append(fault)
        try:
            open_log(file_system)
        except OutOfSpaceError:
            copies = [data for path, data in file_system.contents().items() if ".torn-" in path]
            is_cut = file_system.contents()[segment_path(6)] == source.contents()[segment_path(6)][: 2 * BATCH_SIZE]
            whole = source.contents()[segment_path(6)][2 * BATCH_SIZE :]
            assert whole in copies if is_cut else file_system.contents()[segment_path(6)].endswith(whole)
        except StorageError:
            pass
        else:
            break
        file_system.faults.clear()
        log = open_log(kill(file_system))
        assert (log.end_offset.offset, log.quarantine) == (8, None)
    assert skip > 3


@pytest.mark.parametrize("bad_offset", [6, 7])
def test_damage_that_a_snapshot_covers_is_reported_and_kept(bad_offset: int) -> None:
    """The log restarts at the snapshot; the damage is named, and all bytes are kept aside."""
    file_system = covered()
    if bad_offset == 6:
        cut(file_system, segment_path(6), BATCH_SIZE)  # No sound batch is behind it.
    flip(file_system, segment_path(6), (bad_offset - 6) * BATCH_SIZE + 70)
    before = file_system.contents()
    log = open_log(file_system)
    assert (log.start_offset, log.end_offset.offset, log.quarantine) == (8, 8, None)
    (lost,) = told(log, ActionKind.LOST)
    assert lost.path == segment_path(6)
    assert f"from offset {bad_offset} (position {(bad_offset - 6) * BATCH_SIZE}) on" in lost.detail
    copies = {action.path: action.copy for action in log.recovery.actions if action.copy is not None}
    assert set(copies) == {segment_path(0), segment_path(3), segment_path(6), snapshot_path(5)}
    after = file_system.contents()
    assert all(after[str(copy)] == before[path] for path, copy in copies.items())
    assert copies[segment_path(6)] == f"{segment_path(6)}.damaged-0"
    fill(log, 1)
    log.close()
    log = open_log(file_system)
    assert (log.recovery.actions, records_of(log)) == ((), expected(8, 9))


@pytest.mark.parametrize("is_ours", [False, True])
def test_the_end_of_a_log_that_a_snapshot_covers_is_missed(*, is_ours: bool) -> None:
    """Durable records that are missing without damaged bytes are reported; for Kafka's log that is not known."""
    file_system = covered()
    if not is_ours:
        forget_durable_point(file_system)
    cut(file_system, segment_path(6), BATCH_SIZE)
    log = open_log(file_system)
    assert (log.start_offset, log.quarantine) == (8, None)
    assert bool(told(log, ActionKind.LOST)) == is_ours
    assert len([path for path in file_system.contents() if ".superseded-" in path or ".damaged-" in path]) == 4


@pytest.mark.parametrize("is_ours", [False, True])
def test_all_segments_that_a_snapshot_covers_are_missed(*, is_ours: bool) -> None:
    """A log without a segment, but with other files that show records, has lost them."""
    file_system = covered()
    if not is_ours:
        forget_durable_point(file_system)
    for base_offset in (0, 3, 6):
        file_system.remove(segment_path(base_offset))
    log = open_log(file_system)
    assert (log.start_offset, log.quarantine) == (8, None)
    assert told(log, ActionKind.LOST)


def test_all_segments_of_kafkas_log_are_missed() -> None:
    """Without a snapshot, too: an empty log would forget what it has acknowledged."""
    file_system = kafkas()
    for base_offset in (0, 3, 6):
        file_system.remove(segment_path(base_offset))
    assert open_log(file_system).quarantine is not None


@pytest.mark.parametrize("is_ours", [False, True])
@pytest.mark.parametrize(("gone", "is_emptied"), [((0,), False), ((0, 3), False), ((0,), True)])
def test_first_segments_that_a_snapshot_covers_are_missed(
    gone: tuple[int, ...], *, is_emptied: bool, is_ours: bool
) -> None:
    """The log continues without them, and reports it once; the rest of it is kept."""
    file_system = covered()
    if not is_ours:
        forget_durable_point(file_system)
    for base_offset in gone:
        if is_emptied:
            cut(file_system, segment_path(base_offset), 0)
        else:
            file_system.remove(segment_path(base_offset))
    log = open_log(file_system)
    start = max(gone) + 3
    assert (log.start_offset, log.end_offset.offset, log.quarantine) == (start, 8, None)
    (lost,) = told(log, ActionKind.LOST)
    assert lost.path == segment_path(0)
    assert f"offsets 0 to {start} (exclusive) are missing" in lost.detail
    assert records_of(log) == expected(start, 8)
    older = {path for path in file_system.contents() if path.startswith(snapshot_path(5))}
    assert older == {snapshot_path(5) if start <= 5 else f"{snapshot_path(5)}.superseded-{8:020}-{1:010}"}
    log.close()
    assert open_log(file_system).recovery.actions == ()


@pytest.mark.parametrize("offset", [3, 4, 6, 8])
def test_a_start_that_was_deleted_is_not_missed(offset: int) -> None:
    """By us, or by a Kafka that ran in the directory meanwhile and says so in its checkpoint."""
    log = open_log(file_system := MemoryFileSystem())
    fill(log, 8)
    log.delete_before_snapshot(make_snapshot(log, offset))
    log.close()
    assert open_log(file_system).recovery.actions == ()
    by_kafka = write_log(8)
    base_offset = offset // 3 * 3
    for removed in range(0, base_offset, 3):
        by_kafka.remove(segment_path(removed))
    by_kafka.open(snapshot_path(offset), create=True).append(snapshot_bytes(OffsetAndEpoch(offset, 1)))
    checkpoint = join(DIRECTORY, "leader-epoch-checkpoint")
    by_kafka.remove(checkpoint)
    by_kafka.open(checkpoint, create=True).append(b"0\n1\n1 %d\n" % offset)
    assert not told(open_log(by_kafka), ActionKind.LOST)


@pytest.mark.parametrize("operation", [Operation.REMOVE, Operation.SYNC_DIRECTORY])
def test_a_decided_truncation_is_finished(operation: Operation) -> None:
    """Where the owner had begun to remove what is below a snapshot, the next start does the rest, and keeps nothing."""
    skip = 0
    while True:
        log = open_log(file_system := MemoryFileSystem())
        fill(log, 8)
        log.flush()
        install_snapshot(log, 20, 4)
        fault = Fault(operation, skip=skip)
        file_system.faults.append(fault)
        try:
            log.truncate_to_latest_snapshot()
        except StorageError:
            log = open_log(file_system := kill(file_system))
            assert (log.start_offset, log.end_offset.offset, log.quarantine) == (20, 20, None)
            aside = {path for path in file_system.contents() if ".superseded-" in path or ".damaged-" in path}
            began = any(".log" in path for path in file_system.contents()) and not aside
            assert began or skip == 0
            assert not told(log, ActionKind.LOST)
        if not fault.is_spent:
            break
        skip += 1
    assert skip > 3


def test_snapshots_that_contradict_each_other_open_nothing() -> None:
    """A later epoch takes nothing with it that another snapshot proves; nothing is changed."""
    log = open_log(file_system := MemoryFileSystem())
    fill(log, 8)
    make_snapshot(log, 5)
    log.close()
    file_system.open(snapshot_path(4, 7), create=True).append(snapshot_bytes(OffsetAndEpoch(4, 7)))
    before = file_system.contents()
    with pytest.raises(TruncationBelowHighWatermarkError, match="snapshot"):
        open_log(file_system)
    assert file_system.contents() == before
