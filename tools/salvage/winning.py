# SPDX-License-Identifier: Apache-2.0
"""Decides which lineage wins, and how far each replica is of it.

One leader writes all records of an epoch, so that two logs with a record of the same epoch have the same records up to
the first of both ends of that epoch. That holds across damage, too: no record between need be left. The winner is the
most up-to-date log, by epoch and then by offset as in an election, of those that do not contradict what is proven to be
committed.
"""

import bisect
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.tools.auditing.proof.lineage import Lineage
from raftlog.tools.salvage.runs import Run


@attrs.frozen
class Extent:
    """The offsets at which records of an epoch are known.

    Attributes:
        start_offset: of the first, inclusive.
        end_offset: of the last, exclusive.
    """

    start_offset: int
    end_offset: int


@attrs.frozen
class Known:
    """What is known of a log: the extent of each of its epochs, by ascending epoch. Records between may be gone."""

    extents: Mapping[int, Extent]

    @classmethod
    def of_runs(cls, runs: Iterable[Run]) -> Self:
        """Return what the runs of a log say."""
        found: dict[int, Extent] = {}
        for run in runs:
            start = found[run.epoch].start_offset if run.epoch in found else run.start_offset
            found[run.epoch] = Extent(start, run.end_offset)
        return cls(found)

    @classmethod
    def of_point(cls, point: OffsetAndEpoch) -> Self:
        """Return what the id of a snapshot says: the epoch of the last record before its end."""
        return cls({point.epoch: Extent(point.offset - 1, point.offset)})

    @classmethod
    def of_lineage(cls, lineage: Lineage) -> Self:
        """Return what a lineage says."""
        ends = [*(entry.start_offset for entry in lineage.epochs[1:]), lineage.end_offset]
        return cls({each.epoch: Extent(each.start_offset, end) for each, end in zip(lineage.epochs, ends, strict=True)})

    @property
    def end(self) -> OffsetAndEpoch:
        """End of its last known record, exclusive, with its epoch; offset 0 and epoch -1 without any."""
        if not self.extents:
            return OffsetAndEpoch(0, -1)
        epoch = max(self.extents)
        return OffsetAndEpoch(self.extents[epoch].end_offset, epoch)

    def cut(self, end_offset: int) -> "Known":
        """Return what is known below an offset."""
        return Known(
            {
                epoch: Extent(each.start_offset, min(each.end_offset, end_offset))
                for epoch, each in self.extents.items()
                if each.start_offset < end_offset
            }
        )

    def joined(self, other: "Known") -> "Known":
        """Return what two logs of one lineage say together."""
        found = dict(self.extents)
        for epoch, each in other.extents.items():
            mine = found.get(epoch, each)
            found[epoch] = Extent(min(mine.start_offset, each.start_offset), max(mine.end_offset, each.end_offset))
        return Known(dict(sorted(found.items())))


def parting_offset(one: Known, other: Known) -> int | None:
    """Return the first offset from which on two logs are known to differ; None if nothing says so.

    They differ where one has a record of an epoch at or above the offset of a record of a later epoch in the other.
    """
    found = [*_partings(one, other), *_partings(other, one)]
    return min(found, default=None)


def _partings(one: Known, other: Known) -> Iterable[int]:
    epochs = list(other.extents)
    for epoch, extent in one.extents.items():
        index = bisect.bisect_right(epochs, epoch)
        if index < len(epochs):
            start = other.extents[epochs[index]].start_offset
            if extent.end_offset > start:
                yield start


@attrs.frozen
class Winner:
    """The lineage that wins.

    Attributes:
        known: of it, by all replicas.
        ends: how far each replica is of it, exclusive; 0 for those that are not known to be.
    """

    known: Known
    ends: tuple[int, ...]

    def cut(self, end_offset: int) -> "Winner":
        """Return the part of it below an offset."""
        return Winner(self.known.cut(end_offset), tuple(min(each, end_offset) for each in self.ends))


def winner(
    replicas: Sequence[Known], snapshots: Iterable[OffsetAndEpoch], proven: Known, claims: Iterable[Known] = ()
) -> Winner | None:
    """Return the lineage that wins; None if every log contradicts what is proven, or there is none.

    Args:
        replicas: each by what can be vouched for.
        snapshots: the ids of readable ones: what is in them was committed.
        proven: to be committed.
        claims: logs whose last records cannot be vouched for, though it is known where their epochs began. If one of
            them is more up to date than all that is left, the lineage ends where they part: what the others have from
            there on was replaced.
    """
    points = [Known.of_point(each) for each in snapshots if each.offset > 0]
    tips = sorted((each for each in (*replicas, *points) if each.extents), key=lambda each: each.end, reverse=True)
    tip = next((each for each in tips if parting_offset(each, proven) is None), None)
    if tip is None:
        return None
    found = _grown(tip, replicas, points)
    later = [each for each in claims if each.end.epoch > tip.end.epoch and parting_offset(each, proven) is None]
    partings = (parting_offset(found.known, each) for each in later)
    return found.cut(min((each for each in partings if each is not None), default=tip.end.offset))


def _grown(lineage: Known, replicas: Sequence[Known], points: Sequence[Known]) -> Winner:
    """Return a lineage with all that replicas and snapshots of it know, until none knows more."""
    top = lineage.end
    while True:
        ends = tuple(_end_in(lineage, each) for each in replicas)
        found = lineage
        for each, end in zip(replicas, ends, strict=True):
            found = found.joined(each.cut(end))
        for point in points:
            if point.end.offset <= top.offset and parting_offset(found, point) is None:
                found = found.joined(point)
        if found == lineage:
            return Winner(found, ends)
        lineage = found


def _end_in(lineage: Known, replica: Known) -> int:
    """Return up to which offset a replica is known to be of a lineage, exclusive."""
    epoch = max(lineage.extents.keys() & replica.extents.keys(), default=None)
    if epoch is None:
        return 0
    end = min(lineage.extents[epoch].end_offset, replica.extents[epoch].end_offset)
    apart = parting_offset(lineage, replica.cut(end))
    return end if apart is None else min(end, apart)
