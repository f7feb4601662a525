# SPDX-License-Identifier: Apache-2.0
"""Requests and responses in which one field has another value, to a replica in each role.

Whatever a peer sends, no exception leaves the core, and no invariant breaks: the core checks its own, and the store
refuses an election state that takes back a vote.
"""

import uuid
from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import RaftLogError
from raftlog.records.messages.raft.raft_messages import RaftMessage, read_rpc, write_rpc
from raftlog.records.messages.schema import message_types
from tests.quorum.bad_input.replicas import REPLICAS
from tests.quorum.bad_input.test_bad_requests import RIGHT as REQUESTS
from tests.quorum.bad_input.test_bad_responses import RIGHT as RESPONSES
from tests.quorum.single_replica import SingleReplica

NUMBERS = (-(2**31), -2, -1, 0, 1, 2, 3, 4, 5, 6, 9, 10, 127, 2**15 - 1, 2**31 - 1, 2**32, 2**63 - 1)
VALUES: dict[type, st.SearchStrategy[Any]] = {
    int: st.sampled_from(NUMBERS),
    str: st.sampled_from(("", " ", "other", "CONTROLLER", "controller", "__cluster_metadata", "x" * 1000)),
    bool: st.booleans(),
    uuid.UUID: st.sampled_from([uuid.UUID(int=0), *(uuid.UUID(int=each << 64 | each) for each in (1, 2, 3, 9))]),
    bytes: st.binary(max_size=200),
}
STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 8), st.integers(0, 99), st.data()), min_size=1, max_size=4)


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every field of a message, and to every list in it."""
    if isinstance(value, tuple):
        yield path
        for index, each in enumerate(value):
            yield from paths(each, (*path, index))
    elif attrs.has(type(value)):
        for field in attrs.fields(type(value)):
            if field.name != "unknown_tags":
                yield from paths(getattr(value, field.name), (*path, field.name))
    else:
        yield path


def value_at(value: Any, path: tuple[Any, ...]) -> Any:
    """Return what is at the end of a way into a message."""
    for step in path:
        value = value[step] if isinstance(step, int) else getattr(value, step)
    return value


def with_value(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return a message with another value at the end of a way into it."""
    if not path:
        return new
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        return (*value[:step], with_value(value[step], rest, new), *value[step + 1 :])
    return attrs.evolve(value, **{step: with_value(getattr(value, step), rest, new)})


@st.composite
def mutated(draw: st.DrawFn, message: RaftMessage) -> RaftMessage:
    """Return a message in which one field has another value, or a list is empty or has each element twice."""
    every = list(paths(message))
    path = every[draw(st.integers(0, len(every) - 1))]
    old = value_at(message, path)
    if isinstance(old, tuple):
        new = draw(st.sampled_from(((), old * 2)))
    else:
        kind = bool if isinstance(old, bool) else next((each for each in VALUES if isinstance(old, each)), bytes)
        new = draw(VALUES[kind])
    changed: RaftMessage = with_value(message, path, new)
    return changed


def as_sent(message: RaftMessage) -> RaftMessage | None:
    """Return a message as a peer gets it; None if it cannot be sent, because a value does not fit in its field."""
    version = message_types("raft-rpcs")[type(message).__name__].versions.highest
    try:
        return read_rpc(type(message), write_rpc(message, version), version)
    except (RaftLogError, ValueError, OverflowError):
        return None


class Watched:
    """A replica, what must not go back in it, and how many messages it was given.

    Args:
        core: the replica.
    """

    def __init__(self, core: SingleReplica) -> None:
        self.core = core
        self.given = 0
        self._before = self._pointers()

    def _pointers(self) -> tuple[int, int]:
        return self.core.raft.role.epoch, self.core.raft._replica.committed_offset

    def check(self) -> None:
        """Check that the epoch and what is committed have not gone back, and that the log has what is committed."""
        raft, log, after = self.core.raft, self.core.log, self._pointers()
        assert all(now >= before for now, before in zip(after, self._before, strict=True))
        assert log.high_watermark.offset <= log.end_offset.offset
        assert after[1] <= log.end_offset.offset
        if raft.halt_reason is None:
            assert self.core.stored is None or self.core.stored.leader_epoch == raft.role.epoch
        self._before = after

    def request(self, message: RaftMessage) -> None:
        """Deliver a request in its latest version; it is answered once, unless it waits."""
        self.given += 1
        version = message_types("raft-rpcs")[type(message).__name__].versions.highest
        self.core.request(self.given, message, version)  # type: ignore[arg-type]
        assert len([each for each in self.core.take_responses() if each.token == self.given]) <= 1

    def respond(self, number: int, message: RaftMessage) -> None:
        """Deliver a response to a request."""
        self.core.respond(number, message)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", REPLICAS)
@given(steps=STEPS)
def test_a_peer_can_break_nothing_by_what_it_sends(name: str, steps: list[tuple[bool, int, int, Any]]) -> None:
    """One to four messages with a wrong field each, while time passes: requests, and responses to what was asked."""
    watched = Watched(REPLICAS[name]())
    for is_request, kind, ms, data in steps:
        sent = watched.core.requests[kind % len(watched.core.requests)] if watched.core.requests else None
        right: Any = list(REQUESTS.values())[kind][1]
        if sent is not None and not is_request:
            right = RESPONSES[type(sent.message)][1]
        message = as_sent(data.draw(mutated(right)))
        if message is None:
            continue
        if sent is None or is_request:
            watched.request(message)
        else:
            watched.respond(sent.number, message)
        watched.check()
        watched.core.sleep(ms * 40)
        watched.check()
