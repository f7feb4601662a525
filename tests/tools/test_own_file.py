# SPDX-License-Identifier: Apache-2.0
"""A file is written completely or not at all, and durably before it has its name."""

import os
from pathlib import Path

import pytest

from raftlog.errors import LogDirectoryError, StorageError
from raftlog.tools.own_file import check_outside, is_own, new_file, write_whole


def test_a_file_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    """Its bytes are the only ones, and nothing else is left."""
    path = tmp_path / "page"
    for data in (b"longer than the next", b"short", b""):
        write_whole(str(path), data)
        assert path.read_bytes() == data
    assert list(tmp_path.iterdir()) == [path]


def test_it_is_synced_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that was there has its bytes until then."""
    path, right, seen = tmp_path / "page", os.fsync, list[int]()
    path.write_bytes(b"before")

    def fsync(descriptor: int) -> None:
        assert path.read_bytes() == b"before"
        seen.append(os.fstat(descriptor).st_size)
        right(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    write_whole(str(path), b"after")
    assert seen == [len(b"after")]
    assert path.read_bytes() == b"after"


def test_a_failed_write_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the path, and no other file is left."""
    path = tmp_path / "page"
    path.write_bytes(b"before")

    def fails(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(StorageError, match="No space left") as caught:
        write_whole(str(path), b"after")
    assert caught.value.path == str(path)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("content", "is_ours"), [(b"head", True), (b"head and more", True), (b"hea", False), (b"", False), (b"tail", False)]
)
def test_a_file_is_known_by_its_head(tmp_path: Path, content: bytes, is_ours: bool) -> None:
    """All of the head must be there; a pipe or a directory is none, and is not opened."""
    path = tmp_path / "file"
    path.write_bytes(content)
    assert is_own(path, b"head") == is_ours
    os.mkfifo(tmp_path / "pipe")
    assert not is_own(tmp_path / "pipe", b"head")
    assert not is_own(tmp_path, b"head")


def test_a_new_file_has_its_name_when_it_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And is synced by then."""
    path, right, seen = tmp_path / "rows", os.fsync, list[int]()

    def fsync(descriptor: int) -> None:
        assert not path.exists()
        seen.append(os.fstat(descriptor).st_size)
        right(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with new_file(str(path)) as file:
        file.write(b"some")
        assert not path.exists()
    assert (seen, path.read_bytes(), list(tmp_path.iterdir())) == ([4], b"some", [path])


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError()], ids=repr)
def test_a_new_file_is_not_there_after_an_error(error: BaseException, tmp_path: Path) -> None:
    """Nor is a part of it; an error of the disk names the path."""
    path = tmp_path / "rows"

    def fails() -> None:
        with new_file(str(path)) as file:
            file.write(b"some")
            raise error

    with pytest.raises(StorageError if isinstance(error, OSError) else type(error)) as caught:
        fails()
    assert not isinstance(caught.value, StorageError) or caught.value.path == str(path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("is_late", [False, True])
def test_a_new_file_replaces_nothing(is_late: bool, tmp_path: Path) -> None:
    """Neither a file that was there, nor one that came meanwhile."""
    path = tmp_path / "rows"
    if not is_late:
        path.write_bytes(b"other")

    def write() -> None:
        with new_file(str(path)) as file:
            file.write(b"some")
            path.write_bytes(b"other")

    with pytest.raises(StorageError):
        write()
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (b"other", [path])


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A log directory with one partition, loose files beside it, and links to both."""
    partition = tmp_path / "disk" / "orders-0"
    partition.mkdir(parents=True)
    for path in (partition.parent / "meta.properties", partition / "a.log", partition / "leader-epoch-checkpoint"):
        path.touch()
    (tmp_path / "incident-1").mkdir()
    (tmp_path / "incident-1/a.log").touch()
    (tmp_path / "link").symlink_to(partition)
    return tmp_path


@pytest.mark.parametrize("out", ["disk/x", "disk/orders-0/x", "link/x", "disk/orders-0/no/x", "disk"])
@pytest.mark.parametrize(
    "source",
    [
        "disk",
        "disk/",
        "disk/orders-0",
        "disk/orders-0/a.log",
        "disk/orders-0/gone.log",
        "disk/meta.properties",
        "link",
        "link/a.log",
        "d*k",
        "disk/orders-*",
        "disk/orders-0/?.log",
    ],
)
def test_nothing_is_written_beside_what_is_read(source: str, out: str, disk: Path) -> None:
    """However the log directory, a log in it, or a file of that is named."""
    with pytest.raises(LogDirectoryError, match="an audited directory is not written to"):
        check_outside(str(disk / out), [str(disk / "incident-1"), str(disk / source)])
    with pytest.raises(LogDirectoryError, match="an audited directory is not written to"):
        check_outside(str(disk / out), [f"file://{disk / source}"])


@pytest.mark.parametrize("out", ["x", "disk2/x", "diskx", "incident-1/x", "orders-0/x"])
@pytest.mark.parametrize("source", ["disk", "disk/orders-0/a.log", "incident-1/a.log", "link", "no", "s3://b/k", "-"])
def test_results_are_written_elsewhere(source: str, out: str, disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the log directory, and beside loose files, whatever the name of their directory."""
    monkeypatch.chdir(disk / "disk")
    check_outside(str(disk / out), [source if source in {"s3://b/k", "-"} else str(disk / source)])


def test_results_are_written_over_no_file_that_is_read(disk: Path) -> None:
    """A loose file is not written to either."""
    with pytest.raises(LogDirectoryError, match="an audited directory is not written to"):
        check_outside(str(disk / "incident-1/a.log"), [str(disk / "incident-1/a.log")])
