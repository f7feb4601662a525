# SPDX-License-Identifier: Apache-2.0
"""Reads a whole segment on open: checks every CRC, the order of offsets and epochs, and the form of control batches.

A scan continues after the first problem, to find out whether sound batches follow. That distinguishes damage from a
write that was cut short.

Source: LogSegment#recover. Differs: Kafka stops at the first bad batch, and does not check order and structure.
"""

import operator
import sys
from typing import Final, Protocol

import attrs

from raftlog.errors import InvariantViolation, StorageError, without_frames
from raftlog.invariants import invariant, present
from raftlog.offsets import EpochEntry
from raftlog.records.batches.batch import CONTROL_FLAG
from raftlog.records.batches.control_batch import control_batch_problem
from raftlog.records.batches.iterator import Corruption, TornTail, ZeroPadding
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.records.batches.window import ByteSource
from raftlog.records.columns.columns import BatchColumns, Chunk, read_columns
from raftlog.records.limits import BATCH_OVERHEAD, MAX_BATCH_SIZE, MIN_RECORD_SIZE
from raftlog.storage.reading.readable_bytes import ReadableBytes
from raftlog.storage.segments.epoch_witnesses import EpochWitnesses
from raftlog.storage.segments.segment_indexes import MAX_INDEXED_POSITION, SegmentIndexes

_MAX_OFFSET: Final = (1 << 63) - 2
_MOST_RECORDS: Final = MAX_BATCH_SIZE // MIN_RECORD_SIZE
"""The most records in a batch that a raft leader writes, however well they compress."""
_MOST_CLAIMS: Final = 64
"""So many different offsets are remembered of a run; later ones are believed."""
_Piece = Chunk | LegacyBatch | TornTail | ZeroPadding | Corruption


class ScannedFile(ByteSource, Protocol):
    """The operations of a file that a scan needs."""

    def drop_cache(self, position: int) -> bool:
        """Drop the page cache from a position on, as ``OpenFile.drop_cache`` does."""
        ...


@attrs.frozen
class Problem:
    """The first thing wrong in a segment.

    Attributes:
        position: byte position where the sound part of the segment ends.
        reason: what is wrong there.
        may_be_torn: whether a torn write can leave such bytes. It cannot leave batches out of order, sound batches of
            magic 0 or 1, or bytes that the disk cannot read.
        looks_torn: whether the bytes alone show a torn write (DECISIONS.md 7): the end of the file, or zeros from a
            sector on, replace the rest of a batch. A complete batch whose CRC fails does not look torn.
    """

    position: int
    reason: str
    may_be_torn: bool
    looks_torn: bool = False


@attrs.define
class FollowingBatches:
    """How far the sound batches after a problem say that the log reached.

    In a run of batches without a byte between them, the base offset of each follows from the one before. Bits of a
    header that no CRC covers may be wrong, so that one batch says something else: then most of the run decide, and
    where there is no majority, the greatest offset.

    Attributes:
        runs_end_offset: of the runs that have ended, exclusive; 0 if there is none.
        end_position: of the present run.
        record_count: of the present run.
        batch_count: of the present run.
        claims: by the offset that the run's first record would have, how many batches say so, and the end offset
            (exclusive) that follows; 0 for none.
    """

    runs_end_offset: int = 0
    end_position: int = -1
    record_count: int = 0
    batch_count: int = 0
    claims: dict[int, tuple[int, int]] = attrs.field(factory=dict)

    def take(self, positions: range, base_offset: int, record_count: int, *, is_possible: bool) -> None:
        """Take the next sound batch.

        Args:
            positions: of its bytes.
            base_offset: that it says.
            record_count: that its header says.
            is_possible: whether the log may have reached its end offset.
        """
        before = self.runs_end_offset
        invariant(positions.start >= self.end_position, "a batch at {}, before {}", positions.start, self.end_position)
        if positions.start != self.end_position:
            self.runs_end_offset, self.claims = self.end_offset, {}
            self.record_count = self.batch_count = 0
        first = base_offset - self.record_count
        count, end_offset = self.claims.get(first, (0, 0))
        if is_possible:
            end_offset = base_offset + record_count
        if count or len(self.claims) < _MOST_CLAIMS:
            self.claims[first] = count + 1, end_offset
        else:
            self.runs_end_offset = max(self.runs_end_offset, end_offset)
        self.record_count += record_count
        self.batch_count += 1
        self.end_position = positions.stop
        invariant(before <= self.runs_end_offset, "end offset {} after {}", self.runs_end_offset, before)

    @property
    def end_offset(self) -> int:
        """The end offset of all runs, exclusive; 0 if no batch may be of this log."""
        for first, (count, end_offset) in self.claims.items():
            if 2 * count > self.batch_count:
                return max(self.runs_end_offset, first + self.record_count if end_offset else 0)
        return max(self.runs_end_offset, *(end_offset for _, end_offset in self.claims.values()), 0)


@attrs.define
class SegmentScan:
    """The state and result of a scan.

    Attributes:
        next_offset: after the last sound batch; initially where the segment must start.
        last_epoch: of the last sound batch; initially the lowest epoch that the first batch may have.
        indexes: of the sound batches.
        witnesses: of the epochs.
        end_position: where the sound batches end.
        epochs: each epoch that starts in this segment, with the base offset of its first batch.
        first_timestamp: the greatest timestamp of the first batch, in ms; None if there is no batch.
        problem: what ended the sound part; None if all is sound.
        sound_end_after: the greatest end offset (exclusive) of sound batches after the problem that may be of this
            log; None if there are none. At least ``next_offset``.
        sound_epoch_after: the greatest epoch of those batches.
        after: the sound batches after the problem.
        first_gap: byte position from which on some bytes could not be read.
        failure: of a read, by which some bytes are unknown rather than wrong; None if the disk has given all back.
        from_disk_offset: offset, inclusive, from which on everything was read from the disk rather than the page cache;
            ``sys.maxsize`` if nothing had to be, or the cache could not be dropped.
    """

    next_offset: int
    last_epoch: int
    indexes: SegmentIndexes
    witnesses: EpochWitnesses = attrs.field(factory=EpochWitnesses)
    end_position: int = 0
    epochs: list[EpochEntry] = attrs.field(factory=list)
    first_timestamp: int | None = None
    problem: Problem | None = None
    sound_end_after: int | None = None
    sound_epoch_after: int = -1
    after: FollowingBatches = attrs.field(factory=FollowingBatches)
    first_gap: int = sys.maxsize
    failure: StorageError | None = None
    from_disk_offset: int = sys.maxsize

    def take(self, batches: BatchColumns) -> None:
        """Check the next batches, whose CRCs match, and add those that are sound."""
        columns = zip(
            batches.column("position"),
            batches.column("size"),
            batches.column("base_offset"),
            batches.column("last_offset_delta"),
            batches.column("record_count"),
            batches.column("partition_leader_epoch"),
            batches.column("attributes"),
            batches.column("max_timestamp"),
            strict=True,
        )
        for index, (position, size, base_offset, delta, count, epoch, attributes, timestamp) in enumerate(columns):
            if self.problem is None:
                last_offset = base_offset + delta
                reason = self._disorder(base_offset, last_offset, count, epoch)
                reason = reason or self._misplacement(position + size, last_offset)
                if reason is None and attributes & CONTROL_FLAG:
                    reason = control_batch_problem(batches.run.batch(index))
                if reason is None:
                    self._add(position, size, last_offset, epoch, timestamp)
                    continue
                self.problem = Problem(position, reason, may_be_torn=False)
            self._note_after(range(position, position + size), base_offset, delta, epoch)

    def fail(self, problem: Problem) -> None:
        """Record a problem, unless there was one before."""
        if self.problem is None:
            self.problem = problem

    def _disorder(self, base_offset: int, last_offset: int, count: int, epoch: int) -> str | None:
        if base_offset != self.next_offset:
            return f"a batch of base offset {base_offset}, but {self.next_offset} must follow"
        if not base_offset <= last_offset <= _MAX_OFFSET or last_offset - base_offset + 1 != count:
            return f"a batch of {count} records from offset {base_offset} to {last_offset}"
        if epoch < self.last_epoch:
            return f"a batch of epoch {epoch} after epoch {self.last_epoch}"
        if self.witnesses.contradict(base_offset, epoch, self.last_epoch):
            return f"a batch of epoch {epoch}, but every list of epochs has another one at this offset"
        return None

    def _misplacement(self, end_position: int, last_offset: int) -> str | None:
        if end_position > self.first_gap:
            return "bytes that the disk cannot read"  # Even if the CRC matches with zeros in their place.
        if last_offset > self.indexes.max_offset:
            return f"a batch of last offset {last_offset}, too far above the segment's base offset"
        if end_position > MAX_INDEXED_POSITION:
            return f"a batch that ends at position {end_position}, above the maximum of a segment"
        return None

    def _add(self, position: int, size: int, last_offset: int, epoch: int, timestamp: int) -> None:
        if self.first_timestamp is None:
            self.first_timestamp = timestamp
        if epoch > self.last_epoch or not self.epochs:
            self.epochs.append(EpochEntry(epoch, self.next_offset))
            self.last_epoch = epoch
        if position != self.end_position or last_offset < self.next_offset:
            raise InvariantViolation(f"{self._place()}: a batch at position {position}, up to offset {last_offset}")
        self.indexes.add(position, size, last_offset, timestamp)
        self.next_offset, self.end_position = last_offset + 1, position + size

    def _place(self) -> str:
        return f"{self.indexes.offsets.path}, scanned to position {self.end_position}, offset {self.next_offset}"

    def _note_after(self, positions: range, base_offset: int, delta: int, epoch: int) -> None:
        """Use a sound batch at or after the problem as evidence that records of this log are lost.

        It need not be of this log: a record's value may contain the bytes of any batch, and no CRC covers a base
        offset. A batch of offsets that are missing here may be of this log, so it shows a loss. Its end offset and
        epoch are trusted only if the batches in between would have fitted into the bytes before it, and if most of the
        batches that follow each other there say the same.
        """
        problem = present(self.problem, "what the scan has found wrong")
        if delta < 0 or base_offset + delta > _MAX_OFFSET:
            return
        position, lost = positions.start, base_offset - self.next_offset
        most_batches = -(-(position - problem.position) // BATCH_OVERHEAD)
        is_possible = 0 <= lost <= most_batches * _MOST_RECORDS
        self.after.take(positions, base_offset, delta + 1, is_possible=is_possible)
        end_offset = self.after.end_offset
        if lost >= 0 or end_offset > 0 or self.sound_end_after is not None:
            self.sound_end_after = max(end_offset, self.next_offset)
        if is_possible:
            self.sound_epoch_after = max(self.sound_epoch_after, epoch)
        path = self.indexes.offsets.path
        invariant(problem.position <= position, "{}: {}, beyond position {}", path, problem, position)
        found = self.sound_end_after
        invariant(
            found is None or found >= self.next_offset, "{}: sound to {}, before {}", path, found, self.next_offset
        )


def scan_segment(
    file: ScannedFile,
    base_offset: int,
    last_epoch: int,
    indexes: SegmentIndexes,
    witnesses: EpochWitnesses,
    durable_end_offset: int,
) -> SegmentScan:
    """Read a whole segment. Batches that are known to be durable may come from the page cache, others from the disk.

    Args:
        file: its ``.log`` file.
        base_offset: the base offset that its first batch must have.
        last_epoch: the epoch that no batch may be below.
        indexes: empty ones, to be filled.
        witnesses: of the epochs.
        durable_end_offset: batches below it, exclusive, are known to have been synced.

    Raises:
        StorageError: the file could not be synced, or its page cache not be dropped.
    """
    scan = SegmentScan(base_offset, last_epoch, indexes, witnesses)
    readable = ReadableBytes(file)
    in_doubt = _read(readable, 0, scan, durable_end_offset)
    if in_doubt is not None:
        if file.drop_cache(in_doubt):
            scan.from_disk_offset = scan.next_offset
        _read(readable, in_doubt, scan, None)
    scan.failure = scan.failure or readable.failure
    if scan.problem is not None and readable.failure is not None:
        scan.problem = Problem(scan.problem.position, f"{scan.problem.reason}; {readable.failure}", may_be_torn=False)
    return scan


def _read(readable: ReadableBytes, start: int, scan: SegmentScan, durable_end_offset: int | None) -> int | None:
    """Scan from a position on: everything, or up to the first piece that may not be durable.

    Returns:
        Where that piece starts; None if everything was scanned.
    """
    try:
        for piece in read_columns(readable, (), start=start, data_only=False):
            scan.first_gap = readable.first_gap
            if durable_end_offset is not None and not _is_below(piece, durable_end_offset):
                return start
            if isinstance(piece, Chunk):
                scan.take(piece.batches)
                start = piece.batches.run.end
            else:
                scan.fail(_problem(piece))
    except StorageError as error:
        # Bytes that cannot be read are damage, like bytes that are wrong.
        scan.fail(Problem(scan.end_position, str(error), may_be_torn=False))
        scan.failure = without_frames(error)
    return None


def _is_below(piece: _Piece, offset: int) -> bool:
    """Whether a piece consists of batches that all end below an offset, according to their headers."""
    if not isinstance(piece, Chunk):
        return False
    last_offsets = map(operator.add, piece.batches.column("base_offset"), piece.batches.column("last_offset_delta"))
    return max(last_offsets, default=-1) < offset


def _problem(piece: LegacyBatch | TornTail | ZeroPadding | Corruption) -> Problem:
    match piece:
        case LegacyBatch():
            return Problem(piece.position, f"a batch of magic {piece.magic}", may_be_torn=False)
        case ZeroPadding():
            return Problem(piece.position, f"{piece.size_bytes} bytes of zeros", may_be_torn=True, looks_torn=True)
        case TornTail():
            return Problem(piece.position, piece.reason, may_be_torn=True, looks_torn=True)
        case Corruption():
            return Problem(piece.position, piece.reason, may_be_torn=True)
