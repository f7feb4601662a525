# SPDX-License-Identifier: Apache-2.0
"""Reads two logs side by side."""

from collections.abc import Iterable, Iterator

import numpy as np

from raftlog.tools.mirrors.comparing.rows import UNKNOWN, Bools, DigestRows


def equal_count(left: Iterable[DigestRows], right: Iterable[DigestRows]) -> int:
    """Return how many records are equal, from the first ones of both on; an unknown one is equal to none."""
    count = 0
    for are_equal in _compared(left, right):
        different = np.flatnonzero(~are_equal)
        if len(different):
            return count + int(different[0])
        count += len(are_equal)
    return count


def equal_tail_count(left: Iterable[DigestRows], right: Iterable[DigestRows]) -> int:
    """Return how many records are equal at the end of two logs of one size; an unknown one is equal to none."""
    count = 0
    for are_equal in _compared(left, right):
        different = np.flatnonzero(~are_equal)
        count = len(are_equal) - int(different[-1]) - 1 if len(different) else count + len(are_equal)
    return count


def _compared(left: Iterable[DigestRows], right: Iterable[DigestRows]) -> Iterator[Bools]:
    """Yield which records are equal, a moderate number at a time, up to the end of the shorter log."""
    ours, theirs = iter(left), iter(right)
    mine, other = DigestRows.none(), DigestRows.none()
    while True:
        mine = mine if len(mine) else next((each for each in ours if len(each)), mine)
        other = other if len(other) else next((each for each in theirs if len(each)), other)
        size = min(len(mine), len(other))
        if not size:
            return
        are_equal: Bools = (mine.digests[:size] == other.digests[:size]).all(axis=1)
        are_equal &= (mine.flags[:size] | other.flags[:size]) & UNKNOWN == 0
        yield are_equal
        mine, other = mine.rows(size, len(mine)), other.rows(size, len(other))


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
