# SPDX-License-Identifier: Apache-2.0
"""Opens a log directory: reads all of it, and distinguishes torn writes from damage.

The first problem in a log is a **torn tail** if those bytes were never acknowledged: it is in the last segment, at or
above the durable point, and no sound batch follows it. A torn tail is copied, then truncated. Everything else is
**damage**, and so is a log that ends below its durable point. Then nothing is truncated or deleted, and the log is put
in quarantine. But if a newer snapshot covers all of the damage, or nothing is left that it could continue, the log
restarts at the snapshot, and the report lists what was lost (``snapshot_takeover``).

The durable point is stored by ``recovery_point``. A directory that Kafka wrote has none: the end of the newest snapshot
that verifies is used instead, and above it only bytes that look torn are a torn tail (DECISIONS.md 7).

Files are removed, rather than kept under another name, only if they are derived from the log; if they were never
finished, or are named as being deleted; or if they lie below the log start in the recovery point, because then an
earlier owner has decided to remove them.

Source: LogLoader, LogSegment#recover, KafkaRaftLog#createLog. Differs: DECISIONS.md 14, 15 and 36; Kafka truncates the
log at the first bad batch, and deletes all segments after it.
"""

import contextlib
import itertools
from typing import Final

import attrs

from raftlog.errors import DecodeError, MissingFileError, SnapshotError, StorageError
from raftlog.file_system import FileSystem, join, make_durable_directory, remove_if_there
from raftlog.invariants import invariant
from raftlog.log.epochs import LeaderEpochs
from raftlog.log.replicated_log import Quarantine
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.file_names import FileKind, FileName, FileState, parse_file_name
from raftlog.snapshot.directory import SnapshotDirectory
from raftlog.snapshot.paths import snapshot_name
from raftlog.storage.recovery.directory_settling import settle_names
from raftlog.storage.recovery.leader_epoch_checkpoint import LeaderEpochCheckpoint
from raftlog.storage.recovery.log_start import lost_start
from raftlog.storage.recovery.recovery_point import StoredDurablePoint, load_durable_point
from raftlog.storage.recovery.recovery_report import ActionKind, RecoveryAction, RecoveryReport
from raftlog.storage.recovery.rewriting import (
    restore_names,
    rewrite_recovery_point,
    rewrite_tails,
    trusted_end_offset,
)
from raftlog.storage.recovery.scanned_segments import ScannedSegments
from raftlog.storage.recovery.snapshot_takeover import SnapshotTakeover, check_takeover
from raftlog.storage.segments.damaged_files import cut_torn_tail, set_file_aside, supersede_file
from raftlog.storage.segments.epoch_witnesses import EpochWitnesses
from raftlog.storage.segments.index_file import StoredIndex
from raftlog.storage.segments.log_segment import LogSegment
from raftlog.storage.segments.segment_indexes import IndexLimits

_INDEX_DETAILS: Final = {
    StoredIndex.INCOMPLETE: "it was missing, or lacked the last entries, as after a crash; harmless",
    StoredIndex.WRONG: "its entries differed, as Kafka's may; harmless, because the batches are sound",
}


@attrs.frozen
class RecoveredLog:
    """The parts of a log whose directory was read.

    Attributes:
        segments: at least one, in order and sound; the last one up to the damage. A single empty one if the log
            restarts at a snapshot.
        damaged_segments: the segments after the damage.
        start_offset: of the log, inclusive.
        epochs: where they start.
        snapshot_ids: of the snapshots that verify, oldest first.
        stored: the stored durable point.
        report: what was found and done.
    """

    segments: list[LogSegment]
    damaged_segments: tuple[LogSegment, ...]
    start_offset: int
    epochs: LeaderEpochs
    snapshot_ids: tuple[OffsetAndEpoch, ...]
    stored: StoredDurablePoint
    report: RecoveryReport

    def check_invariants(self) -> None:
        """Check the parts against each other: a log is opened with them as they are.

        Raises:
            InvariantViolation: they disagree. No bytes on a disk can do that.
        """
        segments, start_offset = self.segments, self.start_offset
        first, last = segments[0].base_offset, segments[-1]
        path, end_offset, entries = last.path, last.next_offset, self.epochs.entries
        invariant(
            first <= start_offset <= end_offset,
            "{}: log start {}, not in {}..{}",
            path,
            start_offset,
            first,
            end_offset,
        )
        for one, other in itertools.pairwise(segments):
            invariant(
                one.next_offset == other.base_offset,
                "{}: next offset {}, then {}",
                one.path,
                one.next_offset,
                other.path,
            )
        is_inside = not entries or start_offset <= entries[0].start_offset <= entries[-1].start_offset <= end_offset
        invariant(is_inside, "{}: epochs {}, not in {}..{}", path, self.epochs, start_offset, end_offset)


def recover(file_system: FileSystem, directory: str, index_limits: IndexLimits) -> RecoveredLog:
    """Read and recover a log directory, which is created if missing; all changes are durable on return.

    Raises:
        OutOfSpaceError, StorageError: the disk failed, or is full. Nothing is truncated before it is copied, and
            calling this again continues where it has stopped.
        TruncationBelowHighWatermarkError: two snapshots contradict each other about what is committed.
    """
    if not file_system.exists(directory):
        make_durable_directory(file_system, directory)
    return _Recovery(file_system, directory, index_limits).run()


class _Recovery:
    """One startup recovery, step by step."""

    def __init__(self, file_system: FileSystem, directory: str, index_limits: IndexLimits) -> None:
        self._file_system: Final = file_system
        self._directory: Final = directory
        self._index_limits: Final = index_limits
        self._snapshots: Final = SnapshotDirectory(file_system, directory)
        self._checkpoint: Final = LeaderEpochCheckpoint(file_system, directory)
        self._actions: list[RecoveryAction] = []
        self._opened: list[LogSegment] = []
        self._known_end_offset = 0
        """The offset up to which there were records, without regard to snapshots."""
        self._synced_end_offset = 0
        """Batches below it, exclusive, are on the disk: the durable point, or less in a log that had lost records."""

    def run(self) -> RecoveredLog:
        try:
            recovered = self._run()
            recovered.check_invariants()
            return recovered
        except BaseException:
            for segment in self._opened:
                segment.close()
            raise

    def _run(self) -> RecoveredLog:
        self._actions.extend(settle_names(self._file_system, self._directory))
        stored = load_durable_point(self._file_system, self._directory)
        if stored.problem is not None:
            self._note(ActionKind.IGNORED, "", str(stored.problem))
        rewrite_recovery_point(self._file_system, self._directory, stored)
        snapshot_ids = self._verified_snapshots()
        checkpoint, problem = self._epoch_checkpoint()
        start_offset, base_offsets = self._start(stored, snapshot_ids, checkpoint)
        scanned, quarantine = self._read_segments(base_offsets, start_offset, snapshot_ids, stored, checkpoint)
        start_offset = scanned.sound[0].base_offset if scanned.end_offset < start_offset else start_offset
        scanned.start_at(start_offset)
        snapshot_ids = self._without_old(snapshot_ids, start_offset, stored)
        ahead = _snapshot_ahead(snapshot_ids, start_offset, scanned)
        if ahead is not None:
            return self._restarted_log(ahead, scanned, start_offset, snapshot_ids, stored, quarantine)
        rewrite_tails(scanned.sound, self._synced_end_offset, stored, scanned.from_disk_offsets)
        self._repair(scanned, quarantine)
        if quarantine is None:
            self._settle_epochs(scanned.epochs, scanned.end_offset, checkpoint, problem)
        elif checkpoint:
            self._add_early_epochs(scanned.epochs, checkpoint)
        self._file_system.sync_directory(self._directory)
        segments = (*scanned.sound, *scanned.following)
        restore_names(self._file_system, self._directory, stored, segments, snapshot_ids, self._synced_end_offset)
        return RecoveredLog(
            scanned.sound,
            tuple(scanned.following),
            start_offset,
            scanned.epochs,
            snapshot_ids,
            stored,
            self._report(start_offset, scanned.end_offset, stored, quarantine),
        )

    def _restarted_log(
        self,
        ahead: OffsetAndEpoch,
        scanned: ScannedSegments,
        start_offset: int,
        snapshot_ids: tuple[OffsetAndEpoch, ...],
        stored: StoredDurablePoint,
        quarantine: Quarantine | None,
    ) -> RecoveredLog:
        """Replace the log by a snapshot that is ahead of it, and return the new log.

        Raises:
            StorageError: a segment cannot be read. It may be readable next time, and have records above the snapshot
                that nothing else knows of. Moved to another name, it counts as lost.
        """
        unread = scanned.failure
        if unread is not None:
            cause = f"{unread.cause}; the snapshot {ahead} would take the place of what may be readable next time"
            raise StorageError(unread.path, unread.operation, cause)
        check_takeover(ahead, snapshot_ids, scanned, start_offset)
        # Make its name durable before anything is removed in its favour: an earlier sync may have failed.
        restore_names(self._file_system, self._directory, stored, scanned.sound, (ahead,), self._synced_end_offset)
        takeover = SnapshotTakeover(self._file_system, self._directory, ahead, stored, self._known_end_offset)
        noted = takeover.run(scanned, start_offset, snapshot_ids, quarantine)
        segment = takeover.begin_segment(self._index_limits)
        self._actions.extend(takeover.actions)
        return RecoveredLog(
            [segment],
            (),
            ahead.offset,
            LeaderEpochs(),
            tuple(each for each in snapshot_ids if each >= ahead),
            noted,
            self._report(ahead.offset, ahead.offset, stored, takeover.quarantine),
        )

    def _report(
        self, start_offset: int, end_offset: int, stored: StoredDurablePoint, quarantine: Quarantine | None
    ) -> RecoveryReport:
        was_closed = None if stored.recovery_point is None else stored.is_clean
        return RecoveryReport(
            start_offset, end_offset, stored.durable_end_offset, was_closed, tuple(self._actions), quarantine
        )

    def _note(self, kind: ActionKind, name: str, detail: str, copy: str | None = None) -> None:
        path = join(self._directory, name) if name else self._directory
        self._actions.append(RecoveryAction(kind, path, detail, copy))

    def _verified_snapshots(self) -> tuple[OffsetAndEpoch, ...]:
        """Return the snapshots that verify; those that do not are set aside, so that no program trusts their names."""
        verified = []
        for snapshot_id in self._snapshots.snapshot_ids():
            try:
                self._snapshots.verify(snapshot_id)
                verified.append(snapshot_id)
            except (DecodeError, SnapshotError) as error:
                name = snapshot_name(snapshot_id)
                copy = set_file_aside(self._file_system, join(self._directory, name))
                self._note(ActionKind.SET_ASIDE, name, f"a snapshot that does not verify: {error}", copy)
            except StorageError as error:
                # It may be readable next time; until then it is not listed.
                self._note(ActionKind.IGNORED, snapshot_name(snapshot_id), str(error))
        return tuple(verified)

    def _start(
        self,
        stored: StoredDurablePoint,
        snapshot_ids: tuple[OffsetAndEpoch, ...],
        checkpoint: LeaderEpochs | None,
    ) -> tuple[int, tuple[int, ...]]:
        """Return where the log starts, and the base offsets of its segments.

        Kafka forgets a log start inside a segment. Ours is stored, and used if a snapshot covers the records below.
        Segments wholly below it are left over from an interrupted deletion, and are removed. If segments are missing
        below the first one, that is reported if a snapshot covers them; without a snapshot the log is quarantined.
        """
        bases = self._base_offsets()
        if len(bases) > 1 and self._is_empty(bases[0]) and any(each.offset >= bases[1] for each in snapshot_ids):
            # An earlier open could not read the snapshot, and began an empty segment below it.
            self._remove_segment(bases.pop(0))
        self._note_lost_start(bases, stored, snapshot_ids, checkpoint)
        start_offset = bases[0] if bases else 0
        stored_start = 0 if stored.recovery_point is None else stored.recovery_point.log_start_offset
        if stored_start > start_offset and any(each.offset >= stored_start for each in snapshot_ids):
            start_offset = stored_start
        while len(bases) > 1 and bases[1] <= start_offset:
            self._remove_segment(bases.pop(0))
        return start_offset, tuple(bases) or (start_offset,)

    def _note_lost_start(
        self,
        bases: list[int],
        stored: StoredDurablePoint,
        snapshot_ids: tuple[OffsetAndEpoch, ...],
        checkpoint: LeaderEpochs | None,
    ) -> None:
        covering = [each for each in snapshot_ids if bases and each.offset >= bases[0]]
        lost = lost_start(stored, checkpoint, bases[0]) if covering else None
        if lost is not None:
            name = str(FileName(FileKind.LOG, base_offset=lost))
            detail = f"offsets {lost} to {bases[0]} (exclusive) are missing, and the log did not delete them; the"
            self._note(ActionKind.LOST, name, f"{detail} snapshot {covering[-1]} covers them")
        if not bases and stored.durable_end_offset is None and checkpoint:
            # Kafka had records here, since their epochs are stored; and a log is never without a segment.
            before, known = self._known_end_offset, checkpoint.entries[-1].start_offset + 1
            invariant(before == 0, "{}: the end was known: {}", self._directory, before)
            invariant(known > 0, "{}: known end {} by {}", self._directory, known, checkpoint)
            self._known_end_offset = known

    def _is_empty(self, base_offset: int) -> bool:
        with contextlib.closing(self._segment(base_offset)) as segment:
            return segment.file.size() == 0

    def _base_offsets(self) -> list[int]:
        names = map(parse_file_name, self._file_system.list(self._directory))
        return sorted(
            name.base_offset
            for name in names
            if name and name.kind is FileKind.LOG and name.state is FileState.CURRENT and name.base_offset is not None
        )

    def _remove_segment(self, base_offset: int) -> None:
        segment = self._segment(base_offset)
        segment.remove()
        self._actions.append(RecoveryAction(ActionKind.REMOVED, segment.path, "a snapshot covers all of it"))

    def _segment(self, base_offset: int) -> LogSegment:
        segment = LogSegment(self._file_system, self._directory, base_offset, self._index_limits)
        self._opened.append(segment)
        return segment

    def _read_segments(
        self,
        base_offsets: tuple[int, ...],
        start_offset: int,
        snapshot_ids: tuple[OffsetAndEpoch, ...],
        stored: StoredDurablePoint,
        checkpoint: LeaderEpochs | None,
    ) -> tuple[ScannedSegments, Quarantine | None]:
        witnesses = EpochWitnesses(each for each in (checkpoint, stored.epochs) if each is not None)
        # Bytes after the end of a log that was closed in order are not ours, either.
        is_ours = stored.durable_end_offset is not None and not stored.is_clean
        scanned = ScannedSegments(
            end_offset=base_offsets[0],
            witnesses=witnesses,
            trusted_end_offset=trusted_end_offset(stored, snapshot_ids),
            is_ours=is_ours,
        )
        for base_offset in base_offsets:
            scanned.take(self._segment(base_offset))
        durable_end_offset = self._durable_end_offset(stored, snapshot_ids, scanned.epochs, checkpoint)
        known = self._known_end_offset
        invariant(known >= 0, "{}: known end {}", self._directory, known)
        invariant(
            known <= durable_end_offset, "{}: durable end {}, known end {}", self._directory, durable_end_offset, known
        )
        self._synced_end_offset = min(durable_end_offset, scanned.trusted_end_offset)
        quarantine = scanned.judge(durable_end_offset)
        if start_offset == 0 or any(each.offset >= start_offset for each in snapshot_ids):
            return scanned, quarantine
        # The records below are lost here, and those above are useless without them: all must be fetched again.
        furthest = scanned.furthest
        first = scanned.sound[0]
        reason = f"the log starts at {start_offset}, and no snapshot that verifies covers the records below"
        empty = ScannedSegments(
            following=[*scanned.sound, *scanned.following],
            sound_end_after=furthest.offset,
            sound_epoch_after=furthest.epoch,
            failure=scanned.failure,
        )
        empty.sound.append(self._segment(0))
        return empty, Quarantine(0, max(durable_end_offset, furthest.offset), reason, first.path, 0)

    def _durable_end_offset(
        self,
        stored: StoredDurablePoint,
        snapshot_ids: tuple[OffsetAndEpoch, ...],
        epochs: LeaderEpochs,
        checkpoint: LeaderEpochs | None,
    ) -> int:
        """Return the durable point: below this offset, exclusive, records may have been acknowledged."""
        end_offset = stored.durable_end_offset
        if end_offset is None:
            return max((self._known_end_offset, *(each.offset for each in snapshot_ids)))
        by_others = stored.overwritten_by(epochs, checkpoint or LeaderEpochs())
        known = end_offset if by_others is None else by_others.start_offset
        invariant(known >= 0, "{}: known end {}", self._directory, known)
        invariant(known <= end_offset, "{}: known end {}, durable end {}", self._directory, known, end_offset)
        self._known_end_offset = known
        if by_others is not None:
            detail = f"another program began epoch {by_others.epoch} at offset {by_others.start_offset} meanwhile, but"
            self._note(ActionKind.TAKEN, "", f"{detail} the log had been durable up to {end_offset}")
        return self._known_end_offset

    def _repair(self, scanned: ScannedSegments, quarantine: Quarantine | None) -> None:
        """Truncate a torn tail, and rebuild the files that are derived from the log. Damage stays as it is."""
        last = scanned.sound[-1]
        if quarantine is None and scanned.problem is not None:
            size_bytes = last.file.size() - last.size_bytes
            copy, removed = cut_torn_tail(self._file_system, self._directory, last)
            detail = f"{size_bytes} bytes from position {last.size_bytes} on, never acknowledged: "
            self._actions.append(RecoveryAction(ActionKind.CUT, last.path, detail + scanned.problem.reason, copy))
            for path in removed:
                self._actions.append(RecoveryAction(ActionKind.REMOVED, path, "there are newer copies of torn tails"))
        elif quarantine is None:
            last.file.sync()  # The writes of a killed process may be in the page cache only.
        if quarantine is None:
            self._remove_producer_snapshots_above(scanned.end_offset)
        whole = scanned.sound if quarantine is None else scanned.sound[:-1]
        for segment in whole:
            for path, had in segment.settle_indexes(is_last=segment is last):
                self._actions.append(RecoveryAction(ActionKind.REBUILT, path, _INDEX_DETAILS[had]))

    def _remove_producer_snapshots_above(self, end_offset: int) -> None:
        for text in self._file_system.list(self._directory):
            name = parse_file_name(text)
            if name and name.kind is FileKind.PRODUCER_SNAPSHOT and (name.base_offset or 0) > end_offset:
                remove_if_there(self._file_system, join(self._directory, text))
                self._note(ActionKind.REMOVED, text, f"the log ends at {end_offset}")

    def _epoch_checkpoint(self) -> tuple[LeaderEpochs | None, str]:
        """Return the epochs of the checkpoint, or None, and the reason to give if it must be rebuilt.

        Raises:
            StorageError: the disk does not give it back. Without it, a wrong epoch would be contradicted by one list
                only, and believed.
        """
        try:
            found = self._checkpoint.load()
        except MissingFileError:
            return None, "it was missing; harmless"
        except DecodeError as error:
            return None, str(error)
        return found, "it differed from the batches; harmless"

    def _settle_epochs(self, epochs: LeaderEpochs, end_offset: int, found: LeaderEpochs | None, problem: str) -> None:
        """Rewrite the checkpoint if it differs from the batches. A new log does not need one yet."""
        entries = epochs.entries
        if entries == (() if found is None else found.entries):
            return
        self._checkpoint.store(epochs)
        if found is not None:
            found = found.truncated_from_end(end_offset)  # Epochs without a batch yet are not an error.
        if found is None or found.entries != entries:
            self._actions.append(RecoveryAction(ActionKind.REBUILT, self._checkpoint.path, problem))

    def _add_early_epochs(self, epochs: LeaderEpochs, found: LeaderEpochs) -> None:
        """Let the checkpoint of a damaged log begin where the log does: earlier, if the recovery point is lost.

        Otherwise only the new recovery point has the epochs of the batches that are back, and one list doubts none.
        What the checkpoint says stays: it may contradict a batch at the next open.
        """
        first = found.entries[0]
        early = (each for each in epochs.entries if each.start_offset < first.start_offset)
        extended = LeaderEpochs(each for each in early if each.epoch <= first.epoch).with_epochs(found.entries)
        if extended != found:
            self._checkpoint.store(extended)
            detail = f"it began at offset {first.start_offset}, and the log begins at {epochs.entries[0].start_offset}"
            self._actions.append(RecoveryAction(ActionKind.REBUILT, self._checkpoint.path, detail))

    def _without_old(
        self, snapshot_ids: tuple[OffsetAndEpoch, ...], start_offset: int, stored: StoredDurablePoint
    ) -> tuple[OffsetAndEpoch, ...]:
        """Remove or rename the snapshots that end below the log start, and return the remaining ones.

        Snapshots below the start in the recovery point are left over from an interrupted deletion, and are removed.
        """
        noted = 0 if stored.recovery_point is None else stored.recovery_point.log_start_offset
        current = tuple(each for each in snapshot_ids if each.offset >= start_offset)
        for snapshot_id in snapshot_ids:
            if snapshot_id in current:
                continue
            name, detail = snapshot_name(snapshot_id), f"the log starts at {start_offset}"
            if snapshot_id.offset < noted:
                self._snapshots.delete(snapshot_id)
                self._note(ActionKind.REMOVED, name, detail)
            elif current:
                copy = supersede_file(self._file_system, join(self._directory, name), max(current))
                self._note(ActionKind.SUPERSEDED, name, detail, copy)
        return current


def _snapshot_ahead(
    snapshot_ids: tuple[OffsetAndEpoch, ...], start_offset: int, scanned: ScannedSegments
) -> OffsetAndEpoch | None:
    """Return the newest snapshot if the log has to restart there, or None.

    It has to if the snapshot is ahead of all batches found, and of the one that an empty log starts at. It also has to
    if nothing at all is sound from the log start on, and no snapshot ends there: then the epoch before the log start is
    unknown, and no leader could tell from where the log agrees with its own.

    The caller passes no snapshot that ends below the log start: the log has continued from there.
    """
    furthest = scanned.furthest
    at_start = [each for each in snapshot_ids if each.offset == start_offset]
    newest = max(snapshot_ids, default=furthest)
    if scanned.end_offset == start_offset and start_offset > 0 and not at_start:
        return newest if snapshot_ids else None
    covering = at_start if start_offset == furthest.offset else []
    return newest if newest > max((furthest, *covering)) else None
