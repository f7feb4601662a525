# SPDX-License-Identifier: Apache-2.0
"""Which voter set was in force from which offset of a log on, and which of them must not have followed another."""

import attrs

from raftlog.errors import InvariantViolation, NonContiguousAppendError
from raftlog.invariants import invariant
from raftlog.voters.history import BOOTSTRAP_OFFSET, TreeMapLogHistory
from raftlog.voters.voter_set import VoterSet
from raftlog.voters.voter_set_change import VoterSetProblem, change_text, voter_set_change_problems


@attrs.frozen
class VoterSetViolation:
    """A voter set that a log names, and that nobody should have written where it stands.

    Attributes:
        offset: of the record that names the set.
        voters: the set. It is in force from there on, unless it is empty.
        previous_offset: of the record that named the set before it; None where that is the static one.
        previous_voters: that set.
        problems: what is wrong, the worst first; one at least.
    """

    offset: int
    voters: VoterSet
    previous_offset: int | None
    previous_voters: VoterSet
    problems: tuple[VoterSetProblem, ...]

    def __str__(self) -> str:
        place = "static voters" if self.previous_offset is None else f"voters of offset {self.previous_offset}"
        return f"offset {self.offset}, {place}: {change_text(self.previous_voters, self.voters, self.problems)}"


class VoterSetHistory(TreeMapLogHistory[VoterSet]):
    """The voter sets that a log's records made known, and a static one that holds until there is such a record.

    Every set is taken, as a quorum has committed it, or may: a replica that refused it could never go on. One that must
    not follow the set before it is in ``violations``. An empty set is never in force: the one before it stays. The
    static set, and one from before the log's first record (offset -1), bind nobody. Equal sets that follow one another
    are one object.

    Args:
        static_voters: the set by configuration; it may be empty. It is at no offset.

    Source: VoterSetHistory. Differs: DECISIONS.md 39. Up to 3.9 Kafka refuses what its guard does not let pass; since
    4.0 it logs that, and takes empty sets too.
    """

    def __init__(self, static_voters: VoterSet) -> None:
        super().__init__()
        self._static_voters = static_voters
        self._violations: list[VoterSetViolation] = []

    @property
    def static_voters(self) -> VoterSet:
        """The set by configuration."""
        return self._static_voters

    def add(self, offset: int, value: VoterSet) -> None:
        """Let a voter set be in force from an offset on; an empty one is noted as a violation, and no more.

        Args:
            offset: of its record, inclusive; -1 for that of the bootstrap snapshot.
            value: the set.

        Raises:
            NonContiguousAppendError: the offset is below -1, or not above that of the set before.

        Source: VoterSetHistory#addAt.
        """
        last = self.last_entry()
        newest = BOOTSTRAP_OFFSET - 1 if last is None else last.offset
        if self._violations:
            newest = max(newest, self._violations[-1].offset)
        if offset <= newest:
            raise NonContiguousAppendError(f"voters at offset {offset}, where {newest + 1} is the least there can be")
        if last is not None and last.value == value:
            value = last.value
        if value:
            super().add(offset, value)
        binding = VoterSet() if last is None or last.offset <= BOOTSTRAP_OFFSET else last.value
        problems = voter_set_change_problems(binding, value)
        if problems:
            previous_offset = None if last is None else last.offset
            previous_voters = self._static_voters if last is None else last.value
            self._violations.append(VoterSetViolation(offset, value, previous_offset, previous_voters, problems))
        self._check_end_invariants(offset + 1)

    def last_value(self) -> VoterSet:
        """Return the set that is in force at the end of the log: the newest, or the static one."""
        last = self.last_entry()
        return self._static_voters if last is None else last.value

    def last_voter_set_offset(self) -> int | None:
        """Return the offset of the newest set: None for the static set, -1 for that of the bootstrap snapshot."""
        last = self.last_entry()
        return None if last is None else last.offset

    def violations(self) -> tuple[VoterSetViolation, ...]:
        """Return what should not have been written of all that is kept, oldest first."""
        return tuple(self._violations)

    def truncate_new_entries(self, end_offset: int) -> None:
        """Forget every entry, and every violation, at or above an offset: the log ends there now."""
        super().truncate_new_entries(end_offset)
        while self._violations and self._violations[-1].offset >= end_offset:
            self._violations.pop()
        self._check_end_invariants(end_offset)

    def _check_end_invariants(self, end_offset: int) -> None:
        """Check that no entry or violation is at or above an offset, and that the set in force is not empty."""
        last = self.last_entry()
        invariant(last is None or bool(last.value), "no voters are in force: {}", last)
        is_below = last is None or last.offset < end_offset
        invariant(is_below, "voters to {} end with {}", end_offset, last)
        is_below = not self._violations or self._violations[-1].offset < end_offset
        invariant(is_below, "violations to {} end with {}", end_offset, self._violations[-1:])

    def truncate_old_entries(self, start_offset: int) -> None:
        """Forget every entry below the last one at or below an offset, and every violation at or below it."""
        super().truncate_old_entries(start_offset)
        before = self._violations
        self._violations = [violation for violation in before if violation.offset > start_offset]
        invariant(self._violations[-1:] == before[-1:] or before[-1].offset <= start_offset, "{} is gone", before[-1:])
        first = self._violations[:1]
        invariant(not first or first[0].offset > start_offset, "a violation of {} below {}", first, start_offset)

    def clear(self) -> None:
        """Forget all entries and violations."""
        super().clear()
        self._violations.clear()

    def check_invariants(self) -> None:
        """Check what must hold after every operation: of the offsets; no set that is in force is empty.

        Raises:
            InvariantViolation: it does not.
        """
        super().check_invariants()
        if not all(entry.value for entry in self.entries()):
            raise InvariantViolation("an empty voter set is in force")
        offsets = [violation.offset for violation in self._violations]
        if offsets != sorted(set(offsets)):
            raise InvariantViolation(f"violations are not in the order of their offsets: {offsets[:20]}")
