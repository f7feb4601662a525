# SPDX-License-Identifier: Apache-2.0
"""Roles follow each other as the table says, and no promise is broken on the way."""

import itertools
import typing
from collections.abc import Callable

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import FencedEpochError, IllegalTransitionError
from raftlog.offsets import MAX_EPOCH
from raftlog.quorum.election_states import check_transition
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import (
    Candidate,
    Follower,
    KnownLeader,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
    election_state,
    leader_id,
    voted_key,
)
from raftlog.quorum.roles.transitions import (
    TRANSITIONS,
    ElectionLost,
    ElectionTimedOut,
    ElectionWon,
    EpochLearned,
    FetchTimedOut,
    LeaderLearned,
    LeadershipResigned,
    RoleEvent,
    Surroundings,
    VoteGiven,
    next_role,
)
from raftlog.quorum.roles.votes import Votes
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import Endpoints
from tests.quorum.roles.role_diagram import PAGE, with_diagram
from tests.quorum.single_replica import DictatedDraws, replica_key, voter_set_of

ROLES = typing.get_args(Role)
EVENTS = typing.get_args(RoleEvent)
LOCAL = replica_key(1)
CONFIG = QuorumConfig(election_timeout_ms=100, fetch_timeout_ms=200)
VOTERS = voter_set_of(map(replica_key, (1, 2, 3)))


def around(*, now_ms: int = 50, voter_ids: tuple[int, ...] = (1, 2, 3), draw: int = 7) -> Surroundings:
    """Return surroundings in which an election deadline is 107 ms away."""
    return Surroundings(LOCAL, voter_set_of(map(replica_key, voter_ids)), CONFIG, DictatedDraws(draw), now_ms)


def known(leader: int, listeners: int = 1) -> KnownLeader:
    """Return a leader with a number of endpoints."""
    return KnownLeader(leader, Endpoints.of({f"L{number}": ("host", number) for number in range(listeners)}))


VOTES = Votes.begin(VOTERS.voter_keys, LOCAL.id)
WON = VOTES.recorded(2, is_granted=True)
LOST = VOTES.recorded(2, is_granted=False).recorded(3, is_granted=False)
EXAMPLES: dict[type[Role], Role] = {
    Unattached: Unattached(5, election_deadline_ms=60),
    Prospective: Prospective(5, None, None, None, VOTES, 60),
    Candidate: Candidate(5, LOCAL, WON, 60),
    Leader: Leader(5, 1, (1, 2), (1, 2, 3)),
    Follower: Follower(5, known(2), None, 60),
    Resigned: Resigned(5, 1, (), (replica_key(2), replica_key(3)), 60),
}
MAKE_EVENT: dict[type[RoleEvent], Callable[[], RoleEvent]] = {
    EpochLearned: lambda: EpochLearned(6),
    LeaderLearned: lambda: LeaderLearned(6, known(2)),
    VoteGiven: lambda: VoteGiven(replica_key(2)),
    ElectionTimedOut: ElectionTimedOut,
    FetchTimedOut: FetchTimedOut,
    ElectionLost: ElectionLost,
    ElectionWon: ElectionWon,
    LeadershipResigned: lambda: LeadershipResigned((replica_key(3),)),
}


@pytest.mark.parametrize(("role", "event"), list(itertools.product(ROLES, EVENTS)))
def test_each_pair_of_role_and_event_is_in_the_table_or_refused(role: type[Role], event: type[RoleEvent]) -> None:
    """A pair in the table leads to a role that the table names; any other pair is an error that changes nothing."""
    if (role, event) in TRANSITIONS:
        after = next_role(EXAMPLES[role], MAKE_EVENT[event](), around())
        assert type(after) in TRANSITIONS[role, event][1]
    else:
        with pytest.raises(IllegalTransitionError, match="this cannot happen"):
            next_role(EXAMPLES[role], MAKE_EVENT[event](), around())


def test_each_target_of_the_table_is_reached() -> None:
    """The only entries with two targets give up a pre-vote: with and without a leader to return to."""
    asking = EXAMPLES[Prospective]
    assert isinstance(asking, Prospective)
    for event in (ElectionTimedOut(), ElectionLost()):
        assert TRANSITIONS[Prospective, type(event)][1] == (Unattached, Follower)
        assert isinstance(next_role(asking, event, around()), Unattached)
        returning = attrs.evolve(asking, leader_id=2, leader=known(2))
        assert isinstance(next_role(returning, event, around()), Follower)
    assert all(len(targets) == 1 for (role, _), (_, targets) in TRANSITIONS.items() if role is not Prospective)


def test_the_picture_in_the_docs_is_drawn_from_the_table() -> None:
    """Run ``python -m tests.quorum.roles.role_diagram`` after a change of the table."""
    page = PAGE.read_text("utf-8")
    assert "stateDiagram-v2" in page
    assert with_diagram(page) == page


# Properties over sequences of events

EVENT = st.one_of(
    st.builds(EpochLearned, st.integers(0, 9), st.none() | st.sampled_from((2, 3))),
    st.builds(LeaderLearned, st.integers(0, 9), st.builds(known, st.sampled_from((1, 2, 3)), st.integers(1, 2))),
    st.builds(VoteGiven, st.builds(replica_key, st.sampled_from((1, 2, 3)))),
    st.builds(ElectionTimedOut),
    st.builds(FetchTimedOut),
    st.builds(ElectionLost),
    st.builds(ElectionWon),
    st.just(LeadershipResigned((replica_key(2),))),
)


@given(
    st.lists(st.tuples(EVENT, st.sampled_from(((1,), (1, 2, 3), (2, 3)))), max_size=30),
    st.sampled_from(KRaftVersion),
)
def test_every_sequence_of_events_keeps_all_promises(
    steps: list[tuple[RoleEvent, tuple[int, ...]]], version: KRaftVersion
) -> None:
    """Epochs never fall; in an epoch, a leader is never replaced and a vote never changed; observers never stand."""
    role: Role = Unattached(0)
    for now_ms, (event, voter_ids) in enumerate(steps):
        before = role
        try:
            role = next_role(role, event, around(now_ms=now_ms, voter_ids=voter_ids))
        except IllegalTransitionError:
            continue
        assert role.epoch >= before.epoch
        try:
            check_transition(
                election_state(role, version, voter_ids), election_state(before, version, voter_ids), may_vote=True
            )
        except (FencedEpochError, IllegalTransitionError) as error:
            raise AssertionError(f"{event}: {before} to {role}") from error
        if isinstance(role, Prospective | Candidate | Leader) and type(role) is not type(before):
            assert 1 in voter_ids
        if isinstance(role, Candidate):
            assert (role.epoch, voted_key(role)) == (before.epoch + 1, LOCAL)
        if isinstance(role, Leader):
            assert isinstance(before, Candidate)
            assert before.votes.is_won
        if isinstance(role, Follower):
            assert leader_id(role) != LOCAL.id


# Deadlines, one by one: Source: QuorumState


@pytest.mark.parametrize("role", [Unattached, Prospective, Candidate, Resigned])
def test_a_higher_epoch_does_not_put_off_an_election(role: type[Role]) -> None:
    """A replica that waits for an election waits as long as before; otherwise candidates could keep it waiting."""
    after = next_role(EXAMPLES[role], EpochLearned(6), around())
    assert after == Unattached(6, election_deadline_ms=60)


@pytest.mark.parametrize("role", [Leader, Follower])
def test_a_higher_epoch_ends_leading_and_following(role: type[Role]) -> None:
    """The replica did not wait for an election, so it gets a whole timeout; the leader's id is kept if it is known."""
    after = next_role(EXAMPLES[role], EpochLearned(6, 3), around())
    assert after == Unattached(6, leader_id=3, election_deadline_ms=157)


def test_a_lost_pre_vote_waits_for_a_whole_timeout() -> None:
    """Kafka draws a new timeout if the pre-vote was lost, and keeps the old one if it only took too long."""
    asking = EXAMPLES[Prospective]
    assert isinstance(asking, Prospective)
    lost = attrs.evolve(asking, votes=LOST)
    assert next_role(lost, ElectionLost(), around()) == Unattached(5, election_deadline_ms=157)
    assert next_role(lost, EpochLearned(6), around()) == Unattached(6, election_deadline_ms=157)
    assert next_role(asking, ElectionTimedOut(), around(now_ms=60)) == Unattached(5, election_deadline_ms=60)


@pytest.mark.parametrize("role", [Unattached, Prospective, Resigned])
def test_an_observer_waits_for_no_election(role: type[Role]) -> None:
    """Its deadline is None in the next epoch."""
    after = next_role(EXAMPLES[role], EpochLearned(6), around(voter_ids=(2, 3)))
    assert after == Unattached(6, election_deadline_ms=None)


def test_a_vote_gives_the_candidate_a_whole_timeout() -> None:
    """The replica that has voted waits for the winner to announce itself."""
    after = next_role(EXAMPLES[Unattached], VoteGiven(replica_key(3)), around())
    assert after == Unattached(5, voted_key=replica_key(3), election_deadline_ms=157)


def test_a_vote_starts_the_pre_vote_anew() -> None:
    """As in Kafka, answers from before the vote are forgotten."""
    asking = EXAMPLES[Prospective]
    assert isinstance(asking, Prospective)
    after = next_role(attrs.evolve(asking, votes=WON), VoteGiven(replica_key(3)), around())
    assert after == Prospective(5, None, None, replica_key(3), VOTES, 157)


@pytest.mark.parametrize(
    ("role", "event"),
    [
        (Unattached(5), EpochLearned(5)),
        (Unattached(5), LeaderLearned(4, known(2))),
        (Unattached(5), LeaderLearned(6, known(1))),
        (Unattached(5, leader_id=3), LeaderLearned(5, known(2))),
        (Unattached(5, leader_id=3), VoteGiven(replica_key(2))),
        (Unattached(5, voted_key=replica_key(3)), VoteGiven(replica_key(2))),
        (Unattached(5), VoteGiven(replica_key(1, 9))),
        (Unattached(MAX_EPOCH), ElectionTimedOut()),
        (attrs.evolve(EXAMPLES[Prospective], epoch=MAX_EPOCH), ElectionWon()),
        (attrs.evolve(EXAMPLES[Resigned], epoch=MAX_EPOCH), ElectionTimedOut()),
        (Candidate(5, LOCAL, VOTES, 60), ElectionWon()),
        (EXAMPLES[Leader], LeaderLearned(5, known(2))),
        (EXAMPLES[Resigned], LeaderLearned(5, known(2))),
        (EXAMPLES[Follower], LeaderLearned(5, known(2))),
        (EXAMPLES[Follower], LeaderLearned(5, known(3, 2))),
    ],
)
def test_an_event_that_contradicts_the_role_is_refused(role: Role, event: RoleEvent) -> None:
    """Epochs that do not rise, a second leader, a second vote, a vote for oneself, an epoch after the highest."""
    with pytest.raises(IllegalTransitionError):
        next_role(role, event, around())


def test_there_is_an_epoch_before_the_highest() -> None:
    """The last election is for the highest epoch."""
    asking = attrs.evolve(EXAMPLES[Prospective], epoch=MAX_EPOCH - 1)
    assert next_role(asking, ElectionWon(), around()).epoch == MAX_EPOCH


def test_more_endpoints_of_the_leader_are_taken_over() -> None:
    """The vote of the epoch is kept, and the follower starts to fetch anew."""
    follower = Follower(5, known(2), replica_key(2), 60, has_fetched=True)
    after = next_role(follower, LeaderLearned(5, known(2, 2)), around())
    assert after == Follower(5, known(2, 2), replica_key(2), fetch_deadline_ms=250, update_deadline_ms=250)
