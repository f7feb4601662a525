# SPDX-License-Identifier: Apache-2.0
"""Comparisons of the consensus core: what a committed entry costs a leader and a follower."""

import contextlib
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

import attrs

from tests.benchmarks.line_process import LineProcess
from tests.benchmarks.measure import Comparison, Contender, Limit, Mode, environment
from tests.benchmarks.operations import Duration, Speed, Worker
from tests.benchmarks.works import Sizes

_SHAPE: Final = "small"
"""Of the records: values of 100 bytes."""
_VALUE_SIZE: Final = 100
_PEER: Final = "PySyncObj"
_ROUNDS: Final = 3
_LONGEST_ELECTION_S: Final = 30


@attrs.frozen
class Way:
    """How entries come.

    Attributes:
        id, what: for the rows.
        operation: that commits entries so.
        most_us: that one may cost the leader; None if there is no such goal. A follower may take half of it.
        peer_window: how many entries a peer has under way at once; None if it is not compared.
    """

    id: str
    what: str
    operation: str
    most_us: float | None = None
    peer_window: int | None = None


_WAYS: Final = (
    Way("64-in-one-call", "64 in one call", "raftlog lead in one call", 5),
    Way("64-in-64-calls", "64 in 64 calls", "raftlog lead in 64 calls", 8, 1024),
    Way("one-at-a-time", "one at a time", "raftlog lead one at a time", None, 1),
)


class QuorumFigures:
    """All comparisons of a quorum.

    Args:
        workers: a process for each mode.
        sizes: of the inputs.
    """

    def __init__(self, workers: Mapping[Mode, Worker], sizes: Sizes) -> None:
        self._worker = workers["compiled"]
        self._sizes = sizes

    def all(self) -> Iterator[tuple[str, Callable[[str], Comparison]]]:
        """Yield the start of the ids of their rows, and what makes a comparison, given that."""
        for way in _WAYS:
            yield f"commit-{way.id}", partial(self._leader, way)
            if way.most_us is not None:
                yield f"commit-follower-{way.id}", partial(self._follower, way, way.most_us / 2)

    def _leader(self, way: Way, row: str) -> Comparison:
        theirs: dict[str, Contender] = {}
        if way.most_us is not None:
            theirs[f"{way.most_us:g} µs"] = Limit(way.most_us)
        if way.peer_window is not None:
            theirs[_PEER] = PySyncObjQuorum(way.peer_window, self._sizes.committed_by_peer[way.peer_window])
        return _comparison(row, f"CPU of the leader of three per committed entry, {way.what}", self._time(way), theirs)

    def _follower(self, way: Way, most_us: float, row: str) -> Comparison:
        what = f"CPU of a follower per committed entry, {way.what}"
        return _comparison(row, what, FollowersTime(self._time(way)), {f"{most_us:g} µs": Limit(most_us)})

    def _time(self, way: Way) -> Duration:
        size_mib = self._sizes.committed if way.most_us is not None else self._sizes.committed / 16
        return Duration(Speed(self._worker, way.operation, _SHAPE, size_mib))


def _comparison(row: str, what: str, ours: Contender, theirs: Mapping[str, Contender]) -> Comparison:
    goals: dict[tuple[Mode, str], float] = {("compiled", name): 1 for name in theirs if name != _PEER}
    return Comparison(row, what, "µs", {"compiled": ours}, theirs, goals, less_is_better=True, most_rounds=_ROUNDS)


@attrs.frozen
class FollowersTime:
    """How long a follower works for one entry, in µs, where the leader's time is that of a duration."""

    leaders: Duration

    def measure(self) -> float:
        """Return the time."""
        self.leaders.measure()
        return 1 / self.leaders.speed.by_last("beside_s")

    def peak_memory_bytes(self) -> int:
        """Return the peak of the process, which has all three replicas."""
        return self.leaders.peak_memory_bytes()


@attrs.frozen
class PySyncObjQuorum:
    """How long the process of a leader of PySyncObj works for one entry, in µs, its sockets included.

    Attributes:
        window: how many entries are under way at once.
        count: how many are committed.
    """

    window: int
    count: int

    def measure(self) -> float:
        """Start three processes, and let the leader commit entries."""
        with contextlib.ExitStack() as stack:
            members = _start(stack)
            job = {"count": self.count, "size_bytes": _VALUE_SIZE, "window": self.window}
            cpu_s: float = _leader_of(members).ask(job)["cpu_s"]
        return cpu_s / self.count * 1e6

    def peak_memory_bytes(self) -> int:
        """Return nothing: memory is not compared."""
        return 0


def _start(stack: contextlib.ExitStack) -> list[LineProcess]:
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(3)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    members = []
    for me in addresses:
        others = (each for each in addresses if each != me)
        member = LineProcess("tests.benchmarks.pysyncobj_member", me, *others, variables=environment("compiled"))
        stack.callback(member.close)
        members.append(member)
    return members


def _leader_of(members: list[LineProcess]) -> LineProcess:
    deadline = time.monotonic() + _LONGEST_ELECTION_S
    while time.monotonic() < deadline:
        for each in members:
            if each.ask({})["leads"]:
                return each
    raise RuntimeError(f"no leader of PySyncObj in {_LONGEST_ELECTION_S} s")
