# SPDX-License-Identifier: Apache-2.0
"""The fewest edits, beside a table of all ways."""

import functools
import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.mirrors.comparing.edits import WEIGHT, Edit, equal_prefix, find_edits
from raftlog.tools.mirrors.comparing.rows import Int64s

FEW = st.lists(st.integers(-1, 3), max_size=12)


def fewest(left: Sequence[int], right: Sequence[int], *, is_end_free: bool = False) -> tuple[int, int]:
    """Return the least weight of what must go and come, and how many elements that are, by trying all ways."""
    weight = WEIGHT if is_end_free else 1

    @functools.cache
    def rest(at: int, other: int) -> tuple[int, int]:
        if other == len(right):
            count = 0 if is_end_free else len(left) - at
            return count, count
        if at == len(left):
            count = len(right) - other
            return weight * count, count
        gone, come = rest(at + 1, other), rest(at, other + 1)
        ways = [(gone[0] + 1, gone[1] + 1), (come[0] + weight, come[1] + 1)]
        if left[at] == right[other] or -1 in (left[at], right[other]):
            ways.append(rest(at + 1, other + 1))
        return min(ways)

    return rest(0, 0)


def size_of(edit: Edit) -> int:
    return edit.left_end - edit.left_start + edit.right_end - edit.right_start


def weight_of(edits: Sequence[Edit], weight: int) -> int:
    return sum(each.left_end - each.left_start + weight * (each.right_end - each.right_start) for each in edits)


def numbers(given_: Sequence[int]) -> Int64s:
    return np.array(given_, np.int64)


def edited(left: Sequence[int], right: Sequence[int], edits: Sequence[Edit]) -> tuple[list[int], list[int]]:
    """What of the two sequences is kept: equal but for unknown elements."""
    ours, theirs = list(left), list(right)
    for each in reversed(edits):
        del ours[each.left_start : each.left_end]
        del theirs[each.right_start : each.right_end]
    return ours, theirs


def are_alike(left: Sequence[int], right: Sequence[int]) -> bool:
    return len(left) == len(right) and all(a == b or -1 in (a, b) for a, b in zip(left, right, strict=True))


@given(FEW, FEW)
def test_they_are_the_fewest(left: list[int], right: list[int]) -> None:
    """No other way needs fewer edits, and what is kept is equal."""
    found = find_edits(numbers(left), numbers(right))
    assert found is not None
    assert weight_of(found, 1) == fewest(left, right)[0]
    assert are_alike(*edited(left, right, found))


@given(FEW, FEW)
def test_a_free_end_costs_nothing(left: list[int], right: list[int]) -> None:
    """What is left over at the end makes no edit, and the weight is the least."""
    found = find_edits(numbers(left), numbers(right), is_end_free=True)
    assert found is not None
    assert weight_of(found, WEIGHT) == fewest(left, right, is_end_free=True)[0]
    ours, theirs = edited(left, right, found)
    assert are_alike(ours[: len(theirs)], theirs)


@given(FEW, FEW)
def test_a_free_start_is_a_free_end_of_the_reverse(left: list[int], right: list[int]) -> None:
    """What is left over at the beginning makes no edit, and the weight is the least."""
    found = find_edits(numbers(left), numbers(right), is_start_free=True)
    assert found is not None
    assert weight_of(found, WEIGHT) == fewest(left[::-1], right[::-1], is_end_free=True)[0]
    ours, theirs = edited(left, right, found)
    assert are_alike(ours[len(ours) - len(theirs) :], theirs)


@given(FEW, FEW)
def test_edits_rise_and_do_not_touch(left: list[int], right: list[int]) -> None:
    """Between two edits, both sequences have as many kept elements, and at least one."""
    found = find_edits(numbers(left), numbers(right))
    assert found is not None
    assert all(size_of(each) for each in found)
    for before, after in itertools.pairwise(found):
        kept = after.left_start - before.left_end
        assert kept == after.right_start - before.right_end > 0


@given(FEW, FEW, st.integers(0, 10))
def test_more_than_wanted_are_none(left: list[int], right: list[int], most: int) -> None:
    """Nothing is returned exactly if even the fewest edits are more than wanted."""
    found = find_edits(numbers(left), numbers(right), most=most)
    assert (found is None) == (fewest(left, right)[0] > most)


@given(FEW, FEW, st.integers(0, 10))
def test_before_a_free_end_there_are_none_if_even_the_fewest_are_more(
    left: list[int], right: list[int], most: int
) -> None:
    """What is returned is within the bound; nothing, only if the fewest are not."""
    found = find_edits(numbers(left), numbers(right), most=most, is_end_free=True)
    if found is None:
        assert fewest(left, right, is_end_free=True)[1] > most
    else:
        assert sum(map(size_of, found)) <= most


@given(FEW, FEW)
def test_an_equal_prefix_ends_where_they_differ(left: list[int], right: list[int]) -> None:
    """The prefix is equal, and the elements after it are not."""
    size = equal_prefix(numbers(left), numbers(right))
    assert are_alike(left[:size], right[:size])
    assert size == min(len(left), len(right)) or not are_alike(left[: size + 1], right[: size + 1])


@pytest.mark.parametrize("size", [1_000, 100_000])
def test_long_sequences_with_one_difference(size: int) -> None:
    """One element that goes, or comes, is one edit, however long the sequences are."""
    left = np.arange(size, dtype=np.int64)
    assert find_edits(left, np.delete(left, size // 2)) == [Edit(size // 2, size // 2 + 1, size // 2, size // 2)]
    assert find_edits(left, np.insert(left, 7, 3)) == [Edit(7, 7, 7, 8)]


@given(st.lists(st.integers(0, 2), min_size=1, max_size=6), st.integers(0, 5))
def test_a_changed_element_is_one_edit(left: list[int], at: int) -> None:
    """One goes and one comes at its place, even among equal ones that would let them stand apart."""
    at %= len(left)
    right = [*left[:at], 9, *left[at + 1 :]]
    assert find_edits(numbers(left), numbers(right)) == [Edit(at, at + 1, at, at + 1)]
