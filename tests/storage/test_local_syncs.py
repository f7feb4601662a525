# SPDX-License-Identifier: Apache-2.0
"""The system calls that make something durable are made: every claim about crashes rests on them."""

import fcntl
import os
from pathlib import Path

import pytest

from raftlog.errors import StorageError
from raftlog.file_system import replace_file
from raftlog.storage import local_file_system
from raftlog.storage.local_file_system import LocalFileSystem

FILES = LocalFileSystem()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Watch the calls: each with the name of the file or directory that its descriptor is of."""
    seen: list[tuple[str, str]] = []
    for name in ("fsync", "fdatasync"):
        real = getattr(os, name)

        def watched(descriptor: int, name: str = name, real: object = real) -> None:
            seen.append((name, Path(f"/proc/self/fd/{descriptor}").readlink().name))
            real(descriptor)  # type: ignore[operator]

        monkeypatch.setattr(os, name, watched)
    return seen


def test_a_directory_is_synced_by_fsync(tmp_path: Path, calls: list[tuple[str, str]]) -> None:
    """Of that directory, and of nothing else."""
    FILES.sync_directory(str(tmp_path))
    assert calls == [("fsync", tmp_path.name)]


def test_a_file_is_synced_by_fdatasync(tmp_path: Path, calls: list[tuple[str, str]]) -> None:
    """Of that file; a write and a truncation sync nothing by themselves."""
    file = FILES.open(f"{tmp_path}/file", create=True)
    file.append(b"bytes")
    file.truncate(2)
    assert calls == []
    file.sync()
    assert calls == [("fdatasync", "file")]


def test_a_file_is_synced_by_what_it_takes_on_macos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system has F_FULLFSYNC, that is asked for, and fdatasync is not."""
    seen: list[tuple[object, ...]] = []
    file = FILES.open(f"{tmp_path}/file", create=True)
    monkeypatch.setattr(local_file_system, "_FULL_SYNC", 51)
    monkeypatch.setattr(fcntl, "fcntl", lambda *arguments: seen.append(arguments))
    monkeypatch.setattr(os, "fdatasync", lambda _: seen.append(()))
    file.sync()
    assert [arguments[1:] for arguments in seen] == [(51,)]


def test_a_file_is_replaced_durably(tmp_path: Path, calls: list[tuple[str, str]]) -> None:
    """Its bytes are synced before it has the name, and the name afterwards."""
    replace_file(FILES, f"{tmp_path}/vote", b"1")
    assert calls == [("fdatasync", "vote.tmp"), ("fsync", tmp_path.name)]


@pytest.mark.parametrize("name", ["fsync", "fdatasync"])
def test_a_failed_call_is_a_failed_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """An error of a sync is not swallowed, and the descriptor of a directory is closed."""

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    file = FILES.open(f"{tmp_path}/file", create=True)
    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(os, name, fail)
    with pytest.raises(StorageError, match="Input/output error"):
        FILES.sync_directory(str(tmp_path)) if name == "fsync" else file.sync()
    assert len(os.listdir("/proc/self/fd")) == before
