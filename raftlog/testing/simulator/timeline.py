# SPDX-License-Identifier: Apache-2.0
"""Virtual time: events in a queue, executed in the order of their times."""

import heapq
from collections.abc import Callable
from typing import Any, Final

from raftlog.testing.simulator.story import Story
from raftlog.testing.simulator.violation import check

MAX_EVENTS_AT_ONCE: Final = 20_000
"""How many events may happen in one millisecond; more are a loop without delay."""


class Timeline:
    """Events that are due, and the present time, in ms. Events of one time happen in the order of their addition.

    Attributes:
        now_ms: the time of the event that happens now.
        event_count: how many events have happened.
        trace: a number that depends on all events so far: two runs of a seed have the same.
        story: takes down what happens; None for a run that nobody looks at.
    """

    def __init__(self) -> None:
        self.now_ms = 0
        self.event_count = 0
        self.trace = 0
        self.story: Story | None = None
        self._events: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._last_number = 0
        self._count_at_once = 0

    def after(self, delay_ms: int, event: Callable[..., None], *arguments: Any) -> None:
        """Add an event that happens after a delay, of 0 or more."""
        self._last_number += 1
        heapq.heappush(self._events, (self.now_ms + delay_ms, self._last_number, event, arguments))

    def run(self, end_ms: int, is_done: Callable[[], bool] | None = None) -> None:
        """Let events happen up to a time, inclusive, or until something holds after one of them."""
        events, pop = self._events, heapq.heappop
        while events and events[0][0] <= end_ms:
            time_ms, _, event, arguments = pop(events)
            if time_ms == self.now_ms:
                self._count_at_once += 1
                check(self._count_at_once < MAX_EVENTS_AT_ONCE, "no-busy-loop", "at {} ms: {}", time_ms, event)
            else:
                self.now_ms, self._count_at_once = time_ms, 0
            self.event_count += 1
            event(*arguments)
            if is_done is not None and is_done():
                return
        self.now_ms = max(self.now_ms, end_ms)

    def note(self, *numbers: int) -> None:
        """Let the trace depend on some numbers, and on the time."""
        self.trace = hash((self.trace, self.now_ms, numbers))
