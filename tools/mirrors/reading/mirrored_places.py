# SPDX-License-Identifier: Apache-2.0
"""Which records of a source its mirror has, and where, by what a comparison has kept."""

from collections.abc import Sequence

import numpy as np

from raftlog.tools.mirrors.comparing.lockstep import row_count
from raftlog.tools.mirrors.comparing.rows import Places, RowReader
from raftlog.tools.mirrors.following import MirroredRecord


class MirroredPlaces:
    """Counts records of a source and its target for groups that move, as ``MirrorCounts`` says.

    Args:
        source: reads the source.
        target: reads the target.
        places: ``PairResult.places`` of their comparison.
    """

    def __init__(self, source: RowReader, target: RowReader, places: Sequence[Places]) -> None:
        self._source, self._target = source, target
        upstream = np.concatenate([np.zeros(0, np.int64), *(each[0] for each in places)])
        downstream = np.concatenate([np.zeros(0, np.int64), *(each[1] for each in places)])
        order = np.lexsort((downstream, upstream))
        is_last = np.diff(upstream[order], append=-1) != 0
        self._upstream, self._last_copies = upstream[order][is_last], downstream[order][is_last]
        self._copies = np.sort(downstream)

    def first_mirrored_from(self, upstream: int) -> MirroredRecord | None:
        """Return the first record at an offset of the source or after it that the target has; None if it has none."""
        at = int(np.searchsorted(self._upstream, upstream))
        if at == len(self._upstream):
            return None
        return MirroredRecord(int(self._upstream[at]), int(self._last_copies[at]))

    def mirrored_count(self, upstream: int, downstream: int) -> int:
        """Count the records at an offset of the source or after it whose last copy is at one of the target or after."""
        at = int(np.searchsorted(self._upstream, upstream))
        return int((self._last_copies[at:] >= downstream).sum())

    def copy_count(self, downstream: int) -> int:
        """Count the copies at an offset of the target or after it; each copy of one record counts."""
        return len(self._copies) - int(np.searchsorted(self._copies, downstream))

    def foreign_count(self, downstream: int) -> int:
        """Count the records at an offset of the target or after it that are no copies."""
        return row_count(self._target.read(downstream, self._target.end_offset)) - self.copy_count(downstream)

    def unmirrored_count(self, start: int, end: int) -> int:
        """Count the records of the source from an offset (inclusive) to another (exclusive) without any copy."""
        first, last = np.searchsorted(self._upstream, (start, end))
        return row_count(self._source.read(start, end)) - int(last - first)
