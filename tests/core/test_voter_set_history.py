# SPDX-License-Identifier: Apache-2.0
"""Histories of voter sets: what may follow what, by property and by example."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import InvariantViolation, NonContiguousAppendError, NoOverlappingMajorityError
from raftlog.log_history import HistoryEntry
from raftlog.voter_set import VoterSet
from raftlog.voter_set_history import VoterSetHistory, VoterSetViolation
from tests.core.raft_batches import voters

voter_sets = st.lists(st.integers(1, 5), max_size=5).map(lambda ids: voters(*sorted(set(ids))))
additions = st.lists(st.tuples(st.integers(1, 3), voter_sets), max_size=12)


def added(history: VoterSetHistory, steps: list[tuple[int, VoterSet]], first: int) -> list[HistoryEntry[VoterSet]]:
    """Add sets as far as they are taken; return those."""
    taken: list[HistoryEntry[VoterSet]] = []
    for gap, value in steps:
        offset = taken[-1].offset + gap if taken else first
        try:
            history.add(offset, value)
        except NoOverlappingMajorityError:
            assert list(history.entries()) == taken, "a refused set changes nothing"
        else:
            taken.append(HistoryEntry(offset, value))
    return taken


@given(additions, st.integers(-1, 1))
def test_every_two_sets_that_follow_one_another_overlap(steps: list[tuple[int, VoterSet]], first: int) -> None:
    """A strict history takes a set exactly if it overlaps the last one at offset 0 or above."""
    history = VoterSetHistory(voters(9))
    naive: list[HistoryEntry[VoterSet]] = []
    for gap, value in steps:
        offset = naive[-1].offset + gap if naive else first
        if not naive or naive[-1].offset < 0 or naive[-1].value.has_overlapping_majority(value):
            naive.append(HistoryEntry(offset, value))
    assert added(history, steps, first) == naive == list(history.entries())
    assert list(history.violations()) == []
    history.check_invariants()


@given(additions, st.integers(-1, 1))
def test_a_lax_history_takes_every_set_and_names_each_violation(steps: list[tuple[int, VoterSet]], first: int) -> None:
    """Each set is taken, and a violation is named for exactly those that a strict history in its place refuses."""
    history = VoterSetHistory(voters(9), strict=False)
    entries = added(history, steps, first)
    assert len(entries) == len(steps)
    refused = []
    for before, entry in itertools.pairwise(entries):
        strict = VoterSetHistory(voters(9))
        strict.add(*before)
        try:
            strict.add(*entry)
        except NoOverlappingMajorityError:
            refused.append(VoterSetViolation(entry.offset, entry.value, before.offset, before.value))
    assert list(history.violations()) == refused


def test_the_static_set_is_in_force_and_at_no_offset() -> None:
    """Until a set was read the static one is the last value, and lookups give none; truncation goes back to it."""
    history = VoterSetHistory(voters(1, 2, 3))
    history.truncate_new_entries(0)
    history.truncate_old_entries(5)
    assert history.last_value() == history.static_voters == voters(1, 2, 3)
    assert history.last_voter_set_offset() is None
    assert history.value_at_or_before(100) is None
    history.add(4, voters(7))
    assert (history.last_value(), history.last_voter_set_offset()) == (voters(7), 4)
    assert (history.value_at_or_before(3), history.value_at_or_before(4)) == (None, voters(7))
    history.truncate_new_entries(4)
    assert (history.last_value(), history.last_voter_set_offset()) == (voters(1, 2, 3), None)


def test_no_static_set_is_the_empty_one() -> None:
    """Without configuration nobody votes."""
    assert VoterSetHistory(VoterSet()).last_value() == VoterSet()


@pytest.mark.parametrize("offset", [-1, 0])
def test_the_bootstrap_set_binds_nobody(offset: int) -> None:
    """What stands at -1 may be followed by any set; what stands at 0 may not."""
    history = VoterSetHistory(VoterSet())
    history.add(offset, voters(1, 2, 3))
    assert history.last_voter_set_offset() == offset
    if offset == -1:
        history.add(5, voters(4, 5))
    else:
        with pytest.raises(NoOverlappingMajorityError, match="common voter"):
            history.add(5, voters(4, 5))


@pytest.mark.parametrize(
    ("before", "after", "is_taken"),
    [
        ((1, 2, 3), (1, 2, 3, 4), True),
        ((1, 2, 3), (2, 3), True),
        ((1, 2), (1,), True),
        ((1, 2), (1, 3), True),
        ((1,), (2,), False),
        ((1, 2, 3), (1, 2, 4), False),
        ((1, 2, 3, 4, 5), (1, 2, 3, 4, 6), False),
        ((1, 2, 3), (1, 2, 3, 4, 5), False),
    ],
)
def test_swaps_in_odd_sets_are_refused(before: tuple[int, ...], after: tuple[int, ...], is_taken: bool) -> None:
    """Kafka's guard lets one voter be swapped for another; majorities of an odd set can then decide apart."""
    history = VoterSetHistory(VoterSet())
    history.add(0, voters(*before))
    if is_taken:
        history.add(1, voters(*after))
    else:
        with pytest.raises(NoOverlappingMajorityError):
            history.add(1, voters(*after))
        assert history.last_entry() == HistoryEntry(0, voters(*before))
        history.truncate_new_entries(0)
        history.add(0, voters(*after))


def test_equal_sets_in_a_row_are_one_object() -> None:
    """A set that is said again is not kept again."""
    history = VoterSetHistory(VoterSet())
    for offset in range(5):
        history.add(offset, VoterSet.of(voters(1, 2).voters.values()))
    assert len({id(entry.value) for entry in history.entries()}) == 1


def test_offsets_that_do_not_grow_are_refused() -> None:
    """Also for the same set."""
    history = VoterSetHistory(VoterSet())
    history.add(3, voters(1))
    with pytest.raises(NonContiguousAppendError):
        history.add(3, voters(1))


def test_a_violation_in_a_strict_history_is_found_out() -> None:
    """The check of the invariants sees what ``add`` should have refused."""
    history = VoterSetHistory(VoterSet())
    history.add(0, voters(1))
    vars(history)["_values"][1] = voters(2)
    with pytest.raises(InvariantViolation, match=r"voters \{2:.*common voter"):
        history.check_invariants()
