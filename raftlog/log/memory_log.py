# SPDX-License-Identifier: Apache-2.0
"""A replicated log in memory, for tests and simulations: it passes the same contract suite as ``FileLog``.

It is a single segment of unlimited size. ``crash`` loses what a disk would lose in a crash.

Source: MockLog.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator

from raftlog.disk_work import DiskResult, DiskStep, DiskWork, nothing
from raftlog.errors import OffsetOutOfRangeError
from raftlog.invariants import invariant
from raftlog.log.append_validation import (
    CheckedAppend,
    CheckedBatch,
    check_append,
    check_append_as_follower,
    check_plain_append,
)
from raftlog.log.decisions import (
    check_leader_epoch,
    check_new_snapshot_id,
    check_truncation,
    is_superseded,
    may_start_at_snapshot,
    proven_end_offset,
    snapshot_ahead_of_log,
    truncation_offset,
)
from raftlog.log.epochs import LeaderEpochs
from raftlog.log.queries import Cut, LogQueries
from raftlog.log.replicated_log import Isolation, LogAppendInfo, LogFetchInfo, Quarantine
from raftlog.log.retention import Retention, StoredSnapshot, snapshot_to_start_at
from raftlog.log.state import SnapshotIds, snapshot_ids_of
from raftlog.offsets import LogOffsetMetadata, OffsetAndEpoch, SegmentPosition
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.limits import MAX_BATCH_SIZE
from raftlog.snapshot.memory_raw import MemoryRawSnapshotReader, MemoryRawSnapshotWriter
from raftlog.snapshot.notifying import NotifyingRawSnapshotWriter
from raftlog.snapshot.raw import RawSnapshotReader, RawSnapshotWriter
from raftlog.snapshot.verifying import VerifyingRawSnapshotWriter


class MemoryLog(LogQueries):
    """A ``ReplicatedLog`` in memory. The protocol documents the methods; docstrings here add what is special.

    Args:
        retention: what ``clean`` keeps.
    """

    def __init__(self, retention: Retention | None = None) -> None:
        self._retention = retention or Retention()
        self._batches: list[RecordBatch] = []
        self._next_offsets: list[int] = []  # After each batch: looked up for every read.
        self._snapshot_ids: SnapshotIds = ()
        self._snapshots: dict[OffsetAndEpoch, bytes] = {}
        self._generation = 0
        self._restart_at(0)

    def _restart_at(self, offset: int) -> None:
        self._batches.clear()
        self._next_offsets.clear()
        self._epochs = LeaderEpochs()
        self._segment_base_offset = offset
        self._start_offset = self._end_offset = self._high_watermark = self._flushed_offset = offset
        self._end_position = 0
        self._check_invariants()

    def _check_invariants(self) -> None:
        """Check the batches against the pointers, and these against each other."""
        self._check_pointer_invariants()
        last = self._batches[-1] if self._batches else None
        end_offset, end_position = self._end_offset, self._end_position
        invariant(last is None or last.next_offset == end_offset, "memory: last is {}, log end {}", last, end_offset)
        is_end = last is None or last.position + last.size_bytes == end_position
        invariant(is_end, "memory: last is {}, end position {}", last, end_position)

    def _written_end(self) -> LogOffsetMetadata:
        return self._located(self._end_offset, len(self._batches))

    def _batch_holding(self, offset: int) -> int:
        """Return the index of the batch that holds an offset; one past the last batch if the offset is the log end."""
        return bisect_right(self._next_offsets, offset)

    def _located(self, offset: int, index: int) -> LogOffsetMetadata:
        position = self._batches[index].position if index < len(self._batches) else self._end_position
        return LogOffsetMetadata(offset, SegmentPosition(self._segment_base_offset, position))

    @property
    def start_offset(self) -> int:
        """The first offset, inclusive."""
        return self._start_offset

    @property
    def high_watermark(self) -> LogOffsetMetadata:
        """The end, exclusive, of the records known to be committed."""
        return self._located(self._high_watermark, self._batch_holding(self._high_watermark))

    @property
    def flushed_offset(self) -> int:
        """The end, exclusive, of the records that survive both ``crash`` and a truncation under way."""
        cut = self._cut
        return self._flushed_offset if cut is None else min(self._flushed_offset, cut.end.offset)

    @property
    def quarantine(self) -> Quarantine | None:
        """None: there is no bit rot in memory."""
        return None

    def append_as_leader(self, batches: bytes | memoryview, epoch: int) -> LogAppendInfo:
        """Append what this replica has built as leader; the bytes are copied."""
        self._refuse_appends_under_way()
        if epoch == self._epochs.latest_epoch:
            plain = check_plain_append(batches, epoch, self._end_offset)
            if plain is not None:
                checked, next_offset, _, info = plain
                self._keep(batches, checked, next_offset)
                return info
        return self._append(check_append(batches, epoch, self._end_offset, self.last_fetched_epoch))

    def prepare_append_as_leader(self, batches: bytes | memoryview, epoch: int) -> DiskWork[DiskResult[LogAppendInfo]]:
        """Append at once: memory needs no sync for it."""
        return self._finished(self.append_as_leader(batches, epoch))

    def prepare_append_as_follower(
        self, batches: bytes | memoryview, epoch: int
    ) -> DiskWork[DiskResult[LogAppendInfo | None]]:
        """Append at once."""
        return self._finished(self.append_as_follower(batches, epoch))

    def append_as_follower(self, batches: bytes | memoryview, epoch: int) -> LogAppendInfo | None:
        """Append what the leader has sent; the bytes are copied."""
        self._refuse_appends_under_way()
        checked = check_append_as_follower(batches, epoch, self._end_offset, self.last_fetched_epoch)
        return None if checked is None else self._append(checked)

    def _append(self, checked: CheckedAppend) -> LogAppendInfo:
        if checked.batches[-1].epoch != self._epochs.latest_epoch:
            self._refuse_while_under_way()  # As a log in files must, which checkpoints the epoch.
        self._epochs = self._epochs.with_epochs(checked.epochs)
        self._keep(checked.data, checked.batches, checked.next_offset)
        self._check_invariants()
        return checked.info

    def _keep(self, data: bytes | memoryview, batches: list[CheckedBatch], next_offset: int) -> None:
        is_next = batches[0].base_offset == self._end_offset < next_offset == batches[-1].last_offset + 1
        invariant(is_next, "memory: {}..{} appended at log end {}", batches[0], batches[-1], self._end_offset)
        held, start = memoryview(bytes(data)), 0
        for batch in batches:
            size_bytes = batch.size_bytes
            end = start + size_bytes
            self._batches.append(RecordBatch(held[start:end], self._end_position, crc_is_checked=True))
            self._next_offsets.append(batch.last_offset + 1)
            self._end_position += size_bytes
            start = end
        invariant(start == len(held), "memory: {} bytes kept, {} given", start, len(held))
        self._end_offset = next_offset

    def read(self, start_offset: int, isolation: Isolation, max_size_bytes: int = MAX_BATCH_SIZE) -> LogFetchInfo:
        """Read batches from an offset on; what is returned is a copy."""
        if not self._start_offset <= start_offset <= self._end_offset:
            raise OffsetOutOfRangeError(f"offset {start_offset} is not in {self._start_offset} to {self._end_offset}")
        limit = self._high_watermark if isolation is Isolation.COMMITTED else self._end_offset
        limit = self._readable_end(start_offset, limit)
        first, end = self._batch_holding(start_offset), self._batch_holding(limit)
        if first >= end:
            return LogFetchInfo(memoryview(b""), self._located(limit, end))
        found = bytearray()
        for batch in self._batches[first:end]:
            found += batch.buffer
            if len(found) >= max_size_bytes:
                break
        size = max(max_size_bytes, self._batches[first].size_bytes)
        return LogFetchInfo(memoryview(bytes(found[:size])), self._located(self._batches[first].base_offset, first))

    def flush(self) -> None:
        """Make what is here now survive ``crash``."""
        self.prepare_flush().complete()

    def prepare_flush(self) -> DiskWork[DiskResult[int]]:
        """Prepare ``flush``: once it is finished, what is here now survives ``crash``."""
        self._refuse_while_under_way()
        end_offset = self._end_offset

        def count() -> int:
            before, log_end = self._flushed_offset, self._end_offset
            invariant(
                before <= end_offset <= log_end, "memory: flushed to {}, not in {}..{}", end_offset, before, log_end
            )
            self._flushed_offset = end_offset
            self._check_invariants()
            return end_offset

        return self._begin([DiskStep(nothing)], count, holds_appends=False)

    def initialize_leader_epoch(self, epoch: int) -> None:
        """Begin an epoch at the log end."""
        self.prepare_leader_epoch(epoch).complete()

    def prepare_leader_epoch(self, epoch: int) -> DiskWork[DiskResult[None]]:
        """Prepare ``initialize_leader_epoch``."""
        self._refuse_while_under_way()
        check_leader_epoch(self.state, epoch)

        def enter() -> None:
            self._epochs = self._epochs.with_epoch(epoch, self._end_offset)
            self._check_invariants()

        return self._begin([DiskStep(nothing)], enter)

    def truncate_to(self, offset: int) -> None:
        """Drop the batch that holds an offset and every batch after it."""
        self.prepare_truncate_to(offset).complete()

    def prepare_truncate_to(self, offset: int) -> DiskWork[DiskResult[int]]:
        """Prepare ``truncate_to``."""
        self._refuse_while_under_way()
        check_truncation(self.state, offset)
        count = self._batch_holding(offset)
        end_offset = self._batches[count].base_offset if count < len(self._batches) else self._end_offset
        end = self._located(end_offset, count)
        check_truncation(self.state, end_offset)
        epochs = self._epochs.truncated_from_end(end_offset)

        def cut() -> int:
            if count < len(self._batches):
                self._keep_first(count)
                self._generation += 1
            self._epochs = epochs
            self._check_invariants()
            return end_offset

        return self._begin([DiskStep(nothing)], cut, cut=Cut(end, epochs))

    def _keep_first(self, count: int) -> None:
        """Drop all batches but the first ``count``; there must be more than that."""
        first_dropped = self._batches[count]
        base_offset, position, least = first_dropped.base_offset, first_dropped.position, self._start_offset
        invariant(
            least <= base_offset < self._end_offset, "memory: truncated at {}, end {}", base_offset, self._end_offset
        )
        invariant(0 <= position < self._end_position, "memory: truncated at {}, end {}", position, self._end_position)
        del self._batches[count:], self._next_offsets[count:]
        self._end_offset, self._end_position = base_offset, position
        self._flushed_offset = min(self._flushed_offset, base_offset)

    def truncate_to_end_offset(self, end_offset: OffsetAndEpoch) -> int:
        """Drop the records that diverge from the leader's log."""
        return self.prepare_truncate_to_end_offset(end_offset).complete().value

    def prepare_truncate_to_end_offset(self, end_offset: OffsetAndEpoch) -> DiskWork[DiskResult[int]]:
        """Prepare ``truncate_to_end_offset``."""
        return self.prepare_truncate_to(truncation_offset(self.state, end_offset))

    def truncate_to_latest_snapshot(self) -> bool:
        """Restart the log at the latest snapshot if that is ahead of it."""
        return self.prepare_truncate_to_latest_snapshot().complete().value

    def prepare_truncate_to_latest_snapshot(self) -> DiskWork[DiskResult[bool]]:
        """Prepare ``truncate_to_latest_snapshot``."""
        self._refuse_while_under_way()
        latest = snapshot_ahead_of_log(self.state)
        if latest is None:
            return self._finished(False)

        def restart_at_snapshot() -> bool:
            offset, least = latest.offset, self._high_watermark
            invariant(least <= offset, "memory: restart at {}, below the high watermark {}", offset, least)
            self._restart_at(offset)
            self._generation += 1
            self._delete_snapshots_before(latest)
            self._check_invariants()
            return True

        return self._begin([DiskStep(nothing)], restart_at_snapshot, new_start=latest.offset)

    def create_snapshot(self, snapshot_id: OffsetAndEpoch) -> RawSnapshotWriter | None:
        """Begin a snapshot of this log's records below an offset."""
        if not check_new_snapshot_id(self.state, snapshot_id, self._ends_batch):
            return None
        return self._snapshot_writer(snapshot_id)

    def _ends_batch(self, offset: int) -> bool:
        index = self._batch_holding(offset - 1)
        return index < len(self._batches) and self._next_offsets[index] == offset

    def create_snapshot_unchecked(self, snapshot_id: OffsetAndEpoch) -> RawSnapshotWriter | None:
        """Begin a snapshot that is fetched from the leader, whatever the offsets of this log."""
        if snapshot_id in self._snapshot_ids:
            return None
        return self._snapshot_writer(snapshot_id)

    def _snapshot_writer(self, snapshot_id: OffsetAndEpoch) -> RawSnapshotWriter:
        writer = VerifyingRawSnapshotWriter(MemoryRawSnapshotWriter(self._snapshots, snapshot_id))
        return NotifyingRawSnapshotWriter(writer, self._take_snapshot)

    def _take_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        if is_superseded(self.state, snapshot_id):
            del self._snapshots[snapshot_id]
        else:
            self._snapshot_ids = snapshot_ids_of((*self._snapshot_ids, snapshot_id))
            self._high_watermark = max(self._high_watermark, proven_end_offset(self.state))
            self._check_invariants()

    def read_snapshot(self, snapshot_id: OffsetAndEpoch) -> RawSnapshotReader | None:
        """Open a snapshot; None if there is none of this id."""
        data = self._snapshots.get(snapshot_id)
        return None if data is None else MemoryRawSnapshotReader(snapshot_id, data)

    def delete_before_snapshot(self, snapshot_id: OffsetAndEpoch) -> bool:
        """Move the log start to a snapshot's end, and delete the records and snapshots below it."""
        return self.prepare_delete_before_snapshot(snapshot_id).complete().value

    def prepare_delete_before_snapshot(self, snapshot_id: OffsetAndEpoch) -> DiskWork[DiskResult[bool]]:
        """Prepare ``delete_before_snapshot``."""
        self._refuse_while_under_way()
        if not may_start_at_snapshot(self.state, snapshot_id):
            return self._finished(False)

        def delete() -> bool:
            before, offset = self._start_offset, snapshot_id.offset
            invariant(before < offset <= self._high_watermark, "memory: log start moves to {} from {}", offset, before)
            self._start_offset = offset
            self._flushed_offset = max(self._flushed_offset, self._start_offset)
            self._epochs = self._epochs.truncated_from_start(self._start_offset)
            count = self._batch_holding(self._start_offset)
            del self._batches[:count], self._next_offsets[:count]
            self._delete_snapshots_before(snapshot_id)
            self._check_invariants()
            return True

        return self._begin([DiskStep(nothing)], delete, holds_appends=snapshot_id.offset == self._end_offset)

    def _delete_snapshots_before(self, snapshot_id: OffsetAndEpoch) -> None:
        self._keep_snapshots(lambda each: each >= snapshot_id)

    def _keep_snapshots(self, is_kept: Callable[[OffsetAndEpoch], bool]) -> None:
        for each in self._snapshot_ids:
            if not is_kept(each):
                del self._snapshots[each]
        self._snapshot_ids = tuple(filter(is_kept, self._snapshot_ids))

    def clean(self, now_ms: int) -> bool:
        """Delete what exceeds the retention and a newer snapshot covers."""
        has_cleaned = False
        while self.prepare_clean(now_ms).complete().value:
            has_cleaned = True
        return has_cleaned

    def prepare_clean(self, now_ms: int) -> DiskWork[DiskResult[bool]]:
        """Prepare one step of ``clean``."""
        self._refuse_while_under_way()
        snapshot_id = self._next_to_start_at(now_ms)
        return self._finished(False) if snapshot_id is None else self.prepare_delete_before_snapshot(snapshot_id)

    def _next_to_start_at(self, now_ms: int) -> OffsetAndEpoch | None:
        log_size_bytes = sum(batch.size_bytes for batch in self._batches)
        return snapshot_to_start_at(self._retention, list(self._stored_snapshots()), log_size_bytes, now_ms)

    def _stored_snapshots(self) -> Iterator[StoredSnapshot]:
        for snapshot_id in self._snapshot_ids:
            yield StoredSnapshot.of(MemoryRawSnapshotReader(snapshot_id, self._snapshots[snapshot_id]))

    def close(self) -> None:
        """Flush. The log remains usable, as after ``reopen``."""
        self._end_work("memory")
        self.flush()

    def reopen(self) -> None:
        """Simulate the end of the process and another open: everything appended survives."""
        self.crash(kept_batch_count=len(self._batches))

    def crash(self, kept_batch_count: int = 0) -> None:
        """Simulate a loss of power and another open.

        Args:
            kept_batch_count: how many unflushed batches survive nevertheless.
        """
        self._under_way = None
        self._generation += 1
        count = self._batch_holding(self._flushed_offset) + kept_batch_count
        if count < len(self._batches):
            self._keep_first(count)
        self._flushed_offset = self._end_offset
        self._high_watermark = self._start_offset  # The snapshots raise it, below.
        self._epochs = self._epochs.truncated_from_end(self._end_offset)
        self._keep_snapshots(lambda each: each.offset >= self._start_offset)
        self._high_watermark = proven_end_offset(self.state)
        self._check_invariants()
        self.truncate_to_latest_snapshot()
