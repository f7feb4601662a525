# SPDX-License-Identifier: Apache-2.0
"""A segment finds its batches, and is after a truncation as if what went had never been."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import CorruptBatchError
from raftlog.log.append_validation import CheckedAppend, check_append_as_follower
from raftlog.storage.segments.epoch_witnesses import EpochWitnesses
from raftlog.storage.segments.log_segment import LogSegment, RollLimits
from raftlog.storage.segments.segment_indexes import IndexLimits
from raftlog.testing.contracts.made_batches import raft_batch
from raftlog.testing.file_system.faults import Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem

LIMITS = IndexLimits(interval_bytes=150)
counts = st.lists(st.integers(1, 3), max_size=12)


def append(segment: LogSegment, count: int = 1) -> None:
    """Append a batch of so many records."""
    checked = checked_batch(segment.next_offset, count)
    segment.append(checked.data, checked.batches, checked.next_offset)


def checked_batch(offset: int, count: int = 1) -> CheckedAppend:
    """A batch of so many records."""
    checked = check_append_as_follower(raft_batch(offset, 1, count), 1, offset, 1)
    assert checked is not None
    return checked


def has_room_for(segment: LogSegment, offset: int, roll: RollLimits) -> bool:
    """Whether a segment has room for a batch of one record."""
    checked = checked_batch(offset)
    return segment.has_room_for(len(checked.data), checked.next_offset, checked.max_timestamp, roll)


def segment_of(batch_counts: list[int], file_system: MemoryFileSystem | None = None) -> LogSegment:
    """A segment of base offset 10 with batches of so many records."""
    segment = LogSegment(file_system or MemoryFileSystem(), ".", 10, LIMITS)
    for count in batch_counts:
        append(segment, count)
    return segment


@given(counts, st.integers(10, 50))
def test_a_batch_is_found_by_any_of_its_offsets(batch_counts: list[int], offset: int) -> None:
    """The position and header are those of the batch with the offset; after the end there is none."""
    segment = segment_of(batch_counts)
    base_offset, position = 10, 0
    for count in batch_counts:
        if offset < base_offset + count:
            break
        position += len(raft_batch(base_offset, 1, count))
        base_offset += count
    found, head = segment.locate(offset)
    assert found == position
    if offset < segment.next_offset:
        assert head is not None
        assert head.base_offset == base_offset
    else:
        assert head is None


@given(counts, st.integers(10, 50), counts)
def test_a_truncated_segment_is_one_that_never_had_more(batch_counts: list[int], offset: int, more: list[int]) -> None:
    """Bytes, ends and indexes are those of a segment of the batches that are left, and of what is appended then."""
    file_system = MemoryFileSystem()
    segment = segment_of(batch_counts, file_system)
    position, head = segment.locate(offset)
    segment.cut_file(position)
    segment.forget_after(position, segment.next_offset if head is None else head.base_offset)
    kept = 0
    while kept < len(batch_counts) and 10 + sum(batch_counts[: kept + 1]) <= offset:
        kept += 1
    assert segment.next_offset == 10 + sum(batch_counts[:kept])
    for count in more:
        append(segment, count)
    segment.seal()
    other = MemoryFileSystem()
    segment_of(batch_counts[:kept] + more, other).seal()
    assert file_system.contents() == other.contents()


@given(counts, st.integers(10, 50))
def test_no_stored_index_names_what_is_cut(batch_counts: list[int], offset: int) -> None:
    """Index files that were written before, as at a start, are gone; the segment may have others when it is sealed."""
    file_system = MemoryFileSystem()
    segment = segment_of(batch_counts, file_system)
    segment.settle_indexes(is_last=True)
    has_entries = any(data for path, data in file_system.contents().items() if path.endswith("index"))
    position, _ = segment.locate(offset)
    segment.cut_file(position)
    left = [path for path, data in file_system.contents().items() if path.endswith("index") and data]
    assert left == []
    assert has_entries == bool(batch_counts)


@given(counts)
def test_a_scan_finds_what_was_appended(batch_counts: list[int]) -> None:
    """A reopened segment has the same ends and the same indexes."""
    file_system = MemoryFileSystem()
    segment = segment_of(batch_counts, file_system)
    segment.seal()
    again = LogSegment(file_system, ".", 10, LIMITS)
    scan = again.scan(0, EpochWitnesses(), 0)
    assert scan.problem is None
    assert (again.next_offset, again.end) == (segment.next_offset, segment.end)
    assert again.settle_indexes(is_last=True) == ()


def test_a_file_that_became_shorter_is_an_error() -> None:
    """A read gives all that was asked for, or says that it is not there any more."""
    file_system = MemoryFileSystem()
    segment = segment_of([1, 1], file_system)
    file_system.open(segment.path).truncate(10)
    with pytest.raises(CorruptBatchError):
        segment.read(0, 100)
    with pytest.raises(CorruptBatchError):
        segment.locate(10)


def test_an_empty_segment_has_room_for_any_batch() -> None:
    """An empty segment is never rolled: the new one would have its name."""
    assert has_room_for(segment_of([]), 10, RollLimits(1, 0))
    for far, offset in ((2**31 - 1, 10 + 2**31 - 1), (2**31, 10 + 2**31)):
        assert has_room_for(segment_of([]), offset, RollLimits())
        assert has_room_for(segment_of([1]), offset, RollLimits(age_ms=2**40)) == (far < 2**31)


def test_a_batch_is_found_with_few_reads() -> None:
    """The range between two index entries is read at once, and the last result is not searched again."""
    file_system = MemoryFileSystem()
    segment = LogSegment(file_system, ".", 10, IndexLimits())
    for _ in range(10, 210):
        append(segment)
    for offsets in (range(10, 210), range(209, 9, -1)):
        for offset in offsets:
            before = reads(file_system)
            assert segment.locate(offset)[0] == (offset - 10) * len(raft_batch(10, 1))
            assert reads(file_system) - before <= 1


def reads(file_system: MemoryFileSystem) -> int:
    """Count the reads so far."""
    return sum(step.operation is Operation.READ for step in file_system.steps)


def test_the_last_result_is_not_searched_again() -> None:
    """Without index entries a batch is far to look for; it again, or the next one, is at hand; one before is not."""
    file_system = MemoryFileSystem()
    segment = LogSegment(file_system, ".", 10, IndexLimits(interval_bytes=1 << 30))
    for _ in range(10, 510):
        append(segment)

    def reads_for(offset: int) -> int:
        before = reads(file_system)
        assert segment.locate(offset)[0] == (offset - 10) * len(raft_batch(10, 1))
        return reads(file_system) - before

    assert reads_for(509) > 2
    assert [reads_for(509), reads_for(509)] == [1, 1]
    assert reads_for(500) > 2
    assert [reads_for(offset) for offset in (501, 502, 503)] == [1, 1, 1]
