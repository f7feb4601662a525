# SPDX-License-Identifier: Apache-2.0
"""Serves fetches: with records, with the offset to truncate to, or with a snapshot to fetch instead.

A valid Fetch says how far the sender is. A Fetch that diverges, or needs a snapshot, says nothing of that kind
(KAFKA-13141). If there is nothing new, a Fetch is parked until there is, or until its time is over.

Source: KafkaRaftClient#handleFetchRequest, #tryCompleteFetchRequest, #buildFetchResponse.
"""

import functools
from typing import Final

from raftlog.log.decisions import validate_offset_and_epoch
from raftlog.offsets import ValidationKind
from raftlog.quorum.leadership import Leadership, ParkedFetch, ReadFetch, ReplicaProgress, WaitingFetch
from raftlog.quorum.leading.appending import end_uncommitted
from raftlog.quorum.leading.caught_up import steady_since_ms
from raftlog.quorum.leading.holding_voters import is_holding, servable_end_offset, servable_records
from raftlog.quorum.leading.leading_epoch import advance_high_watermark, note_fetch_of_voter
from raftlog.quorum.leading.reading import end_reads
from raftlog.quorum.leading.serving_snapshots import end_snapshot_reads
from raftlog.quorum.leading.voter_change import Refusal, end_change
from raftlog.quorum.leading.voter_requests import leader_error
from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.requests import cluster_error, leader_and_epoch
from raftlog.quorum.seam.effects import ReadLog
from raftlog.quorum.seam.identity import ReceivedRequest
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.fetch_messages import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchResponse,
    FetchResponseEpochEndOffset,
    FetchResponseFetchableTopicResponse,
    FetchResponseLeaderIdAndEpoch,
    FetchResponseNodeEndpoint,
    FetchResponsePartitionData,
    FetchResponseSnapshotId,
)
from raftlog.snapshot.paths import BOOTSTRAP_SNAPSHOT_ID
from raftlog.voters.voter_set import HostPort, ReplicaKey

NO_END = FetchResponseEpochEndOffset()
NO_SNAPSHOT = FetchResponseSnapshotId()

MAX_WAITING_FETCHES: Final = 1000
"""How many fetches may wait, for a read or parked; as many more for voters alone, so that observers do not keep them
from records. One more is answered at once, without records."""

MAX_FETCH_WAIT_MS: Final = 300_000
"""How long a Fetch waits at most, whatever it asks for."""

MAX_OBSERVERS: Final = 1000
"""How many replicas that are no voters a leader remembers: those that fetched last."""


def handle_fetch_request(replica: LocalReplica, received: ReceivedRequest, request: FetchRequest) -> None:
    """Answer a Fetch now, after a read, or when there is something new."""
    fetch = WaitingFetch(received, request)
    error = cluster_error(replica, request.cluster_id)
    if not error and _only_partition(replica, request) is None:
        error = ErrorCode.INVALID_REQUEST
    if error:
        replica.outbox.respond(received.token, FetchResponse(throttle_time_ms=0, error_code=error, responses=()))
        return
    _serve(replica, fetch, may_park=True)


def _only_partition(replica: LocalReplica, request: FetchRequest) -> FetchRequestFetchPartition | None:
    topics = request.topics
    if len(topics) != 1 or len(topics[0].partitions) != 1 or topics[0].topic_id != replica.identity.topic_id:
        return None
    partition = topics[0].partitions[0]
    return partition if partition.partition == 0 else None


def partition_of(request: FetchRequest) -> FetchRequestFetchPartition:
    """Return the partition of a Fetch that was found to be for this replica's log."""
    return request.topics[0].partitions[0]


def sender_id(request: FetchRequest) -> int:
    """Return the id of the replica that fetches; -1 if it names none. Up to version 14 the id is in another field.

    Source: FetchRequest#replicaId.
    """
    return request.replica_id if request.replica_id >= 0 else request.replica_state.replica_id


def request_error(replica: LocalReplica, request: FetchRequest, asked: FetchRequestFetchPartition) -> ErrorCode:
    """Return the error for a Fetch that cannot be true, or is not for the leader of this epoch.

    Source: KafkaRaftClient#validateLeaderOnlyRequest.
    """
    least = min(request.max_wait_ms, asked.fetch_offset, asked.last_fetched_epoch, asked.current_leader_epoch)
    if least < 0 or asked.last_fetched_epoch > asked.current_leader_epoch:
        return ErrorCode.INVALID_REQUEST
    return leader_error(replica, asked.current_leader_epoch)


def _serve(replica: LocalReplica, fetch: WaitingFetch, *, may_park: bool) -> None:
    """Answer a Fetch, begin to read for it, or park it if it may be."""
    leadership, asked = replica.leadership, partition_of(fetch.request)
    error = request_error(replica, fetch.request, asked)
    if error or leadership is None:
        _respond(replica, fetch, error=error)
        return
    log = replica.log.state
    latest = log.latest_snapshot_id
    if asked.fetch_offset == 0 and latest is not None and latest != BOOTSTRAP_SNAPSHOT_ID:
        _respond(replica, fetch, snapshot_id=FetchResponseSnapshotId(end_offset=latest.offset, epoch=latest.epoch))
        return
    valid = validate_offset_and_epoch(log, asked.fetch_offset, asked.last_fetched_epoch)
    found = valid.offset_and_epoch
    if valid.kind is ValidationKind.SNAPSHOT:
        _respond(replica, fetch, snapshot_id=FetchResponseSnapshotId(end_offset=found.offset, epoch=found.epoch))
    elif valid.kind is ValidationKind.DIVERGING:
        _respond(replica, fetch, diverging=FetchResponseEpochEndOffset(epoch=found.epoch, end_offset=found.offset))
    else:
        _serve_valid(replica, leadership, fetch, may_park=may_park)


def _serve_valid(replica: LocalReplica, leadership: Leadership, fetch: WaitingFetch, *, may_park: bool) -> None:
    request, asked = fetch.request, partition_of(fetch.request)
    key = _sender_key(replica, request, asked)
    if key.id == replica.identity.key.id:
        _respond(replica, fetch, error=ErrorCode.UNKNOWN_SERVER_ERROR)
        return
    if key.id >= 0:
        note_fetch(replica, leadership, key, asked.fetch_offset)
    place, limit = _place(replica, key)
    if len(leadership.parked) + len(leadership.reading) >= limit:
        _respond(replica, fetch)
        return
    if asked.fetch_offset < servable_end_offset(leadership, replica.log):
        _read(replica, leadership, place, fetch)
        return
    known = -1 if replica.high_watermark is None else replica.high_watermark
    if not may_park or request.max_wait_ms == 0 or asked.high_watermark < known:
        _respond(replica, fetch)
        return
    _park(replica, leadership, place, fetch)


def _place(replica: LocalReplica, key: ReplicaKey) -> tuple[ReplicaKey, int]:
    """Return the place in which a Fetch waits, and how many may wait for it to wait too.

    A voter has one place, that of its entry in the voter set: without a directory id there, any number of directories
    could come in its name, and take all places of voters.
    """
    node = replica.voters.voters.get(key.id)
    if node is None or not node.is_voter(key):
        return key, MAX_WAITING_FETCHES
    return node.voter_key, MAX_WAITING_FETCHES * 2


def _read(replica: LocalReplica, leadership: Leadership, place: ReplicaKey, fetch: WaitingFetch) -> None:
    """Begin to read for a Fetch, or answer it without records while a read for the same replica is under way.

    So a replica that asks again and again gives the disk one read at a time.
    """
    if place in leadership.reading:
        _respond(replica, fetch)
        return
    offset = partition_of(fetch.request).fetch_offset
    size = min(fetch.request.max_bytes, replica.config.fetch_max_bytes)
    effect = replica.outbox.on_log(lambda number: ReadLog(number, offset, size))
    leadership.reading[place] = ReadFetch(fetch, effect.number)


def _sender_key(replica: LocalReplica, request: FetchRequest, asked: FetchRequestFetchPartition) -> ReplicaKey:
    """Return the replica that fetches: the key of the voter set, if it is in there."""
    sender, directory_id = sender_id(request), asked.replica_directory_id
    node = replica.voters.voters.get(sender)
    if node is not None and node.voter_key.directory_id == directory_id:
        return node.voter_key
    return ReplicaKey(sender, directory_id)


def _park(replica: LocalReplica, leadership: Leadership, place: ReplicaKey, fetch: WaitingFetch) -> None:
    """Let a Fetch wait, and answer the one of the same replica that has waited so far."""
    replaced = leadership.parked.pop(place, None)
    if replaced is not None:
        _respond_expired(replica, replaced)
    deadline_ms = replica.now_ms + min(fetch.request.max_wait_ms, MAX_FETCH_WAIT_MS)
    leadership.parked[place] = ParkedFetch(fetch, replica.log.state.start_offset, deadline_ms)
    expiry_ms = leadership.parked_until_ms
    leadership.parked_until_ms = deadline_ms if expiry_ms is None else min(expiry_ms, deadline_ms)


def note_fetch(replica: LocalReplica, leadership: Leadership, key: ReplicaKey, end_offset: int) -> None:
    """Note how far a replica is, and commit what a majority has by now.

    Source: LeaderState#updateReplicaState.
    """
    node = replica.voters.voters.get(key.id)
    if node is not None and not node.is_voter(key):
        node = None
    before, leader_end = leadership.take_progress(key, node), replica.log.state.end_offset
    caught_up, caught_up_wall = (-1, -1) if before is None else (before.caught_up_ms, before.caught_up_wall_ms)
    if end_offset >= leader_end:
        caught_up, caught_up_wall = replica.now_ms, replica.wall_ms
    elif before is not None and end_offset >= before.leader_end_offset:
        caught_up, caught_up_wall = before.fetched_ms, before.fetched_wall_ms
    since = steady_since_ms(replica, before, caught_up)
    leadership.progress[key] = ReplicaProgress(
        end_offset, replica.now_ms, replica.wall_ms, leader_end, caught_up_wall, caught_up, since
    )
    _forget_observers(replica, leadership)
    if node is not None:
        note_fetch_of_voter(replica, leadership, node.voter_key)
        if leadership.reads.pending:
            leadership.reads.note_fetch(node.voter_key, end_offset)
    known = replica.high_watermark
    if known is None or end_offset > known:
        advance_high_watermark(replica, leadership)
        if replica.high_watermark != known:
            answer_parked(replica, leadership)


def _forget_observers(replica: LocalReplica, leadership: Leadership) -> None:
    """Forget the observer that has not fetched for the longest time, if there are too many."""
    if len(leadership.progress) <= MAX_OBSERVERS + len(replica.voters.voters):
        return
    observers = (key for key in leadership.progress if not replica.voters.is_voter(key))
    del leadership.progress[next(observers)]


def answer_parked(replica: LocalReplica, leadership: Leadership) -> None:
    """Answer all fetches that wait, because there are records, or the high watermark has risen.

    While a voter set is held back they wait on: its flush, which is under way, has records for them.
    """
    if is_holding(leadership, replica.log):
        return
    parked, leadership.parked = leadership.parked, {}
    leadership.parked_until_ms = None
    for each in parked.values():
        _serve(replica, each.fetch, may_park=False)


def answer_expired(replica: LocalReplica, leadership: Leadership) -> None:
    """Answer the fetches whose time is over."""
    expiry_ms = leadership.parked_until_ms
    if expiry_ms is None or expiry_ms > replica.now_ms:
        return
    for place, each in list(leadership.parked.items()):
        if each.deadline_ms <= replica.now_ms:
            del leadership.parked[place]
            _respond_expired(replica, each)
    leadership.parked_until_ms = min((each.deadline_ms for each in leadership.parked.values()), default=None)


def _respond_expired(replica: LocalReplica, parked: ParkedFetch) -> None:
    """Answer a Fetch that has waited for nothing, with the log start at the time when it was parked, as Kafka does."""
    response = fetch_response(replica, parked.fetch.received, log_start_offset=parked.log_start_offset)
    replica.outbox.respond(parked.fetch.received.token, response)


def answer_read(replica: LocalReplica, number: int, records: bytes | memoryview) -> None:
    """Answer the Fetch that a read was for. A read of an earlier leadership is answered already."""
    leadership = replica.leadership
    reading = {} if leadership is None else leadership.reading
    place = next((place for place, each in reading.items() if each.number == number), None)
    if place is not None and leadership is not None:
        fetch = reading.pop(place).fetch
        _respond(replica, fetch, records=servable_records(leadership, replica.log, records))


def end_leading(replica: LocalReplica) -> None:
    """Answer all that waits, because this replica leads no more.

    Source: KafkaRaftClient#transitionToResigned.
    """
    leadership, replica.leadership = replica.leadership, None
    if leadership is None:
        return
    waiting = [each.fetch for each in leadership.parked.values()]
    for fetch in [*waiting, *(each.fetch for each in leadership.reading.values())]:
        _respond(replica, fetch, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    end_snapshot_reads(replica, leadership)
    end_uncommitted(replica, leadership)
    end_reads(replica, leadership)
    end_change(replica, leadership, Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the leadership has ended"))
    if leadership.batches is not None:
        leadership.batches.close()


def _respond(
    replica: LocalReplica,
    fetch: WaitingFetch,
    *,
    error: ErrorCode = ErrorCode.NONE,
    records: bytes | memoryview = b"",
    diverging: FetchResponseEpochEndOffset = NO_END,
    snapshot_id: FetchResponseSnapshotId = NO_SNAPSHOT,
) -> None:
    response = fetch_response(
        replica, fetch.received, error=error, records=records, diverging=diverging, snapshot_id=snapshot_id
    )
    replica.outbox.respond(fetch.received.token, response)


def fetch_response(
    replica: LocalReplica,
    received: ReceivedRequest,
    *,
    error: ErrorCode = ErrorCode.NONE,
    records: bytes | memoryview = b"",
    diverging: FetchResponseEpochEndOffset = NO_END,
    snapshot_id: FetchResponseSnapshotId = NO_SNAPSHOT,
    log_start_offset: int | None = None,
) -> FetchResponse:
    """Return a response. An error, and a leader that has committed nothing yet, name no high watermark."""
    leader, epoch = leader_and_epoch(replica)
    known = replica.high_watermark if not error and replica.leadership is not None else None
    partition = FetchResponsePartitionData(
        partition_index=0,
        error_code=error,
        high_watermark=-1 if known is None else known,
        log_start_offset=replica.log.state.start_offset if log_start_offset is None else log_start_offset,
        diverging_epoch=diverging,
        current_leader=_current_leader(leader, epoch),
        snapshot_id=snapshot_id,
        aborted_transactions=(),
        records=records,
    )
    topic = FetchResponseFetchableTopicResponse(topic_id=replica.identity.topic_id, partitions=(partition,))
    found = replica.leader_address(received.listener) if received.version >= 17 else None
    endpoints = () if found is None else _node_endpoints(*found)
    return FetchResponse(throttle_time_ms=0, responses=(topic,), node_endpoints=endpoints)


@functools.lru_cache(maxsize=16)
def _current_leader(leader: int, epoch: int) -> FetchResponseLeaderIdAndEpoch:
    """Return what nearly all responses have in common."""
    return FetchResponseLeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)


@functools.lru_cache(maxsize=16)
def _node_endpoints(leader: int, address: HostPort) -> tuple[FetchResponseNodeEndpoint, ...]:
    """Return what nearly all responses have in common."""
    return (FetchResponseNodeEndpoint(node_id=leader, host=address.host, port=address.port),)
