# SPDX-License-Identifier: Apache-2.0
"""The log of one replica in a directory, as Kafka lays it out.

Durability is reported only after the sync, and a truncation is recorded before it is done. So the next open can
distinguish records that a crash may lose from records that it must not (``recovery.startup``).

Source: KafkaRaftLog, UnifiedLog.
"""

from collections.abc import Iterator
from typing import Self

import attrs

from raftlog.disk_work import DiskResult, DiskStep, DiskWork
from raftlog.file_system import FileSystem, join, own_view
from raftlog.invariants import invariant
from raftlog.log.decisions import (
    check_new_snapshot_id,
    check_truncation,
    is_superseded,
    may_start_at_snapshot,
    proven_end_offset,
    snapshot_ahead_of_log,
    truncation_offset,
)
from raftlog.log.epochs import LeaderEpochs
from raftlog.log.queries import Cut
from raftlog.log.replicated_log import Quarantine
from raftlog.log.retention import StoredSnapshot, snapshot_to_start_at
from raftlog.log.state import snapshot_ids_of
from raftlog.offsets import OffsetAndEpoch
from raftlog.snapshot.notifying import NotifyingRawSnapshotWriter
from raftlog.snapshot.paths import snapshot_name
from raftlog.snapshot.raw import RawSnapshotReader, RawSnapshotWriter
from raftlog.snapshot.verifying import VerifyingRawSnapshotWriter
from raftlog.storage.log.appendable_log import AppendableLog
from raftlog.storage.recovery.recovery_point import RecoveryPoint
from raftlog.storage.recovery.recovery_report import RecoveryReport
from raftlog.storage.recovery.startup import RecoveredLog, recover
from raftlog.storage.segments.indeterminate_writes import INDETERMINATE_WRITES
from raftlog.storage.segments.log_config import LogConfig


class FileLog(AppendableLog):
    """A ``ReplicatedLog`` in files; ``open`` makes it. The protocol documents its methods; here is what is special.

    The caller must hold the directory's lock (``LogDirectory``): nothing here keeps a second owner away. Leaving a
    ``with`` block closes the log.
    """

    def __init__(self, file_system: FileSystem, directory: str, config: LogConfig, recovered: RecoveredLog) -> None:
        super().__init__(file_system, directory, config, recovered)
        self._report = recovered.report

    @classmethod
    def open(cls, file_system: FileSystem, directory: str, config: LogConfig | None = None) -> Self:
        """Open a log directory, which is created if missing; the whole log is read and checked.

        Look at ``recovery`` for what was found and done, and at ``quarantine`` for damage.

        Args:
            file_system: where the directory is.
            directory: of the log, such as ``__cluster_metadata-0``.
            config: of the log; by default Kafka's settings.

        Raises:
            OutOfSpaceError, StorageError: the disk failed, or has no room for a copy of what would be truncated.
                Opening it again continues where this has stopped.
            TruncationBelowHighWatermarkError: two snapshots contradict each other about what is committed.
            MissingExtraError: a snapshot cannot be verified, because a codec's package is missing.
        """
        config = config or LogConfig()
        file_system = own_view(file_system, directory)
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
        """What opening the directory found and did."""
        return self._report

    def truncate_to(self, offset: int) -> None:
        """Drop the batch that holds an offset and every batch after it. This ends a quarantine: the caller decides.

        Raises:
            QuarantinedLogError: the offset is above the first bad one, so more would be dropped than was asked for.
        """
        with self._guard:
            self.prepare_truncate_to(offset).complete()

    def prepare_truncate_to(self, offset: int) -> DiskWork[DiskResult[int]]:
        """Prepare ``truncate_to``; appends, and reads from the new log end on, are refused until it is finished."""
        with self._guard:
            if self._quarantine is not None and offset > self._quarantine.first_bad_offset:
                self._refuse_in_quarantine()
            return self._truncate(offset, ends_quarantine=True)

    def truncate_to_end_offset(self, end_offset: OffsetAndEpoch) -> int:
        """Drop the records that diverge from the leader's log. A quarantine remains."""
        with self._guard:
            return self.prepare_truncate_to_end_offset(end_offset).complete().value

    def prepare_truncate_to_end_offset(self, end_offset: OffsetAndEpoch) -> DiskWork[DiskResult[int]]:
        """Prepare ``truncate_to_end_offset``; otherwise as ``prepare_truncate_to``."""
        with self._guard:
            return self._truncate(truncation_offset(self.state, end_offset), ends_quarantine=False)

    def _truncate(self, offset: int, *, ends_quarantine: bool) -> DiskWork[DiskResult[int]]:
        self._refuse_while_under_way()
        check_truncation(self.state, offset)
        end = self._segments.batch_start(offset)
        end_offset = end.offset
        check_truncation(self.state, end_offset)
        kept = None if ends_quarantine else self._quarantine
        if kept is not None:
            kept = attrs.evolve(kept, first_bad_offset=end_offset)
        epochs = self._epochs.truncated_from_end(end_offset)
        has_fewer_epochs = epochs is not self._epochs
        steps: list[DiskStep] = []
        point = self._recovery_point(epochs=epochs)
        if end_offset < self._segments.end_offset or (kept is None and self._quarantine is not None):
            # As long as the damage is in place, the next open must know up to where the log was durable.
            steps += self._setting_aside()
            # Record that less is durable before anything is dropped.
            steps.append(self._taking_back(min(self._flushed_offset, end_offset), kept, self._epochs))
            cut = self._segments.truncating(end)

            def forget(outcome: object) -> None:
                before, high_watermark = self._segments.end_offset, self._high_watermark
                is_cut = high_watermark <= end_offset <= before
                invariant(
                    is_cut, "{}: truncated at {}, not in {}..{}", self._directory, end_offset, high_watermark, before
                )
                self._flushed_offset, self._quarantine = end_offset, kept
                self._epochs, self._epochs_are_stored = epochs, self._epochs_are_stored and not has_fewer_epochs
                cut.memory(outcome)
                self._check_pointer_invariants()

            steps.append(attrs.evolve(cut, memory=forget, on_failure=self._note_failure))
            point = self._point_after_truncation(end_offset, kept, epochs)
        if has_fewer_epochs:
            steps.append(self._keeping_epochs(epochs, point))
        return self._begin(steps, lambda: self._segments.end_offset, cut=Cut(end, epochs))

    def prepare_truncate_to_latest_snapshot(self) -> DiskWork[DiskResult[bool]]:
        """Prepare ``truncate_to_latest_snapshot``; appends are refused until it is finished."""
        with self._guard:
            self._refuse_while_under_way()
            latest = snapshot_ahead_of_log(self.state)
            if latest is None:
                return self._finished(False)
            return self._begin(self._steps_of_restart_at(latest), lambda: True, new_start=latest.offset)

    def truncate_to_latest_snapshot(self) -> bool:
        """Restart the log at the latest snapshot if that is ahead of it."""
        with self._guard:
            return self.prepare_truncate_to_latest_snapshot().complete().value

    def _steps_of_restart_at(self, snapshot_id: OffsetAndEpoch) -> list[DiskStep]:
        offset, damaged, quarantine = snapshot_id.offset, self._damaged_segments, self._quarantine
        if quarantine is not None:
            is_over = offset >= quarantine.durable_end_offset
            quarantine = None if is_over else attrs.evolve(quarantine, first_bad_offset=offset)
        replace = self._segments.steps_of_restart(offset, damaged or (), active_is_damaged=damaged is not None)
        epochs = LeaderEpochs()

        def take(new: object) -> None:
            high_watermark = self._high_watermark
            invariant(
                high_watermark <= offset,
                "{}: restart at {}, high watermark {}",
                self._directory,
                offset,
                high_watermark,
            )
            replace.memory(new)
            self._damaged_segments, self._quarantine = None, quarantine
            self._epochs, self._epochs_are_stored = epochs, False
            self._start_offset = self._high_watermark = self._flushed_offset = offset
            self._check_pointer_invariants()

        point = self._point_after_truncation(offset, quarantine, epochs)
        # After a crash, the next open finishes the restart. In quarantine it must find the damage first, and set it
        # aside, so the recovery point keeps the old log start.
        start_offset = offset if self._quarantine is None else self._start_offset
        return [
            self._taking_back(min(self._flushed_offset, offset), self._quarantine, start_offset=start_offset),
            attrs.evolve(replace, memory=take, on_failure=self._note_failure),
            self._keeping_epochs(epochs, attrs.evolve(point, log_start_offset=offset)),
            self._deleting_snapshots_before(snapshot_id),
        ]

    def create_snapshot(self, snapshot_id: OffsetAndEpoch) -> RawSnapshotWriter | None:
        """Begin a snapshot of this log's records below an offset."""
        self._guard.check()
        if not check_new_snapshot_id(self.state, snapshot_id, self._ends_batch):
            return None
        return self._snapshot_writer(snapshot_id)

    def _ends_batch(self, offset: int) -> bool:
        if self._cut is not None and offset == self._cut.end.offset:
            return True  # The batches there may be deleted from the file already.
        if self._under_way is not None and self._under_way.holds_reads:
            self._refuse_while_under_way()
        return self._segments.batch_start(offset).offset == offset

    def create_snapshot_unchecked(self, snapshot_id: OffsetAndEpoch) -> RawSnapshotWriter | None:
        """Begin a snapshot that is fetched from the leader, whatever the offsets of this log."""
        self._guard.check()
        if snapshot_id in self._snapshot_ids:
            return None
        return self._snapshot_writer(snapshot_id)

    def _snapshot_writer(self, snapshot_id: OffsetAndEpoch) -> RawSnapshotWriter:
        writer = VerifyingRawSnapshotWriter(self._snapshots.create(snapshot_id))
        return NotifyingRawSnapshotWriter(
            writer, self._take_snapshot, on_freeze=lambda: self._steps_after_freezing(snapshot_id)
        )

    def _steps_after_freezing(self, snapshot_id: OffsetAndEpoch) -> list[DiskStep]:
        self._guard.check()
        if not is_superseded(self.state, snapshot_id):
            return []
        path = join(self._directory, snapshot_name(snapshot_id))
        return [self._step(lambda: self._delete_durably(snapshot_id), None, path, self._directory)]

    def _delete_durably(self, snapshot_id: OffsetAndEpoch) -> None:
        with INDETERMINATE_WRITES:
            self._snapshots.delete(snapshot_id)
            self._file_system.sync_directory(self._directory)

    def _take_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        if not is_superseded(self.state, snapshot_id):
            state = attrs.evolve(self.state, snapshot_ids=snapshot_ids_of((*self._snapshot_ids, snapshot_id)))
            high_watermark, least = max(self._high_watermark, proven_end_offset(state)), self._start_offset
            is_inside = least <= high_watermark <= state.end_offset
            invariant(is_inside, "{}: high watermark {} according to {}", self._directory, high_watermark, snapshot_id)
            is_ahead = snapshot_id.offset >= least
            invariant(is_ahead, "{}: snapshot {}, log start {}", self._directory, snapshot_id, least)
            self._snapshot_ids, self._high_watermark = state.snapshot_ids, high_watermark
            return
        with self._guard, INDETERMINATE_WRITES:
            self._snapshots.delete(snapshot_id)  # Not durable: after a crash it may reappear.

    def read_snapshot(self, snapshot_id: OffsetAndEpoch) -> RawSnapshotReader | None:
        """Open a snapshot; None if there is none of this id."""
        self._guard.check_owner()
        return self._snapshots.open(snapshot_id) if snapshot_id in self._snapshot_ids else None

    def delete_before_snapshot(self, snapshot_id: OffsetAndEpoch) -> bool:
        """Move the log start to a snapshot's end, and delete records and snapshots below; not in quarantine."""
        with self._guard:
            return self.prepare_delete_before_snapshot(snapshot_id).complete().value

    def prepare_delete_before_snapshot(self, snapshot_id: OffsetAndEpoch) -> DiskWork[DiskResult[bool]]:
        """Prepare ``delete_before_snapshot``; appends continue unless the log ends at the snapshot, reads always."""
        with self._guard:
            self._refuse_while_under_way()
            if self._quarantine is not None or not may_start_at_snapshot(self.state, snapshot_id):
                return self._finished(False)
            start_offset, end_offset = snapshot_id.offset, self._segments.end_offset
            rolls = start_offset == end_offset and self._segments.active.size_bytes > 0
            flush = self._flush_to_come()
            steps = self._rolling(end_offset) if rolls else [] if flush is None else [self._flushing(flush)]
            point = attrs.evolve(self._recovery_point(end_offset), log_start_offset=start_offset)

            epochs = self._epochs.truncated_from_start(start_offset)
            has_fewer_epochs = epochs is not self._epochs

            def move_start(_: object) -> None:
                before = self._start_offset
                invariant(
                    before < start_offset, "{}: log start moves to {} from {}", self._directory, start_offset, before
                )
                self._start_offset = start_offset
                self._epochs, self._epochs_are_stored = epochs, not has_fewer_epochs
                self._check_pointer_invariants()

            # First, so that the next open removes the segments below, whichever of them reappear after a crash.
            steps.append(self._step(lambda: self._durable.store(point), move_start, *self._point_paths))
            remove = self._segments.removing_below(start_offset, end_offset if rolls else None)
            steps.append(attrs.evolve(remove, on_failure=self._note_failure))
            if has_fewer_epochs:
                steps.append(self._keeping_epochs(epochs, attrs.evolve(point, epochs=epochs.entries)))
            steps.append(self._deleting_snapshots_before(snapshot_id))
            return self._begin(steps, lambda: True, holds_appends=rolls)

    def _deleting_snapshots_before(self, snapshot_id: OffsetAndEpoch) -> DiskStep:
        old = [each for each in self._snapshot_ids if each < snapshot_id]

        def delete() -> None:
            with INDETERMINATE_WRITES:
                for each in old:
                    self._snapshots.delete(each)
                self._file_system.sync_directory(self._directory)

        def forget(_: object) -> None:
            # Delete those frozen meanwhile, too. If one reappears after a crash, the next open removes it.
            for each in self._snapshot_ids:
                if each < snapshot_id and each not in old:
                    self._snapshots.delete(each)
            self._snapshot_ids = tuple(each for each in self._snapshot_ids if each >= snapshot_id)

        names = [join(self._directory, snapshot_name(each)) for each in old]
        return self._step(delete, forget, *names, self._directory)

    def clean(self, now_ms: int) -> bool:
        """Delete what exceeds the retention and a newer snapshot covers."""
        has_cleaned = False
        while self.prepare_clean(now_ms).complete().value:
            has_cleaned = True
        return has_cleaned

    def prepare_clean(self, now_ms: int) -> DiskWork[DiskResult[bool]]:
        """Prepare one step of ``clean``; its value is False once nothing is left to delete."""
        with self._guard:
            self._refuse_while_under_way()
            stored = list(self._stored_snapshots())
            snapshot_id = snapshot_to_start_at(self._config.retention, stored, self._segments.size_bytes, now_ms)
            return self._finished(False) if snapshot_id is None else self.prepare_delete_before_snapshot(snapshot_id)

    def _stored_snapshots(self) -> Iterator[StoredSnapshot]:
        for snapshot_id in self._snapshot_ids:
            reader = self._snapshots.open(snapshot_id)
            if reader is not None:
                with reader:
                    yield StoredSnapshot.of(reader)

    def close(self) -> None:
        """Flush, write the indexes, record the clean shutdown, and close the files.

        Prepared work is cancelled if it has not been run, and finished if it has.

        Raises:
            WorkUnderWayError: work is being run now. The log stays open: finish it, and close again.
        """
        if self._guard.is_closed:
            return
        if self._guard.disowned is None:  # Otherwise the work belongs to the parent, which may be running it.
            self._end_work(self._directory)
        try:
            if self._guard.failure is None:
                self.flush()
                if self._damaged_segments is None:
                    self._segments.active.seal()
                # Only if this succeeds may the next open trust that names in the directory are durable.
                self._file_system.sync_directory(self._directory)
                self._durable.store(attrs.evolve(self._recovery_point(), is_clean=True))
        finally:
            self._guard.is_closed = True
            self._release()

    def _release(self) -> None:
        self._durable.close()
        self._segments.close()
        for segment in self._damaged_segments or ():
            segment.close()

    def _point_after_truncation(
        self, durable_end_offset: int, quarantine: Quarantine | None, epochs: LeaderEpochs | None = None
    ) -> RecoveryPoint:
        """Return the recovery point of the next generation, with a given durable end, higher only in quarantine."""
        point = self._recovery_point(epochs=epochs).up_to(durable_end_offset, quarantine)
        return attrs.evolve(point, generation=self._generation + 1)

    def _taking_back(
        self,
        durable_end_offset: int,
        quarantine: Quarantine | None,
        epochs: LeaderEpochs | None = None,
        start_offset: int | None = None,
    ) -> DiskStep:
        """Return the step that stores a lower durable end, and perhaps a log start, before records are dropped."""
        point = self._point_after_truncation(durable_end_offset, quarantine, epochs)
        if start_offset is not None:
            point = attrs.evolve(point, log_start_offset=start_offset)

        def take(_: object) -> None:
            generation = point.generation
            is_next = generation == self._generation + 1
            invariant(is_next, "{}: generation {}, previous {}", self._directory, generation, self._generation)
            self._generation = generation
            self._flushed_offset = min(self._flushed_offset, durable_end_offset)
            self._check_pointer_invariants()

        def store() -> None:
            self._durable.store(point)
            if quarantine is not None:
                self._durable.copy_to_mark()

        return self._step(store, take, *self._point_paths)
