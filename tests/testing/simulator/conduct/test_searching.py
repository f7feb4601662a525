# SPDX-License-Identifier: Apache-2.0
"""Who is asked while a leader is silent, and when an election is late."""

import contextlib

import attrs
import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Follower, KnownLeader, Resigned, Role, Unattached
from raftlog.testing.simulator.checks.ledger import Ledger
from raftlog.testing.simulator.conduct.searching import MOST_SILENT, SearchCheck
from raftlog.testing.simulator.violation import ViolationError
from raftlog.voters.voter_set import Endpoints
from tests.quorum.messages import fetch_request, fetch_snapshot_request, vote_request
from tests.quorum.single_replica import replica_key
from tests.testing.simulator.checks.quorum_disks import QuorumDisks

ONE, END = replica_key(1), OffsetAndEpoch(0, 0)
FETCH = fetch_request(ONE, 1, END)
LONGEST_MS = 650
UNATTACHED = Unattached(2, election_deadline_ms=0)


def begun(*, knows_others: bool = True) -> tuple[Ledger, SearchCheck]:
    """Return the ledger of replica 1 of three, and the check of its process."""
    ledger = QuorumDisks(3).ledgers[1]
    return ledger, SearchCheck(ledger, QuorumConfig(election_timeout_ms=300), knows_others)


def test_a_silent_leader_is_asked_so_often_in_a_row() -> None:
    """By a Fetch or a FetchSnapshot; other requests do not count."""
    _, found = begun()
    for number in range(MOST_SILENT):
        found.sent("leader", fetch_snapshot_request(ONE, 1, END) if number % 2 else FETCH)
        found.sent("leader", vote_request(ONE, 1, END))
    with pytest.raises(ViolationError, match="silent-leaders-are-left"):
        found.sent("leader", FETCH)


@pytest.mark.parametrize("way", ["answer", "other", "alone"])
def test_an_answer_and_another_replica_begin_anew(way: str) -> None:
    """Who knows nobody else may ask for ever."""
    _, found = begun(knows_others=way != "alone")
    for _ in range(3 * MOST_SILENT):
        found.sent("leader", FETCH)
        if way == "answer":
            found.answered()
        if way == "other":
            found.sent("other", FETCH)


def outcome(is_right: bool) -> contextlib.AbstractContextManager[object]:
    """Return what takes a violation, if there must be one."""
    return contextlib.nullcontext() if is_right else pytest.raises(ViolationError, match="elections-begin")


@pytest.mark.parametrize("role", [UNATTACHED, Resigned(2, 1, (), (), election_deadline_ms=0)])
@pytest.mark.parametrize(("past_ms", "is_right"), [(LONGEST_MS, True), (LONGEST_MS + 1, False)])
def test_an_election_begins_in_time(role: Role, past_ms: int, is_right: bool) -> None:
    """Within the longest timeout, whatever epochs come meanwhile."""
    _, found = begun()
    found.settled(role, 1000, is_idle=True)
    found.settled(Unattached(7, election_deadline_ms=0), 1000 + past_ms // 2, is_idle=True)
    with outcome(is_right):
        found.settled(Unattached(8, election_deadline_ms=0), 1000 + past_ms, is_idle=True)


@pytest.mark.parametrize(
    ("after", "told_ms", "is_right"),
    [
        *((Unattached(3, election_deadline_ms=500), 100, True), (Unattached(3, election_deadline_ms=501), 100, False)),
        *((Unattached(3, election_deadline_ms=499), 100, False), (Unattached(3, election_deadline_ms=900), 499, False)),
        *((Unattached(3, election_deadline_ms=900), 500, True), (Unattached(2, election_deadline_ms=900), 100, True)),
        (Unattached(3, voted_key=replica_key(2), election_deadline_ms=900), 100, True),
        (Unattached(3, election_deadline_ms=None), 100, True),
    ],
)
def test_a_higher_epoch_does_not_move_an_election(after: Role, told_ms: int, is_right: bool) -> None:
    """Until it is due; a vote does, and who is no voter any more has none."""
    _, found = begun()
    found.settled(Unattached(2, election_deadline_ms=500), 0, is_idle=True)
    with outcome(is_right):
        found.settled(after, told_ms, is_idle=True)


def test_a_vote_and_a_leader_put_it_off() -> None:
    """A vote once; the same vote again does not."""
    _, found = begun()
    voted = Unattached(2, voted_key=replica_key(2), election_deadline_ms=0)
    found.settled(UNATTACHED, 0, is_idle=True)
    found.settled(voted, 600, is_idle=True)
    found.settled(voted, 600 + LONGEST_MS, is_idle=True)
    with outcome(is_right=False):
        found.settled(voted, 601 + LONGEST_MS, is_idle=True)
    found.settled(attrs.evolve(voted, epoch=3), 1300, is_idle=True)
    found.settled(attrs.evolve(voted, epoch=3), 1300 + LONGEST_MS, is_idle=True)
    leader = KnownLeader(2, Endpoints.of({"CONTROLLER": ("localhost", 2)}))
    found.settled(Follower(4, leader, None, 0), 2000, is_idle=True)
    found.settled(UNATTACHED, 2000, is_idle=True)
    found.settled(UNATTACHED, 2000 + LONGEST_MS, is_idle=True)


@pytest.mark.parametrize(("past_ms", "is_right"), [(LONGEST_MS, True), (LONGEST_MS + 1, False)])
def test_a_disk_without_room_puts_an_election_off(past_ms: int, is_right: bool) -> None:
    """Until its pause is over, and then for no longer than without one."""
    _, found = begun()
    found.settled(UNATTACHED, 0, is_idle=True)
    with outcome(is_right):
        found.settled(UNATTACHED, 4000 + past_ms, 4000, is_idle=True)


@pytest.mark.parametrize("reason", ["busy", "unflushed", "lost", "observer"])
def test_reasons_to_wait(reason: str) -> None:
    """Work for the disk, records that are not durable, something lost; and who is no voter never stands."""
    disks = QuorumDisks(3)
    ledger = disks.ledgers[1]
    found = SearchCheck(ledger, QuorumConfig(election_timeout_ms=300), knows_others=True)
    found.settled(UNATTACHED, 0, is_idle=True)
    if reason == "unflushed":
        disks.append((1,), 1)
    ledger.is_vote_lost = reason == "lost"
    if reason == "observer":
        ledger.voter_sets = [ledger.voter_sets[0]._replace(keys=frozenset([replica_key(2)]))]
    found.settled(UNATTACHED, LONGEST_MS + 1, is_idle=reason != "busy")
