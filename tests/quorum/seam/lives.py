# SPDX-License-Identifier: Apache-2.0
"""Lives of a replica in which every kind of effect is carried out, and each result is reported again."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from types import MappingProxyType
from typing import Any, Final, get_args

import attrs
import pytest

from raftlog.log.memory_log import MemoryLog
from raftlog.log.retention import Retention
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.driving.ports import Executor
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.raft import Raft
from raftlog.quorum.roles.roles import Leader
from raftlog.quorum.seam.effects import Effect, LogWork, StoreElectionState
from raftlog.quorum.seam.log_view import LogView
from raftlog.quorum.seam.snapshot_effects import BeginSnapshot, FreezeSnapshot
from raftlog.records.messages.raft.election_messages import BeginQuorumEpochRequest
from tests.quorum.driving.driven_replicas import RUNS, VOTERS, Recorded
from tests.quorum.following.followers import DATA, SNAPSHOT
from tests.quorum.messages import (
    begin_quorum_epoch_request,
    begin_quorum_epoch_response,
    fetch_request,
    fetch_response,
    fetch_snapshot_request,
    fetch_snapshot_response,
    records_at,
    vote_response,
)
from tests.quorum.single_replica import log_with, replica_key
from tests.quorum.whole_state import whole_state

EFFECTS: Final[tuple[type[Effect], ...]] = get_args(Effect)
MISUSE: Final[frozenset[type[Effect]]] = frozenset(
    {StoreElectionState, *get_args(LogWork), BeginSnapshot, FreezeSnapshot}
)
"""The effects that the driver knows to be open or not: a report that is late is misuse. Of others it is ignored."""

REPORTS: Final = (
    "stored",
    "log_changed",
    "log_read",
    "snapshot_read",
    "snapshot_frozen",
    "snapshot_refused",
    "delivery_closed",
    "receive_response",
    "request_failed",
)
"""The inputs of a core by which results are reported."""

JOINER: Final = replica_key(2)


@contextmanager
def nothing_changes(raft: Raft) -> Iterator[None]:
    """Check that a report changes nothing, down to the last number, whether it is refused or ignored."""
    before = whole_state(raft)
    try:
        yield
    finally:
        assert whole_state(raft) == before


def older_views(now: LogView) -> list[LogView]:
    """Return views that were made before the last one."""
    return [
        attrs.evolve(now, generation=now.generation - 1),
        attrs.evolve(now, flushed_offset=now.flushed_offset - 1),
        attrs.evolve(now, state=attrs.evolve(now.state, end_offset=now.state.end_offset - 1)),
    ]


class ReportedTwice(Recorded):
    """A replica whose every result is reported again, at once; and each change of the log also with an older view.

    Attributes:
        twice: the effects whose results were reported twice.
        outdated: the effects whose results were reported with an older view.
    """

    def __init__(self, log: MemoryLog | None = None, executor: Executor | None = None) -> None:
        self.twice: set[type[Effect]] = set()
        self.outdated: set[type[Effect]] = set()
        self.is_watched = False
        super().__init__(log, executor)

    def _carry_out(self, effect: Effect) -> None:
        if not self.is_watched:
            self.is_watched = True
            for name in REPORTS:
                setattr(self.raft, name, self._twice(getattr(self.raft, name), is_of_log=name == "log_changed"))
        super()._carry_out(effect)

    def _twice(self, report: Callable[..., None], *, is_of_log: bool) -> Callable[..., None]:
        def reported_twice(number: int, *arguments: Any, **options: Any) -> None:
            kinds = {type(each) for each in self.effects if each.number == number}
            for view in older_views(self.raft._replica.log) if is_of_log else []:
                with pytest.raises(ValueError, match="older than the last one"), nothing_changes(self.raft):
                    report(number, view)
                self.outdated |= kinds
            report(number, *arguments, **options)
            is_misuse = bool(kinds & MISUSE)
            with nothing_changes(self.raft), pytest.raises(ValueError) if is_misuse else nullcontext():
                report(number, *arguments, **options)
            self.twice |= kinds

        return reported_twice


def _elected(core: Recorded) -> None:
    core.sleep(1000)
    for _ in range(2):
        for each in core.take_requests():
            core.respond(each.number, vote_response(is_granted=True, epoch=core.raft.role.epoch))
    assert isinstance(core.raft.role, Leader)


def leader() -> ReportedTwice:
    """Return a replica that leads epoch 3, and has done all that leaders do."""
    log = log_with(RUNS, VOTERS)
    log._retention = Retention(max_bytes=0)
    core = ReportedTwice(log)
    core.raft.register_listener()
    _elected(core)
    core.append(b"a")
    core.sleep(25)
    end = OffsetAndEpoch(core.log.end_offset.offset, 3)
    core.request("fetch", fetch_request(JOINER, 3, OffsetAndEpoch(5, 2)), version=17)
    core.request("end", fetch_request(JOINER, 3, end), version=17)
    core.raft.read_barrier()
    core.settle()
    for each in core.take_requests():
        if isinstance(each.message, BeginQuorumEpochRequest):
            core.respond(each.number, begin_quorum_epoch_response(3, 1))
    while core.deliveries:
        delivery = core.deliveries.pop(0)
        core.close(delivery.number, getattr(delivery, "end_offset", 0))
    number = core.raft.create_snapshot(3)
    assert number is not None
    core.raft.abandon_snapshot(number)
    core.settle()
    assert core.take_snapshot(4, b"x") == OffsetAndEpoch(0, 0)  # No batch ends there, so the log refuses it.
    assert core.take_snapshot(5, b"x") == OffsetAndEpoch(5, 2)
    core.request("part", fetch_snapshot_request(JOINER, 3, OffsetAndEpoch(5, 2)), version=1)
    core.request("lived", fetch_request(JOINER, 3, end, max_wait_ms=0), version=17)
    core.sleep(QuorumConfig().fetch_timeout_ms)
    core.raft._replica.snapshots.clean_ms = core.now_ms
    core.tick()
    assert isinstance(core.raft.role, Leader)
    return core


def stopped() -> ReportedTwice:
    """Return a replica that has led, and has shut down."""
    core = leader()
    core.raft.shutdown(1000)
    core.settle()
    core.sleep(1000)
    return core


def follower() -> ReportedTwice:
    """Return a replica that has followed: it has appended, truncated, and fetched one snapshot and a half."""
    core = ReportedTwice()
    core.raft.register_listener()
    core.request(None, begin_quorum_epoch_request(2, 4), version=1)
    _answer(core, fetch_response(4, 2, records=records_at(5, 4, 2)))
    _answer(core, fetch_response(4, 2, diverging=OffsetAndEpoch(5, 2)))
    _answer(core, fetch_response(4, 2, snapshot_id=SNAPSHOT))
    _answer(core, fetch_snapshot_response(4, 2, SNAPSHOT, 0, DATA[:100], len(DATA)))
    core.request(None, begin_quorum_epoch_request(3, 5), version=1)
    _answer(core, fetch_response(5, 3, snapshot_id=SNAPSHOT))
    _answer(core, fetch_snapshot_response(5, 3, SNAPSHOT, 0, DATA, len(DATA)))
    bootstrap, snapshot = core.deliveries.pop(), core.deliveries
    core.close(bootstrap.number)
    core.sleep(QuorumConfig().retry_backoff_ms)
    core.close(snapshot[-1].number, SNAPSHOT.offset)
    return core


def _answer(core: Recorded, message: Any) -> None:
    core.respond(core.take_requests()[-1].number, message)


LIVES: Final[Mapping[str, Callable[[], ReportedTwice]]] = MappingProxyType(
    {"leader": leader, "follower": follower, "stopped": stopped}
)
