# SPDX-License-Identifier: Apache-2.0
"""The lineage of a log: the epoch of each of its offsets, as far as it is known.

Two sound logs that have the same epoch at an offset have the same records up to that offset. So epochs and their start
offsets say where two logs part.
"""

import bisect
import functools
import heapq
from collections.abc import Iterable, Sequence
from typing import Self

import attrs

from raftlog.offsets import EpochEntry, OffsetAndEpoch


@attrs.frozen
class Lineage:
    """A log by its epochs.

    Attributes:
        epochs: the epochs that have records, ascending, with the first known offset of each.
        end_offset: of the log, exclusive.
    """

    epochs: tuple[EpochEntry, ...] = ()
    end_offset: int = 0

    @classmethod
    def of_point(cls, point: OffsetAndEpoch) -> Self:
        """Return what the id of a snapshot says: the epoch of the last record before its end."""
        return cls((EpochEntry(point.epoch, point.offset - 1),), point.offset) if point.offset > 0 else cls()

    @property
    def start_offset(self) -> int:
        """The first offset whose epoch is known; the end if none is."""
        return self.epochs[0].start_offset if self.epochs else self.end_offset

    @property
    def end(self) -> OffsetAndEpoch:
        """The end, exclusive, with the epoch of the last record; epoch -1 if there is none."""
        return OffsetAndEpoch(self.end_offset, self.epochs[-1].epoch if self.epochs else -1)

    def epoch_at(self, offset: int) -> int | None:
        """Return the epoch of the record at an offset; None if it is not known, or there is no such record."""
        if not self.start_offset <= offset < self.end_offset:
            return None
        return self.epochs[bisect.bisect_right(self.start_offsets, offset) - 1].epoch

    @functools.cached_property
    def start_offsets(self) -> Sequence[int]:
        """The first known offset of each epoch, ascending."""
        return [entry.start_offset for entry in self.epochs]

    def cut(self, end_offset: int) -> "Lineage":
        """Return the part below an offset."""
        if end_offset >= self.end_offset:
            return self
        return Lineage(tuple(entry for entry in self.epochs if entry.start_offset < end_offset), max(0, end_offset))

    def after(self, point: OffsetAndEpoch) -> "Lineage":
        """Return what is known of a log if nothing is, below the last record before a point."""
        start = Lineage.of_point(point)
        rest = (entry for entry in self.epochs if entry.epoch > point.epoch and entry.start_offset >= point.offset)
        return Lineage((*start.epochs, *rest), max(point.offset, self.end_offset))

    def contains(self, point: OffsetAndEpoch) -> bool:
        """Whether the log has all records below a point, of which the last one is of the point's epoch.

        Where the log starts later, its first epoch must not be lower: what was committed before is in its snapshot.
        """
        if point.offset <= 0:
            return True
        if point.offset > self.end_offset:
            return False
        if point.offset <= self.start_offset:
            return not self.epochs or point.epoch <= self.epochs[0].epoch
        return self.epoch_at(point.offset - 1) == point.epoch


def parting(one: Lineage, other: Lineage) -> int | None:
    """Return the first offset at which two logs are known to differ; None if one may continue the other.

    If they differ already at the first offset that both are known at, they may have parted earlier.
    """
    start, end = max(one.start_offset, other.start_offset), min(one.end_offset, other.end_offset)
    if not (one.epochs and other.epochs):
        return None
    if start >= end:  # They have no offset in common; along a log, epochs do not decrease.
        before, after = (one, other) if one.end_offset <= other.start_offset else (other, one)
        least = after.epochs[0].epoch
        return next((entry.start_offset for entry in before.epochs if entry.epoch > least), None)
    offsets = heapq.merge([start], *(_between(each.start_offsets, start, end) for each in (one, other)))
    return next((offset for offset in offsets if one.epoch_at(offset) != other.epoch_at(offset)), None)


def _between(offsets: Sequence[int], start: int, end: int) -> Sequence[int]:
    return offsets[bisect.bisect_left(offsets, start) : bisect.bisect_left(offsets, end)]


def common_end(one: Lineage, other: Lineage) -> int:
    """Return the end (exclusive) of what two logs may have in common."""
    apart = parting(one, other)
    return min(one.end_offset, other.end_offset) if apart is None else apart


def completed(lineage: Lineage, others: Iterable[Lineage]) -> Lineage:
    """Return a lineage with what other logs know of the offsets before its start.

    A log that has the same epoch at that start has the same records before.
    """
    found, known = lineage, list(others)
    while found.epochs and found.start_offset > 0:
        first = found.epochs[0]
        earlier = [
            each
            for each in known
            if each.start_offset < first.start_offset and each.epoch_at(first.start_offset) == first.epoch
        ]
        if not earlier:
            break
        found = _joined(min(earlier, key=lambda each: each.start_offset), found)
    return found


def _joined(before: Lineage, after: Lineage) -> Lineage:
    first, rest = after.epochs[0], after.epochs[1:]
    kept = tuple(entry for entry in before.epochs if entry.start_offset < first.start_offset)
    if kept[-1].epoch != first.epoch:
        kept += (first,)
    return Lineage(kept + rest, after.end_offset)


def longest(lineages: Sequence[Lineage]) -> Lineage:
    """Return the most up-to-date of some lineages: by epoch, then by end."""
    return max(lineages, key=lambda lineage: lineage.end, default=Lineage())
