# SPDX-License-Identifier: Apache-2.0
"""Which records of a stretch of two logs are the same: with the least to explain, and as the syncs say."""

import functools
import itertools
from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np

from raftlog.invariants import present
from raftlog.tools.mirrors.comparing.edits import Edit, find_edits, least_partners
from raftlog.tools.mirrors.comparing.rows import Int64s

_MOST_SKIPPED: Final = 3
"""So many adjacent syncs may be wrong at a time."""
_IMPOSSIBLE: Final = 1 << 40
_MOST_CELLS: Final = 1 << 16
"""Windows with unknown records are compared exactly up to so many pairs of records of both sides."""


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
    size = _mirrored_size(left, right) if is_end_free and bool((left >= 0).all()) else len(right)
    nodes = _nodes(left, right[:size], [each for each in named if each[1] < size])

    @functools.cache
    def between(first: int, last: int) -> tuple[list[Edit], int] | None:
        (at, other), (end, other_end) = nodes[first], nodes[last]
        ours, theirs = left[at:end], right[other:other_end]
        if is_end_free and last == len(nodes) - 1:
            edits = _to_free_end(ours, theirs, due - at)
            return None if edits is None else (edits, _fault_sum(edits))
        is_free = is_start_free and first == 0
        return _least_edits(ours, theirs, is_start_free=is_free, is_adjacent=last == first + 1)

    best = [(0, 0)]
    for last in range(1, len(nodes)):
        ways = []
        for first in range(max(0, last - 1 - _MOST_SKIPPED), last):
            found = between(first, last)
            edits, cost = ([], _IMPOSSIBLE) if found is None else found
            if is_end_free and last == len(nodes) - 1 and found is not None:
                cost += max(0, due - nodes[first][0] - _used(edits, nodes[last][1] - nodes[first][1]))
            if is_start_free and first == 0:
                size_used = _used(edits, nodes[last][1])
                cost += bool((left[: nodes[last][0] - size_used] >= 0).any())
            ways.append((best[first][0] + cost + last - first - 1, first))
        best.append(min(ways, key=lambda way: (way[0], -way[1])))
    if best[-1][0] >= _IMPOSSIBLE:
        return None
    edits_found: list[Edit] = []
    for first, last in itertools.pairwise(_path(best)):
        edits, _ = present(between(first, last), "edits")
        edits_found += (each.shifted(*nodes[first]) for each in edits)
    told = tuple(edits_found)
    if size < len(right):
        told = _with_more(told, size, len(right))
    return _alignment(told, len(left), len(right), is_start_free=is_start_free)


def _mirrored_size(left: Int64s, right: Int64s) -> int:
    """Return how many records the target has up to the last that the source has; others may have written many more."""
    is_known = np.isin(right, left) | (right < 0)
    return int(np.flatnonzero(is_known)[-1]) + 1 if is_known.any() else 0


def _path(best: Sequence[tuple[int, int]]) -> list[int]:
    """Return the nodes on the best way, of which each one knows the one before it."""
    path = [len(best) - 1]
    while path[-1]:
        path.append(best[path[-1]][1])
    return path[::-1]


def _least_edits(
    left: Int64s, right: Int64s, *, is_start_free: bool, is_adjacent: bool
) -> tuple[list[Edit], int] | None:
    """Return the edits between two syncs with the least to explain, and how much that is; None if it is too much.

    Unknown records of the source may have been mirrored, or compacted away before: both are tried, and any mixture
    where a window is small enough.
    """
    ways = [find_edits(left, right, is_start_free=is_start_free)]
    known = np.flatnonzero(left >= 0)
    if len(known) < len(left) and (ways[0] is None or _known_faults(ways[0], left)):
        edits = find_edits(left[known], right, is_start_free=is_start_free)
        if edits is not None:
            alignment = _alignment(tuple(edits), len(known), len(right), is_start_free=is_start_free)
            start = 0
            if is_start_free:
                start = int(known[alignment.start]) if alignment.start < len(known) else len(left)
            ways.append(_edits_between(known, alignment.partners, start, len(left), len(right)))
        if is_adjacent and not is_start_free and len(left) * len(right) <= _MOST_CELLS:
            partners = least_partners(left, right)
            ways.append(_edits_between(np.arange(len(left)), partners, 0, len(left), len(right)))
    found = [(each, _known_faults(each, left)) for each in ways if each is not None]
    return min(found, key=lambda way: way[1], default=None)


def _edits_between(indices: Int64s, partners: Int64s, at: int, size: int, other_size: int) -> list[Edit]:
    """Return the edits from an index of the source on that are left by partners of some records, by their indices."""
    kept = np.flatnonzero(partners >= 0)
    other = 0
    found = []
    ends = [*indices[kept].tolist(), size], [*partners[kept].tolist(), other_size]
    for end, other_end in zip(*ends, strict=True):
        if end > at or other_end > other:
            found.append(Edit(at, end, other, other_end))
        at, other = end + 1, other_end + 1
    return found


def _known_faults(edits: Sequence[Edit], left: Int64s) -> int:
    """Return how many single faults explain some edits, where unknown records of the source may go for nothing."""
    return sum(
        max(int((left[each.left_start : each.left_end] >= 0).sum()), each.right_end - each.right_start)
        for each in edits
    )


def _fault_sum(edits: Sequence[Edit]) -> int:
    """Return how many single faults explain some edits."""
    return sum(map(_fault_count, edits))


def _to_free_end(left: Int64s, right: Int64s, due: int) -> list[Edit] | None:
    """Return the edits up to a free end, so that there is the least to explain, with what is due before it."""
    found = find_edits(left, right, is_end_free=True)
    strict = find_edits(left[: max(0, due)], right) if due > 0 else None
    if strict is None or (found is not None and _missed(found, len(right), due) <= _missed(strict, len(right), due)):
        return found
    return strict


def _missed(edits: Sequence[Edit], size: int, due: int) -> int:
    """Return how many faults explain some edits and what is due after them."""
    return _fault_sum(edits) + max(0, due - _used(edits, size))


def _used(edits: Sequence[Edit], size: int) -> int:
    """Return how many elements of the left sequence some edits use, for so many of the right one."""
    return size + sum(each.left_end - each.left_start - each.right_end + each.right_start for each in edits)


def _nodes(left: Int64s, right: Int64s, named: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the start, the indices of each sync whose two records may be the same, and the end."""
    found: list[tuple[int, int]] = []
    for at, other in named:
        is_later = not found or (at > found[-1][0] and other > found[-1][1])
        if is_later and (left[at] == right[other] or left[at] < 0 or right[other] < 0):
            found.append((at, other))
    return [(0, 0), *found, (len(left), len(right))]


def _fault_count(edit: Edit) -> int:
    """Return how many single faults explain an edit: a record that goes and one that comes are one change."""
    return max(edit.left_end - edit.left_start, edit.right_end - edit.right_start)


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
