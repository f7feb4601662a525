# SPDX-License-Identifier: Apache-2.0
"""A network that loses, duplicates, delays and reorders messages, and that is cut between some machines."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from raftlog.testing.simulator.choices import Choices
from raftlog.testing.simulator.fault_plan import FaultPlan
from raftlog.testing.simulator.timeline import Timeline


class Network:
    """Carries messages between machines, which are named by their ids.

    Args:
        timeline: of the simulation.
        choices: what happens to messages.
        plan: which faults there are.
        injected: counts them, by kind.

    Attributes:
        delivered: how many messages have arrived.
        lost: how many were lost, or stopped by a cut.
        cuts: the pairs of sender and receiver that are cut.
        is_healed: whether the network is perfect from now on, except for delays.
    """

    def __init__(self, timeline: Timeline, choices: Choices, plan: FaultPlan, injected: Counter[str]) -> None:
        self._timeline = timeline
        self._choices = choices
        self._plan = plan
        self._injected = injected
        self.delivered = 0
        self.lost = 0
        self.cuts: set[tuple[int, int]] = set()
        self.is_healed = False

    def send(self, sender: int, receiver: int, deliver: Callable[..., None], *arguments: Any) -> None:
        """Have a function called when a message arrives: never, once, or twice."""
        plan, choices, story = self._plan, self._choices, self._timeline.story
        number = 0
        if story is not None:
            number = story.sent(self._timeline.now_ms, sender, receiver, deliver.__name__, arguments)
        copies = 1
        if not self.is_healed:
            if choices.happens(plan.loss, "loss", sender, receiver):
                self._injected["loss"] += 1
                self._lose(sender, receiver, number, deliver, arguments)
                return
            if choices.happens(plan.duplication, "duplicate", sender, receiver):
                self._injected["duplicate"] += 1
                copies = 2
        for _ in range(copies):
            self._timeline.after(
                self._delay_ms(sender, receiver), self._arrive, sender, receiver, number, deliver, arguments
            )

    def _delay_ms(self, sender: int, receiver: int) -> int:
        mean = self._plan.delay_ms
        if self._plan.is_delay_even or self.is_healed:
            return int(mean * (0.5 + self._choices.fraction(0.5, "even-delay", sender, receiver)))
        return self._choices.time_ms(mean, "delay", sender, receiver)

    def _arrive(
        self, sender: int, receiver: int, number: int, deliver: Callable[..., None], arguments: tuple[Any, ...]
    ) -> None:
        if (sender, receiver) in self.cuts:
            self._lose(sender, receiver, number, deliver, arguments)
            return
        self.delivered += 1
        story = self._timeline.story
        if story is not None:
            story.arrived(self._timeline.now_ms, sender, receiver, number, deliver.__name__, arguments)
        deliver(*arguments)

    def _lose(
        self, sender: int, receiver: int, number: int, deliver: Callable[..., None], arguments: tuple[Any, ...]
    ) -> None:
        self.lost += 1
        story = self._timeline.story
        if story is not None:
            story.lost(self._timeline.now_ms, sender, receiver, number, deliver.__name__, arguments)

    def cut(self, one_side: set[int], other_side: set[int], *, is_one_way: bool) -> None:
        """Stop messages between two groups of machines, or only those from the first to the second."""
        if self._timeline.story is not None:
            way = "from" if is_one_way else "between"
            words = f"is cut {way} {sorted(one_side)} {'to' if is_one_way else 'and'} {sorted(other_side)}"
            self._timeline.story.fault(self._timeline.now_ms, 0, words)
        self._injected["one-way-cut" if is_one_way else "cut"] += 1
        pairs = {(one, other) for one in one_side for other in other_side}
        self.cuts |= pairs if is_one_way else pairs | {(other, one) for one, other in pairs}

    def heal(self) -> None:
        """End all cuts."""
        if self.cuts and self._timeline.story is not None:
            self._timeline.story.fault(self._timeline.now_ms, 0, "is whole again")
        self.cuts.clear()
