# SPDX-License-Identifier: Apache-2.0
"""One segment of a log: a ``.log`` file of contiguous batches, and the indexes beside it.

The file may be longer than the segment: bytes that recovery has found to be damaged remain after ``size_bytes`` until
they are set aside.

Source: LogSegment.
"""

import contextlib
from typing import Final

import attrs

from raftlog.errors import CorruptBatchError, InvariantViolation, OutOfSpaceError, StorageError
from raftlog.file_system import FileSystem, OpenFile, join, remove_if_there
from raftlog.invariants import invariant
from raftlog.log.append_validation import CheckedBatch
from raftlog.offsets import SegmentPosition
from raftlog.records.batches.window import Window
from raftlog.records.files.file_names import FileKind, FileName
from raftlog.records.limits import BATCH_OVERHEAD
from raftlog.storage.reading.index_seek import BatchHead, head_at, read_head
from raftlog.storage.segments.epoch_witnesses import EpochWitnesses
from raftlog.storage.segments.indeterminate_writes import INDETERMINATE_WRITES
from raftlog.storage.segments.index_file import StoredIndex
from raftlog.storage.segments.segment_indexes import MAX_INDEXED_POSITION, IndexLimits, SegmentIndexes
from raftlog.storage.segments.segment_scan import SegmentScan, scan_segment

_SEEK_SIZE: Final = 8 * 1024
"""How much is read at once to find a batch. With the usual indexes, one read suffices."""
_LEAST_RESERVED: Final = 4 * 1024 * 1024
_MOST_RESERVED: Final = 32 * 1024 * 1024
"""Limits of the space preallocated after the batches, in bytes. Preallocation avoids fragmentation, and makes syncs
cheaper, because they have less metadata to write."""


@attrs.frozen
class RollLimits:
    """Limits above which a new segment is begun.

    Attributes:
        size_bytes: maximum size of a segment, unless one append is larger (``metadata.log.segment.bytes``).
        age_ms: maximum age, from the timestamp of its first batch to that of the next (``metadata.log.segment.ms``).
    """

    size_bytes: int = 1024 * 1024 * 1024
    age_ms: int = 7 * 24 * 3600 * 1000


class LogSegment:
    """A segment that is open for reads and writes.

    Attributes:
        base_offset: the first offset, inclusive, that it holds or will hold.
        path: of its ``.log`` file.
        next_offset: the offset after its last batch.
        size_bytes: of its batches.
        file: its ``.log`` file; it is longer than the segment if damaged bytes follow.
    """

    def __init__(self, file_system: FileSystem, directory: str, base_offset: int, index_limits: IndexLimits) -> None:
        self.base_offset: Final = base_offset
        self.path: Final = join(directory, str(FileName(FileKind.LOG, base_offset=base_offset)))
        self.next_offset = base_offset
        self.size_bytes = 0
        self._file_system = file_system
        self._indexes = SegmentIndexes(file_system, directory, base_offset, index_limits)
        self._first_timestamp: int | None = None
        self._found: tuple[int, BatchHead] | None = None
        """The batch located last: the next search is often for the same one, or the one after it."""
        self.file: OpenFile = file_system.open(self.path, create=True)
        self._reserved_bytes = 0

    def scan(self, last_epoch: int, witnesses: EpochWitnesses, durable_end_offset: int) -> SegmentScan:
        """Read the whole file, and make its sound batches those of the segment. Call it once, before anything else."""
        scan = scan_segment(self.file, self.base_offset, last_epoch, self._indexes, witnesses, durable_end_offset)
        invariant(self.size_bytes == 0, "{} is scanned twice, {} bytes are known", self.path, self.size_bytes)
        self.next_offset, self.size_bytes = scan.next_offset, scan.end_position
        self._first_timestamp = scan.first_timestamp
        self._check_invariants()
        return scan

    def _check_invariants(self) -> None:
        """Check the segment's pointers against each other: it is called before or after each move of one."""
        base_offset, next_offset, size_bytes = self.base_offset, self.next_offset, self.size_bytes
        is_empty = size_bytes == 0 and next_offset == base_offset
        has_batches = size_bytes >= BATCH_OVERHEAD and next_offset > base_offset
        invariant(
            is_empty or has_batches, "{}: offsets {}..{} in {} bytes", self.path, base_offset, next_offset, size_bytes
        )
        reserved = self._reserved_bytes
        is_reserved = reserved == 0 or reserved >= size_bytes
        invariant(is_reserved, "{}: {} bytes preallocated, {} written", self.path, reserved, size_bytes)
        entry, last_offset = self._indexes.offsets.last_entry, self._indexes.offsets.last_offset
        if entry is not None and last_offset is not None:
            place = self.path, last_offset, entry.position
            invariant(entry.position < size_bytes, "{}: index entry ({}, {}) beyond {} bytes", *place, size_bytes)
            invariant(last_offset < next_offset, "{}: index entry ({}, {}) beyond offset {}", *place, next_offset)

    @property
    def end(self) -> SegmentPosition:
        """The place of the next batch."""
        return SegmentPosition(self.base_offset, self.size_bytes)

    def has_room_for(self, size_bytes: int, next_offset: int, max_timestamp: int, roll: RollLimits) -> bool:
        """Whether an append may go to this segment, by its size, the offset after it and its greatest timestamp.

        Source: LogSegment#shouldRoll. Differs: age is ignored if the first batch has no timestamp.
        """
        held, indexes = self.size_bytes, self._indexes
        if held == 0:
            return True
        end = held + size_bytes
        if end > roll.size_bytes or end > MAX_INDEXED_POSITION or indexes.is_full:
            return False
        if next_offset - 1 > indexes.max_offset:
            return False
        first = self._first_timestamp
        return first is None or first < 0 or max_timestamp - first <= roll.age_ms

    def append(self, data: bytes | memoryview, batches: list[CheckedBatch], next_offset: int) -> None:
        """Write batches at the end, in one write.

        Args:
            data: the batches.
            batches: their checked headers.
            next_offset: after the last one.

        Raises:
            OutOfSpaceError: the bytes did not fit; the segment is as it was.
            StorageError: what the file holds after the segment's end is unknown.
        """
        position, size_bytes = self.size_bytes, len(data)
        end = position + size_bytes
        if end > self._reserved_bytes:
            self._reserve(size_bytes)
        try:
            self.file.write_at(position, data)
        except OutOfSpaceError as error:
            self._cut_back(error)
            raise
        if self._first_timestamp is None:
            self._first_timestamp = batches[0].max_timestamp
        last_offset = -1
        for _, _, last_offset, max_timestamp, batch_size in batches:
            self._indexes.add(position, batch_size, last_offset, max_timestamp)
            position += batch_size
        if position != end or self.next_offset > last_offset or last_offset + 1 != next_offset:
            raise InvariantViolation(f"{self.path}: {batches[-1]} ends at {position}, not at {end} and {next_offset}")
        self.size_bytes, self.next_offset = end, next_offset

    def _reserve(self, size_bytes: int) -> None:
        """Preallocate space for an append, plus the segment's size or a thousand such appends, within limits."""
        self._check_invariants()
        ahead = min(max(self.size_bytes, 1000 * size_bytes, _LEAST_RESERVED), _MOST_RESERVED)
        self._reserved_bytes = self.size_bytes + size_bytes + ahead
        self.file.reserve(self._reserved_bytes)

    def _cut_back(self, cause: OutOfSpaceError) -> None:
        """Remove what a failed write has left: a partial batch must not precede a sound one.

        Whole batches may be among it, so the removal is made durable: after a crash, records whose append has failed
        must not be there.
        """
        try:
            if self.file.size() > self.size_bytes:
                self.file.truncate(self.size_bytes)
                self._reserved_bytes = 0  # Truncation releases the preallocated space.
                with INDETERMINATE_WRITES:
                    self.file.sync()
        except StorageError as error:
            raise error from cause
        self._check_invariants()

    def locate(self, offset: int) -> tuple[int, BatchHead | None]:
        """Find the batch that holds an offset, which is not below the segment's first.

        Returns:
            The position of its start, and its header; the segment's end and None for an offset after all batches.

        Raises:
            CorruptBatchError: a header on the way there has changed.
            StorageError: the disk failed.
        """
        if offset >= self.next_offset:
            return self.size_bytes, None
        position, next_offset = self._indexes.offsets.position_before(offset), None
        found = self._found
        if found is not None and found[1].base_offset <= offset and found[0] >= position:
            position, next_offset = found[0], found[1].base_offset
        if not 0 <= position < self.size_bytes or offset < self.base_offset:
            raise InvariantViolation(f"{self.path}: position {position} of {self.size_bytes} for offset {offset}")
        ahead = Window(self.file, self.size_bytes, _SEEK_SIZE)
        while True:
            head = read_head(ahead.view(position, BATCH_OVERHEAD), position)
            is_next = head is not None and next_offset in (None, head.base_offset) and head.base_offset <= offset
            if head is None or not is_next or head.next_position > self.size_bytes:
                raise CorruptBatchError("a batch header that has changed", None, self.path, position)
            if head.last_offset >= offset:
                self._found = position, head
                return position, head
            position, next_offset = head.next_position, head.last_offset + 1

    def read(self, position: int, size: int) -> memoryview:
        """Return bytes of the segment.

        Raises:
            CorruptBatchError: the file has become shorter.
            StorageError: the disk failed.
        """
        end = position + size
        if position < 0 or end > self.size_bytes:
            raise InvariantViolation(f"{self.path}: a read of {position} to {end}, of {self.size_bytes} bytes")
        data = self.file.read_at(position, size)
        if len(data) > size:
            raise InvariantViolation(f"{self.path}: {len(data)} bytes from position {position}, of {size} asked for")
        if len(data) < size:
            raise CorruptBatchError(f"{size} bytes, {len(data)} of them there", "tail-torn", self.path, position)
        return data

    def cut_file(self, position: int) -> None:
        """Truncate the file to a length, durably: the disk part of a truncation, which may run on any thread.

        Raises:
            StorageError: the file may be truncated or not.
        """
        self._indexes.drop_files()
        self.file.truncate(position)
        self.file.sync()

    def forget_after(self, position: int, next_offset: int) -> None:
        """Drop all batches from one on, which the file no longer has: the memory part of a truncation.

        Args:
            position: of the start of the first batch to drop, or the segment's end.
            next_offset: its base offset, or the segment's next offset.

        Raises:
            StorageError: the remaining batches could not be read.
        """
        invariant(0 <= position <= self.size_bytes, "{}: truncated at {} of {}", self.path, position, self.size_bytes)
        invariant(
            self.base_offset <= next_offset <= self.next_offset,
            "{}: truncated at offset {}, not in {}..{}",
            self.path,
            next_offset,
            self.base_offset,
            self.next_offset,
        )
        self._reserved_bytes = 0  # Truncation releases the preallocated space.
        self.size_bytes, self.next_offset = position, next_offset
        self._rewind_indexes()
        self._check_invariants()

    def cut_damage(self) -> None:
        """Truncate the file to the segment's size; durable on return.

        Raises:
            StorageError: the file may be truncated or not.
        """
        self.file.truncate(self.size_bytes)
        self.file.sync()

    def take_file(self, path: str) -> None:
        """Replace the segment's file by another that holds the sound part; durable once the directory is synced.

        Raises:
            StorageError: either file may have the segment's name.
        """
        self.file.close()
        self._file_system.rename(path, self.path)
        self.file = self._file_system.open(self.path)

    def _rewind_indexes(self) -> None:
        self._found = None
        position = self._indexes.rewind(self.size_bytes)
        invariant(
            0 <= position <= self.size_bytes,
            "{}: indexes end at {} of {}",
            self.path,
            position,
            self.size_bytes,
        )
        if self.size_bytes == 0:
            self._first_timestamp = None
        last_indexed, expected = self._indexes.offsets.last_offset, self.base_offset
        while position < self.size_bytes:
            head = head_at(self.file, position)
            if head is not None and last_indexed is not None and head.last_offset == last_indexed:
                expected = head.base_offset  # Only of the batch that the last entry names.
            if head is None or head.base_offset != expected or not self._holds(head):
                raise StorageError(self.path, f"read at position {position}", "a batch header has changed")
            last_indexed, expected = None, head.last_offset + 1
            size_bytes = head.next_position - position
            self._indexes.add(position, size_bytes, head.last_offset, head.max_timestamp)
            position = head.next_position
        self._check_invariants()

    def _holds(self, head: BatchHead) -> bool:
        return head.base_offset <= head.last_offset < self.next_offset and head.next_position <= self.size_bytes

    def settle_indexes(self, *, is_last: bool) -> tuple[tuple[str, StoredIndex], ...]:
        """Rewrite the index files that differ from what the scan has found; return their paths, and how they differed.

        Args:
            is_last: whether the log continues in this segment. The files then still get a last time entry, as for a
                sealed segment, but it is dropped from memory.

        Raises:
            OutOfSpaceError, StorageError: a file could not be written.
        """
        time_entries = len(self._indexes.times)
        self._indexes.seal()
        written = self._indexes.settle()
        if is_last:
            self._indexes.times.keep_first(time_entries)
        return written

    def end_indexes(self) -> None:
        """Add the last time entry of a segment that takes no more batches; in memory only."""
        self._indexes.seal()

    def store_indexes(self) -> None:
        """Write the indexes, durably except for their names, and release preallocated space; may run on any thread.

        Raises:
            OutOfSpaceError, StorageError: a file could not be written.
        """
        if self._reserved_bytes > self.size_bytes:
            self.file.reserve(self.size_bytes)
        self._indexes.store()

    def seal(self) -> None:
        """Complete the indexes and write them: the segment takes no more batches.

        Raises:
            OutOfSpaceError, StorageError: as for ``store_indexes``.
        """
        self.end_indexes()
        self.store_indexes()

    def remove(self) -> None:
        """Close the segment and remove all its files. Readers that have them open can continue.

        Raises:
            StorageError: a file is there and cannot be removed.
        """
        self.close()
        self.remove_files()

    def remove_files(self) -> None:
        """Remove all files of the segment, which stays open for reads; may run on any thread.

        Raises:
            StorageError: a file is there and cannot be removed.
        """
        self.remove_indexes()
        remove_if_there(self._file_system, self.path)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of all its files."""
        return self.path, self._indexes.offsets.path, self._indexes.times.path

    def remove_indexes(self) -> None:
        """Remove the index files.

        Raises:
            StorageError: a file is there and cannot be removed.
        """
        for index in (self._indexes.offsets, self._indexes.times):
            remove_if_there(self._file_system, index.path)

    def close(self) -> None:
        """Close the file. Closing twice is harmless."""
        with contextlib.suppress(StorageError):
            self.file.close()
