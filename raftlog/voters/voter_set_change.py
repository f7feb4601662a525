# SPDX-License-Identifier: Apache-2.0
"""Decides which voter set may follow which, for code that writes sets and for code that reports violations.

Two tests are applied, since each accepts changes that the other refuses (DECISIONS.md 3): the exact one guarantees
safety; the other is Kafka's guard, and Kafka up to 3.9 stops reading at a set that fails it. Call
``check_voter_set_change`` before you write a set. Readers must accept any set, and record what
``voter_set_change_problems`` returns (DECISIONS.md 39).
"""

import enum

from raftlog.errors import EmptyVoterSetError, NoOverlappingMajorityError, TooManyVoterChangesError
from raftlog.voters.voter_set import VoterSet


class VoterSetProblem(enum.Enum):
    """Why a voter set must not follow another."""

    EMPTY = "empty"
    """It has no voter: no leader could ever be elected again, and any set could follow it."""
    NO_OVERLAPPING_MAJORITY = "no-overlapping-majority"
    """A majority of it and one of the previous set are disjoint: the two could make conflicting decisions."""
    TOO_MANY_CHANGES = "too-many-changes"
    """More than one voter is added, or more than one removed: Kafka's guard refuses it."""


_REASONS = {
    VoterSetProblem.EMPTY: "there is no voter in it",
    VoterSetProblem.NO_OVERLAPPING_MAJORITY: "they have majorities without a common voter",
    VoterSetProblem.TOO_MANY_CHANGES: "more than one voter is added, or more than one removed",
}
_ERRORS = {
    VoterSetProblem.EMPTY: EmptyVoterSetError,
    VoterSetProblem.NO_OVERLAPPING_MAJORITY: NoOverlappingMajorityError,
    VoterSetProblem.TOO_MANY_CHANGES: TooManyVoterChangesError,
}


def voter_set_change_problems(before: VoterSet, after: VoterSet) -> tuple[VoterSetProblem, ...]:
    """Return why one voter set must not follow another, the worst problem first; empty if it may follow.

    Args:
        before: the set in force; empty if no record has named voters yet, and then any set may follow. Static voters
            do not restrict it: they have no directory ids, so they cannot be told from other replicas of the same id.
        after: the set to follow it.

    Source: VoterSet#hasOverlappingMajority, VoterSetHistory#addAt. Differs: DECISIONS.md 3 and 39.
    """
    if not after:
        return (VoterSetProblem.EMPTY,)
    if not before:
        return ()
    keys, later_keys = before.voter_keys, after.voter_keys
    if len(keys) + len(later_keys) - 2 * len(keys & later_keys) <= 1:
        return ()  # The usual change, adding or removing one voter, passes both tests.
    problems = []
    if not before.has_overlapping_majority(after):
        problems.append(VoterSetProblem.NO_OVERLAPPING_MAJORITY)
    if not before.passes_kafka_change_guard(after):
        problems.append(VoterSetProblem.TOO_MANY_CHANGES)
    return tuple(problems)


def check_voter_set_change(before: VoterSet, after: VoterSet) -> None:
    """Refuse to write a voter set that must not follow the one in force.

    Args:
        before: as for ``voter_set_change_problems``.
        after: as for ``voter_set_change_problems``.

    Raises:
        EmptyVoterSetError: the new set has no voters.
        NoOverlappingMajorityError: some majority of one set shares no voter with some majority of the other.
        TooManyVoterChangesError: more than one voter is added, or more than one removed.
    """
    for problem in voter_set_change_problems(before, after):
        raise _ERRORS[problem](change_text(before, after, (problem,)))


def change_text(before: VoterSet, after: VoterSet, problems: tuple[VoterSetProblem, ...]) -> str:
    """Return one clause about a change of voters and what is wrong with it."""
    return f"voters {after} after {before}: {', and '.join(_REASONS[problem] for problem in problems)}"
