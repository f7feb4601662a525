# SPDX-License-Identifier: Apache-2.0
"""When batches get entries, and what a truncation leaves."""

import attrs
from hypothesis import given
from hypothesis import strategies as st

from raftlog.storage.segments.segment_indexes import IndexLimits, SegmentIndexes
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem

LIMITS = IndexLimits(interval_bytes=100, max_size_bytes=36)


@attrs.frozen
class PlacedBatch:
    """The facts about a batch that an index gets."""

    position: int
    size_bytes: int
    last_offset: int
    max_timestamp: int


@st.composite
def placed_batches(draw: st.DrawFn) -> list[PlacedBatch]:
    """Adjacent batches."""
    position = offset = 0
    batches = []
    for size_bytes, count, timestamp in draw(
        st.lists(st.tuples(st.integers(61, 150), st.integers(1, 3), st.integers(-1, 9)), max_size=15)
    ):
        offset += count
        batches.append(PlacedBatch(position, size_bytes, offset - 1, timestamp))
        position += size_bytes
    return batches


def indexes_of(batches: list[PlacedBatch]) -> SegmentIndexes:
    """The indexes of some batches."""
    indexes = SegmentIndexes(MemoryFileSystem(), ".", 0, LIMITS)
    for batch in batches:
        indexes.add(*attrs.astuple(batch))
    return indexes


def entries(indexes: SegmentIndexes) -> tuple[list[object], list[object], int]:
    """All that is in the indexes, sealed."""
    are_full = len(indexes.offsets) >= LIMITS.max_offset_entries or len(indexes.times) >= LIMITS.max_time_entries
    assert indexes.is_full == are_full
    indexes.seal()
    offsets, times = indexes.offsets, indexes.times
    return (
        [offsets.entry(number) for number in range(len(offsets))],
        [times.entry(number) for number in range(len(times))],
        indexes.max_timestamp,
    )


@given(placed_batches())
def test_entries_are_more_than_an_interval_apart(batches: list[PlacedBatch]) -> None:
    """A batch has an entry if and only if more than the interval was appended since the last that has one."""
    expected = []
    since = 0
    for batch in batches:
        if since > LIMITS.interval_bytes:
            expected.append((batch.last_offset, batch.position))
            since = 0
        since += batch.size_bytes
    found, times, _ = entries(indexes_of(batches))
    assert found == expected
    if times:
        assert times[-1][0] == max(batch.max_timestamp for batch in batches)  # type: ignore[index]


@given(placed_batches(), st.data())
def test_a_rewound_index_is_that_of_the_batches_that_are_left(batches: list[PlacedBatch], data: st.DataObject) -> None:
    """A truncation, also of a sealed segment, leaves what an index of the batches before it has."""
    count = data.draw(st.integers(0, len(batches)))
    indexes = indexes_of(batches)
    if data.draw(st.booleans()):
        indexes.seal()
    end = batches[count].position if count < len(batches) else sum(batch.size_bytes for batch in batches)
    start = indexes.rewind(end)
    for batch in batches[:count]:
        if batch.position >= start:
            indexes.add(*attrs.astuple(batch))
    assert entries(indexes) == entries(indexes_of(batches[:count]))
