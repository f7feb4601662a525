# SPDX-License-Identifier: Apache-2.0
"""What a replicated log allows and answers, as pure functions of its state. For appends, see ``append_validation``.

``MemoryLog`` and ``FileLog`` share these functions, so that they cannot disagree.

Source: KafkaRaftLog, UnifiedLog, ReplicatedLog.
"""

from collections.abc import Callable

from raftlog.errors import (
    FencedEpochError,
    InvalidSnapshotIdError,
    OffsetOutOfRangeError,
    TruncationBelowHighWatermarkError,
    UnknownEpochError,
)
from raftlog.log.state import LogState
from raftlog.offsets import MAX_EPOCH, OffsetAndEpoch, ValidOffsetAndEpoch


def check_leader_epoch(log: LogState, epoch: int) -> None:
    """Check that a leader may begin an epoch in a log.

    Raises:
        FencedEpochError: the log has a higher epoch.
        UnknownEpochError: the epoch does not fit in 31 bits.

    Source: KafkaRaftLog#initializeLeaderEpoch.
    """
    if epoch > MAX_EPOCH:
        raise UnknownEpochError(f"epoch {epoch} is above {MAX_EPOCH}, the highest possible")
    if epoch < log.last_fetched_epoch:
        raise FencedEpochError(f"epoch {epoch} is below the log's epoch {log.last_fetched_epoch}")


def epoch_at_offset(log: LogState, offset: int) -> int:
    """Return the epoch that the record at an offset was written in.

    Raises:
        OffsetOutOfRangeError: the log does not hold that offset.

    Source: LeaderEpochFileCache#epochForOffset.
    """
    epoch = log.epochs.epoch_for_offset(offset) if log.start_offset <= offset < log.end_offset else None
    if epoch is None:
        raise OffsetOutOfRangeError(f"offset {offset} is not in {log.start_offset} to {log.end_offset} (exclusive)")
    return epoch


def end_offset_for_epoch(log: LogState, epoch: int) -> OffsetAndEpoch:
    """Return where an epoch ends in a log: its end offset, exclusive, with the greatest epoch not above it.

    If ``epoch`` is below all epochs of the log, that is the log's first offset with ``epoch`` itself, which may be the
    id of the earliest snapshot. If it is above all of them, that is the log end.

    Source: KafkaRaftLog#endOffsetForEpoch.
    """
    end = log.epochs.end_offset_for(epoch, log.end_offset)
    if end is None:
        return OffsetAndEpoch(log.end_offset, log.last_fetched_epoch)
    earliest = log.earliest_snapshot_id
    if earliest is not None and earliest.offset == end.offset and end.epoch == epoch:
        return earliest
    return end


def validate_offset_and_epoch(log: LogState, offset: int, epoch: int) -> ValidOffsetAndEpoch:
    """Decide whether a follower may fetch from a position, must truncate first, or must fetch a snapshot.

    Args:
        log: the leader's.
        offset: the first one that the follower wants, inclusive.
        epoch: of the follower's last record.

    Source: ReplicatedLog#validateOffsetAndEpoch.
    """
    if log.start_offset == 0 and offset == 0:
        return ValidOffsetAndEpoch.valid(OffsetAndEpoch(0, 0))
    earliest, latest = log.earliest_snapshot_id, log.latest_snapshot_id
    if earliest is not None and latest is not None:
        differs_at_start = offset == log.start_offset and epoch != earliest.epoch
        if offset < log.start_offset or differs_at_start or epoch < earliest.epoch:
            return ValidOffsetAndEpoch.snapshot(latest)
    end = end_offset_for_epoch(log, epoch)
    if end.epoch != epoch or end.offset < offset:
        return ValidOffsetAndEpoch.diverging(end)
    return ValidOffsetAndEpoch.valid(OffsetAndEpoch(offset, epoch))


def truncation_offset(log: LogState, end_offset: OffsetAndEpoch) -> int:
    """Return the end offset, exclusive, that a follower must truncate to after the leader's diverging response.

    Args:
        log: the follower's.
        end_offset: from the leader's response: the leader's last epoch not above the follower's, and where it ends.

    Source: ReplicatedLog#truncateToEndOffset.
    """
    if end_offset.epoch == 0:
        return min(end_offset.offset, log.end_offset)
    here = end_offset_for_epoch(log, end_offset.epoch)
    return min(here.offset, end_offset.offset) if here.epoch == end_offset.epoch else here.offset


def proven_end_offset(log: LogState) -> int:
    """Return the offset, exclusive, up to which snapshots prove a log to be committed; its start if none does.

    A snapshot has committed records only, and its id names the epoch of its last record. If the log has records of
    that epoch below the snapshot's end, they are in the snapshot, and so is everything before them, because a leader
    writes each offset once. If the log has no record of that epoch, the snapshot proves nothing: the log may have
    diverged earlier.
    """
    ends = [log.start_offset]
    for snapshot_id in log.snapshot_ids:
        epoch_end = log.epochs.end_offset_for(snapshot_id.epoch, log.end_offset)
        end_offset = 0 if epoch_end is None else min(snapshot_id.offset, epoch_end.offset)
        if end_offset > log.start_offset and log.epochs.epoch_for_offset(end_offset - 1) == snapshot_id.epoch:
            ends.append(end_offset)
    return max(ends)


def check_truncation(log: LogState, end_offset: int) -> None:
    """Check that a truncation to an end offset, exclusive, drops no committed record.

    Raises:
        TruncationBelowHighWatermarkError: it would drop records below the high watermark, or below the end of a
            snapshot of this log.

    Source: KafkaRaftLog#truncateTo. Differs: DECISIONS.md 37, Kafka ignores the snapshots.
    """
    least = max(log.high_watermark, proven_end_offset(log))
    if end_offset < least:
        raise TruncationBelowHighWatermarkError(f"a truncation to {end_offset}, below the high watermark {least}")


def clamped_high_watermark(log: LogState, offset: int) -> int:
    """Return a log's next high watermark: the given offset clamped to the log, but never below the current one.

    Source: KafkaRaftLog#updateHighWatermark.
    """
    return max(log.high_watermark, log.start_offset, min(offset, log.end_offset))


def check_new_snapshot_id(log: LogState, snapshot_id: OffsetAndEpoch, ends_batch: Callable[[int], bool]) -> bool:
    """Check the id of a snapshot that is to be taken of a log's own records.

    Args:
        log: the log.
        snapshot_id: end offset, exclusive, and the epoch of the record before it.
        ends_batch: returns whether a batch ends at an offset, exclusive. It is called last, and only with an offset
            above the log start and not above the high watermark.

    Returns:
        Whether to take it. False if a snapshot of this id exists, or the log starts above it.

    Raises:
        InvalidSnapshotIdError: the offset is above the high watermark, not where a batch ends, or not of that epoch; or
            the id is lower than the latest snapshot's.

    Source: KafkaRaftLog#createNewSnapshot. Differs: Kafka accepts any epoch that ends at the offset or above.
    """
    if snapshot_id in log.snapshot_ids or snapshot_id.offset < log.start_offset:
        return False
    latest = log.latest_snapshot_id
    if snapshot_id.offset > log.high_watermark:
        raise InvalidSnapshotIdError(f"{snapshot_id} is above the high watermark {log.high_watermark}")
    if latest is not None and (snapshot_id < latest or snapshot_id.offset < latest.offset):
        raise InvalidSnapshotIdError(f"{snapshot_id} is older than the latest snapshot {latest}")
    epoch = log.epochs.epoch_for_offset(snapshot_id.offset - 1) if snapshot_id.offset > 0 else 0
    if epoch != snapshot_id.epoch:
        raise InvalidSnapshotIdError(f"{snapshot_id}: the record before it has epoch {epoch}")
    if snapshot_id.offset > log.start_offset and not ends_batch(snapshot_id.offset):
        raise InvalidSnapshotIdError(f"{snapshot_id}: no batch ends there")
    return True


def may_start_at_snapshot(log: LogState, snapshot_id: OffsetAndEpoch) -> bool:
    """Whether a log may start at a snapshot: it is listed, committed, and above the current log start.

    Source: KafkaRaftLog#deleteBeforeSnapshot.
    """
    return snapshot_id in log.snapshot_ids and log.start_offset < snapshot_id.offset <= log.high_watermark


def is_superseded(log: LogState, snapshot_id: OffsetAndEpoch) -> bool:
    """Whether a snapshot is useless to followers, because the log starts above it, or at a later one."""
    earliest = log.earliest_snapshot_id
    starts_at_later = earliest is not None and earliest.offset == log.start_offset and snapshot_id < earliest
    return snapshot_id.offset < log.start_offset or starts_at_later


def snapshot_ahead_of_log(log: LogState) -> OffsetAndEpoch | None:
    """Return the latest snapshot if it is ahead of the whole log, so that the log must restart at it; else None.

    Epochs are compared first. A log of a later epoch is left as it is, even if it ends before the snapshot does: a
    follower that has just installed that snapshot must stop.

    Raises:
        TruncationBelowHighWatermarkError: the snapshot is ahead by its epoch, and lacks records that are committed.

    Source: KafkaRaftLog#truncateToLatestSnapshot; KafkaRaftClient#handleFetchSnapshotResponse fails if it is False.
    """
    latest = log.latest_snapshot_id
    if latest is None:
        return None
    if latest <= OffsetAndEpoch(log.end_offset, log.last_fetched_epoch):
        return None
    check_truncation(log, latest.offset)
    return latest
