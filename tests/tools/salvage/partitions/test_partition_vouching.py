# SPDX-License-Identifier: Apache-2.0
"""Which runs of a partition's log can be vouched for, by neighbours, by the checkpoint, and by other nodes."""

import attrs
import pytest

from raftlog.offsets import EpochEntry
from raftlog.tools.salvage.partitions.partition_runs import TopicRun
from raftlog.tools.salvage.partitions.partition_vouching import (
    VouchedPartition,
    vouch_partition,
    with_copies_elsewhere,
)

FILE = f"{0:020}.log"


def run(start: int, end: int, epoch: int = 0, *, count: int = 1, before: bool = True, after: bool = True) -> TopicRun:
    """A run of a log."""
    position = start * 100
    linked = {"is_linked_before": before, "is_linked_after": after}
    return TopicRun(FILE, position, end * 100, start, end, epoch, count, covers_from=start, crc=start, **linked)


def vouched(runs: list[TopicRun], *checkpoint: tuple[int, int]) -> VouchedPartition:
    """What can be vouched for."""
    return vouch_partition(runs, tuple(EpochEntry(*each) for each in checkpoint))


def test_an_epoch_needs_a_neighbour_or_the_checkpoint() -> None:
    """Two batches of one epoch vouch for each other; one alone needs an entry that it is in."""
    pair, one = run(0, 2, count=2), run(2, 3, 1)
    assert vouched([pair, one]).runs == (pair,)
    assert vouched([pair, one], (0, 0)).runs == (pair,)
    assert vouched([pair, one], (0, 0), (1, 2)).runs == (pair, one)
    assert vouched([pair, one], (0, 0), (1, 1)).runs == (pair,)


@pytest.mark.parametrize(
    ("before", "after", "is_vouched"), [(False, False, False), (True, False, True), (False, True, True)]
)
def test_a_place_needs_a_neighbour(before: bool, after: bool, is_vouched: bool) -> None:
    """Directly before or after it; without, the checkpoint does not help."""
    assert bool(vouched([run(3, 4, before=before, after=after)], (0, 0)).runs) == is_vouched


def test_a_false_checkpoint_vouches_for_nothing() -> None:
    """One batch whose epoch needs no witness shows that it is false, wherever that is."""
    one, pair = run(0, 1, 1), run(1, 3, 2, count=2)
    found = vouched([one, pair], (1, 0), (3, 1))
    assert (found.runs, found.doubted, found.checkpoint, found.has_false_checkpoint) == ((pair,), (one,), (), True)
    found = vouched([one, pair], (1, 0), (2, 1))
    assert (found.runs, found.has_false_checkpoint) == ((one, pair), False)


def test_of_two_runs_that_contradict_each_other_the_one_with_more_batches_counts() -> None:
    """An offset or an epoch that goes back; of equal ones neither does."""
    long, short, other = run(0, 5, 3, count=5), run(5, 7, 1, count=2), run(2, 4, 3, count=2)
    assert vouched([long, short]).runs == (long,)
    assert vouched([short, attrs.evolve(long, start_offset=6, end_offset=11)]).runs[0].batch_count == 5
    assert vouched([other, attrs.evolve(other, start_offset=3, end_offset=5)]).runs == ()


@pytest.mark.parametrize(
    ("nodes", "are_equal", "expected"),
    [
        ((1, 2), True, 1),
        ((1, 1), True, 0),
        ((1, None), True, 0),
        ((None, None), True, 0),
        ((1, 2), False, 0),
    ],
)
def test_the_same_bytes_on_another_node_vouch_for_a_batch(
    nodes: tuple[int | None, int | None], are_equal: bool, expected: int
) -> None:
    """Not on the same node, not on one that is not known, and not if the bytes differ."""
    alone = VouchedPartition((), (run(7, 8, 4, before=False, after=False),))
    found = with_copies_elsewhere([alone, alone], nodes, lambda *_: are_equal)
    assert [len(log.runs) for log in found] == [expected] * 2
    assert [len(log.doubted) for log in found] == [1 - expected] * 2


def test_a_copy_is_added_only_where_it_fits() -> None:
    """Between runs with other offsets, and epochs that do not go back."""
    alone = run(7, 8, 4, before=False, after=False)
    for beside, fits in ((run(0, 7, 4, count=2), True), (run(0, 8, 4, count=2), False), (run(0, 7, 5, count=2), False)):
        log = VouchedPartition((beside,), (alone,))
        found = with_copies_elsewhere([log, VouchedPartition((), (alone,))], (1, 2), lambda _, __: True)
        assert (alone in found[0].runs) == fits
