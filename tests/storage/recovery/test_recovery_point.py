# SPDX-License-Identifier: Apache-2.0
"""The durable end is remembered, or unknown; never too high."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    read_recovery_point,
)
from raftlog.testing.file_system.faults import Fault, Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.file_logs import DIRECTORY, fill, open_log
from tests.flush_marks import slot_of

offsets = st.integers(0, 2**63 - 1)
entries = st.lists(st.builds(EpochEntry, st.integers(0, 2**31 - 1), offsets), max_size=3).map(tuple)
generations = st.integers(0, 2**62)
whole_points = st.builds(RecoveryPoint, offsets, offsets, generations, st.booleans(), entries)
points = whole_points | st.builds(
    lambda point, end_offset: attrs.evolve(
        point, durable_end_offset=max(point.durable_end_offset, end_offset + 1), synced_end_offset=end_offset
    ),
    whole_points,
    st.integers(0, 2**63 - 2),
)
marks = st.builds(FlushMark, generations, offsets)

Epochs = tuple[EpochEntry, ...]


def _in_order(epochs: set[int], starts: list[int]) -> Epochs:
    return tuple(EpochEntry(epoch, start) for epoch, start in zip(sorted(epochs), sorted(starts), strict=False))


few_epochs = st.builds(
    _in_order, st.sets(st.integers(0, 5), max_size=4), st.lists(st.integers(0, 9), unique=True, max_size=4)
)


@given(points)
def test_a_recovery_point_comes_back_as_it_was(point: RecoveryPoint) -> None:
    """Writing and reading are inverse."""
    assert read_recovery_point(point.encode()) == point


@given(points, st.data())
def test_no_changed_byte_goes_unnoticed(point: RecoveryPoint, data: st.DataObject) -> None:
    """A recovery point with a changed, missing or additional byte is an error, or says the same."""
    encoded = bytearray(point.encode())
    position = data.draw(st.integers(0, len(encoded) - 1))
    encoded[position] ^= 1 << data.draw(st.integers(0, 7))
    for bad in (bytes(encoded), bytes(encoded[:position]), point.encode() + b"\n"):
        with pytest.raises(CorruptFileError):
            read_recovery_point(bad)


def test_the_text_is_as_documented() -> None:
    """The file can be read by people."""
    point = RecoveryPoint(4711, 4000, 12, is_clean=True, epochs=(EpochEntry(3, 4000),))
    assert point.encode().decode().splitlines()[:-1] == [
        "raftlog-recovery-point 0",
        "durable_end_offset 4711",
        "log_start_offset 4000",
        "generation 12",
        "clean_shutdown 1",
        "epoch 3 4000",
    ]
    lines = attrs.evolve(point, synced_end_offset=4200).encode().decode().splitlines()
    assert lines[1:3] == ["durable_end_offset 4711", "synced_end_offset 4200"]


@given(marks, st.integers(0, 39), st.integers(0, 7))
def test_a_mark_is_whole_or_none(mark: FlushMark, position: int, bit: int) -> None:
    """A torn or damaged slot is ignored."""
    encoded = bytearray(slot_of(mark))
    assert len(encoded) == 40
    assert read_flush_mark(bytes(encoded)) == mark
    encoded[position] ^= 1 << bit
    assert read_flush_mark(bytes(encoded)) is None
    assert read_flush_mark(slot_of(mark)[:position]) is None
    assert read_flush_mark(bytes(40)) is None


@given(marks, marks, st.integers(0, 40))
def test_a_mark_over_another_is_one_of_them_or_none(old: FlushMark, new: FlushMark, cut: int) -> None:
    """Wherever a write in place was cut, what is left is the old mark, the new one or nothing."""
    assert read_flush_mark(slot_of(new)[:cut] + slot_of(old)[cut:]) in (old, new, None)


@given(st.none() | points, st.lists(marks, max_size=2))
def test_marks_count_with_their_recovery_point(point: RecoveryPoint | None, found: list[FlushMark]) -> None:
    """A mark of another generation is from before a truncation; without a recovery point the last ones count."""
    stored = StoredDurablePoint(point, tuple(found))
    if point is None:
        latest = max((mark.generation for mark in found), default=0)
        ends = [mark.durable_end_offset for mark in found if mark.generation == latest]
    else:
        ends = [mark.durable_end_offset for mark in found if mark.generation == point.generation]
        ends.append(point.durable_end_offset)
    assert stored.durable_end_offset == (max(ends) if ends else None)
    assert all(mark.generation < stored.next_generation for mark in found)


@given(st.integers(0, 9), few_epochs, few_epochs, few_epochs)
def test_only_an_epoch_that_is_new_lowers_the_durable_end(
    durable_end_offset: int, known: Epochs, in_log: Epochs, in_checkpoint: Epochs
) -> None:
    """It is the first that log and checkpoint agree on, above all that are known, and below the durable end."""
    stored = StoredDurablePoint(RecoveryPoint(durable_end_offset, epochs=known), ())
    found = stored.overwritten_by(LeaderEpochs(in_log), LeaderEpochs(in_checkpoint))
    fitting = [
        each
        for each in in_log
        if each in in_checkpoint and known and each.epoch > known[-1].epoch and each.start_offset < durable_end_offset
    ]
    assert found == (fitting[0] if fitting else None)


def sync(durable: DurablePoint, end_offset: int) -> None:
    """Do what belongs to a sync."""
    durable.mark_sync(MemoryFileSystem().open("segment", create=True), end_offset)


def test_marks_take_turns() -> None:
    """One of two marks is always complete, whatever becomes of the write of the other."""
    file_system = MemoryFileSystem()
    file_system.make_directory("log")
    durable = DurablePoint(file_system, "log", RecoveryPoint(5, 0, 1))
    for end_offset in (7, 9, 11):
        sync(durable, end_offset)
    stored = load_durable_point(file_system, "log")
    assert stored.durable_end_offset == 11
    assert {mark.durable_end_offset for mark in stored.marks} == {9, 11}
    path = join("log", FLUSH_MARK_NAME)
    file = file_system.open(path)
    file.write_at(0, b"\xff" * 512)
    assert load_durable_point(file_system, "log").durable_end_offset == 9
    durable.store(RecoveryPoint(6, 0, 2))
    assert load_durable_point(file_system, "log").durable_end_offset == 6
    durable.close()
    durable.close()


def test_without_marks_the_recovery_point_is_the_durable_end() -> None:
    """Where a mark cannot be written, the other file is replaced, as far as there is room; no sync goes unnoticed."""
    file_system = MemoryFileSystem((("log", None, False),))
    durable = DurablePoint(file_system, "log", RecoveryPoint(5, 3, 1, is_clean=True, epochs=(EpochEntry(1, 0),)))
    file_system.faults.append(Fault(Operation.WRITE, path_end=FLUSH_MARK_NAME))
    for end_offset in (7, 9):
        sync(durable, end_offset)
        stored = load_durable_point(file_system, "log")
        assert stored.recovery_point == RecoveryPoint(end_offset, 3, 1, epochs=(EpochEntry(1, 0),))
    file_system.faults.append(Fault(Operation.WRITE, is_full=True))
    sync(durable, 11)
    assert load_durable_point(file_system, "log").durable_end_offset == 9
    sync(durable, 11)
    assert load_durable_point(file_system, "log").durable_end_offset == 11


def test_a_new_epoch_that_begins_with_a_segment_is_witnessed() -> None:
    """Where the first batch of an epoch makes the log roll, the recovery point knows of the epoch all the same."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 3)
    fill(log, 1, epoch=2)
    stored = load_durable_point(file_system, DIRECTORY).epochs
    assert stored is not None
    assert stored.entries == (EpochEntry(1, 0), EpochEntry(2, 3))


def test_what_cannot_be_read_is_an_error_or_reported() -> None:
    """A damaged recovery point is a problem to report; one that cannot be read is an error."""
    file_system = MemoryFileSystem()
    file_system.make_directory("log")
    assert load_durable_point(file_system, "log") == StoredDurablePoint(None, ())
    DurablePoint(file_system, "log", RecoveryPoint(5, 0, 1)).close()
    path = join("log", RECOVERY_POINT_NAME)
    file_system.open(path).write_at(30, b"x")
    stored = load_durable_point(file_system, "log")
    assert stored.recovery_point is None
    assert stored.problem is not None
    assert stored.problem.path == path
    file_system.faults.append(Fault(Operation.READ, path_end=RECOVERY_POINT_NAME))
    with pytest.raises(StorageError):
        load_durable_point(file_system, "log")


@pytest.mark.parametrize(
    "point",
    [
        RecoveryPoint(generation=2**62 + 1),
        RecoveryPoint(generation=10**19 - 1),
        RecoveryPoint(durable_end_offset=2**63),
        RecoveryPoint(log_start_offset=2**63),
        RecoveryPoint(epochs=(EpochEntry(2**31, 0),)),
        RecoveryPoint(epochs=(EpochEntry(1, 2**63),)),
        RecoveryPoint(9, synced_end_offset=9),
        RecoveryPoint(9, synced_end_offset=10),
    ],
)
def test_numbers_that_count_nothing_are_not_taken(point: RecoveryPoint) -> None:
    """Values that no log can have, or that leave no next generation for a mark, are not a recovery point."""
    with pytest.raises(CorruptFileError):
        read_recovery_point(point.encode())


@pytest.mark.parametrize("mark", [FlushMark(-1, 0), FlushMark(2**62 + 1, 0), FlushMark(0, -1)])
def test_a_mark_of_no_log_is_none(mark: FlushMark) -> None:
    """A mark whose numbers cannot be says nothing."""
    assert read_flush_mark(slot_of(mark)) is None


def test_marks_do_not_share_a_sector() -> None:
    """Two marks are so far apart that even the largest sectors of today's disks contain only one of them."""
    file_system = MemoryFileSystem((("log", None, False),))
    durable = DurablePoint(file_system, "log", RecoveryPoint())
    for offset in (1, 2):
        sync(durable, offset)
        durable.close()
        durable = DurablePoint(file_system, "log", RecoveryPoint())
    data = file_system.contents()[join("log", FLUSH_MARK_NAME)]
    places = [place for place in range(len(data)) if data[place : place + 7] == b"RLFLUSH"]
    assert all(place % 4096 == 0 for place in places)
