# SPDX-License-Identifier: Apache-2.0
"""Events happen in the order of their times."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.testing.simulator import timeline as timeline_module
from raftlog.testing.simulator.timeline import Timeline
from raftlog.testing.simulator.violation import ViolationError


@given(st.lists(st.integers(0, 20), max_size=30))
def test_events_happen_in_order(delays: list[int]) -> None:
    """By time, and events of one time in the order of their addition."""
    timeline, seen = Timeline(), list[tuple[int, int]]()
    for number, delay_ms in enumerate(delays):
        timeline.after(delay_ms, lambda each=number: seen.append((timeline.now_ms, each)))
    timeline.run(20)
    assert seen == sorted((delay_ms, number) for number, delay_ms in enumerate(delays))
    assert (timeline.now_ms, timeline.event_count) == (20, len(delays))


def test_the_end_is_inclusive() -> None:
    """An event at the end happens, and one after it does not yet."""
    timeline, seen = Timeline(), list[int]()
    for delay_ms in (4, 5, 6):
        timeline.after(delay_ms, seen.append, delay_ms)
    timeline.run(5)
    assert seen == [4, 5]
    timeline.run(6)
    assert seen == [4, 5, 6]


def test_a_run_ends_when_something_holds() -> None:
    """The condition is asked after each event."""
    timeline, seen = Timeline(), list[int]()
    for delay_ms in (1, 2, 3):
        timeline.after(delay_ms, seen.append, delay_ms)
    timeline.run(10, lambda: len(seen) == 2)
    assert (seen, timeline.now_ms) == ([1, 2], 2)


def test_a_loop_without_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event that always causes another one at the same time is a violation."""
    monkeypatch.setattr(timeline_module, "MAX_EVENTS_AT_ONCE", 10)
    timeline = Timeline()

    def again() -> None:
        timeline.after(0, again)

    again()
    with pytest.raises(ViolationError, match="no-busy-loop"):
        timeline.run(1)
    assert timeline.event_count == 9
