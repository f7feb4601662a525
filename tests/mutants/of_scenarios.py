# SPDX-License-Identifier: Apache-2.0
"""A wrong consensus core that fails the scenario of the bug: each mutant is killed by the one that names it."""

from collections.abc import Iterable
from typing import Any, Final

from raftlog.quorum import high_watermark
from raftlog.quorum.elections import votes_asked
from raftlog.quorum.roles.votes import Votes
from tests.mutants.planting import Mutant, Wrong, instead, swapped


def _scenario(name: str) -> str:
    return f"tests/scenarios/test_scenarios.py::test_scenario[{name}[core]]"


def _by_the_directory_too(right: Wrong) -> Wrong:
    def may_grant_vote(core: Any, candidate: Any, *arguments: Any, **options: Any) -> bool:
        voted = getattr(core.role, "voted_key", None)
        is_same = voted is None or voted.directory_id is not None
        return is_same and bool(right(core, candidate, *arguments, **options))

    return may_grant_vote


def _without_its_own_vote(_: Wrong) -> Wrong:
    return lambda cls, voters, candidate_id: cls(tuple(sorted(voters)))


def _as_they_come(end_offsets: Iterable[int], majority_size: int) -> int | None:
    ends = list(end_offsets)
    return ends[majority_size - 1] if len(ends) >= majority_size else None


def _whatever_its_id_is(right: Wrong) -> Wrong:
    def may_grant_vote(core: Any, candidate: Any, *arguments: Any, **options: Any) -> bool:
        is_own = candidate.id == core.identity.key.id
        other = type(candidate)(candidate.id + 1000, candidate.directory_id) if is_own else candidate
        return bool(right(core, other, *arguments, **options))

    return may_grant_vote


MUTANTS: Final = (
    Mutant(
        "K14-core",
        "a vote that was stored without a directory id is known by the id",
        "KAFKA-16526",
        swapped(votes_asked, "may_grant_vote", _by_the_directory_too),
        (_scenario("upgrade/vote-without-a-directory"),),
    ),
    Mutant(
        "R7-core",
        "a candidate that is a voter votes for itself",
        "scylladb 10618",
        swapped(Votes, "begin", _without_its_own_vote),
        (_scenario("voter-changes/leader-whose-removal-is-truncated-stands-again"),),
    ),
    Mutant(
        "R9-core",
        "a replica gives no vote to another one with its own id",
        "openraft, dynamic membership",
        swapped(votes_asked, "may_grant_vote", _whatever_its_id_is),
        (_scenario("elections/own-id-from-another-directory"),),
    ),
    Mutant(
        "R22-core",
        "the log ends of voters are sorted before one of them is committed",
        "openraft 1802",
        instead(high_watermark, "majority_offset", _as_they_come),
        (_scenario("leading/third-of-five-commits"),),
    ),
)
