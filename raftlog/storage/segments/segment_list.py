# SPDX-License-Identifier: Apache-2.0
"""The segments of a log, in order and without gaps; the last one is active: appends go to it.

Source: LogSegments, LocalLog.
"""

import itertools
from bisect import bisect_right
from operator import attrgetter

from raftlog.disk_work import DiskStep
from raftlog.errors import CorruptBatchError, InvariantViolation, StorageError
from raftlog.file_system import FileSystem, join
from raftlog.invariants import invariant, present
from raftlog.log.epochs import LeaderEpochs
from raftlog.log.replicated_log import LogFetchInfo
from raftlog.offsets import LogOffsetMetadata, SegmentPosition
from raftlog.records.batches.batch_run import RunFinder
from raftlog.records.columns.columns import BatchColumns
from raftlog.records.files.file_names import FileKind, FileName
from raftlog.records.limits import LOG_OVERHEAD
from raftlog.storage.segments.damaged_files import set_file_aside
from raftlog.storage.segments.indeterminate_writes import INDETERMINATE_WRITES
from raftlog.storage.segments.log_config import LogConfig
from raftlog.storage.segments.log_segment import LogSegment

_base_offset = attrgetter("base_offset")


class SegmentList:
    """Finds, reads, adds and removes the segments of a log. There is always at least one.

    Attributes:
        active: the last one.

    Args:
        file_system: where the directory is.
        directory: of the log.
        config: when segments roll, and how dense indexes are.
        segments: in order.
    """

    def __init__(self, file_system: FileSystem, directory: str, config: LogConfig, segments: list[LogSegment]) -> None:
        self._file_system = file_system
        self._directory = directory
        self._index_limits = config.index_limits
        self._segments = segments
        self.active = segments[-1]
        self._finder = RunFinder()
        self._located: LogOffsetMetadata | None = None
        """The offset located last. Most queries repeat it, because they are for the high watermark."""
        self._check_invariants()

    def _check_invariants(self) -> None:
        """Check that the segments are adjacent, and that the last one is active."""
        invariant(
            self._segments[-1:] == [self.active], "{}: {} is not its last segment", self._directory, self.active.path
        )
        for one, other in itertools.pairwise(self._segments):
            invariant(
                one.next_offset == other.base_offset,
                "{}: next offset {}, then {}",
                one.path,
                one.next_offset,
                other.path,
            )

    @property
    def end(self) -> LogOffsetMetadata:
        """The offset that the next record gets, and the place of its batch, unless the segment rolls."""
        return LogOffsetMetadata(self.active.next_offset, self.active.end)

    @property
    def end_offset(self) -> int:
        """The offset that the next record gets."""
        return self.active.next_offset

    @property
    def size_bytes(self) -> int:
        """The total size of all segments."""
        return sum(segment.size_bytes for segment in self._segments)

    def holding(self, offset: int) -> LogSegment:
        """Return the segment that holds an offset; for the log end, the active one."""
        return self._segments[max(0, bisect_right(self._segments, offset, key=_base_offset) - 1)]

    def locate(self, offset: int) -> LogOffsetMetadata:
        """Return an offset with the position of the batch that holds it.

        Raises:
            CorruptBatchError: a batch header has changed.
            StorageError: the disk failed.
        """
        if offset >= self.end_offset:
            return LogOffsetMetadata(offset, self.active.end)
        if self._located is None or self._located.offset != offset:
            segment = self.holding(offset)
            position, head = segment.locate(offset)
            if head is None or position >= segment.size_bytes:
                raise InvariantViolation(f"{segment.path}: offset {offset} at {position} of {segment.size_bytes}")
            self._located = LogOffsetMetadata(offset, SegmentPosition(segment.base_offset, position))
        return self._located

    def _position_of(self, offset: int) -> int:
        return present(self.locate(offset).segment_position, "the position of an offset").position

    def batch_start(self, offset: int) -> LogOffsetMetadata:
        """Return the base offset and the place of the batch that holds an offset; for one after all, the log end.

        Raises:
            CorruptBatchError, StorageError: as for ``locate``.
        """
        segment = self.holding(offset)
        position, head = segment.locate(offset)
        if head is None:
            return self.end
        return LogOffsetMetadata(head.base_offset, SegmentPosition(segment.base_offset, position))

    def read(
        self,
        start_offset: int,
        limit: int,
        max_size_bytes: int,
        epochs: LeaderEpochs,
        limit_place: SegmentPosition | None = None,
    ) -> LogFetchInfo:
        """Read and check batches of one segment, starting with the one that holds an offset.

        Args:
            start_offset: inclusive; below the log end.
            limit: offset, exclusive; the batch that holds it, and all after it, are left out.
            max_size_bytes: limit of the result. A larger first batch is returned whole, alone.
            epochs: the epochs that the batches must have.
            limit_place: the place of the limit, if its batch may be deleted already; None to look it up.

        Raises:
            CorruptBatchError: bytes were damaged since the log was opened (bit rot); they are not served.
            StorageError: the disk failed.
        """
        segment = self.holding(start_offset)
        position, head = segment.locate(start_offset)
        if limit >= segment.next_offset:
            stop = segment.size_bytes
        else:
            stop = self._position_of(limit) if limit_place is None else limit_place.position
        if head is None or position >= stop:
            return LogFetchInfo(memoryview(b""), self.locate(limit))
        size = min(stop - position, max(max_size_bytes, head.next_position - position))
        records = segment.read(position, size)
        run, _ = self._finder.find(records, position)
        end = 0 if run is None else run.end - position
        is_whole = end == len(records) or (position + size < stop and _is_cut_off(records[end:]))
        if run is None or not is_whole:
            raise CorruptBatchError("a batch that has changed", "batch-crc", segment.path, position + end)
        if not _are_in_order(BatchColumns(run), head.base_offset, start_offset, epochs):
            raise CorruptBatchError("batches whose offsets or epochs have changed", None, segment.path, position)
        start = LogOffsetMetadata(head.base_offset, SegmentPosition(segment.base_offset, position))
        return LogFetchInfo(records, start)

    def rolling(self) -> DiskStep:
        """Return the step that ends the active segment, which must be synced before, and begins the next one.

        The indexes are complete and the new file's name is durable before anything is written to it. So damage in a
        segment that another one follows cannot be a torn tail. Nothing may be appended until the step is done.

        Its disk part raises:
            OutOfSpaceError: the log is as it was.
            StorageError: the new file may exist or not.
        """
        active, base_offset = self.active, self.end_offset
        active.end_indexes()

        def make_next() -> LogSegment:
            active.store_indexes()
            segment = self._new_segment(base_offset)
            try:
                with INDETERMINATE_WRITES:
                    self._file_system.sync_directory(self._directory)
            except StorageError:
                segment.close()
                raise
            return segment

        def take_next(segment: LogSegment) -> None:
            invariant(active is self.active, "{} is to be sealed, active is {}", active.path, self.active.path)
            invariant(segment.size_bytes == 0, "{} begins with {} bytes", segment.path, segment.size_bytes)
            self._segments.append(segment)
            self.active = segment
            self._check_invariants()

        return DiskStep(make_next, take_next, (*active.paths, self._path(base_offset), self._directory))

    def truncating(self, start: LogOffsetMetadata) -> DiskStep:
        """Return the step that drops all batches from one on. It does not read them, since they may be damaged.

        Until the step is done, nothing may be appended, and nothing read from that batch on.

        Args:
            start: of the first batch to drop, as returned by ``batch_start``.

        Its disk part raises:
            StorageError: part of it may be done.
        """
        place = present(start.segment_position, "where a truncation cuts")
        count = bisect_right(self._segments, place.base_offset, key=_base_offset)
        last, doomed = self._segments[count - 1], self._segments[count:]

        def cut() -> None:
            with INDETERMINATE_WRITES:
                # Backwards, each removal durable before the next, so that a crash leaves a log without a gap.
                for segment in reversed(doomed):
                    segment.remove_files()
                    self._file_system.sync_directory(self._directory)
                last.cut_file(place.position)

        def forget(_: object) -> None:
            end_offset = self.end_offset
            invariant(
                start.offset <= end_offset, "{}: truncated at {}, log end {}", last.path, start.offset, end_offset
            )
            invariant(self._segments[count:] == doomed, "{}: the segments cut are not the segments dropped", last.path)
            self._located = None
            del self._segments[count:]
            self.active = last
            for segment in doomed:
                segment.close()
            last.forget_after(place.position, start.offset)
            self._check_invariants()

        paths = [path for segment in doomed for path in segment.paths]
        return DiskStep(cut, forget, (*paths, self._directory, *last.paths))

    def removing_below(self, offset: int, later: int | None = None) -> DiskStep:
        """Return the step that removes the segments that lie wholly below an offset; not durable yet.

        Args:
            offset: the first one to keep.
            later: base offset of a segment that will follow the present ones by then. If None, the active segment is
                kept, whatever it holds.

        Its disk part raises:
            StorageError: part of it may be done.
        """
        bases = [segment.base_offset for segment in self._segments[1:]]
        count = bisect_right([*bases, later] if later is not None else bases, offset)
        doomed = self._segments[:count]

        def remove() -> None:
            with INDETERMINATE_WRITES:
                for segment in doomed:
                    segment.remove_files()

        def forget(_: object) -> None:
            invariant(
                self._segments[:count] == doomed,
                "{}: the segments removed are not the segments dropped",
                self._directory,
            )
            for segment in doomed:
                is_below = segment.next_offset <= offset
                invariant(is_below, "{}: next offset {}, deleted below {}", segment.path, segment.next_offset, offset)
            del self._segments[:count]
            for segment in doomed:
                segment.close()
            self._check_invariants()

        return DiskStep(remove, forget, tuple(path for segment in doomed for path in segment.paths))

    def steps_of_restart(
        self, offset: int, damaged_segments: tuple[LogSegment, ...], *, active_is_damaged: bool
    ) -> DiskStep:
        """Return the step that removes all segments, and begins one at an offset.

        Until the step is done, nothing may be appended. Reads may continue, from files that are open although their
        names may be removed; but if damage is set aside, nothing may be read either.

        Args:
            offset: base offset of the new, only segment.
            damaged_segments: further segments, to be set aside.
            active_is_damaged: whether to set the active segment aside, too.

        Its disk part raises:
            StorageError: part of it may be done.
        """
        doomed = (*self._segments, *damaged_segments)
        aside = (self.active, *damaged_segments) if active_is_damaged else damaged_segments

        def replace() -> LogSegment:
            with INDETERMINATE_WRITES:
                # Backwards, each removal durable before the next, so that a crash leaves a log without a gap.
                for segment in reversed(doomed):
                    if segment in aside:
                        set_file_aside(self._file_system, segment.path)
                        segment.remove_indexes()
                    else:
                        segment.remove_files()
                    self._file_system.sync_directory(self._directory)
                new = self._new_segment(offset)
                self._file_system.sync_directory(self._directory)
            return new

        def take(new: LogSegment) -> None:
            invariant(new.base_offset == offset, "{}: begins at {}", new.path, offset)
            invariant(new.size_bytes == 0, "{} begins with {} bytes", new.path, new.size_bytes)
            self._located = None
            for segment in doomed:
                segment.close()
            self._segments, self.active = [new], new
            self._check_invariants()

        paths = [path for segment in doomed for path in segment.paths]
        return DiskStep(replace, take, (*paths, self._path(offset), self._directory))

    def close(self) -> None:
        """Close the files. Closing twice is harmless."""
        for segment in self._segments:
            segment.close()

    def _path(self, base_offset: int) -> str:
        return join(self._directory, str(FileName(FileKind.LOG, base_offset=base_offset)))

    def _new_segment(self, base_offset: int) -> LogSegment:
        return LogSegment(self._file_system, self._directory, base_offset, self._index_limits)


def _are_in_order(batches: BatchColumns, base_offset: int, start_offset: int, epochs: LeaderEpochs) -> bool:
    """Whether batches have the offsets and epochs that the log knows; no CRC covers these fields.

    For the first batch, the epoch at ``start_offset`` is compared: the log may start inside that batch, and knows no
    epoch below its start.
    """
    bases = batches.column("base_offset").tolist()
    deltas = batches.column("last_offset_delta").tolist()
    ends = [base + delta + 1 for base, delta in zip(bases, deltas, strict=True)]
    if bases != [base_offset, *ends[:-1]]:
        return False
    found = batches.column("partition_leader_epoch").tolist()
    starts = [start_offset, *bases[1:]]
    first, last = epochs.epoch_for_offset(starts[0]), epochs.epoch_for_offset(starts[-1])
    if first == last:
        return bool(found == [first] * len(found))
    return bool(found == [epochs.epoch_for_offset(start) for start in starts])


def _is_cut_off(data: memoryview) -> bool:
    """Whether the bytes at the end of a read are the beginning of a batch that is longer."""
    size = int.from_bytes(data[8:LOG_OVERHEAD], "big") + LOG_OVERHEAD
    return len(data) < LOG_OVERHEAD or size > len(data)
