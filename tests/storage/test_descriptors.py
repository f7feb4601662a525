# SPDX-License-Identifier: Apache-2.0
"""A process without free descriptors: a log without another failure continues once there are some again."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from raftlog.errors import MissingFileError, OutOfSpaceError, StorageError, TooManyOpenFilesError
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.testing.contracts.made_batches import raft_batch
from raftlog.testing.file_system.faults import Fault, Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.checkout import ROOT
from tests.file_logs import fill, kill, make_snapshot, open_log, records_of
from tests.hang_limit import HANG_S

LIVE = """
import os, resource, sys
from raftlog import FileLog, LocalFileSystem, LogConfig, OffsetAndEpoch, QuorumStateData, QuorumStateStore, StorageError
from raftlog import TooManyOpenFilesError
from raftlog.testing.contracts.made_batches import raft_batch, snapshot_bytes

files, directory = LocalFileSystem(), sys.argv[1]
log = FileLog.open(files, directory, LogConfig(segment_size_bytes=300))
votes = QuorumStateStore.open(files, directory, has_log=False)
log.append_as_leader(raft_batch(0, 1), 1)
log.flush()
limit = resource.getrlimit(resource.RLIMIT_NOFILE)


def without_descriptors(call, least):
    '''Call with none free, then one, and so on, until it succeeds; it must have failed so often before.'''
    failures = 0
    while True:
        held = []
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, limit[1]))
        try:
            while True:
                held.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
        for _ in range(failures):
            os.close(held.pop())
        try:
            call()
        except TooManyOpenFilesError:
            failures += 1
        else:
            assert failures >= least, failures
            return
        finally:
            for descriptor in held:
                os.close(descriptor)
            resource.setrlimit(resource.RLIMIT_NOFILE, limit)


def append():
    log.append_as_leader(raft_batch(log.end_offset.offset, 1), 1)
    log.flush()


def roll():
    first = log.end_offset.segment_position.base_offset
    while log.end_offset.segment_position.base_offset == first:
        log.append_as_leader(raft_batch(log.end_offset.offset, 1), 1)


def snapshot():
    log.update_high_watermark(log.end_offset.offset)
    snapshot_id = OffsetAndEpoch(3, 1)
    with log.create_snapshot(snapshot_id) as writer:
        writer.append(content)
        writer.freeze()


content = snapshot_bytes(OffsetAndEpoch(3, 1))  # What it needs of our own files is read before.
without_descriptors(append, 0)
without_descriptors(roll, 1)
without_descriptors(lambda: log.initialize_leader_epoch(2), 1)
without_descriptors(lambda: votes.write(QuorumStateData(1, leader_id=1, leader_epoch=2)), 1)
without_descriptors(snapshot, 1)
without_descriptors(lambda: log.delete_before_snapshot(OffsetAndEpoch(3, 1)), 0)
without_descriptors(lambda: log.truncate_to(log.end_offset.offset), 0)
end = log.end_offset.offset
log.close()
assert os.path.exists(directory + "/raftlog-reserve")
again = FileLog.open(files, directory)
assert (again.start_offset, again.end_offset.offset, again.quarantine) == (3, end, None), again.recovery
print("went on")
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="nobody says which descriptors a process has")
def test_a_real_log_continues_once_there_are_descriptors(tmp_path: Path) -> None:
    """An append, a roll, an epoch, a vote, a snapshot: refused while there are none, and nothing is lost."""
    done = subprocess.run(
        [sys.executable, "-c", LIVE, str(tmp_path / "log")], cwd=ROOT, capture_output=True, text=True, timeout=HANG_S
    )
    assert (done.returncode, done.stdout) == (0, "went on\n"), done.stderr


def test_no_sync_of_a_directory_needs_a_new_descriptor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it was synced. Another directory of that name is opened, and a deleted one is missing."""
    files, place = LocalFileSystem(), tmp_path / "place"
    place.mkdir()
    files.sync_directory(str(place))
    synced: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", lambda *_: pytest.fail("it needs a descriptor"))
        patch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
        files.sync_directory(str(place))
        assert synced == [place.stat().st_ino]
    place.rename(tmp_path / "other")
    with pytest.raises(MissingFileError):
        files.sync_directory(str(place))
    place.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
        files.sync_directory(str(place))
    assert synced[-1] == place.stat().st_ino != synced[0]


def test_as_many_directories_are_kept_as_an_owner_has(tmp_path: Path) -> None:
    """Others are closed, the one that was not used for longest first; and all of them with the file system."""
    before = len(os.listdir("/proc/self/fd"))
    files = LocalFileSystem()
    places = [tmp_path / str(number) for number in range(40)]
    for place in places:
        place.mkdir()
        files.sync_directory(str(place))
        files.sync_directory(str(places[0]))
    assert len(os.listdir("/proc/self/fd")) == before + 16
    del files
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("operation", [Operation.CREATE, Operation.OPEN])
def test_a_failed_open_changes_nothing(operation: Operation) -> None:
    """Each of the files that a roll, an epoch and a snapshot open: refused for want of descriptors, they come later."""
    skip, refused = 0, 0
    while True:
        log = open_log(file_system := MemoryFileSystem())
        fill(log, 3)
        fault = WantOfDescriptors(operation, skip=skip)
        file_system.faults.append(fault)
        for call in (
            lambda log=log: log.append_as_leader(raft_batch(3, 2), 2),
            lambda log=log: make_snapshot(log, 3, 1),
        ):
            try:
                call()
            except TooManyOpenFilesError:
                refused += 1
                call()
        with contextlib.suppress(TooManyOpenFilesError):
            log.close()
        expected = [*(raft_batch(each, 1) for each in range(3)), raft_batch(3, 2)]
        assert records_of(open_log(kill(file_system))) == expected
        if not fault.is_spent:
            break
        skip += 1
    assert refused > 1 or operation is Operation.OPEN


class WantOfDescriptors(Fault):
    """A failure for want of descriptors."""

    def error(self, step):  # type: ignore[no-untyped-def]
        return TooManyOpenFilesError(step.path, step.operation.value, "too many open files")


def test_it_is_of_the_disk_and_for_want_of_something() -> None:
    """A handler of full disks handles missing descriptors too."""
    error = TooManyOpenFilesError("f", "open", "too many open files")
    assert isinstance(error, OutOfSpaceError)
    assert isinstance(error, StorageError)


def test_kept_values_are_released_with_their_owner(tmp_path: Path) -> None:
    """Descriptors of a file system that is no longer referenced are closed."""
    code = f"""
import gc, os
from raftlog import LocalFileSystem
files = LocalFileSystem()
before = len(os.listdir("/proc/self/fd"))
files.sync_directory({str(tmp_path)!r})
assert len(os.listdir("/proc/self/fd")) == before + 1
del files
gc.collect()
assert len(os.listdir("/proc/self/fd")) == before
"""
    subprocess.run([sys.executable, "-c", code], timeout=HANG_S, check=True)
