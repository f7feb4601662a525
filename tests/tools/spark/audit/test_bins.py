# SPDX-License-Identifier: Apache-2.0
"""Work is divided evenly, completely, and in an order that depends on nothing but the work."""

import heapq
import itertools

from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.files.file_names import FileKind
from raftlog.tools.auditing.evidence import Place, SurveyTask
from raftlog.tools.spark.audit.bins import MEBIBYTE, Slices, bin_weights, pack


@given(weights=st.lists(st.integers(1, 1000), max_size=60), data=st.data())
def test_bins(weights: list[int], data: st.DataObject) -> None:
    """Each item is in one bin, none is empty, the heaviest come first, and none is much heavier than it should be."""
    cuts = data.draw(st.lists(st.integers(0, sum(weights)), max_size=12).map(sorted))
    ends = [0, *cuts, sum(weights)]
    rooms = [end - start for start, end in itertools.pairwise(ends) if end > start]
    bins = pack(weights, rooms)
    loads = [sum(weights[index] for index in within) for within in bins]

    assert sorted(index for within in bins for index in within) == list(range(len(weights)))
    assert all(bins)
    assert loads == sorted(loads, reverse=True)
    without_lightest = [sum(each) - min(each) for each in ([weights[index] for index in within] for within in bins)]
    pairs = zip(sorted(without_lightest, reverse=True), sorted(rooms, reverse=True), strict=False)
    assert all(load < room for load, room in pairs)


def ends_at(loads: list[int], slots: int) -> int:
    """When the last slot is done, if each that is free takes the next bin."""
    free = [0] * slots
    for load in loads:
        heapq.heapreplace(free, free[0] + load)
    return max(free)


@given(total=st.integers(0, 10**13), slots=st.integers(1, 300))
def test_the_weight_of_bins(total: int, slots: int) -> None:
    """Everything is divided, a bin is worth its task, and no slot waits for another longer than the lightest takes."""
    weights = bin_weights(total, slots)

    assert sum(weights) == total
    assert weights == sorted(weights, reverse=True)
    assert all(weight <= 4096 * MEBIBYTE for weight in weights)
    assert all(weight >= 32 * MEBIBYTE for weight in weights[:-1])
    assert len(weights) >= min(slots, total // (32 * MEBIBYTE))
    assert ends_at(weights, slots) <= total / slots + min(256 * MEBIBYTE, max(32 * MEBIBYTE, total / slots / 4))


def task(topic: str, partition: int, size_bytes: int, node: str = "n1") -> SurveyTask:
    """A file."""
    return SurveyTask(Place(node, topic, partition), f"{node}/x", FileKind.LOG, size_bytes=size_bytes)


@given(partitions=st.lists(st.lists(st.integers(0, 3 * 2**30), min_size=1, max_size=4), max_size=12))
def test_slices(partitions: list[list[int]]) -> None:
    """Partitions are never divided, slices follow each other without a hole, and none has more than it needs to."""
    slices = Slices()
    assert slices.number_of(task("", -1, 7)) == 0
    given_tasks = [[task("t", number, size) for size in sizes] for number, sizes in enumerate(partitions)]
    numbers = [[slices.number_of(each) for each in tasks] for tasks in given_tasks]
    firsts = [each[0] for each in numbers]

    assert all(len(set(each)) == 1 for each in numbers)
    assert firsts == sorted(firsts)
    assert sorted(set(firsts)) == list(range(1, slices.count))
    for slice_number in set(firsts):
        inside = [tasks for tasks, number in zip(given_tasks, firsts, strict=True) if number == slice_number]
        assert sum(each.size_bytes + 20 * MEBIBYTE for tasks in inside[:-1] for each in tasks) < 5 * 2**30
