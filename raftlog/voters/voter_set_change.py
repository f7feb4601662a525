# SPDX-License-Identifier: Apache-2.0
"""Which voter set may follow which: for all who write one, and for all who report what others wrote.

Two tests are asked, since each lets pass what the other does not (DECISIONS.md 3): the exact one, which is safety, and
Kafka's guard, at which its readers up to 3.9 stop. Who writes a set calls ``check_voter_set_change``. Who reads one
takes it, whatever it is, and keeps what ``voter_set_change_problems`` says of it (DECISIONS.md 39).
"""

import enum

from raftlog.errors import EmptyVoterSetError, NoOverlappingMajorityError, TooManyVoterChangesError
from raftlog.voters.voter_set import VoterSet


class VoterSetProblem(enum.Enum):
    """Why a voter set must not follow another."""

    EMPTY = "empty"
    """It has no voter: nobody could ever be elected again, and any set at all could follow it."""
    NO_OVERLAPPING_MAJORITY = "no-overlapping-majority"
    """Some majority of the set before shares no voter with some majority of it: both could decide, each for itself."""
    TOO_MANY_CHANGES = "too-many-changes"
    """More than one voter is new, or more than one is gone: Kafka's guard refuses it."""


_REASONS = {
    VoterSetProblem.EMPTY: "there is no voter in it",
    VoterSetProblem.NO_OVERLAPPING_MAJORITY: "they have majorities without a common voter",
    VoterSetProblem.TOO_MANY_CHANGES: "more than one voter is new, or more than one is gone",
}
_ERRORS = {
    VoterSetProblem.EMPTY: EmptyVoterSetError,
    VoterSetProblem.NO_OVERLAPPING_MAJORITY: NoOverlappingMajorityError,
    VoterSetProblem.TOO_MANY_CHANGES: TooManyVoterChangesError,
}


def voter_set_change_problems(before: VoterSet, after: VoterSet) -> tuple[VoterSetProblem, ...]:
    """Return all that is wrong with putting one voter set in the place of another, the worst first; nothing if it may.

    Args:
        before: the set in force; the empty one where no record has named voters yet. It binds nobody: static voters
            have no directory ids, so that none of them can be told from another replica of the same id.
        after: the set to follow it.

    Source: VoterSet#hasOverlappingMajority, VoterSetHistory#addAt. Differs: DECISIONS.md 3 and 39.
    """
    if not after:
        return (VoterSetProblem.EMPTY,)
    if not before:
        return ()
    keys, later_keys = before.voter_keys, after.voter_keys
    if len(keys) + len(later_keys) - 2 * len(keys & later_keys) <= 1:
        return ()  # The usual change, of one voter that comes or goes, keeps both rules.
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
        after: likewise.

    Raises:
        EmptyVoterSetError: the new set has no voters.
        NoOverlappingMajorityError: some majority of one set shares no voter with some majority of the other.
        TooManyVoterChangesError: more than one voter is new, or more than one is gone.
    """
    for problem in voter_set_change_problems(before, after):
        raise _ERRORS[problem](change_text(before, after, (problem,)))


def change_text(before: VoterSet, after: VoterSet, problems: tuple[VoterSetProblem, ...]) -> str:
    """Return one clause about a change of voters and what is wrong with it."""
    return f"voters {after} after {before}: {', and '.join(_REASONS[problem] for problem in problems)}"
