# SPDX-License-Identifier: Apache-2.0
"""The log of one replica: the protocol that ``MemoryLog`` and ``FileLog`` implement, and the rules that both follow.

::

    log start <= latest snapshot's end <= high watermark <= log end          flushed <= log end

``log start``, inclusive, moves up when a snapshot takes the place of records (``delete_before_snapshot``,
``truncate_to_latest_snapshot``). ``log end``, exclusive, moves up by appends and down by truncation. ``high
watermark``, exclusive, is told by consensus, and by every snapshot that is of this log: only what is committed gets
into one. After a start it is the end of the newest such snapshot; what consensus said is not durable. No truncation
goes below it (DECISIONS.md 37). ``flushed``, exclusive, moves up when a sync has returned.

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
    """How far a read may see. Source: Isolation."""

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
        records: whole batches, the last one perhaps cut off; empty where there is nothing to read. The first one holds
            the offset that was asked for, or is the next behind it.
        start_offset_metadata: base offset of the first batch and its place; the limit of the read where it is empty.
    """

    records: memoryview
    start_offset_metadata: LogOffsetMetadata


@attrs.frozen
class Quarantine:
    """Damage below the durable point: records that may have been acknowledged, and that this log no longer holds.

    Attributes:
        first_bad_offset: the first offset, inclusive, that cannot be trusted; what lies below reads as ever.
        durable_end_offset: the log is whole again once its end, exclusive, is at least this.
        reason: what is wrong, as a ``DecodeError`` says it.
        path: the damaged file.
        position: byte position of the damage in it.
    """

    first_bad_offset: int
    durable_end_offset: int
    reason: str
    path: str
    position: int


class ReplicatedLog(Protocol):
    """Batches by offset, epochs, and snapshots. One owner at a time: nothing in it is locked.

    Everything that may sync has a second form, ``prepare_...``, which waits for no disk and returns ``DiskWork``;
    the first form prepares it, runs it and finishes it in a row. One piece of work is under way at a time. Until it is
    finished, what it touches is refused with ``WorkUnderWayError``, and nothing has changed then; the docstring of each
    says what goes on.

    Unless a docstring says otherwise, an error leaves the log as it was. A ``StorageError`` of a write or sync is the
    exception: what is on the disk is not known, and opening the directory anew finds out. Until then all that writes,
    syncs or begins and freezes snapshots raises it again, and so does ``read``; what is answered from memory goes on:
    the properties agree with each other, and ``flushed_offset`` promises no more than is true.
    """

    @property
    def start_offset(self) -> int:
        """The first offset, inclusive, that the log holds; the snapshots stand for what is below."""
        ...

    @property
    def end_offset(self) -> LogOffsetMetadata:
        """The offset that the next record gets, and where it will lie."""
        ...

    @property
    def high_watermark(self) -> LogOffsetMetadata:
        """The end, exclusive, of what is known to be committed; without its place, where the disk does not tell it."""
        ...

    @property
    def flushed_offset(self) -> int:
        """The end, exclusive, of what a crash cannot take."""
        ...

    @property
    def last_fetched_epoch(self) -> int:
        """The epoch of the last batch, or of the snapshot that the log starts from; 0 where there is neither.

        ``initialize_leader_epoch`` sets it before a batch does. Source: ReplicatedLog#lastFetchedEpoch.
        """
        ...

    @property
    def state(self) -> LogState:
        """The offsets, epochs and snapshot ids of this moment, as one immutable value."""
        ...

    @property
    def generation(self) -> int:
        """How often the log was truncated or opened; it only grows. What is told of an older one may be void by now."""
        ...

    @property
    def quarantine(self) -> Quarantine | None:
        """What is damaged, while it is; None for a sound log."""
        ...

    def append_as_leader(self, batches: bytes | memoryview, epoch: int) -> LogAppendInfo:
        """Append batches that this replica has made as leader of an epoch. They are not durable until ``flush``.

        Args:
            batches: whole batches; offsets, timestamps, epochs and checksums are kept as they are.
            epoch: that every batch must carry.

        Raises:
            QuarantinedLogError: the log is damaged.
            NonContiguousAppendError: a batch's base offset is not the offset after the batch before it.
            InvalidRecordError: a batch of another epoch, no batch at all, a control batch that no state machine can
                follow, or a record that an audit would call damaged: a data record with headers or a time of its own,
                say.
            EmptyVoterSetError, NoOverlappingMajorityError, TooManyVoterChangesError: a VotersRecord is empty, or must
                not follow another one in the same append. Which voters are in force the log does not know:
                ``BatchAccumulator`` is told, and checks each VotersRecord that is appended through it.
            BatchTooLargeError: a batch of more than 8 MiB, or 2 GiB in all.
            CorruptBatchError, TruncatedBatchError: a batch does not check.
            DecodeError, MissingExtraError: a batch does not decompress.
            OutOfSpaceError: the bytes did not fit; the log is as it was.
            StorageError: see above.

        Source: KafkaRaftLog#appendAsLeader. Differs: DECISIONS.md 14, gaps are refused; and 40.
        """
        ...

    def prepare_append_as_leader(self, batches: bytes | memoryview, epoch: int) -> DiskWork[DiskResult[LogAppendInfo]]:
        """Append at once where that needs no sync; else, in a new epoch or a new segment, when the work is finished.

        The bytes are copied where they must wait. Reads go on meanwhile, appends do not: a batch must not stand in the
        file before its epoch is written down, nor before the segment ahead of it is durable.

        Raises:
            WorkUnderWayError: other work must be finished first.
        """
        ...

    def append_as_follower(self, batches: bytes | memoryview, epoch: int) -> LogAppendInfo | None:
        """Append batches that the leader of an epoch has sent. They are not durable until ``flush``.

        A cut-off batch at the end is left out, and so is the first batch of an epoch above ``epoch`` with all behind.
        What a quorum has committed is taken, whoever votes by it and whatever its data records are; audits report it.

        Returns:
            What was added, or None when nothing was left to add.

        Raises:
            NonContiguousAppendError: as for ``append_as_leader``.
            InvalidRecordError: an epoch below that of the batch before it, or a control batch that no state machine
                can follow.
            BatchTooLargeError: 2 GiB in all.
            CorruptBatchError: a batch does not check.
            OutOfSpaceError, StorageError: as for ``append_as_leader``.

        Source: KafkaRaftLog#appendAsFollower. Differs: DECISIONS.md 14, gaps are refused.
        """
        ...

    def prepare_append_as_follower(
        self, batches: bytes | memoryview, epoch: int
    ) -> DiskWork[DiskResult[LogAppendInfo | None]]:
        """Append as ``prepare_append_as_leader`` does, what a leader has sent."""
        ...

    def read(self, start_offset: int, isolation: Isolation, max_size_bytes: int = 8 * 1024 * 1024) -> LogFetchInfo:
        """Read batches from an offset on, within one segment, and at least one where there is one.

        Args:
            start_offset: inclusive.
            isolation: how far it may see.
            max_size_bytes: of the whole, but for a first batch that is larger.

        Raises:
            OffsetOutOfRangeError: the offset is below the log start, or above the log end.
            QuarantinedLogError: the offset is at or above the first bad one.
            CorruptBatchError: a batch has rotted since the log was opened; it is not served. Opening the log anew puts
                it in quarantine.
            StorageError: the disk failed.

        Source: KafkaRaftLog#read.
        """
        ...

    def batches(
        self, from_offset: int | None = None, isolation: Isolation = Isolation.COMMITTED
    ) -> Iterator[RecordBatch]:
        """Yield the log's batches in order, control batches too, to the end that it has at the first.

        ``raftlog.log.iteration`` says what a change of the log means meanwhile. Memory does not grow with the log.

        Args:
            from_offset: inclusive; the first batch holds it, or is the next behind it. None is the log start.
            isolation: how far it may see.

        Raises:
            OffsetOutOfRangeError: the offset is below the log start, also where that has moved, or above the log end.
            DivergedLogError: records that were given have been truncated.
            QuarantinedLogError, CorruptBatchError, StorageError: as for ``read``; batches before are given first.
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
            isolation: how far it may see.
            data_only: whether control records, which are not the state machine's, are left out.

        Raises:
            InvalidRecordError, UnsupportedCompressionError, MissingExtraError: as for ``RecordBatch.records``.
        """
        ...

    def flush(self) -> None:
        """Make every appended batch durable: one sync for all appends since the last one (group commit).

        Raises:
            StorageError: see above. It is never tried again.
        """
        ...

    def prepare_flush(self) -> DiskWork[DiskResult[int]]:
        """Prepare to make durable what is appended by now; its value is the flushed offset, exclusive.

        Appends and reads go on meanwhile. What is appended after this call is not covered, whenever the sync begins. An
        append that needs work itself must wait.

        Raises:
            WorkUnderWayError: other work, perhaps another flush, must be finished first.
        """
        ...

    def update_high_watermark(self, offset: int) -> None:
        """Learn how far the log is committed.

        Args:
            offset: exclusive. It is held to the log start and the log end. A lower one than before is kept out.

        Source: KafkaRaftLog#updateHighWatermark.
        """
        ...

    def initialize_leader_epoch(self, epoch: int) -> None:
        """Enter an epoch at the log end, as its leader does before it writes.

        Raises:
            QuarantinedLogError: the log is damaged.
            FencedEpochError: the log has a later epoch.
            UnknownEpochError: no epoch is so high.
            StorageError: see above.

        Source: KafkaRaftLog#initializeLeaderEpoch.
        """
        ...

    def prepare_leader_epoch(self, epoch: int) -> DiskWork[DiskResult[None]]:
        """Prepare ``initialize_leader_epoch``; reads go on meanwhile, appends do not."""
        ...

    def epoch_at_offset(self, offset: int) -> int:
        """Return the epoch that the record at an offset was written in: with the offset after it, a snapshot's id.

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
        """Judge a follower's fetch position against this log.

        Source: ReplicatedLog#validateOffsetAndEpoch.
        """
        ...

    def truncate_to(self, offset: int) -> None:
        """Drop every batch that holds ``offset`` or lies behind it; durable when it returns.

        Raises:
            TruncationBelowHighWatermarkError: committed records would go: below the high watermark, or the end of a
                snapshot of this log.
            StorageError: see above.

        Source: KafkaRaftLog#truncateTo. Differs: the log ends where its last whole batch does.
        """
        ...

    def prepare_truncate_to(self, offset: int) -> DiskWork[DiskResult[int]]:
        """Prepare ``truncate_to``; its value is the new log end, exclusive.

        Reads below that go on meanwhile; others, and appends, do not. The offsets of the log change at the end.
        """
        ...

    def truncate_to_end_offset(self, end_offset: OffsetAndEpoch) -> int:
        """Drop what diverges from a leader that said where its log parts from this one.

        Returns:
            The new log end, exclusive.

        Raises:
            TruncationBelowHighWatermarkError: committed records would go.
            StorageError: see above.

        Source: ReplicatedLog#truncateToEndOffset.
        """
        ...

    def prepare_truncate_to_end_offset(self, end_offset: OffsetAndEpoch) -> DiskWork[DiskResult[int]]:
        """Prepare ``truncate_to_end_offset``; otherwise as ``prepare_truncate_to``."""
        ...

    def truncate_to_latest_snapshot(self) -> bool:
        """Start the log anew at the latest snapshot where that is ahead of it: by its epoch, or within one by its end.

        Returns:
            Whether it was. A follower that has just installed a snapshot must stop where it was not, as Kafka's does:
            its log is of a later epoch, and lacks what the snapshot has.

        Raises:
            TruncationBelowHighWatermarkError: committed records would go.
            StorageError: see above.

        Differs: Kafka does not look at the high watermark here. As there, a second call changes nothing and returns
        False, since the log ends at the snapshot, in its epoch.

        Source: KafkaRaftLog#truncateToLatestSnapshot.
        """
        ...

    def prepare_truncate_to_latest_snapshot(self) -> DiskWork[DiskResult[bool]]:
        """Prepare ``truncate_to_latest_snapshot``; reads of the old log go on meanwhile, appends do not."""
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

        Freezing it checks header, footer and every batch first; after ``close`` it is refused. Where the log starts
        above it by then, or at a later one, it is deleted, not listed.

        Returns:
            The writer; None where a snapshot of this id is there, or the log starts above it.

        Raises:
            InvalidSnapshotIdError: the offset is above the high watermark, not where a committed batch ends, or not of
                that epoch; or the id is behind the latest snapshot's.
            StorageError: the disk failed.

        Differs: Kafka takes an id behind the latest snapshot's, for a snapshot that nobody would be sent.

        Source: KafkaRaftLog#createNewSnapshot.
        """
        ...

    def create_snapshot_unchecked(self, snapshot_id: OffsetAndEpoch) -> RawSnapshotWriter | None:
        """Begin a snapshot that is fetched from the leader, wherever this log stands.

        Freezing it does as for ``create_snapshot``. What the log has of the snapshot's epoch below its end is committed
        then, with all before: the high watermark moves up to there.

        Returns:
            The writer; None where a snapshot of this id is there.

        Raises:
            InvalidSnapshotIdError: no log has such an id.
            StorageError: the disk failed.

        Source: KafkaRaftLog#createNewSnapshotUnchecked.
        """
        ...

    def read_snapshot(self, snapshot_id: OffsetAndEpoch) -> RawSnapshotReader | None:
        """Open a snapshot: None where there is none of this id. Source: KafkaRaftLog#readSnapshot."""
        ...

    def delete_before_snapshot(self, snapshot_id: OffsetAndEpoch) -> bool:
        """Let a snapshot take the place of the records and snapshots below it.

        Returns:
            Whether the log start moved.

        Differs: Kafka returns whether a segment or a snapshot was deleted, which need not be so where the log start
        moves inside a segment. As there, a second call, and an id of which there is no snapshot, change nothing and
        return False.

        Source: KafkaRaftLog#deleteBeforeSnapshot.
        """
        ...

    def prepare_delete_before_snapshot(self, snapshot_id: OffsetAndEpoch) -> DiskWork[DiskResult[bool]]:
        """Prepare ``delete_before_snapshot``.

        Appends and reads go on meanwhile; but no append where the log ends at the snapshot, as a segment begins there.
        """
        ...

    def clean(self, now_ms: int) -> bool:
        """Delete what retention no longer wants and a newer snapshot covers. The newest snapshot is never deleted.

        Args:
            now_ms: wall clock, in milliseconds of the Unix epoch.

        Returns:
            Whether anything was deleted.

        Source: KafkaRaftLog#maybeClean.
        """
        ...

    def prepare_clean(self, now_ms: int) -> DiskWork[DiskResult[bool]]:
        """Prepare one step of ``clean``; its value says whether there was one, and then there may be another."""
        ...

    def close(self) -> None:
        """Flush and let go of the files. Closing twice is harmless.

        Work that was prepared is cancelled where it was not run, and finished where it was.

        Raises:
            StorageError: the flush failed.
            WorkUnderWayError: work is being run now. The log stays open: finish it, and close again.
        """
        ...
