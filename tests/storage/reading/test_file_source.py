# SPDX-License-Identifier: Apache-2.0
"""Reading files: any range of any file, pipes, and errors that say where."""

import itertools
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import RaftLogError, StorageError
from raftlog.storage.reading import file_source
from raftlog.storage.reading.file_source import FileSource, read_file


def open_descriptors() -> int:
    """How many files this process has open."""
    return len(os.listdir("/dev/fd"))


@given(data=st.binary(max_size=300), position=st.integers(0, 400), size=st.integers(0, 400))
@settings(deadline=None, max_examples=60)
def test_any_range(data: bytes, position: int, size: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A read gives the bytes that are there, fewer only where the file ends."""
    path = tmp_path_factory.mktemp("file") / "file"
    path.write_bytes(data)

    with FileSource(str(path)) as source:
        assert bytes(source.read_at(position, size)) == data[position : position + size]
        assert source.size() == len(data)


@given(written=st.sets(st.integers(0, 40), max_size=4), size=st.integers(0, 42), position=st.integers(0, 45 << 16))
@settings(deadline=None, max_examples=40)
def test_holes_are_zeros(written: set[int], size: int, position: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The skipped ranges of a sparse file are zeros; nothing is skipped if the platform does not report holes."""
    path = tmp_path_factory.mktemp("file") / "file"
    with path.open("wb") as file:
        for block in written:
            file.seek(block << 16)
            file.write(b"x")
        file.truncate(size << 16)

    with FileSource(str(path)) as source:
        after = source.after_hole(position)
        assert position <= after <= max(position, source.size())
        assert not any(source.read_at(position, after - position))
        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(file_source, "_SEEK_DATA", None)
            assert source.after_hole(position) == position
            monkeypatch.setattr(file_source, "_SEEK_DATA", 99)
            assert source.after_hole(position) == position


@given(pieces=st.lists(st.integers(1, 7), min_size=1, max_size=30))
@settings(deadline=None)
def test_short_reads_are_continued(pieces: list[int], tmp_path_factory: pytest.TempPathFactory) -> None:
    """An operating system that gives less than was asked for, as network file systems do, is asked again."""
    data = bytes(range(100))
    path = tmp_path_factory.mktemp("file") / "file"
    path.write_bytes(data)
    pread = os.pread
    sizes = itertools.cycle(pieces)

    with pytest.MonkeyPatch.context() as monkeypatch, FileSource(str(path)) as source:
        monkeypatch.setattr(os, "pread", lambda descriptor, size, at: pread(descriptor, min(size, next(sizes)), at))
        assert bytes(source.read_at(3, 90)) == data[3:93]
        assert bytes(source.read_at(3, 1000)) == data[3:]


def test_a_file_that_changes(tmp_path: Path) -> None:
    """Size and contents are those of now, not of when the file was opened."""
    path = tmp_path / "file"
    path.write_bytes(b"before")

    with FileSource(str(path)) as source:
        path.write_bytes(b"longer than before")
        assert (source.size(), bytes(source.read_at(7, 100))) == (18, b"than before")
        os.truncate(path, 3)
        assert (source.size(), bytes(source.read_at(0, 100))) == (3, b"lon")


def test_a_pipe(tmp_path: Path) -> None:
    """A pipe can be read anywhere, again and again."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    data = bytes(range(256)) * 10_000
    writer = threading.Thread(target=path.write_bytes, args=(data,))
    writer.start()

    with FileSource(str(path)) as source:
        assert source.size() == len(data)
        assert bytes(source.read_at(1_000_000, 500)) == data[1_000_000:1_000_500]
        assert bytes(source.read_at(0, 500)) == data[:500]
    writer.join()


def test_standard_input(tmp_path: Path) -> None:
    """The path - is standard input, which stays open."""
    (tmp_path / "file").write_bytes(b"contents")
    kept = os.dup(0)
    try:
        with (tmp_path / "file").open("rb") as file:
            os.dup2(file.fileno(), 0)
        for _ in range(2):
            with FileSource("-") as source:
                assert bytes(source.read_at(0, 100)) == b"contents"
    finally:
        os.dup2(kept, 0)
        os.close(kept)


@pytest.mark.parametrize("name", ["missing", "folder", "zero\0byte", "x" * 300])
def test_what_cannot_be_opened(name: str, tmp_path: Path) -> None:
    """Whatever cannot be opened is a StorageError, which names the path and leaves nothing open."""
    (tmp_path / "folder").mkdir()
    before = open_descriptors()

    with pytest.raises(StorageError) as caught:
        FileSource(f"{tmp_path}/{name}")

    assert caught.value.path == f"{tmp_path}/{name}"
    assert caught.value.operation == "open"
    assert isinstance(caught.value, RaftLogError | OSError)
    assert open_descriptors() == before


def test_nothing_stays_open(tmp_path: Path) -> None:
    """A source that is closed has closed its file."""
    (tmp_path / "file").write_bytes(b"x")
    before = open_descriptors()

    with FileSource(str(tmp_path / "file")):
        assert open_descriptors() == before + 1

    assert open_descriptors() == before


def test_a_disk_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read that fails is a StorageError that says at which position."""
    (tmp_path / "file").write_bytes(b"x" * 100)

    def failing(descriptor: int, size: int, position: int) -> bytes:
        raise OSError(5, "Input/output error")

    with FileSource(str(tmp_path / "file")) as source:
        monkeypatch.setattr(os, "pread", failing)
        with pytest.raises(StorageError, match="read at position 40 failed: Input/output error"):
            source.read_at(40, 10)


def test_read_file_has_a_limit(tmp_path: Path) -> None:
    """A small file is read whole; one that is larger than was allowed is refused before it is read."""
    path = tmp_path / "file"
    path.write_bytes(b"12345678")

    assert read_file(str(path), 8) == b"12345678"
    with pytest.raises(StorageError, match="it has 8 bytes, more than 7"):
        read_file(str(path), 7)
