# SPDX-License-Identifier: Apache-2.0
"""Whatever fails, and wherever: a log answers all that it answers from memory, and the answers agree."""

from collections.abc import Callable
from typing import Final

import attrs
import pytest

from raftlog.errors import OffsetOutOfRangeError, RaftLogError, StorageError
from raftlog.offsets import OffsetAndEpoch
from raftlog.storage.log.file_log import FileLog
from raftlog.testing.contracts.made_batches import raft_batch, snapshot_bytes
from raftlog.testing.file_system.faults import Fault, Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.file_logs import (
    BATCH_SIZE,
    expected,
    fill,
    flip,
    install_snapshot,
    kill,
    make_snapshot,
    open_log,
    overwrite,
    segment_path,
)

FAULTS: Final = {
    "the disk fails": Fault(),
    "the disk fails for good": Fault(is_lasting=True),
    "no sync succeeds": Fault(Operation.SYNC, is_lasting=True),
    "the disk is full": Fault(is_full=True, written_bytes=30),
    "the disk stays full": Fault(is_full=True, is_lasting=True),
}
SLOW: Final = ("the disk fails for good", "no sync succeeds", "the disk stays full")
Change = Callable[[FileLog], object]


def truncate_to_the_high_watermark(log: FileLog) -> None:
    log.truncate_to(4)


def truncate_as_a_leader_says(log: FileLog) -> None:
    log.truncate_to_end_offset(OffsetAndEpoch(5, 1))


def append(log: FileLog) -> None:
    log.append_as_leader(raft_batch(8, 2), 2)


def append_in_a_new_epoch(log: FileLog) -> None:
    log.append_as_leader(raft_batch(8, 5), 5)


def append_as_a_follower(log: FileLog) -> None:
    log.append_as_follower(raft_batch(log.end_offset.offset, 2), 3)


def roll(log: FileLog) -> None:
    fill(log, 3, epoch=2)


def flush(log: FileLog) -> None:
    fill(log, 1, epoch=2)
    log.flush()


def enter_an_epoch(log: FileLog) -> None:
    log.initialize_leader_epoch(7)


def freeze_a_snapshot(log: FileLog) -> None:
    log.update_high_watermark(6)
    make_snapshot(log, 6, epoch=2)


def freeze_one_that_comes_late(log: FileLog) -> None:
    late = log.create_snapshot_unchecked(OffsetAndEpoch(3, 1))
    assert late is not None
    late.append(snapshot_bytes(OffsetAndEpoch(3, 1)))
    log.delete_before_snapshot(OffsetAndEpoch(4, 1))
    late.freeze()


def delete_before_a_snapshot(log: FileLog) -> None:
    log.delete_before_snapshot(OffsetAndEpoch(4, 1))


def delete_all_for_a_snapshot(log: FileLog) -> None:
    log.update_high_watermark(8)
    log.delete_before_snapshot(make_snapshot(log, 8, epoch=2))


def restart_above(log: FileLog) -> None:
    install_snapshot(log, 20, 4)
    log.truncate_to_latest_snapshot()


def restart_below(log: FileLog) -> None:
    install_snapshot(log, 6, 4)
    log.truncate_to_latest_snapshot()


def close(log: FileLog) -> None:
    if log.quarantine is None:
        fill(log, 1, epoch=2)
    log.close()


CHANGES: Final = (
    truncate_to_the_high_watermark,
    truncate_as_a_leader_says,
    append,
    append_in_a_new_epoch,
    append_as_a_follower,
    roll,
    flush,
    enter_an_epoch,
    freeze_a_snapshot,
    freeze_one_that_comes_late,
    delete_before_a_snapshot,
    delete_all_for_a_snapshot,
    restart_above,
    restart_below,
    close,
)
IN_QUARANTINE: Final = (
    truncate_to_the_high_watermark,
    truncate_as_a_leader_says,
    append_as_a_follower,
    restart_above,
    close,
)


def sound() -> MemoryFileSystem:
    """A log of offsets 0 to 8, in three segments, of epochs 1 (up to 5) and 2, with a snapshot at 4."""
    log = open_log(file_system := MemoryFileSystem())
    fill(log, 5)
    make_snapshot(log, 4)
    fill(log, 3, epoch=2)
    log.flush()
    return kill(file_system)


def damaged() -> MemoryFileSystem:
    """The same with a damaged batch at offset 6."""
    file_system = sound()
    flip(file_system, segment_path(6), 70)
    return file_system


def check_answers(log: FileLog) -> None:
    """Ask for all that is answered from memory, and hold the answers against each other."""
    start, end, high_watermark = log.start_offset, log.end_offset, log.high_watermark
    assert start <= high_watermark.offset <= end.offset
    assert 0 <= log.flushed_offset <= end.offset
    assert log.quarantine is None or log.quarantine.first_bad_offset <= end.offset
    assert log.snapshot_ids == tuple(sorted(log.snapshot_ids))
    assert log.earliest_snapshot_id == min(log.snapshot_ids, default=None)
    assert log.latest_snapshot_id == max(log.snapshot_ids, default=None)
    epochs = [log.epoch_at_offset(offset) for offset in range(start, end.offset)]
    assert epochs == sorted(epochs)
    assert log.last_fetched_epoch >= max(epochs, default=0)
    for offset in (start - 1, end.offset):
        with pytest.raises(OffsetOutOfRangeError):
            log.epoch_at_offset(offset)
    for epoch in range(10):
        found = log.end_offset_for_epoch(epoch)
        assert found.offset <= end.offset
    for offset in range(end.offset + 2):
        log.validate_offset_and_epoch(offset, 1)
    log.update_high_watermark(high_watermark.offset)


@pytest.mark.parametrize("what", [pytest.param(each, marks=[pytest.mark.slow] * (each in SLOW)) for each in FAULTS])
@pytest.mark.parametrize(
    ("make", "change"), [(sound, each) for each in CHANGES] + [(damaged, each) for each in IN_QUARANTINE]
)
def test_a_log_answers_whatever_has_failed(make: Callable[[], MemoryFileSystem], change: Change, what: str) -> None:
    """At each operation of the disk that a change makes; and what counts as flushed is there after a crash."""
    source, failures = make(), 0
    for skip in range(1000):
        file_system = source.settled()
        log = open_log(file_system)
        fault = attrs.evolve(FAULTS[what], skip=skip)
        file_system.faults.append(fault)
        try:
            change(log)
        except RaftLogError:
            failures += 1
        check_answers(log)
        has_struck = fault.is_spent or (fault.is_lasting and fault.skip == 0)
        flushed = log.flushed_offset
        if not has_struck:
            break
        file_system.faults.clear()
        check_answers(log)
        again = open_log(file_system.crash(lambda count: 0))
        # A snapshot that another leader has sent takes back what was flushed and never committed.
        assert again.end_offset.offset >= (min(flushed, 6) if change is restart_below else flushed)
        check_answers(again)
    assert failures > 0 or change in {append, append_as_a_follower} or FAULTS[what].operation is Operation.SYNC
    assert skip > 0


@pytest.mark.parametrize("position", [0, 8, 12])
def test_a_high_watermark_at_damaged_bytes_is_known(position: int) -> None:
    """The offset is in memory, and its place is left out where no header there can be one of the log."""
    log = open_log(file_system := sound())
    overwrite(file_system, segment_path(3), BATCH_SIZE + position, b"\x7f\x7f\x7f\x7f")
    log.update_high_watermark(4)
    found = []
    for offset in (4, 5, 6):
        log.update_high_watermark(offset)
        found.append((log.high_watermark.offset, log.high_watermark.segment_position is None))
    assert found == [(4, position < 12), (5, False), (6, False)]
    check_answers(log)


def test_a_closed_log_answers() -> None:
    """As it was when it was closed."""
    log = open_log(sound())
    log.close()
    check_answers(log)
    with pytest.raises(StorageError):
        log.flush()


def test_the_place_of_a_high_watermark_is_known_otherwise() -> None:
    """If the disk can read it, the epoch is returned: for the start, inside, and at the end."""
    log = open_log(sound())
    for offset, (base_offset, position) in {4: (3, 1), 5: (3, 2), 8: (6, 2)}.items():
        log.update_high_watermark(offset)
        place = log.high_watermark.segment_position
        assert place is not None
        assert (place.base_offset, place.position) == (base_offset, position * BATCH_SIZE)
    assert expected(0, 1)
