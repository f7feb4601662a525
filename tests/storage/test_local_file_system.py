# SPDX-License-Identifier: Apache-2.0
"""The file system of this machine: what only it has, beyond the contract in ``tests/contracts/test_file_system.py``."""

import errno
import fcntl
import os
import resource
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from raftlog.errors import DirectoryLockedError, MissingFileError, OutOfSpaceError, StorageError
from raftlog.storage import local_file_system
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.log.file_log import FileLog
from raftlog.testing.contracts.made_batches import raft_batch

FILES = LocalFileSystem()
MIB = 1024 * 1024


def failing(code: int) -> Callable[..., int]:
    """Return a system call that fails."""

    def call(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    return call


def allots(directory: Path) -> bool:
    """Whether the file system of a directory takes Linux's call for room."""
    fallocate = local_file_system._fallocate()
    with tempfile.TemporaryFile(dir=directory) as file:
        return fallocate is not None and fallocate(file.fileno(), 1, 0, MIB) == 0


def test_room_is_kept_and_given_back(tmp_path: Path) -> None:
    """A file takes as much of the disk as was reserved, where the file system can do that, and no more at last."""
    file = FILES.open(f"{tmp_path}/file", create=True)
    file.append(bytes(range(256)))
    file.sync()
    file.reserve(MIB)
    kept = (tmp_path / "file").stat().st_blocks * 512
    file.reserve(256)
    left = (tmp_path / "file").stat().st_blocks * 512

    assert kept >= MIB if allots(tmp_path) else kept < MIB
    assert left < MIB


def test_room_that_is_not_there_is_not_half_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that says no may have given what it had: that goes back."""
    allot = local_file_system._fallocate()
    if allot is None or not allots(tmp_path):
        pytest.skip("this file system keeps no room")

    def half_of_it(descriptor: int, mode: int, start: int, size: int) -> int:
        allot(descriptor, mode, start, size // 2)
        return -1

    monkeypatch.setattr(local_file_system, "_fallocate", lambda: half_of_it)
    file = FILES.open(f"{tmp_path}/file", create=True)
    file.append(bytes(256))
    file.reserve(MIB)
    assert (tmp_path / "file").stat().st_blocks * 512 < MIB // 2


def test_a_log_keeps_room_while_it_is_open(tmp_path: Path) -> None:
    """The active segment has room for what comes next, after a truncation too; a closed log takes what its batches do.

    A log to which nothing was appended is left as it was.
    """
    path = tmp_path / "log" / "00000000000000000000.log"
    kept = []
    with FileLog.open(FILES, f"{tmp_path}/log") as log:
        for _ in range(2):
            log.truncate_to(0)
            log.append_as_leader(raft_batch(0, 1), 1)
            kept.append(path.stat().st_blocks * 512)
    closed = path.stat()
    FileLog.open(FILES, f"{tmp_path}/log").close()

    assert [size >= 4 * MIB for size in kept] == [allots(tmp_path)] * 2
    assert closed.st_blocks * 512 <= 64 * 1024
    assert path.stat().st_mtime_ns == closed.st_mtime_ns


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of the bytes are written, however few of them the system takes at a time."""
    file = FILES.open(f"{tmp_path}/file", create=True)
    whole = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda descriptor, data, position: whole(descriptor, data[:3], position))
    file.append(b"0123456789")
    file.write_at(4, memoryview(b"abcdefgh"))
    assert bytes(file.read_at(0, 100)) == b"0123abcdefgh"


def test_a_write_that_does_nothing_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that takes no byte, and says so, is a failing disk, and is not asked for ever."""
    file = FILES.open(f"{tmp_path}/file", create=True)
    monkeypatch.setattr(os, "pwrite", lambda *_: 0)
    with pytest.raises(StorageError, match="wrote nothing"):
        file.append(b"bytes")
    with pytest.raises(StorageError, match="wrote nothing"):
        file.write_at(3, b"bytes")


def test_short_reads_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read gives what was asked for, however little the system gives at a time."""
    file = FILES.open(f"{tmp_path}/file", create=True)
    file.append(b"0123456789")
    whole = os.pread
    monkeypatch.setattr(os, "pread", lambda descriptor, size, position: whole(descriptor, min(size, 3), position))
    assert bytes(file.read_at(1, 8)) == b"12345678"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_no_room_is_an_error_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """A full disk, a quota and a size limit are OutOfSpaceError, with path, operation and the system's words."""
    file = FILES.open(f"{tmp_path}/file", create=True)
    monkeypatch.setattr(os, "pwrite", failing(code))
    with pytest.raises(OutOfSpaceError) as caught:
        file.append(b"x")
    assert (caught.value.path, caught.value.operation) == (f"{tmp_path}/file", "append")
    assert caught.value.cause == os.strerror(code)


def test_a_size_limit_leaves_what_was_written(tmp_path: Path) -> None:
    """Bytes before the limit exist, those after it do not, and ``size`` is their number."""
    file = FILES.open(f"{tmp_path}/file", create=True)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        file.append(b"a" * 900)
        with pytest.raises(OutOfSpaceError):
            file.append(b"b" * 900)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert file.size() == 1000
    file.truncate(900)
    assert bytes(file.read_at(890, 100)) == b"a" * 10


@pytest.mark.parametrize("name", ["fdatasync", "ftruncate", "pread"])
def test_a_failing_disk_is_a_storage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """EIO of sync, truncation and read is a StorageError, not one of its kinds."""
    file = FILES.open(f"{tmp_path}/file", create=True)
    file.append(b"bytes")
    monkeypatch.setattr(os, name, failing(errno.EIO))
    calls: dict[str, Callable[[], object]] = {
        "fdatasync": file.sync,
        "ftruncate": lambda: file.truncate(1),
        "pread": lambda: file.read_at(0, 5),
    }
    with pytest.raises(StorageError) as caught:
        calls[name]()
    assert type(caught.value) is StorageError


def test_a_path_that_is_not_a_file_is_not_opened(tmp_path: Path) -> None:
    """A directory and a pipe without a writer are refused at once."""
    os.mkfifo(tmp_path / "pipe")
    for path in (f"{tmp_path}", f"{tmp_path}/pipe"):
        with pytest.raises(StorageError):
            FILES.open_for_reads(path)


@pytest.mark.parametrize("position", [-1, 2**63, 2**80])
def test_a_position_that_no_file_has_is_a_storage_error(tmp_path: Path, position: int) -> None:
    """A negative or huge position raises the usual error, or reads nothing after the end."""
    file = FILES.open(f"{tmp_path}/file", create=True)
    with pytest.raises(StorageError):
        file.write_at(position, b"x")
    if position > 0:
        assert not file.read_at(position, 10)
        with pytest.raises(StorageError):
            file.truncate(position)


def test_a_read_allocates_what_there_is() -> None:
    """A read of a huge size gives the file, without the memory that was asked for."""
    file = FILES.open_for_reads(__file__)
    assert bytes(file.read_at(0, 2**62)) == Path(__file__).read_bytes()


@pytest.mark.parametrize("call", ["open", "remove", "list", "make_directory", "sync_directory", "exists", "lock"])
def test_a_zero_byte_in_a_path_is_a_storage_error(call: str) -> None:
    """A refusal by Python itself is a StorageError too."""
    with pytest.raises(StorageError):
        getattr(FILES, call)("a\0b")


def test_files_are_not_inherited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that are started do not get the descriptors of files and locks."""
    opened: list[int] = []
    whole = os.open

    def noting(path: str, flags: int, mode: int) -> int:
        opened.append(whole(path, flags, mode))
        return opened[-1]

    monkeypatch.setattr(os, "open", noting)
    file, lock = FILES.open(f"{tmp_path}/file", create=True), FILES.lock(f"{tmp_path}/.lock")
    assert [os.get_inheritable(descriptor) for descriptor in opened] == [False, False]
    file.close()
    lock.close()


def test_read_only_takes_the_right_to_write(tmp_path: Path) -> None:
    """No one may write it any more, and only the owner may read it."""
    FILES.open(f"{tmp_path}/file", create=True).close()
    FILES.set_read_only(f"{tmp_path}/file")
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o400


ANOTHER_PROCESS = """
import sys
from raftlog.errors import DirectoryLockedError
from raftlog.storage.local_file_system import LocalFileSystem
try:
    LocalFileSystem().lock(sys.argv[1])
except DirectoryLockedError:
    print("held")
else:
    print("free")
"""


def seen_by_another_process(path: str) -> str:
    """Return whether another process finds the lock held or free."""
    command = [sys.executable, "-c", ANOTHER_PROCESS, path]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_lock_keeps_other_processes_away(tmp_path: Path) -> None:
    """Another process cannot have it; nor once a second owner here was refused; and can when it is released."""
    path = f"{tmp_path}/.lock"
    lock = FILES.lock(path)
    with pytest.raises(DirectoryLockedError):
        LocalFileSystem().lock(path)
    assert seen_by_another_process(path) == "held"
    lock.close()
    lock.close()
    assert seen_by_another_process(path) == "free"


def test_a_lock_goes_by_the_file(tmp_path: Path) -> None:
    """The same file by another path is locked as well."""
    lock = FILES.lock(f"{tmp_path}/.lock")
    os.symlink(tmp_path / ".lock", tmp_path / "link")
    with pytest.raises(DirectoryLockedError):
        FILES.lock(f"{tmp_path}/link")
    lock.close()


def test_a_lock_that_the_system_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where locks do not work at all it is a StorageError, not a directory that another holds."""
    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "lockf", failing(errno.ENOLCK))
        with pytest.raises(StorageError):
            FILES.lock(f"{tmp_path}/.lock")
    FILES.lock(f"{tmp_path}/.lock").close()


def test_a_lock_needs_its_directory(tmp_path: Path) -> None:
    """The file of a lock is made, its directory is not."""
    with pytest.raises(MissingFileError):
        FILES.lock(f"{tmp_path}/missing/.lock")
