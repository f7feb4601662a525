# SPDX-License-Identifier: Apache-2.0
"""The state, reads, appends and flushes of a log in files; ``file_log`` adds truncation and snapshots."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn, TypeVar

import attrs

from raftlog.disk_work import DiskResult, DiskStep, DiskWork
from raftlog.errors import (
    CorruptBatchError,
    InvariantViolation,
    OffsetOutOfRangeError,
    OutOfSpaceError,
    QuarantinedLogError,
    StorageError,
)
from raftlog.file_system import FileSystem, OpenFile, join
from raftlog.invariants import invariant
from raftlog.log.append_validation import CheckedAppend, check_append, check_append_as_follower, check_plain_append
from raftlog.log.decisions import check_leader_epoch, proven_end_offset
from raftlog.log.epochs import LeaderEpochs
from raftlog.log.queries import LogQueries
from raftlog.log.replicated_log import Isolation, LogAppendInfo, LogFetchInfo, Quarantine
from raftlog.log.state import snapshot_ids_of
from raftlog.offsets import LogOffsetMetadata
from raftlog.records.limits import MAX_BATCH_SIZE
from raftlog.snapshot.closing import Closing
from raftlog.snapshot.directory import SnapshotDirectory
from raftlog.storage.log.fail_stop import FailStop
from raftlog.storage.recovery.leader_epoch_checkpoint import LeaderEpochCheckpoint
from raftlog.storage.recovery.recovery_point import FLUSH_MARK_NAME, RECOVERY_POINT_NAME, DurablePoint, RecoveryPoint
from raftlog.storage.recovery.startup import RecoveredLog
from raftlog.storage.segments.damaged_files import set_aside_after
from raftlog.storage.segments.log_config import LogConfig
from raftlog.storage.segments.log_segment import LogSegment
from raftlog.storage.segments.segment_list import SegmentList

T = TypeVar("T")


class Flush(NamedTuple):
    """A prepared flush.

    Attributes:
        file: of the active segment.
        end_offset: of the log, exclusive, when the flush was prepared.
        is_sync_needed: whether anything was appended since the last flush.
        bytes_since: bytes of batches appended since the recovery point was stored.
        point: the recovery point to be stored after the sync; None if it is not due.
    """

    file: OpenFile
    end_offset: int
    is_sync_needed: bool
    bytes_since: int
    point: RecoveryPoint | None


class AppendableLog(Closing, LogQueries):
    """The state of a log in files, its reads, its appends and its flushes."""

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
        self._snapshot_ids = snapshot_ids_of(recovered.snapshot_ids)
        self._start_offset = self._high_watermark = recovered.start_offset
        self._high_watermark = proven_end_offset(self.state)
        self._flushed_offset = self._segments.active.next_offset
        self._bytes_since_recovery_point = 0
        self._quarantine = recovered.report.quarantine
        self._epochs_are_stored = self._quarantine is None
        self._witnessed_epochs = recovered.stored.epochs or recovered.epochs
        self._damaged_segments: tuple[LogSegment, ...] | None = None
        """Segments to be set aside before the next append, with the bytes after the active segment's sound part; None
        if there is nothing to set aside."""
        if self._quarantine is not None:
            self._damaged_segments = recovered.damaged_segments
        self._guard = FailStop(directory)
        self._generation = recovered.stored.next_generation
        self._check_pointer_invariants()
        self._durable = DurablePoint(file_system, directory, self._recovery_point())
        if self._quarantine is not None:
            self._durable.copy_to_mark()

    @property
    def start_offset(self) -> int:
        """The first offset, inclusive."""
        return self._start_offset

    def _written_end(self) -> LogOffsetMetadata:
        return self._segments.end

    @property
    def high_watermark(self) -> LogOffsetMetadata:
        """The end, exclusive, of the records known to be committed; without its place if that cannot be read."""
        under_way = self._under_way
        if under_way is not None:
            if under_way.cut is not None and self._high_watermark >= under_way.cut.end.offset:
                return under_way.cut.end  # The batches there may be deleted from the file already.
            if under_way.holds_reads:
                return LogOffsetMetadata(self._high_watermark)
        try:
            return self._segments.locate(self._high_watermark)
        except (CorruptBatchError, StorageError):
            return LogOffsetMetadata(self._high_watermark)

    @property
    def flushed_offset(self) -> int:
        """The end, exclusive, of the records that were synced and are not being truncated."""
        cut = self._cut
        return self._flushed_offset if cut is None else min(self._flushed_offset, cut.end.offset)

    @property
    def quarantine(self) -> Quarantine | None:
        """The damage that the log must be repaired from; None for a sound log."""
        return self._quarantine

    def append_as_leader(self, batches: bytes | memoryview, epoch: int) -> LogAppendInfo:
        """Append what this replica has built as leader."""
        guard = self._guard
        if guard.failure is not None or guard.is_closed:
            guard.check()
        try:
            info = self._append_plainly(batches, epoch)
            return self._prepare_append_as_leader(batches, epoch).complete().value if info is None else info
        except BaseException as error:
            guard.note(error)
            raise

    def prepare_append_as_leader(self, batches: bytes | memoryview, epoch: int) -> DiskWork[DiskResult[LogAppendInfo]]:
        """Append at once if no sync is needed; otherwise ``finish`` appends, in a new segment or a new epoch."""
        with self._guard:
            info = self._append_plainly(batches, epoch)
            return self._prepare_append_as_leader(batches, epoch) if info is None else self._finished(info)

    def _append_plainly(self, batches: bytes | memoryview, epoch: int) -> LogAppendInfo | None:
        """Append on the fast path: same epoch, same segment, no work needed; None if the slow path must be taken."""
        if self._quarantine is not None:
            self._refuse_in_quarantine()
        if self._under_way is not None:
            self._refuse_appends_under_way()
        segment = self._segments.active
        if epoch == self._epochs.latest_epoch and self._epochs_are_stored and self._damaged_segments is None:
            plain = check_plain_append(batches, epoch, segment.next_offset)
            if plain is not None:
                checked, next_offset, max_timestamp, info = plain
                size_bytes = len(batches)
                if segment.has_room_for(size_bytes, next_offset, max_timestamp, self._roll_limits):
                    segment.append(batches, checked, next_offset)
                    self._bytes_since_recovery_point += size_bytes
                    return info
        return None

    def _prepare_append_as_leader(self, batches: bytes | memoryview, epoch: int) -> DiskWork[DiskResult[LogAppendInfo]]:
        return self._append(check_append(batches, epoch, self._segments.end_offset, self.last_fetched_epoch))

    def append_as_follower(self, batches: bytes | memoryview, epoch: int) -> LogAppendInfo | None:
        """Append what the leader has sent. In quarantine, the damage is set aside first."""
        guard = self._guard
        if guard.failure is not None or guard.is_closed:
            guard.check()
        try:
            info = self._follow_plainly(batches, epoch)
            return self._prepare_append_as_follower(batches, epoch).complete().value if info is None else info
        except BaseException as error:
            guard.note(error)
            raise

    def prepare_append_as_follower(
        self, batches: bytes | memoryview, epoch: int
    ) -> DiskWork[DiskResult[LogAppendInfo | None]]:
        """Append at once if no sync is needed; otherwise ``finish`` appends."""
        with self._guard:
            info = self._follow_plainly(batches, epoch)
            return self._prepare_append_as_follower(batches, epoch) if info is None else self._finished(info)

    def _follow_plainly(self, batches: bytes | memoryview, epoch: int) -> LogAppendInfo | None:
        """Append batches of the log's latest epoch, as nearly all that a leader sends are, on the fast path."""
        latest = self._epochs.latest_epoch
        if self._quarantine is not None or latest is None or latest > epoch:
            return None
        return self._append_plainly(batches, latest)

    def _prepare_append_as_follower(
        self, batches: bytes | memoryview, epoch: int
    ) -> DiskWork[DiskResult[LogAppendInfo | None]]:
        self._refuse_appends_under_way()
        checked = check_append_as_follower(batches, epoch, self._segments.end_offset, self.last_fetched_epoch)
        return self._finished(None) if checked is None else self._append(checked)

    def _append(self, checked: CheckedAppend) -> DiskWork[DiskResult[LogAppendInfo]]:
        """Return work that prepares the log for some batches, and then writes them; finished if nothing is needed."""
        size_bytes, next_offset = len(checked.data), checked.next_offset
        active = self._segments.active
        rolls = not active.has_room_for(size_bytes, next_offset, checked.max_timestamp, self._roll_limits)
        is_known = self._epochs_are_stored and checked.batches[-1].epoch == self._epochs.latest_epoch
        if self._damaged_segments is None and is_known and not rolls:
            return self._finished(self._write(checked, self._epochs))
        self._refuse_while_under_way()
        epochs = self._epochs if is_known else self._epochs_with(checked)
        steps = self._setting_aside()
        end_offset = self._flushed_offset
        if rolls:
            end_offset = active.next_offset
            steps += self._rolling(end_offset)
        if not is_known:
            # If the epoch is stored but its batch is not written, the next append stores the epochs again.
            self._epochs_are_stored = False
            steps.append(self._storing_epochs(epochs, self._recovery_point(end_offset, epochs)))
        held = checked._replace(data=bytes(checked.data))  # The caller may reuse its buffer.
        return self._begin(steps, lambda: self._write(held, epochs))

    def _write(self, checked: CheckedAppend, epochs: LeaderEpochs) -> LogAppendInfo:
        self._segments.active.append(checked.data, checked.batches, checked.next_offset)
        self._epochs, self._epochs_are_stored = epochs, True
        self._bytes_since_recovery_point += len(checked.data)
        if self._quarantine is not None:
            self._quarantine = attrs.evolve(self._quarantine, first_bad_offset=self._segments.end_offset)
        end_offset, epoch = self._segments.end_offset, epochs.latest_epoch
        batch = checked.batches[-1]
        invariant(
            checked.info.last_offset + 1 == end_offset, "{}: last is {}, log end {}", self._directory, batch, end_offset
        )
        invariant(batch.epoch == epoch, "{}: last is {}, latest epoch {}", self._directory, batch, epoch)
        self._check_pointer_invariants()
        return checked.info

    def _epochs_with(self, checked: CheckedAppend) -> LeaderEpochs:
        """Return the epochs that the log will have after an append.

        They are stored before the batches are written. If the batches never follow, the next open drops an epoch that
        starts at the log end.
        """
        return self._epochs.with_epochs(checked.epochs)

    def _storing_epochs(self, epochs: LeaderEpochs, point: RecoveryPoint) -> DiskStep:
        """Return the step that stores epochs in both files that witness them, before their batches are written.

        Args:
            epochs: those that the log will have.
            point: the recovery point that the log will have, with the same epochs.
        """
        return self._step(
            lambda: self._store_epochs(epochs, point), None, self._epoch_checkpoint.path, *self._point_paths
        )

    def _store_epochs(self, epochs: LeaderEpochs, point: RecoveryPoint) -> None:
        self._epoch_checkpoint.store(epochs)
        self._durable.store(point)

    def _keeping_epochs(self, epochs: LeaderEpochs, point: RecoveryPoint) -> DiskStep:
        """Return the step that stores the epochs left after a truncation; if the disk is full, the next append does."""

        def store() -> bool:
            with contextlib.suppress(OutOfSpaceError):
                self._store_epochs(epochs, point)
                return True
            return False

        def take(is_stored: bool) -> None:
            self._epochs, self._epochs_are_stored = epochs, is_stored
            self._check_pointer_invariants()

        return self._step(store, take, self._epoch_checkpoint.path, *self._point_paths)

    def _rolling(self, end_offset: int) -> list[DiskStep]:
        """Return the steps that sync the active segment and begin the next one, at the log end."""
        flush, flushed = self._flush_to_come(stores_point=False), self._flushed_offset
        since = self._bytes_since_recovery_point
        invariant(
            end_offset == self._segments.end_offset, "{}: rolled at {}, not at the end", self._directory, end_offset
        )
        invariant(flushed <= end_offset, "{}: flushed offset {}, log end {}", self._directory, flushed, end_offset)
        invariant(since >= 0, "{}: {} bytes since the recovery point", self._directory, since)
        self._bytes_since_recovery_point = 0  # It is stored below.
        point = self._recovery_point(end_offset, self._epochs)
        return [
            *([] if flush is None else [self._flushing(flush)]),
            attrs.evolve(self._segments.rolling(), on_failure=self._note_failure),
            self._step(lambda: self._store_point_if_there_is_room(point), None, *self._point_paths),
        ]

    def _setting_aside(self) -> list[DiskStep]:
        """Return the step that sets damage aside, or no step if there is none."""
        damaged, active = self._damaged_segments, self._segments.active
        if damaged is None:
            return []

        def forget(_: object) -> None:
            self._damaged_segments = None

        paths = [path for segment in (active, *damaged) for path in segment.paths]
        return [
            self._step(
                lambda: set_aside_after(self._file_system, self._directory, active, damaged),
                forget,
                *paths,
                self._directory,
            )
        ]

    def read(self, start_offset: int, isolation: Isolation, max_size_bytes: int = MAX_BATCH_SIZE) -> LogFetchInfo:
        """Read batches from an offset on, and check them."""
        self._guard.check()
        if self._quarantine is not None and start_offset >= self._quarantine.first_bad_offset:
            raise QuarantinedLogError(f"offset {start_offset}: {self._quarantine.reason}")
        end_offset = self._segments.end_offset
        if not self._start_offset <= start_offset <= end_offset:
            raise OffsetOutOfRangeError(f"offset {start_offset} is not in {self._start_offset} to {end_offset}")
        limit = self._high_watermark if isolation is Isolation.COMMITTED else end_offset
        cut_place = None
        if self._under_way is not None:
            limit = self._readable_end(start_offset, limit)
            cut = self._under_way.cut
            cut_place = cut.end.segment_position if cut is not None and cut.end.offset == limit else None
        if start_offset >= limit:
            return LogFetchInfo(memoryview(b""), self._segments.locate(limit))
        return self._segments.read(start_offset, limit, max_size_bytes, self._epochs, cut_place)

    def flush(self) -> None:
        """Sync the active segment; earlier segments were synced when they ended."""
        guard = self._guard
        if guard.failure is not None or guard.is_closed:
            guard.check()
        if self._under_way is not None:
            self._refuse_while_under_way()
        try:
            # Like ``prepare_flush``, but without steps: caches are cold after an fsync, so each object costs more.
            flush = self._flush_to_come()
            if flush is not None:
                self._run_flush(flush)
                self._finish_flush(flush)
        except BaseException as error:
            guard.note(error)
            raise

    def prepare_flush(self) -> DiskWork[DiskResult[int]]:
        """Prepare to sync what is appended by now; appends and reads continue until it is finished."""
        with self._guard:
            self._refuse_while_under_way()
            flush = self._flush_to_come()
            steps = [] if flush is None else [self._flushing(flush)]
            return self._begin(steps, lambda: self._flushed_offset, holds_appends=False)

    def _flush_to_come(self, *, stores_point: bool = True) -> Flush | None:
        segment, bytes_since = self._segments.active, self._bytes_since_recovery_point
        end_offset = segment.next_offset
        is_sync_needed = self._flushed_offset != end_offset
        is_due = stores_point and bytes_since >= self._recovery_point_interval_bytes
        if not is_sync_needed and not is_due:
            return None
        point = self._recovery_point(end_offset) if is_due else None
        return Flush(segment.file, end_offset, is_sync_needed, bytes_since, point)

    def _flushing(self, flush: Flush) -> DiskStep:
        paths = (flush.file.path, *self._point_paths)
        return self._step(lambda: self._run_flush(flush), lambda _: self._finish_flush(flush), *paths)

    def _run_flush(self, flush: Flush) -> None:
        if flush.is_sync_needed:
            self._durable.mark_sync(flush.file, flush.end_offset)
        if flush.point is not None:
            self._store_point_if_there_is_room(flush.point)

    def _finish_flush(self, flush: Flush) -> None:
        if not self._flushed_offset <= flush.end_offset <= self._segments.active.next_offset:
            self._refuse_pointers(self._segments.active, flush)
        self._flushed_offset = flush.end_offset
        if flush.point is not None:
            self._bytes_since_recovery_point -= flush.bytes_since
            if self._bytes_since_recovery_point < 0:
                self._refuse_pointers(self._segments.active, flush)
        if self._quarantine is not None and flush.end_offset >= self._quarantine.durable_end_offset:
            self._quarantine = None

    def initialize_leader_epoch(self, epoch: int) -> None:
        """Begin an epoch at the log end."""
        with self._guard:
            self.prepare_leader_epoch(epoch).complete()

    def prepare_leader_epoch(self, epoch: int) -> DiskWork[DiskResult[None]]:
        """Prepare ``initialize_leader_epoch``; appends are refused until it is finished."""
        with self._guard:
            self._refuse_in_quarantine()
            self._refuse_while_under_way()
            check_leader_epoch(self.state, epoch)
            epochs = self._epochs.with_epoch(epoch, self._segments.end_offset)
            steps = []
            if epochs is not self._epochs:
                self._epochs_are_stored = False
                steps.append(self._storing_epochs(epochs, self._recovery_point(epochs=epochs)))

            def take() -> None:
                self._epochs = epochs
                self._check_pointer_invariants()
                self._epochs_are_stored = self._epochs_are_stored or bool(steps)

            return self._begin(steps, take)

    def _begin(self, steps: Sequence[DiskStep], result: Callable[[], T], **held: Any) -> DiskWork[DiskResult[T]]:
        # Setting damage aside may replace the file of the active segment, so reads must wait.
        held.setdefault("holds_reads", self._damaged_segments is not None)
        return super()._begin([self._unfailed(), *steps] if steps else (), result, **held)

    def _unfailed(self) -> DiskStep:
        """Return the step that makes the work fail, in both its parts, if another operation has failed meanwhile."""
        return DiskStep(self._guard.check, lambda _: self._guard.check())

    def _note_failure(self, error: BaseException) -> None:
        self._guard.note(error)

    @property
    def _point_paths(self) -> tuple[str, ...]:
        return (*(join(self._directory, name) for name in (FLUSH_MARK_NAME, RECOVERY_POINT_NAME)), self._directory)

    def _refuse_pointers(self, segment: LogSegment, flush: Flush) -> NoReturn:
        """Say which pointers disagree: out of the way of a flush, which has found that they do."""
        raise InvariantViolation(
            f"{segment.path}: {flush}, in a log flushed to {self._flushed_offset}, ends at {segment.next_offset} "
            f"and has {self._bytes_since_recovery_point} bytes since the recovery point"
        )

    def _refuse_in_quarantine(self) -> None:
        if self._quarantine is not None:
            raise QuarantinedLogError(f"{self._quarantine.path}: {self._quarantine.reason}")

    def _recovery_point(self, end_offset: int | None = None, epochs: LeaderEpochs | None = None) -> RecoveryPoint:
        """Return the recovery point to be stored. In quarantine it keeps the durable end and the epochs found on open.

        Args:
            end_offset: up to which the log will be durable, exclusive; None for the current one.
            epochs: that the log will have; None for the current ones.
        """
        if end_offset is None:
            end_offset = self._flushed_offset
        if epochs is None:
            # As long as the damage is in place, keep the epochs that contradict it.
            epochs = self._epochs if self._damaged_segments is None else self._witnessed_epochs
        point = RecoveryPoint(0, self._start_offset, self._generation, epochs=epochs.entries)
        return point.up_to(end_offset, self._quarantine)

    def _store_point_if_there_is_room(self, point: RecoveryPoint) -> None:
        """Store the recovery point. If the disk is full, the old one remains, which is still a valid lower bound."""
        with contextlib.suppress(OutOfSpaceError):
            self._durable.store(point)
