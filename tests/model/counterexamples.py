# SPDX-License-Identifier: Apache-2.0
"""Prints a counterexample: each step, and the replica that it changes."""

from collections.abc import Iterable

from tests.model.logs import log_text
from tests.model.messages import message_text
from tests.model.protocol import Protocol, State, Transition
from tests.model.replica import Replica, replica_text


def path_text(protocol: Protocol, path: Iterable[Transition]) -> str:
    """Return steps as lines, with all replicas and messages of the last state."""
    lines, last = [], protocol.initial()
    for number, step in enumerate(path, 1):
        lines.append(f"{number:3}. {step.mover} {step.label}")
        if step.state[step.mover] != last[step.mover]:
            lines.append(f"       {_text(protocol.replicas.values[step.state[step.mover]])}")
        last = step.state
    return "\n".join([*lines, "     at the end", *state_lines(protocol, last)])


def state_lines(protocol: Protocol, state: State) -> list[str]:
    """Return a state, a line for each replica and message, and one for what is committed."""
    size = protocol.size
    replicas = [f"       {_text(protocol.replicas.values[each])}" for each in state[:size]]
    committed = protocol.histories.values[state[size]].committed
    messages = [f"       in the network: {message_text(protocol.messages.values[each])}" for each in state[size + 1 :]]
    return [*replicas, f"       committed: {log_text(committed, 0, -1)}", *messages]


def _text(replica: Replica) -> str:
    return replica_text(replica, log_text(replica.log, replica.start, replica.flushed))
