# SPDX-License-Identifier: Apache-2.0
"""How work is divided among tasks of Spark: by its weight, so that none is left with the long ones at the end."""

import heapq
from collections.abc import Sequence
from typing import Final

import attrs

from raftlog.tools.auditing.evidence import SurveyTask

MEBIBYTE: Final = 1024 * 1024
_FILE_WEIGHT: Final = MEBIBYTE
"""Of opening a file, in bytes that are read in the same time."""
_HEAVIEST_BIN: Final = 4096 * MEBIBYTE
_LIGHTEST_BIN: Final = 256 * MEBIBYTE
"""Where there are so many bins for each slot; where there is less to do, a lighter one is the lightest."""
_BINS_A_SLOT: Final = 4
_LIGHTEST_OF_LITTLE: Final = 32 * MEBIBYTE
_BINS_A_SHARE: Final = 2
"""Of what is left, for each slot."""
_JUDGED_FILE_WEIGHT: Final = 20 * MEBIBYTE
"""Of judging a file, beside what it weighs by its size: its evidence grows with that, but little."""
_SLICE_WEIGHT: Final = 5 * 1024 * MEBIBYTE


def weight_of(task: SurveyTask) -> int:
    """Return how long a file takes, as a number of bytes that are read in that time."""
    return task.size_bytes + task.indexes_size_bytes + _FILE_WEIGHT


def bin_weights(total: int, slots: int) -> list[int]:
    """Return how heavy bins should be, the heaviest first: each has half of a slot's share of what is left by then.

    So the last ones are light, and no slot waits long for another at the end; but each is worth its start, unless there
    is too little for all slots to have some.

    Args:
        total: weight of all there is.
        slots: how many tasks run at a time.

    Source: guided self-scheduling, Polychronopoulos and Kuck 1987.
    """
    weights: list[int] = []
    lightest = min(max(total // (slots * _BINS_A_SLOT), _LIGHTEST_OF_LITTLE), _LIGHTEST_BIN)
    while total > 0:
        share = total // (slots * _BINS_A_SHARE)
        weights.append(min(max(share, lightest), _HEAVIEST_BIN, total))
        total -= weights[-1]
    return weights


def pack(weights: Sequence[int], rooms: Sequence[int]) -> list[list[int]]:
    """Divide what has a weight into bins, the heaviest first.

    Each goes into the bin that has the most room left, long ones first: none is overfull by the weight of a whole one
    of those that are in it.

    Args:
        weights: of what is divided.
        rooms: how heavy each bin should be; together, as heavy as all there is.

    Returns:
        The indexes of what is in each bin. None is empty.
    """
    bins: list[tuple[int, int, list[int]]] = [(-room, number, []) for number, room in enumerate(rooms)]
    heapq.heapify(bins)
    for index in sorted(range(len(weights)), key=lambda index: -weights[index]):
        room, number, within = bins[0]
        within.append(index)
        heapq.heapreplace(bins, (room + weights[index], number, within))
    filled = [within for _, _, within in bins if within]
    return sorted(filled, key=lambda within: (-sum(weights[index] for index in within), within))


@attrs.define
class Slices:
    """Divides partitions, in order, into slices that a task judges one after the other.

    Attributes:
        count: how many there are so far: slice 0 has the log directories themselves.
    """

    count: int = 1
    _weight: int = _SLICE_WEIGHT
    _name: tuple[str, int] = ("", -1)

    def number_of(self, task: SurveyTask) -> int:
        """Return the slice of a file; all replicas of a partition are in the same.

        Args:
            task: of the file that follows the one before, by topic and partition.
        """
        place = task.place
        if not place.topic:
            return 0
        if place.topic_partition != self._name:
            self._name = place.topic_partition
            if self._weight >= _SLICE_WEIGHT:
                self.count, self._weight = self.count + 1, 0
        self._weight += task.size_bytes + _JUDGED_FILE_WEIGHT
        return self.count - 1
