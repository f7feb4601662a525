# SPDX-License-Identifier: Apache-2.0
"""At startup, unsynced bytes are read from the disk, not from the page cache."""

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from raftlog.errors import StorageError
from raftlog.storage.local_file_system import LocalFile, LocalFileSystem
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.segments.log_config import LogConfig
from raftlog.testing.contracts.made_batches import raft_batch

FILES = LocalFileSystem()
CONFIG = LogConfig(segment_size_bytes=len(raft_batch(0, 1)))
"""A segment a batch."""

pytestmark = pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="this system drops nothing")


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Return the calls on segments that are read, written, or whose cache is dropped, as they come."""
    calls: list[tuple[str, str]] = []

    def watch(name: str) -> None:
        right = getattr(LocalFile, name)

        def watched(file: LocalFile, *given: Any) -> Any:
            if file.path.endswith(".log"):
                calls.append((name, Path(file.path).name.removesuffix(".log").lstrip("0") or "0"))
            return right(file, *given)

        monkeypatch.setattr(LocalFile, name, watched)

    for name in ("drop_cache", "read_at", "write_at"):
        watch(name)
    return calls


def a_killed_log(tmp_path: Path, *, flushed: int, more: int) -> str:
    """Return a directory of so many segments that were flushed, and more that were not, as a kill leaves it."""
    live, killed = tmp_path / "live", tmp_path / "killed"
    with FileLog.open(FILES, str(live), CONFIG) as log:
        for offset in range(flushed):
            log.append_as_leader(raft_batch(offset, 1), 1)
        log.flush()
        for offset in range(flushed, flushed + more):
            log.append_as_leader(raft_batch(offset, 1), 1)
        shutil.copytree(live, killed)
    return str(killed)


def opened(directory: str, seen: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Open a log and close it, and return what its start did."""
    seen.clear()
    log = FileLog.open(FILES, directory, CONFIG)
    done = list(seen)
    log.close()
    return done


@pytest.mark.parametrize("flushed", [1, 2, 3])
@pytest.mark.parametrize("more", [0, 1])
def test_each_segment_in_doubt_is_dropped_before_it_is_read(
    flushed: int, more: int, tmp_path: Path, seen: list[tuple[str, str]]
) -> None:
    """Segments that end at or below the durable point are trusted; no batch is written again."""
    done = opened(a_killed_log(tmp_path, flushed=flushed, more=more), seen)
    # A roll makes durable what lies before the new segment, so that the last one alone may be in doubt.
    last = str(flushed + more - 1)
    assert [segment for name, segment in done if name == "drop_cache"] == [last] * more
    assert not more or ("read_at", last) in done[done.index(("drop_cache", last)) :]
    assert [segment for name, segment in done if name == "write_at"] == [last]  # A byte behind it, for its length.


def test_all_segments_of_an_unknown_durable_point_are_dropped(tmp_path: Path, seen: list[tuple[str, str]]) -> None:
    """Where nothing says what was durable, each segment is dropped, and then read."""
    directory = a_killed_log(tmp_path, flushed=2, more=1)
    for name in ("raftlog-recovery-point", "raftlog-flush-mark"):
        Path(directory, name).unlink()
    done = opened(directory, seen)
    assert [segment for name, segment in done if name == "drop_cache"] == ["0", "1", "2"]
    for each in "012":
        assert ("read_at", each) in done[done.index(("drop_cache", each)) :]


def test_a_log_that_was_closed_is_read_from_memory(tmp_path: Path, seen: list[tuple[str, str]]) -> None:
    """After a close in order nothing is dropped, and nothing written."""
    directory = a_killed_log(tmp_path, flushed=2, more=1)
    opened(directory, seen)
    assert {name for name, _ in opened(directory, seen)} == {"read_at"}


def test_dropped_caches_were_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Advice drops no page that is dirty: the sync comes first, of the same file, from its first byte to its last."""
    calls: list[tuple[Any, ...]] = []
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: calls.append((descriptor,)))
    monkeypatch.setattr(os, "posix_fadvise", lambda *given: calls.append(given))
    file = FILES.open(f"{tmp_path}/file", create=True)
    assert file.drop_cache(0)
    descriptor = calls[0][0]
    assert calls == [(descriptor,), (descriptor, 0, 0, os.POSIX_FADV_DONTNEED)]
    assert os.path.samestat(os.fstat(descriptor), os.stat(tmp_path / "file"))
    file.close()


@pytest.mark.parametrize("name", ["fdatasync", "posix_fadvise"])
def test_a_disk_failure_meanwhile_is_reported(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is trusted that could not be synced, or not dropped; the log is as it was, and opens later."""
    directory = a_killed_log(tmp_path, flushed=1, more=1)

    def fail(*_: Any) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, name, fail)
        with pytest.raises(StorageError):
            FileLog.open(FILES, directory, CONFIG)
    with FileLog.open(FILES, directory, CONFIG) as log:
        assert log.end_offset.offset == 2
