# SPDX-License-Identifier: Apache-2.0
"""The log of one replica in a directory, as Kafka lays it out.

Who is told that something is durable is told after the sync; and what takes that back, a truncation, is written down
before it is done. So a start can tell what a crash may have taken from what it may not (``recovery``).

Source: KafkaRaftLog, UnifiedLog.
"""

import contextlib
from collections.abc import Iterator
from typing import Self

import attrs

from raftlog.append_rules import CheckedAppend, check_append, check_append_as_follower, check_plain_append
from raftlog.errors import (
    CorruptBatchError,
    OffsetOutOfRangeError,
    OutOfSpaceError,
    QuarantinedLogError,
    StorageError,
)
from raftlog.file_system import FileSystem
from raftlog.leader_epoch_cache import LeaderEpochCache
from raftlog.log_rules import (
    LogOutline,
    SnapshotIds,
    StoredSnapshot,
    check_leader_epoch,
    check_new_snapshot_id,
    check_truncation,
    is_superseded,
    may_start_at_snapshot,
    proven_end_offset,
    snapshot_ahead_of_log,
    snapshot_to_start_at,
    truncation_offset,
)
from raftlog.offsets import LogOffsetMetadata, OffsetAndEpoch
from raftlog.outlined_log import OutlinedLog
from raftlog.records.limits import MAX_BATCH_SIZE
from raftlog.replicated_log import Isolation, LogAppendInfo, LogFetchInfo, Quarantine
from raftlog.snapshot.closing import Closing
from raftlog.snapshot.directory import SnapshotDirectory
from raftlog.snapshot.notifying import NotifyingRawSnapshotWriter
from raftlog.snapshot.raw import RawSnapshotReader, RawSnapshotWriter
from raftlog.snapshot.verifying import VerifyingRawSnapshotWriter
from raftlog.storage.damaged_files import set_aside_behind
from raftlog.storage.leader_epoch_checkpoint import LeaderEpochCheckpoint
from raftlog.storage.log_config import LogConfig
from raftlog.storage.log_segment import LogSegment
from raftlog.storage.no_return import NO_RETURN
from raftlog.storage.recovery import RecoveredLog, recover
from raftlog.storage.recovery_point import DurablePoint, RecoveryPoint
from raftlog.storage.recovery_report import RecoveryReport
from raftlog.storage.segment_list import SegmentList
from raftlog.storage.write_guard import WriteGuard


class FileLog(Closing, OutlinedLog):
    """A ``ReplicatedLog`` in files; ``open`` makes it. Its docstrings say what is special, the protocol's the rest.

    Whoever opens a directory must hold its lock (``LogDirectory``): nothing here keeps a second owner away. Leaving a
    ``with`` block closes the log.
    """

    def __init__(self, file_system: FileSystem, directory: str, config: LogConfig, recovered: RecoveredLog) -> None:
        self._file_system = file_system
        self._directory = directory
        self._config = config
        self._roll_limits = config.roll_limits
        self._recovery_point_interval_bytes = config.recovery_point_interval_bytes
        self._segments = SegmentList(file_system, directory, config, recovered.segments)
        self._epochs = recovered.epochs
        self._epoch_checkpoint = LeaderEpochCheckpoint(file_system, directory)
        self._snapshots = SnapshotDirectory(file_system, directory)
        self._snapshot_ids = SnapshotIds()
        for snapshot_id in recovered.snapshot_ids:
            self._snapshot_ids.add(snapshot_id)
        self._start_offset = self._high_watermark = recovered.start_offset
        self._high_watermark = proven_end_offset(self._outline())
        self._flushed_offset = self._segments.active.next_offset
        self._bytes_since_recovery_point = 0
        self._quarantine = recovered.report.quarantine
        self._epochs_are_stored = self._quarantine is None
        self._witnessed_epochs = recovered.stored.epochs or recovered.epochs
        self._damaged_segments: tuple[LogSegment, ...] | None = None
        """What is to be set aside before the next append, with the bytes behind the active segment; None: nothing."""
        if self._quarantine is not None:
            self._damaged_segments = recovered.damaged_segments
        self._report = recovered.report
        self._guard = WriteGuard(directory)
        self._generation = recovered.stored.next_generation
        self._durable = DurablePoint(file_system, directory, self._recovery_point())

    @classmethod
    def open(cls, file_system: FileSystem, directory: str, config: LogConfig | None = None) -> Self:
        """Open a log directory, which is made where it is missing; all of it is read and checked.

        ``recovery`` says what was found and done, ``quarantine`` whether something is damaged.

        Args:
            file_system: where the directory is.
            directory: of the log, such as ``__cluster_metadata-0``.
            config: of the log; Kafka's defaults where it is left out.

        Raises:
            OutOfSpaceError, StorageError: the disk failed, or has no room for a copy of what a start would cut. Opening
                it again goes on where this has ended.
            TruncationBelowHighWatermarkError: two snapshots contradict each other in what is committed.
            MissingExtraError: a snapshot cannot be verified, for want of a codec's package.
        """
        config = config or LogConfig()
        recovered = recover(file_system, directory, config.index_limits)
        try:
            log = cls(file_system, directory, config, recovered)
        except BaseException:
            for segment in (*recovered.segments, *recovered.damaged_segments):
                segment.close()
            raise
        return log

    @property
    def recovery(self) -> RecoveryReport:
        """What opening the directory has found and done."""
        return self._report

    @property
    def start_offset(self) -> int:
        """The first offset, inclusive."""
        return self._start_offset

    @property
    def end_offset(self) -> LogOffsetMetadata:
        """The offset that the next record gets."""
        return self._segments.end

    @property
    def high_watermark(self) -> LogOffsetMetadata:
        """The end, exclusive, of what is known to be committed; without its place, where that no longer reads."""
        try:
            return self._segments.locate(self._high_watermark)
        except (CorruptBatchError, StorageError):
            return LogOffsetMetadata(self._high_watermark)

    @property
    def flushed_offset(self) -> int:
        """The end, exclusive, of what was synced."""
        return self._flushed_offset

    @property
    def quarantine(self) -> Quarantine | None:
        """What is damaged, while it is."""
        return self._quarantine

    def append_as_leader(self, batches: bytes | memoryview, epoch: int) -> LogAppendInfo:
        """Append what this replica has made as leader."""
        guard = self._guard
        if guard.failure is not None or guard.is_closed:
            guard.check()
        try:
            if self._quarantine is not None:
                self._refuse_in_quarantine()
            segment = self._segments.active
            if epoch == self._epochs.latest_epoch and self._epochs_are_stored and self._damaged_segments is None:
                plain = check_plain_append(batches, epoch, segment.next_offset)
                if plain is not None:
                    # All that ``_append`` does where nothing is new but the bytes.
                    checked, next_offset, max_timestamp, info = plain
                    size_bytes = len(batches)
                    if segment.has_room_for(size_bytes, next_offset, max_timestamp, self._roll_limits):
                        segment.append(batches, checked, next_offset)
                        self._bytes_since_recovery_point += size_bytes
                        return info
            return self._append(check_append(batches, epoch, segment.next_offset, self.last_fetched_epoch))
        except BaseException as error:
            guard.note(error)
            raise

    def append_as_follower(self, batches: bytes | memoryview, epoch: int) -> LogAppendInfo | None:
        """Append what the leader has sent. In quarantine, what is damaged is set aside first."""
        with self._guard:
            checked = check_append_as_follower(batches, epoch, self._segments.end_offset, self.last_fetched_epoch)
            return None if checked is None else self._append(checked)

    def _append(self, checked: CheckedAppend) -> LogAppendInfo:
        if self._damaged_segments is not None:
            self._set_damage_aside()
        size_bytes, next_offset = len(checked.data), checked.next_offset
        if not self._segments.active.has_room_for(size_bytes, next_offset, checked.max_timestamp, self._roll_limits):
            self._roll()
        is_known = self._epochs_are_stored and checked.batches[-1].epoch == self._epochs.latest_epoch
        epochs = self._epochs if is_known else self._epochs_with(checked)
        # An epoch that is written down, and whose batch does not get through, must be taken back by the next append.
        self._epochs_are_stored = is_known
        self._segments.active.append(checked.data, checked.batches, next_offset)
        self._epochs, self._epochs_are_stored = epochs, True
        self._bytes_since_recovery_point += size_bytes
        if self._quarantine is not None:
            self._quarantine = attrs.evolve(self._quarantine, first_bad_offset=self._segments.end_offset)
        return checked.info

    def _epochs_with(self, checked: CheckedAppend) -> LeaderEpochCache:
        """Return the epochs as they are once some batches are there; those that are new are written down first.

        An epoch that starts at the log end, and never came, is dropped at the next start.
        """
        epochs = LeaderEpochCache(self._epochs.entries())
        for base_offset, epoch, *_ in checked.batches:
            epochs.assign(epoch, base_offset)
        self._store_epochs(epochs)
        return epochs

    def _store_epochs(self, epochs: LeaderEpochCache) -> None:
        self._epochs_are_stored = False
        self._epoch_checkpoint.store(epochs)
        self._durable.store(attrs.evolve(self._recovery_point(), epochs=epochs.entries()))
        self._epochs_are_stored = True

    def _roll(self) -> None:
        self._bytes_since_recovery_point = 0  # It is stored below, and not by the flush too.
        self.flush()
        self._segments.roll()
        self._store_recovery_point_if_there_is_room()

    def read(self, start_offset: int, isolation: Isolation, max_size_bytes: int = MAX_BATCH_SIZE) -> LogFetchInfo:
        """Read batches from an offset on, and check them."""
        self._guard.check()
        if self._quarantine is not None and start_offset >= self._quarantine.first_bad_offset:
            raise QuarantinedLogError(f"offset {start_offset}: {self._quarantine.reason}")
        end_offset = self._segments.end_offset
        if not self._start_offset <= start_offset <= end_offset:
            raise OffsetOutOfRangeError(f"offset {start_offset}, of {self._start_offset} to {end_offset}")
        limit = self._high_watermark if isolation is Isolation.COMMITTED else end_offset
        if start_offset >= limit:
            return LogFetchInfo(memoryview(b""), self._segments.locate(limit))
        return self._segments.read(start_offset, limit, max_size_bytes, self._epochs)

    def flush(self) -> None:
        """Sync the active segment; those before it were when they ended."""
        guard = self._guard
        if guard.failure is not None or guard.is_closed:
            guard.check()
        try:
            segment = self._segments.active
            end_offset = segment.next_offset
            if self._flushed_offset != end_offset:
                self._durable.mark_sync(segment.file, end_offset)
                self._flushed_offset = end_offset
                if self._quarantine is not None and end_offset >= self._quarantine.durable_end_offset:
                    self._quarantine = None
            if self._bytes_since_recovery_point >= self._recovery_point_interval_bytes:
                self._store_recovery_point_if_there_is_room()
        except BaseException as error:
            guard.note(error)
            raise

    def initialize_leader_epoch(self, epoch: int) -> None:
        """Enter an epoch at the log end."""
        with self._guard:
            self._refuse_in_quarantine()
            check_leader_epoch(self._outline(), epoch)
            epochs = LeaderEpochCache(self._epochs.entries())
            if epochs.assign(epoch, self._segments.end_offset):
                self._store_epochs(epochs)
                self._epochs = epochs

    def truncate_to(self, offset: int) -> None:
        """Drop every batch that holds an offset or lies behind it. It ends a quarantine: whoever says so decides.

        Raises:
            QuarantinedLogError: the offset lies behind what can be read, so that more would go than was said.
        """
        with self._guard:
            if self._quarantine is not None and offset > self._quarantine.first_bad_offset:
                self._refuse_in_quarantine()
            check_truncation(self._outline(), offset)
            self._truncate(offset, ends_quarantine=True)

    def truncate_to_end_offset(self, end_offset: OffsetAndEpoch) -> int:
        """Drop what diverges from a leader that said where its log parts from this one. A quarantine goes on."""
        with self._guard:
            offset = truncation_offset(self._outline(), end_offset)
            check_truncation(self._outline(), offset)
            self._truncate(offset, ends_quarantine=False)
        return self._segments.end_offset

    def _truncate(self, offset: int, *, ends_quarantine: bool) -> None:
        end = self._segments.batch_start(offset)
        end_offset = end.offset
        check_truncation(self._outline(), end_offset)
        kept = None if ends_quarantine else self._quarantine
        if end_offset < self._segments.end_offset or kept is not self._quarantine:
            # As long as damage stands where it was found, a start must know up to where the log was durable.
            self._set_damage_aside()
            # What was durable is taken back before it goes.
            self._take_back(min(self._flushed_offset, end_offset), kept)
            # From here on the log is as it will be, also where it fails: what is asked then is answered from memory.
            self._flushed_offset = min(self._flushed_offset, end_offset)
            has_changed = self._epochs.truncate_from_end(end_offset)
            if self._quarantine is not None:
                self._quarantine = attrs.evolve(self._quarantine, first_bad_offset=end_offset)
            with NO_RETURN:
                self._segments.truncate(end)
            self._flushed_offset = end_offset
        else:
            has_changed = self._epochs.truncate_from_end(end_offset)
        self._quarantine = None if kept is None else attrs.evolve(kept, first_bad_offset=end_offset)
        if has_changed:
            self._store_epochs_if_there_is_room()

    def truncate_to_latest_snapshot(self) -> bool:
        """Start the log anew at the latest snapshot where that is ahead of it."""
        with self._guard:
            latest = snapshot_ahead_of_log(self._outline())
            if latest is not None:
                self._start_anew_at(latest)
        return latest is not None

    def _start_anew_at(self, snapshot_id: OffsetAndEpoch) -> None:
        offset = snapshot_id.offset
        with self._guard:
            # In quarantine a start must find the damage, and set it aside; else it finishes what has begun here.
            start_offset = offset if self._quarantine is None else self._start_offset
            self._take_back(min(self._flushed_offset, offset), self._quarantine, start_offset)
            self._flushed_offset = min(self._flushed_offset, offset)
            is_damaged = self._damaged_segments is not None
            with NO_RETURN:
                self._segments.start_anew(offset, self._damaged_segments or (), active_is_damaged=is_damaged)
            self._damaged_segments = None
            self._start_offset = self._high_watermark = self._flushed_offset = offset
            if self._quarantine is not None:
                is_over = offset >= self._quarantine.durable_end_offset
                self._quarantine = None if is_over else attrs.evolve(self._quarantine, first_bad_offset=offset)
            self._epochs.clear()
            self._store_epochs_if_there_is_room()
            self._delete_snapshots_before(snapshot_id)

    def create_snapshot(self, snapshot_id: OffsetAndEpoch) -> RawSnapshotWriter | None:
        """Begin a snapshot of this log's records below an offset."""
        self._guard.check()
        if not check_new_snapshot_id(self._outline(), snapshot_id, self._ends_batch):
            return None
        return self._snapshot_writer(snapshot_id)

    def _ends_batch(self, offset: int) -> bool:
        return self._segments.batch_start(offset).offset == offset

    def create_snapshot_unchecked(self, snapshot_id: OffsetAndEpoch) -> RawSnapshotWriter | None:
        """Begin a snapshot that is fetched from the leader, wherever this log stands."""
        self._guard.check()
        if snapshot_id in self._snapshot_ids:
            return None
        return self._snapshot_writer(snapshot_id)

    def _snapshot_writer(self, snapshot_id: OffsetAndEpoch) -> RawSnapshotWriter:
        writer = VerifyingRawSnapshotWriter(self._snapshots.create(snapshot_id))
        return NotifyingRawSnapshotWriter(writer, self._take_snapshot, check_freeze=self._guard.check)

    def _take_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        if not is_superseded(self._outline(), snapshot_id):
            self._snapshot_ids.add(snapshot_id)
            self._high_watermark = max(self._high_watermark, proven_end_offset(self._outline()))
            return
        with self._guard, NO_RETURN:
            self._snapshots.delete(snapshot_id)
            self._file_system.sync_directory(self._directory)

    def read_snapshot(self, snapshot_id: OffsetAndEpoch) -> RawSnapshotReader | None:
        """Open a snapshot: None where there is none of this id."""
        return self._snapshots.open(snapshot_id) if snapshot_id in self._snapshot_ids else None

    def delete_before_snapshot(self, snapshot_id: OffsetAndEpoch) -> bool:
        """Let a snapshot take the place of the records and snapshots below it; nothing goes in quarantine."""
        with self._guard:
            if self._quarantine is not None or not may_start_at_snapshot(self._outline(), snapshot_id):
                return False
            self.flush()
            if snapshot_id.offset == self._segments.end_offset and self._segments.active.size_bytes > 0:
                self._segments.roll()
            # First, so that a start knows segments below for what they are, whichever of them a crash brings back.
            self._durable.store(attrs.evolve(self._recovery_point(), log_start_offset=snapshot_id.offset))
            self._start_offset = snapshot_id.offset
            has_changed = self._epochs.truncate_from_start(self._start_offset)
            with NO_RETURN:
                self._segments.remove_below(self._start_offset)
            if has_changed:
                self._store_epochs_if_there_is_room()
            self._delete_snapshots_before(snapshot_id)
            return True

    def _delete_snapshots_before(self, snapshot_id: OffsetAndEpoch) -> None:
        with NO_RETURN:
            for removed in self._snapshot_ids.remove_below(snapshot_id):
                self._snapshots.delete(removed)
            self._file_system.sync_directory(self._directory)

    def clean(self, now_ms: int) -> bool:
        """Delete what retention no longer wants and a newer snapshot covers."""
        snapshots, count = list(self._stored_snapshots()), len(self._snapshot_ids)
        while snapshot_id := snapshot_to_start_at(self._config.retention, snapshots, self._segments.size_bytes, now_ms):
            if not self.delete_before_snapshot(snapshot_id):
                break
            snapshots = [each for each in snapshots if each.snapshot_id in self._snapshot_ids]
        return len(self._snapshot_ids) < count

    def _stored_snapshots(self) -> Iterator[StoredSnapshot]:
        for snapshot_id in self._snapshot_ids:
            reader = self._snapshots.open(snapshot_id)
            if reader is not None:
                with reader:
                    yield StoredSnapshot.of(reader)

    def close(self) -> None:
        """Flush, write the indexes, note that the log was closed in order, and let go of the files."""
        if self._guard.is_closed:
            return
        try:
            if self._guard.failure is None:
                self.flush()
                if self._damaged_segments is None:
                    self._segments.active.seal()
                    self._file_system.sync_directory(self._directory)
                self._durable.store(attrs.evolve(self._recovery_point(), is_clean=True))
        finally:
            self._guard.is_closed = True
            self._let_go()

    def _let_go(self) -> None:
        self._durable.close()
        self._segments.close()
        for segment in self._damaged_segments or ():
            segment.close()

    def _outline(self) -> LogOutline:
        return LogOutline(
            self._start_offset, self._segments.end_offset, self._high_watermark, self._epochs, self._snapshot_ids
        )

    def _refuse_in_quarantine(self) -> None:
        if self._quarantine is not None:
            raise QuarantinedLogError(f"{self._quarantine.path}: {self._quarantine.reason}")

    def _set_damage_aside(self) -> None:
        if self._damaged_segments is not None:
            set_aside_behind(self._file_system, self._directory, self._segments.active, self._damaged_segments)
            self._damaged_segments = None

    def _recovery_point(self) -> RecoveryPoint:
        """Return what is to be known of the log at the next start; in quarantine, it stays what it was."""
        end_offset = self._flushed_offset
        if self._quarantine is not None:
            end_offset = max(end_offset, self._quarantine.durable_end_offset)
        # As long as the damage is where it was found, so is what bears witness against it.
        epochs = self._epochs if self._damaged_segments is None else self._witnessed_epochs
        return RecoveryPoint(end_offset, self._start_offset, self._generation, epochs=epochs.entries())

    def _take_back(
        self, durable_end_offset: int, quarantine: Quarantine | None, start_offset: int | None = None
    ) -> None:
        """Say that no more is durable than what lies below an offset, and where the log starts, before that is so."""
        if quarantine is not None:
            durable_end_offset = max(durable_end_offset, quarantine.durable_end_offset)
        point = attrs.evolve(self._recovery_point(), durable_end_offset=durable_end_offset)
        point = attrs.evolve(point, generation=self._generation + 1)
        if start_offset is not None:
            point = attrs.evolve(point, log_start_offset=start_offset)
        self._durable.store(point)
        self._generation += 1

    def _store_recovery_point_if_there_is_room(self) -> None:
        """Note how far the log is durable by now; what the file said before stays true."""
        with contextlib.suppress(OutOfSpaceError):
            self._durable.store(self._recovery_point())
        self._bytes_since_recovery_point = 0

    def _store_epochs_if_there_is_room(self) -> None:
        """Write the epochs after some are gone: before the next append, at the latest."""
        with contextlib.suppress(OutOfSpaceError):
            self._store_epochs(self._epochs)
