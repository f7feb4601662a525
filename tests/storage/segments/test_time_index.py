# SPDX-License-Identifier: Apache-2.0
"""The time index has entries whose timestamps grow, and no others."""

from hypothesis import given
from hypothesis import strategies as st

from raftlog.storage.segments.time_index import TimeIndex
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem

stamps = st.lists(st.integers(-1, 20), max_size=30)


@given(stamps)
def test_only_a_greater_timestamp_gets_an_entry(timestamps: list[int]) -> None:
    """An entry is added where the timestamp is strictly above the last one's, and is one."""
    index = TimeIndex(MemoryFileSystem(), "t.timeindex", 50)
    kept: list[tuple[int, int]] = []
    for number, timestamp in enumerate(timestamps):
        index.add(timestamp, 50 + number)
        if timestamp > (kept[-1][0] if kept else -1):
            kept.append((timestamp, number))
    assert [tuple(index.entry(number)) for number in range(len(index))] == kept
    assert index.last_timestamp_and_offset == ((kept[-1][0], 50 + kept[-1][1]) if kept else (-1, 50))


@given(stamps, st.integers(40, 90))
def test_truncation_drops_what_is_above_an_offset(timestamps: list[int], offset: int) -> None:
    """Entries of offsets above go, those at it stay."""
    index = TimeIndex(MemoryFileSystem(), "t.timeindex", 50)
    for number, timestamp in enumerate(timestamps):
        index.add(timestamp, 50 + number)
    kept = [entry for entry in map(index.entry, range(len(index))) if 50 + entry.relative_offset <= offset]
    index.truncate_after(offset)
    assert [index.entry(number) for number in range(len(index))] == kept


def test_bytes_are_kafkas() -> None:
    """The entries of the worked example in Kafka's layout."""
    file_system = MemoryFileSystem()
    index = TimeIndex(file_system, "t.timeindex", 0)
    index.add(0x018BCFE56803, 15)
    index.add(0x018BCFE56805, 23)
    index.store()
    assert file_system.contents()["t.timeindex"].hex() == "0000018bcfe568030000000f0000018bcfe5680500000017"
