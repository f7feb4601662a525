# SPDX-License-Identifier: Apache-2.0
"""Where a disk does not give everything back, the rest is read all the same."""

import sys

from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import StorageError
from raftlog.records.iterator import BufferSource
from raftlog.storage.readable_bytes import BLOCK_SIZE, ReadableBytes

SIZE = 5 * BLOCK_SIZE + 100
DATA = bytes(range(1, 252)) * (SIZE // 251 + 1)
DATA = DATA[:SIZE]
places = st.tuples(st.integers(0, SIZE + 10), st.integers(0, 3 * BLOCK_SIZE))


def blocks_of(positions: range) -> set[int]:
    """Return the blocks that some positions are in."""
    return {at // BLOCK_SIZE for at in (*positions[::BLOCK_SIZE], *positions[-1:])}


class Failing:
    """Bytes of which some blocks are not given back."""

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
