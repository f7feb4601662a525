# SPDX-License-Identifier: Apache-2.0
"""Takes a snapshot of a log with the right id and control records; freezing it updates the log and the state machine.

Source: RaftClient#createSnapshot, KafkaRaftClient#createSnapshot.
"""

from raftlog.log.control_records import KRaftControlRecordStateMachine
from raftlog.log.replicated_log import Isolation, ReplicatedLog
from raftlog.offsets import OffsetAndEpoch
from raftlog.records import limits
from raftlog.records.batches.batch import read_batch
from raftlog.records.batches.compression import CompressionType
from raftlog.snapshot.notifying import NotifyingRawSnapshotWriter
from raftlog.snapshot.writer import RecordsSnapshotWriter


def begin_snapshot(
    log: ReplicatedLog,
    machine: KRaftControlRecordStateMachine,
    end_offset: int,
    *,
    now_ms: int,
    last_contained_log_timestamp: int | None = None,
    compression_type: CompressionType = CompressionType.NONE,
    max_batch_size_bytes: int = limits.MAX_BATCH_SIZE,
) -> RecordsSnapshotWriter | None:
    """Begin a snapshot of a log's records below an offset; the caller appends the records of the state there.

    It has the kraft.version and the voter set that records had put in force at its last offset, never the static
    voters, and the epoch of that offset. Freezing it lists it in the log, and trims the state machine to its end.

    Args:
        log: committed at least up to ``end_offset``.
        machine: a state machine that has read the log at least up to ``end_offset``.
        end_offset: exclusive, where a batch ends.
        now_ms: wall clock, in milliseconds of the Unix epoch; the timestamp of the first batch.
        last_contained_log_timestamp: when the record before ``end_offset`` was appended, in ms; None reads it from the
            log.
        compression_type: as for ``RecordsSnapshotWriter``.
        max_batch_size_bytes: as for ``RecordsSnapshotWriter``.

    Returns:
        The writer; None if a snapshot of this id exists, or the log starts at ``end_offset`` or above.

    Raises:
        OffsetOutOfRangeError: the log ends below ``end_offset``; or the state machine has not read up to there, or was
            trimmed to a later snapshot.
        InvalidSnapshotIdError: the offset is above the high watermark, not where a batch ends, or below the latest
            snapshot's.
        QuarantinedLogError, CorruptBatchError, StorageError: as for the log's ``read``.
        ValueError, BatchTooLargeError, MissingExtraError: as for ``RecordsSnapshotWriter``. No error leaves a file.
    """
    if end_offset <= log.start_offset:
        return None
    last_offset = end_offset - 1
    epoch = log.epoch_at_offset(last_offset)
    kraft_version, voters = machine.kraft_version_at_offset(last_offset), machine.voter_set_at_offset(last_offset)
    if last_contained_log_timestamp is None:
        last_contained_log_timestamp = _append_time(log, last_offset)
    raw = log.create_snapshot(OffsetAndEpoch(end_offset, epoch))
    if raw is None:
        return None
    try:
        return RecordsSnapshotWriter(
            NotifyingRawSnapshotWriter(raw, lambda frozen: machine.truncate_old_entries(frozen.offset)),
            now_ms,
            last_contained_log_timestamp=last_contained_log_timestamp,
            kraft_version=kraft_version,
            voter_set=voters,
            compression_type=compression_type,
            max_batch_size_bytes=max_batch_size_bytes,
        )
    except BaseException:
        raw.close()
        raise


def _append_time(log: ReplicatedLog, offset: int) -> int:
    """Return when the batch that holds an offset was appended, in ms. Source: Batch#appendTimestamp."""
    batch, _ = read_batch(log.read(offset, Isolation.UNCOMMITTED, 0).records)
    timestamp: int = batch.max_timestamp
    return timestamp
