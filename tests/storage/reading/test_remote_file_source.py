# SPDX-License-Identifier: Apache-2.0
"""Reading a remote file: the bytes that are there, in few requests, and one failure that is not asked for again."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import MissingFileError, StorageError
from raftlog.storage.reading import remote_file_source
from raftlog.storage.reading.remote_file_source import RemoteFileSource

pytest.importorskip("pyarrow")

LEAST, LARGEST, KEPT = 4, 16, 4
URI = "s3://bucket/key?region=nowhere"


class MadeFile:
    """A file as pyarrow opens it, of made bytes, which records the requested ranges."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.asked: list[tuple[int, int]] = []
        self.failure: Exception | None = None
        self.is_closed = False

    def size(self) -> int:
        """Its length."""
        return len(self.data)

    def read_at(self, size: int, position: int) -> bytes:
        """Bytes from a position."""
        self.asked.append((position, size))
        if self.failure is not None:
            raise self.failure
        return self.data[position : position + size]

    def close(self) -> None:
        """Close it."""
        self.is_closed = True


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], MadeFile]:
    """Makes the file that is opened, with small requests, in a file system that has nothing else."""

    def make(data: bytes) -> MadeFile:
        file = MadeFile(data)
        monkeypatch.setattr(remote_file_source, "open_remote", lambda path: file)
        return file

    def status(path: str) -> Any:
        raise MissingFileError(path, "open", "No such file or directory")

    monkeypatch.setattr(remote_file_source, "_LEAST_REQUEST", LEAST)
    monkeypatch.setattr(remote_file_source, "_LARGEST_REQUEST", LARGEST)
    monkeypatch.setattr(remote_file_source, "remote_status", status)
    return make


@given(
    data=st.binary(max_size=120),
    reads=st.lists(st.tuples(st.integers(0, 130), st.integers(0, 130)), max_size=12),
)
@settings(deadline=None)
def test_any_reads_in_any_order(data: bytes, reads: list[tuple[int, int]]) -> None:
    """Reads give the bytes that are there, fewer only where the file ends; what is kept has a bound."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        file = MadeFile(data)
        monkeypatch.setattr(remote_file_source, "open_remote", lambda path: file)
        monkeypatch.setattr(remote_file_source, "_LEAST_REQUEST", LEAST)
        monkeypatch.setattr(remote_file_source, "_LARGEST_REQUEST", LARGEST)
        with RemoteFileSource(URI) as source:
            for position, size in reads:
                assert bytes(source.read_at(position, size)) == data[position : position + size]
                assert source.size() == len(data)
                assert len(source._answers) <= KEPT
    assert file.is_closed


@given(size=st.integers(0, 400), step=st.integers(1, 20))
@settings(deadline=None)
def test_a_file_read_in_a_row_takes_few_requests(size: int, step: int) -> None:
    """No byte is asked for twice, and requests soon have their largest size, however small the steps are."""
    data = bytes(index % 251 for index in range(size))
    with pytest.MonkeyPatch.context() as monkeypatch:
        file = MadeFile(data)
        monkeypatch.setattr(remote_file_source, "open_remote", lambda path: file)
        monkeypatch.setattr(remote_file_source, "_LEAST_REQUEST", LEAST)
        monkeypatch.setattr(remote_file_source, "_LARGEST_REQUEST", LARGEST)
        with RemoteFileSource(URI) as source:
            found = b"".join(source.read_at(position, step) for position in range(0, size, step))
    assert found == data
    assert sum(asked for _, asked in file.asked) == size
    assert len(file.asked) <= size / LARGEST + 4


def test_a_look_elsewhere_is_small(made: Callable[[bytes], MadeFile]) -> None:
    """After a jump, reading ahead starts again with a small request."""
    file = made(bytes(200))
    with RemoteFileSource(URI) as source:
        for position in range(0, 64, 4):
            source.read_at(position, 4)
        source.read_at(150, 1)
    assert file.asked[-1] == (150, LEAST)


def test_a_failure_is_not_asked_for_again(made: Callable[[bytes], MadeFile], monkeypatch: pytest.MonkeyPatch) -> None:
    """A read that fails says where and why in one line, and from then on no read or size is asked for."""
    monkeypatch.setattr(remote_file_source, "remote_status", lambda path: None)
    file = made(bytes(64))
    with RemoteFileSource(URI) as source:
        source.read_at(0, 4)
        file.failure = OSError("AWS Error\nSLOW_DOWN " + "x" * 2000)
        with pytest.raises(
            StorageError, match=r"key\?region=nowhere: read at position 32 failed: AWS Error SLOW_DOWN"
        ) as caught:
            source.read_at(32, 4)
        with pytest.raises(StorageError):
            source.read_at(48, 4)
        with pytest.raises(StorageError):
            source.size()
    assert len(str(caught.value)) < 600
    assert [position for position, _ in file.asked] == [0, 32]


def test_a_deleted_file(made: Callable[[bytes], MadeFile]) -> None:
    """Whatever the read says of a file that is not there any more, the error is that it is missing."""
    file = made(bytes(64))
    file.failure = OSError("AWS Error INTERNAL_FAILURE")
    with RemoteFileSource(URI) as source, pytest.raises(MissingFileError, match="read at position 8"):
        source.read_at(8, 4)


def test_a_file_that_was_replaced(made: Callable[[bytes], MadeFile]) -> None:
    """An object that ends before it should is one that was replaced, and an error: its first half is another's."""
    file = made(bytes(64))
    with RemoteFileSource(URI) as source:
        file.data = bytes(10)
        with pytest.raises(StorageError, match="replaced while it was read"):
            source.read_at(8, 4)


def test_an_unknown_size(made: Callable[[bytes], MadeFile], monkeypatch: pytest.MonkeyPatch) -> None:
    """A file whose size cannot be had cannot be opened, and is closed."""
    file = made(b"")

    def fail() -> int:
        raise OSError("no")

    monkeypatch.setattr(file, "size", fail)
    with pytest.raises(StorageError, match="open failed: no"):
        RemoteFileSource(URI)
    assert file.is_closed
