# SPDX-License-Identifier: Apache-2.0
"""Sums over the records of windows of a log, by which two windows are known to be equal without keeping a record."""

from collections.abc import Iterable
from typing import Any, Final

import attrs
import numpy as np

from raftlog.tools.mirrors.comparing.rows import UNKNOWN, Bools, DigestRows, Int64s, UInt64s

_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST_FACTOR: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_FACTOR: Final = np.uint64(0x94D049BB133111EB)


@attrs.frozen(eq=False)
class WindowSums:
    """What is known of the records of adjacent windows.

    Attributes:
        counts: how many records each has.
        sums: of each, the sums of the halves of their digests, each mixed with the place of its record in the window.
        unknown: how many records of each cannot be read.
        firsts: the offset of the first record of each, or -1.
    """

    counts: Int64s
    sums: UInt64s
    unknown: Int64s
    firsts: Int64s

    def equals(self, other: "WindowSums") -> Bools:
        """Return which windows have equal records in equal order as others, none of which is unknown."""
        is_known = (self.unknown == 0) & (other.unknown == 0)
        are_equal: Bools = is_known & (self.counts == other.counts) & (self.sums == other.sums).all(axis=1)
        return are_equal


def sum_windows(rows: Iterable[DigestRows], bounds: Int64s) -> WindowSums:
    """Return the sums of windows.

    Args:
        rows: of a log, by ascending offset. What is outside all windows is passed over.
        bounds: the offset at which each window starts, and at which the last one ends, exclusive.
    """
    size = len(bounds) - 1
    counts, unknown = np.zeros(size, np.int64), np.zeros(size, np.int64)
    firsts = np.full(size, -1, np.int64)
    sums = np.zeros((size, 2), np.uint64)
    for part in rows:
        inside = part.between(int(bounds[0]), int(bounds[-1]))
        if not len(inside):
            continue
        first, last = np.searchsorted(bounds, inside.offsets[[0, -1]], side="right") - 1
        edges = np.searchsorted(inside.offsets, bounds[first : last + 2])
        sizes = np.diff(edges)
        found = np.flatnonzero(sizes)
        starts, sizes = edges[found], sizes[found]
        found += first
        places = np.arange(len(inside)) - np.repeat(starts - counts[found], sizes)
        sums[found] += np.add.reduceat(_mixed(inside.digests, places), starts, axis=0)
        firsts[found] = np.where(counts[found] == 0, inside.offsets[starts], firsts[found])
        counts[found] += sizes
        if (inside.flags & UNKNOWN).any():
            unknown[found] += np.add.reduceat((inside.flags & UNKNOWN != 0).astype(np.int64), starts)
    return WindowSums(counts, sums, unknown, firsts)


def _mixed(digests: UInt64s, places: Int64s) -> "np.ndarray[Any, np.dtype[np.uint64]]":
    """Mix each digest with a place, so that a sum depends on their order. Source: SplitMix64."""
    with np.errstate(over="ignore"):
        mixed = digests + ((places.astype(np.uint64) + np.uint64(1)) * _STEP)[:, None]
        mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST_FACTOR
        mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND_FACTOR
        return np.asarray(mixed ^ (mixed >> np.uint64(31)))
