# SPDX-License-Identifier: Apache-2.0
"""A wrong follower: one that says what it may lose, or that waits for ever."""

from typing import Any, Final

from raftlog.quorum import acting
from raftlog.quorum.following import fetching
from tests.mutants.planting import Mutant, Wrong, missing, swapped

NEW_VOTERS: Final = "tests/quorum/following/test_new_voters.py"


def _waiting_for_ever(right: Wrong) -> Wrong:
    def fetch_from_leader(core: Any, role: Any) -> None:
        if not core.connections.has_timed_out(role.leader.id, core.now_ms):
            right(core, role)

    return fetch_from_leader


MUTANTS: Final = (
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
