# SPDX-License-Identifier: Apache-2.0
"""A network does to messages what its plan says, and no more."""

import random
from collections import Counter
from typing import Any

import attrs
import pytest

from raftlog.testing.simulator.choices import SeededChoices
from raftlog.testing.simulator.fault_plan import FaultPlan, draw_fault_plan
from raftlog.testing.simulator.network import Network
from raftlog.testing.simulator.timeline import Timeline

COUNT = 2000


def quiet_plan(**changes: Any) -> FaultPlan:
    """Return a plan without faults of the network, but for some changes."""
    plan = draw_fault_plan(random.Random(0))
    return attrs.evolve(plan, **({"loss": 0.0, "duplication": 0.0, "is_delay_even": True, "delay_ms": 10.0} | changes))


def arrivals(network: Network, timeline: Timeline) -> list[int]:
    """Send numbered messages from 1 to 2, and return the numbers in the order of their arrival."""
    seen: list[int] = []
    for number in range(COUNT):
        network.send(1, 2, seen.append, number)
    timeline.run(timeline.now_ms + 10_000)
    return seen


def made(**changes: Any) -> tuple[Network, Timeline]:
    """Return a network with some faults."""
    timeline = Timeline()
    return Network(timeline, SeededChoices(random.Random(1)), quiet_plan(**changes), Counter()), timeline


def test_without_faults() -> None:
    """Each message arrives once, some before others that were sent earlier, within the time of the plan."""
    network, timeline = made()
    seen = arrivals(network, timeline)
    assert sorted(seen) == list(range(COUNT))
    assert seen != sorted(seen)
    assert (network.delivered, network.lost) == (COUNT, 0)


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_losses(share: float) -> None:
    """About as many messages are lost as the plan says, until the network is healed."""
    network, timeline = made(loss=share)
    assert abs(COUNT - len(arrivals(network, timeline)) - COUNT * share) < COUNT / 20
    assert network.lost == COUNT - network.delivered
    network.is_healed = True
    assert len(arrivals(network, timeline)) == COUNT


def test_duplicates() -> None:
    """About as many messages arrive twice as the plan says, none three times."""
    network, timeline = made(duplication=0.25)
    seen = arrivals(network, timeline)
    assert abs(len(seen) - COUNT * 1.25) < COUNT / 20
    assert max(map(seen.count, range(0, COUNT, 50))) <= 2


@pytest.mark.parametrize("is_one_way", [True, False])
def test_cuts(is_one_way: bool) -> None:
    """A cut stops messages that are on their way, in one direction or both, until it is healed."""
    network, timeline = made()
    seen: list[str] = []
    for sender, receiver in ((1, 2), (2, 1), (1, 3)):
        network.send(sender, receiver, seen.append, f"{sender}{receiver}")
    network.cut({1}, {2}, is_one_way=is_one_way)
    timeline.run(100)
    assert set(seen) == ({"21", "13"} if is_one_way else {"13"})
    network.heal()
    assert len(arrivals(network, timeline)) == COUNT
