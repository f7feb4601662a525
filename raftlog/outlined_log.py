# SPDX-License-Identifier: Apache-2.0
"""What a log answers from its outline alone, wherever its records are: the same code for logs in files and in memory.

Source: KafkaRaftLog, ReplicatedLog.
"""

from abc import abstractmethod
from collections.abc import Iterator

from raftlog.leader_epoch_cache import LeaderEpochCache
from raftlog.log_iteration import iterate_batches, iterate_records
from raftlog.log_rules import (
    LogOutline,
    SnapshotIds,
    clamped_high_watermark,
    end_offset_for_epoch,
    epoch_at_offset,
    last_fetched_epoch,
    validate_offset_and_epoch,
)
from raftlog.offsets import OffsetAndEpoch, ValidOffsetAndEpoch
from raftlog.records.batch import RecordBatch
from raftlog.records.record import Record
from raftlog.replicated_log import Isolation, ReplicatedLog


class OutlinedLog(ReplicatedLog):
    """A ``ReplicatedLog`` that can draw its outline, and gets these answers by that. What it holds stays its own."""

    _start_offset: int
    _high_watermark: int
    _epochs: LeaderEpochCache
    _snapshot_ids: SnapshotIds

    @abstractmethod
    def _outline(self) -> LogOutline:
        """Return what the log is like now."""

    @property
    def last_fetched_epoch(self) -> int:
        """The epoch of the last batch, or of the snapshot that the log starts from; 0 where there is neither."""
        latest = self._epochs.latest_epoch
        if latest is not None:
            return latest  # Every append asks: it makes do with this.
        return last_fetched_epoch(self._epochs, self._snapshot_ids, self._start_offset)

    def update_high_watermark(self, offset: int) -> None:
        """Learn how far the log is committed."""
        self._high_watermark = clamped_high_watermark(self._outline(), offset)

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
        return epoch_at_offset(self._outline(), offset)

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        """Return where an epoch ends in this log."""
        return end_offset_for_epoch(self._outline(), epoch)

    def validate_offset_and_epoch(self, offset: int, epoch: int) -> ValidOffsetAndEpoch:
        """Judge a follower's fetch position against this log."""
        return validate_offset_and_epoch(self._outline(), offset, epoch)

    @property
    def snapshot_ids(self) -> tuple[OffsetAndEpoch, ...]:
        """The ids of the frozen snapshots, oldest first."""
        return tuple(self._snapshot_ids)

    @property
    def latest_snapshot_id(self) -> OffsetAndEpoch | None:
        """The last of ``snapshot_ids``."""
        return self._snapshot_ids.latest

    @property
    def earliest_snapshot_id(self) -> OffsetAndEpoch | None:
        """The first of ``snapshot_ids``."""
        return self._snapshot_ids.earliest
