# SPDX-License-Identifier: Apache-2.0
"""The counts of ``make crashes``."""

from raftlog.testing.crash_points import CrashCounts
from tests.faults.crash_count import CrashCounter


def test_counts_are_added_up_by_level() -> None:
    """Enumerations of one crash and of two; one that was not complete shows in the sum."""
    counter = CrashCounter()
    counter.counts["a"] += [CrashCounts(3, 4, (10,), True), CrashCounts(1, 2, (5, 7), True)]
    counter.counts["b"] += [CrashCounts(1, 1, (1,), False)]
    assert counter.lines() == [
        "a: 4 steps, 6 crash points, 15, then 7 states (all of the space)",
        "b: 1 steps, 1 crash points, 1 states (a part of the space)",
        "all: 5 steps, 7 crash points, 16, then 7 states (a part of the space)",
    ]


def test_what_is_returned_is_counted() -> None:
    """And handed on as it is."""
    counter = CrashCounter()
    counts = CrashCounts(3, 4, (10,), True)
    assert counter.counting(lambda value: value)(counts) is counts
    assert list(counter.counts.values()) == [[counts]]
