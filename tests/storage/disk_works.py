# SPDX-License-Identifier: Apache-2.0
"""Every kind of work for the disk that may be under way in a log in files."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from raftlog.disk_work import DiskWork
from raftlog.offsets import OffsetAndEpoch
from raftlog.storage.log.file_log import FileLog
from raftlog.testing.contracts.made_batches import raft_batch
from raftlog.testing.file_system.faults import Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.file_logs import (
    fill,
    install_snapshot,
    make_snapshot,
    open_log,
)

SYNCS: Final = (Operation.SYNC, Operation.SYNC_DIRECTORY)
Prepare = Callable[[FileLog], DiskWork[Any]]
START: Final = OffsetAndEpoch(4, 1)
AHEAD: Final = OffsetAndEpoch(30, 3)


def begin(file_system: MemoryFileSystem) -> FileLog:
    """A log of offsets 0 to 7 in three segments, with 0 to 6 flushed, and a snapshot of 0 to 3."""
    log = open_log(file_system)
    fill(log, 7)
    log.flush()
    make_snapshot(log, *attrs_of(START))
    fill(log, 1)
    return log


def attrs_of(snapshot_id: OffsetAndEpoch) -> tuple[int, int]:
    """Offset and epoch."""
    return snapshot_id.offset, snapshot_id.epoch


def restart_at_snapshot(log: FileLog) -> DiskWork[Any]:
    """A snapshot ahead of the log was installed; the log restarts at it."""
    install_snapshot(log, *attrs_of(AHEAD))
    return log.prepare_truncate_to_latest_snapshot()


def follow_into_an_epoch(log: FileLog) -> DiskWork[Any]:
    """A batch of a new epoch comes from a leader."""
    return log.prepare_append_as_follower(raft_batch(8, 2), 2)


def roll(log: FileLog) -> DiskWork[Any]:
    """The active segment has room for one batch more."""
    fill(log, 1)
    return log.prepare_append_as_leader(raft_batch(9, 1), 1)


WORKS: Final[dict[str, Prepare]] = {
    "flush": lambda log: log.prepare_flush(),
    "new epoch": lambda log: log.prepare_leader_epoch(2),
    "append in a new epoch": follow_into_an_epoch,
    "append that rolls": roll,
    "truncate in a segment": lambda log: log.prepare_truncate_to(7),
    "truncate across segments": lambda log: log.prepare_truncate_to_end_offset(OffsetAndEpoch(5, 1)),
    "delete before a snapshot": lambda log: log.prepare_delete_before_snapshot(START),
    "start anew": restart_at_snapshot,
}
"""All that may be under way, of a log that ``begin`` has begun."""
HOLDS_APPENDS: Final = [name for name in WORKS if name not in ("flush", "delete before a snapshot")]

RETRIES: Final[dict[str, Callable[[FileLog], object]]] = {
    "new epoch": lambda log: log.initialize_leader_epoch(2),
    "start anew": lambda log: log.truncate_to_latest_snapshot(),
}

any_work = pytest.mark.parametrize("name", WORKS)
