# SPDX-License-Identifier: Apache-2.0
"""The electable replicas, voter by voter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.voting import can_be_elected, is_up_to_date

ends = st.builds(OffsetAndEpoch, st.integers(0, 5), st.integers(0, 3))


@pytest.mark.parametrize(
    ("candidate", "voter", "grants"),
    [
        ((5, 2), (5, 2), True),
        ((4, 2), (5, 2), False),
        ((6, 2), (5, 2), True),
        ((0, 3), (99, 2), True),
        ((99, 1), (0, 2), False),
    ],
)
def test_the_epoch_of_the_last_record_decides(candidate: tuple[int, int], voter: tuple[int, int], grants: bool) -> None:
    """A longer log of an earlier epoch is less up to date; within an epoch the log end decides, and a tie grants."""
    assert is_up_to_date(OffsetAndEpoch(*candidate), OffsetAndEpoch(*voter)) == grants


@given(st.lists(ends, min_size=1, max_size=7))
def test_the_most_up_to_date_log_can_be_elected(voter_ends: list[OffsetAndEpoch]) -> None:
    """If all voters are present, the one with the most up-to-date log can be elected."""
    assert can_be_elected(max(voter_ends), voter_ends, len(voter_ends) // 2 + 1)


@given(ends, st.lists(ends, max_size=5), st.integers(1, 5), st.integers(0, 3))
def test_votes_are_counted(
    candidate: OffsetAndEpoch, voter_ends: list[OffsetAndEpoch], majority_size: int, ungiven: int
) -> None:
    """A candidate needs a majority of votes: of voters that are not more up to date, and of those assumed."""
    granted = len([end for end in voter_ends if (end.epoch, end.offset) <= (candidate.epoch, candidate.offset)])
    assert can_be_elected(candidate, voter_ends, majority_size, ungiven) == (granted + ungiven >= majority_size)
