# SPDX-License-Identifier: Apache-2.0
"""Which records of a source its mirror has, and where, by what a comparison has kept."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from raftlog.tools.mirrors.comparing.differences import OffsetRange, united
from raftlog.tools.mirrors.comparing.log_view import SummedView
from raftlog.tools.mirrors.comparing.place_runs import AdjacentOffsets, PlaceRun
from raftlog.tools.mirrors.comparing.rows import Bools, Int64s
from raftlog.tools.mirrors.following import MirroredRecord

_NO_END: Final = 1 << 62


class MirroredPlaces:
    """Counts records of a source and its target for groups that move, as ``MirrorCounts`` says.

    Args:
        source: all records of the source.
        committed: those that are not of aborted transactions.
        target: all records of the target.
        places: ``PairResult.places`` of their comparison: copies of one record come in the order of the target.
    """

    def __init__(
        self, source: SummedView, committed: SummedView, target: SummedView, places: Sequence[PlaceRun]
    ) -> None:
        self._source, self._committed, self._target = source, committed, target
        self._runs = [each for each in places if each.count]

    def first_mirrored_from(self, upstream: int) -> MirroredRecord | None:
        """Return the first record at an offset of the source or after it that the target has; None if it has none."""
        following = [(each, each.source.before(upstream)) for each in self._runs]
        found = min((run.source.at(index) for run, index in following if index < run.count), default=None)
        if found is None:
            return None
        for run in reversed(self._runs):
            index = run.source.before(found)
            if index < run.count and run.source.at(index) == found:
                return MirroredRecord(found, run.target.at(index))
        return None

    def mirrored_count(self, upstream: int, downstream: int) -> int:
        """Count the records at an offset of the source or after it whose last copy is at one of the target or after."""
        return self._mirrored(upstream, _NO_END, downstream)

    def copy_count(self, downstream: int) -> int:
        """Count the copies at an offset of the target or after it; each copy of one record counts."""
        return sum(each.count - each.target.before(downstream) for each in self._runs)

    def foreign_count(self, downstream: int) -> int:
        """Count the records at an offset of the target or after it that are no copies."""
        return self._target.count(OffsetRange(downstream, self._target.end_offset)) - self.copy_count(downstream)

    def unmirrored_count(self, start: int, end: int) -> int:
        """Count the records of the source from an offset (inclusive) to another (exclusive) without any copy."""
        return self._source.count(OffsetRange(start, end)) - self._mirrored(start, end, 0)

    def _mirrored(self, start: int, end: int, downstream: int) -> int:
        """Count the records of the source in a range that have a copy at an offset of the target or after it."""
        whole, committed = list[OffsetRange](), list[OffsetRange]()
        listed = [np.zeros(0, np.int64)]
        for run in self._runs:
            first, last = max(run.source.before(start), run.target.before(downstream)), run.source.before(end)
            if first >= last:
                continue
            if isinstance(run.source, AdjacentOffsets):
                place = OffsetRange(run.source.at(first), run.source.at(last - 1) + 1)
                (committed if run.source.view.is_committed else whole).append(place)
            else:
                listed.append(np.array([run.source.at(index) for index in range(first, last)], np.int64))
        whole, both = united(whole), united([*whole, *committed])
        aborted = sum(self._source.count(place) - self._committed.count(place) for place in whole)
        others = np.unique(np.concatenate(listed))
        is_covered = _are_within(others, whole)
        is_open = _are_within(others, both) & ~is_covered
        is_covered[is_open] = self._committed.have(others[is_open])
        return aborted + sum(map(self._committed.count, both)) + int((~is_covered).sum())


def _are_within(offsets: Int64s, places: Sequence[OffsetRange]) -> Bools:
    """Return which offsets are in a range, of some that do not overlap."""
    starts = np.array([each.start for each in places], np.int64)
    ends = np.array([each.end for each in places], np.int64)
    return np.asarray(starts.searchsorted(offsets, side="right") > ends.searchsorted(offsets, side="right"))
