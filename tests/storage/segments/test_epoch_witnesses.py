# SPDX-License-Identifier: Apache-2.0
"""An epoch is doubted where all who know of it, two at least, say another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.log.epochs import LeaderEpochs
from raftlog.offsets import EpochEntry
from raftlog.storage.segments.epoch_witnesses import EpochWitnesses


def _cache(epochs: set[int], starts: set[int]) -> LeaderEpochs:
    return LeaderEpochs(EpochEntry(*each) for each in zip(sorted(epochs), sorted(starts), strict=False))


few = st.sets(st.integers(0, 6), max_size=4)
caches = st.builds(_cache, few, few)


@given(st.lists(caches, max_size=3), st.integers(0, 9), st.integers(0, 6))
def test_the_first_batch_of_an_epoch_is_judged_by_all(
    witnesses: list[LeaderEpochs], base_offset: int, epoch: int
) -> None:
    """Where the epoch changes, each witness is asked: one that agrees is enough, and so is one alone that does not."""
    allowed = [
        range(each.entries[0].epoch + 1) if known is None else (known,)
        for each in witnesses
        if each.entries
        for known in [each.epoch_for_offset(base_offset)]
    ]
    contradicts = EpochWitnesses(witnesses).contradict(base_offset, epoch, epoch - 1)
    assert contradicts == (len(allowed) >= 2 and all(epoch not in each for each in allowed))


@pytest.mark.parametrize(("epoch", "is_doubted"), [(5, False), (6, False), (7, True), (2054, True)])
def test_no_epoch_below_the_log_start_is_later_than_the_first_one_that_is_known(epoch: int, is_doubted: bool) -> None:
    """A log that starts in the middle of a segment has older batches before its start, whose epochs are not stored."""
    known = LeaderEpochs([EpochEntry(6, 304)])
    assert EpochWitnesses([known, known]).contradict(250, epoch, 5) == is_doubted
    assert not EpochWitnesses([known]).contradict(250, epoch, 5)


@given(st.lists(caches, max_size=3), st.lists(st.integers(0, 6), max_size=9).map(sorted))
def test_continuous_batches_are_judged_as_if_requested_singly(witnesses: list[LeaderEpochs], epochs: list[int]) -> None:
    """Batches that continue an epoch are judged where a witness has a new one: the first doubtful one is found."""
    judge = EpochWitnesses(witnesses)
    previous = [-1, *epochs]
    asked = [judge.contradict(offset, epoch, -1) for offset, epoch in enumerate(epochs)]
    found = [judge.contradict(offset, epoch, previous[offset]) for offset, epoch in enumerate(epochs)]
    assert found.index(True) == asked.index(True) if True in asked else True not in found


def test_no_witness() -> None:
    """Without witnesses no epoch is doubted."""
    assert not EpochWitnesses().contradict(0, 1, 0)
