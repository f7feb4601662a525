# SPDX-License-Identifier: Apache-2.0
"""Entries in memory, and a file that has them after each store, whatever it had before."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.files.index_entries import OFFSET_INDEX, OffsetIndexEntry
from raftlog.storage.segments.index_file import IndexFile, StoredIndex
from raftlog.testing.file_system.faults import Fault, Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem

Entries = list[OffsetIndexEntry]
growing = st.lists(st.integers(1, 99), max_size=6, unique=True).map(sorted)
entries = st.builds(lambda *columns: [*map(OffsetIndexEntry, *columns)], growing, growing)


def filled(found: Entries, file_system: MemoryFileSystem) -> IndexFile[OffsetIndexEntry]:
    """An index of some entries."""
    index = IndexFile(file_system, "i", OFFSET_INDEX)
    for entry in found:
        index.append(*entry)
    return index


def holding(data: bytes | None) -> MemoryFileSystem:
    """A disk whose index file has some bytes, or is not there."""
    file_system = MemoryFileSystem()
    if data is not None:
        file_system.open("i", create=True).append(data)
    return file_system


@given(entries, st.data())
def test_it_is_a_list_of_entries(found: Entries, data: st.DataObject) -> None:
    """Entries are counted, given, looked up and dropped as those of a list."""
    index = filled(found, MemoryFileSystem())
    count, value = data.draw(st.integers(0, len(found))), data.draw(st.integers(0, 100))
    assert [index.entry(number) for number in range(len(index))] == found
    assert index.last_entry == (found[-1] if found else None)
    not_above = sum(each.relative_offset <= value for each in found)
    assert index.count_up_to(value, lambda each: each.relative_offset) == not_above
    index.keep_first(count)
    assert len(index) == count


@given(entries, entries, st.integers(0, 20))
def test_a_stored_index_compares_equal(found: Entries, before: Entries, padding: int) -> None:
    """Whatever the file had, a store makes it the entries, and a comparison before says rightly what it had."""
    data = OFFSET_INDEX.encode(before) + bytes(padding)
    file_system = holding(data)
    index = filled(found, file_system)
    has_front = OFFSET_INDEX.encode(found).startswith(data.rstrip(b"\0")) and len(data.rstrip(b"\0")) <= 8 * len(found)
    stored = index.compare()
    assert (stored is not StoredIndex.WRONG) == has_front
    assert (stored is StoredIndex.EQUAL) == (before == found)
    index.store()
    assert file_system.contents()["i"] == OFFSET_INDEX.encode(found)
    assert filled(found, file_system).compare() is StoredIndex.EQUAL


@given(entries, entries, st.data())
def test_each_store_follows_the_entries(found: Entries, more: Entries, data: st.DataObject) -> None:
    """A store after a truncation and new entries leaves nothing of the old ones."""
    file_system = MemoryFileSystem()
    index = filled(found, file_system)
    index.store()
    kept = data.draw(st.integers(0, len(found)))
    index.keep_first(kept)
    last = found[kept - 1] if kept else OffsetIndexEntry(0, 0)
    new = [each for each in more if each.relative_offset > last.relative_offset and each.position > last.position]
    for entry in new:
        index.append(*entry)
    index.store()
    assert file_system.contents()["i"] == OFFSET_INDEX.encode([*found[:kept], *new])


def test_a_missing_file_is_stale_or_sufficient() -> None:
    """Without entries no file is needed; a file that cannot be read counts as wrong."""
    one = [OffsetIndexEntry(1, 1)]
    assert filled(one, holding(None)).compare() is StoredIndex.INCOMPLETE
    assert filled([], holding(None)).compare() is StoredIndex.EQUAL
    file_system = holding(OFFSET_INDEX.encode(one))
    file_system.faults.append(Fault(Operation.READ))
    assert filled(one, file_system).compare() is StoredIndex.WRONG


def test_a_number_that_does_not_fit_adds_nothing() -> None:
    """A position of more than 31 bits is refused."""
    index = filled([], MemoryFileSystem())
    with pytest.raises(struct.error):
        index.append(1, 1 << 32)
    assert len(index) == 0
