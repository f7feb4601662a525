# SPDX-License-Identifier: Apache-2.0
"""Directories that a real Kafka wrote, opened, extended and read back."""

import shutil
from pathlib import Path

import pytest

from raftlog.log.replicated_log import Isolation
from raftlog.records.files.file_names import parse_file_name
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.recovery.recovery_report import ActionKind
from raftlog.testing.contracts.made_batches import raft_batch
from tests.golden_files import GOLDEN, golden_id

DIRECTORIES = sorted(GOLDEN.rglob("__cluster_metadata-0"))
assert DIRECTORIES


def read_all(log: FileLog) -> bytes:
    """All batches of a log."""
    offset, found = log.start_offset, b""
    while offset < log.end_offset.offset:
        fetched = log.read(offset, Isolation.UNCOMMITTED)
        found += fetched.records
        offset = _next_offset(bytes(fetched.records))
    return found


def _next_offset(batches: bytes) -> int:
    """The offset after the last of some whole batches."""
    position = next_offset = 0
    while position < len(batches):
        size = 12 + int.from_bytes(batches[position + 8 : position + 12], "big")
        base_offset = int.from_bytes(batches[position : position + 8], "big")
        next_offset = base_offset + int.from_bytes(batches[position + 23 : position + 27], "big") + 1
        position += size
    return next_offset


def _epoch_lines(directory: Path) -> list[str]:
    return (directory / "leader-epoch-checkpoint").read_text().splitlines()[2:]


def kafkas_bytes(directory: Path) -> bytes:
    """The bytes of all segments of a directory, in order."""
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))


@pytest.mark.parametrize("source", DIRECTORIES, ids=golden_id)
def test_kafkas_directories_open_and_take_more(source: Path, tmp_path: Path) -> None:
    """Whatever Kafka left, also when it was killed, is all there; what is appended to it is there after a restart."""
    directory = tmp_path / source.name
    shutil.copytree(source, directory)
    expected = kafkas_bytes(source)
    log = FileLog.open(LocalFileSystem(), str(directory))
    assert log.quarantine is None
    assert {action.kind for action in log.recovery.actions} <= {ActionKind.REBUILT, ActionKind.REMOVED}
    assert read_all(log) == expected
    names = [parse_file_name(path.name) for path in source.glob("*.checkpoint")]
    assert log.snapshot_ids == tuple(sorted(name.snapshot_id for name in names if name and name.snapshot_id))
    kafkas_epochs, epochs = _epoch_lines(source), _epoch_lines(directory)
    # Where a log starts inside a segment, Kafka had forgotten the epochs below that.
    assert epochs == kafkas_epochs or len(epochs) > len(kafkas_epochs)
    epoch = log.last_fetched_epoch + 1
    end_offset = log.end_offset.offset
    batches = raft_batch(end_offset, epoch, 3) + raft_batch(end_offset + 3, epoch, 1)
    log.append_as_leader(batches, epoch)
    log.close()
    log = FileLog.open(LocalFileSystem(), str(directory))
    assert (log.recovery.actions, log.recovery.was_closed, log.quarantine) == ((), True, None)
    assert read_all(log) == expected + batches
    assert log.last_fetched_epoch == epoch
    log.close()
