# SPDX-License-Identifier: Apache-2.0
"""Logs in files on a file system in memory, with segments of three small batches, and ways to break them."""

from typing import Final

from raftlog.file_system import join
from raftlog.log.replicated_log import Isolation, ReplicatedLog
from raftlog.offsets import OffsetAndEpoch
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.recovery.recovery_report import ActionKind, RecoveryAction
from raftlog.storage.segments.log_config import LogConfig
from raftlog.testing.contracts.made_batches import raft_batch, snapshot_bytes
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem

DIRECTORY: Final = "log"
BATCH_SIZE: Final = len(raft_batch(0, 1))
SMALL_SEGMENTS: Final = LogConfig(segment_size_bytes=3 * BATCH_SIZE, index_interval_bytes=BATCH_SIZE - 1)


def open_log(file_system: MemoryFileSystem, config: LogConfig = SMALL_SEGMENTS) -> FileLog:
    """Open the log."""
    return FileLog.open(file_system, DIRECTORY, config)


def fill(log: FileLog, count: int, epoch: int = 1) -> None:
    """Append batches of one record, one by one; they are not flushed."""
    for _ in range(count):
        log.append_as_leader(raft_batch(log.end_offset.offset, epoch), epoch)


def write_log(count: int = 8, epoch: int = 1) -> MemoryFileSystem:
    """Return a file system with a log of so many records, which was closed in order."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, count, epoch)
    log.close()
    return file_system


def write_unflushed_log() -> MemoryFileSystem:
    """Return a file system with a log whose records 0 to 6 were flushed, and 7 and 8 not; the process was killed."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 7)
    log.flush()
    fill(log, 2)
    return kill(file_system)


def kill(file_system: MemoryFileSystem) -> MemoryFileSystem:
    """Return the files after the process was killed and the machine kept running."""
    return file_system.settled()


def records_of(log: FileLog, start_offset: int | None = None) -> list[bytes]:
    """Return all batches that the log reads, from its start or another offset on."""
    offset = log.start_offset if start_offset is None else start_offset
    found = []
    while offset < log.end_offset.offset:
        found.append(bytes(log.read(offset, Isolation.UNCOMMITTED, 0).records))
        offset += 1
    return found


def expected(start_offset: int, end_offset: int, epoch: int = 1) -> list[bytes]:
    """Return the batches that ``fill`` appends at some offsets."""
    return [raft_batch(offset, epoch) for offset in range(start_offset, end_offset)]


def segment_path(base_offset: int, suffix: str = ".log") -> str:
    """Return the path of a segment's file."""
    return join(DIRECTORY, f"{base_offset:020}{suffix}")


def overwrite(file_system: MemoryFileSystem, path: str, position: int, data: bytes) -> None:
    """Put bytes over those of a file."""
    file = file_system.open(path)
    file.write_at(position, data)
    file.sync()
    file.close()


def cut(file_system: MemoryFileSystem, path: str, size_bytes: int) -> None:
    """Cut a file to a length."""
    file = file_system.open(path)
    file.truncate(size_bytes)
    file.sync()
    file.close()


def flip(file_system: MemoryFileSystem, path: str, position: int) -> None:
    """Change a bit of a byte."""
    byte = file_system.contents()[path][position]
    overwrite(file_system, path, position, bytes([byte ^ 1]))


def forget_durable_point(file_system: MemoryFileSystem) -> None:
    """Make the directory one that Kafka could have written."""
    for name in ("raftlog-recovery-point", "raftlog-flush-mark"):
        file_system.remove(join(DIRECTORY, name))


def make_snapshot(log: ReplicatedLog, offset: int, epoch: int = 1) -> OffsetAndEpoch:
    """Commit the records below an offset, and make a snapshot of them."""
    snapshot_id = OffsetAndEpoch(offset, epoch)
    log.update_high_watermark(offset)
    writer = log.create_snapshot(snapshot_id)
    assert writer is not None
    with writer:
        writer.append(snapshot_bytes(snapshot_id))
        writer.freeze()
    return snapshot_id


def install_snapshot(log: FileLog, offset: int, epoch: int) -> OffsetAndEpoch:
    """Take over a snapshot from a leader."""
    snapshot_id = OffsetAndEpoch(offset, epoch)
    writer = log.create_snapshot_unchecked(snapshot_id)
    assert writer is not None
    with writer:
        writer.append(snapshot_bytes(snapshot_id))
        writer.freeze()
    return snapshot_id


def covered() -> MemoryFileSystem:
    """Return the directory of a log of 8 records, closed in order, with snapshots at 5 and at its end."""
    log = open_log(file_system := MemoryFileSystem())
    fill(log, 8)
    make_snapshot(log, 5)
    make_snapshot(log, 8)
    log.close()
    return file_system


def told(log: FileLog, kind: ActionKind) -> list[RecoveryAction]:
    """The actions of startup of a kind."""
    return [action for action in log.recovery.actions if action.kind is kind]
