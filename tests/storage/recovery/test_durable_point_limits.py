# SPDX-License-Identifier: Apache-2.0
"""Recovery points and flush marks at their limits: the case at each, and the ones beside it."""

import pytest

from raftlog.errors import CorruptFileError, StorageError
from raftlog.file_system import join
from raftlog.log.epochs import LeaderEpochs
from raftlog.offsets import EpochEntry
from raftlog.storage.recovery.recovery_point import (
    FLUSH_MARK_NAME,
    RECOVERY_POINT_NAME,
    DurablePoint,
    FlushMark,
    RecoveryPoint,
    StoredDurablePoint,
    load_durable_point,
    read_flush_mark,
    read_flush_marks,
    read_recovery_point,
)
from raftlog.testing.file_system.faults import Fault, Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.flush_marks import slot_of

MARKS = join("log", FLUSH_MARK_NAME)
BOTH_SIZE = 4096 + 40


def _file_system() -> MemoryFileSystem:
    return MemoryFileSystem((("log", None, False),))


def _sync(durable: DurablePoint, end_offset: int) -> None:
    durable.mark_sync(MemoryFileSystem().open("segment", create=True), end_offset)


def test_every_changed_digit_is_noticed() -> None:
    """Of a recovery point with a digit that is another, above the CRC or in it, nothing is trusted."""
    data = RecoveryPoint(4711, 4000, 12, is_clean=True, epochs=(EpochEntry(3, 4000), EpochEntry(5, 4100))).encode()
    body = data.index(b"\n") + 1
    places = [at for at in range(body, len(data)) if chr(data[at]) in "0123456789abcdef"]
    changed = {at: data[:at] + (b"1" if data[at : at + 1] != b"1" else b"2") + data[at + 1 :] for at in places}
    assert len(changed) > 20
    for bad in changed.values():
        with pytest.raises(CorruptFileError):
            read_recovery_point(bad)


@pytest.mark.parametrize(
    "point",
    [
        RecoveryPoint(generation=0),
        RecoveryPoint(generation=2**62 - 1),
        RecoveryPoint(generation=2**62),
        RecoveryPoint(durable_end_offset=2**63 - 1),
        RecoveryPoint(log_start_offset=2**63 - 1),
        RecoveryPoint(epochs=(EpochEntry(2**31 - 1, 2**63 - 1),)),
        RecoveryPoint(9, synced_end_offset=8),
        RecoveryPoint(1, synced_end_offset=0),
        RecoveryPoint(2**63 - 1, synced_end_offset=2**63 - 2),
    ],
)
def test_the_greatest_numbers_are_taken(point: RecoveryPoint) -> None:
    """Whatever a log can have is read; one more is refused elsewhere."""
    assert read_recovery_point(point.encode()) == point


@pytest.mark.parametrize("mark", [FlushMark(0, 0), FlushMark(2**62 - 1, 1), FlushMark(2**62, 2**63 - 1)])
def test_the_greatest_marks_are_taken(mark: FlushMark) -> None:
    """Whatever a log can have is read, also from more than 40 bytes; of 39 nothing is."""
    assert read_flush_mark(slot_of(mark)) == read_flush_mark(slot_of(mark) + b"\xff") == mark
    assert read_flush_mark(slot_of(mark)[:39]) is None


def test_slots_are_read_from_their_own_bytes() -> None:
    """A slot of zeros was never written, whatever the other one has; a slot of other invalid bytes is damaged."""
    slot, mark = slot_of(FlushMark(1, 9)), FlushMark(1, 9)
    assert read_flush_marks(bytes(4096) + slot) == {4096: mark}
    assert read_flush_marks(slot + bytes(4096)) == {0: mark}
    assert read_flush_marks(bytes(39) + b"\1" + bytes(4056) + slot) == {0: None, 4096: mark}
    assert read_flush_marks(bytes(40) + b"\1" + bytes(4055) + slot) == {4096: mark}
    assert read_flush_marks(bytes(4095) + b"\1" + slot) == {4096: mark}
    assert read_flush_marks(b"") == read_flush_marks(bytes(BOTH_SIZE)) == {}


@pytest.mark.parametrize(
    ("epoch", "start_offset", "is_foreign"),
    [
        pytest.param(6, 9, True, id="a later epoch below the durable end"),
        pytest.param(5, 9, False, id="the last known epoch"),
        pytest.param(4, 9, False, id="an earlier epoch"),
        pytest.param(6, 10, False, id="a later epoch at the durable end"),
        pytest.param(6, 11, False, id="a later epoch above the durable end"),
        pytest.param(7, 0, True, id="a later epoch at the start"),
    ],
)
def test_overwritten_durable_records(epoch: int, start_offset: int, is_foreign: bool) -> None:
    """An unknown higher epoch that starts below the durable end is another program's; one at the end is not."""
    stored = StoredDurablePoint(RecoveryPoint(10, epochs=(EpochEntry(5, 0),)), ())
    entry = EpochEntry(epoch, start_offset)
    cache = LeaderEpochs([entry])
    assert stored.overwritten_by(cache, cache) == (entry if is_foreign else None)
    assert stored.overwritten_by(cache, LeaderEpochs()) is None
    assert stored.overwritten_by(LeaderEpochs(), cache) is None


def test_the_next_generation_is_one_more() -> None:
    """It is above that of the recovery point and of all marks, and 1 where there are none."""
    assert StoredDurablePoint(None, ()).next_generation == 1
    assert StoredDurablePoint(RecoveryPoint(generation=4), ()).next_generation == 5
    assert StoredDurablePoint(RecoveryPoint(generation=4), (FlushMark(3, 0), FlushMark(7, 0))).next_generation == 8


@pytest.mark.parametrize("size", [0, 1, BOTH_SIZE - 1, BOTH_SIZE, BOTH_SIZE + 1])
def test_the_marks_have_their_room_from_the_start(size: int) -> None:
    """The file is made as long as both slots, and what it holds is kept: a mark never makes a file grow."""
    file_system = _file_system()
    old = (slot_of(FlushMark(1, 9)) + bytes(BOTH_SIZE))[:size]
    file_system.open(MARKS, create=True).append(old)
    durable = DurablePoint(file_system, "log", RecoveryPoint(5, 0, 1))
    expected = old.ljust(BOTH_SIZE, b"\0")
    assert file_system.contents()[MARKS] == expected
    _sync(durable, 11)
    _sync(durable, 12)
    assert len(file_system.contents()[MARKS]) == len(expected)


def test_a_recovery_point_that_cannot_be_written_is_an_error() -> None:
    """Nobody gets a durable point whose first recovery point is not on the disk."""
    for operation in (Operation.WRITE, Operation.SYNC, Operation.RENAME, Operation.SYNC_DIRECTORY):
        file_system = _file_system()
        file_system.open(MARKS, create=True).append(bytes(BOTH_SIZE))
        file_system.faults.append(Fault(operation))
        with pytest.raises(StorageError):
            DurablePoint(file_system, "log", RecoveryPoint(5, 0, 1))


def test_the_stored_state_is_in_force_from_then_on() -> None:
    """The point says what was stored last, and the marks that come then are of its generation."""
    file_system = _file_system()
    durable = DurablePoint(file_system, "log", RecoveryPoint(5, 0, 1))
    assert durable.point == RecoveryPoint(5, 0, 1)
    durable.store(RecoveryPoint(4, 0, 2))
    assert durable.point == RecoveryPoint(4, 0, 2)
    _sync(durable, 7)
    assert load_durable_point(file_system, "log").marks == (FlushMark(2, 7),)


@pytest.mark.parametrize(("end_offset", "is_stored"), [(4, False), (5, False), (6, True)])
def test_a_recovery_point_is_replaced_only_for_more(end_offset: int, is_stored: bool) -> None:
    """Without marks, a sync that covers no more than before writes nothing; with marks, no sync does."""
    file_system = _file_system()
    durable = DurablePoint(file_system, "log", RecoveryPoint(5, 0, 1, is_clean=True))
    _sync(durable, end_offset)
    assert not _renames(file_system, 1)
    file_system.faults.append(Fault(Operation.WRITE, path_end=FLUSH_MARK_NAME))
    _sync(durable, end_offset)
    assert _renames(file_system, 1) == is_stored
    stored = load_durable_point(file_system, "log").recovery_point
    assert stored == (RecoveryPoint(end_offset, 0, 1) if is_stored else RecoveryPoint(5, 0, 1, is_clean=True))


def _renames(file_system: MemoryFileSystem, before: int) -> bool:
    """Whether the recovery point was replaced more often than that."""
    renames = [step for step in file_system.steps if step.operation is Operation.RENAME]
    assert all(RECOVERY_POINT_NAME in step.path for step in renames)
    return len(renames) > before
