# SPDX-License-Identifier: Apache-2.0
"""A directory that a log, votes and a snapshot share: who syncs it learns also of what failed for another."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from raftlog.errors import StorageError
from raftlog.file_system import FileSystem, own_view
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.state.quorum_state_store import QuorumStateStore
from raftlog.testing.contracts.made_batches import raft_batch, snapshot_bytes
from raftlog.testing.file_system.faults import Fault, Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.file_logs import fill, open_log
from tests.hang_limit import HANG_S
from tests.storage.log.test_forks import in_child

SNAPSHOT = OffsetAndEpoch(4, 1)
DIRECTORY = "log"


def fail_next_sync(files: MemoryFileSystem) -> None:
    """Let the next sync of a directory fail."""
    files.faults.append(Fault(Operation.SYNC_DIRECTORY))


@pytest.mark.parametrize("first", [0, 1])
def test_each_view_is_documented_once(first: int) -> None:
    """Each sharer of the directory gets the error of a failed sync once, whichever requested it; later ones do not."""
    files = MemoryFileSystem(((DIRECTORY, None, False), ("other", None, False)))
    views = [own_view(files, DIRECTORY), own_view(own_view(files, DIRECTORY), DIRECTORY)]
    for view in views:
        view.sync_directory(DIRECTORY)
    fail_next_sync(files)
    for view in (views[first], views[1 - first]):
        with pytest.raises(StorageError, match="sync directory"):
            view.sync_directory(DIRECTORY)
        view.sync_directory(DIRECTORY)
        view.sync_directory("other")
    own_view(files, DIRECTORY).sync_directory(DIRECTORY)


def test_the_failure_of_a_vote_is_the_log_s_too() -> None:
    """A vote's sync fails between the name of a new segment and the log's own sync: nothing is acknowledged by that."""
    files = MemoryFileSystem()
    log = open_log(files)
    fill(log, 3)
    log.flush()
    store = QuorumStateStore.open(files, DIRECTORY, has_log=False)
    roll = log.prepare_append_as_leader(raft_batch(3, 1), 1)
    vote = store.prepare_write(QuorumStateData(1, leader_epoch=1, voted_id=1))

    def vote_meanwhile() -> None:
        if files.steps[-1].operation is Operation.CREATE and files.steps[-1].path.endswith("003.log"):
            files.on_change = None
            fail_next_sync(files)
            vote.run()

    files.on_change = vote_meanwhile
    roll.run()
    with pytest.raises(StorageError):
        vote.finish()
    with pytest.raises(StorageError, match="a sync that another user asked for has failed"):
        roll.finish()
    with pytest.raises(StorageError):
        log.flush()


def test_a_snapshot_whose_name_is_in_doubt_keeps_a_log_from_closing_in_order() -> None:
    """Otherwise the next startup would trust the name, and drop the records that it covers."""
    files = MemoryFileSystem()
    log = open_log(files)
    fill(log, 8)
    log.flush()
    log.update_high_watermark(8)
    writer = log.create_snapshot(SNAPSHOT)
    assert writer is not None
    writer.append(snapshot_bytes(SNAPSHOT))
    fail_next_sync(files)
    with pytest.raises(StorageError):
        writer.freeze()
    with pytest.raises(StorageError):
        log.close()
    again = open_log(files)
    assert not again.recovery.was_closed
    again.delete_before_snapshot(SNAPSHOT)
    for state in files.crash_states():
        left = open_log(state)
        assert left.quarantine is None
        assert left.end_offset.offset == 8


def test_the_real_file_system_counts_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure that the system reports once is reported to each."""
    files: FileSystem = LocalFileSystem()
    directory = str(tmp_path)
    views = [own_view(files, directory) for _ in range(2)]
    right, failures = os.fsync, [OSError(5, "input/output error")]

    def fsync(descriptor: int) -> None:
        if failures:
            raise failures.pop()
        right(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    for view in views:
        with pytest.raises(StorageError):
            view.sync_directory(directory)
        view.sync_directory(directory)
    assert files.failed_directory_syncs(directory) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks on this system")
def test_a_fork_in_the_middle_of_a_sync_leaves_the_child_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child can sync directories, though a thread that it does not have was at it."""
    files = LocalFileSystem()
    right, is_in, may_end = os.fsync, threading.Event(), threading.Event()

    def fsync(*given: Any) -> None:
        is_in.set()
        may_end.wait()
        right(*given)

    monkeypatch.setattr(os, "fsync", fsync)
    thread = threading.Thread(target=files.sync_directory, args=(str(tmp_path),))
    thread.start()
    is_in.wait()
    monkeypatch.setattr(os, "fsync", right)

    assert in_child(lambda: _ends(files, str(tmp_path))) == "True"
    may_end.set()
    thread.join()


def _ends(files: LocalFileSystem, directory: str) -> bool:
    """Sync a directory in a thread that may remain."""
    thread = threading.Thread(target=files.sync_directory, args=(directory,), daemon=True)
    thread.start()
    thread.join(HANG_S)
    return not thread.is_alive()
