# SPDX-License-Identifier: Apache-2.0
"""Adjacent segments answer as one list of batches, through any rolls, truncations and removals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import CorruptBatchError
from raftlog.log.append_validation import check_append
from raftlog.log.epochs import LeaderEpochs
from raftlog.offsets import EpochEntry, SegmentPosition
from raftlog.storage.segments.log_config import LogConfig
from raftlog.storage.segments.log_segment import LogSegment
from raftlog.storage.segments.segment_list import SegmentList
from raftlog.testing.contracts.made_batches import raft_batch
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.file_logs import BATCH_SIZE, overwrite

EPOCHS = LeaderEpochs([EpochEntry(1, 10)])
CONFIG = LogConfig(index_interval_bytes=0)
parts = st.lists(st.integers(0, 3), min_size=1, max_size=5)


def listed(batch_counts: list[int], file_system: MemoryFileSystem | None = None) -> SegmentList:
    """Segments from offset 10 on, each of so many batches of two records; an empty one can only be the last."""
    files = file_system or MemoryFileSystem()
    segments = SegmentList(files, ".", CONFIG, [LogSegment(files, ".", 10, CONFIG.index_limits)])
    for count in batch_counts:
        if segments.active.size_bytes > 0:
            segments.rolling().do()
        for _ in range(count):
            append(segments)
    return segments


def append(segments: SegmentList) -> None:
    """Append a batch of two records."""
    data = raft_batch(segments.end_offset, 1, 2)
    checked = check_append(data, 1, segments.end_offset)
    segments.active.append(data, checked.batches, checked.next_offset)


def base_offsets(segments: SegmentList) -> list[int]:
    """Return where segments start."""
    return sorted({segments.holding(offset).base_offset for offset in range(10, segments.end_offset + 1)})


def batches(segments: SegmentList, start_offset: int = 10) -> list[bytes]:
    """Return all batches from an offset on, as they are read one by one."""
    offsets = range(start_offset, segments.end_offset, 2)
    return [bytes(segments.read(offset, segments.end_offset, 0, EPOCHS).records) for offset in offsets]


def expected(start_offset: int, end_offset: int) -> list[bytes]:
    """Return the batches between two offsets."""
    return [raft_batch(offset, 1, 2) for offset in range(start_offset, end_offset, 2)]


@given(parts)
def test_every_offset_is_found(batch_counts: list[int]) -> None:
    """A batch is read by any of its offsets, wherever segments end, and its place is within its segment."""
    segments = listed(batch_counts)
    end_offset = 10 + 2 * sum(batch_counts)
    assert segments.end_offset == segments.end.offset == end_offset
    for offset in range(10, end_offset):
        base_offset = offset - offset % 2
        assert segments.batch_start(offset).offset == base_offset
        assert segments.holding(offset).base_offset <= offset < segments.holding(offset).next_offset
        assert bytes(segments.read(offset, end_offset, 0, EPOCHS).records) == raft_batch(base_offset, 1, 2)
    assert segments.batch_start(end_offset) == segments.end
    assert segments.locate(end_offset) == segments.end


@given(parts, st.data())
def test_a_truncation_drops_what_follows(batch_counts: list[int], data: st.DataObject) -> None:
    """Records below the offset stay, and the log continues there; files of truncated segments are deleted."""
    file_system = MemoryFileSystem()
    segments = listed(batch_counts, file_system)
    offset = 10 + 2 * data.draw(st.integers(0, sum(batch_counts)))
    segments.truncating(segments.batch_start(offset)).do()
    assert segments.end_offset == offset
    assert batches(segments) == expected(10, offset)
    append(segments)
    assert batches(segments) == expected(10, offset + 2)
    assert len([path for path in file_system.contents() if path.endswith(".log")]) == len(base_offsets(segments))


@given(parts, st.data())
def test_only_whole_segments_are_removed(batch_counts: list[int], data: st.DataObject) -> None:
    """Of what is below an offset those segments go that hold nothing else; the active one never does."""
    segments = listed(batch_counts)
    end_offset = segments.end_offset
    offset = data.draw(st.integers(10, end_offset + 1))
    bases = base_offsets(segments)
    segments.removing_below(offset).do()
    kept = [base for base, after in zip(bases, [*bases[1:], 1 << 62], strict=True) if after > offset]
    start_offset, *_ = left = base_offsets(segments)
    assert left == (kept or bases[-1:])
    assert batches(segments, start_offset) == expected(start_offset, end_offset)


@given(parts, st.booleans())
def test_a_restart_leaves_one_empty_segment(batch_counts: list[int], is_damaged: bool) -> None:
    """All segments go, or, where the last one is damaged, it is kept under a name that nothing reads."""
    file_system = MemoryFileSystem()
    segments = listed(batch_counts, file_system)
    segments.steps_of_restart(99, (), active_is_damaged=is_damaged).do()
    assert (segments.end_offset, segments.size_bytes) == (99, 0)
    names = set(file_system.contents())
    assert {name for name in names if name.endswith(".log")} == {f"{99:020}.log"}
    assert len([name for name in names if ".damaged-" in name]) == is_damaged


def test_a_read_stays_in_a_segment_and_below_its_limit() -> None:
    """Batches that reach to or above the limit, or are in the next segment, are left out."""
    segments = listed([3, 2])
    assert bytes(segments.read(10, 20, 1 << 20, EPOCHS).records) == b"".join(expected(10, 16))
    assert bytes(segments.read(10, 13, 1 << 20, EPOCHS).records) == raft_batch(10, 1, 2)
    assert bytes(segments.read(10, 11, 1 << 20, EPOCHS).records) == b""
    size = len(raft_batch(10, 1, 2)) + 5
    assert bytes(segments.read(10, 20, size, EPOCHS).records) == b"".join(expected(10, 14))[:size]


def test_damaged_batches_are_not_served() -> None:
    """A CRC that does not hold, and an epoch that is not the log's, end a read with an error."""
    for position, data in ((len(raft_batch(10, 1, 2)) - 1, b"?"), (15, b"\7")):
        file_system = MemoryFileSystem()
        segments = listed([2], file_system)
        overwrite(file_system, f"{10:020}.log", position, data)
        with pytest.raises(CorruptBatchError):
            segments.read(10, 14, 1 << 20, EPOCHS)
    assert len(raft_batch(10, 1, 2)) > BATCH_SIZE


TWO = len(raft_batch(10, 1, 2))


def rotten(position: int, data: bytes) -> SegmentList:
    """Three batches of two records, of whose segment some bytes have changed."""
    file_system = MemoryFileSystem()
    segments = listed([3], file_system)
    overwrite(file_system, f"{10:020}.log", position, data)
    return segments


@pytest.mark.parametrize(
    "size", [1, TWO - 1, TWO, TWO + 1, TWO + 11, TWO + 12, TWO + 13, 2 * TWO - 1, 2 * TWO, 3 * TWO]
)
def test_a_read_ends_anywhere_after_its_first_batch(size: int) -> None:
    """As many bytes are read as are asked for, wherever in a batch or its header that is; of the first batch, all."""
    assert bytes(listed([3]).read(10, 16, size, EPOCHS).records) == b"".join(expected(10, 16))[: max(size, TWO)]


@pytest.mark.parametrize("size", [2 * TWO, 2 * TWO + 1, 3 * TWO - 1, 3 * TWO, 4 * TWO])
def test_rot_before_the_end_of_a_read_is_seen(size: int) -> None:
    """A batch that is read whole is checked, also where the read ends with it or in the next one."""
    with pytest.raises(CorruptBatchError):
        rotten(2 * TWO - 1, b"?").read(10, 16, size, EPOCHS)


@pytest.mark.parametrize("size", [1, TWO, TWO + 1, 2 * TWO - 1])
def test_damage_after_a_read_does_not_matter(size: int) -> None:
    """A batch that is read partly, or not at all, is not checked by that read."""
    assert len(rotten(2 * TWO - 1, b"?").read(10, 16, size, EPOCHS).records) == max(size, TWO)


@pytest.mark.parametrize("limit", [16, 20])
def test_a_last_batch_that_claims_more_is_damaged(limit: int) -> None:
    """A batch that seems cut off is so by a read's size alone, and never where all there is was read."""
    segments = rotten(2 * TWO + 8, (TWO - 12 + 1).to_bytes(4, "big"))
    with pytest.raises(CorruptBatchError):
        segments.read(10, limit, 1 << 20, EPOCHS)


@pytest.mark.parametrize("base_offset", [11, 13, 12 + 2**40])
def test_offsets_that_have_changed_are_not_served(base_offset: int) -> None:
    """No CRC covers a batch's base offset: it must follow on the batch before."""
    with pytest.raises(CorruptBatchError, match="offsets or epochs"):
        rotten(TWO, base_offset.to_bytes(8, "big")).read(10, 16, 1 << 20, EPOCHS)


def test_the_place_of_an_offset_is_not_that_of_another_log() -> None:
    """The last result is forgotten by a truncation, by a roll and by a restart."""
    segments = listed([3])
    assert segments.locate(14).segment_position == SegmentPosition(10, 2 * TWO)
    segments.truncating(segments.batch_start(12)).do()
    data = raft_batch(12, 1, 4)
    checked = check_append(data, 1, 12)
    segments.active.append(data, checked.batches, checked.next_offset)
    assert segments.locate(14).segment_position == SegmentPosition(10, TWO)

    assert segments.locate(16).segment_position == SegmentPosition(10, TWO + len(data))
    segments.rolling().do()
    append(segments)
    assert segments.locate(16).segment_position == SegmentPosition(16, 0)

    segments.steps_of_restart(12, (), active_is_damaged=False).do()
    append(segments)
    append(segments)
    append(segments)
    assert segments.locate(16).segment_position == SegmentPosition(12, 2 * TWO)
