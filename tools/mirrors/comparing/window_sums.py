# SPDX-License-Identifier: Apache-2.0
"""Sums over the records of windows of a log, by which two windows are known to be equal without keeping a record."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import attrs
import numpy as np

from raftlog.tools.mirrors.comparing.rows import ABORTED, UNKNOWN, Int64s, Rows, UInt64s

_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST_FACTOR: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_FACTOR: Final = np.uint64(0x94D049BB133111EB)


@attrs.frozen
class WindowSum:
    """What is known of the records of a window.

    Attributes:
        count: how many there are.
        low: the sum of the first halves of their digests, each mixed with the place of its record in the window.
        high: the same of the second halves.
        aborted: how many records of aborted transactions there are.
        unknown: how many cannot be read.
        first: the offset of the first one, or -1.
    """

    count: int = 0
    low: int = 0
    high: int = 0
    aborted: int = 0
    unknown: int = 0
    first: int = -1

    def equals(self, other: "WindowSum") -> bool:
        """Whether two windows have equal records in equal order, none of which is unknown."""
        is_known = not self.unknown and not other.unknown
        return is_known and (self.count, self.low, self.high) == (other.count, other.low, other.high)


def sum_windows(rows: Iterable[Rows], bounds: Sequence[int], *, has_aborted: bool = True) -> list[WindowSum]:
    """Return the sum of each window.

    Args:
        rows: of a log, by ascending offset. What is outside all windows is passed over.
        bounds: the offset at which each window starts, and at which the last one ends, exclusive.
        has_aborted: whether records of aborted transactions count.
    """
    edges = np.array(bounds, np.int64)
    size = len(bounds) - 1
    counts, aborted, unknown = (np.zeros(size, np.int64) for _ in range(3))
    firsts = np.full(size, -1, np.int64)
    sums = np.zeros((size, 2), np.uint64)
    for part in rows:
        inside = part.between(bounds[0], bounds[-1])
        if not has_aborted:
            inside = inside.without_aborted()
        if not len(inside):
            continue
        windows = np.searchsorted(edges, inside.offsets, side="right") - 1
        starts = np.flatnonzero(np.diff(windows, prepend=-1))
        found = windows[starts]
        sizes = np.diff(starts, append=len(windows))
        places = np.arange(len(windows)) - np.repeat(starts - counts[found], sizes)
        with np.errstate(over="ignore"):
            sums[found] += np.add.reduceat(_mixed(inside.digests, places), starts, axis=0)
        firsts[found] = np.where(counts[found] == 0, inside.offsets[starts], firsts[found])
        counts[found] += sizes
        aborted[found] += np.add.reduceat((inside.flags & ABORTED != 0).astype(np.int64), starts)
        unknown[found] += np.add.reduceat((inside.flags & UNKNOWN != 0).astype(np.int64), starts)
    return [
        WindowSum(*map(int, each))
        for each in zip(counts, sums[:, 0], sums[:, 1], aborted, unknown, firsts, strict=True)
    ]


def _mixed(digests: UInt64s, places: Int64s) -> "np.ndarray[Any, np.dtype[np.uint64]]":
    """Mix each digest with a place, so that a sum depends on their order. Source: SplitMix64."""
    with np.errstate(over="ignore"):
        mixed = digests + ((places.astype(np.uint64) + np.uint64(1)) * _STEP)[:, None]
        mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST_FACTOR
        mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND_FACTOR
        return np.asarray(mixed ^ (mixed >> np.uint64(31)))
