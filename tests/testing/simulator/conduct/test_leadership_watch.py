# SPDX-License-Identifier: Apache-2.0
"""How long a leader leads, and which voters it may name."""

import contextlib

import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Leader, Resigned, Unattached
from raftlog.testing.simulator.checks.ledger import NamedVoters
from raftlog.testing.simulator.conduct.leadership_watch import WRITING_MS, LeadershipWatch
from raftlog.testing.simulator.violation import ViolationError
from raftlog.voters.voter_set import ReplicaKey
from tests.quorum.messages import fetch_request, fetch_response, fetch_snapshot_request, fetch_snapshot_response
from tests.quorum.single_replica import replica_key
from tests.testing.simulator.checks.quorum_disks import QuorumDisks

CONFIG = QuorumConfig(fetch_timeout_ms=200, new_voter_max_lag_ms=400, new_voter_stabilization_ms=1000)
TIMEOUT_MS = CONFIG.check_quorum_timeout_ms
LEADING, RESIGNED = Leader(1, 1, (), ()), Resigned(1, 1, (), (), 0)
END = OffsetAndEpoch(0, 0)
SERVED, REFUSED = fetch_response(1, 1), fetch_response(1, 1, error=6)
DIVERGING = fetch_response(1, 1, diverging=END)


def leading(voters: int = 3) -> tuple[QuorumDisks, LeadershipWatch]:
    """Return the disks of some voters, and the watch of the first, which leads epoch 1 from 0 ms on."""
    disks = QuorumDisks(voters)
    watch = LeadershipWatch(disks.ledgers[1], CONFIG, WRITING_MS)
    watch.settled(LEADING, 0, has_failed=False)
    return disks, watch


def fetch(watch: LeadershipWatch, key: ReplicaKey, at_ms: int, answer: object = SERVED) -> None:
    """Let a replica fetch, and be answered."""
    watch.received((key, at_ms), fetch_request(key, 1, END), at_ms)
    watch.answered((key, at_ms), answer, at_ms)


@pytest.mark.parametrize(("voters", "others"), [(3, 1), (4, 2), (5, 2)])
def test_a_leader_needs_a_majority(voters: int, others: int) -> None:
    """With one voter less than it needs, it does not lead on for more than twice the timeout."""
    for heard in (others - 1, others):
        _, watch = leading(voters)
        for each in range(heard):
            fetch(watch, replica_key(2 + each), 3 * TIMEOUT_MS, REFUSED)
        watch.ticked(LEADING, 2 * TIMEOUT_MS)
        if heard == others:
            watch.ticked(LEADING, 4 * TIMEOUT_MS)
        else:
            with pytest.raises(ViolationError, match="leaders-are-in-touch"):
                watch.ticked(LEADING, 4 * TIMEOUT_MS)


def test_the_only_voter_leads_on() -> None:
    """It needs nobody, and a second voter has all of the time from then on."""
    disks, watch = leading(1)
    watch.settled(LEADING, 5000, has_failed=False)
    watch.ticked(LEADING, 5000)
    with pytest.raises(ViolationError, match="leaders-stay"):
        watch.settled(RESIGNED, 5000 + TIMEOUT_MS - 1, has_failed=False)
    assert len(disks.ledgers) == 1


@pytest.mark.parametrize(
    ("at_ms", "answer", "is_wrong"),
    [
        (1000, SERVED, True),
        (1000 - TIMEOUT_MS + 1, SERVED, True),
        (1000 - TIMEOUT_MS, SERVED, False),
        (1000, REFUSED, False),
        (1000, DIVERGING, False),
    ],
)
def test_a_leader_in_touch_stays(at_ms: int, answer: object, is_wrong: bool) -> None:
    """A Fetch that was valid, within the timeout, keeps it; others may not."""
    _, watch = leading()
    fetch(watch, replica_key(2), at_ms, answer)
    if is_wrong:
        with pytest.raises(ViolationError, match="leaders-stay"):
            watch.settled(RESIGNED, 1000, has_failed=False)
    else:
        watch.settled(RESIGNED, 1000, has_failed=False)


def test_parts_of_a_snapshot_keep_a_leader() -> None:
    """They are as good as a Fetch, unless they are refused."""
    key, snapshot_id = replica_key(2), OffsetAndEpoch(5, 1)
    for error in (0, 98):
        _, watch = leading()
        watch.received("a", fetch_snapshot_request(key, 1, snapshot_id), 900)
        watch.answered("a", fetch_snapshot_response(1, 1, snapshot_id, error=error), 900)
        if error:
            watch.settled(RESIGNED, 1000, has_failed=False)
        else:
            with pytest.raises(ViolationError, match="leaders-stay"):
                watch.settled(RESIGNED, 1000, has_failed=False)


@pytest.mark.parametrize("reason", ["disk", "removed", "other epoch", "new"])
def test_reasons_to_resign(reason: str) -> None:
    """A disk that has failed, and a removal; but a leader does not resign as soon as it leads."""
    disks, watch = leading()
    fetch(watch, replica_key(2), 90)
    if reason == "removed":
        disks.ledgers[1].voter_sets.append(NamedVoters(3, frozenset(map(replica_key, (2, 3)))))
    if reason == "new":
        with pytest.raises(ViolationError, match="leaders-stay"):
            watch.settled(RESIGNED, 100, has_failed=False)
    elif reason == "other epoch":
        watch.settled(Unattached(2), 100, has_failed=False)
    else:
        watch.settled(RESIGNED, 100, has_failed=reason == "disk")


@pytest.mark.parametrize(
    ("fetches_ms", "now_ms", "is_right"),
    [
        (range(0, 1100, 100), 1000, True),
        (range(0, 1100, 100), 999, False),
        ([0, 900, 1000], 1000, False),
        ([*range(0, 1100, 100)], 4000, False),
        ([], 1000, False),
    ],
)
def test_a_new_voter_has_kept_up(fetches_ms: list[int], now_ms: int, is_right: bool) -> None:
    """For long enough, without a gap, up to now."""
    disks, watch = leading()
    for at_ms in fetches_ms:
        fetch(watch, replica_key(4), at_ms)
    for each in (2, 3):
        fetch(watch, replica_key(each), now_ms)
    disks.ledgers[1].voter_sets.append(NamedVoters(3, frozenset(map(replica_key, range(1, 5)))))
    if is_right:
        watch.settled(LEADING, now_ms, has_failed=False)
    else:
        with pytest.raises(ViolationError, match="new-voters-keep-up"):
            watch.settled(LEADING, now_ms, has_failed=False)


@pytest.mark.parametrize(
    ("answered_ms", "answer", "is_right"), [(500, SERVED, True), (100, SERVED, False), (500, REFUSED, False)]
)
def test_a_fetch_that_waits_is_no_gap(answered_ms: int, answer: object, is_right: bool) -> None:
    """The leader looks at it again as it answers it: the replica has been in touch until then."""
    disks, watch = leading()
    fetch(watch, replica_key(4), 0)
    watch.received("waits", fetch_request(replica_key(4), 1, END), 10)
    watch.answered("waits", answer, answered_ms)
    for at_ms in (700, 1000):
        fetch(watch, replica_key(4), at_ms)
    for each in (2, 3):
        fetch(watch, replica_key(each), 1000)
    disks.ledgers[1].voter_sets.append(NamedVoters(3, frozenset(map(replica_key, range(1, 5)))))
    if is_right:
        watch.settled(LEADING, 1000, has_failed=False)
    else:
        with pytest.raises(ViolationError, match="new-voters-keep-up"):
            watch.settled(LEADING, 1000, has_failed=False)


@pytest.mark.parametrize(
    ("answered_ms", "answer", "is_right"),
    [(1001, SERVED, True), (1000, SERVED, False), (1001, REFUSED, False), (1001, DIVERGING, False)],
)
def test_a_fetch_that_waits_keeps_a_leader_until_it_is_answered(
    answered_ms: int, answer: object, is_right: bool
) -> None:
    """A leader counts it again as it answers it, if it is valid, and leads on for twice its timeout from then on."""
    _, watch = leading()
    watch.received("waits", fetch_request(replica_key(2), 1, END), 900)
    watch.answered("waits", answer, answered_ms)
    now_ms = 1000 + 2 * TIMEOUT_MS + 100
    with contextlib.nullcontext() if is_right else pytest.raises(ViolationError, match="leaders-are-in-touch"):
        watch.ticked(LEADING, now_ms)


@pytest.mark.parametrize("past_ms", [TIMEOUT_MS + WRITING_MS - 1, TIMEOUT_MS + WRITING_MS])
def test_a_fetch_that_waits_is_of_a_voter_in_touch(past_ms: int) -> None:
    """A leader that names voters counts it again, too."""
    disks, watch = leading()
    watch.received("waits", fetch_request(replica_key(3), 1, END), 10)
    watch.answered("waits", SERVED, 400)
    disks.ledgers[1].voter_sets.append(NamedVoters(3, frozenset(map(replica_key, (1, 3)))))
    is_right = past_ms < TIMEOUT_MS + WRITING_MS
    with contextlib.nullcontext() if is_right else pytest.raises(ViolationError, match="new-voters-are-in-touch"):
        watch.settled(LEADING, 400 + past_ms, has_failed=False)


@pytest.mark.parametrize("in_touch", [(2,), (3,), (2, 3)])
def test_a_majority_of_the_voters_that_remain_is_in_touch(in_touch: tuple[int, ...]) -> None:
    """The one that is removed does not count."""
    disks, watch = leading()
    for each in in_touch:
        fetch(watch, replica_key(each), 5000)
    disks.ledgers[1].voter_sets.append(NamedVoters(3, frozenset(map(replica_key, (1, 3)))))
    if 3 in in_touch:
        watch.settled(LEADING, 5000, has_failed=False)
    else:
        with pytest.raises(ViolationError, match="new-voters-are-in-touch"):
            watch.settled(LEADING, 5000, has_failed=False)
