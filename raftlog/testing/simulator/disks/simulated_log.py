# SPDX-License-Identifier: Apache-2.0
"""A log in memory that tells a witness what it does, as it does it."""

from collections.abc import Callable

from raftlog.disk_work import DiskResult, DiskStep, DiskWork
from raftlog.errors import QuarantinedLogError
from raftlog.log.append_validation import CheckedBatch
from raftlog.log.memory_log import MemoryLog
from raftlog.log.replicated_log import LogAppendInfo, Quarantine
from raftlog.log.retention import Retention
from raftlog.offsets import OffsetAndEpoch
from raftlog.snapshot.raw import RawSnapshotWriter
from raftlog.testing.simulator.checks.disk_witness import DiskWitness
from raftlog.testing.simulator.checks.ledger import Ledger
from raftlog.testing.simulator.disks.fetched_writer import FetchedSnapshotWriter


class SimulatedLog(MemoryLog):
    """A ``MemoryLog`` that is watched.

    Args:
        witness: to be told.
        ledger: of this log's directory.
        retention: what ``clean`` keeps.
    """

    def __init__(self, witness: DiskWitness, ledger: Ledger, retention: Retention | None = None) -> None:
        self._witness = witness
        self._ledger = ledger
        self._is_leader = False
        self._is_crashing = False
        self._is_rotting = False
        self._quarantine_end = 0
        self._writers: list[RawSnapshotWriter] = []
        super().__init__(retention)

    def append_as_leader(self, batches: bytes | memoryview, epoch: int) -> LogAppendInfo:
        """Append what this replica has built as leader."""
        if self._quarantine_end:
            raise QuarantinedLogError(f"the records from offset {self._end_offset} on were lost")
        self._is_leader = True
        try:
            return super().append_as_leader(batches, epoch)
        finally:
            self._is_leader = False

    def _keep(self, data: bytes | memoryview, batches: list[CheckedBatch], next_offset: int) -> None:
        super()._keep(data, batches, next_offset)
        self._witness.appended(self._ledger, self._batches[-len(batches) :], is_leader=self._is_leader)

    def _keep_first(self, count: int) -> None:
        super()._keep_first(count)
        if self._is_rotting:
            self._witness.rotted(self._ledger, self._end_offset)
        elif self._is_crashing:
            self._witness.lost(self._ledger, self._end_offset)
        else:
            self._witness.truncated(self._ledger, self._end_offset)

    def prepare_flush(self) -> DiskWork[DiskResult[int]]:
        """Prepare ``flush``. The witness is told as the work is run, before the owner of the log knows."""
        end_offset = self._end_offset

        def note(result: DiskResult[int]) -> DiskResult[int]:
            self._end_quarantine_at(end_offset)
            return result

        step = DiskStep(lambda: self._witness.synced(self._ledger, end_offset))
        return super().prepare_flush().add(step).then(note)

    def prepare_leader_epoch(self, epoch: int) -> DiskWork[DiskResult[None]]:
        """Prepare ``initialize_leader_epoch``."""

        def note(result: DiskResult[None]) -> DiskResult[None]:
            self._witness.entered_epoch(self._ledger, epoch)
            return result

        return super().prepare_leader_epoch(epoch).then(note)

    def update_high_watermark(self, offset: int) -> None:
        """Raise the high watermark."""
        self._witness.raised_high_watermark(self._ledger, offset)
        super().update_high_watermark(offset)

    def crash(self, kept_batch_count: int = 0) -> None:
        """Lose what a disk would lose in a crash, and open the log again. Work that was run is done."""
        self.end_work()
        self._is_crashing = True
        super().crash(kept_batch_count)
        self._is_crashing = False
        self._witness.reopened(self._ledger, self._end_offset, self._high_watermark)
        self._quarantine_end = self._ledger.quarantine_end  # What has survived may end it: all of it is durable.

    # Damage

    @property
    def quarantine(self) -> Quarantine | None:
        """What was lost; None if nothing was, or it was synced again."""
        end_offset = self._quarantine_end
        return Quarantine(self._end_offset, end_offset, "lost", "memory", 0) if end_offset else None

    def rot(self, batch_count: int) -> None:
        """Lose the last batches, which were durable, and open the log again. It is in quarantine then.

        Args:
            batch_count: how many, from 1 to all.
        """
        self._is_rotting = True
        self._keep_first(len(self._batches) - batch_count)
        self._is_rotting = False
        self.crash()

    def _end_quarantine_at(self, end_offset: int) -> None:
        """End the quarantine if that is an offset, exclusive, up to which the log was durable, or a later one."""
        if end_offset >= self._quarantine_end:
            self._quarantine_end = 0

    @property
    def batch_count(self) -> int:
        """How many batches the log has."""
        return len(self._batches)

    # The end of a process

    def end_work(self) -> None:
        """Finish the work that was run, and forget the work that was not, because the process has ended."""
        self._end_work("memory")
        for writer in self._writers:
            writer.close()
        self._writers.clear()
        if self._ledger.fetched_snapshot is not None:
            self._witness.fetched(self._ledger)

    # Snapshots

    def _snapshot_writer(self, snapshot_id: OffsetAndEpoch) -> RawSnapshotWriter:
        writer = super()._snapshot_writer(snapshot_id)
        self._writers.append(writer)
        return writer

    def create_snapshot_unchecked(self, snapshot_id: OffsetAndEpoch) -> RawSnapshotWriter | None:
        """Begin a snapshot that is fetched from the leader."""
        writer = super().create_snapshot_unchecked(snapshot_id)
        return None if writer is None else FetchedSnapshotWriter(writer, self._witness, self._ledger)

    def _take_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        super()._take_snapshot(snapshot_id)
        if snapshot_id in self._snapshots:
            self._witness.snapshot_taken(self._ledger, snapshot_id, self._snapshots[snapshot_id])
            self._witness.proved(self._ledger, self._high_watermark)

    def _keep_snapshots(self, is_kept: Callable[[OffsetAndEpoch], bool]) -> None:
        super()._keep_snapshots(is_kept)
        self._witness.snapshots_kept(self._ledger, self._snapshot_ids)

    def _restart_at(self, offset: int) -> None:
        super()._restart_at(offset)
        self._witness.restarted(self._ledger, offset)
        self._end_quarantine_at(offset)

    def prepare_delete_before_snapshot(self, snapshot_id: OffsetAndEpoch) -> DiskWork[DiskResult[bool]]:
        """Prepare ``delete_before_snapshot``; a log in quarantine keeps all."""
        if self._quarantine_end:
            return self._finished(False)

        def note(result: DiskResult[bool]) -> DiskResult[bool]:
            if result.value:
                self._witness.started_at(self._ledger, self._start_offset)
            return result

        return super().prepare_delete_before_snapshot(snapshot_id).then(note)

    @property
    def unsynced_batch_count(self) -> int:
        """How many batches a crash may lose."""
        return len(self._batches) - self._batch_holding(self._flushed_offset)
