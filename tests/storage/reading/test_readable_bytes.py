# SPDX-License-Identifier: Apache-2.0
"""Where a disk does not give everything back, the rest is read all the same."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import StorageError
from raftlog.records.batches.iterator import BufferSource
from raftlog.storage.reading.readable_bytes import BLOCK_SIZE, ReadableBytes

SIZE = 5 * BLOCK_SIZE + 100
DATA = bytes(range(1, 252)) * (SIZE // 251 + 1)
DATA = DATA[:SIZE]
places = st.tuples(st.integers(0, SIZE + 10), st.integers(0, 3 * BLOCK_SIZE))


def blocks_of(positions: range) -> set[int]:
    """Return the blocks that some positions are in."""
    return {at // BLOCK_SIZE for at in (*positions[::BLOCK_SIZE], *positions[-1:])}


class Failing:
    """Bytes with some unreadable blocks."""

    def __init__(self, bad: set[int]) -> None:
        self.bad = bad
        self.failures = 0

    def size(self) -> int:
        """Return their number."""
        return SIZE

    def read_at(self, position: int, size: int) -> memoryview:
        """Return some of them, unless one is bad."""
        if not self.bad.isdisjoint(blocks_of(range(position, min(position + size, SIZE)))):
            self.failures += 1
            raise StorageError("x.log", "read", f"no {size} bytes at {position}")
        return BufferSource(memoryview(DATA)).read_at(position, size)


@given(st.sets(st.integers(0, 5)), st.lists(places, max_size=5))
def test_only_what_is_bad_is_zeros(bad: set[int], reads: list[tuple[int, int]]) -> None:
    """Each read gives the file's bytes, and zeros in bad blocks; each of those is tried alone once."""
    source = Failing(bad)
    readable = ReadableBytes(source)
    assert (readable.failure, readable.first_gap) == (None, sys.maxsize)
    asked = set()
    for position, size in reads:
        wanted = range(position, min(position + size, SIZE))
        expected = bytes(0 if at // BLOCK_SIZE in bad else DATA[at] for at in wanted)
        assert bytes(readable.read_at(position, size)) == expected
        asked |= blocks_of(wanted) & bad
    assert (readable.failure is not None) == bool(asked)
    assert readable.first_gap == min((block * BLOCK_SIZE for block in asked), default=sys.maxsize)
    assert source.failures <= len(asked) + len(reads)
    for position, size in reads:
        assert readable.has_gap(position, size) == bool(
            size and not asked.isdisjoint(blocks_of(range(position, position + size)))
        )


@pytest.mark.parametrize("gaps", [{2}, {2, 9, 10, 11, 12}])
@pytest.mark.parametrize(
    ("position", "size", "has_gap"),
    [
        (2 * BLOCK_SIZE - 1, 1, False),
        (2 * BLOCK_SIZE - 1, 2, True),
        (2 * BLOCK_SIZE, 0, False),
        (2 * BLOCK_SIZE + 1, 0, False),
        (2 * BLOCK_SIZE, 1, True),
        (3 * BLOCK_SIZE - 1, 1, True),
        (3 * BLOCK_SIZE - 1, 2, True),
        (3 * BLOCK_SIZE, 1, False),
        (0, 9 * BLOCK_SIZE, True),
        (3 * BLOCK_SIZE, 6 * BLOCK_SIZE, False),
        (0, 2 * BLOCK_SIZE, False),
    ],
)
def test_a_gap_is_of_whole_blocks(gaps: set[int], position: int, size: int, has_gap: bool) -> None:
    """A byte before a block is not of it, its first and last are; no bytes have no gap; however many gaps there are."""
    readable = ReadableBytes(Failing(set()))
    assert not readable.has_gap(position, size)
    vars(readable)["_gaps"].update(gaps)
    assert readable.has_gap(position, size) == has_gap


def test_the_first_failure_is_reported_and_no_block_is_tried_again() -> None:
    """An unreadable block is not read again, and the first error is reported."""
    source = Failing({1, 3})
    readable = ReadableBytes(source)
    for _ in range(2):
        assert bytes(readable.read_at(3 * BLOCK_SIZE, 10)) == bytes(10)
        assert source.failures == 2  # Of the read, and of the block alone.
    first = readable.failure
    assert bytes(readable.read_at(BLOCK_SIZE - 1, 2)) == DATA[BLOCK_SIZE - 1 : BLOCK_SIZE] + b"\0"
    assert source.failures == 4
    assert readable.failure is first
    assert readable.first_gap == BLOCK_SIZE
    assert bytes(readable.read_at(SIZE - 1, 2)) == DATA[-1:]
    assert bytes(readable.read_at(BLOCK_SIZE, 0)) == b""
    assert source.failures == 4
