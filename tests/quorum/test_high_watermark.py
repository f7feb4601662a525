# SPDX-License-Identifier: Apache-2.0
"""The high watermark against counting heads, and against elections."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.high_watermark import advanced_high_watermark, majority_offset
from raftlog.quorum.voting import can_be_elected

offsets = st.integers(0, 8)


@given(st.lists(offsets, max_size=7), st.integers(1, 7))
def test_a_majority_reaches_the_offset_and_no_greater_one(ends: list[int], majority_size: int) -> None:
    """The majority's offset is the greatest that so many logs reach; with fewer logs there is none."""
    reached = [offset for offset in range(10) if sum(end >= offset for end in ends) >= majority_size]
    assert majority_offset(ends, majority_size) == max(reached, default=None)


@pytest.mark.parametrize("majority_size", [0, -1])
def test_no_majority_is_less_than_one_voter(majority_size: int) -> None:
    """A majority of no voters is refused: it would commit everything."""
    with pytest.raises(ValueError, match="majority"):
        majority_offset([5], majority_size)
    with pytest.raises(ValueError, match="majority"):
        advanced_high_watermark(0, [5], majority_size, 0)


@given(offsets, st.lists(offsets, max_size=5), st.integers(1, 5), offsets)
def test_the_high_watermark_never_falls(known: int, ends: list[int], majority_size: int, epoch_start: int) -> None:
    """It stays where it was, or moves on to what a majority has of the leader's own epoch."""
    advanced = advanced_high_watermark(known, ends, majority_size, epoch_start)
    assert advanced >= known
    if advanced > known:
        assert sum(end >= advanced for end in ends) >= majority_size
        assert advanced > epoch_start


@pytest.mark.parametrize(("reached", "advanced"), [(9, 3), (10, 3), (11, 11)])
def test_the_leaders_own_epoch_commits(reached: int, advanced: int) -> None:
    """At the start of the leader's epoch nothing is committed by copies alone; its first record commits all before."""
    assert advanced_high_watermark(3, [reached, reached, 0], 2, epoch_start_offset=10) == advanced


@pytest.mark.parametrize(("flushed", "advanced"), [([6, 5, 0], 5), ([6, 5, 4], 5), ([6], 1), ([], 1), ([0, 0, 9], 1)])
def test_a_majority_of_three(flushed: list[int], advanced: int) -> None:
    """Two of three count; what is not known of a voter does not."""
    assert advanced_high_watermark(1, flushed, 2, 0) == advanced


ends_of_logs = st.builds(OffsetAndEpoch, offsets, st.integers(1, 3))


@given(st.lists(ends_of_logs, min_size=1, max_size=7))
def test_an_electable_replica_has_what_a_majority_has(ends: list[OffsetAndEpoch]) -> None:
    """No voter that lacks a record which a majority has of the latest epoch gets a majority of votes."""
    majority = len(ends) // 2 + 1
    latest = max(end.epoch for end in ends)
    committed = majority_offset([end.offset for end in ends if end.epoch == latest], majority)
    if committed is not None:
        elected = [end for end in ends if can_be_elected(end, ends, majority)]
        assert all(end.epoch == latest and end.offset >= committed for end in elected)
