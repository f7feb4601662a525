# SPDX-License-Identifier: Apache-2.0
"""What a process must answer, whom it may refuse a pre-vote, and how often it may ask."""

import contextlib
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.roles.roles import Follower, KnownLeader, Leader, Role, Unattached
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.testing.simulator.conduct.dialogue import HELD_MS, MOST_REPEATED, NEWS_MS, REPEATED_MS, Dialogue
from raftlog.testing.simulator.violation import ViolationError
from raftlog.voters.voter_set import Endpoints
from tests.quorum.messages import (
    fetch_request,
    fetch_response,
    fetch_snapshot_request,
    fetch_snapshot_response,
    vote_request,
    vote_response,
)
from tests.quorum.single_replica import replica_key
from tests.testing.simulator.checks.quorum_disks import QuorumDisks

ONE, TWO, END = replica_key(1), replica_key(2), OffsetAndEpoch(0, 0)
ANSWER_MS = 100
LEADER = KnownLeader(3, Endpoints.of({"CONTROLLER": ("localhost", 3)}))
FETCH, ANSWER = fetch_request(TWO, 1, END), fetch_response(1, 1)
BID = vote_request(TWO, 1, END, is_pre_vote=True)


def dialogue(end: int = 0) -> Dialogue:
    """Return the dialogue of replica 1 of three, whose log has some records of epoch 1."""
    disks = QuorumDisks(3)
    disks.append((1,), 1, count=end)
    return Dialogue(disks.ledgers[1], ANSWER_MS)


@pytest.mark.parametrize(("after_ms", "is_late"), [(ANSWER_MS, False), (ANSWER_MS + 1, True)])
def test_a_request_is_answered_in_time(after_ms: int, is_late: bool) -> None:
    """The oldest one counts; a pause does not."""
    said = dialogue()
    said.received("a", FETCH, 1000)
    said.received("b", FETCH, 1000 + after_ms // 2)
    said.answered("b", ANSWER)
    if is_late:
        with pytest.raises(ViolationError, match="requests-are-answered"):
            said.check_answered(1000 + after_ms)
    else:
        said.check_answered(1000 + after_ms)
    said.resumed(1000 + after_ms)
    said.check_answered(1000 + after_ms + ANSWER_MS)


def test_a_duplicate_is_answered_as_well() -> None:
    """A request that came twice has two answers, and no third."""
    said = dialogue()
    for _ in range(2):
        said.received("a", FETCH, 0)
    for _ in range(2):
        said.answered("a", ANSWER)
    with pytest.raises(ViolationError, match="answered-once"):
        said.answered("a", ANSWER)


@pytest.mark.parametrize(
    ("role", "end", "is_granted", "invariant"),
    [
        (Unattached(1), 0, True, None),
        (Unattached(1), 0, False, "pre-votes-are-given"),
        (Unattached(1), 1, False, None),
        (Leader(1, 1, (), ()), 0, False, None),
        (Leader(1, 1, (), ()), 0, True, "pre-votes-keep-leaders"),
        (Follower(1, LEADER, None, 100, has_fetched=True), 0, False, None),
        (Follower(1, LEADER, None, 100, has_fetched=True), 0, True, "pre-votes-keep-leaders"),
        (Follower(1, LEADER, None, 50, has_fetched=True), 0, True, None),
        (Follower(1, LEADER, None, 50, has_fetched=True), 0, False, "pre-votes-are-given"),
        (Follower(1, LEADER, None, 100), 0, True, None),
        (Follower(1, LEADER, None, 100), 0, False, "pre-votes-are-given"),
    ],
)
def test_pre_votes(role: Role, end: int, is_granted: bool, invariant: str | None) -> None:
    """One in touch with a leader gives none; another one refuses it for the better log only."""
    said = dialogue(end)
    said.received("a", BID, 0)
    said.taken("a", role, 50)
    answer = vote_response(is_granted=is_granted, epoch=1)
    if invariant is None:
        said.answered("a", answer)
    else:
        with pytest.raises(ViolationError, match=invariant):
            said.answered("a", answer)


def test_a_replica_that_lost_something_may_refuse() -> None:
    """It gives no pre-vote to itself, or with a vote lost."""
    disks = QuorumDisks(3)
    said = Dialogue(disks.ledgers[1], ANSWER_MS)
    refusal = vote_response(is_granted=False, epoch=1)
    said.received("a", vote_request(ONE, 1, END, is_pre_vote=True), 0)
    said.answered("a", refusal)
    disks.ledgers[1].is_vote_lost = True
    said.received("b", BID, 0)
    said.answered("b", refusal)


@pytest.mark.parametrize(
    ("numbers", "epoch", "is_right"),
    [((1,), 1, True), ((1, 1), 1, True), ((), 1, False), ((1,), 2, False), ((1,), 0, False)],
)
def test_pre_votes_come_first(numbers: tuple[int, ...], epoch: int, is_right: bool) -> None:
    """Of three voters one other must have given it, in the epoch before."""
    said = dialogue()
    for number in numbers:
        said.answer_came(
            number, vote_request(ONE, epoch, END, is_pre_vote=True), vote_response(is_granted=True, epoch=1)
        )
    said.answer_came(9, vote_request(ONE, 1, END, is_pre_vote=True), vote_response(is_granted=False, epoch=1))
    said.answer_came(8, vote_request(ONE, 0, END, is_pre_vote=True), vote_response(is_granted=True, epoch=0))
    said.sent(2, vote_request(ONE, 1, END, is_pre_vote=True), 0)
    if is_right:
        said.sent(2, vote_request(ONE, 2, END), 0)
    else:
        with pytest.raises(ViolationError, match="pre-votes-come-first"):
            said.sent(2, vote_request(ONE, 2, END), 0)


def test_a_candidate_goes_on_after_a_start() -> None:
    """It stands in an epoch that was stored before."""
    disks = QuorumDisks(3)
    disks.ledgers[1].state = QuorumStateData(1, leader_epoch=2, voted_id=1)
    said = Dialogue(disks.ledgers[1], ANSWER_MS)
    said.sent(2, vote_request(ONE, 2, END), 0)
    with pytest.raises(ViolationError, match="pre-votes-come-first"):
        said.sent(2, vote_request(ONE, 3, END), 0)


@given(st.lists(st.integers(0, 120), max_size=80))
def test_the_same_request_is_paced(pauses: list[int]) -> None:
    """No more often than it may be within a second from the first of each series: a naive model says the same.

    Those of one millisecond left together, and count once.
    """
    said, now_ms, series = dialogue(), 0, deque[int]()
    for pause in pauses:
        now_ms += pause
        if series and now_ms - series[0] >= REPEATED_MS:
            series.clear()
        series.append(now_ms)
        if len(set(series)) > MOST_REPEATED:
            with pytest.raises(ViolationError, match="requests-are-paced"):
                said.sent("peer", FETCH, now_ms)
            return
        said.sent("peer", FETCH, now_ms)


def test_other_requests_are_not_counted() -> None:
    """One that differs begins a series, and each receiver has its own."""
    said = dialogue()
    for number in range(3 * MOST_REPEATED):
        said.sent("peer", fetch_request(ONE, 1, OffsetAndEpoch(number, 1)), 0)
        said.sent(f"peer {number % 3}", FETCH, 0)


@pytest.mark.parametrize(
    ("cleaned", "is_listed", "after_ms", "is_right"),
    [
        ("after", True, HELD_MS - 1, False),
        ("after", True, HELD_MS, True),
        ("before", True, 1, True),
        ("after", False, 1, True),
    ],
)
def test_a_snapshot_stays_while_it_is_fetched(cleaned: str, is_listed: bool, after_ms: int, is_right: bool) -> None:
    """For some time after a part was served to a replica; not if it was being cleaned away already."""
    disks, snapshot = QuorumDisks(3), OffsetAndEpoch(3, 1)
    said, lost = Dialogue(disks.ledgers[1], ANSWER_MS), ErrorCode.SNAPSHOT_NOT_FOUND
    disks.ledgers[1].snapshots = (snapshot,) if is_listed else ()
    part, gone = fetch_snapshot_response(1, 1, snapshot), fetch_snapshot_response(1, 1, snapshot, error=lost)

    def serve(replica: int, at_ms: int, is_there: bool, of: OffsetAndEpoch = snapshot) -> None:
        said.received("a", fetch_snapshot_request(replica_key(replica), 1, of), at_ms)
        said.answered("a", part if is_there else gone)

    serve(2, 0, is_there=False)
    if cleaned == "before":
        said.cleaning_began()
    serve(2, 1000, is_there=True)
    if cleaned == "after":
        said.cleaning_began()
    serve(3, 1000, is_there=False)
    serve(2, 1000, is_there=False, of=OffsetAndEpoch(4, 1))
    with contextlib.nullcontext() if is_right else pytest.raises(ViolationError, match="snapshots-stay"):
        serve(2, 1000 + after_ms, is_there=False)


@pytest.mark.parametrize(("after_ms", "is_late"), [(NEWS_MS, False), (NEWS_MS + 1, True)])
def test_news_is_served_in_time(after_ms: int, is_late: bool) -> None:
    """From when it was seen to be durable; a pause does not count, and a Fetch from the end may wait."""
    disks = QuorumDisks(3)
    said = Dialogue(disks.ledgers[1], 10_000)
    disks.append((1,), 1)
    said.received("a", FETCH, 0)
    said.received("b", fetch_request(TWO, 1, OffsetAndEpoch(1, 1)), 0)
    said.check_news(1000)
    disks.sync(1)
    said.check_news(2000)
    with pytest.raises(ViolationError, match="news-is-served") if is_late else contextlib.nullcontext():
        said.check_news(2000 + after_ms)
    said.resumed(5000)
    said.check_news(5000)
    said.answered("a", ANSWER)
    said.check_news(9000)
