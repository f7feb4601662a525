# SPDX-License-Identifier: Apache-2.0
"""Histories of voter sets: what may follow what, by property and by example."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import InvariantViolation, NonContiguousAppendError
from raftlog.voters.history import HistoryEntry
from raftlog.voters.voter_set import Endpoints, SupportedVersionRange, VoterSet
from raftlog.voters.voter_set_change import VoterSetProblem
from raftlog.voters.voter_set_history import VoterSetHistory, VoterSetViolation
from tests.log.control_batches import voters

NO_OVERLAP, TOO_MANY = VoterSetProblem.NO_OVERLAPPING_MAJORITY, VoterSetProblem.TOO_MANY_CHANGES
STATIC = voters(9)


def moved(value: VoterSet, port: int, versions: tuple[int, int] = (0, 1)) -> VoterSet:
    """The same voters, who listen at another port and support other versions."""
    endpoints, supported = Endpoints.of({"CONTROLLER": ("localhost", port)}), SupportedVersionRange(*versions)
    return VoterSet.of(
        attrs.evolve(node, listeners=endpoints, supported_kraft_versions=supported) for node in value.voters.values()
    )


voter_sets = st.builds(
    moved,
    st.lists(st.integers(1, 5), max_size=5).map(lambda ids: voters(*sorted(set(ids)))),
    st.sampled_from([9000, 9001]),
    st.sampled_from([(0, 1), (1, 1)]),
)
additions = st.lists(st.tuples(st.integers(1, 3), voter_sets), max_size=12)


def judged(before: HistoryEntry[VoterSet] | None, value: VoterSet) -> tuple[VoterSetProblem, ...]:
    """Return the problems of a set after another, by the two predicates."""
    if not value:
        return (VoterSetProblem.EMPTY,)
    if before is None or before.offset < 0:
        return ()
    fails = {
        NO_OVERLAP: not before.value.has_overlapping_majority(value),
        TOO_MANY: not before.value.passes_kafka_change_guard(value),
    }
    return tuple(problem for problem, does_fail in fails.items() if does_fail)


@given(additions, st.integers(-1, 1), st.data())
def test_every_set_is_taken_and_what_is_wrong_is_named(
    steps: list[tuple[int, VoterSet]], first: int, data: st.DataObject
) -> None:
    """Each set but an empty one is in force as it was read, to the last port; violations go as entries do."""
    history = VoterSetHistory(STATIC)
    entries: list[HistoryEntry[VoterSet]] = []
    violations: list[VoterSetViolation] = []
    offset = first
    for gap, value in steps:
        before = entries[-1] if entries else None
        history.add(offset, value)
        if problems := judged(before, value):
            previous_offset, previous = (before.offset, before.value) if before else (None, STATIC)
            violations.append(VoterSetViolation(offset, value, previous_offset, previous, problems))
        if value:
            entries.append(HistoryEntry(offset, value))
        assert history.last_value() == (entries[-1].value if entries else STATIC)
        history.check_invariants()
        offset += gap
    assert list(history.entries()) == entries
    assert history.violations() == tuple(violations)
    end, start = data.draw(st.integers(-1, offset)), data.draw(st.integers(-1, offset))
    history.truncate_new_entries(end)
    assert history.violations() == tuple(each for each in violations if each.offset < end)
    history.truncate_old_entries(start)
    assert history.violations() == tuple(each for each in violations if start < each.offset < end)
    history.clear()
    assert (history.violations(), history.last_value()) == ((), STATIC)


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
    """Without configuration there are no voters."""
    assert VoterSetHistory(VoterSet()).last_value() == VoterSet()


@pytest.mark.parametrize("offset", [-1, 0])
def test_the_bootstrap_set_restricts_no_change(offset: int) -> None:
    """Any set may follow one at -1, but not one at 0."""
    history = VoterSetHistory(VoterSet())
    history.add(offset, voters(1, 2, 3))
    assert history.last_voter_set_offset() == offset
    history.add(5, voters(4, 5))
    assert [each.problems for each in history.violations()] == ([] if offset == -1 else [(NO_OVERLAP, TOO_MANY)])


@pytest.mark.parametrize(
    ("before", "after", "problems"),
    [
        ((1, 2, 3), (1, 2, 3, 4), ()),
        ((1, 2, 3), (2, 3), ()),
        ((1, 2), (1,), ()),
        ((1, 2), (1, 3), ()),
        ((1, 2), (1, 2, 3, 4), (TOO_MANY,)),
        ((1,), (2,), (NO_OVERLAP,)),
        ((1, 2, 3), (1, 2, 4), (NO_OVERLAP,)),
        ((1, 2, 3, 4, 5), (1, 2, 3, 4, 6), (NO_OVERLAP,)),
        ((1, 2, 3), (1, 2, 3, 4, 5), (NO_OVERLAP, TOO_MANY)),
        ((1, 2, 3), (), (VoterSetProblem.EMPTY,)),
    ],
)
def test_swaps_in_odd_sets_are_violations(
    before: tuple[int, ...], after: tuple[int, ...], problems: tuple[VoterSetProblem, ...]
) -> None:
    """Kafka's guard lets one voter be swapped for another; majorities of an odd set can then decide apart."""
    history = VoterSetHistory(VoterSet())
    history.add(0, voters(*before))
    history.add(1, voters(*after))
    assert history.last_value() == voters(*(after or before))
    assert [each.problems for each in history.violations()] == ([problems] if problems else [])


def test_an_empty_set_does_not_come_into_force_and_does_not_wash_away_what_binds() -> None:
    """After {1, 2, 3} and {}, {4, 5, 6} is compared with {1, 2, 3}."""
    history = VoterSetHistory(STATIC)
    history.add(0, VoterSet())
    assert (history.last_value(), history.last_voter_set_offset()) == (STATIC, None)
    assert history.violations() == (VoterSetViolation(0, VoterSet(), None, STATIC, (VoterSetProblem.EMPTY,)),)
    history.add(1, voters(1, 2, 3))
    history.add(2, VoterSet())
    assert (history.last_value(), history.last_voter_set_offset()) == (voters(1, 2, 3), 1)
    history.add(3, voters(4, 5, 6))
    found = history.violations()[-1]
    assert (found.offset, found.previous_offset, found.problems) == (3, 1, (NO_OVERLAP, TOO_MANY))
    assert str(found).startswith("offset 3, voters of offset 1: voters {4:")
    assert str(history.violations()[0]).startswith("offset 0, static voters: voters {} after {9:")


def test_equal_sets_in_a_row_are_one_object() -> None:
    """A set that is said again is not kept again."""
    history = VoterSetHistory(VoterSet())
    for offset in range(5):
        history.add(offset, VoterSet.of(voters(1, 2).voters.values()))
    assert len({id(entry.value) for entry in history.entries()}) == 1


@pytest.mark.parametrize("first", [voters(1), VoterSet()])
@pytest.mark.parametrize("second", [voters(1), voters(2), VoterSet()])
def test_offsets_that_do_not_grow_are_refused(first: VoterSet, second: VoterSet) -> None:
    """Also for the same set, and for an empty one, which is not an entry."""
    history = VoterSetHistory(VoterSet())
    with pytest.raises(NonContiguousAppendError):
        history.add(-2, first)
    history.add(3, first)
    for offset in (2, 3):
        with pytest.raises(NonContiguousAppendError):
            history.add(offset, second)
    history.add(4, second)


def test_impossible_values_are_found() -> None:
    """The check of the invariants sees an empty set in force, and violations out of order."""
    history = VoterSetHistory(VoterSet())
    history.add(0, voters(1))
    vars(history)["_values"][1] = VoterSet()
    with pytest.raises(InvariantViolation, match="empty"):
        history.check_invariants()
    history = VoterSetHistory(VoterSet())
    history.add(0, VoterSet())
    vars(history)["_violations"] *= 2
    with pytest.raises(InvariantViolation, match="order"):
        history.check_invariants()
