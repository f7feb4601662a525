# SPDX-License-Identifier: Apache-2.0
"""Serves snapshots to replicas that fetch them, chunk by chunk.

A snapshot stays as long as a replica keeps fetching it (``Pins``). Its bytes are not checked here: the replica verifies
the whole snapshot before it uses it.

Source: KafkaRaftClient#handleFetchSnapshotRequest. Differs: DECISIONS.md 56.
"""

from typing import Final

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.leadership import Leadership, WaitingSnapshotRead
from raftlog.quorum.leading.leading_epoch import note_fetch_of_voter
from raftlog.quorum.leading.voter_requests import leader_error
from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.requests import cluster_error, leader_and_epoch, node_endpoints
from raftlog.quorum.seam.identity import ReceivedRequest
from raftlog.quorum.seam.snapshot_effects import ReadSnapshot, SnapshotChunk
from raftlog.records.messages.raft.endpoints import SnapshotId
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.fetch_messages import (
    FetchSnapshotRequest,
    FetchSnapshotRequestPartitionSnapshot,
    FetchSnapshotResponse,
    FetchSnapshotResponseLeaderIdAndEpoch,
    FetchSnapshotResponsePartitionSnapshot,
    FetchSnapshotResponseTopicSnapshot,
)
from raftlog.snapshot.paths import BOOTSTRAP_SNAPSHOT_ID
from raftlog.voters.voter_set import ReplicaKey

MAX_SNAPSHOT_READS: Final = 100
"""How many chunks may be read at once. One more FetchSnapshot is answered with BROKER_NOT_AVAILABLE: try again."""

_NO_SNAPSHOT: Final = SnapshotId(end_offset=0, epoch=0)


def handle_fetch_snapshot_request(
    replica: LocalReplica, received: ReceivedRequest, request: FetchSnapshotRequest
) -> FetchSnapshotResponse | None:
    """Return the error, or begin to read; then the answer follows when the bytes are there."""
    topics = request.topics
    error = cluster_error(replica, request.cluster_id)
    if not error and not (topics and topics[0].partitions):
        error = ErrorCode.INVALID_REQUEST
    # Kafka 4.3.1 joins the two by "and" as well: many partitions of one topic are taken, and so are many topics if the
    # first has one partition.
    if not error and len(topics) != 1 and len(topics[0].partitions) != 1:
        error = ErrorCode.INVALID_REQUEST
    if error:
        return FetchSnapshotResponse(throttle_time_ms=0, error_code=error, topics=())
    asked = _partition_of(replica, request)
    if asked is None:
        unknown = FetchSnapshotResponsePartitionSnapshot(
            index=topics[0].partitions[0].partition,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            snapshot_id=_NO_SNAPSHOT,
            size=0,
            position=0,
            unaligned_records=b"",
        )
        return _response(replica, received, topics[0].name, unknown)
    error = _request_error(replica, request, asked)
    leadership = replica.leadership
    if error or leadership is None:
        return _answer(replica, received, error=error)
    key = ReplicaKey(request.replica_id, asked.replica_directory_id)
    _read(replica, leadership, WaitingSnapshotRead(received, asked, key), request.max_bytes)
    return None


def _partition_of(replica: LocalReplica, request: FetchSnapshotRequest) -> FetchSnapshotRequestPartitionSnapshot | None:
    """Return what a request wants of this replica's log, the first of it, as Kafka's does; None if it is nothing."""
    ours = (each for each in request.topics if each.name == replica.identity.topic_name)
    return next((part for topic in ours for part in topic.partitions if part.partition == 0), None)


def _request_error(
    replica: LocalReplica, request: FetchSnapshotRequest, asked: FetchSnapshotRequestPartitionSnapshot
) -> ErrorCode:
    """Return the error that can be told without a read. The bootstrap snapshot is in the log, and is not served."""
    error = leader_error(replica, asked.current_leader_epoch)
    if error or replica.leadership is None:
        return error
    snapshot_id = _id_of(asked)
    if snapshot_id == BOOTSTRAP_SNAPSHOT_ID or snapshot_id not in replica.log.state.snapshot_ids:
        return ErrorCode.SNAPSHOT_NOT_FOUND
    if asked.position < 0:
        return ErrorCode.POSITION_OUT_OF_RANGE
    if request.max_bytes < 0:
        return ErrorCode.INVALID_REQUEST
    is_full = len(replica.leadership.reading_snapshots) >= MAX_SNAPSHOT_READS
    return ErrorCode.BROKER_NOT_AVAILABLE if is_full else ErrorCode.NONE


def _id_of(asked: FetchSnapshotRequestPartitionSnapshot) -> OffsetAndEpoch:
    return OffsetAndEpoch(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)


def _read(replica: LocalReplica, leadership: Leadership, waiting: WaitingSnapshotRead, max_bytes: int) -> None:
    snapshot_id, position = _id_of(waiting.asked), waiting.asked.position
    until_ms = replica.now_ms + replica.config.fetch_timeout_ms
    replica.snapshots.pins.hold(waiting.key, snapshot_id, replica.now_ms, until_ms)
    size = min(max_bytes, replica.config.fetch_snapshot_max_bytes)
    effect = replica.outbox.on_log(lambda number: ReadSnapshot(number, snapshot_id, position, size))
    leadership.reading_snapshots[effect.number] = waiting


def answer_snapshot_read(replica: LocalReplica, number: int, chunk: SnapshotChunk | None) -> None:
    """Answer the FetchSnapshot that a read was for. A read of an earlier leadership is answered already.

    As in Kafka, an answer with bytes counts as a Fetch for the check quorum, and an error does not.

    Args:
        replica: this replica.
        number: of the effect.
        chunk: what was read; None if the snapshot is gone.
    """
    leadership = replica.leadership
    waiting = None if leadership is None else leadership.reading_snapshots.pop(number, None)
    if leadership is None or waiting is None:
        return
    error = ErrorCode.NONE
    if chunk is None:
        error = ErrorCode.SNAPSHOT_NOT_FOUND
    elif waiting.asked.position >= chunk.size_bytes:
        error = ErrorCode.POSITION_OUT_OF_RANGE
    else:
        note_fetch_of_voter(replica, leadership, waiting.key)
    response = _answer(replica, waiting.received, waiting.asked, chunk, error=error)
    replica.outbox.respond(waiting.received.token, response)


def end_snapshot_reads(replica: LocalReplica, leadership: Leadership) -> None:
    """Answer all that wait for a read, because this replica leads no more."""
    for each in leadership.reading_snapshots.values():
        response = _answer(replica, each.received, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        replica.outbox.respond(each.received.token, response)


def _answer(
    replica: LocalReplica,
    received: ReceivedRequest,
    asked: FetchSnapshotRequestPartitionSnapshot | None = None,
    chunk: SnapshotChunk | None = None,
    *,
    error: ErrorCode,
) -> FetchSnapshotResponse:
    """Return a response; with an error it names no snapshot."""
    leader, epoch = leader_and_epoch(replica)
    partition = FetchSnapshotResponsePartitionSnapshot(
        index=0,
        error_code=error,
        snapshot_id=_NO_SNAPSHOT,
        current_leader=FetchSnapshotResponseLeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch),
        size=0,
        position=0,
        unaligned_records=b"",
    )
    if not error and asked is not None and chunk is not None:
        partition = attrs.evolve(
            partition,
            snapshot_id=SnapshotId(end_offset=asked.snapshot_id.end_offset, epoch=asked.snapshot_id.epoch),
            size=chunk.size_bytes,
            position=asked.position,
            unaligned_records=chunk.data,
        )
    return _response(replica, received, replica.identity.topic_name, partition)


def _response(
    replica: LocalReplica,
    received: ReceivedRequest,
    topic_name: str,
    partition: FetchSnapshotResponsePartitionSnapshot,
) -> FetchSnapshotResponse:
    topic = FetchSnapshotResponseTopicSnapshot(name=topic_name, partitions=(partition,))
    endpoints = node_endpoints(replica, received)
    return FetchSnapshotResponse(throttle_time_ms=0, error_code=0, topics=(topic,), node_endpoints=endpoints)
