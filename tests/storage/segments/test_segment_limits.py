# SPDX-License-Identifier: Apache-2.0
"""Segments and their indexes at their limits: the case at each, and the ones beside it."""

from collections.abc import Sequence
from typing import Any

import pytest

from raftlog.errors import CorruptBatchError, OutOfSpaceError, StorageError
from raftlog.log.append_validation import check_append_as_follower
from raftlog.records.files.index_entries import TimeIndexEntry
from raftlog.storage.segments.epoch_witnesses import EpochWitnesses
from raftlog.storage.segments.log_segment import LogSegment, RollLimits
from raftlog.storage.segments.segment_indexes import MAX_INDEXED_POSITION, IndexLimits, SegmentIndexes
from raftlog.testing.contracts.made_batches import raft_batch
from raftlog.testing.file_system.faults import Fault, Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.file_logs import overwrite
from tests.storage.segments.test_log_segment import append, segment_of
from tests.strategies import TIMESTAMP

MIB = 1024 * 1024
SIZE = len(raft_batch(10, 1))
MUCH = 1 << 40
LIMITS = IndexLimits(interval_bytes=100, max_size_bytes=100)


def _indexes_of_batches(*, sizes: Sequence[int], timestamps: Sequence[int] | None = None) -> SegmentIndexes:
    """Return the indexes of batches of one record with these sizes and greatest timestamps: 1, 2, ... by default."""
    indexes, position = SegmentIndexes(MemoryFileSystem(), ".", 0, LIMITS), 0
    timestamps = range(1, len(sizes) + 1) if timestamps is None else timestamps
    for offset, (size_bytes, timestamp) in enumerate(zip(sizes, timestamps, strict=True)):
        indexes.add(position, size_bytes, offset, timestamp)
        position += size_bytes
    return indexes


# When a segment ends


@pytest.mark.parametrize(("spare", "has_room"), [(-1, False), (0, True), (1, True)])
def test_a_segment_ends_at_its_size(spare: int, has_room: bool) -> None:
    """An append that fills a segment to the byte goes into it, one that is a byte larger does not."""
    segment = segment_of([1])
    assert segment.has_room_for(SIZE, 12, TIMESTAMP, RollLimits(2 * SIZE + spare, MUCH)) == has_room


@pytest.mark.parametrize(("end", "has_room"), [(-1, True), (0, True), (1, False)])
def test_a_segment_ends_where_no_index_entry_reaches(end: int, has_room: bool) -> None:
    """Whatever size is allowed, no segment ends above the last position that an index can name."""
    segment = segment_of([1])
    segment.size_bytes = MAX_INDEXED_POSITION - SIZE + end
    assert segment.has_room_for(SIZE, 12, TIMESTAMP, RollLimits(MUCH, MUCH)) == has_room


@pytest.mark.parametrize("first", [-1, 0, 1, 1000])
def test_a_segment_ends_at_its_age(first: int) -> None:
    """Age counts from the first batch's timestamp on, 0 included; where that batch has none, age does not count."""
    segment = LogSegment(MemoryFileSystem(), ".", 10, IndexLimits())
    checked = check_append_as_follower(raft_batch(10, 1), 1, 10, 1)
    assert checked is not None
    segment.append(checked.data, [checked.batches[0]._replace(max_timestamp=first)], 11)
    segment.append(checked.data, [checked.batches[0]._replace(base_offset=11, last_offset=11, max_timestamp=5000)], 12)
    room = [segment.has_room_for(SIZE, 13, first + age, RollLimits(MUCH, 50)) for age in (49, 50, 51)]
    assert room == [True, True, first < 0]


def test_age_counts_from_the_first_batch_also_after_a_scan() -> None:
    """A reopened segment is full when the one that was never closed is."""
    files = MemoryFileSystem()
    segment_of([1, 1, 1], files)
    again = LogSegment(files, ".", 10, IndexLimits())
    again.scan(0, EpochWitnesses(), 0)
    first = TIMESTAMP + 10
    assert [again.has_room_for(SIZE, 14, first + age, RollLimits(MUCH, 5)) for age in (4, 5, 6)] == [True, True, False]


@pytest.mark.parametrize("kept", [0, 1])
def test_age_restarts_after_a_full_truncation(kept: int) -> None:
    """A segment emptied by a truncation has the age of its next records; one that is not empty keeps its age."""
    segment = segment_of([1, 1])
    segment.cut_file(kept * SIZE)
    segment.forget_after(kept * SIZE, 10 + kept)
    data = raft_batch(10 + kept, 1)
    checked = check_append_as_follower(data, 1, 10 + kept, 1)
    assert checked is not None
    segment.append(data, [checked.batches[0]._replace(max_timestamp=TIMESTAMP + 1000)], 11 + kept)
    first = TIMESTAMP + (10 if kept else 1000)
    room = [segment.has_room_for(SIZE, 14, first + age, RollLimits(MUCH, 5)) for age in (5, 6)]
    assert room == [True, False]


# Indexes


@pytest.mark.parametrize("size_bytes", [0, 7, 8, 9, 15, 16, 17, 71, 72, 73, 10 * MIB])
def test_how_many_entries_an_index_takes(size_bytes: int) -> None:
    """An offset entry has 8 bytes; a time entry has 12, and one place is kept for the last."""
    limits = IndexLimits(max_size_bytes=size_bytes)
    assert limits.max_offset_entries == size_bytes // 8
    assert limits.max_time_entries == size_bytes // 12 - 1


@pytest.mark.parametrize(("size_bytes", "count"), [(99, 0), (100, 0), (101, 1)])
def test_an_entry_comes_after_more_than_an_interval(size_bytes: int, count: int) -> None:
    """Exactly an interval is not enough: at the start, after an entry, and after a rewind."""
    more_than_an_interval = LIMITS.interval_bytes + 1
    assert len(_indexes_of_batches(sizes=[size_bytes, 10]).offsets) == count
    assert len(_indexes_of_batches(sizes=[more_than_an_interval, size_bytes, 10]).offsets) == 1 + count
    indexes = _indexes_of_batches(sizes=[size_bytes, 10, 10])
    assert indexes.rewind(size_bytes) == 0
    indexes.add(0, size_bytes, 0, 1)
    indexes.add(size_bytes, 10, 1, 2)
    assert len(indexes.offsets) == count


def test_the_first_of_equal_timestamps_counts() -> None:
    """The last time entry names the first batch that has the greatest timestamp, and comes when the segment ends."""
    indexes = _indexes_of_batches(sizes=[10] * 4, timestamps=[5, 9, 9, 7])
    assert len(indexes.times) == 0
    indexes.seal()
    entries = [indexes.times.entry(number) for number in range(len(indexes.times))]
    assert entries == [TimeIndexEntry(timestamp=9, relative_offset=1)]


@pytest.mark.parametrize("is_last", [True, False])
def test_the_last_time_entry_is_for_good_once_the_segment_ends(is_last: bool) -> None:
    """In the active segment an entry is written and undone; later batches are indexed as usual."""
    files = MemoryFileSystem()
    segment_of([1, 1], files)
    segment = LogSegment(files, ".", 10, IndexLimits())
    segment.scan(0, EpochWitnesses(), 0)
    assert segment.settle_indexes(is_last=is_last)
    (stored,) = [data for path, data in files.contents().items() if path.endswith(".timeindex")]
    assert len(stored) == 12
    assert len(segment._indexes.times) == (0 if is_last else 1)


# Finding batches


def test_a_truncation_forgets_found_transactions() -> None:
    """If other batches replace the found ones, no search starts in the middle of a batch."""
    segment = segment_of([1, 1, 1])
    assert segment.locate(12)[0] == 2 * SIZE
    segment.cut_file(SIZE)
    segment.forget_after(SIZE, 11)
    append(segment, 3)
    assert [segment.locate(offset)[0] for offset in (13, 12, 11, 10)] == [SIZE, SIZE, SIZE, 0]


@pytest.mark.parametrize(
    ("position", "data", "asked"),
    [
        (SIZE, (12).to_bytes(8, "big"), 12),
        (SIZE, (9).to_bytes(8, "big"), 12),
        (0, (11).to_bytes(8, "big"), 10),
        (2 * SIZE + 8, (SIZE - 11).to_bytes(4, "big"), 12),
        (SIZE + 16, b"\0", 12),
    ],
    ids=["a gap", "back", "above", "beyond the end", "no magic"],
)
def test_headers_that_have_changed_end_a_search(position: int, data: bytes, asked: int) -> None:
    """A header that is not where and what the one before it said is an error, and no answer."""
    files = MemoryFileSystem()
    segment = segment_of([1, 1, 1], files)
    overwrite(files, segment.path, position, data)
    with pytest.raises(CorruptBatchError, match="a batch header that has changed"):
        segment.locate(asked)


def test_a_header_that_has_changed_ends_a_truncation() -> None:
    """Where the batches that are left cannot be indexed again, a truncation says so."""
    files = MemoryFileSystem()
    segment = segment_of([1, 1, 1], files)
    overwrite(files, segment.path, 16, b"\0")
    segment.cut_file(2 * SIZE)
    with pytest.raises(StorageError, match="a batch header has changed"):
        segment.forget_after(2 * SIZE, 12)


# Room on the disk


class _Reserving:
    """A file that takes down what it is to reserve."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.asked: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def reserve(self, size_bytes: int) -> None:
        self.asked.append(size_bytes)


def _watched(segment: LogSegment) -> _Reserving:
    file = _Reserving(segment.file)
    vars(segment)["file"] = file
    return file


def _write(segment: LogSegment, size_bytes: int) -> None:
    """Append one batch of so many bytes, only the first of which are valid."""
    checked = check_append_as_follower(raft_batch(segment.next_offset, 1), 1, segment.next_offset, 1)
    assert checked is not None
    batch = checked.batches[0]._replace(size_bytes=size_bytes)
    segment.append(bytes(checked.data).ljust(size_bytes, b"\0"), [batch], checked.next_offset)


def test_room_is_reserved_ahead() -> None:
    """At least 4 MiB, a thousand such appends, or as much as there is, and at most 32 MiB; once it is used, again."""
    segment = segment_of([])
    file = _watched(segment)
    _write(segment, 100)
    assert file.asked == [100 + 4 * MIB]
    _write(segment, 4 * MIB)
    assert len(file.asked) == 1
    _write(segment, SIZE)
    assert file.asked[1:] == [segment.size_bytes + 4 * MIB + 100]
    segment = segment_of([])
    file = _watched(segment)
    _write(segment, 10_000)
    assert file.asked == [10_000 + 10_000_000]
    segment = segment_of([])
    file = _watched(segment)
    _write(segment, MIB)
    assert file.asked == [33 * MIB]


def test_room_that_is_left_is_given_back() -> None:
    """A segment that ends keeps no more than its batches; one that reserved nothing gives nothing back."""
    files = MemoryFileSystem()
    segment = segment_of([], files)
    file = _watched(segment)
    _write(segment, SIZE)
    segment.seal()
    assert file.asked[1:] == [SIZE]
    again = LogSegment(files, ".", 10, IndexLimits())
    again.scan(0, EpochWitnesses(), 0)
    file = _watched(again)
    again.seal()
    assert file.asked == []


def test_space_is_preallocated_again_after_a_truncation() -> None:
    """Preallocated space is released by a truncation, and with the rest of a write without disk space."""
    files = MemoryFileSystem()
    segment = segment_of([1, 1], files)
    file = _watched(segment)
    segment.cut_file(SIZE)
    segment.forget_after(SIZE, 11)
    append(segment)
    assert file.asked == [2 * SIZE + 4 * MIB]
    files.faults.append(Fault(Operation.WRITE, is_full=True, written_bytes=7))
    with pytest.raises(OutOfSpaceError):
        append(segment)
    assert files.contents()[f"{10:020}.log"] == raft_batch(10, 1) + raft_batch(11, 1)
    append(segment)
    assert file.asked[1:] == [3 * SIZE + 4 * MIB]
