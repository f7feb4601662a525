# SPDX-License-Identifier: Apache-2.0
"""Reads two logs side by side."""

import collections
import itertools
from collections.abc import Iterable, Iterator

import numpy as np

from raftlog.tools.mirrors.comparing.rows import UNKNOWN, DigestRows


def equal_count(left: Iterable[DigestRows], right: Iterable[DigestRows]) -> int:
    """Return how many records are equal, from the first ones of both on; an unknown one is equal to none."""
    ours, theirs = iter(left), iter(right)
    mine, other = DigestRows.none(), DigestRows.none()
    count = 0
    while True:
        mine = mine if len(mine) else next((each for each in ours if len(each)), mine)
        other = other if len(other) else next((each for each in theirs if len(each)), other)
        size = min(len(mine), len(other))
        if not size:
            return count
        differs = (mine.digests[:size] != other.digests[:size]).any(axis=1)
        differs |= (mine.flags[:size] | other.flags[:size]) & UNKNOWN != 0
        first = np.flatnonzero(differs)
        if len(first):
            return count + int(first[0])
        count += size
        mine, other = mine.rows(size, len(mine)), other.rows(size, len(other))


def equal_and_all(left: Iterable[DigestRows], right: Iterable[DigestRows]) -> tuple[int, int, int]:
    """Return how many records are equal, as ``equal_count`` does, and how many there are on each side, read once."""
    counts = [0, 0]

    def noted(rows: Iterable[DigestRows], side: int) -> Iterator[DigestRows]:
        for each in rows:
            counts[side] += len(each)
            yield each

    ours, theirs = noted(left, 0), noted(right, 1)
    equal = equal_count(ours, theirs)
    collections.deque(itertools.chain(ours, theirs), maxlen=0)
    return equal, counts[0], counts[1]


def row_count(rows: Iterable[DigestRows]) -> int:
    """Return how many records there are."""
    return sum(map(len, rows))


def skipped(rows: Iterable[DigestRows], count: int) -> Iterator[DigestRows]:
    """Yield the records after the first ones."""
    for each in rows:
        if count < len(each):
            yield each.rows(count, len(each)) if count else each
        count = max(0, count - len(each))


def offset_after(rows: Iterable[DigestRows], count: int, end: int) -> int:
    """Return the offset of the record after the first ones, or the given end if there is none."""
    rest = next(skipped(rows, count), None)
    return end if rest is None else int(rest.offsets[0])


def first_rows(rows: Iterable[DigestRows], count: int) -> Iterator[DigestRows]:
    """Yield the first records."""
    for each in rows:
        if count <= 0:
            return
        yield each if len(each) <= count else each.rows(0, count)
        count -= len(each)
