# SPDX-License-Identifier: Apache-2.0
"""Reading all of a segment at a start: every CRC, the order of offsets and epochs, the structure of control batches.

A scan goes on behind the first thing that is wrong, to say whether anything sound is there: that is what tells a write
that was cut from damage.

Source: LogSegment#recover. Differs: Kafka stops at the first bad batch, and does not look at order and structure.
"""

import operator
import sys
from typing import Final, Protocol

import attrs

from raftlog.errors import InvariantViolation, StorageError
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
"""Of a batch that a raft leader writes, however well they compress."""
_Piece = Chunk | LegacyBatch | TornTail | ZeroPadding | Corruption


class ScannedFile(ByteSource, Protocol):
    """What a scan needs of a file."""

    def drop_cache(self, position: int) -> bool:
        """Have what is read from a position on come from the disk, as ``OpenFile.drop_cache``."""
        ...


@attrs.frozen
class Problem:
    """The first thing in a segment that is not as it must be.

    Attributes:
        position: byte position where the sound part of the segment ends.
        reason: what is wrong there.
        may_be_torn: whether a write that was cut can leave such bytes; out of order batches, sound ones of magic 0
            and 1, and bytes that the disk does not give back cannot be that.
        looks_torn: whether they look like that by themselves (DECISIONS.md 7): the end of the file, or zeros from a
            sector on, stand for the rest of a batch. A complete batch whose CRC fails does not.
    """

    position: int
    reason: str
    may_be_torn: bool
    looks_torn: bool = False


@attrs.define
class SegmentScan:
    """What a segment holds.

    Attributes:
        next_offset: after the last sound batch; at first where the segment must start.
        last_epoch: of the last sound batch; at first what the first one may not go below.
        indexes: of the sound batches.
        witnesses: of the epochs.
        end_position: where the sound batches end.
        epochs: each epoch that starts in this segment, with the base offset of its first batch.
        first_timestamp: the greatest of the first batch, in ms; None where there is none.
        problem: what ended the sound part; None where all is sound.
        sound_end_behind: the greatest end offset (exclusive) of batches behind the problem that check and could well
            be of this log; None where there are none. At least ``next_offset``.
        sound_epoch_behind: the greatest epoch of those.
        first_gap: byte position from which on some bytes could not be read.
        from_disk_offset: from which on, inclusive, whatever there is was read from the disk; behind all where that was
            not to be had.
    """

    next_offset: int
    last_epoch: int
    indexes: SegmentIndexes
    witnesses: EpochWitnesses = attrs.field(factory=EpochWitnesses)
    end_position: int = 0
    epochs: list[EpochEntry] = attrs.field(factory=list)
    first_timestamp: int | None = None
    problem: Problem | None = None
    sound_end_behind: int | None = None
    sound_epoch_behind: int = -1
    first_gap: int = sys.maxsize
    from_disk_offset: int = sys.maxsize

    def take(self, batches: BatchColumns) -> None:
        """Take note of batches whose CRCs hold, which stand behind what was taken before."""
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
            self._note_behind(position, base_offset, delta, epoch)

    def fail(self, problem: Problem) -> None:
        """Take note of what is no batch, unless something was wrong before."""
        if self.problem is None:
            self.problem = problem

    def _disorder(self, base_offset: int, last_offset: int, count: int, epoch: int) -> str | None:
        if base_offset != self.next_offset:
            return f"a batch of base offset {base_offset}, where {self.next_offset} must follow"
        if not base_offset <= last_offset <= _MAX_OFFSET or last_offset - base_offset + 1 != count:
            return f"a batch of {count} records from offset {base_offset} to {last_offset}"
        if epoch < self.last_epoch:
            return f"a batch of epoch {epoch} after epoch {self.last_epoch}"
        if self.witnesses.contradict(base_offset, epoch, self.last_epoch):
            return f"a batch of epoch {epoch}, where all that is known of epochs has another"
        return None

    def _misplacement(self, end_position: int, last_offset: int) -> str | None:
        if end_position > self.first_gap:
            return "bytes that the disk does not give back"  # Though those that stand for them check.
        if last_offset > self.indexes.max_offset:
            return f"a batch of last offset {last_offset}, which is too far from the first of the segment"
        if end_position > MAX_INDEXED_POSITION:
            return f"a batch that ends at position {end_position}, which is too far for a segment"
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

    def _note_behind(self, position: int, base_offset: int, delta: int, epoch: int) -> None:
        """Judge whether a batch at or behind the problem can be of this log, with the offsets that it names.

        A record may hold the bytes of a batch of any offsets, and no CRC covers a base offset. One that names offsets
        that are gone from here may be of this log, and shows that something is lost; where it ends, and in which epoch,
        is believed only if the batches between would have had room for their records.
        """
        problem = present(self.problem, "what the scan has found wrong")
        lost = base_offset - self.next_offset
        if delta < 0 or lost < 0 or base_offset + delta > _MAX_OFFSET:
            return
        self.sound_end_behind = max(self.sound_end_behind or 0, self.next_offset)
        most_batches = -(-(position - problem.position) // BATCH_OVERHEAD)
        if lost <= most_batches * _MOST_RECORDS:
            self.sound_end_behind = max(self.sound_end_behind, base_offset + delta + 1)
            self.sound_epoch_behind = max(self.sound_epoch_behind, epoch)
        path = self.indexes.offsets.path
        invariant(problem.position <= position, "{}: {} is after position {}", path, problem, position)
        found = self.sound_end_behind
        invariant(found >= self.next_offset, "{}: sound to {} beyond {}", path, found, self.next_offset)


def scan_segment(
    file: ScannedFile,
    base_offset: int,
    last_epoch: int,
    indexes: SegmentIndexes,
    witnesses: EpochWitnesses,
    durable_end_offset: int,
) -> SegmentScan:
    """Read all of a segment: from memory what a sync has spoken for, and from the disk what follows.

    Args:
        file: its ``.log`` file.
        base_offset: that its first batch must have.
        last_epoch: below which its epochs must not go.
        indexes: empty ones, to be filled.
        witnesses: of the epochs.
        durable_end_offset: below which, exclusive, a sync has spoken for what there is.

    Raises:
        StorageError: the file could not be synced, or what memory has of it not let go of.
    """
    scan = SegmentScan(base_offset, last_epoch, indexes, witnesses)
    readable = ReadableBytes(file)
    in_doubt = _read(readable, 0, scan, durable_end_offset)
    if in_doubt is not None:
        if file.drop_cache(in_doubt):
            scan.from_disk_offset = scan.next_offset
        _read(readable, in_doubt, scan, None)
    if scan.problem is not None and readable.failure is not None:
        scan.problem = Problem(scan.problem.position, f"{scan.problem.reason}; {readable.failure}", may_be_torn=False)
    return scan


def _read(readable: ReadableBytes, start: int, scan: SegmentScan, durable_end_offset: int | None) -> int | None:
    """Take what is there from a position on: all of it, or up to the first piece that may not be durable.

    Returns:
        Where that piece starts; None where all was taken.
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
        # What the disk does not give back is as bad as what it gives back wrong.
        scan.fail(Problem(scan.end_position, str(error), may_be_torn=False))
    return None


def _is_below(piece: _Piece, offset: int) -> bool:
    """Whether a piece is batches, and none of them claims to reach an offset."""
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
