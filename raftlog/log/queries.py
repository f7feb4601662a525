# SPDX-License-Identifier: Apache-2.0
"""Queries answered from a log's state, without reading records: the same code for logs in files and in memory.

One piece of work for the disk is under way at a time. Meanwhile queries are answered from memory, and calls that do not
conflict with it continue. Calls that conflict raise ``WorkUnderWayError`` rather than wait.

Source: KafkaRaftLog, ReplicatedLog.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from raftlog.disk_work import DiskResult, DiskStep, DiskWork, nothing
from raftlog.errors import StorageError, WorkUnderWayError
from raftlog.invariants import invariant
from raftlog.log.decisions import (
    clamped_high_watermark,
    end_offset_for_epoch,
    epoch_at_offset,
    validate_offset_and_epoch,
)
from raftlog.log.epochs import LeaderEpochs
from raftlog.log.iteration import iterate_batches, iterate_records
from raftlog.log.replicated_log import Isolation, ReplicatedLog
from raftlog.log.state import LogState, SnapshotIds, last_fetched_epoch
from raftlog.offsets import LogOffsetMetadata, OffsetAndEpoch, ValidOffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.record import Record

T = TypeVar("T")


class Cut(NamedTuple):
    """What a truncation leaves.

    Attributes:
        end: of the log after the truncation.
        epochs: of the log after the truncation.
    """

    end: LogOffsetMetadata
    epochs: LeaderEpochs


class UnderWay(NamedTuple):
    """Work that was prepared, and not finished yet.

    Attributes:
        work: the work itself.
        holds_appends: whether nothing may be appended until it is finished.
        holds_reads: whether nothing may be read until it is finished.
        cut: what a truncation will leave; None if nothing is truncated. The log answers as if it were done, and refuses
            reads from the new end on: the batches there may be deleted already.
        new_start: offset at which the log will restart when it is finished; None if it keeps its start. Until then
            the high watermark does not pass this offset.
    """

    work: DiskWork[Any]
    holds_appends: bool = True
    holds_reads: bool = False
    cut: Cut | None = None
    new_start: int | None = None


class LogQueries(ReplicatedLog):
    """A ``ReplicatedLog`` that answers from its ``state``. Subclasses keep the records, and maintain the state."""

    _start_offset: int
    _high_watermark: int
    _flushed_offset: int
    _epochs: LeaderEpochs
    _snapshot_ids: SnapshotIds
    _generation: int
    _under_way: UnderWay | None = None
    _directory: str = "memory"
    """What messages call the log by."""

    @property
    def generation(self) -> int:
        """How often this log was truncated or opened."""
        return self._generation

    def _begin(
        self,
        steps: Sequence[DiskStep],
        result: Callable[[], T],
        *,
        holds_appends: bool = True,
        holds_reads: bool = False,
        cut: Cut | None = None,
        new_start: int | None = None,
    ) -> DiskWork[DiskResult[T]]:
        """Return work that is under way until it is finished; work without steps is finished at once."""
        if not steps:
            return self._finished(result())
        work = DiskWork(steps, lambda: self._dated(result()), on_end=self._end, on_failure=self._note_failure)
        self._under_way = UnderWay(work, holds_appends, holds_reads, cut, new_start)
        return work

    def _end(self) -> None:
        self._under_way = None

    def _note_failure(self, error: BaseException) -> None:
        """React to a failure of work; overridden by logs whose work can fail."""

    def _finished(self, value: T) -> DiskWork[DiskResult[T]]:
        return DiskWork.done(self._dated(value))

    def _dated(self, value: T) -> DiskResult[T]:
        return DiskResult(value, self.last_fetched_epoch, self._generation)

    def _refuse_while_under_way(self) -> None:
        if self._under_way is not None:
            paths = ", ".join(self._under_way.work.paths) or "this log"
            raise WorkUnderWayError(f"work on {paths} must be finished first")

    def _refuse_appends_under_way(self) -> None:
        if self._under_way is not None and self._under_way.holds_appends:
            self._refuse_while_under_way()

    def _readable_end(self, start_offset: int, limit: int) -> int:
        """Return where a read must end, exclusive, while work is under way.

        Raises:
            WorkUnderWayError: the records asked for may be deleted already.
        """
        if self._under_way is None:
            return limit
        cut = self._under_way.cut
        if self._under_way.holds_reads or (cut is not None and start_offset >= cut.end.offset):
            self._refuse_while_under_way()
        return limit if cut is None else min(limit, cut.end.offset)

    def _end_work(self, path: str) -> None:
        """Cancel the work that is under way, or finish it if it was run, because the log is about to be closed.

        Raises:
            WorkUnderWayError: the work is being run now. Nothing has changed.
        """
        if self._under_way is not None:
            self._under_way.work.end(StorageError(path, "use", "the log is closed"))

    def _step(self, disk: Callable[[], object], memory: Callable[[Any], object] | None, *paths: str) -> DiskStep:
        return DiskStep(disk, memory or nothing, paths, self._note_failure)

    @abstractmethod
    def _written_end(self) -> LogOffsetMetadata:
        """Return the end of what is written, including what is about to be truncated."""

    @property
    def _cut(self) -> Cut | None:
        return None if self._under_way is None else self._under_way.cut

    @property
    def end_offset(self) -> LogOffsetMetadata:
        """The offset that the next record gets."""
        cut = self._cut
        return self._written_end() if cut is None else cut.end

    @property
    def state(self) -> LogState:
        """The current offsets, epochs and snapshot ids, as one immutable value."""
        cut = self._cut or Cut(self._written_end(), self._epochs)
        return LogState(self._start_offset, cut.end.offset, self._high_watermark, cut.epochs, self._snapshot_ids)

    @property
    def last_fetched_epoch(self) -> int:
        """The epoch of the last batch, or of the snapshot that the log starts from; 0 if there is neither."""
        cut = self._cut
        epochs = self._epochs if cut is None else cut.epochs
        latest = epochs.latest_epoch
        if latest is not None:
            return latest  # The fast path: every append asks for this.
        return last_fetched_epoch(epochs, self._snapshot_ids, self._start_offset)

    def update_high_watermark(self, offset: int) -> None:
        """Raise the high watermark: records below it are committed."""
        state = self.state
        high_watermark = clamped_high_watermark(state, offset)
        if self._under_way is not None and self._under_way.new_start is not None:
            high_watermark = max(self._high_watermark, min(high_watermark, self._under_way.new_start))
        start, before, name = self._start_offset, self._high_watermark, self._directory
        is_inside = start <= high_watermark <= state.end_offset
        invariant(is_inside, "{}: high watermark {}, not in {}..{}", name, high_watermark, start, state.end_offset)
        invariant(before <= high_watermark, "{}: high watermark moves back to {} from {}", name, high_watermark, before)
        self._high_watermark = high_watermark

    def _check_pointer_invariants(self) -> None:
        """Check the log's pointers against each other; it is called after each move of one but an append."""
        start, end, name = self._start_offset, self._written_end().offset, self._directory
        high_watermark, flushed = self._high_watermark, self._flushed_offset
        invariant(
            start <= high_watermark <= end, "{}: high watermark {}, not in {}..{}", name, high_watermark, start, end
        )
        invariant(start <= flushed <= end, "{}: flushed offset {}, not in {}..{}", name, flushed, start, end)
        entries = self._epochs.entries
        if entries:
            first, last = entries[0].start_offset, entries[-1].start_offset
            invariant(
                start <= first <= last <= end,
                "{}: epochs start at {}..{}, not in {}..{}",
                name,
                first,
                last,
                start,
                end,
            )

    def batches(
        self, from_offset: int | None = None, isolation: Isolation = Isolation.COMMITTED
    ) -> Iterator[RecordBatch]:
        """Yield the log's batches in order, control batches too."""
        return iterate_batches(self, from_offset, isolation)

    def records(
        self,
        from_offset: int | None = None,
        isolation: Isolation = Isolation.COMMITTED,
        *,
        data_only: bool = True,
    ) -> Iterator[Record]:
        """Yield the log's records in order, as a state machine applies them."""
        return iterate_records(self, from_offset, isolation, data_only=data_only)

    def epoch_at_offset(self, offset: int) -> int:
        """Return the epoch that the record at an offset was written in."""
        return epoch_at_offset(self.state, offset)

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        """Return where an epoch ends in this log."""
        return end_offset_for_epoch(self.state, epoch)

    def validate_offset_and_epoch(self, offset: int, epoch: int) -> ValidOffsetAndEpoch:
        """Decide whether a follower may fetch from a position, must truncate first, or must fetch a snapshot."""
        return validate_offset_and_epoch(self.state, offset, epoch)

    @property
    def snapshot_ids(self) -> tuple[OffsetAndEpoch, ...]:
        """The ids of the frozen snapshots, oldest first."""
        return self._snapshot_ids

    @property
    def latest_snapshot_id(self) -> OffsetAndEpoch | None:
        """The last of ``snapshot_ids``."""
        return self._snapshot_ids[-1] if self._snapshot_ids else None

    @property
    def earliest_snapshot_id(self) -> OffsetAndEpoch | None:
        """The first of ``snapshot_ids``."""
        return self._snapshot_ids[0] if self._snapshot_ids else None
