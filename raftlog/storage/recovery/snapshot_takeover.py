# SPDX-License-Identifier: Apache-2.0
"""Restarts a log at a snapshot, on open.

The snapshot is ahead of all batches found, because a crash came before that was done; or nothing is sound from the log
start on, so that the log could not be continued.

If the recovery point already has the snapshot as the log start, the owner had begun to remove everything below, and
that is completed. Otherwise no such decision was made, and what the snapshot replaces is kept under other names::

    the recovery point          has the end up to which records were durable, if that is above the snapshot
    segments, from the end      .superseded-<snapshot>, or .damaged-0 if they are damaged
    older snapshots             .superseded-<snapshot>
    the recovery point          names the snapshot as the log start
    a new segment

After a crash between any of these steps, either the snapshot is still ahead, or all is done. As long as durable records
are neither in the log nor set aside as superseded, each open reports that they were lost.

Source: KafkaRaftLog#createLog. Differs: DECISIONS.md 36, Kafka deletes it all.
"""

import contextlib
from collections.abc import Iterable
from typing import Final

import attrs

from raftlog.errors import StorageError, TruncationBelowHighWatermarkError
from raftlog.file_system import FileSystem, join, replace_file
from raftlog.log.decisions import proven_end_offset
from raftlog.log.epochs import LeaderEpochs
from raftlog.log.replicated_log import Quarantine
from raftlog.log.state import LogState, snapshot_ids_of
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.columns.columns import Chunk, read_columns
from raftlog.snapshot.directory import SnapshotDirectory
from raftlog.snapshot.paths import snapshot_name
from raftlog.storage.recovery.leader_epoch_checkpoint import LeaderEpochCheckpoint
from raftlog.storage.recovery.recovery_point import RECOVERY_POINT_NAME, RecoveryPoint, StoredDurablePoint
from raftlog.storage.recovery.recovery_report import ActionKind, RecoveryAction
from raftlog.storage.recovery.scanned_segments import ScannedSegments
from raftlog.storage.segments.damaged_files import set_file_aside, supersede_file, superseded_segments
from raftlog.storage.segments.log_segment import LogSegment
from raftlog.storage.segments.segment_indexes import IndexLimits


def check_takeover(
    snapshot_id: OffsetAndEpoch, snapshot_ids: Iterable[OffsetAndEpoch], scanned: ScannedSegments, start_offset: int
) -> None:
    """Check that restarting at a snapshot drops no record that another snapshot proves to be committed.

    Raises:
        TruncationBelowHighWatermarkError: it would. Two such snapshots cannot be of one log.
    """
    listed = snapshot_ids_of(snapshot_ids)
    proven = proven_end_offset(LogState(start_offset, scanned.end_offset, start_offset, scanned.epochs, listed))
    if snapshot_id.offset < proven:
        raise TruncationBelowHighWatermarkError(
            f"snapshot {snapshot_id} is ahead of the log by its epoch, and another one proves offsets up to {proven} to"
            " be committed: one of them is not of this log"
        )


class SnapshotTakeover:
    """Replaces a whole log by a snapshot.

    Args:
        file_system: where the directory is.
        directory: of the log.
        snapshot_id: of the snapshot.
        stored: the stored durable point.
        known_end_offset: up to where, exclusive, there were records, according to the durable point, not to snapshots.

    Attributes:
        actions: what was done, in order.
        quarantine: the quarantine of the new log: if records were lost, the snapshot may end below the durable point.
    """

    def __init__(
        self,
        file_system: FileSystem,
        directory: str,
        snapshot_id: OffsetAndEpoch,
        stored: StoredDurablePoint,
        known_end_offset: int,
    ) -> None:
        self._file_system: Final = file_system
        self._directory: Final = directory
        self._snapshot_id: Final = snapshot_id
        self._stored: Final = stored
        self._known_end_offset: Final = known_end_offset
        point = stored.recovery_point
        self._is_decided: Final = point is not None and point.log_start_offset == snapshot_id.offset
        self.actions: list[RecoveryAction] = []
        self.quarantine: Quarantine | None = None

    def run(
        self,
        scanned: ScannedSegments,
        start_offset: int,
        snapshot_ids: tuple[OffsetAndEpoch, ...],
        quarantine: Quarantine | None,
    ) -> StoredDurablePoint:
        """Remove or set aside the old log, and record that it starts at the snapshot; durable on return.

        Args:
            scanned: the segments; this closes them.
            start_offset: of the old log, inclusive.
            snapshot_ids: all that are listed.
            quarantine: the damage; None if there is none.

        Returns:
            The new stored durable point.

        Raises:
            OutOfSpaceError, StorageError: the disk failed. Calling it again continues where this has stopped.
        """
        is_damaged = quarantine is not None and self._is_loss(scanned)
        if quarantine is not None and is_damaged:
            self._report_loss(quarantine)
            if quarantine.durable_end_offset > self._snapshot_id.offset:
                self.quarantine = attrs.evolve(quarantine, first_bad_offset=self._snapshot_id.offset)
                self._note_end(start_offset, quarantine.durable_end_offset)
        suspects = [*scanned.sound[-1:], *scanned.following] if is_damaged else []
        keeps = is_damaged or not self._is_decided
        # Backwards, each removal durable before the next, so that a crash leaves a log without a gap.
        for segment in reversed([*scanned.sound, *scanned.following]):
            if keeps and segment.file.size() > 0:
                self._set_segment_aside(segment, is_damaged=segment in suspects)
            else:
                segment.remove()
            self._file_system.sync_directory(self._directory)
        if not keeps:
            detail = f"offsets {start_offset} to {scanned.end_offset} (exclusive): {self._snapshot_id} is ahead of them"
            self.actions.append(RecoveryAction(ActionKind.REMOVED, self._directory, detail))
        self._drop_snapshots(snapshot_ids, keeps=keeps)
        return self._note_start()

    def begin_segment(self, index_limits: IndexLimits) -> LogSegment:
        """Make the new log's first segment; durable on return.

        Raises:
            OutOfSpaceError, StorageError: as for ``run``.
        """
        segment = LogSegment(self._file_system, self._directory, self._snapshot_id.offset, index_limits)
        try:
            LeaderEpochCheckpoint(self._file_system, self._directory).store(LeaderEpochs())
            self._file_system.sync_directory(self._directory)
        except BaseException:
            segment.close()
            raise
        return segment

    def _is_loss(self, scanned: ScannedSegments) -> bool:
        """Whether records are damaged or missing, other than those that an interrupted takeover set aside."""
        if scanned.problem is not None:
            return True
        # The owner has decided to remove what the snapshot has, not what came after that.
        is_removed = self._is_decided and self._known_end_offset <= self._snapshot_id.offset
        if is_removed or scanned.end_offset >= self._known_end_offset:
            return False
        return self._end_set_aside(scanned.end_offset) < self._known_end_offset

    def _end_set_aside(self, end_offset: int) -> int:
        """Return up to where, exclusive, the segments that follow an offset were set aside as superseded.

        They were sound then. It is not enough that the first of them is there: if records were lost, the last segment
        was set aside as damaged.
        """
        for base_offset, path in superseded_segments(self._file_system, self._directory, self._snapshot_id):
            if base_offset <= end_offset:
                end_offset = max(end_offset, self._sound_end(path, base_offset))
        return end_offset

    def _sound_end(self, path: str, base_offset: int) -> int:
        """Return the end offset, exclusive, of the sound batches at the start of a segment that was set aside."""
        end_offset = base_offset
        with contextlib.suppress(StorageError), contextlib.closing(self._file_system.open_for_reads(path)) as file:
            for piece in read_columns(file, (), data_only=False):
                if not isinstance(piece, Chunk):
                    break
                bases, deltas = piece.batches.column("base_offset"), piece.batches.column("last_offset_delta")
                for base, delta in zip(bases, deltas, strict=True):
                    if base != end_offset or delta < 0:
                        return end_offset
                    end_offset = base + delta + 1
        return end_offset

    def _report_loss(self, bad: Quarantine) -> None:
        detail = (
            f"from offset {bad.first_bad_offset} (position {bad.position}) on: {bad.reason}; "
            f"the snapshot {self._snapshot_id} covers the records below {self._snapshot_id.offset}"
        )
        self.actions.append(RecoveryAction(ActionKind.LOST, bad.path, detail))

    def _set_segment_aside(self, segment: LogSegment, *, is_damaged: bool) -> None:
        segment.close()
        if is_damaged:
            copy = set_file_aside(self._file_system, segment.path)
            self._note(ActionKind.SET_ASIDE, segment.path, "the lost records were in it or after it", copy)
        else:
            copy = supersede_file(self._file_system, segment.path, self._snapshot_id)
            detail = f"up to offset {segment.next_offset} (exclusive); {self._snapshot_id} is ahead of it"
            self._note(ActionKind.SUPERSEDED, segment.path, detail, copy)
        segment.remove_indexes()

    def _drop_snapshots(self, snapshot_ids: tuple[OffsetAndEpoch, ...], *, keeps: bool) -> None:
        snapshots = SnapshotDirectory(self._file_system, self._directory)
        for snapshot_id in snapshot_ids:
            if snapshot_id >= self._snapshot_id:
                continue
            if keeps:
                path = join(self._directory, snapshot_name(snapshot_id))
                copy = supersede_file(self._file_system, path, self._snapshot_id)
                self._note(ActionKind.SUPERSEDED, path, f"{self._snapshot_id} is newer", copy)
            else:
                snapshots.delete(snapshot_id)
        self._file_system.sync_directory(self._directory)

    def _note_end(self, start_offset: int, durable_end_offset: int) -> None:
        """Store up to where records were durable, exclusive: perhaps only the segments that are set aside show it."""
        known = self._stored.recovery_point or RecoveryPoint(0, start_offset, self._stored.next_generation)
        end_offset = max(known.durable_end_offset, durable_end_offset)
        # Nothing is trusted of the log: it is being replaced.
        point = attrs.evolve(known, durable_end_offset=end_offset, is_clean=False, synced_end_offset=0)
        replace_file(self._file_system, join(self._directory, RECOVERY_POINT_NAME), point.encode())

    def _note_start(self) -> StoredDurablePoint:
        offset = self._snapshot_id.offset
        point = RecoveryPoint(0, offset, self._stored.next_generation).up_to(offset, self.quarantine)
        replace_file(self._file_system, join(self._directory, RECOVERY_POINT_NAME), point.encode())
        return attrs.evolve(self._stored, recovery_point=point, problem=None)

    def _note(self, kind: ActionKind, path: str, detail: str, copy: str) -> None:
        self.actions.append(RecoveryAction(kind, path, detail, copy))
