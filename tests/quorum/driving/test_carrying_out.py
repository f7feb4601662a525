# SPDX-License-Identifier: Apache-2.0
"""Each effect has its function, and what a disk refuses is reported to the core."""

import sys
import typing

import pytest

from raftlog.errors import (
    CorruptBatchError,
    InvalidSnapshotIdError,
    MissingExtraError,
    MissingFileError,
    OffsetOutOfRangeError,
    OutOfSpaceError,
    QuarantinedLogError,
    StorageError,
    TooManyOpenFilesError,
    WorkUnderWayError,
)
from raftlog.log.replicated_log import Isolation, LogFetchInfo, ReplicatedLog
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.driving.carrying_out import CARRY_OUT
from raftlog.quorum.roles.roles import Leader
from raftlog.quorum.seam.effects import Effect
from raftlog.records.batches.accumulator import BatchAccumulator
from raftlog.records.batches.compression import CompressionType
from raftlog.records.messages.control import LeaderChangeMessage, Voter
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.fetch_messages import FetchSnapshotResponse
from raftlog.snapshot.paths import BOOTSTRAP_SNAPSHOT_ID
from raftlog.snapshot.raw import RawSnapshotReader, RawSnapshotWriter
from tests.quorum.driving.driven_replicas import Recorded
from tests.quorum.leading.leaders import ENDS, LOG_END, fetch, leader_of
from tests.quorum.messages import begin_quorum_epoch_request, fetch_response, fetch_snapshot_request, records_at
from tests.quorum.single_replica import MemoryElectionState, replica_key


def test_there_is_a_function_for_each_effect() -> None:
    """No effect of the core lacks a row in the table, and no row lacks its effect."""
    assert set(CARRY_OUT) == set(typing.get_args(Effect))


@pytest.mark.parametrize(
    "error",
    [
        OffsetOutOfRangeError("gone"),
        WorkUnderWayError("being truncated"),
        TooManyOpenFilesError("log", "open", "too many open files"),
    ],
)
def test_a_read_of_records_that_are_gone_finds_nothing(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log may have been truncated or cleaned since the leader decided to read: the follower fetches again.

    So it does if no file can be opened at the moment.
    """
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
    assert core.raft.status.log_refusal is not None
    assert not core.raft.status.is_disk_full
    assert core.take_requests() == []
    core.sleep(20)
    (again,) = core.take_requests()
    assert again.message == sent.message
    core.respond(again.number, fetch_response(3, 2, records=records_at(end, 3, 2)))
    assert core.log.end_offset.offset == end + 2
    assert core.raft.status.log_refusal is None


def test_records_in_a_codec_that_is_not_installed_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The follower stays up, and says what is missing."""
    core = follower()
    (sent,) = core.take_requests()
    answer = fetch_response(3, 2, records=_compressed_leader_change(core.log.end_offset.offset))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    core.respond(sent.number, answer)
    assert core.raft.halt_reason is None
    assert "MissingExtraError: zstd compression needs a package" in str(core.raft.status.log_refusal)
    monkeypatch.undo()
    core.sleep(20)
    (again,) = core.take_requests()
    core.respond(again.number, answer)
    assert core.raft.status.log_refusal is None


def _compressed_leader_change(offset: int) -> bytes:
    batches = BatchAccumulator(3, offset, compression_type=CompressionType.ZSTD)
    batches.append_leader_change(LeaderChangeMessage(2, (Voter(2),), (Voter(2),)), 0)
    with batches.drain() as drained:
        return b"".join(bytes(each.data) for each in drained)


@pytest.mark.parametrize(
    "error",
    [
        MissingFileError("00000000000000000010-0000000002.checkpoint", "open", "no such file"),
        TooManyOpenFilesError("log", "open", "too many open files"),
    ],
)
def test_a_snapshot_that_cannot_be_opened_is_not_found(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was deleted a moment ago, or no file can be opened: the follower begins again with a Fetch."""
    core = leader_of((1,))
    snapshot_id = core.take_snapshot(LOG_END)
    assert snapshot_id is not None

    def refuse(snapshot_id: OffsetAndEpoch) -> RawSnapshotReader | None:
        raise error

    monkeypatch.setattr(core.log, "read_snapshot", refuse)
    core.request("", fetch_snapshot_request(replica_key(2), 3, snapshot_id, 0), version=1)
    (answer,) = core.take_responses()
    assert isinstance(answer.message, FetchSnapshotResponse)
    assert answer.message.topics[0].partitions[0].error_code == ErrorCode.SNAPSHOT_NOT_FOUND
    assert isinstance(core.raft.role, Leader)


@pytest.mark.parametrize(
    "error",
    [
        InvalidSnapshotIdError("not where a batch ends"),
        MissingExtraError("codecs", "zstd compression"),
        OffsetOutOfRangeError("deleted meanwhile"),
        OutOfSpaceError("log", "create", "no space left on device"),
        QuarantinedLogError("bit rot"),
        WorkUnderWayError("being truncated"),
    ],
)
def test_a_snapshot_of_the_application_that_is_untimely_is_refused(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replica goes on, and another snapshot can be taken."""
    core = leader_of((1,))

    def refuse(snapshot_id: OffsetAndEpoch) -> RawSnapshotWriter | None:
        raise error

    monkeypatch.setattr(core.log, "create_snapshot", refuse)
    assert core.take_snapshot(LOG_END) == BOOTSTRAP_SNAPSHOT_ID
    assert len(core.refused) == 1
    monkeypatch.undo()
    assert core.take_snapshot(LOG_END) == OffsetAndEpoch(LOG_END, 3)
    assert isinstance(core.raft.role, Leader)


@pytest.mark.parametrize("effect", ["append", "flush", "store"])
def test_a_disk_that_fails_stops_the_replica(effect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is unknown what is on the disk. An election state for which there is no room is no better."""
    core = leader_of((1,))
    error = StorageError("log", effect, "EIO")
    if effect == "store":
        error = OutOfSpaceError("quorum-state", "write", "full")

    def refuse(*_: object) -> None:
        raise error

    if effect == "store":
        monkeypatch.setattr(MemoryElectionState, "prepare_write", refuse)
        core.request("", begin_quorum_epoch_request(2, 4), version=1)
    else:
        monkeypatch.setattr(core.log, {"append": "prepare_append_as_leader", "flush": "prepare_flush"}[effect], refuse)
        core.append(b"a")
        core.sleep(25)
    assert type(error).__name__ in str(core.raft.halt_reason)
    assert core.take_responses() == []


def follower() -> Recorded:
    """Return replica 1, which follows replica 2 in epoch 3."""
    core = Recorded()
    core.request(None, begin_quorum_epoch_request(2, 3), version=1)
    return core
