# SPDX-License-Identifier: Apache-2.0
"""Work on the log that ends in a later epoch than it was begun in: the log is known as it is, and nothing follows.

Such work is reported in its turn, because the log has changed. But it acknowledges, commits and continues nothing of
the epoch that is over (DECISIONS.md 61). Reads and requests of earlier epochs are in ``test_late_results``.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, get_args

import pytest

from raftlog.invariants import instance_of
from raftlog.log.memory_log import MemoryLog
from raftlog.log.retention import Retention
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.roles.roles import Follower
from raftlog.quorum.seam.effects import (
    AppendAsFollower,
    AppendAsLeader,
    AppendOutcome,
    Effect,
    EnterEpoch,
    FlushLog,
    LogWork,
    TruncateToEndOffset,
)
from raftlog.quorum.seam.snapshot_effects import (
    AbandonFetchedSnapshot,
    AppendToFetchedSnapshot,
    BeginFetchedSnapshot,
    CleanLog,
    FreezeFetchedSnapshot,
    RestartAtLatestSnapshot,
)
from raftlog.records.messages.raft.fetch_messages import FetchRequest
from tests.quorum.following.followers import DATA, VOTERS, FollowerOfTwo
from tests.quorum.leading.leaders import ENDS, SlowDisk, fetch, leader_of
from tests.quorum.messages import begin_quorum_epoch_request, fetch_response, records_at
from tests.quorum.single_replica import SingleReplica, log_with, replica_key

LATER: Final = 9
Begun = tuple[SingleReplica, Callable[[], None]]
"""A replica whose log is worked on, and what lets its disk go on."""


def _leader(kind: type[Effect]) -> Begun:
    """Return a leader that has appended, and whose disk does not do one kind of work."""
    core = leader_of((1, 2, 3))
    fetch(core, replica_key(2), ENDS[3])
    core.slow = kind
    core.append(b"a")
    core.sleep(25)
    return core, lambda: _let_go(core)


def _let_go(core: SlowDisk) -> None:
    core.slow = None
    core.let_go()


def _enters() -> Begun:
    core = leader_of((1, 2, 3), EnterEpoch)
    return core, lambda: _let_go(core)


def _cleans() -> Begun:
    core: SlowDisk = leader_of((1,))
    instance_of(core.log, MemoryLog)._retention = Retention(max_bytes=0)
    for offset in (3, 5):
        core.take_snapshot(offset, b"x")
    core.slow = CleanLog
    core.raft._replica.snapshots.clean_ms = core.now_ms
    core.tick()
    return core, lambda: _let_go(core)


def _follower(answer: Callable[[FollowerOfTwo], None], works: int = 0, *, is_fetching: bool = False) -> Begun:
    """Return a follower whose disk waits since an answer of the leader, after some pieces of work."""
    core = FollowerOfTwo(log_with([(1, 2), (2, 1)], VOTERS))
    if is_fetching:
        core.name()
    core.is_slow = True
    answer(core)
    for _ in range(works):
        core.work()

    def go_on() -> None:
        while core.waiting:
            core.work()

    return core, go_on


def _records(core: FollowerOfTwo) -> None:
    core.respond(core.requests[-1].number, fetch_response(2, 2, records=records_at(3, 2, 1), high_watermark=4))


def _divergence(core: FollowerOfTwo) -> None:
    core.respond(core.requests[-1].number, fetch_response(2, 2, diverging=OffsetAndEpoch(2, 1)))


def _name(core: FollowerOfTwo) -> None:
    core.name()


def _part(core: FollowerOfTwo) -> None:
    core.send_chunk(0, DATA[:100])


def _all_parts(core: FollowerOfTwo) -> None:
    core.send_chunk(0, DATA)


def _another_leader(core: FollowerOfTwo) -> None:
    core.request("", begin_quorum_epoch_request(3, 4), version=1)


BEGUN: Final[Mapping[type[Effect], Callable[[], Begun]]] = MappingProxyType(
    {
        EnterEpoch: _enters,
        AppendAsLeader: lambda: _leader(AppendAsLeader),
        FlushLog: lambda: _leader(FlushLog),
        CleanLog: _cleans,
        AppendAsFollower: lambda: _follower(_records),
        TruncateToEndOffset: lambda: _follower(_divergence),
        BeginFetchedSnapshot: lambda: _follower(_name),
        AppendToFetchedSnapshot: lambda: _follower(_part, is_fetching=True),
        FreezeFetchedSnapshot: lambda: _follower(_all_parts, works=1, is_fetching=True),
        RestartAtLatestSnapshot: lambda: _follower(_all_parts, works=2, is_fetching=True),
        AbandonFetchedSnapshot: lambda: _follower(_another_leader, is_fetching=True),
    }
)
"""By kind of work: a replica whose disk has it to do next."""

COMMITS: Final = {FreezeFetchedSnapshot, RestartAtLatestSnapshot}
"""What a snapshot has is committed, whatever the epoch is by now."""


def _next_work(core: SingleReplica) -> type[Effect]:
    waiting = core.held if isinstance(core, SlowDisk) else instance_of(core, FollowerOfTwo).waiting
    return type(waiting[0])


def test_every_kind_of_work_is_in_the_table() -> None:
    """A new kind of work on the log needs a row."""
    assert set(BEGUN) == set(get_args(LogWork))


@pytest.mark.parametrize("kind", list(BEGUN))
def test_work_that_ends_in_a_later_epoch(kind: type[Effect]) -> None:
    """The replica follows the later leader, answers and commits nothing, and fetches when its log is at rest."""
    core, go_on = BEGUN[kind]()
    assert _next_work(core) is kind
    core.request("", begin_quorum_epoch_request(3, LATER), version=1)
    core.take_responses()
    before = core.raft._replica.committed_offset
    go_on()
    role = core.raft.role
    assert isinstance(role, Follower)
    assert (role.epoch, role.leader.id, role.fetching_snapshot) == (LATER, 3, None)
    assert (core.raft._replica.committed_offset == before) == (kind not in COMMITS)
    assert core.take_responses() == []
    assert all(each.outcome is not AppendOutcome.COMMITTED for each in core.ended)
    asked = core.requests[-1].message
    assert isinstance(asked, FetchRequest)
    wanted = asked.topics[0].partitions[0]
    assert (wanted.current_leader_epoch, wanted.fetch_offset) == (LATER, core.log.end_offset.offset)
