# SPDX-License-Identifier: Apache-2.0
"""The account of the memory that batches hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import BufferExhaustedError
from raftlog.records.batches.memory_pool import MemoryPool


@given(st.integers(0, 50), st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 30))))
def test_the_account_is_exact(limit: int, resizes: list[tuple[int, int]]) -> None:
    """A pool holds what its leases hold together, never more than its limit, and a refused resize changes nothing."""
    pool = MemoryPool(limit)
    leases = [pool.lease() for _ in range(4)]
    sizes = [0] * 4
    for index, size in resizes:
        total = sum(sizes) - sizes[index] + size
        if size < 0:
            with pytest.raises(ValueError):
                leases[index].resize(size)
        elif size > sizes[index] and total > limit:
            with pytest.raises(BufferExhaustedError):
                leases[index].resize(size)
        else:
            leases[index].resize(size)
            sizes[index] = size
        assert [lease.size_bytes for lease in leases] == sizes
        assert pool.held_bytes == sum(sizes) <= limit
    for lease in leases * 2:
        lease.release()
    assert pool.held_bytes == 0


def test_no_pool_holds_less_than_nothing() -> None:
    """A pool holds nothing or something: its limit is not negative, and no more comes back than was taken."""
    pool = MemoryPool(0)
    with pytest.raises(ValueError):
        pool.take(-1)
    assert pool.held_bytes == 0
    with pytest.raises(ValueError):
        MemoryPool(-1)
