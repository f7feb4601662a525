# SPDX-License-Identifier: Apache-2.0
"""Opening a log directory: reading all of it, and telling a write that was cut from damage.

The first thing that is wrong in a log is a **torn tail** if nobody was told that those bytes are there: it lies in the
last segment, at or above the durable point, and nothing behind it checks. A torn tail is cut. Anything else is
**damage**, and so is a log that ends below its durable point: nothing is cut or deleted then, and the log is
quarantined.

The durable point is what ``recovery_point`` knows. A directory that Kafka wrote has none: there it is the end of the
newest snapshot that verifies.

Source: LogLoader, LogSegment#recover, KafkaRaftLog#createLog. Differs: DECISIONS.md 14; Kafka cuts the log at the first
bad batch, and deletes all segments behind it.
"""

import contextlib
from typing import Final

import attrs

from raftlog.errors import DecodeError, MissingFileError, SnapshotError, StorageError
from raftlog.file_system import FileSystem, join, make_durable_directory, remove_if_there
from raftlog.leader_epoch_cache import LeaderEpochCache
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.file_names import FileKind, FileState, parse_file_name
from raftlog.replicated_log import Quarantine
from raftlog.snapshot.directory import SnapshotDirectory
from raftlog.snapshot.paths import snapshot_name
from raftlog.storage.damaged_files import set_file_aside
from raftlog.storage.directory_settling import settle_names
from raftlog.storage.epoch_witnesses import EpochWitnesses
from raftlog.storage.index_file import StoredIndex
from raftlog.storage.leader_epoch_checkpoint import LeaderEpochCheckpoint
from raftlog.storage.log_segment import LogSegment
from raftlog.storage.recovery_point import StoredDurablePoint, load_durable_point
from raftlog.storage.recovery_report import ActionKind, RecoveryAction, RecoveryReport
from raftlog.storage.segment_indexes import IndexLimits
from raftlog.storage.segment_scan import Problem
from raftlog.storage.written_anew import give_names_anew, write_recovery_point_anew, write_tails_anew

_INDEX_DETAILS: Final = {
    StoredIndex.BEHIND: "it was not there, or lacked the last entries, as after a crash; harmless",
    StoredIndex.WRONG: "it had other entries than are made here, as Kafka's may; harmless, the batches are sound",
}


@attrs.frozen
class RecoveredLog:
    """The parts of a log whose directory was read.

    Attributes:
        segments: one at least, in order, and whole; of the last one, what stands before the damage.
        damaged_segments: those behind the damage.
        start_offset: of the log, inclusive.
        epochs: where they start.
        snapshot_ids: of the snapshots that verify, oldest first.
        snapshot_to_start_at: the newest, where it is ahead of everything sound that was found; else None.
        stored: what was known of the durable point.
        report: what was found and done.
    """

    segments: list[LogSegment]
    damaged_segments: tuple[LogSegment, ...]
    start_offset: int
    epochs: LeaderEpochCache
    snapshot_ids: tuple[OffsetAndEpoch, ...]
    snapshot_to_start_at: OffsetAndEpoch | None
    stored: StoredDurablePoint
    report: RecoveryReport


@attrs.define
class ScannedSegments:
    """What reading all segments has found.

    Attributes:
        sound: the segments up to the problem; the last one perhaps in part.
        behind: those behind it.
        problem: None where all is sound.
        end_offset: of the sound part, exclusive.
        last_epoch: of the sound part.
        epochs: of the sound part.
        sound_end_behind, sound_epoch_behind: as of ``SegmentScan``, of all segments.
        witnesses: of the epochs.
    """

    sound: list[LogSegment] = attrs.field(factory=list)
    behind: list[LogSegment] = attrs.field(factory=list)
    problem: Problem | None = None
    end_offset: int = 0
    last_epoch: int = 0
    epochs: LeaderEpochCache = attrs.field(factory=LeaderEpochCache)
    sound_end_behind: int | None = None
    sound_epoch_behind: int = -1
    witnesses: EpochWitnesses = attrs.field(factory=EpochWitnesses)

    def take(self, segment: LogSegment) -> None:
        """Read the next segment."""
        if self.problem is None and self.sound and segment.base_offset != self.end_offset:
            reason = f"the next segment starts at {segment.base_offset}, where {self.end_offset} must follow"
            self.problem = Problem(self.sound[-1].size_bytes, reason, may_be_torn=False)
        if self.problem is not None:
            self._take_behind(segment)
            return
        scan = segment.scan(self.last_epoch, self.witnesses)
        self.sound.append(segment)
        self.end_offset, self.last_epoch, self.problem = scan.next_offset, scan.last_epoch, scan.problem
        for entry in scan.epochs:
            self.epochs.assign(entry.epoch, entry.start_offset)
        self._note_behind(scan.sound_end_behind, scan.sound_epoch_behind)

    def _take_behind(self, segment: LogSegment) -> None:
        scan = segment.scan(0, EpochWitnesses())
        self.behind.append(segment)
        if segment.size_bytes > 0:
            self._note_behind(scan.next_offset, scan.last_epoch)
        self._note_behind(scan.sound_end_behind, scan.sound_epoch_behind)

    def _note_behind(self, end_offset: int | None, epoch: int) -> None:
        if end_offset is not None:
            self.sound_end_behind = max(self.sound_end_behind or 0, end_offset)
            self.sound_epoch_behind = max(self.sound_epoch_behind, epoch)

    @property
    def furthest(self) -> OffsetAndEpoch:
        """The end of all that is sound, before the problem and behind it, and the greatest epoch there."""
        return OffsetAndEpoch(
            max(self.end_offset, self.sound_end_behind or 0), max(self.last_epoch, self.sound_epoch_behind)
        )

    def judge(self, durable_end_offset: int) -> Quarantine | None:
        """Say what is damaged; None where nothing is wrong, or what is wrong is a torn tail."""
        problem, path = self.problem, self.sound[-1].path
        if problem is None:
            if self.end_offset >= durable_end_offset:
                return None
            reason = f"the log ends at {self.end_offset}, and was durable up to {durable_end_offset}"
            return Quarantine(self.end_offset, durable_end_offset, reason, path, self.sound[-1].size_bytes)
        is_last = problem.may_be_torn and not self.behind and self.sound_end_behind is None
        if is_last and self.end_offset >= durable_end_offset:
            return None
        # At least one record is missing. Its end must be reached again, and that of what is sound behind it.
        end_offset = max(durable_end_offset, self.sound_end_behind or 0, self.end_offset + 1)
        return Quarantine(self.end_offset, end_offset, problem.reason, path, problem.position)


def recover(file_system: FileSystem, directory: str, index_limits: IndexLimits) -> RecoveredLog:
    """Read and settle a log directory, which is made where it is missing; what is done is durable on return.

    Raises:
        OutOfSpaceError, StorageError: the disk failed. Doing it again goes on where this has ended.
    """
    if not file_system.exists(directory):
        make_durable_directory(file_system, directory)
    return _Recovery(file_system, directory, index_limits).run()


class _Recovery:
    """One start, step by step."""

    def __init__(self, file_system: FileSystem, directory: str, index_limits: IndexLimits) -> None:
        self._file_system: Final = file_system
        self._directory: Final = directory
        self._index_limits: Final = index_limits
        self._snapshots: Final = SnapshotDirectory(file_system, directory)
        self._actions: list[RecoveryAction] = []
        self._opened: list[LogSegment] = []
        self._durable_point = 0

    def run(self) -> RecoveredLog:
        try:
            return self._run()
        except BaseException:
            for segment in self._opened:
                segment.close()
            raise

    def _run(self) -> RecoveredLog:
        self._actions.extend(settle_names(self._file_system, self._directory))
        stored = load_durable_point(self._file_system, self._directory)
        if stored.problem is not None:
            self._note(ActionKind.IGNORED, "", str(stored.problem))
        write_recovery_point_anew(self._file_system, self._directory, stored)
        snapshot_ids = self._verified_snapshots()
        start_offset, base_offsets = self._start(stored, snapshot_ids)
        checkpoint, problem = self._epoch_checkpoint()
        scanned, quarantine = self._read_segments(base_offsets, start_offset, snapshot_ids, stored, checkpoint)
        start_offset = scanned.sound[0].base_offset if scanned.end_offset < start_offset else start_offset
        self._repair(scanned, quarantine)
        scanned.epochs.truncate_from_start(start_offset)
        if quarantine is None:  # Else what bears witness against a batch must be there at the next start, too.
            self._settle_epochs(scanned.epochs, scanned.end_offset, checkpoint, problem)
        snapshot_ids = self._without_old(snapshot_ids, start_offset)
        self._file_system.sync_directory(self._directory)
        segments = (*scanned.sound, *scanned.behind)
        give_names_anew(self._file_system, self._directory, stored, segments, snapshot_ids, self._durable_point)
        report = RecoveryReport(
            start_offset,
            scanned.end_offset,
            stored.durable_end_offset,
            None if stored.recovery_point is None else stored.recovery_point.is_clean,
            tuple(self._actions),
            quarantine,
        )
        return RecoveredLog(
            scanned.sound,
            tuple(scanned.behind),
            start_offset,
            scanned.epochs,
            snapshot_ids,
            _snapshot_ahead(snapshot_ids, start_offset, scanned.furthest),
            stored,
            report,
        )

    def _note(self, kind: ActionKind, name: str, detail: str) -> None:
        self._actions.append(RecoveryAction(kind, join(self._directory, name) if name else self._directory, detail))

    def _verified_snapshots(self) -> tuple[OffsetAndEpoch, ...]:
        """Return the snapshots that verify; one that does not is set aside, lest somebody trusts its name."""
        verified = []
        for snapshot_id in self._snapshots.snapshot_ids():
            try:
                self._snapshots.verify(snapshot_id)
                verified.append(snapshot_id)
            except (DecodeError, SnapshotError) as error:
                name = snapshot_name(snapshot_id)
                set_file_aside(self._file_system, join(self._directory, name))
                self._note(ActionKind.SET_ASIDE, name, f"a snapshot that does not verify: {error}")
            except StorageError as error:
                # It may read the next time; until then nobody is told of it.
                self._note(ActionKind.IGNORED, snapshot_name(snapshot_id), str(error))
        return tuple(verified)

    def _start(
        self, stored: StoredDurablePoint, snapshot_ids: tuple[OffsetAndEpoch, ...]
    ) -> tuple[int, tuple[int, ...]]:
        """Return where the log starts, and the base offsets of its segments.

        Kafka forgets a start inside a segment; ours is remembered, and counts as long as a snapshot stands for what is
        below. Segments all below it are what a crash left of a deletion.
        """
        bases = self._base_offsets()
        if len(bases) > 1 and self._is_empty(bases[0]) and any(each.offset >= bases[1] for each in snapshot_ids):
            # A start that could not read the snapshot has begun anew below, and nothing has come of it.
            self._remove_segment(bases.pop(0))
        start_offset = bases[0] if bases else 0
        stored_start = 0 if stored.recovery_point is None else stored.recovery_point.log_start_offset
        if stored_start > start_offset and any(each.offset >= stored_start for each in snapshot_ids):
            start_offset = stored_start
        while len(bases) > 1 and bases[1] <= start_offset:
            self._remove_segment(bases.pop(0))
        return start_offset, tuple(bases) or (start_offset,)

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
        self._actions.append(RecoveryAction(ActionKind.REMOVED, segment.path, "a snapshot stands for all of it"))

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
        checkpoint: LeaderEpochCache | None,
    ) -> tuple[ScannedSegments, Quarantine | None]:
        witnesses = EpochWitnesses(each for each in (checkpoint, stored.epochs) if each is not None)
        scanned = ScannedSegments(end_offset=base_offsets[0], witnesses=witnesses)
        for base_offset in base_offsets:
            scanned.take(self._segment(base_offset))
        durable_end_offset = self._durable_end_offset(stored, snapshot_ids, scanned.epochs, checkpoint)
        self._durable_point = durable_end_offset
        write_tails_anew(scanned.sound, durable_end_offset, stored)
        quarantine = scanned.judge(durable_end_offset)
        if start_offset == 0 or any(each.offset >= start_offset for each in snapshot_ids):
            return scanned, quarantine
        # The records below are lost here, and without them those above are of no use: all of it must come anew.
        furthest = scanned.furthest
        first = scanned.sound[0]
        reason = f"the log starts at {start_offset}, and no snapshot that verifies stands for what is below"
        empty = ScannedSegments(
            behind=[*scanned.sound, *scanned.behind],
            sound_end_behind=furthest.offset,
            sound_epoch_behind=furthest.epoch,
        )
        empty.sound.append(self._segment(0))
        return empty, Quarantine(0, max(durable_end_offset, furthest.offset), reason, first.path, 0)

    def _durable_end_offset(
        self,
        stored: StoredDurablePoint,
        snapshot_ids: tuple[OffsetAndEpoch, ...],
        epochs: LeaderEpochCache,
        checkpoint: LeaderEpochCache | None,
    ) -> int:
        """Return the offset, exclusive, up to which whatever is missing has been acknowledged."""
        end_offset = stored.durable_end_offset
        if end_offset is None:
            return max((each.offset for each in snapshot_ids), default=0)
        by_others = stored.overwritten_by(epochs, checkpoint or LeaderEpochCache())
        if by_others is None:
            return end_offset
        detail = f"somebody else began epoch {by_others.epoch} at offset {by_others.start_offset} meanwhile, where"
        self._note(ActionKind.TAKEN, "", f"{detail} the log had been durable up to {end_offset}")
        return by_others.start_offset

    def _repair(self, scanned: ScannedSegments, quarantine: Quarantine | None) -> None:
        """Cut a torn tail, and make good what follows from the log. A damaged segment stays as it is."""
        last = scanned.sound[-1]
        if quarantine is None and scanned.problem is not None:
            size_bytes = last.file.size() - last.size_bytes
            last.cut_damage()
            detail = f"{size_bytes} bytes from position {last.size_bytes}, which nobody was told of: "
            self._actions.append(RecoveryAction(ActionKind.CUT, last.path, detail + scanned.problem.reason))
        elif quarantine is None:
            last.file.sync()  # What a killed process wrote is there, and perhaps nowhere but in memory.
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

    def _epoch_checkpoint(self) -> tuple[LeaderEpochCache | None, str]:
        """Return what the checkpoint says; None and the reason, where it says nothing."""
        try:
            found = LeaderEpochCheckpoint(self._file_system, self._directory).load()
        except MissingFileError:
            return None, "it was not there; harmless"
        except (DecodeError, StorageError) as error:
            return None, str(error)
        return found, "it was not what the batches say; harmless"

    def _settle_epochs(
        self, epochs: LeaderEpochCache, end_offset: int, found: LeaderEpochCache | None, problem: str
    ) -> None:
        """Write the checkpoint anew where it does not say what the batches say. A new log needs none yet."""
        entries = epochs.entries()
        if entries == (() if found is None else found.entries()):
            return
        checkpoint = LeaderEpochCheckpoint(self._file_system, self._directory)
        checkpoint.store(epochs)
        if found is not None:
            found.truncate_from_end(end_offset)  # Epochs without a batch yet are no mistake.
        if found is None or found.entries() != entries:
            self._actions.append(RecoveryAction(ActionKind.REBUILT, checkpoint.path, problem))

    def _without_old(self, snapshot_ids: tuple[OffsetAndEpoch, ...], start_offset: int) -> tuple[OffsetAndEpoch, ...]:
        """Remove the snapshots that end below the log start: what a crash left of a deletion."""
        old = [each for each in snapshot_ids if each.offset < start_offset]
        for snapshot_id in old:
            self._snapshots.delete(snapshot_id)
            self._note(ActionKind.REMOVED, snapshot_name(snapshot_id), f"the log starts at {start_offset}")
        return tuple(each for each in snapshot_ids if each not in old)


def _snapshot_ahead(
    snapshot_ids: tuple[OffsetAndEpoch, ...], start_offset: int, furthest: OffsetAndEpoch
) -> OffsetAndEpoch | None:
    """Return the newest snapshot where it is ahead of all that was found, and of the one that an empty log starts at.

    None of the snapshots may end below the log start: the log has gone on from where that one ends.
    """
    at_start = (each for each in snapshot_ids if each.offset == start_offset == furthest.offset)
    newest = max(snapshot_ids, default=furthest)
    return newest if newest > max((furthest, *at_start)) else None
