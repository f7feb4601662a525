# SPDX-License-Identifier: Apache-2.0
"""A run as a trace in the Informal Trace Format, for model checkers that are not ours.

A state has a map per variable, from the ids of the replicas: ``role`` (``stopped`` without a process), ``epoch``,
``end`` and ``durableEnd`` (of the log, exclusive), ``highWatermark`` (0 if unknown); and ``timeMs``, in virtual time.

Source: the Informal Trace Format of Apalache (ADR 015).
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from raftlog.testing.simulator.story import ReplicaState

_MAPS: Final = {
    "role": "role",
    "epoch": "epoch",
    "end": "end",
    "durableEnd": "durable_end",
    "highWatermark": "high_watermark",
}
"""The attributes of a replica's state, by the names of variables."""


def itf_trace(states: Sequence[ReplicaState], replicas: Sequence[int], description: str) -> str:
    """Return the trace as JSON.

    Args:
        states: of the story: one each time that a replica's state has changed, in order.
        replicas: ids of all of them.
        description: what the trace is of.
    """
    trace = {
        "#meta": {"format": "ITF", "description": description},
        "vars": [*_MAPS, "timeMs"],
        "states": [
            {"#meta": {"index": index}, **variables} for index, variables in enumerate(_variables(states, replicas))
        ],
    }
    return json.dumps(trace)


def _variables(states: Sequence[ReplicaState], replicas: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield the variables: before the run, and after each change."""
    now = {each: ReplicaState(at_ms=0, replica=each) for each in replicas}
    yield _of(now, 0)
    for state in states:
        now[state.replica] = state
        yield _of(now, state.at_ms)


def _of(now: dict[int, ReplicaState], at_ms: int) -> dict[str, Any]:
    def map_of(name: str) -> dict[str, Any]:
        return {"#map": [[replica, getattr(state, name)] for replica, state in now.items()]}

    return {variable: map_of(name) for variable, name in _MAPS.items()} | {"timeMs": at_ms}
