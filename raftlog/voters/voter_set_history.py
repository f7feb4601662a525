# SPDX-License-Identifier: Apache-2.0
"""The voter sets of a log by offset, and those of them that should not have been written."""

import attrs

from raftlog.errors import InvariantViolation, NonContiguousAppendError
from raftlog.invariants import invariant
from raftlog.voters.history import BOOTSTRAP_OFFSET, TreeMapLogHistory
from raftlog.voters.voter_set import VoterSet
from raftlog.voters.voter_set_change import VoterSetProblem, change_text, voter_set_change_problems


@attrs.frozen
class VoterSetViolation:
    """A voter set in a log that should not have been written at its offset.

    Attributes:
        offset: of the record that names the set.
        voters: the set. It is in force from this offset on, unless it is empty.
        previous_offset: of the record that named the previous set; None if that is the static one.
        previous_voters: the previous set.
        problems: what is wrong, the worst first; at least one.
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
    """The voter sets named by a log's records, and a static set that is in force until there is such a record.

    Every set is accepted, because the quorum may have committed it: a replica that refused it could never continue. A
    set that must not follow the previous one is in ``violations``. An empty set is never in force: the previous one
    remains. After the static set, and after a set from before the log's first record (offset -1), any set may follow.
    Equal sets in sequence are one object.

    Args:
        static_voters: the configured set; it may be empty. It has no offset.

    Source: VoterSetHistory. Differs: DECISIONS.md 39. Up to 3.9 Kafka refuses a set that fails its guard; since 4.0 it
    only logs that, and accepts empty sets, too.
    """

    def __init__(self, static_voters: VoterSet) -> None:
        super().__init__()
        self._static_voters = static_voters
        self._violations: list[VoterSetViolation] = []

    @property
    def static_voters(self) -> VoterSet:
        """The configured voter set."""
        return self._static_voters

    def add(self, offset: int, value: VoterSet) -> None:
        """Add a voter set that is in force from an offset on; an empty one is only recorded as a violation.

        Args:
            offset: of its record, inclusive; -1 for that of the bootstrap snapshot.
            value: the set.

        Raises:
            NonContiguousAppendError: the offset is below -1, or not above that of the previous set.

        Source: VoterSetHistory#addAt.
        """
        last = self.last_entry()
        newest = BOOTSTRAP_OFFSET - 1 if last is None else last.offset
        if self._violations:
            newest = max(newest, self._violations[-1].offset)
        if offset <= newest:
            raise NonContiguousAppendError(f"voters at offset {offset}, but the next must be at {newest + 1} or above")
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
        """Return the sets that should not have been written, oldest first, among those that were not trimmed."""
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
        invariant(is_below, "voters truncated at {} end with {}", end_offset, last)
        is_below = not self._violations or self._violations[-1].offset < end_offset
        invariant(is_below, "violations truncated at {} end with {}", end_offset, self._violations[-1:])

    def truncate_old_entries(self, start_offset: int) -> None:
        """Forget every entry below the last one at or below an offset, and every violation at or below it."""
        super().truncate_old_entries(start_offset)
        before = self._violations
        self._violations = [violation for violation in before if violation.offset > start_offset]
        invariant(
            self._violations[-1:] == before[-1:] or before[-1].offset <= start_offset,
            "newest violation dropped: {}",
            before[-1:],
        )
        first = self._violations[:1]
        invariant(not first or first[0].offset > start_offset, "{} is kept, trimmed at {}", first, start_offset)

    def clear(self) -> None:
        """Forget all entries and violations."""
        super().clear()
        self._violations.clear()

    def check_invariants(self) -> None:
        """Check what must hold after every operation: increasing offsets, and no empty set in force.

        Raises:
            InvariantViolation: it does not.
        """
        super().check_invariants()
        if not all(entry.value for entry in self.entries()):
            raise InvariantViolation("an empty voter set is in force")
        offsets = [violation.offset for violation in self._violations]
        if offsets != sorted(set(offsets)):
            raise InvariantViolation(f"violations are not in the order of their offsets: {offsets[:20]}")
