# SPDX-License-Identifier: Apache-2.0
"""Follows a log that another process writes, without its help: each look says what is new, and what is gone.

A look lists the log, reads on after the last batch that was seen, and reads the header of that batch again. So a log
that was truncated and has grown again is noticed, also if it has the same size. Files are open during a look only, and
are read, never mapped. What a look returns is in the order of the log, and each batch is returned once: what is
returned again has been reported as gone before.
"""

from collections.abc import Sequence
from typing import Final

import attrs

from raftlog.errors import MissingFileError
from raftlog.invariants import invariant, present
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import ByteSource
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.records.limits import BATCH_OVERHEAD
from raftlog.tools.follow.log_files import FoundFiles, LogFiles
from raftlog.tools.follow.notices import Event, Notice
from raftlog.tools.follow.remembered_batches import DEFAULT_LIMIT, RememberedBatch, RememberedBatches, fingerprint
from raftlog.tools.follow.segment_end import (
    Batch,
    IdleEnd,
    ScannedEnd,
    SegmentEnd,
    Unsound,
    head_size_of,
    idle_end,
    read_batches,
    scanned_end,
)
from raftlog.tools.input.inputs import InputFile

_RAFT_TOPIC: Final = "__cluster_metadata"
_NO_EPOCH: Final = -1
_LEAST_READ: Final = 64 * 1024
_MOST_READ: Final = 4 * 1024 * 1024
"""How many bytes one look reads. It grows with what is found, as preallocated files end in many zeros."""
_REMEMBERED_BEFORE_END: Final = 1000
"""How many offsets before the log end are looked at, but not returned, if following starts at the end: if the log is
truncated then, this tells where."""


@attrs.frozen
class Growth:
    """New pieces of one segment.

    Attributes:
        file: the segment.
        pieces: either sound batches, or what is torn or damaged for good; empty if the segment was only entered.
    """

    file: InputFile
    pieces: Sequence[Batch | Unsound]

    @property
    def is_unsound(self) -> bool:
        """Whether the pieces are torn or damaged."""
        return any(not isinstance(piece, RecordBatch | LegacyBatch) for piece in self.pieces)


@attrs.frozen
class LookResult:
    """The result of one look.

    Attributes:
        items: what is to be shown, in order.
        has_moved: whether anything has changed since the last look.
        has_more: whether the next look will find something even if nobody writes.
    """

    items: Sequence[Growth | Notice] = ()
    has_moved: bool = False
    has_more: bool = False


@attrs.frozen
class FollowStart:
    """Where to begin.

    Attributes:
        offset: the first offset, inclusive; None for the log start.
        before_end: instead, how many offsets before the log end as it is at the first look; 0 for the end itself. If
            there is no log yet, all of it is new.
    """

    offset: int | None = None
    before_end: int | None = None


class LogFollower:
    """Follows one log.

    Args:
        files: of the log.
        start: where to begin.
        limit: how many batches are remembered, to find the offset of a truncation.

    Attributes:
        next_offset: the offset after the last batch that was seen; 0 before the first look.
        is_waiting: whether no log was there at the last look.
        start_offset: the first offset that is returned, if that is counted from the log end; None until it is known. A
            truncation below it lowers it.
    """

    def __init__(self, files: LogFiles, start: FollowStart | None = None, limit: int = DEFAULT_LIMIT) -> None:
        self._files = files
        self._start = FollowStart() if start is None else start
        self._seen = RememberedBatches(limit)
        self._segment: int | None = None
        self._position = 0
        self._quiet_below: int | None = None
        """Batches below this offset were returned before, or are not wanted; until all that is there was read."""
        self._idle: IdleEnd | None = None
        self._scan: ScannedEnd | None = None
        self._suspect: list[tuple[int, int, str]] | None = None
        self._read_size = _LEAST_READ
        self._disorder: FoundFiles | None = None
        self.is_waiting = False
        self._begin_offset = self._first_segment = 0
        self._listing: FoundFiles | None = None
        self.next_offset = 0
        self.start_offset: int | None = None

    def look(self, *, is_last: bool = False) -> LookResult:
        """Look once.

        Args:
            is_last: whether the end of the log is as it will stay: a batch that is not complete is then returned as
                what it is, instead of waiting for the rest of it.

        Raises:
            StorageError: the log cannot be listed or read.
        """
        found = self._files.listed() if self._listing is None else self._listing
        if not found.segments:
            return self._wait()
        is_fresh, self._listing = self._listing is None, None
        self.is_waiting = False
        try:
            if self._segment is None:
                return self._begin(found)
            changed = self._begun_anew(found) or self._lost_by_name(found, self._segment)
            if changed is not None:
                return changed
            result = self._read_on(found, self._segment, is_last=is_last, is_fresh=is_fresh)
            if result.has_more and self._seen and self._suspect is None and self._segment != found.segments[-1]:
                self._listing = found  # As long as it names segments to be read, it need not be read again for each.
            return result
        except MissingFileError:  # Deleted since it was listed. The next look finds out what that means.
            return LookResult(has_moved=True)

    def _wait(self) -> LookResult:
        if self._segment is None:
            self._start = attrs.evolve(self._start, before_end=None)
        if self.is_waiting:
            return LookResult()
        self.is_waiting = True
        return LookResult((Notice(Event.WAITING, self._files.path),), has_moved=True)

    def _begin(self, found: FoundFiles) -> LookResult:
        start = self._start.offset
        if self._start.before_end is not None:
            end = self._end_offset(found)
            start = self.start_offset = max(0, end - self._start.before_end)
            self._quiet_below = start
            start = max(0, start - _REMEMBERED_BEFORE_END)
        segment = found.segments[0] if start is None else found.holding(start)
        self.next_offset = segment
        self._begin_offset = segment if start is None else max(start, segment)
        self._first_segment = found.segments[0]
        return self._entered(segment, self._position_before(segment, start))

    def _end_offset(self, found: FoundFiles) -> int:
        """Return the offset after the last sound batch."""
        with self._files.opened(found.segments[-1]) as source:
            return self._files.end_of(found.segments[-1], source)

    def _position_before(self, segment: int, offset: int | None) -> int:
        if offset is None:
            return 0
        with self._files.opened(segment) as source:
            return self._files.position_before(segment, source, offset)

    def _entered(self, segment: int, position: int, *before: Notice) -> LookResult:
        """Go to a place of the log, and return that."""
        invariant(position >= 0, "followed from position {}", position)
        self._segment, self._position = segment, position
        self._suspect = self._idle = None
        entered = () if self._quiet_below is not None else (Growth(self._files.input_file(segment), ()),)
        return LookResult((*before, *entered), has_moved=True, has_more=True)

    def _begun_anew(self, found: FoundFiles) -> LookResult | None:
        """Return what to do if the log begins below the end of a segment that it no longer has; None if it does not.

        Then it was replaced by a snapshot. Segments that are deleted from the log start end where the log then starts.
        """
        first = found.segments[0]
        if first < self._first_segment:  # Another log: no log's start goes back.
            return self._truncated(found)
        count = self._seen.count_below(first)
        if count == 0 or self._seen[count - 1].next_offset <= first:
            self._seen.forget_first(count)
            self._first_segment = self._first_segment if self._seen else first
            return None
        snapshot = next((each for each in found.snapshots if each.offset == first), None)
        is_of_lineage = snapshot is not None and self._seen.epoch_at(first - 1) == snapshot.epoch
        if is_of_lineage:
            return self._replaced(found, first)
        is_all_known = not self._seen.has_forgotten
        return self._replaced(found, min(first, self._seen[0].base_offset) if is_all_known else self._begin_offset)

    def _replaced(self, found: FoundFiles, offset: int) -> LookResult:
        """Go on at the start of a log in which nothing of what was seen is left from an offset on."""
        expected = self.next_offset
        offset = self.next_offset = min(offset, expected)
        is_exact = bool(self._seen) and not self._seen.has_forgotten
        self._seen.truncate(0)
        self._first_segment = found.segments[0]
        self._begin_below(offset)
        return self._next_segment(found, found.segments[0], *self._truncation(offset, expected, is_exact=is_exact))

    def _lost_by_name(self, found: FoundFiles, segment: int) -> LookResult | None:
        """Return what to do if the segment that is read is gone; None if it is there."""
        disorder, self._disorder = self._disorder, None
        last = self._seen[len(self._seen) - 1].segment if self._seen else segment
        if segment in found.segments and last in found.segments:
            return None
        following = found.after(segment)
        if following is not None and following == found.segments[0]:
            if following < self.next_offset:
                return self._replaced(found, following)
            return self._next_segment(found, following)
        if found.segments[-1] < segment or disorder == found:
            return self._truncated(found)
        self._disorder = found  # If it is the same twice, it is not due to the order in which names were listed.
        return LookResult(has_moved=True)

    def _next_segment(self, found: FoundFiles, segment: int, *before: Notice) -> LookResult:
        """Go on at the start of a segment, and say so if that leaves a gap."""
        expected = max(self.next_offset, self._start.offset or 0)
        self.next_offset = max(segment, self.next_offset)
        # The cleaner of a topic leaves gaps. A raft log has none; a log start that has moved leaves one in a copy.
        may_lack = segment != found.segments[0] and self._files.input_file(segment).topic != _RAFT_TOPIC
        if segment <= expected or may_lack:
            return self._entered(segment, 0, *before)
        covering = [each for each in found.snapshots if each.offset >= segment]
        snapshot = min(covering, key=lambda each: each.offset, default=None)
        gap = Notice(Event.SKIPPED, self._files.path, expected, segment, snapshot_id=snapshot)
        return self._entered(segment, 0, *before, gap)

    def _truncated(self, found: FoundFiles) -> LookResult:
        """Find out which of the batches that were seen are still there, and go on after the last of them."""
        expected, first = self.next_offset, found.segments[0]
        count = 0 if first < self._first_segment else self._count_intact(found)
        offset = expected
        if first < self._first_segment:
            offset = self._begin_offset = first
        elif count == 0:
            offset = min(expected, max(first, self._begin_offset))
        elif count < len(self._seen):
            offset = min(expected, self._seen[count].base_offset)
        is_exact = count > 0 or offset == first
        if count:
            last = self._seen[count - 1]
            segment, position = last.segment, last.end_position
        else:
            segment = found.holding(offset)
            position = self._position_before(segment, offset)
        self._seen.truncate(count)  # From here on nothing can fail.
        self._begin_below(offset)
        if count == 0:
            self._first_segment = first
            self._quiet_below = offset if offset > first else self._quiet_below
        self.next_offset = offset
        return self._entered(segment, position, *self._truncation(offset, expected, is_exact=is_exact))

    def _truncation(self, offset: int, expected: int, *, is_exact: bool) -> tuple[Notice, ...]:
        """Return the notice of a truncation, without offsets that nobody has asked for."""
        offset = max(offset, self._start.offset or 0)
        return (Notice(Event.TRUNCATED, self._files.path, offset, expected, is_exact),) if offset < expected else ()

    def _begin_below(self, offset: int) -> None:
        """Count what comes after a truncation as new, also if it is below the start that was counted from the end."""
        if self.start_offset is not None:
            self.start_offset = min(self.start_offset, offset)
        if self._quiet_below is not None:
            self._quiet_below = min(self._quiet_below, offset)

    def _count_intact(self, found: FoundFiles) -> int:
        """Return how many of the batches are still in place, by bisection: none is after one that is not."""
        low, high = 0, len(self._seen)
        while low < high:
            middle = (low + high) // 2
            batch = self._seen[middle]
            if batch.segment in found.segments and self._is_intact_in_file(batch):
                low = middle + 1
            else:
                high = middle
        return low

    def _is_intact_in_file(self, batch: RememberedBatch) -> bool:
        with self._files.opened(batch.segment) as source:
            return _is_intact(batch, source)

    def _last_is_intact(self, segment: int, source: ByteSource) -> bool:
        """Whether the batch that was seen last is in place; true if none is remembered."""
        if not self._seen:
            return True
        last = self._seen[len(self._seen) - 1]
        return _is_intact(last, source) if last.segment == segment else self._is_intact_in_file(last)

    def _read_on(self, found: FoundFiles, segment: int, *, is_last: bool, is_fresh: bool) -> LookResult:
        is_sealed = segment != found.segments[-1]
        with self._files.opened(segment) as source:
            idle = None if is_sealed else idle_end(source, segment, self._position)
            is_known = idle is not None and idle == self._idle
            is_last &= idle is None or is_known  # Else the end has just changed: a node is at work.
            is_growing = idle is not None and idle.is_part
            may_end = is_last or not (is_growing or is_known)
            end = self._end_after(source, is_fresh=is_last) if may_end else SegmentEnd()
            heads = [fingerprint(source.read_at(piece.position, head_size_of(piece))) for piece in end.unsound]
            may_be_written = not is_sealed and end.is_open_in(source)
            # After reading, so that what was read was not written after a truncation that goes unnoticed.
            is_intact = self._last_is_intact(segment, source)
        if not is_intact:
            return self._truncated(found) if is_fresh else LookResult(has_moved=True)
        if end.batches:
            return self._grown(segment, end.batches)
        if self._position > 0 and not self._seen:
            return self._entered(segment, 0)  # An index has led to where no batch is any more.
        if end.unsound and (is_last or not may_be_written):
            return self._unsound(segment, end.unsound, heads, is_last=is_last)
        if is_sealed:
            return self._sealed(found, segment)
        self._quiet_below = None
        has_moved = idle != self._idle and idle is not None and idle.has_bytes
        self._idle = idle
        return LookResult(has_moved=has_moved)

    def _end_after(self, source: ByteSource, *, is_fresh: bool) -> SegmentEnd:
        """Read on, but do not search again what was searched for batches before, if it is as it was."""
        batches = read_batches(source, self._position, self._read_size)
        if batches:
            return SegmentEnd(batches)
        scan = self._scan
        if is_fresh or scan is None or not scan.is_of(source, self._segment, self._position):
            scan = self._scan = scanned_end(source, self._segment, self._position)
        return scan.end

    def _sealed(self, found: FoundFiles, segment: int) -> LookResult:
        """Go to the next segment. The listing is older than what was read: this one may have been truncated since."""
        following = present(found.after(segment), "the next segment")
        gap = [(self._position, following - self.next_offset, "gap")]
        if following > self.next_offset and not self._is_confirmed(gap):
            return LookResult(has_moved=True)
        return self._next_segment(found, following)

    def _grown(self, segment: int, batches: Sequence[Batch]) -> LookResult:
        start = self._position
        shown: list[Batch] = []
        for batch in batches:
            if self._quiet_below is None or batch.last_offset >= self._quiet_below:
                shown.append(batch)
            self._note(segment, batch)
        is_full = 2 * (self._position - start) >= self._read_size
        self._read_size = min(2 * self._read_size, _MOST_READ) if is_full else _LEAST_READ
        self._suspect = None
        if self._idle is not None and self._idle.is_part:
            self._idle = None  # Zeros that were scanned need not be scanned again.
        growth = (Growth(self._files.input_file(segment), shown),) if shown else ()
        return LookResult(growth, has_moved=True, has_more=True)

    def _note(self, segment: int, batch: Batch) -> None:
        """Remember a batch, and go on after it."""
        invariant(batch.position == self._position, "{} read at {}", batch, self._position)
        self._position += batch.size_bytes
        self.next_offset = max(self.next_offset, batch.last_offset + 1)
        epoch = batch.partition_leader_epoch if isinstance(batch, RecordBatch) else _NO_EPOCH
        place = (segment, batch.position, self._position)
        head = fingerprint(batch.buffer[:BATCH_OVERHEAD])
        self._seen.add(RememberedBatch(*place, batch.base_offset, self.next_offset, epoch, head))

    def _unsound(self, segment: int, pieces: Sequence[Unsound], heads: Sequence[int], *, is_last: bool) -> LookResult:
        """Return what is damaged or torn for good, once two looks have found it: the node may be at work."""
        if not self._is_confirmed(_places(pieces)) and not is_last:
            return LookResult(has_moved=True)
        offset = self.next_offset
        for piece, head in zip(pieces, heads, strict=True):
            self._position = piece.position + piece.size_bytes
            place = (segment, piece.position, self._position)
            self._seen.add(RememberedBatch(*place, offset, offset, _NO_EPOCH, head))
        self._suspect = self._idle = None
        return LookResult((Growth(self._files.input_file(segment), pieces),), has_moved=True, has_more=True)

    def _is_confirmed(self, suspect: list[tuple[int, int, str]]) -> bool:
        """Whether the last look has found the same fault: the node may be at work at a place when it is read."""
        before, self._suspect = self._suspect, suspect
        return before == suspect


def _is_intact(batch: RememberedBatch, source: ByteSource) -> bool:
    """Whether a batch is in place: its file reaches to its end, and has its first bytes."""
    head = source.read_at(batch.position, batch.head_size)
    is_there = len(head) == batch.head_size and source.size() >= batch.end_position
    return is_there and fingerprint(head) == batch.fingerprint


def _places(pieces: Sequence[Unsound]) -> list[tuple[int, int, str]]:
    return [(piece.position, piece.size_bytes, piece.rule) for piece in pieces]
