# SPDX-License-Identifier: Apache-2.0
"""All that a consensus core knows, as a value that can be compared: that nothing has changed means nothing at all."""

from collections import deque
from collections.abc import Mapping, Set
from types import FunctionType, MethodType
from typing import Any

from raftlog.quorum.raft import Raft

_PLAIN = (int, float, str, bytes, bool, type(None), type, FunctionType, MethodType)


def whole_state(raft: Raft) -> object:
    """Return the state of a core, down to numbers and bytes, with the effects that it has not handed out yet."""
    return _copied(raft._replica, {})


def state_without_numbers(raft: Raft) -> object:
    """Return the state without the number that the last effect had: answering a request uses one up."""
    outbox = raft._replica.outbox
    last, outbox._last_number = outbox._last_number, 0
    found = whole_state(raft)
    outbox._last_number = last
    return found


def state_without(raft: Raft, *names: str) -> object:
    """Return the state without some attributes of the replica."""
    replica = raft._replica
    return [(name, _copied(getattr(replica, name), {})) for name in _names(replica) if name not in names]


def _copied(value: Any, seen: dict[int, int]) -> object:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if id(value) in seen:
        return "seen", seen[id(value)]
    seen[id(value)] = len(seen)
    if isinstance(value, Mapping):
        return type(value), [(_copied(key, seen), _copied(each, seen)) for key, each in value.items()]
    if isinstance(value, Set):
        return type(value), frozenset(map(repr, value))
    if isinstance(value, list | tuple | deque):
        return type(value), [_copied(each, seen) for each in value]
    return type(value), [(name, _copied(getattr(value, name), seen)) for name in _names(value)]


def _names(value: Any) -> list[str]:
    """Return the names of an object's attributes, in whatever way it keeps them."""
    slots = [name for kind in type(value).__mro__ for name in vars(kind).get("__slots__", ())]
    found = [*vars(value)] if hasattr(value, "__dict__") else []
    return sorted({each for each in (*slots, *found) if each != "__weakref__" and hasattr(value, each)})
