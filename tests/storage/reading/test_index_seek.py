# SPDX-License-Identifier: Apache-2.0
"""Positions that indexes give: the best that is known of each offset and timestamp, and none where an index lies."""

from pathlib import Path

import pytest

from raftlog.log.append_validation import check_append_as_follower
from raftlog.records.files.index_entries import OFFSET_INDEX, TIME_INDEX, OffsetIndexEntry, TimeIndexEntry
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.reading.file_source import open_source
from raftlog.storage.reading.index_seek import BatchHead, IndexSeek, SegmentTail
from raftlog.storage.segments.log_segment import LogSegment
from raftlog.storage.segments.segment_indexes import IndexLimits
from raftlog.testing.contracts.made_batches import raft_batch
from tests.strategies import TIMESTAMP

BASE, COUNT = 10, 9
SIZE = len(raft_batch(BASE, 1, 2))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A segment of nine batches of two records; all batches but the first have index entries."""
    segment = LogSegment(LocalFileSystem(), str(tmp_path), BASE, IndexLimits(interval_bytes=0))
    for offset in range(BASE, BASE + 2 * COUNT, 2):
        checked = check_append_as_follower(raft_batch(offset, 1, 2), 1, offset, 1)
        assert checked is not None
        segment.append(checked.data, checked.batches, checked.next_offset)
    segment.seal()
    segment.close()
    return Path(segment.path)


def positions(path: Path, base_offset: int | None = BASE) -> dict[int, int]:
    """Where reading starts for each offset."""
    seek = IndexSeek(str(path), base_offset)
    with open_source(str(path)) as source:
        return {offset: seek.position_before(source, offset) for offset in range(BASE - 1, BASE + 2 * COUNT + 2)}


def offsets(path: Path, base_offset: int | None = BASE) -> dict[int, int]:
    """Up to which offset nothing is as late, for each timestamp."""
    seek = IndexSeek(str(path), base_offset)
    with open_source(str(path)) as source:
        return {time: seek.offset_before(source, TIMESTAMP + time) for time in range(BASE - 1, BASE + 2 * COUNT + 2)}


def _number_ending_at(offset: int) -> int:
    """The number of the last batch that ends at an offset or before it."""
    return min((offset - BASE + 1) // 2, COUNT) - 1


@pytest.mark.parametrize("damaged", range(COUNT + 1))
@pytest.mark.parametrize("is_torn", [False, True])
def test_the_end_is_found_whatever_is_damaged(damaged: int, path: Path, *, is_torn: bool) -> None:
    """The index names the last batches: if they are damaged, the last sound one is before them."""
    data = bytearray(path.read_bytes())
    for number in range(COUNT - damaged, COUNT):
        data[number * SIZE + SIZE - 1] ^= 1
    path.write_bytes(data[:-1] if is_torn else data)
    sound = COUNT - damaged - (is_torn and not damaged)
    with open_source(str(path)) as source:
        end = IndexSeek(str(path), BASE).end(source)
    assert (end.batch is None) == (sound == 0)
    assert end.batch is None or end.batch.last_offset == BASE + 2 * sound - 1
    assert end.damage == (sound * SIZE if sound < COUNT else None)


def test_an_empty_segment_has_no_end(path: Path) -> None:
    """Nor has one of zeros, which were preallocated."""
    for size in (0, 1000):
        path.write_bytes(bytes(size))
        with open_source(str(path)) as source:
            assert IndexSeek(str(path), BASE).end(source) == SegmentTail(None)


@pytest.mark.parametrize("padding", [0, 1, 2, 3, 64])
def test_reading_starts_at_the_last_entry_that_is_not_after(path: Path, padding: int) -> None:
    """For each offset, it is the last batch with an entry that ends there or before; zeros at the end are ignored."""
    index = path.with_suffix(".index")
    index.write_bytes(index.read_bytes() + bytes(8 * padding))
    assert positions(path) == {
        offset: max(0, _number_ending_at(offset)) * SIZE for offset in range(BASE - 1, BASE + 2 * COUNT + 2)
    }


def test_earlier_records_are_skipped(path: Path) -> None:
    """A timestamp that is an entry's own is not before it, and one that is a millisecond later is."""
    numbers = {time: min((time - BASE + 1) // 2, COUNT) - 1 for time in range(BASE - 1, BASE + 2 * COUNT + 2)}
    assert offsets(path) == {time: BASE + 2 * number + 1 if number >= 1 else 0 for time, number in numbers.items()}


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_without_an_index_reading_starts_at_the_start(path: Path, suffix: str) -> None:
    """Where an index is missing, empty or not to be counted from, nothing is passed over."""
    asked = positions if suffix == ".index" else offsets
    assert set(asked(path, None).values()) == {0}
    path.with_suffix(suffix).write_bytes(b"")
    assert set(asked(path).values()) == {0}
    path.with_suffix(suffix).unlink()
    assert set(asked(path).values()) == {0}


@pytest.mark.parametrize(
    ("relative_offset", "position", "is_true"),
    [
        (1, 0, True),
        (2, SIZE, True),
        (3, SIZE, True),
        (4, SIZE, False),
        (1, SIZE, False),
        (3, SIZE + 1, False),
        (3, SIZE - 1, False),
        (3, 100 * SIZE, False),
        (3, 2**31 - 1, False),
    ],
)
def test_an_offset_entry_that_lies_is_not_followed(
    path: Path, relative_offset: int, position: int, is_true: bool
) -> None:
    """An entry counts if the batch at its position holds its offset: the first of it, the last, and none beside."""
    path.with_suffix(".index").write_bytes(OFFSET_INDEX.encode([OffsetIndexEntry(relative_offset, position)]))
    assert positions(path)[BASE + 8] == (position if is_true else 0)


@pytest.mark.parametrize(
    ("time", "relative_offset", "is_true"),
    [(12, 3, True), (12, 2, True), (13, 3, False), (12, 4, False), (12, 1, False)],
)
def test_a_time_entry_that_lies_is_not_followed(path: Path, time: int, relative_offset: int, is_true: bool) -> None:
    """An entry counts if the batch that holds its offset has its timestamp."""
    path.with_suffix(".timeindex").write_bytes(TIME_INDEX.encode([TimeIndexEntry(TIMESTAMP + time, relative_offset)]))
    assert offsets(path)[20] == (BASE + relative_offset if is_true else 0)


def test_what_offsets_a_batch_has() -> None:
    """From its base offset to its last one, both of them included."""
    head = BatchHead(10, 12, 0, 3, 0)
    assert [head.spans(offset) for offset in (9, 10, 11, 12, 13)] == [False, True, True, True, False]
