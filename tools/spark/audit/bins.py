# SPDX-License-Identifier: Apache-2.0
"""Divides work among Spark tasks by weight, so that no task is left with a long file at the end."""

import heapq
from collections.abc import Sequence
from typing import Final

import attrs

from raftlog.tools.auditing.evidence import SurveyTask

MEBIBYTE: Final = 1024 * 1024
_FILE_WEIGHT: Final = MEBIBYTE
"""Cost of opening a file, in bytes that are read in the same time."""
_HEAVIEST_BIN: Final = 4096 * MEBIBYTE
_LIGHTEST_BIN: Final = 256 * MEBIBYTE
"""The least weight of a bin if each slot gets this many bins; with less work, bins may be lighter."""
_BINS_A_SLOT: Final = 4
_LIGHTEST_OF_LITTLE: Final = 32 * MEBIBYTE
_BINS_A_SHARE: Final = 2
"""The share of a slot's remaining work that a bin takes."""
_JUDGED_FILE_WEIGHT: Final = 20 * MEBIBYTE
"""Cost of judging a file, in addition to its size: its evidence grows with the size, but only a little."""
_SLICE_WEIGHT: Final = 5 * 1024 * MEBIBYTE


def weight_of(task: SurveyTask) -> int:
    """Return the cost of a file, as the number of bytes that are read in the same time."""
    return task.size_bytes + task.indexes_size_bytes + _FILE_WEIGHT


def bin_weights(total: int, slots: int) -> list[int]:
    """Return the weights that bins should have, the heaviest first: each is half of a slot's share of the rest.

    The last bins are light, so that no slot waits long for another at the end. A least weight makes each bin worth
    starting a task for, unless there is too little work for all slots.

    Args:
        total: weight of all the work.
        slots: number of tasks that run at a time.

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
    """Divide weighted items into bins, the heaviest bin first.

    Heavy items come first, and each goes into the bin with the most room left. So no bin exceeds its room by as much as
    the weight of one of its items.

    Args:
        weights: of the items.
        rooms: the weight that each bin should have; their sum is the weight of all items.

    Returns:
        The indexes of the items in each bin. No bin is empty.
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
    """Divides partitions, in order, into slices; one task judges the partitions of a slice one after the other.

    Attributes:
        count: number of slices so far; slice 0 has the log directories themselves.
    """

    count: int = 1
    _weight: int = _SLICE_WEIGHT
    _name: tuple[str, int] = ("", -1)

    def number_of(self, task: SurveyTask) -> int:
        """Return the slice of a file; all replicas of a partition are in the same slice.

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
