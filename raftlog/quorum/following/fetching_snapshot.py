# SPDX-License-Identifier: Apache-2.0
"""Fetches a snapshot from the leader, in chunks, and restarts the log at it.

::

    Fetch names it ──> begun ──(chunk, chunk, ...)──> whole ──> frozen ──> the log restarts there ──> Fetch
                         │                              │
                         └── abandoned: the role        └── refused: it is damaged, or does not fit on the disk;
                             changes, the leader            after a pause it is fetched again
                             lacks it or names another

One chunk is under way at a time: the next one is asked for when the last one is written. A partial snapshot is never
listed. Once a snapshot is frozen, the log restarts at it in whatever role this replica is then, because a snapshot has
committed records only; after a crash between the two, the next open of the log does so.

Source: KafkaRaftClient#handleFetchResponse, #handleFetchSnapshotResponse. Differs: DECISIONS.md 54 and 56.
"""

from collections.abc import Callable

import attrs

from raftlog.errors import TruncationBelowHighWatermarkError
from raftlog.invariants import invariant
from raftlog.log.decisions import snapshot_ahead_of_log
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.following.contact import note_success
from raftlog.quorum.following.truncating import truncate
from raftlog.quorum.replica import LocalReplica, SentRequest
from raftlog.quorum.responses import ResponseOutcome, endpoints_of, handle_common
from raftlog.quorum.roles.roles import Follower, SnapshotFetch
from raftlog.quorum.seam.snapshot_effects import (
    AppendToFetchedSnapshot,
    BeginFetchedSnapshot,
    FetchedSnapshotWork,
    FreezeFetchedSnapshot,
    RestartAtLatestSnapshot,
)
from raftlog.quorum.snapshot_work import FetchedSnapshotStep, FetchStep
from raftlog.records.messages.raft.endpoints import SnapshotId
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.fetch_messages import (
    FetchSnapshotRequest,
    FetchSnapshotRequestPartitionSnapshot,
    FetchSnapshotRequestTopicSnapshot,
    FetchSnapshotResponse,
    FetchSnapshotResponsePartitionSnapshot,
)
from raftlog.uuid_text import ZERO_UUID


def turn_to_snapshot(replica: LocalReplica, role: Follower, snapshot_id: OffsetAndEpoch) -> ResponseOutcome:
    """Begin to fetch the snapshot that a leader has named instead of records.

    As in Kafka, another one that is being fetched is given up for it, and one that is stored already is not fetched. A
    snapshot that lacks records that are committed is not followed: this replica halts. But a log that is damaged may
    end below its own last snapshot: it restarts there.

    While the leader is not asked, after a failure, a bootstrap server may be: if that is the leader, it names the
    snapshot that is being fetched, as fast as it is asked. That brings nothing new, and is followed by a pause.

    A leader's log has no later epoch than the snapshot's below the end of that. So a log that ends there, or below it,
    in a later epoch has diverged: it is truncated first.
    """
    if min(snapshot_id.offset, snapshot_id.epoch) < 0:
        return ResponseOutcome.FAILED
    fetch = role.fetching_snapshot
    if fetch is not None and fetch.snapshot_id == snapshot_id and replica.config.pause_after_refusal:
        note_success(replica, role)
        return ResponseOutcome.FAILED
    replica.abandon_snapshot_fetch()
    role = attrs.evolve(role, fetching_snapshot=None)
    log, end = replica.log.state, replica.log.end
    if 0 < snapshot_id.epoch < end.epoch and end.offset <= snapshot_id.offset:
        return truncate(replica, role, snapshot_id)
    least, latest = replica.least_end_offset, log.latest_snapshot_id
    if snapshot_id in log.snapshot_ids:
        _restart(replica)
    elif snapshot_id <= end:
        return ResponseOutcome.FAILED
    elif snapshot_id.offset < least:
        if latest is None or latest <= end:
            replica.halt(f"leader {role.leader.id} names snapshot {snapshot_id}, but {least} is committed")
            return ResponseOutcome.FAILED
        _restart(replica)
    else:
        _do(replica, FetchStep.BEGIN, lambda number: BeginFetchedSnapshot(number, snapshot_id))
        role = attrs.evolve(role, fetching_snapshot=SnapshotFetch(snapshot_id))
    note_success(replica, role)
    return ResponseOutcome.DONE


def fetch_snapshot_request(replica: LocalReplica, fetch: SnapshotFetch) -> FetchSnapshotRequest:
    """Return the request for the next chunk.

    Source: KafkaRaftClient#buildFetchSnapshotRequest.
    """
    identity = replica.identity
    partition = FetchSnapshotRequestPartitionSnapshot(
        partition=0,
        current_leader_epoch=replica.epoch,
        snapshot_id=SnapshotId(end_offset=fetch.snapshot_id.offset, epoch=fetch.snapshot_id.epoch),
        position=fetch.size_bytes,
        replica_directory_id=identity.key.directory_id or ZERO_UUID,
    )
    return FetchSnapshotRequest(
        cluster_id=identity.cluster_id,
        replica_id=replica.fetching_id,
        max_bytes=replica.config.fetch_snapshot_max_bytes,
        topics=(FetchSnapshotRequestTopicSnapshot(name=identity.topic_name, partitions=(partition,)),),
    )


def handle_fetch_snapshot_response(
    replica: LocalReplica, sent: SentRequest, response: FetchSnapshotResponse
) -> ResponseOutcome:
    """Write a chunk, or go back to fetching records if the leader does not have the snapshot.

    As with a Fetch, a refusal is followed by a pause: a leader that has resigned would be asked as fast as it answers.

    Source: KafkaRaftClient#handleFetchSnapshotResponse. Differs: Kafka asks again at once (DECISIONS.md 54).
    """
    answer = _answer(replica, response)
    if response.error_code or answer is None:
        return ResponseOutcome.FAILED
    is_gone = answer.error_code == ErrorCode.SNAPSHOT_NOT_FOUND
    leader = answer.current_leader
    endpoints = endpoints_of(replica, response.node_endpoints, leader.leader_id)
    error = ErrorCode.NONE if is_gone else answer.error_code
    outcome = handle_common(replica, error, leader.leader_epoch, leader.leader_id, endpoints)
    if error and replica.config.pause_after_refusal:
        outcome = ResponseOutcome.FAILED
    role = replica.role
    if not isinstance(role, Follower) or sent.epoch != role.epoch or not replica.is_log_at_rest:
        return ResponseOutcome.DONE if outcome is ResponseOutcome.CONTINUE else outcome
    if answer.error_code == ErrorCode.POSITION_OUT_OF_RANGE:
        replica.abandon_snapshot_fetch()
    if outcome is not ResponseOutcome.CONTINUE or role.fetching_snapshot is None:
        return ResponseOutcome.DONE if outcome is ResponseOutcome.CONTINUE else outcome
    if is_gone or min(answer.snapshot_id.end_offset, answer.snapshot_id.epoch) < 0:
        replica.abandon_snapshot_fetch()
        note_success(replica, attrs.evolve(role, fetching_snapshot=None))
        return ResponseOutcome.DONE
    return _append(replica, role, role.fetching_snapshot, answer)


def _answer(replica: LocalReplica, response: FetchSnapshotResponse) -> FetchSnapshotResponsePartitionSnapshot | None:
    """Return what a response says of this replica's log, the first of it, as Kafka takes it; None if it is nothing."""
    topics = response.topics
    if len(topics) > 1 and len(topics[0].partitions) != 1:
        return None
    ours = (each for each in topics if each.name == replica.identity.topic_name)
    return next((part for topic in ours for part in topic.partitions if part.index == 0), None)


def _append(
    replica: LocalReplica, role: Follower, fetch: SnapshotFetch, answer: FetchSnapshotResponsePartitionSnapshot
) -> ResponseOutcome:
    """Write a chunk if it is the next one of this snapshot. A chunk without bytes would be no progress."""
    named = OffsetAndEpoch(answer.snapshot_id.end_offset, answer.snapshot_id.epoch)
    data, position = answer.unaligned_records, fetch.size_bytes
    end = position + len(data)
    if named != fetch.snapshot_id or answer.position != position or not position < end <= answer.size:
        return ResponseOutcome.FAILED
    if fetch.snapshot_id <= replica.log.end:  # A bootstrap server has sent records meanwhile.
        replica.abandon_snapshot_fetch()
        note_success(replica, attrs.evolve(role, fetching_snapshot=None))
        return ResponseOutcome.DONE
    step = FetchStep.APPEND_LAST if end == answer.size else FetchStep.APPEND
    _do(replica, step, lambda number: AppendToFetchedSnapshot(number, position, data))
    note_success(replica, attrs.evolve(role, fetching_snapshot=attrs.evolve(fetch, size_bytes=end)))
    return ResponseOutcome.DONE


def _do(replica: LocalReplica, step: FetchStep, make: Callable[[int], FetchedSnapshotWork]) -> None:
    before = replica.snapshots.under_way
    invariant(before is None, "{} while the disk is to do {}", step, before)
    replica.snapshots.under_way = FetchedSnapshotStep(replica.work_on_log(make), step)


def note_snapshot_work(replica: LocalReplica, number: int) -> None:
    """Go on after work on the log was reported: freeze what is whole, and restart the log at what is frozen."""
    work = replica.snapshots
    done = work.under_way
    if done is None or done.number != number:
        return
    work.under_way = None
    match done.step:
        case FetchStep.APPEND_LAST if isinstance(replica.role, Follower) and replica.role.fetching_snapshot is not None:
            _do(replica, FetchStep.FREEZE, FreezeFetchedSnapshot)
            replica.role = attrs.evolve(replica.role, fetching_snapshot=None)
        case FetchStep.FREEZE:
            _restart(replica)
        case FetchStep.RESTART:
            _go_on_after_restart(replica)


def _restart(replica: LocalReplica) -> None:
    try:
        ahead = snapshot_ahead_of_log(replica.log.state)
    except TruncationBelowHighWatermarkError as error:
        replica.halt(f"the snapshot that was fetched contradicts the log: {error}")
        return
    if ahead is not None:
        _do(replica, FetchStep.RESTART, RestartAtLatestSnapshot)


def _go_on_after_restart(replica: LocalReplica) -> None:
    start, end, committed = replica.log.state.start_offset, replica.log.state.end_offset, replica.committed_offset
    invariant(start == end, "the log restarts at {}, but ends at {}", start, end)
    invariant(committed <= start, "the log restarts at {}, but {} is committed", start, committed)
    replica.snapshots.accept()
    replica.raise_high_watermark(end)
    if isinstance(replica.role, Follower):
        note_success(replica, replica.role)


def may_be_refused(replica: LocalReplica, number: int) -> bool:
    """Whether an effect is the work on a fetched snapshot that is to be reported next."""
    step = replica.snapshots.under_way
    is_next = bool(replica.log_work) and replica.log_work[0] == number
    return is_next and step is not None and step.number == number and step.step is not FetchStep.RESTART


def refuse_fetched_snapshot(replica: LocalReplica, reason: str) -> None:
    """Note that the disk has removed a fetched snapshot, because its bytes are bad, or it has no room for them.

    A role that this replica has taken since has nothing to do with it, because it fetches when the log is at rest.
    """
    role, config = replica.role, replica.config
    replica.log_work.popleft()
    replica.snapshots.under_way = None
    if isinstance(role, Follower):
        replica.role = attrs.evolve(role, fetching_snapshot=None)
    replica.snapshots.refuse(reason, replica.now_ms, config.retry_backoff_ms, config.fetch_timeout_ms // 2)
