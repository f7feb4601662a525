# SPDX-License-Identifier: Apache-2.0
"""A log restarts at a snapshot that is ahead of it: whatever fails meanwhile, nothing is lost without a word."""

import pytest

from raftlog.errors import StorageError
from raftlog.file_system import join
from raftlog.log.replicated_log import Quarantine
from raftlog.storage.recovery.recovery_point import FLUSH_MARK_NAME, load_durable_point
from raftlog.storage.recovery.recovery_report import ActionKind
from raftlog.testing.crash_points import Promise, enumerate_crashes
from raftlog.testing.file_system.faults import Fault, Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.file_logs import (
    BATCH_SIZE,
    DIRECTORY,
    covered,
    cut,
    fill,
    flip,
    forget_durable_point,
    install_snapshot,
    kill,
    make_snapshot,
    open_log,
    overwrite,
    segment_path,
    told,
)


@pytest.mark.parametrize("is_full", [False, True])
@pytest.mark.parametrize("is_rotten", [False, True])
def test_a_snapshot_takes_the_place_after_any_failure(*, is_rotten: bool, is_full: bool) -> None:
    """Whichever operation fails, the next start finds all of the bytes, and comes to the same."""
    if is_rotten:
        flip(source := covered(), segment_path(6), BATCH_SIZE + 70)
    else:
        log = open_log(source := MemoryFileSystem())
        fill(log, 8)
        log.flush()
        install_snapshot(log, 20, 4)
        source = kill(source)
    before = [data for path, data in source.contents().items() if path.endswith((".log", ".checkpoint"))]
    for skip in range(1000):
        file_system = source.settled()
        has_failed = False
        for operation in (Operation.RENAME, Operation.SYNC, Operation.WRITE):  # A read that fails would be damage.
            file_system.faults[:] = [Fault(operation, skip=skip, is_full=is_full)]
            try:
                open_log(file_system)
            except StorageError:
                has_failed = True
                file_system = kill(file_system)
        file_system.faults.clear()
        log = open_log(file_system)
        assert log.quarantine is None
        assert log.start_offset == log.end_offset.offset == (8 if is_rotten else 20)
        assert set(before) <= set(file_system.contents().values())
        if not has_failed:
            break
    assert skip > 2


@pytest.mark.parametrize("is_rotten", [False, True])
def test_a_crash_while_a_snapshot_takes_the_place(*, is_rotten: bool) -> None:
    """After every crash all bytes exist; only damage is reported, until a startup has completed."""
    source = MemoryFileSystem()
    log = open_log(source)
    fill(log, 8)
    make_snapshot(log, 5)
    log.flush()
    install_snapshot(log, 8 if is_rotten else 20, 4)
    source = kill(source)
    if is_rotten:
        flip(source, segment_path(6), BATCH_SIZE + 70)
    before = {path: data for path, data in source.contents().items() if path.endswith((".log", ".checkpoint"))}

    def scenario(file_system: MemoryFileSystem, promise: Promise) -> None:
        log = open_log(file_system)
        assert bool(told(log, ActionKind.LOST)) == is_rotten
        promise("told")

    def check(file_system: MemoryFileSystem, promised: object) -> None:
        point = load_durable_point(file_system, DIRECTORY).recovery_point
        is_done = point is not None and point.log_start_offset == (8 if is_rotten else 20)
        log = open_log(file_system)
        assert log.quarantine is None
        assert log.start_offset == log.end_offset.offset == (8 if is_rotten else 20)
        if not is_rotten:
            assert not told(log, ActionKind.LOST)
        else:
            assert is_done or told(log, ActionKind.LOST)
        # Writing a length anew adds a zero for a moment, which a crash may leave.
        kept = {each.rstrip(b"\0") for each in file_system.contents().values()}
        assert {each.rstrip(b"\0") for each in before.values()} <= kept

    assert enumerate_crashes(scenario, check, start=source, crashes=2).is_complete


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_crash_hides_no_loss_that_the_snapshot_does_not_cover(*, is_cut: bool) -> None:
    """The log was durable up to 8, and restarts at 7: after any crashes it is in quarantine until it has passed 8."""
    log = open_log(source := MemoryFileSystem())
    fill(log, 8)
    log.flush()
    make_snapshot(log, 7)
    source = kill(source)
    if is_cut:
        cut(source, segment_path(6), 0)
    else:
        flip(source, segment_path(6), 70)
        cut(source, segment_path(6), BATCH_SIZE)

    def lost(file_system: MemoryFileSystem) -> Quarantine | None:
        log = open_log(file_system)
        assert log.start_offset == log.end_offset.offset == 7
        return log.quarantine

    def scenario(file_system: MemoryFileSystem, promise: Promise) -> None:
        assert lost(file_system) is not None
        promise("told")

    def check(file_system: MemoryFileSystem, promised: object) -> None:
        quarantine = lost(file_system)
        assert quarantine is not None
        assert (quarantine.first_bad_offset, quarantine.durable_end_offset) == (7, 8)

    assert enumerate_crashes(scenario, check, start=source, crashes=2).is_complete


@pytest.mark.parametrize("start", [3, 4, 6, 7])
def test_a_crash_loses_nothing_of_a_log_that_starts_late(start: int) -> None:
    """Segments that a crashed startup has set aside are not missed, wherever in a segment the log starts."""
    log = open_log(source := MemoryFileSystem())
    fill(log, 8)
    log.flush()
    log.delete_before_snapshot(make_snapshot(log, start))
    install_snapshot(log, 20, 4)
    source = kill(source)

    def scenario(file_system: MemoryFileSystem, promise: Promise) -> None:
        open_log(file_system)
        promise("opened")

    def check(file_system: MemoryFileSystem, promised: object) -> None:
        log = open_log(file_system)
        assert (log.start_offset, log.end_offset.offset, log.quarantine) == (20, 20, None)
        assert not told(log, ActionKind.LOST)

    assert enumerate_crashes(scenario, check, start=source, crashes=2).is_complete


@pytest.mark.parametrize("newest", [5, 6, 7, 8])
@pytest.mark.parametrize("bad_offset", [3, 4])
def test_a_log_of_which_nothing_is_left_restarts_at_the_newest_snapshot(*, bad_offset: int, newest: int) -> None:
    """Without the snapshot at its start and the first batch after that, no leader can tell where the log agrees."""
    log = open_log(source := MemoryFileSystem())
    fill(log, 8)
    log.flush()
    log.delete_before_snapshot(make_snapshot(log, 3))
    make_snapshot(log, newest)
    source = kill(source)
    snapshot = join(DIRECTORY, f"{3:020}-{1:010}.checkpoint")
    data = bytearray(source.contents()[snapshot])
    data[70] ^= 1
    source.remove(snapshot)
    source.open(snapshot, create=True).append(bytes(data))
    flip(source, segment_path(3), (bad_offset - 3) * BATCH_SIZE + 70)
    before = [data for path, data in source.contents().items() if path.endswith((".log", ".checkpoint"))]
    log = open_log(source)
    if bad_offset == 3:
        assert log.start_offset == log.end_offset.offset == newest
    else:  # The first batch says which epoch the log agrees with.
        assert (log.start_offset, log.end_offset.offset) == (3, 4)
    assert log.last_fetched_epoch == 1
    if newest == 8 and bad_offset == 3:
        assert log.quarantine is None
        assert told(log, ActionKind.LOST)
    else:
        assert log.quarantine is not None
        assert (log.quarantine.first_bad_offset, log.quarantine.durable_end_offset) == (log.end_offset.offset, 8)
    assert set(before) <= set(source.contents().values())
    log.close()
    assert open_log(source).end_offset == log.end_offset


@pytest.mark.parametrize("evidence", ["mark", "point", "kafka"])
def test_a_crash_forgets_no_end_that_only_the_segments_show(evidence: str) -> None:
    """The log restarts below sound batches: after any crashes the quarantine is as long as without one."""
    log = open_log(source := MemoryFileSystem())
    fill(log, 8)
    log.flush()
    log.delete_before_snapshot(make_snapshot(log, 3))
    make_snapshot(log, 5)
    fill(log, 2)
    log.flush()
    source = kill(source)
    if evidence == "point":
        overwrite(source, join(DIRECTORY, FLUSH_MARK_NAME), 0, bytes(4136))
    elif evidence == "kafka":
        forget_durable_point(source)
    source.remove(join(DIRECTORY, f"{3:020}-{1:010}.checkpoint"))
    flip(source, segment_path(3), 70)

    def lost(file_system: MemoryFileSystem) -> tuple[int, int]:
        quarantine = open_log(file_system).quarantine
        assert quarantine is not None
        return quarantine.first_bad_offset, quarantine.durable_end_offset

    def scenario(file_system: MemoryFileSystem, promise: Promise) -> None:
        assert lost(file_system) == (5, 10)
        promise("told")

    def check(file_system: MemoryFileSystem, promised: object) -> None:
        assert lost(file_system) == (5, 10)

    assert enumerate_crashes(scenario, check, start=source, crashes=2).is_complete


@pytest.mark.parametrize("is_readable", [False, True])
def test_segments_that_were_set_aside_count_as_far_as_they_are_sound(*, is_readable: bool) -> None:
    """A crashed open has superseded the log: what cannot be read there any more, or has rotted, is told as lost."""
    log = open_log(source := MemoryFileSystem())
    fill(log, 8)
    log.flush()
    install_snapshot(log, 20, 4)
    source = kill(source)
    for base_offset in (0, 3, 6):
        source.rename(segment_path(base_offset), f"{segment_path(base_offset)}.superseded-{20:020}-{4:010}")
    aside = f"{segment_path(6)}.superseded-{20:020}-{4:010}"
    assert not told(open_log(source.settled()), ActionKind.LOST)
    if is_readable:
        overwrite(source, aside, BATCH_SIZE, (2**40).to_bytes(8, "big"))
    else:
        source.faults.append(Fault(Operation.READ, path_end=aside, is_lasting=True))
    log = open_log(source)
    assert (log.start_offset, log.end_offset.offset, log.quarantine) == (20, 20, None)
    assert told(log, ActionKind.LOST)
