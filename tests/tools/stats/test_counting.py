# SPDX-License-Identifier: Apache-2.0
"""Sums and distributions are exact up to a limit, and say so beyond it."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.stats.counting import RECORD_SUMS, Groups, Sizes, grouped

CODES = st.lists(st.tuples(st.integers(-(1 << 62), 1 << 62), st.integers(0, 1 << 40)), min_size=1, max_size=20)


@given(CODES | st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=1, max_size=20))
def test_rows_are_summed_per_code(rows: list[tuple[int, int]]) -> None:
    """The sums of each code are those of a counter, and exact for large numbers."""
    expected: Counter[int] = Counter()
    for code, value in rows:
        expected[code] += value
    codes, (sums,) = grouped(*(np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)))
    assert codes.tolist() == sorted(expected)
    assert dict(zip(codes.tolist(), sums.tolist(), strict=True)) == expected


@given(st.lists(st.integers(0, 6), max_size=20), st.integers(1, 5))
def test_no_row_is_lost_beyond_the_limit(keys: list[int], most: int) -> None:
    """The first groups are exact; the rest has all others, and it is said that there are some."""
    groups = Groups(RECORD_SUMS, most)
    for key in keys:
        groups.add(key, (1, key))
    first = list(dict.fromkeys(keys))[:most]
    assert {key: records for key, (records, _) in groups.rows()} == {key: keys.count(key) for key in first}
    assert groups.rest == [sum(key not in first for key in keys), sum(key for key in keys if key not in first)]
    assert groups.is_exact == (set(keys) <= set(first))


def test_the_largest_group_comes_first() -> None:
    """Rows are ordered by their bytes; those of the same size as they came."""
    groups = Groups(RECORD_SUMS)
    for key, size in (("a", 1), ("b", 3), ("c", 3), ("d", 2)):
        groups.add(key, (1, size))
    assert [key for key, _ in groups.rows()] == ["b", "c", "d", "a"]


@given(st.lists(st.lists(st.integers(1, 1 << 40), max_size=8), max_size=6))
def test_the_distribution_is_that_of_sorted_sizes(chunks: list[list[int]]) -> None:
    """Least, lower median, greatest and the counts by binary digits, over any chunks."""
    sizes = Sizes()
    for chunk in chunks:
        sizes.add(np.array(chunk, dtype=np.int64))
    whole = sorted(size for chunk in chunks for size in chunk)
    found = sizes.summary()
    assert found.histogram == dict(sorted(Counter(size.bit_length() for size in whole).items()))
    if whole:
        assert (found.least, found.median, found.greatest) == (whole[0], whole[(len(whole) - 1) // 2], whole[-1])
    assert found.is_median_exact


@pytest.mark.parametrize(("count", "is_exact"), [(3, True), (4, True), (5, False)])
def test_the_median_says_whether_it_is_exact(count: int, is_exact: bool) -> None:
    """Up to the limit of distinct sizes it is a size; beyond it, the end of the median's power of two."""
    sizes = Sizes(most=4)
    sizes.add(np.arange(9, 9 + count, dtype=np.int64))
    found = sizes.summary()
    assert found.is_median_exact == is_exact
    assert found.median == (9 + (count - 1) // 2 if is_exact else 13)
