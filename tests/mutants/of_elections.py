# SPDX-License-Identifier: Apache-2.0
"""A wrong election: bugs of the catalogue that concern roles, the start, and the search for a leader."""

from typing import Any, Final

import attrs

from raftlog.quorum import acting, requests, responses
from raftlog.quorum.elections import announcements, standing, votes_asked
from raftlog.quorum.following import fetching
from raftlog.quorum.responses import ResponseOutcome
from raftlog.quorum.roles import starting
from raftlog.quorum.roles.roles import Follower, KnownLeader, Leader, Prospective, Resigned, Unattached
from raftlog.quorum.roles.transitions import ElectionWon
from raftlog.quorum.roles.votes import Votes
from raftlog.records.files.quorum_state import UNKNOWN_ID
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.voters.voter_set import Endpoints, VoterSet
from tests.mutants.of_quorum import RAFT, SCENARIOS
from tests.mutants.planting import Mutant, Wrong, instead, swapped

ANSWERS: Final = "tests/quorum/elections/test_answers_to_votes.py"
VOTES: Final = "tests/quorum/roles/test_votes.py"
FROM_NOWHERE: Final = Endpoints.of({"CONTROLLER": ("nowhere", 1)})


def _news_of_itself(right: Wrong) -> Wrong:
    return lambda replica, leader: leader.id == replica.identity.key.id or right(replica, leader)


def _at_once(right: Wrong) -> Wrong:
    def handle_common(replica: Any, error_code: int, *arguments: Any) -> Any:
        outcome = right(replica, error_code, *arguments)
        is_unfit = error_code in {ErrorCode.INVALID_VOTER_KEY, ErrorCode.UNKNOWN_LEADER_EPOCH}
        return ResponseOutcome.DONE if is_unfit else outcome

    return handle_common


def _following_without_an_address(right: Wrong) -> Wrong:
    def starting_role(*arguments: Any, **options: Any) -> Any:
        role = right(*arguments, **options)
        leader = getattr(role, "leader_id", None)
        return role if leader is None else Follower(role.epoch, KnownLeader(leader, FROM_NOWHERE), None, 2000)

    return starting_role


def _asking_the_leader_alone(right: Wrong) -> Wrong:
    def fetch_from_leader(replica: Any, role: Any) -> None:
        address = role.leader.endpoints.address(replica.identity.listener)
        if address is not None and replica.connections.is_ready(role.leader.id, replica.now_ms):
            right(replica, role)

    return fetch_from_leader


def _in_the_past(right: Wrong) -> Wrong:
    def deadline_ms(replica: Any) -> int | None:
        found = right(replica)
        return None if found is None else replica.now_ms

    return deadline_ms


def _for_itself_in_any_case(right: Wrong) -> Wrong:
    def begin(cls: Any, voters: Any, candidate_id: int) -> Any:
        votes = right(cls, voters, candidate_id)
        return attrs.evolve(votes, granted=frozenset({candidate_id}))

    return begin


def _candidate_again(right: Wrong) -> Wrong:
    def starting_role(stored: Any, last_epoch: int, around: Any, **options: Any) -> Any:
        if stored is not None and stored.voted_id == around.local_key.id:
            stored = attrs.evolve(stored, leader_id=UNKNOWN_ID)
        return right(stored, last_epoch, around, **options)

    return starting_role


def _without_asking_first(right: Wrong) -> Wrong:
    def begin_election(replica: Any, event: Any) -> None:
        right(replica, event)
        if isinstance(replica.role, Prospective):
            replica.change_role(ElectionWon())

    return begin_election


def _leading_alone_at_once(right: Wrong) -> Wrong:
    def starting_role(stored: Any, last_epoch: int, around: Any, **options: Any) -> Any:
        role = right(stored, last_epoch, around, **options)
        is_alone = around.voters.is_only_voter(around.local_key)
        return Leader(role.epoch, around.local_key.id, (), (around.local_key.id,)) if is_alone else role

    return starting_role


def _unattached_alone(right: Wrong) -> Wrong:
    def starting_role(stored: Any, last_epoch: int, around: Any, **options: Any) -> Any:
        role = right(stored, last_epoch, around, **options)
        is_alone = isinstance(role, Resigned) and around.voters.is_only_voter(around.local_key)
        return Unattached(role.epoch, role.id) if is_alone else role

    return starting_role


MUTANTS: Final = (
    Mutant(
        "K4",
        "a resigned replica does not follow itself",
        "KAFKA-18379",
        swapped(requests, "_is_news", _news_of_itself),
        (f"{SCENARIOS}[elections/resigned-leader-hears-of-itself[core]]",),
    ),
    Mutant(
        "K6",
        "the only voter does not resign for want of a majority",
        "KAFKA-16144",
        instead(VoterSet, "is_only_voter", lambda *_: False),
        (f"{SCENARIOS}[disk/only-voter-flushes-late[core]]",),
    ),
    Mutant(
        "K12",
        "a replica follows no leader without an address",
        "KAFKA-16529",
        swapped(starting, "starting_role", _following_without_an_address),
        (f"{SCENARIOS}[elections/leader-without-an-address-is-remembered[core]]",),
    ),
    Mutant(
        "K-lost-candidate",
        "a candidate that has lost follows the leader after a restart",
        "DECISIONS.md 54",
        swapped(starting, "starting_role", _candidate_again),
        (f"{SCENARIOS}[elections/lost-candidate-follows-after-a-restart[core]]",),
    ),
    Mutant(
        "K19",
        "a follower whose leader does not answer asks bootstrap servers",
        "KAFKA-19354, KAFKA-20514",
        swapped(fetching, "fetch_from_leader", _asking_the_leader_alone),
        (f"{SCENARIOS}[elections/highest-epoch[core]]",),
    ),
    Mutant(
        "K20",
        "a deadline is in the future, or a driver would loop without a pause",
        "KAFKA-19605",
        swapped(acting, "deadline_ms", _in_the_past),
        (f"{RAFT}::test_no_sequence_of_inputs_breaks_a_promise",),
    ),
    Mutant(
        "R7",
        "a candidate votes for itself only if it is a voter",
        "scylladb 10618",
        swapped(Votes, "begin", _for_itself_in_any_case),
        (VOTES,),
    ),
    Mutant(
        "R8",
        "a replica asks whether it could win before it disturbs the voters with a new epoch",
        "hashicorp 524, KIP-996",
        swapped(standing, "begin_election", _without_asking_first),
        (f"{SCENARIOS}[disk/election-state-is-stored-late[core]]",),
    ),
    Mutant(
        "R-pre-vote-late",
        "an observer that has lost touch with the leader grants pre-votes",
        "a schedule: a voter of four without the record that adds it",
        instead(Follower, "is_in_touch", lambda role, now_ms: role.has_fetched),
        (f"{ANSWERS}::test_an_observer_out_of_touch_grants_pre_votes",),
    ),
    Mutant(
        "R-unfit",
        "a voter that says that it is another one is not asked as fast as it answers",
        "DECISIONS.md 54",
        swapped(responses, "handle_common", _at_once),
        (f"{ANSWERS}::test_a_voter_that_is_another_replica_is_asked_after_a_pause",),
    ),
    Mutant(
        "R10",
        "a vote for another replica is not given by the replica at its address",
        "openraft, SetNodes",
        instead(votes_asked, "is_addressee", lambda *_: True),
        (f"{SCENARIOS}[elections/request-for-another-replica-moves-the-epoch[core]]",),
    ),
    Mutant(
        "R10-leader",
        "an announcement for another replica is not acknowledged",
        "openraft, SetNodes",
        instead(announcements, "is_addressee", lambda *_: True),
        (f"{SCENARIOS}[elections/request-for-another-replica-moves-the-epoch[core]]",),
    ),
    Mutant(
        "R23-told",
        "the only voter that led, and is not elected again, does not tell its listeners that it leads",
        "DECISIONS.md 54",
        swapped(starting, "starting_role", _unattached_alone),
        (
            "tests/quorum/listening/test_leader_changes.py::test_a_replica_that_led_before_its_start_is_not_told_that_it_leads",
        ),
    ),
    Mutant(
        "R23",
        "the only voter leads after an election, too",
        "openraft 607, 883",
        swapped(starting, "starting_role", _leading_alone_at_once),
        (f"{SCENARIOS}[disk/only-voter-flushes-late[core]]",),
    ),
)
