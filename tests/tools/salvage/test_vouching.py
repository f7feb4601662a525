# SPDX-License-Identifier: Apache-2.0
"""Which runs of a log can be vouched for, one at a time; test_longest_log.py has properties of whole logs."""

import pytest

from raftlog.offsets import EpochEntry
from raftlog.tools.salvage.runs import Run
from raftlog.tools.salvage.vouching import VouchedLog, vouch


@pytest.mark.parametrize(
    ("entries", "is_certain"),
    [
        ([], False),
        ([(3, 4)], False),  # The last epoch has no end: a later one may have begun before the batch.
        ([(3, 5), (4, 7)], True),
        ([(3, 4), (4, 7)], True),
        ([(3, 4), (9, 8)], True),
        ([(3, 4), (4, 6)], False),
        ([(3, 4), (4, 5)], False),
        ([(3, 6), (4, 7)], False),
        ([(2, 4), (4, 7)], False),
        ([(2, 0), (3, 5), (4, 7)], True),
    ],
)
def test_a_checkpoint_vouches_for_the_epoch_of_a_batch_between_two_of_its_entries(
    entries: list[tuple[int, int]], is_certain: bool
) -> None:
    """The batch has damage before it, and another epoch after it: its offsets are known, its epoch has one witness."""
    batch = Run("a", 0, 80, 5, 7, 3, is_linked_after=True)
    opening = Run("a", 80, 160, 7, 8, 4, opens_with_leader=True, is_linked_before=True)
    checkpoint = tuple(EpochEntry(*entry) for entry in entries)
    assert (batch in vouch([batch, opening], checkpoint).runs) == is_certain


def test_a_checkpoint_does_not_vouch_for_offsets() -> None:
    """A batch with damage on both sides may claim any offsets of the epoch that it claims."""
    batch = Run("a", 0, 80, 5, 7, 3)
    assert vouch([batch], (EpochEntry(3, 4), EpochEntry(4, 9))) == VouchedLog((), (batch,))


@pytest.mark.parametrize(("start_offset", "is_certain"), [(4, False), (5, True), (6, False)])
def test_an_epoch_begins_where_the_checkpoint_says(start_offset: int, is_certain: bool) -> None:
    """A LeaderChange is the first record of its epoch, even of the last one."""
    opening = Run("a", 0, 80, 5, 6, 3, opens_with_leader=True, is_linked_before=True)
    assert (opening in vouch([opening], (EpochEntry(3, start_offset),)).runs) == is_certain
