# SPDX-License-Identifier: Apache-2.0
"""Which voter set was in force from which offset of a log on, with a guard over what may follow what."""

import itertools
from collections.abc import Iterator

import attrs

from raftlog.errors import InvariantViolation, NoOverlappingMajorityError
from raftlog.log_history import BOOTSTRAP_OFFSET, HistoryEntry, TreeMapLogHistory
from raftlog.voter_set import VoterSet


@attrs.frozen
class VoterSetViolation:
    """A voter set that followed one with which it shares no voter in some pair of majorities.

    Attributes:
        offset: of the record that made the set known.
        voters: the set.
        previous_offset: of the record that made the set before it known.
        previous_voters: that set.
    """

    offset: int
    voters: VoterSet
    previous_offset: int
    previous_voters: VoterSet

    def __str__(self) -> str:
        return (
            f"voters {self.voters} at offset {self.offset} and {self.previous_voters} at offset {self.previous_offset} "
            "have majorities without a common voter"
        )


class VoterSetHistory(TreeMapLogHistory[VoterSet]):
    """The voter sets that a log's records made known, and a static one that holds until there is such a record.

    A set must overlap the one before it, so that the two can never decide different things apart; the static set, and
    one from before the log's first record (offset -1), bind nobody. Equal sets that follow one another are one object.

    Args:
        static_voters: the set by configuration; it may be empty. It is at no offset.
        strict: whether to refuse a set that breaks this. A tool that reads what others wrote takes it, and finds it in
            ``violations``.

    Source: VoterSetHistory. Differs: Kafka's guard lets {1} become {2}, and since 4.0 it only logs (DECISIONS.md 3).
    """

    def __init__(self, static_voters: VoterSet, *, strict: bool = True) -> None:
        super().__init__()
        self._static_voters = static_voters
        self._strict = strict

    @property
    def static_voters(self) -> VoterSet:
        """The set by configuration."""
        return self._static_voters

    def add(self, offset: int, value: VoterSet) -> None:
        """Let a voter set be in force from an offset on.

        Args:
            offset: of its record, inclusive; -1 for that of the bootstrap snapshot.
            value: the set.

        Raises:
            NonContiguousAppendError: the offset is below -1, or not above the last entry's.
            NoOverlappingMajorityError: the history is strict, and the last set, at offset 0 or above, has a majority
                without a voter of some majority of this one.

        Source: VoterSetHistory#addAt.
        """
        last = self.last_entry()
        if last is not None and last.value == value:
            value = last.value
        elif last is not None and self._strict and not _may_follow(last, value):
            raise NoOverlappingMajorityError(str(VoterSetViolation(offset, value, last.offset, last.value)))
        super().add(offset, value)

    def last_value(self) -> VoterSet:
        """Return the set that is in force at the end of the log: the newest, or the static one."""
        last = self.last_entry()
        return self._static_voters if last is None else last.value

    def last_voter_set_offset(self) -> int | None:
        """Return the offset of the newest set: None for the static set, -1 for that of the bootstrap snapshot."""
        last = self.last_entry()
        return None if last is None else last.offset

    def violations(self) -> Iterator[VoterSetViolation]:
        """Yield where an entry does not overlap the one before it, oldest first: never, if the history is strict."""
        for before, entry in itertools.pairwise(self.entries()):
            if not _may_follow(before, entry.value):
                yield VoterSetViolation(entry.offset, entry.value, before.offset, before.value)

    def check_invariants(self) -> None:
        """Check what must hold after every operation: of the offsets, and that a strict history has no violation.

        Raises:
            InvariantViolation: it does not.
        """
        super().check_invariants()
        if self._strict and (violation := next(self.violations(), None)):
            raise InvariantViolation(str(violation))


def _may_follow(last: HistoryEntry[VoterSet], voters: VoterSet) -> bool:
    return last.offset <= BOOTSTRAP_OFFSET or last.value.has_overlapping_majority(voters)
