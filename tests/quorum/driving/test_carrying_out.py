# SPDX-License-Identifier: Apache-2.0
"""Each effect has its function, and what a disk refuses is reported to the core."""

import typing

import pytest

from raftlog.errors import CorruptBatchError, OffsetOutOfRangeError, StorageError, WorkUnderWayError
from raftlog.log.replicated_log import Isolation, LogFetchInfo, ReplicatedLog
from raftlog.quorum.driving.carrying_out import CARRY_OUT
from raftlog.quorum.roles.roles import Leader
from raftlog.quorum.seam.effects import Effect
from tests.quorum.driving.driven_replicas import Recorded
from tests.quorum.leading.leaders import ENDS, fetch, leader_of
from tests.quorum.messages import begin_quorum_epoch_request, fetch_response, records_at
from tests.quorum.single_replica import replica_key


def test_there_is_a_function_for_each_effect() -> None:
    """No effect of the core lacks a row in the table, and no row lacks its effect."""
    assert set(CARRY_OUT) == set(typing.get_args(Effect))


@pytest.mark.parametrize("error", [OffsetOutOfRangeError("gone"), WorkUnderWayError("being truncated")])
def test_a_read_of_records_that_are_gone_finds_nothing(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log may have been truncated or cleaned since the leader decided to read: the follower fetches again."""
    core = leader_of((1, 2))
    _refuse_reads(core.log, error, monkeypatch)
    (answer,) = fetch(core, replica_key(2), ENDS[1])
    assert bytes(answer.records or b"") == b""
    assert isinstance(core.raft.role, Leader)


@pytest.mark.parametrize("error", [CorruptBatchError("bit rot"), StorageError("log", "read", "EIO")])
def test_a_read_that_fails_stops_the_replica(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader that cannot read its log must not lead; the next open finds the damage."""
    core = leader_of((1, 2))
    _refuse_reads(core.log, error, monkeypatch)
    assert fetch(core, replica_key(2), ENDS[1]) == []
    assert core.raft.halt_reason is not None
    assert type(error).__name__ in core.raft.halt_reason


def _refuse_reads(log: ReplicatedLog, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(start_offset: int, isolation: Isolation, max_size_bytes: int = 0) -> LogFetchInfo:
        raise error

    monkeypatch.setattr(log, "read", refuse)


@pytest.mark.parametrize("damage", ["crc", "gap", "epoch goes back"])
def test_records_that_the_log_refuses_are_dropped(damage: str) -> None:
    """A leader cannot stop its follower by what it sends: the follower fetches again from where its log ends."""
    core = follower()
    end = core.log.end_offset.offset
    records = records_at(end + (damage == "gap"), 1 if damage == "epoch goes back" else 3, 2)
    if damage == "crc":
        records = records[:-1] + bytes([records[-1] ^ 1])
    (sent,) = core.take_requests()
    core.respond(sent.number, fetch_response(3, 2, records=records))
    assert core.raft.halt_reason is None
    assert core.log.end_offset.offset == end
    (again,) = core.take_requests()
    assert again.message == sent.message
    core.respond(again.number, fetch_response(3, 2, records=records_at(end, 3, 2)))
    assert core.log.end_offset.offset == end + 2


def follower() -> Recorded:
    """Return replica 1, which follows replica 2 in epoch 3."""
    core = Recorded()
    core.request(None, begin_quorum_epoch_request(2, 3), version=1)
    return core
