# SPDX-License-Identifier: Apache-2.0
"""The offset index answers as a list of its entries would, and its file is Kafka's."""

from hypothesis import given
from hypothesis import strategies as st

from raftlog.storage.segments.index_file import StoredIndex
from raftlog.storage.segments.offset_index import OffsetIndex
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem

gaps = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 5000)), max_size=20)


def filled(entries: list[tuple[int, int]], base_offset: int = 100) -> tuple[OffsetIndex, list[tuple[int, int]]]:
    """An index, and the same entries as a list, made from the gaps between them."""
    index = OffsetIndex(MemoryFileSystem(), "i.index", base_offset)
    offset, position, listed = base_offset, 0, []
    for offset_gap, position_gap in entries:
        offset, position = offset + offset_gap, position + position_gap
        index.add(offset, position)
        listed.append((offset, position))
    return index, listed


@given(gaps, st.integers(90, 1200))
def test_a_position_is_the_last_at_or_before_an_offset(entries: list[tuple[int, int]], offset: int) -> None:
    """A lookup floors by the last offset of a batch."""
    index, listed = filled(entries)
    assert index.position_before(offset) == max((at for last, at in listed if last <= offset), default=0)


@given(gaps, st.integers(0, 30_000))
def test_truncation_drops_batches_at_or_after_a_position(entries: list[tuple[int, int]], position: int) -> None:
    """Entries at or after the position are removed, entries before it stay."""
    index, listed = filled(entries)
    index.truncate(position)
    kept = [(last, at) for last, at in listed if at < position]
    assert len(index) == len(kept)
    assert index.last_offset == (kept[-1][0] if kept else None)


@given(gaps, gaps, st.integers(0, 30_000))
def test_a_file_is_brought_up_from_whatever_it_was(
    entries: list[tuple[int, int]], more: list[tuple[int, int]], position: int
) -> None:
    """Stored, truncated, extended and stored again, the file has the bytes of the entries and no others."""
    index, listed = filled(entries)
    index.store()
    index.truncate(position)
    last_offset, last_position = index.last_offset or 100, max([at for _, at in listed if at < position], default=0)
    for offset_gap, position_gap in more:
        last_offset, last_position = last_offset + offset_gap, last_position + position_gap
        index.add(last_offset, last_position)
    index.store()
    assert index.compare() is StoredIndex.EQUAL
    assert index.path == "i.index"


def test_comparison_distinguishes_lagging_from_diverged() -> None:
    """A file that lacks entries is incomplete; one with other entries is wrong; zeros after them are preallocated."""
    file_system = MemoryFileSystem()

    def index(*entries: tuple[int, int]) -> OffsetIndex:
        made = OffsetIndex(file_system, "i.index", 0)
        for offset, position in entries:
            made.add(offset, position)
        return made

    assert index().compare() is StoredIndex.EQUAL
    assert index((3, 5091)).compare() is StoredIndex.INCOMPLETE
    index((3, 5091)).store()
    assert file_system.contents()["i.index"] == bytes.fromhex("00000003000013e3")
    assert index((3, 5091)).compare() is StoredIndex.EQUAL
    assert index((3, 5091), (9, 9999)).compare() is StoredIndex.INCOMPLETE
    assert index((3, 5092)).compare() is StoredIndex.WRONG
    assert index().compare() is StoredIndex.WRONG
    file_system.open("i.index").append(bytes(800))
    assert index((3, 5091)).compare() is StoredIndex.EQUAL
    assert index((3, 5091), (9, 9999)).compare() is StoredIndex.INCOMPLETE
