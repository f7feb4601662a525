# SPDX-License-Identifier: Apache-2.0
"""Visits every state of the model, nearest first, and stops at the first broken invariant.

States that were visited are kept whole, as packed bytes: no two are taken for one.
"""

import gc
import resource
from collections.abc import Collection
from struct import Struct

import attrs

from tests.model.properties import INVARIANTS
from tests.model.protocol import Protocol, State, Transition


@attrs.frozen
class Exploration:
    """The outcome of a run.

    Attributes:
        states: number of distinct states.
        steps: number of steps between them, each counted once.
        depth: of the farthest state, in steps from the first.
        is_complete: whether every state within the bounds was visited: nothing was stopped early.
        fault: the invariant that is broken; None if there is none.
        path: the steps to the broken state, a shortest way; empty without a fault.
        seconds: processor time.
        memory_bytes: the most that the process has held so far.
    """

    states: int
    steps: int
    depth: int
    is_complete: bool
    fault: str | None
    path: tuple[Transition, ...]
    seconds: float
    memory_bytes: int


def explore(
    protocol: Protocol,
    *,
    most_states: int | None = None,
    most_depth: int | None = None,
    invariants: Collection[str] = INVARIANTS,
) -> Exploration:
    """Visit the states of a protocol.

    Args:
        protocol: the model within bounds.
        most_states: number of states at which the run stops early; None for no limit.
        most_depth: number of steps from the first state at which it stops early; None for no limit.
        invariants: the ones that are checked.
    """
    started = _processor_seconds()
    gc.disable()  # Nothing here is a cycle, and millions of tuples would be looked at again and again.
    try:
        found = _Search(protocol, invariants)
        is_complete = found.run(most_states, most_depth)
    finally:
        gc.enable()
    fault: str | None = None
    path: tuple[Transition, ...] = ()
    if found.broken is not None:
        fault, path = found.broken[0], tuple(_path(protocol, found.depth, found.broken[1]))
    seconds = _processor_seconds() - started
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Exploration(found.states, found.steps, found.depth, is_complete, fault, path, seconds, memory)


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class _Search:
    """A breadth-first search, level by level."""

    def __init__(self, protocol: Protocol, invariants: Collection[str]) -> None:
        self.protocol, self.invariants = protocol, frozenset(invariants)
        self.steps = self.depth = 0
        self.broken: tuple[str, Transition] | None = None
        self._packers: dict[int, Struct] = {}
        first = protocol.initial()
        self._visited = {self._pack(first)}
        self._level: list[State] = [first]

    @property
    def states(self) -> int:
        return len(self._visited)

    def run(self, most_states: int | None, most_depth: int | None) -> bool:
        """Search to the end, and return True; or stop at a fault, or beyond a number of states or steps."""
        while self._level:
            if self.depth == most_depth:
                return False
            following: list[State] = []
            for state in self._level:
                self._expand(state, following)
                if self.broken is not None or (most_states is not None and self.states > most_states):
                    self.depth += 1
                    return False
            self._level = following
            self.depth += bool(following)
        return True

    def _expand(self, state: State, following: list[State]) -> None:
        visited, pack = self._visited, self._pack
        for transition in self.protocol.expand(state):
            self.steps += 1
            faults, packed = transition.faults, pack(transition.state)
            if packed not in visited:
                visited.add(packed)
                following.append(transition.state)
                faults += self.protocol.faults(transition.state, transition.mover)
            if faults:
                for fault in faults:
                    if fault in self.invariants:
                        self.broken = (fault, transition)
                        return

    def _pack(self, state: State) -> bytes:
        packer = self._packers.get(len(state))
        if packer is None:
            packer = self._packers[len(state)] = Struct(f"{len(state)}H")
        return packer.pack(*state)


def _path(protocol: Protocol, depth: int, last: Transition) -> list[Transition]:
    """Search again for a state whose depth is known, and keep how each state was reached."""
    first = protocol.initial()
    reached: dict[State, tuple[State, Transition] | None] = {first: None}
    level = [first]
    for _ in range(depth):
        following = []
        for state in level:
            for transition in protocol.expand(state):
                is_last = transition == last
                if transition.state not in reached or is_last:
                    reached.setdefault(transition.state, (state, transition))
                    following.append(transition.state)
                if is_last:
                    return [*_way(reached, state), transition]
        level = following
    raise AssertionError("a state was reached, and is not found again")


def _way(reached: dict[State, tuple[State, Transition] | None], state: State) -> list[Transition]:
    way = []
    while (step := reached[state]) is not None:
        state, transition = step
        way.append(transition)
    return way[::-1]
