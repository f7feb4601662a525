# SPDX-License-Identifier: Apache-2.0
"""A process forked from the owner of a log directory does not own it, and the owner continues undisturbed."""

import os
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from raftlog.disk_work import DiskWork
from raftlog.errors import DirectoryLockedError, ForkedProcessError, StorageError
from raftlog.log.replicated_log import Isolation
from raftlog.offsets import OffsetAndEpoch
from raftlog.process_ownership import Owned
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.snapshot.raw import RawSnapshotWriter
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.log.fail_stop import FailStop
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.state.log_directory import DirectoryFormat, LogDirectory, format_log_directory
from raftlog.storage.state.quorum_state_store import QuorumStateStore
from raftlog.testing.contracts.made_batches import raft_batch, snapshot_bytes
from tests.faults.damaged_directories import node
from tests.file_logs import expected, fill, records_of

FILES = LocalFileSystem()
SNAPSHOT = OffsetAndEpoch(3, 1)

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks on this system")


@attrs.frozen
class Opened:
    """All that the owner of a directory has open."""

    path: Path
    directory: LogDirectory
    log: FileLog
    store: QuorumStateStore
    writer: RawSnapshotWriter


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """A directory with a log of four records, the last of them not flushed, and a snapshot that is being written."""
    path = tmp_path / "data"
    beginning = DirectoryFormat.standalone("MkU3OEVBNTcwNTJENDM2Qg", node(1))
    format_log_directory(FILES, str(path), beginning, 0)
    with LogDirectory.open(FILES, str(path)) as directory:
        log = FileLog.open(FILES, directory.log_path)
        store = QuorumStateStore.open(FILES, directory.log_path, has_log=False)
        store.write(QuorumStateData(1, leader_id=1, leader_epoch=1))
        fill(log, 3)
        log.flush()
        log.update_high_watermark(3)
        fill(log, 1)
        writer = log.create_snapshot(SNAPSHOT)
        assert writer is not None
        writer.append(snapshot_bytes(SNAPSHOT)[:100])
        yield Opened(path, directory, log, store, writer)
        log.close()


def in_child(call: Callable[[], object]) -> str:
    """Make a call in a forked process, and return what it has returned or raised, as text."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Of a fork beside threads, which others may have begun.
        child = os.fork()
    if child == 0:
        try:
            try:
                text = repr(call())
            except BaseException as error:
                text = f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
            os.write(writing, text.encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answers:
        text = answers.read().decode()
    os.waitpid(child, 0)
    return text


def everything(path: Path) -> dict[str, bytes]:
    """All files below a directory, except the lock, which closing would release."""
    files = (file for file in path.rglob("*") if file.is_file() and file.name != ".lock")
    return {str(file): file.read_bytes() for file in files}


CALLS: dict[str, Callable[[Opened], object]] = {
    "append as leader": lambda opened: opened.log.append_as_leader(raft_batch(4, 1), 1),
    "append as leader, in a new epoch": lambda opened: opened.log.append_as_leader(raft_batch(4, 2), 2),
    "append as follower": lambda opened: opened.log.append_as_follower(raft_batch(4, 1), 1),
    "flush": lambda opened: opened.log.flush(),
    "read": lambda opened: opened.log.read(0, Isolation.UNCOMMITTED),
    "enter an epoch": lambda opened: opened.log.initialize_leader_epoch(5),
    "truncate": lambda opened: opened.log.truncate_to(3),
    "truncate as a leader says": lambda opened: opened.log.truncate_to_end_offset(OffsetAndEpoch(3, 1)),
    "start anew": lambda opened: opened.log.truncate_to_latest_snapshot(),
    "read a snapshot": lambda opened: opened.log.read_snapshot(SNAPSHOT),
    "begin a snapshot": lambda opened: opened.log.create_snapshot(OffsetAndEpoch(2, 1)),
    "fetch a snapshot": lambda opened: opened.log.create_snapshot_unchecked(OffsetAndEpoch(9, 1)),
    "go on with a snapshot": lambda opened: opened.writer.append(b"more"),
    "freeze a snapshot": lambda opened: opened.writer.freeze(),
    "delete before a snapshot": lambda opened: opened.log.delete_before_snapshot(OffsetAndEpoch(0, 0)),
    "vote": lambda opened: opened.store.write(QuorumStateData(1, leader_epoch=9, voted_id=2)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_child_is_refused(opened: Opened, name: str) -> None:
    """Every operation on a log, a vote or a snapshot is refused; no byte changes, and the parent continues."""
    before = everything(opened.path)
    assert in_child(lambda: CALLS[name](opened)).startswith("ForkedProcessError: ")
    assert everything(opened.path) == before
    opened.writer.append(snapshot_bytes(SNAPSHOT)[100:])
    opened.writer.freeze()
    opened.log.append_as_leader(raft_batch(4, 1), 1)
    opened.log.flush()
    opened.store.write(QuorumStateData(1, leader_epoch=2, voted_id=1))
    assert records_of(opened.log) == expected(0, 5)


def whole(writer: RawSnapshotWriter) -> RawSnapshotWriter:
    """Write the rest of the snapshot."""
    writer.append(snapshot_bytes(SNAPSHOT)[100:])
    return writer


PREPARED: dict[str, Callable[[Opened], DiskWork[Any]]] = {
    "append": lambda opened: opened.log.prepare_append_as_leader(raft_batch(4, 2), 2),
    "flush": lambda opened: opened.log.prepare_flush(),
    "truncate": lambda opened: opened.log.prepare_truncate_to(3),
    "freeze": lambda opened: whole(opened.writer).prepare_freeze(),
    "vote": lambda opened: opened.store.prepare_write(QuorumStateData(1, leader_epoch=9, voted_id=2)),
}


@pytest.mark.parametrize("name", PREPARED)
def test_a_child_runs_no_work_of_its_parent(opened: Opened, name: str) -> None:
    """Only the parent runs work that was prepared before the fork: in the child no byte changes."""
    work = PREPARED[name](opened)
    before = everything(opened.path)
    close = (opened.writer.close, opened.log.close)
    # Be it about to run, be it running in another thread of the parent, or run.
    assert [in_child(each) for each in close] == ["None", "None"]
    tickets, work._tickets = work._tickets, []
    assert [in_child(each) for each in close] == ["None", "None"]
    work._tickets = tickets

    def run() -> None:
        work.run()
        work.check()

    assert in_child(run).startswith("ForkedProcessError: ")
    assert everything(opened.path) == before
    work.run()
    before = everything(opened.path)
    assert [in_child(each) for each in close] == ["None", "None"]
    assert everything(opened.path) == before
    work.finish()


def test_a_child_that_closes_changes_nothing(opened: Opened) -> None:
    """Neither a flush nor a clean shutdown is written, the part of a snapshot stays, and the parent holds the lock."""
    before = everything(opened.path)

    def close() -> str:
        for each in (opened.writer, opened.log, opened.directory):
            each.close()
            each.close()
        return "closed"

    assert in_child(close) == "'closed'"
    assert everything(opened.path) == before
    assert in_child(lambda: LogDirectory.open(FILES, str(opened.path))).startswith("DirectoryLockedError: ")
    with pytest.raises(DirectoryLockedError):
        LogDirectory.open(FILES, str(opened.path))
    assert opened.log.flushed_offset == 3
    opened.log.flush()


def test_a_childs_memory_answers(opened: Opened) -> None:
    """The properties are those of the moment of the fork."""
    assert in_child(lambda: (opened.log.end_offset.offset, opened.log.flushed_offset, opened.log.start_offset)) == (
        "(4, 3, 0)"
    )


def test_a_child_may_take_over_when_the_parent_has_closed(opened: Opened) -> None:
    """It opens the directory for itself; closing what it has inherited then does not release its own lock."""
    inherited = opened.directory
    release, released = os.pipe()

    def take_over() -> object:
        os.read(release, 1)
        with LogDirectory.open(FILES, str(opened.path)) as own:
            inherited.close()
            again = in_child(lambda: LogDirectory.open(FILES, str(opened.path)))
            log = FileLog.open(FILES, own.log_path)
            fill(log, 1)
            log.close()
            return again.partition(":")[0], log.flushed_offset

    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            os.write(writing, repr(take_over()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    opened.writer.close()
    opened.log.close()
    opened.directory.close()
    os.write(released, b"!")
    with os.fdopen(reading, "rb") as answers:
        assert answers.read() == b"('DirectoryLockedError', 5)"
    os.waitpid(child, 0)


def test_a_childs_child_is_refused_too(opened: Opened) -> None:
    """And one that a child opens for itself is the child's."""
    assert in_child(lambda: in_child(lambda: CALLS["flush"](opened))).startswith("'ForkedProcessError")

    def own() -> object:
        log = FileLog.open(FILES, str(opened.path / "another"))
        fill(log, 1)
        log.flush()
        return log.flushed_offset, in_child(log.flush).partition(":")[0]

    assert in_child(own) == "(1, 'ForkedProcessError')"


def test_a_failure_of_the_parent_is_not_the_childs_reason() -> None:
    """In a child, the guard reports the fork, whatever has failed before."""
    guard = FailStop("log")
    guard.note(StorageError("log", "sync", "input/output error"))
    guard.disown()
    with pytest.raises(ForkedProcessError, match="log: opened by the process"):
        guard.check()
    guard.note(StorageError("log", "sync", "another error"))
    with pytest.raises(ForkedProcessError), guard:
        raise AssertionError


def test_deleted_files_are_not_reported() -> None:
    """Unused objects are not kept alive."""
    owned: Any = Owned("something")
    assert owned.check_owner() is None
    owned.disown()
    with pytest.raises(ForkedProcessError, match="something"):
        owned.check_owner()
