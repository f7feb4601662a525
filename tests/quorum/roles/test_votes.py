# SPDX-License-Identifier: Apache-2.0
"""Votes are counted once per voter, and an election ends as soon as its result is certain."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.quorum.roles.votes import Votes
from tests.quorum.single_replica import replica_key

VOTER_IDS = st.lists(st.integers(0, 9), min_size=1, max_size=7, unique=True)
ANSWERS = st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=20)


@given(VOTER_IDS, st.integers(0, 9), ANSWERS)
def test_votes_are_those_of_a_ballot_box(voter_ids: list[int], candidate: int, answers: list[tuple[int, bool]]) -> None:
    """The model keeps one answer per voter: the first one. Other replicas, and opposite answers, are not recorded."""
    votes = Votes.begin(map(replica_key, voter_ids), candidate)
    box = {candidate: True} if candidate in voter_ids else {}
    for voter_id, is_granted in answers:
        may_record = voter_id in voter_ids and box.get(voter_id, is_granted) == is_granted
        assert votes.may_record(voter_id, is_granted=is_granted) == may_record
        if may_record:
            box[voter_id] = is_granted
            votes = votes.recorded(voter_id, is_granted=is_granted)
        else:
            with pytest.raises(ValueError, match=f"voter {voter_id}"):
                votes.recorded(voter_id, is_granted=is_granted)
        granted = sum(box.values())
        assert votes.is_won == (2 * granted > len(voter_ids))
        assert votes.is_lost == (2 * (granted + len(voter_ids) - len(box)) <= len(voter_ids))
        assert [each.id for each in votes.unrecorded] == sorted(set(voter_ids) - box.keys())


@pytest.mark.parametrize(("count", "majority"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 4), (7, 4)])
def test_a_majority_is_more_than_half(count: int, majority: int) -> None:
    """One vote less than a majority does not win, and a majority wins."""
    votes = Votes.begin(map(replica_key, range(1, count + 1)), candidate_id=0)
    assert votes.majority_size == majority
    for voter_id in range(1, majority):
        votes = votes.recorded(voter_id, is_granted=True)
        assert not votes.is_won
    assert votes.recorded(majority, is_granted=True).is_won


def test_a_candidate_that_is_no_voter_has_no_vote() -> None:
    """Its own vote would not be one of a majority of voters."""
    assert not Votes.begin([replica_key(2)], candidate_id=1).granted
