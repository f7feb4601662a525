# SPDX-License-Identifier: Apache-2.0
"""Which records of a stretch of two logs are the same: with the least to explain, and as the syncs say."""

import functools
import itertools
from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np

from raftlog.tools.mirrors.comparing.edits import Edit, find_edits
from raftlog.tools.mirrors.comparing.rows import Int64s

_MOST_SKIPPED: Final = 3
"""So many adjacent syncs may be wrong at a time."""
_IMPOSSIBLE: Final = 1 << 40


@attrs.frozen(eq=False)
class Alignment:
    """Which records are the same, by their indices.

    Attributes:
        edits: the places where they are not, by ascending index.
        start: index of the first record of the source that has its place in the target; those before are left over.
        end: index after the last one; those after it are left over.
        partners: for each record of the source, the index of the same record in the target, or -1.
    """

    edits: tuple[Edit, ...]
    start: int
    end: int
    partners: Int64s


def align(
    left: Int64s,
    right: Int64s,
    named: Sequence[tuple[int, int]],
    *,
    is_start_free: bool = False,
    is_end_free: bool = False,
    due: int = 0,
) -> Alignment | None:
    """Return the alignment with the least to explain; None if there is too much.

    A record that is lost, one too many, changed, or a sync that is not true, is one thing to explain; so is that
    records are left over at a free start.

    Args:
        left: the records of the source, as numbers; negative ones are unknown, and equal any other.
        right: the records of the target.
        named: the indices that syncs say are the same, in the order of the syncs.
        is_start_free: whether records at the beginning of the source need no place in the target.
        is_end_free: whether records at its end need none. Not both.
        due: index of the first one at the end that needs none.
    """
    size = len(right)
    if is_end_free and bool((left >= 0).all()):  # Others may have written a lot after what was mirrored.
        is_known = np.isin(right, left) | (right < 0)
        size = int(np.flatnonzero(is_known)[-1]) + 1 if is_known.any() else 0
    nodes = _nodes(left, right[:size], [each for each in named if each[1] < size])

    @functools.cache
    def between(first: int, last: int) -> list[Edit] | None:
        (at, other), (end, other_end) = nodes[first], nodes[last]
        ours, theirs = left[at:end], right[other:other_end]
        if is_end_free and last == len(nodes) - 1:
            return _to_free_end(ours, theirs, due - at)
        return find_edits(ours, theirs, is_start_free=is_start_free and first == 0)

    best = [(0, 0)]
    for last in range(1, len(nodes)):
        ways = []
        for first in range(max(0, last - 1 - _MOST_SKIPPED), last):
            edits = between(first, last)
            cost = _IMPOSSIBLE if edits is None else sum(map(_fault_count, edits))
            if is_end_free and last == len(nodes) - 1 and edits is not None:
                cost += max(0, due - nodes[first][0] - _used(edits, nodes[last][1] - nodes[first][1]))
            if is_start_free and first == 0:
                cost += _is_late(edits or (), *nodes[last])
            ways.append((best[first][0] + cost + last - first - 1, first))
        best.append(min(ways, key=lambda way: (way[0], -way[1])))
    if best[-1][0] >= _IMPOSSIBLE:
        return None
    path = [len(nodes) - 1]
    while path[-1]:
        path.append(best[path[-1]][1])
    path.reverse()
    found = tuple(
        each.shifted(*nodes[first]) for first, last in itertools.pairwise(path) for each in between(first, last) or ()
    )
    if size < len(right):
        found = _with_more(found, size, len(right))
    return _alignment(found, len(left), len(right), is_start_free=is_start_free)


def _to_free_end(left: Int64s, right: Int64s, due: int) -> list[Edit] | None:
    """Return the edits up to a free end, so that there is the least to explain, with what is due before it."""
    found = find_edits(left, right, is_end_free=True)
    strict = find_edits(left[: max(0, due)], right) if due > 0 else None
    if strict is None or (found is not None and _missed(found, len(right), due) <= _missed(strict, len(right), due)):
        return found
    return strict


def _missed(edits: Sequence[Edit], size: int, due: int) -> int:
    """Return how many faults explain some edits and what is due after them."""
    return sum(map(_fault_count, edits)) + max(0, due - _used(edits, size))


def _used(edits: Sequence[Edit], size: int) -> int:
    """Return how many elements of the left sequence some edits use, for so many of the right one."""
    return size + sum(each.left_end - each.left_start - each.right_end + each.right_start for each in edits)


def _nodes(left: Int64s, right: Int64s, named: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the start, the indices of each sync whose two records may be the same, and the end."""
    found = [(0, 0)]
    for at, other in named:
        is_later = at > found[-1][0] and other > found[-1][1]
        if is_later and (left[at] == right[other] or left[at] < 0 or right[other] < 0):
            found.append((at, other))
    return [*found, (len(left), len(right))]


def _fault_count(edit: Edit) -> int:
    """Return how many single faults explain an edit: a record that goes and one that comes are one change."""
    return max(edit.left_end - edit.left_start, edit.right_end - edit.right_start)


def _is_late(edits: Sequence[Edit], size: int, other_size: int) -> bool:
    """Whether records of the source are left over at a free start."""
    return size > _used(edits, other_size)


def _with_more(edits: tuple[Edit, ...], size: int, other_size: int) -> tuple[Edit, ...]:
    """Add that the target has more, from an index on."""
    end = _used(edits, size)
    last = edits[-1] if edits else None
    if last is not None and (last.left_end, last.right_end) == (end, size):
        return (*edits[:-1], Edit(last.left_start, end, last.right_start, other_size))
    return (*edits, Edit(end, end, size, other_size))


def _alignment(edits: tuple[Edit, ...], size: int, other_size: int, *, is_start_free: bool) -> Alignment:
    kept = other_size - sum(each.right_end - each.right_start for each in edits)
    free = size - kept - sum(each.left_end - each.left_start for each in edits)
    start, end = (free, size) if is_start_free else (0, size - free)
    partners = np.full(size, -1, np.int64)
    at, other = start, 0
    for each in (*edits, Edit(end, end, other_size, other_size)):
        partners[at : each.left_start] = np.arange(other, each.right_start)
        at, other = each.left_end, each.right_end
    return Alignment(edits, start, end, partners)
