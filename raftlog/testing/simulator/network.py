# SPDX-License-Identifier: Apache-2.0
"""A network that loses, duplicates, delays and reorders messages, and that is cut between some machines."""

from collections.abc import Callable
from typing import Any

from raftlog.testing.simulator.chance import Chance, exponential_ms
from raftlog.testing.simulator.fault_plan import FaultPlan
from raftlog.testing.simulator.timeline import Timeline


class Network:
    """Carries messages between machines, which are named by their ids.

    Attributes:
        delivered: how many messages have arrived.
        lost: how many were lost, or stopped by a cut.
        cuts: the pairs of sender and receiver that are cut.
        is_healed: whether the network is perfect from now on, except for delays.
    """

    def __init__(self, timeline: Timeline, chance: Chance, plan: FaultPlan) -> None:
        self._timeline = timeline
        self._chance = chance
        self._plan = plan
        self.delivered = 0
        self.lost = 0
        self.cuts: set[tuple[int, int]] = set()
        self.is_healed = False

    def send(self, sender: int, receiver: int, deliver: Callable[..., None], *arguments: Any) -> None:
        """Have a function called when a message arrives: never, once, or twice."""
        plan, chance = self._plan, self._chance
        copies = 1
        if not self.is_healed:
            if chance.random() < plan.loss:
                self.lost += 1
                return
            copies += chance.random() < plan.duplication
        for _ in range(copies):
            self._timeline.after(self._delay_ms(), self._arrive, sender, receiver, deliver, arguments)

    def _delay_ms(self) -> int:
        mean = self._plan.delay_ms
        if self._plan.is_delay_even or self.is_healed:
            return int(mean * (0.5 + self._chance.random()))
        return exponential_ms(self._chance, mean)

    def _arrive(self, sender: int, receiver: int, deliver: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        if (sender, receiver) in self.cuts:
            self.lost += 1
            return
        self.delivered += 1
        deliver(*arguments)

    def cut(self, one_side: set[int], other_side: set[int], *, is_one_way: bool) -> None:
        """Stop messages between two groups of machines, or only those from the first to the second."""
        pairs = {(one, other) for one in one_side for other in other_side}
        self.cuts |= pairs if is_one_way else pairs | {(other, one) for one, other in pairs}

    def heal(self) -> None:
        """End all cuts."""
        self.cuts.clear()
