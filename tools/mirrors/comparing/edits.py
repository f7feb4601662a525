# SPDX-License-Identifier: Apache-2.0
"""The fewest edits that turn one sequence of numbers into another.

Source: E. W. Myers, "An O(ND) Difference Algorithm and Its Variations", 1986. A negative number stands for one element
that nobody knows, and equals any other.
"""

from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np

from raftlog.tools.mirrors.comparing.rows import Int64s

MOST_EDITS: Final = 400
"""With more single insertions and deletions than these, sequences are not worth being told apart element by element:
the time grows with their square."""
WEIGHT: Final = 8
"""Of a record that the source has a little further on, it is likelier that so many before it were lost than that
another one, with equal contents, was written."""
_NO_COST: Final = 1 << 60


@attrs.frozen
class Edit:
    """A place where the left sequence has other elements than the right one; one of the two ranges may be empty.

    Attributes:
        left_start: index of the first element of the left sequence that goes.
        left_end: index after the last one.
        right_start: index of the first element of the right sequence that comes instead.
        right_end: index after the last one.
    """

    left_start: int
    left_end: int
    right_start: int
    right_end: int

    def shifted(self, left: int, right: int) -> "Edit":
        """Return the edit of sequences that have so many more elements before."""
        starts = self.left_start + left, self.left_end + left
        return Edit(*starts, self.right_start + right, self.right_end + right)


def find_edits(
    left: Int64s, right: Int64s, *, most: int = MOST_EDITS, is_end_free: bool = False, is_start_free: bool = False
) -> list[Edit] | None:
    """Return the fewest edits, by ascending index; None if there are too many.

    Before a free end, or after a free start, an element that comes weighs as much as ``WEIGHT`` that go: where the
    right sequence has what the left one has a little further on, it is that element.

    Args:
        left: the one sequence.
        right: the other one.
        most: how many elements may go and come, free ones aside.
        is_end_free: whether elements at the end of the left sequence may go for nothing: they make no edit.
        is_start_free: whether elements at its beginning may. Not both.
    """
    if is_start_free:
        found = find_edits(left[::-1], right[::-1], most=most, is_end_free=True)
        return found and [_reversed(each, len(left), len(right)) for each in reversed(found)]
    start = equal_prefix(left, right)
    end = 0 if is_end_free else equal_prefix(left[start:][::-1], right[start:][::-1])
    middle, other = left[start : len(left) - end].tolist(), right[start : len(right) - end].tolist()
    if is_end_free and len(middle) > len(other) + most:
        middle = middle[: len(other) + most]
    trace = _trace(middle, other, most, is_end_free=is_end_free)
    if trace is None:
        return None
    return [each.shifted(start, start) for each in _edits_of(trace)]


def least_partners(left: Int64s, right: Int64s) -> Int64s:
    """Return the index in the right sequence of the partner of each element of the left one, or -1 if it has none.

    As few elements go or come as possible, where unknown ones of the left sequence may go for nothing. The time grows
    with the product of the sizes.
    """
    ours, theirs = left.tolist(), right.tolist()
    rows = [list(range(len(theirs) + 1))]
    for mine in ours:
        before, going = rows[-1], int(mine >= 0)
        row = [before[0] + going]
        for index, other in enumerate(theirs):
            cost = min(before[index + 1] + going, row[index] + 1)
            row.append(min(cost, before[index]) if _are_equal(mine, other) else cost)
        rows.append(row)
    partners = np.full(len(ours), -1, np.int64)
    at, index = len(ours), len(theirs)
    while at and index:
        mine, cost = ours[at - 1], rows[at][index]
        if _are_equal(mine, theirs[index - 1]) and rows[at - 1][index - 1] == cost:
            at, index = at - 1, index - 1
            partners[at] = index
        elif rows[at - 1][index] + int(mine >= 0) == cost:
            at -= 1
        else:
            index -= 1
    return partners


def equal_prefix(left: Int64s, right: Int64s) -> int:
    """Return how many elements are equal from the beginning on."""
    size = min(len(left), len(right))
    left, right = left[:size], right[:size]
    differs = np.flatnonzero((left != right) & (left >= 0) & (right >= 0))
    return int(differs[0]) if len(differs) else size


def _reversed(edit: Edit, left_size: int, right_size: int) -> Edit:
    return Edit(
        left_size - edit.left_end,
        left_size - edit.left_start,
        right_size - edit.right_end,
        right_size - edit.right_start,
    )


def _trace(left: Sequence[int], right: Sequence[int], most: int, *, is_end_free: bool) -> list[dict[int, int]] | None:
    """Return, for each number of edits, how far the left sequence is used on each diagonal; the last one is the end.

    The diagonal of a place is its index in the left sequence minus that in the right one.
    """
    left_size, right_size = len(left), len(right)
    furthest = {1: 0}
    trace: list[dict[int, int]] = []
    best, least = None, _NO_COST
    for count in range(min(most, left_size + right_size) + 1):
        reached: dict[int, int] = {}
        for diagonal in range(-count, count + 1, 2):
            below, above = furthest.get(diagonal - 1, -1), furthest.get(diagonal + 1, -1)
            at = above if above > below else below + 1
            other = at - diagonal
            if at < 0 or at > left_size or other < 0 or other > right_size:
                continue
            while at < left_size and other < right_size and _are_equal(left[at], right[other]):
                at, other = at + 1, other + 1
            reached[diagonal] = at
            if other == right_size and (is_end_free or at == left_size):
                come = (count - diagonal) // 2
                cost = count + (WEIGHT - 1) * come if is_end_free else count
                if cost < least:
                    best, least = [*trace, {diagonal: at}], cost
        if least <= count + 1:
            break
        trace.append(reached)
        furthest = reached
    return best


def _are_equal(left: int, right: int) -> bool:
    return left == right or left < 0 or right < 0


def _edits_of(trace: list[dict[int, int]]) -> list[Edit]:
    """Walk a trace back from its end, and join edits that touch."""
    ((diagonal, at),) = trace[-1].items()
    single = []
    for count in range(len(trace) - 1, 0, -1):
        furthest = trace[count - 1]
        below, above = furthest.get(diagonal - 1, -1), furthest.get(diagonal + 1, -1)
        if above > below:
            diagonal, at = diagonal + 1, above
            single.append(Edit(at, at, at - diagonal, at - diagonal + 1))
        else:
            diagonal, at = diagonal - 1, below
            single.append(Edit(at, at + 1, at - diagonal, at - diagonal))
    joined: list[Edit] = []
    for each in reversed(single):
        last = joined[-1] if joined else None
        if last is not None and (last.left_end, last.right_end) == (each.left_start, each.right_start):
            joined[-1] = Edit(last.left_start, each.left_end, last.right_start, each.right_end)
        else:
            joined.append(each)
    return joined
