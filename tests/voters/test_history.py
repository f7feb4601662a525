# SPDX-License-Identifier: Apache-2.0
"""Histories by example."""

import pytest

from raftlog.errors import InvariantViolation, NonContiguousAppendError
from raftlog.voters.history import HistoryEntry, TreeMapLogHistory


def history_of(*offsets: int) -> TreeMapLogHistory[str]:
    """Make a history whose values name their offsets."""
    history: TreeMapLogHistory[str] = TreeMapLogHistory()
    for offset in offsets:
        history.add(offset, f"at {offset}")
    return history


def offsets_of(history: TreeMapLogHistory[str]) -> list[int]:
    """Return the offsets of all entries."""
    return [entry.offset for entry in history.entries()]


def test_an_empty_history_knows_nothing() -> None:
    """Without an entry there is no value anywhere, and nothing to truncate."""
    history = history_of()
    assert history.last_entry() is None
    assert history.value_at_or_before(2**63 - 1) is None
    history.truncate_new_entries(0)
    history.truncate_old_entries(0)
    assert len(history) == 0


def test_a_value_is_in_force_up_to_the_next_one() -> None:
    """A lookup gives the value of the last entry that is not above the offset."""
    history = history_of(-1, 5, 9)
    wanted = {-2: None, -1: "at -1", 4: "at -1", 5: "at 5", 8: "at 5", 9: "at 9", 2**63 - 1: "at 9"}
    assert {offset: history.value_at_or_before(offset) for offset in wanted} == wanted
    assert history.last_entry() == HistoryEntry(9, "at 9")


@pytest.mark.parametrize(("offsets", "next_offset"), [((), -2), ((-1,), -1), ((0, 7), 7), ((0, 7), 3)])
def test_offsets_grow_from_minus_1_on(offsets: tuple[int, ...], next_offset: int) -> None:
    """An entry below -1, or not above the last one, is refused, and changes nothing."""
    history = history_of(*offsets)
    with pytest.raises(NonContiguousAppendError):
        history.add(next_offset, "late")
    assert offsets_of(history) == list(offsets)


@pytest.mark.parametrize(
    ("start_offset", "kept"),
    [(-5, [-1, 5, 9]), (4, [-1, 5, 9]), (5, [5, 9]), (8, [5, 9]), (9, [9]), (100, [9])],
)
def test_old_entries_go_but_for_the_one_in_force(start_offset: int, kept: list[int]) -> None:
    """The value in force at the offset stays, as in Kafka."""
    history = history_of(-1, 5, 9)
    history.truncate_old_entries(start_offset)
    assert offsets_of(history) == kept


@pytest.mark.parametrize(("end_offset", "kept"), [(10, [-1, 5, 9]), (9, [-1, 5]), (5, [-1]), (0, [-1]), (-1, [])])
def test_new_entries_go_from_the_end_on(end_offset: int, kept: list[int]) -> None:
    """An entry at the end offset itself is removed; lower offsets may then be added again."""
    history = history_of(-1, 5, 9)
    history.truncate_new_entries(end_offset)
    assert offsets_of(history) == kept
    history.add(max(end_offset, 0), "again")


def test_a_broken_history_is_found_out() -> None:
    """The check of the invariants sees an offset below -1."""
    history = history_of(1)
    vars(history)["_values"][-2] = "by force"
    with pytest.raises(InvariantViolation):
        history.check_invariants()
