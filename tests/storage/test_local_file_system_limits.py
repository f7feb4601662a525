# SPDX-License-Identifier: Apache-2.0
"""Refusals of the local file system: their errors, without an open descriptor left."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from raftlog.errors import DirectoryLockedError, StorageError
from raftlog.storage.local_file_system import LocalFileSystem
from tests.other_processes import held_by_another_process

FILES = LocalFileSystem()

needs_descriptors = pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="the platform does not list descriptors")


@contextmanager
def _nothing_left_open() -> Iterator[None]:
    before = os.listdir("/dev/fd")
    yield
    assert os.listdir("/dev/fd") == before


@needs_descriptors
def test_a_lock_of_another_process_is_respected(tmp_path: Path) -> None:
    """While another process holds the lock it cannot be taken; once that process has ended, it can."""
    path = tmp_path / ".lock"
    with held_by_another_process(path), _nothing_left_open():
        for _ in range(2):
            with pytest.raises(DirectoryLockedError, match="another process"):
                FILES.lock(str(path))
    with _nothing_left_open():
        lock = FILES.lock(str(path))
        assert lock.path == str(path)
        with pytest.raises(DirectoryLockedError, match="another owner in this process"):
            FILES.lock(str(path))
        lock.close()


@needs_descriptors
@pytest.mark.parametrize(
    ("number", "error"),
    [
        (errno.EACCES, DirectoryLockedError),
        (errno.EAGAIN, DirectoryLockedError),
        (errno.ENOLCK, StorageError),
        (errno.EINTR, StorageError),
    ],
)
def test_the_meaning_of_a_refused_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, error: type[Exception]
) -> None:
    """Two errors of the system mean that another process has the lock; any other means that locking is impossible."""

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "lockf", refuse)
    with _nothing_left_open(), pytest.raises(error) as caught:
        FILES.lock(f"{tmp_path}/.lock")
    assert type(caught.value) is error


@needs_descriptors
def test_irregular_files_are_closed(tmp_path: Path) -> None:
    """A named pipe and a directory are refused, and stay closed."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "directory").mkdir()
    with _nothing_left_open():
        for name in ("pipe", "directory"):
            with pytest.raises(StorageError):
                FILES.open_for_reads(f"{tmp_path}/{name}")


@needs_descriptors
def test_used_resources_are_released(tmp_path: Path) -> None:
    """Files that are written, read and closed, twice, and directories that are listed and synced, are all closed."""
    files = LocalFileSystem()
    files.sync_directory(str(tmp_path))  # That one is kept.
    with _nothing_left_open():
        for _ in range(2):
            file = files.open(f"{tmp_path}/file", create=True)
            file.append(b"x")
            file.sync()
            file.close()
            file.close()
            reader = files.open_for_reads(f"{tmp_path}/file")
            assert bytes(reader.read_at(0, 9))
            reader.close()
        files.sync_directory(str(tmp_path))
        assert list(files.list(str(tmp_path))) == ["file"]
