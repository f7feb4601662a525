# SPDX-License-Identifier: Apache-2.0
"""Which election state may follow which."""

import uuid
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import FencedEpochError, IllegalTransitionError, QuorumError
from raftlog.quorum.election_states import check_transition, contradict, is_undecided, keeps_promises, was_elected
from raftlog.records.files.quorum_state import UNKNOWN_ID, QuorumStateData

DIRECTORIES = (None, uuid.UUID(int=1), uuid.UUID(int=2))


def state(epoch: int, leader: int = UNKNOWN_ID, vote: int = UNKNOWN_ID, directory: int = 0) -> QuorumStateData:
    """Return an election state; a directory is an index into DIRECTORIES."""
    directory_id = DIRECTORIES[directory] if vote != UNKNOWN_ID else None
    return QuorumStateData(1, leader, epoch, vote, directory_id)


ids = st.sampled_from([UNKNOWN_ID, 1, 2])
states = st.builds(state, st.integers(0, 2), ids, ids, st.integers(0, 2))


@given(st.lists(states, max_size=12))
def test_a_replica_votes_once_and_knows_one_leader_in_an_epoch(given_states: list[QuorumStateData]) -> None:
    """Whatever states are tried, those that are entered name one leader and one vote per epoch, and never go back."""
    entered: list[QuorumStateData] = []
    for each in given_states:
        with suppress(QuorumError):
            check_transition(each, entered[-1] if entered else None, may_vote=True)
            entered.append(each)
    epochs = [each.leader_epoch for each in entered]
    assert epochs == sorted(epochs)
    for epoch in epochs:
        of_epoch = [each for each in entered if each.leader_epoch == epoch]
        assert len({each.leader_id for each in of_epoch} - {UNKNOWN_ID}) <= 1
        before_leader = [each for each in of_epoch if each.leader_id == UNKNOWN_ID]
        assert len({each.voted_id for each in before_leader} - {UNKNOWN_ID}) <= 1


@pytest.mark.parametrize(
    ("after", "before", "keeps"),
    [
        (state(3, vote=1, directory=1), state(3), True),
        (state(3, vote=1, directory=1), state(3, vote=1, directory=1), True),
        (state(3, vote=1, directory=2), state(3, vote=1, directory=1), False),
        (state(3, vote=1), state(3, vote=1, directory=1), True),
        (state(3, vote=1, directory=1), state(3, vote=1), True),
        (state(3, vote=2), state(3, vote=1), False),
        (state(3), state(3, vote=1), False),
        (state(3, leader=2), state(3, vote=1), True),
        (state(3, leader=2, vote=2), state(3, vote=1), False),
        (state(3, leader=2), state(3, leader=2, vote=1), True),
        (state(3, leader=1), state(3, leader=2), False),
        (state(3), state(3, leader=2), False),
        (state(3), state(3), True),
    ],
)
def test_a_leader_and_a_vote_are_kept(after: QuorumStateData, before: QuorumStateData, keeps: bool) -> None:
    """A known leader stays; a vote stays until a leader is known; a vote without a directory id is for any of them."""
    assert keeps_promises(after, before) == keeps


@pytest.mark.parametrize(
    ("after", "before", "error"),
    [
        (state(4), state(5), FencedEpochError),
        (state(5), state(5), None),
        (state(6), state(5, leader=1, vote=2), None),
        (state(-1), None, FencedEpochError),
        (state(0), None, None),
        (state(5, vote=2), state(5, vote=1), IllegalTransitionError),
    ],
)
def test_epochs_never_fall(
    after: QuorumStateData, before: QuorumStateData | None, error: type[Exception] | None
) -> None:
    """An epoch below the one before is refused, in the same one promises are kept, and a later one is free."""
    if error is None:
        check_transition(after, before, may_vote=True)
    else:
        with pytest.raises(error):
            check_transition(after, before, may_vote=True)


@pytest.mark.parametrize(
    ("after", "before", "is_allowed"),
    [
        (state(5, vote=1), state(5), False),
        (state(6, vote=1), state(5, vote=1), False),
        (state(5, vote=1), None, False),
        (state(5, vote=1), state(5, vote=1), True),
        (state(6, leader=1), state(5, vote=1), True),
    ],
)
def test_a_replica_that_may_have_forgotten_a_vote_gives_none(
    after: QuorumStateData, before: QuorumStateData | None, is_allowed: bool
) -> None:
    """It may repeat the vote that it remembers, and follow a leader."""
    check_transition(after, before, may_vote=True)
    if is_allowed:
        check_transition(after, before, may_vote=False)
    else:
        with pytest.raises(IllegalTransitionError):
            check_transition(after, before, may_vote=False)


@pytest.mark.parametrize(
    ("before", "elected"),
    [
        (None, False),
        (state(5), False),
        (state(5, vote=1), True),
        (state(5, leader=1), True),
        (state(5, vote=2), False),
        (state(4, vote=1), False),
        (state(6, vote=1), False),
    ],
)
def test_the_elected_leader(before: QuorumStateData | None, elected: bool) -> None:
    """A leader is known to be elected by its own vote, or as the leader, in that very epoch."""
    assert was_elected(state(5, leader=1), before) == elected


def test_undecided_cases() -> None:
    """Only a state with neither a leader nor a vote."""
    found = [is_undecided(each) for each in (state(1), state(1, leader=1), state(1, vote=1), state(1, 1, 2))]
    assert found == [True, False, False, False]


@given(states, states, st.sampled_from([1, 2, 3]))
def test_states_of_which_one_may_follow_the_other_do_not_contradict(
    one: QuorumStateData, other: QuorumStateData, node_id: int
) -> None:
    """In any order, and never of two epochs; but a replica that leads has voted for itself, and for nobody else."""
    is_wrong = contradict(one, other, node_id)
    assert is_wrong == contradict(other, one, node_id)
    if one.leader_epoch != other.leader_epoch:
        assert not is_wrong
        return
    may_follow = keeps_promises(one, other) or keeps_promises(other, one)
    votes = {each.voted_id for each in (one, other)} - {UNKNOWN_ID}
    leads = node_id in {one.leader_id, other.leader_id}
    if not leads:
        assert is_wrong != may_follow
    elif votes - {node_id} and len({one.leader_id, other.leader_id}) == 2:
        assert is_wrong
    elif may_follow:
        assert is_wrong == bool(votes - {node_id} and None in {one.voted_key, other.voted_key})
