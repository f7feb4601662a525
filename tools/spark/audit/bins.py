# SPDX-License-Identifier: Apache-2.0
"""Divides work among Spark tasks by weight, so that no long task is left for the end."""

import heapq
from collections.abc import Sequence
from typing import Final

import attrs

from raftlog.tools.auditing.evidence import SurveyTask

MEBIBYTE: Final = 1024 * 1024
_FILE_WEIGHT: Final = MEBIBYTE
"""The cost of opening a file, as the number of bytes that are read in the same time."""
_HEAVIEST_BIN: Final = 4096 * MEBIBYTE
_LIGHTEST_BIN: Final = 256 * MEBIBYTE
"""The least weight of a bin, if that gives every slot ``_BINS_A_SLOT`` bins; with less work, bins are lighter."""
_BINS_A_SLOT: Final = 4
_LIGHTEST_OF_LITTLE: Final = 32 * MEBIBYTE
_BINS_A_SHARE: Final = 2
"""A bin is one of so many equal parts of a slot's share of the remaining work."""
_JUDGED_FILE_WEIGHT: Final = 20 * MEBIBYTE
"""The cost of judging a file, in addition to its size: evidence grows only slowly with size."""
_SLICE_WEIGHT: Final = 5 * 1024 * MEBIBYTE


def weight_of(task: SurveyTask) -> int:
    """Return the cost of surveying a file, as the number of bytes that are read in the same time."""
    return task.size_bytes + task.indexes_size_bytes + _FILE_WEIGHT


def bin_weights(total: int, slots: int) -> list[int]:
    """Return the weights of bins, the heaviest first: each is half of a slot's share of the remaining work.

    So the last bins are light, and no slot waits long for another at the end. A least weight makes each bin worth the
    start of a task, unless there is too little work for all slots.

    Args:
        total: weight of all work.
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
    """Distribute items over bins, and return the bins, the heaviest first.

    Items are placed in order of decreasing weight, each into the bin with the most room left. So no bin exceeds its
    room by the full weight of an item in it.

    Args:
        weights: of the items.
        rooms: the wanted weight of each bin; their sum is that of the weights.

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
    """Divides partitions, in order, into slices; one task judges the partitions of a slice.

    Attributes:
        count: number of slices so far; slice 0 has the files of log directories themselves.
    """

    count: int = 1
    _weight: int = _SLICE_WEIGHT
    _name: tuple[str, int] = ("", -1)

    def number_of(self, task: SurveyTask) -> int:
        """Return the slice of a file; all replicas of a partition are in the same.

        Args:
            task: of a file. Calls must be in the order of topic and partition.
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
