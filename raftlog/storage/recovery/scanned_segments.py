# SPDX-License-Identifier: Apache-2.0
"""Reads all segments of a log on open, and decides whether a problem is a torn tail or damage.

Source: LogLoader, LogSegment#recover.
"""

import attrs

from raftlog.errors import StorageError
from raftlog.invariants import invariant
from raftlog.log.epochs import LeaderEpochs
from raftlog.log.replicated_log import Quarantine
from raftlog.offsets import OffsetAndEpoch
from raftlog.storage.segments.epoch_witnesses import EpochWitnesses
from raftlog.storage.segments.log_segment import LogSegment
from raftlog.storage.segments.segment_scan import Problem, SegmentScan


@attrs.define
class ScannedSegments:
    """The segments read so far, and the first problem in them.

    Attributes:
        sound: the segments up to the problem; the last one may be sound only in part.
        following: the segments after it.
        problem: None if all is sound.
        failure: of the first read that failed, in any segment; None if the disk has given all bytes back.
        end_offset: of the sound part, exclusive.
        last_epoch: of the sound part.
        epochs: of the sound part.
        sound_end_after, sound_epoch_after: as in ``SegmentScan``, for all segments.
        witnesses: of the epochs.
        trusted_end_offset: batches below it, exclusive, may be read from the page cache.
        from_disk_offsets: as in ``SegmentScan``, by base offset of the segment.
        is_ours: whether raftlog wrote the directory, and recorded how far the log was durable. If Kafka wrote it, only
            bytes that look torn are a torn tail: other bytes that fail a check may have been committed.
    """

    sound: list[LogSegment] = attrs.field(factory=list)
    following: list[LogSegment] = attrs.field(factory=list)
    problem: Problem | None = None
    failure: StorageError | None = None
    end_offset: int = 0
    last_epoch: int = 0
    epochs: LeaderEpochs = attrs.field(factory=LeaderEpochs)
    sound_end_after: int | None = None
    sound_epoch_after: int = -1
    witnesses: EpochWitnesses = attrs.field(factory=EpochWitnesses)
    trusted_end_offset: int = 0
    from_disk_offsets: dict[int, int] = attrs.field(factory=dict)
    is_ours: bool = True

    def take(self, segment: LogSegment) -> None:
        """Read the next segment."""
        if self.problem is None and self.sound and segment.base_offset != self.end_offset:
            reason = f"the next segment starts at {segment.base_offset}, but {self.end_offset} must follow"
            self.problem = Problem(self.sound[-1].size_bytes, reason, may_be_torn=False)
        if self.problem is not None:
            self._take_following(segment)
            return
        before, path = self.last_epoch, segment.path
        scan = self._scan(segment, before, self.witnesses)
        self.sound.append(segment)
        self.end_offset, self.last_epoch, self.problem = scan.next_offset, scan.last_epoch, scan.problem
        self.epochs = self.epochs.with_epochs(scan.epochs)
        end_offset, epoch, epochs = self.end_offset, self.last_epoch, self.epochs.entries
        invariant(
            end_offset == segment.next_offset, "{}: next offset {}, log end {}", path, segment.next_offset, end_offset
        )
        invariant(before <= epoch, "{}: epoch moves back to {} from {}", path, epoch, before)
        invariant(
            not epochs or epochs[-1].start_offset < end_offset, "{}: {}, log end {}", path, epochs[-1:], end_offset
        )
        self._note_after(scan.sound_end_after, scan.sound_epoch_after)

    def start_at(self, start_offset: int) -> None:
        """Let the log start at an offset, inclusive: epochs below it are dropped, and the offset's own starts there.

        An empty log may start inside a segment whose batches are all below: then it has no epochs.
        """
        first, end_offset, path = self.sound[0].base_offset, self.end_offset, self.sound[0].path
        invariant(first <= start_offset <= end_offset, "{}: log start {}, log end {}", path, start_offset, end_offset)
        self.epochs = self.epochs.truncated_from_start(start_offset).truncated_from_end(end_offset)
        earliest = self.epochs.earliest_entry
        invariant(
            earliest is None or earliest.start_offset >= start_offset,
            "{}: {}, log start {}",
            path,
            earliest,
            start_offset,
        )

    def _take_following(self, segment: LogSegment) -> None:
        scan = self._scan(segment, 0, EpochWitnesses())
        self.following.append(segment)
        if segment.size_bytes > 0:
            self._note_after(scan.next_offset, scan.last_epoch)
        self._note_after(scan.sound_end_after, scan.sound_epoch_after)

    def _scan(self, segment: LogSegment, last_epoch: int, witnesses: EpochWitnesses) -> SegmentScan:
        scan = segment.scan(last_epoch, witnesses, self.trusted_end_offset)
        self.from_disk_offsets[segment.base_offset] = scan.from_disk_offset
        self.failure = self.failure or scan.failure
        return scan

    def _note_after(self, end_offset: int | None, epoch: int) -> None:
        if end_offset is not None:
            path, before = self.sound[-1].path, self.sound_end_after or 0
            invariant(self.problem is not None, "{}: offset {} follows no problem", path, end_offset)
            self.sound_end_after = max(before, end_offset)
            self.sound_epoch_after = max(self.sound_epoch_after, epoch)
            invariant(epoch >= -1, "{}: epoch {} follows the problem", path, epoch)

    @property
    def furthest(self) -> OffsetAndEpoch:
        """The end offset of all that is sound, before and after the problem, and the greatest epoch of that."""
        return OffsetAndEpoch(
            max(self.end_offset, self.sound_end_after or 0), max(self.last_epoch, self.sound_epoch_after)
        )

    def judge(self, durable_end_offset: int) -> Quarantine | None:
        """Return the quarantine that the damage requires; None if the log is sound, or has only a torn tail."""
        problem, path = self.problem, self.sound[-1].path
        if problem is None:
            if self.end_offset >= durable_end_offset:
                return None
            reason = f"the log ends at {self.end_offset}, but was durable up to {durable_end_offset}"
            return Quarantine(self.end_offset, durable_end_offset, reason, path, self.sound[-1].size_bytes)
        if self._is_torn(problem) and self.end_offset >= durable_end_offset:
            return None
        # At least one record is missing. The log is repaired when it has passed that record, and all sound ones after.
        end_offset = max(durable_end_offset, self.sound_end_after or 0, self.end_offset + 1)
        return Quarantine(self.end_offset, end_offset, problem.reason, path, problem.position)

    def _is_torn(self, problem: Problem) -> bool:
        """Whether a problem can be a torn tail, provided that it lies at or above the durable point."""
        is_last = not self.following and self.sound_end_after is None
        return is_last and (problem.may_be_torn if self.is_ours else problem.looks_torn)
