# SPDX-License-Identifier: Apache-2.0
"""The log of one replica: the protocol that ``MemoryLog`` and ``FileLog`` implement, and the rules that both follow.

::

    log start <= latest snapshot's end <= high watermark <= log end          flushed <= log end

``log start``, inclusive, moves up when a snapshot takes the place of records (``delete_before_snapshot``,
``truncate_to_latest_snapshot``). ``log end``, exclusive, moves up by appends and down by truncation. ``high
watermark``, exclusive, is set by consensus, and raised by every snapshot of this log, because a snapshot has committed
records only. It is not durable: after an open it is the end of the newest such snapshot. No truncation goes below it
(DECISIONS.md 37). ``flushed``, exclusive, moves up when a sync has returned.

Source: ReplicatedLog, KafkaRaftLog.
"""

import enum
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import attrs

from raftlog.disk_work import DiskResult, DiskWork
from raftlog.log.state import LogState
from raftlog.offsets import LogOffsetMetadata, OffsetAndEpoch, ValidOffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.record import Record
from raftlog.snapshot.raw import RawSnapshotReader, RawSnapshotWriter


class Isolation(enum.Enum):
    """The offset up to which a read returns batches. Source: Isolation."""

    COMMITTED = "committed"
    """Up to the high watermark, exclusive."""
    UNCOMMITTED = "uncommitted"
    """Up to the log end, exclusive."""


class LogAppendInfo(NamedTuple):
    """What an append added.

    Attributes:
        first_offset: of the first batch.
        last_offset: of the last batch, inclusive.
    """

    first_offset: int
    last_offset: int


@attrs.frozen
class LogFetchInfo:
    """What a read found.

    Attributes:
        records: whole batches, except that the last may be cut off; empty if there is nothing to read. The first batch
            holds the offset that was asked for, or is the next one after it.
        start_offset_metadata: base offset and place of the first batch; the limit of the read if ``records`` is empty.
    """

    records: memoryview
    start_offset_metadata: LogOffsetMetadata


@attrs.frozen
class Quarantine:
    """Damage below the durable point: this log has lost records that may have been acknowledged.

    Attributes:
        first_bad_offset: the first offset, inclusive, that cannot be trusted; records below it can be read.
        durable_end_offset: the log is repaired once its end, exclusive, is at least this.
        reason: what is wrong, in the words of the ``DecodeError``.
        path: the damaged file.
        position: byte position of the damage in it.
    """

    first_bad_offset: int
    durable_end_offset: int
    reason: str
    path: str
    position: int


class ReplicatedLog(Protocol):
    """Batches by offset, epochs, and snapshots. It takes no locks: use it from one thread at a time.

    Every method that may sync has a second form, ``prepare_...``, which never waits for the disk and returns
    ``DiskWork``; the first form prepares, runs and finishes that work in a row. Only one piece of work is under way at
    a time. Until it is finished, calls that conflict with it raise ``WorkUnderWayError`` and change nothing; the
    docstring of each ``prepare_...`` method lists which calls continue to work.

    Unless a docstring says otherwise, an error leaves the log as it was. The exception is a ``StorageError`` of a write
    or sync: what is on disk is then unknown until the directory is opened again. Until then every call that writes,
    syncs, begins or freezes a snapshot, or reads, raises the error again. Queries answered from memory continue: the
    properties agree with each other, and ``flushed_offset`` is never too high.
    """

    @property
    def start_offset(self) -> int:
        """The first offset, inclusive, that the log holds; snapshots replace the records below it."""
        ...

    @property
    def end_offset(self) -> LogOffsetMetadata:
        """The offset that the next record gets, and its place in the files."""
        ...

    @property
    def high_watermark(self) -> LogOffsetMetadata:
        """The end, exclusive, of the records known to be committed; without its place if that cannot be read."""
        ...

    @property
    def flushed_offset(self) -> int:
        """The end, exclusive, of the durable records."""
        ...

    @property
    def last_fetched_epoch(self) -> int:
        """The epoch of the last batch, or of the snapshot that the log starts from; 0 if there is neither.

        ``initialize_leader_epoch`` raises it before the first batch of that epoch. Source:
        ReplicatedLog#lastFetchedEpoch.
        """
        ...

    @property
    def state(self) -> LogState:
        """The current offsets, epochs and snapshot ids, as one immutable value."""
        ...

    @property
    def generation(self) -> int:
        """How often the log was truncated or opened; it only grows. Results of an older generation may be outdated."""
        ...

    @property
    def quarantine(self) -> Quarantine | None:
        """The damage that the log must be repaired from; None for a sound log."""
        ...

    def append_as_leader(self, batches: bytes | memoryview, epoch: int) -> LogAppendInfo:
        """Append batches that this replica has built as leader of an epoch. They are not durable until ``flush``.

        Args:
            batches: whole batches; offsets, timestamps, epochs and checksums are kept as they are.
            epoch: the leader's epoch; every batch must carry it.

        Raises:
            QuarantinedLogError: the log is damaged.
            NonContiguousAppendError: a batch's base offset is not the offset after the batch before it.
            InvalidRecordError: a batch of another epoch, no batch at all, a control batch that no state machine can
                follow, or a record that an audit would call damaged, such as a data record with headers or with a
                timestamp of its own.
            EmptyVoterSetError, NoOverlappingMajorityError, TooManyVoterChangesError: a VotersRecord is empty, or must
                not follow another one in the same append. The log does not know which voters are in force;
                ``BatchAccumulator`` does, and checks each VotersRecord that is appended through it.
            BatchTooLargeError: a batch of more than 8 MiB, or 2 GiB in total.
            CorruptBatchError, TruncatedBatchError: a batch is corrupt or cut off.
            DecodeError, MissingExtraError: a batch cannot be decompressed.
            OutOfSpaceError: the bytes did not fit; the log is as it was.
            StorageError: see the class.

        Source: KafkaRaftLog#appendAsLeader. Differs: DECISIONS.md 14, gaps are refused; and 40.
        """
        ...

    def prepare_append_as_leader(self, batches: bytes | memoryview, epoch: int) -> DiskWork[DiskResult[LogAppendInfo]]:
        """Append at once if that needs no sync; otherwise, in a new epoch or a new segment, when the work is finished.

        The bytes are copied if they must wait. Meanwhile reads continue, and appends are refused: a batch must not be
        in the file before its epoch is checkpointed, nor before the segment preceding it is durable.

        Raises:
            WorkUnderWayError: other work must be finished first.
        """
        ...

    def append_as_follower(self, batches: bytes | memoryview, epoch: int) -> LogAppendInfo | None:
        """Append batches that the leader of an epoch has sent. They are not durable until ``flush``.

        A cut-off batch at the end is dropped, and so is the first batch of an epoch above ``epoch`` with all after it.
        A follower must take whatever its quorum has committed, so neither voter sets nor data records are checked;
        audits report them.

        Returns:
            What was added, or None if no batch was left to add.

        Raises:
            NonContiguousAppendError: as for ``append_as_leader``.
            InvalidRecordError: an epoch below that of the batch before it, or below one that was entered since (which
                the records replace in a log that ends at 0); or a control batch that no state machine can follow.
            BatchTooLargeError: 2 GiB in total.
            CorruptBatchError: a batch is corrupt.
            MissingExtraError: a control batch cannot be decompressed.
            OutOfSpaceError, StorageError: as for ``append_as_leader``.

        Source: KafkaRaftLog#appendAsFollower. Differs: DECISIONS.md 14, gaps are refused.
        """
        ...

    def prepare_append_as_follower(
        self, batches: bytes | memoryview, epoch: int
    ) -> DiskWork[DiskResult[LogAppendInfo | None]]:
        """Append what a leader has sent, at once or when the work is finished, as ``prepare_append_as_leader`` does."""
        ...

    def read(self, start_offset: int, isolation: Isolation, max_size_bytes: int = 8 * 1024 * 1024) -> LogFetchInfo:
        """Read batches from an offset on, within one segment; at least one batch if there is one.

        Args:
            start_offset: inclusive.
            isolation: where the read ends.
            max_size_bytes: limit of the result. A larger first batch is returned whole, alone.

        Raises:
            OffsetOutOfRangeError: the offset is below the log start, or above the log end.
            QuarantinedLogError: the offset is at or above the first bad one.
            CorruptBatchError: a batch was damaged by bit rot since the log was opened; it is not served. The next open
                puts the log in quarantine.
            StorageError: the disk failed.

        Source: KafkaRaftLog#read.
        """
        ...

    def batches(
        self, from_offset: int | None = None, isolation: Isolation = Isolation.COMMITTED
    ) -> Iterator[RecordBatch]:
        """Yield the log's batches in order, control batches too, up to the end that it has at the first ``next``.

        ``raftlog.log.iteration`` explains what happens if the log changes meanwhile. Memory does not grow with the log.

        Args:
            from_offset: inclusive; the first batch holds it, or is the next one after it. None is the log start.
            isolation: where the iteration ends.

        Raises:
            OffsetOutOfRangeError: the offset is above the log end, or below the log start, which may move meanwhile.
            DivergedLogError: batches that were already yielded have been truncated.
            QuarantinedLogError, CorruptBatchError, StorageError: as for ``read``; preceding batches are yielded first.
        """
        ...

    def records(
        self,
        from_offset: int | None = None,
        isolation: Isolation = Isolation.COMMITTED,
        *,
        data_only: bool = True,
    ) -> Iterator[Record]:
        """Yield the log's records in order, as a state machine applies them; otherwise as ``batches``.

        Args:
            from_offset: inclusive: no record is below it. None is the log start.
            isolation: where the iteration ends.
            data_only: whether control records, which are not for the state machine, are left out.

        Raises:
            InvalidRecordError, UnsupportedCompressionError, MissingExtraError: as for ``RecordBatch.records``.
        """
        ...

    def flush(self) -> None:
        """Make every appended batch durable: one sync for all appends since the last one (group commit).

        Raises:
            StorageError: see the class. A failed sync is never retried.
        """
        ...

    def prepare_flush(self) -> DiskWork[DiskResult[int]]:
        """Prepare to make durable all that is appended by now; its value is the flushed offset, exclusive.

        Meanwhile appends and reads continue; only an append that needs work itself is refused. Batches appended after
        this call are not covered, even if the sync begins later.

        Raises:
            WorkUnderWayError: other work, perhaps another flush, must be finished first.
        """
        ...

    def update_high_watermark(self, offset: int) -> None:
        """Raise the high watermark: records below it are committed.

        Args:
            offset: exclusive, clamped to the log start and the log end. A value below the current one is ignored.

        Source: KafkaRaftLog#updateHighWatermark.
        """
        ...

    def initialize_leader_epoch(self, epoch: int) -> None:
        """Begin an epoch at the log end. A leader does so before it writes.

        Raises:
            QuarantinedLogError: the log is damaged.
            FencedEpochError: the log has a later epoch.
            UnknownEpochError: the epoch does not fit in 31 bits.
            StorageError: see the class.

        Source: KafkaRaftLog#initializeLeaderEpoch.
        """
        ...

    def prepare_leader_epoch(self, epoch: int) -> DiskWork[DiskResult[None]]:
        """Prepare ``initialize_leader_epoch``; meanwhile reads continue, and appends are refused."""
        ...

    def epoch_at_offset(self, offset: int) -> int:
        """Return the epoch of the record at an offset. With the offset after it, that is the id of a snapshot.

        Raises:
            OffsetOutOfRangeError: the offset is below the log start, or not below the log end.

        Source: LeaderEpochFileCache#epochForOffset.
        """
        ...

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        """Return where an epoch ends in this log: its end offset, exclusive, with the greatest epoch not above it.

        Source: KafkaRaftLog#endOffsetForEpoch.
        """
        ...

    def validate_offset_and_epoch(self, offset: int, epoch: int) -> ValidOffsetAndEpoch:
        """Decide whether a follower may fetch from a position, must truncate first, or must fetch a snapshot.

        Source: ReplicatedLog#validateOffsetAndEpoch.
        """
        ...

    def truncate_to(self, offset: int) -> None:
        """Drop the batch that holds ``offset`` and every batch after it; durable when it returns.

        Raises:
            TruncationBelowHighWatermarkError: committed records would be dropped: the log would end below the high
                watermark, or below the end of a snapshot of this log.
            StorageError: see the class.

        Source: KafkaRaftLog#truncateTo. Differs: the log ends where its last whole batch does.
        """
        ...

    def prepare_truncate_to(self, offset: int) -> DiskWork[DiskResult[int]]:
        """Prepare ``truncate_to``; its value is the new log end, exclusive.

        Meanwhile the log answers as if truncated: reads below the new end continue, other reads and appends do not.
        """
        ...

    def truncate_to_end_offset(self, end_offset: OffsetAndEpoch) -> int:
        """Drop the records that diverge from the leader's log, according to the end offset in its response.

        Returns:
            The new log end, exclusive.

        Raises:
            TruncationBelowHighWatermarkError: committed records would be dropped.
            StorageError: see the class.

        Source: ReplicatedLog#truncateToEndOffset.
        """
        ...

    def prepare_truncate_to_end_offset(self, end_offset: OffsetAndEpoch) -> DiskWork[DiskResult[int]]:
        """Prepare ``truncate_to_end_offset``; otherwise as ``prepare_truncate_to``."""
        ...

    def truncate_to_latest_snapshot(self) -> bool:
        """Restart the log at the latest snapshot if that is ahead of it: by epoch, or by end offset in the same epoch.

        Returns:
            Whether it was ahead. If it was not, a follower that has just installed the snapshot must stop, as Kafka's
            does: its log is of a later epoch, and lacks records that the snapshot has.

        Raises:
            TruncationBelowHighWatermarkError: committed records would be dropped.
            StorageError: see the class.

        Differs: Kafka ignores the high watermark here. As in Kafka, a second call changes nothing and returns False,
        since the log ends at the snapshot, in its epoch.

        Source: KafkaRaftLog#truncateToLatestSnapshot.
        """
        ...

    def prepare_truncate_to_latest_snapshot(self) -> DiskWork[DiskResult[bool]]:
        """Prepare ``truncate_to_latest_snapshot``; meanwhile reads of the old log continue, and appends are refused."""
        ...

    @property
    def snapshot_ids(self) -> tuple[OffsetAndEpoch, ...]:
        """The ids of the frozen snapshots, oldest first."""
        ...

    @property
    def latest_snapshot_id(self) -> OffsetAndEpoch | None:
        """The last of ``snapshot_ids``."""
        ...

    @property
    def earliest_snapshot_id(self) -> OffsetAndEpoch | None:
        """The first of ``snapshot_ids``."""
        ...

    def create_snapshot(self, snapshot_id: OffsetAndEpoch) -> RawSnapshotWriter | None:
        """Begin a snapshot of this log's records below an offset. It is listed once it is frozen.

        Freezing it checks header, footer and every batch first; after ``close`` it is refused. If the log by then
        starts above this snapshot, or at a later one, freezing deletes it instead of listing it.

        Returns:
            The writer; None if a snapshot of this id exists, or the log starts above it.

        Raises:
            InvalidSnapshotIdError: the offset is above the high watermark, not where a committed batch ends, or not of
                that epoch; or the id is lower than the latest snapshot's.
            StorageError: the disk failed.

        Differs: Kafka accepts an id lower than the latest snapshot's, though no replica would be sent that snapshot.

        Source: KafkaRaftLog#createNewSnapshot.
        """
        ...

    def create_snapshot_unchecked(self, snapshot_id: OffsetAndEpoch) -> RawSnapshotWriter | None:
        """Begin a snapshot that is fetched from the leader, whatever the offsets of this log.

        Freezing works as for ``create_snapshot``. It also raises the high watermark over the records of the snapshot's
        epoch below its end: they are committed, and so is everything before them.

        Returns:
            The writer; None if a snapshot of this id exists.

        Raises:
            InvalidSnapshotIdError: the id is not valid in any log.
            StorageError: the disk failed.

        Source: KafkaRaftLog#createNewSnapshotUnchecked.
        """
        ...

    def read_snapshot(self, snapshot_id: OffsetAndEpoch) -> RawSnapshotReader | None:
        """Open a snapshot; None if there is none of this id. Source: KafkaRaftLog#readSnapshot."""
        ...

    def delete_before_snapshot(self, snapshot_id: OffsetAndEpoch) -> bool:
        """Move the log start to a snapshot's end, and delete the records and snapshots below it.

        Returns:
            Whether the log start moved.

        Differs: Kafka returns whether a segment or a snapshot was deleted, which may be False although the log start
        moves inside a segment. As in Kafka, a second call changes nothing and returns False, and so does an id without
        a snapshot.

        Source: KafkaRaftLog#deleteBeforeSnapshot.
        """
        ...

    def prepare_delete_before_snapshot(self, snapshot_id: OffsetAndEpoch) -> DiskWork[DiskResult[bool]]:
        """Prepare ``delete_before_snapshot``.

        Meanwhile appends and reads continue. If the log ends at the snapshot, a segment begins there: no appends then.
        """
        ...

    def clean(self, now_ms: int) -> bool:
        """Delete what exceeds the retention and a newer snapshot covers. The newest snapshot is never deleted.

        Args:
            now_ms: wall clock, in milliseconds of the Unix epoch.

        Returns:
            Whether anything was deleted.

        Source: KafkaRaftLog#maybeClean.
        """
        ...

    def prepare_clean(self, now_ms: int) -> DiskWork[DiskResult[bool]]:
        """Prepare one step of ``clean``; its value is False once nothing is left to delete."""
        ...

    def close(self) -> None:
        """Flush and close the files. Closing twice is harmless.

        Prepared work is cancelled if it has not been run, and finished if it has.

        Raises:
            StorageError: the flush failed.
            WorkUnderWayError: work is being run now. The log stays open: finish it, and close again.
        """
        ...
