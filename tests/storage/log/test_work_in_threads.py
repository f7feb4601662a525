# SPDX-License-Identifier: Apache-2.0
"""Snapshots that are frozen beside other work for the disk, and real files that another thread syncs."""

import concurrent.futures
import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from raftlog.disk_work import DiskWork
from raftlog.errors import (
    SnapshotFrozenError,
    StorageError,
    WorkUnderWayError,
)
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.snapshot.raw import RawSnapshotWriter
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.segments.log_config import LogConfig
from raftlog.storage.state.leading import open_quorum_state, prepare_to_lead
from raftlog.testing.contracts.made_batches import raft_batch, snapshot_bytes
from raftlog.testing.file_system.faults import Fault, Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.file_logs import (
    fill,
    kill,
    open_log,
)
from tests.storage.disk_works import START, SYNCS, begin


def snapshot_under_way(log: FileLog) -> tuple[RawSnapshotWriter, DiskWork[None]]:
    """A snapshot that is about to be frozen."""
    log.flush()
    log.update_high_watermark(8)
    writer = log.create_snapshot(OffsetAndEpoch(8, 1))
    assert writer is not None
    writer.append(snapshot_bytes(OffsetAndEpoch(8, 1)))
    return writer, writer.prepare_freeze()


def snapshot_files(file_system: MemoryFileSystem) -> list[str]:
    """The names of snapshots, and of parts of them."""
    return sorted(os.path.basename(path) for path in file_system.contents() if ".checkpoint" in path)


def test_a_snapshot_is_frozen_beside_other_work() -> None:
    """Appends, flushes and a new epoch continue; the snapshot is listed when the freeze is finished, and not before."""
    log = begin(file_system := MemoryFileSystem())
    writer, freeze = snapshot_under_way(log)
    fill(log, 1)
    flush = log.prepare_flush()
    freeze.run()
    flush.run()
    assert (log.snapshot_ids, writer.is_frozen) == ((START,), False)
    flush.finish()
    fill(log, 1, epoch=2)
    for call in (writer.freeze, writer.prepare_freeze, lambda: writer.append(b"more")):
        with pytest.raises(SnapshotFrozenError, match="being frozen"):
            call()
    before = len([step for step in file_system.steps if step.operation in SYNCS])
    freeze.finish()
    assert len([step for step in file_system.steps if step.operation in SYNCS]) == before
    assert (log.snapshot_ids, writer.is_frozen) == ((START, OffsetAndEpoch(8, 1)), True)


def test_a_snapshot_that_is_closed_before_it_is_run_is_none() -> None:
    """It is cancelled, and its part is removed; one that was run is one."""
    log = begin(file_system := MemoryFileSystem())
    writer, freeze = snapshot_under_way(log)
    writer.close()
    with pytest.raises(SnapshotFrozenError):
        freeze.finish()
    assert log.snapshot_ids == (START,)
    assert not [name for name in file_system.contents() if ".part" in name]
    writer, freeze = snapshot_under_way(log)
    freeze.run()
    writer.close()
    assert list(log.snapshot_ids) == [START, OffsetAndEpoch(8, 1)]


def test_the_log_may_move_on_while_a_snapshot_is_frozen() -> None:
    """One that was overtaken meanwhile is deleted, not listed, without a sync of its owner's."""
    log = begin(file_system := MemoryFileSystem())
    log.flush()
    log.update_high_watermark(8)
    late = log.create_snapshot_unchecked(OffsetAndEpoch(2, 1))
    assert late is not None
    late.append(snapshot_bytes(OffsetAndEpoch(2, 1)))
    freeze = late.prepare_freeze()
    freeze.run()
    log.prepare_delete_before_snapshot(START).complete()
    syncs = len([step for step in file_system.steps if step.operation in SYNCS])
    freeze.finish()
    assert len([step for step in file_system.steps if step.operation in SYNCS]) == syncs
    assert log.snapshot_ids == (START,)
    assert snapshot_files(file_system) == ["00000000000000000004-0000000001.checkpoint"]
    log.close()
    assert open_log(kill(file_system)).snapshot_ids == (START,)


def test_leaving_a_writer_whose_freeze_has_failed_raises_nothing() -> None:
    """Finishing the freeze raises the error, before and after."""
    log = begin(file_system := MemoryFileSystem())
    writer, freeze = snapshot_under_way(log)
    with writer:
        file_system.faults.append(Fault(Operation.SYNC))
        freeze.run()
    for _ in range(2):
        with pytest.raises(StorageError):
            freeze.finish()
    assert (log.snapshot_ids, writer.is_frozen) == ((START,), False)


class WatchedThreads:
    """Notes which thread makes the real calls that sync."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.threads: list[int] = []
        for name in ("fsync", "fdatasync"):
            monkeypatch.setattr(os, name, self._watched(getattr(os, name)))

    def _watched(self, call: Callable[[int], None]) -> Callable[[int], None]:
        def watched(descriptor: int) -> None:
            self.threads.append(threading.get_ident())
            call(descriptor)

        return watched


def snapshot_at(
    create: Callable[[OffsetAndEpoch], RawSnapshotWriter | None], snapshot_id: OffsetAndEpoch
) -> DiskWork[None]:
    """A snapshot that is about to be frozen."""
    writer = create(snapshot_id)
    assert writer is not None
    writer.append(snapshot_bytes(snapshot_id))
    return writer.prepare_freeze()


def test_the_owner_of_real_files_never_waits_for_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All syncing operations run in another thread, by their second forms: appends and reads continue, none is lost."""
    files, directory = LocalFileSystem(), str(tmp_path / "log")
    log = FileLog.open(files, directory, LogConfig(segment_size_bytes=1000, retention_bytes=1000))
    votes = open_quorum_state(files, directory, log)
    watched = WatchedThreads(monkeypatch)
    with concurrent.futures.ThreadPoolExecutor(1) as disk:

        def finished(work: DiskWork[Any]) -> Any:
            if work.is_needed:
                disk.submit(work.run).result()
            return work.finish().value

        for epoch in (1, 2, 3):
            finished(votes.prepare_write(QuorumStateData(1, leader_epoch=epoch, voted_id=1)))
            led = finished(prepare_to_lead(log, votes, QuorumStateData(1, leader_id=1, leader_epoch=epoch)))
            assert (led.epoch, led.base_offset) == (epoch, log.end_offset.offset)
            for _ in range(20):
                flush = log.prepare_flush()
                running = disk.submit(flush.run) if flush.is_needed else None
                end = log.end_offset.offset
                work = None
                with contextlib.suppress(WorkUnderWayError):  # It needs a new segment, which must wait for the flush.
                    work = log.prepare_append_as_leader(raft_batch(end, epoch), epoch)
                if running is not None:
                    running.result()
                flush.finish()
                finished(log.prepare_append_as_leader(raft_batch(end, epoch), epoch) if work is None else work)
        finished(log.prepare_truncate_to(50))
        finished(log.prepare_flush())
        log.update_high_watermark(50)
        freeze = snapshot_at(log.create_snapshot, OffsetAndEpoch(30, 2))
        disk.submit(freeze.run).result()
        freeze.finish()
        assert finished(log.prepare_delete_before_snapshot(OffsetAndEpoch(30, 2)))
        freeze = snapshot_at(log.create_snapshot, OffsetAndEpoch(40, 2))
        disk.submit(freeze.run).result()
        freeze.finish()
        assert finished(log.prepare_clean(0))
        assert log.start_offset == 40
        freeze = snapshot_at(log.create_snapshot_unchecked, OffsetAndEpoch(70, 4))
        disk.submit(freeze.run).result()
        freeze.finish()
        assert finished(log.prepare_truncate_to_latest_snapshot())
        finished(log.prepare_append_as_follower(raft_batch(70, 4), 4))
        finished(log.prepare_truncate_to_end_offset(OffsetAndEpoch(71, 4)))
    assert watched.threads
    assert threading.get_ident() not in watched.threads
    log.close()
    again = FileLog.open(files, directory)
    assert (again.start_offset, again.end_offset.offset, again.quarantine) == (70, 71, None)
