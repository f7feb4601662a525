# SPDX-License-Identifier: Apache-2.0
"""A wrong follower, which says what it may lose, or waits for ever; and a leader that takes directories for voters."""

from typing import Any, Final

import attrs

from raftlog.quorum import acting
from raftlog.quorum.following import fetching
from raftlog.quorum.leadership import Leadership
from raftlog.quorum.leading import leading_epoch, serving, updating_voters
from tests.mutants.planting import Mutant, Wrong, instead, missing, swapped

LEADING: Final = "tests/quorum/leading/test_leading.py"
UPGRADING: Final = "tests/quorum/leading/test_upgrading.py"
NEW_VOTERS: Final = "tests/quorum/following/test_new_voters.py"


def _waiting_for_ever(right: Wrong) -> Wrong:
    def fetch_from_leader(core: Any, role: Any) -> None:
        if not core.connections.has_timed_out(role.leader.id, core.now_ms):
            right(core, role)

    return fetch_from_leader


def _a_place_for_each_directory(right: Wrong) -> Wrong:
    return lambda leadership, key, _: right(leadership, key, None)


def _counting_each_directory(right: Wrong) -> Wrong:
    def note_fetch(core: Any, leadership: Any, key: Any, end_offset: int) -> None:
        right(core, leadership, key, end_offset)
        if core.voters.is_voter(key):
            leading_epoch.note_fetch_of_voter(core, leadership, key)

    return note_fetch


def _as_many_places_for_all(right: Wrong) -> Wrong:
    return lambda core, key: (right(core, key)[0], serving.MAX_WAITING_FETCHES)


def _waiting_for_each_directory(right: Wrong) -> Wrong:
    return lambda core, key: (key, right(core, key)[1])


def _reading_for_each_fetch(right: Wrong) -> Wrong:
    def read(core: Any, leadership: Any, place: Any, fetch: Any) -> None:
        while place in leadership.reading:
            place = attrs.evolve(place, id=place.id + 1_000_000)
        right(core, leadership, place, fetch)

    return read


MUTANTS: Final = (
    Mutant(
        "R-static-places",
        "a static voter has one place, whatever directories come in its name",
        "found by a review",
        swapped(Leadership, "take_progress", _a_place_for_each_directory),
        (f"{LEADING}::test_a_static_voter_does_not_keep_others_from_waiting",),
    ),
    Mutant(
        "R-static-counts-once",
        "a static voter counts once in the check of quorum",
        "LeaderState#updateCheckQuorumForFollowingVoter",
        swapped(serving, "note_fetch", _counting_each_directory),
        (f"{LEADING}::test_a_static_voter_counts_once_in_the_check_of_quorum",),
    ),
    Mutant(
        "R-observers-starve",
        "observers that wait do not keep a voter from records",
        "found by a review",
        swapped(serving, "_place", _as_many_places_for_all),
        (f"{LEADING}::test_observers_that_wait_do_not_keep_a_voter_from_records",),
    ),
    Mutant(
        "R-static-waits",
        "the fetches of a static voter have one place to wait in, whatever directories come in its name",
        "found by a review",
        swapped(serving, "_place", _waiting_for_each_directory),
        (f"{LEADING}::test_a_static_voter_does_not_keep_others_from_waiting",),
    ),
    Mutant(
        "R-one-read",
        "a replica that asks again and again gives the disk one read at a time",
        "found by a review",
        swapped(serving, "_read", _reading_for_each_fetch),
        (f"{LEADING}::test_a_replica_has_one_read_under_way",),
    ),
    Mutant(
        "R-same-directory",
        "two static voters cannot tell the same directory",
        "found by a review",
        instead(updating_voters, "updated_voters_problem", lambda *_: None),
        (f"{UPGRADING}::test_two_static_voters_cannot_tell_the_same_directory",),
    ),
    Mutant(
        "K10-added",
        "an observer that has become a voter flushes before it fetches again, or asks for votes",
        "KAFKA-17332",
        missing(acting, "flush_as_voter"),
        (NEW_VOTERS,),
    ),
    Mutant(
        "K-lost-fetch",
        "a lost Fetch is sent again without bootstrap servers",
        "found by a review",
        swapped(fetching, "fetch_from_leader", _waiting_for_ever),
        (NEW_VOTERS,),
    ),
)
