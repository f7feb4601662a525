# SPDX-License-Identifier: Apache-2.0
"""What every file system keeps, the one of this machine and the one in memory."""

import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from raftlog.errors import (
    CorruptFileError,
    DirectoryLockedError,
    MissingFileError,
    OutOfSpaceError,
    RaftLogError,
    StorageError,
)
from raftlog.file_system import FileSystem, OpenFile, join, parent_directory, read_file, remove_if_there, replace_file
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.hang_limit import HANG_S


@pytest.fixture(params=["local", "memory"])
def files(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileSystem:
    """Give an empty file system of each kind."""
    if request.param == "memory":
        return MemoryFileSystem()
    monkeypatch.chdir(tmp_path)
    return LocalFileSystem()


def test_bytes_are_read_back(files: FileSystem) -> None:
    """What is appended and overwritten is read back, by another handle too, and fewer bytes only at the end."""
    file = files.open("log", create=True)
    file.append(b"0123")
    file.append(memoryview(b"456789"))
    file.write_at(2, b"ab")
    other = files.open_for_reads("log")
    for each in (file, other):
        assert each.path == "log"
        assert each.size() == 10
        assert bytes(each.read_at(0, 100)) == b"01ab456789"
        assert bytes(each.read_at(8, 1)) == b"8"
        assert not each.read_at(10, 5)
        assert not each.read_at(99, 5)


def test_a_gap_reads_as_zeros(files: FileSystem) -> None:
    """A write behind the end fills what is between with zeros."""
    file = files.open("log", create=True)
    file.write_at(3, b"x")
    assert bytes(file.read_at(0, 9)) == b"\0\0\0x"


def test_what_was_read_does_not_change(files: FileSystem) -> None:
    """A view that was read stays as it is, whatever is written later."""
    file = files.open("log", create=True)
    file.append(b"before")
    view = file.read_at(0, 6)
    file.write_at(0, b"after!")
    file.truncate(0)
    assert bytes(view) == b"before"


@pytest.mark.parametrize("size_bytes", [0, 5, 10, 11, 1 << 20, 1 << 62])
def test_reserved_room_is_nothing_that_is_read(files: FileSystem, size_bytes: int) -> None:
    """Length, bytes and the place of the next append are what they were, however much room is asked for."""
    file = files.open("log", create=True)
    file.append(b"0123456789")
    file.reserve(size_bytes)
    file.append(b"ab")
    file.reserve(0)
    assert file.size() == 12
    assert bytes(file.read_at(0, 100)) == b"0123456789ab"


def test_truncation_only_cuts(files: FileSystem) -> None:
    """A file is cut to a length; one above its own, and a negative one, are refused and change nothing."""
    file = files.open("log", create=True)
    file.append(b"0123456789")
    file.truncate(4)
    for size in (5, -1):
        with pytest.raises(StorageError):
            file.truncate(size)
    assert bytes(file.read_at(0, 10)) == b"0123"


def test_a_closed_file_does_nothing(files: FileSystem) -> None:
    """Closing twice is harmless, and every use after it is a StorageError."""
    file = files.open("log", create=True)
    file.close()
    file.close()
    uses: list[Callable[[], object]] = [
        lambda: file.append(b""),
        lambda: file.write_at(0, b""),
        lambda: file.read_at(0, 0),
        lambda: file.truncate(0),
        file.size,
        file.sync,
    ]
    for use in uses:
        with pytest.raises(StorageError):
            use()


def test_a_file_for_reads_takes_no_writes(files: FileSystem) -> None:
    """Writes and truncations of a file that was opened for reads are refused."""
    files.open("log", create=True).append(b"bytes")
    file = files.open_for_reads("log")
    uses: list[Callable[[], object]] = [
        lambda: file.append(b"x"),
        lambda: file.write_at(0, b"x"),
        lambda: file.truncate(0),
    ]
    for use in uses:
        with pytest.raises(StorageError):
            use()
    assert bytes(file.read_at(0, 9)) == b"bytes"


def test_a_write_that_no_file_can_hold_is_out_of_space(files: FileSystem) -> None:
    """The largest position there is has no room, and nothing is allocated for it."""
    with pytest.raises(OutOfSpaceError):
        files.open("log", create=True).write_at(2**63 - 2, b"x")


def test_names(files: FileSystem) -> None:
    """Directories are made with those above them; names are listed sorted; a rename takes the place of a file."""
    files.make_directory("a/b")
    files.make_directory("a/b")
    for name in ("z", "y"):
        files.open(f"a/{name}", create=True).append(name.encode())
    assert files.list("a") == ["b", "y", "z"]
    files.rename("a/z", "a/y")
    assert files.list("./a//") == ["b", "y"]
    assert bytes(files.open_for_reads("a/y").read_at(0, 9)) == b"z"
    assert files.exists("a")
    assert not files.exists("a/z")
    assert not files.exists("a/y/z")
    files.remove("a/y")
    files.sync_directory("a")
    assert files.list("a") == ["b"]
    assert files.list("a/b") == []


def test_an_open_file_outlives_its_name(files: FileSystem) -> None:
    """A file that was removed, renamed or replaced stays what it was for those who have it open."""
    file = files.open("log", create=True)
    file.append(b"old")
    files.open("new", create=True).append(b"new")
    files.rename("new", "log")
    file.append(b"er")
    assert bytes(file.read_at(0, 9)) == b"older"
    assert bytes(files.open_for_reads("log").read_at(0, 9)) == b"new"


def test_errors_name_the_path_and_the_operation(files: FileSystem) -> None:
    """What is not there is a MissingFileError, which is a FileNotFoundError and says what was tried."""
    calls: list[Callable[[], object]] = [
        lambda: files.open("gone"),
        lambda: files.open_for_reads("gone"),
        lambda: files.list("gone"),
        lambda: files.remove("gone"),
        lambda: files.rename("gone", "other"),
        lambda: files.sync_directory("gone"),
        lambda: files.set_read_only("gone"),
    ]
    for call in calls:
        with pytest.raises(MissingFileError) as caught:
            call()
        assert caught.value.path == "gone"
        assert caught.value.operation
        assert isinstance(caught.value, FileNotFoundError)


def test_a_read_only_file_is_read_renamed_and_removed(files: FileSystem) -> None:
    """Taking the right to write takes nothing else."""
    files.open("snapshot", create=True).append(b"bytes")
    files.set_read_only("snapshot")
    files.rename("snapshot", "renamed")
    assert bytes(files.open_for_reads("renamed").read_at(0, 9)) == b"bytes"
    files.remove("renamed")


def test_a_file_is_synced_in_another_thread(files: FileSystem) -> None:
    """While one thread appends and reads, another syncs the file and its directory; no byte is lost or moved."""
    file = files.open("log", create=True)
    is_done, syncs, failures = threading.Event(), [0], []

    def sync() -> None:
        try:
            while not is_done.is_set() or syncs[0] == 0:
                file.sync()
                files.sync_directory(".")
                syncs[0] += 1
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=sync)
    thread.start()
    expected = b""
    for number in range(500):
        expected += number.to_bytes(4, "big")
        file.append(expected[-4:])
        if number % 100 == 99:
            file.truncate(len(expected) - 4)
            expected = expected[:-4]
    is_done.set()
    thread.join(HANG_S)
    assert failures == []
    assert syncs[0] > 0
    assert bytes(file.read_at(0, 9999)) == expected


def test_what_was_appended_since_a_sync_is_read_after_it(files: FileSystem) -> None:
    """A sync changes nothing that is read, however often it is done."""
    file = files.open("log", create=True)
    for data in (b"one", b"two", b"three"):
        file.append(data)
        file.sync()
        file.sync()
    file.truncate(6)
    file.sync()
    assert bytes(file.read_at(0, 99)) == b"onetwo"


def test_a_lock_has_one_owner(files: FileSystem) -> None:
    """A second owner is refused until the first lets go; the file stays; the refusal changes nothing."""
    lock = files.lock(".lock")
    for _ in range(2):
        with pytest.raises(DirectoryLockedError):
            files.lock(".lock")
    lock.close()
    lock.close()
    assert files.exists(".lock")
    again = files.lock(".lock")
    lock.close()
    with pytest.raises(DirectoryLockedError):
        files.lock(".lock")
    again.close()


def test_a_file_is_replaced(files: FileSystem) -> None:
    """``replace_file`` puts new bytes in place of old ones, whatever an earlier try has left."""
    files.make_directory("d")
    files.open("d/vote.tmp", create=True).append(b"an earlier try")
    for data in (b"one", b"", b"two" * 1000):
        replace_file(files, "d/vote", data)
        assert read_file(files, "d/vote", 3000) == data
    assert files.list("d") == ["vote"]
    with pytest.raises(CorruptFileError):
        read_file(files, "d/vote", 2999)
    assert remove_if_there(files, "d/vote")
    assert not remove_if_there(files, "d/vote")


@pytest.mark.parametrize(
    ("path", "directory"), [("a", "."), ("a/b", "a"), ("/a", "/"), ("/a/b", "/a"), ("./a", "."), ("a/b/c", "a/b")]
)
def test_paths_are_taken_apart_and_joined(path: str, directory: str) -> None:
    """The directory of a path and its name make the path again."""
    assert parent_directory(path) == directory
    assert join(directory, path.rpartition("/")[2]).removeprefix("./") == path.removeprefix("./")


@attrs.define
class Failure:
    """An error, as far as two file systems agree about it."""

    kind: type
    path: str


@attrs.define
class Pair:
    """The same file, open in both file systems."""

    local: OpenFile
    memory: OpenFile


paths = st.sampled_from(["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "a/x", "gone/a", ".", "d//a", "./b"])
data = st.binary(max_size=20) | st.sampled_from([b"x" * 511, b"y" * 512, b"z" * 1500])
positions = st.integers(-1, 40) | st.sampled_from([511, 512, 1500, 5000])


class SideBySide(RuleBasedStateMachine):
    """Asks both file systems for the same, and compares the answers, the errors, and in the end all bytes."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._root = Path(self._folder.name).resolve().as_posix()
        self._local = LocalFileSystem()
        self._memory = MemoryFileSystem()
        self._memory.make_directory(self._root)
        self._open: list[Pair] = []
        self._locks: list[Pair] = []

    def teardown(self) -> None:
        for pair in [*self._open, *self._locks]:
            pair.local.close()
        self._folder.cleanup()

    def _path(self, path: str) -> str:
        return f"{self._root}/{path}"

    def _both(self, call: Callable[[Any], Any], local: object, memory: object) -> tuple[Any, Any]:
        answers = []
        for each in (local, memory):
            try:
                answers.append(call(each))
            except RaftLogError as error:
                answers.append(Failure(type(error), getattr(error, "path", "")))
        assert isinstance(answers[0], Failure) == isinstance(answers[1], Failure), answers
        return answers[0], answers[1]

    def _same(self, call: Callable[[Any], Any], local: object | None = None, memory: object | None = None) -> None:
        first, second = self._both(call, local or self._local, memory or self._memory)
        assert first == second

    @initialize()
    def start(self) -> None:
        for path in ("a", "d/a"):
            self.make_directory(path.partition("/")[0] if "/" in path else "d/e")
            self.open(path, how="create")

    @rule(path=paths, how=st.sampled_from(["create", "open", "read"]))
    def open(self, path: str, how: str) -> None:
        path = self._path(path)
        local, memory = self._both(
            lambda files: files.open_for_reads(path) if how == "read" else files.open(path, create=how == "create"),
            self._local,
            self._memory,
        )
        if isinstance(local, Failure):
            assert local == memory
        else:
            self._open.append(Pair(local, memory))

    @precondition(lambda self: self._open)
    @rule(choice=st.data(), data=data, position=positions, size=positions, what=st.integers(0, 11))
    def use(self, choice: st.DataObject, data: bytes, position: int, size: int, what: int) -> None:
        pair = choice.draw(st.sampled_from(self._open))
        call: Callable[[OpenFile], object] = {
            0: lambda file: file.write_at(position, data),
            1: lambda file: file.write_at(position, data),
            2: lambda file: file.truncate(position),
            3: lambda file: file.sync(),
            4: lambda file: file.close(),
            5: lambda file: bytes(file.read_at(position, size)),
            6: lambda file: bytes(file.read_at(position, size)),
            7: lambda file: file.size(),
        }.get(what, lambda file: file.append(memoryview(data)))
        self._same(call, pair.local, pair.memory)

    @rule(path=paths, new=paths.filter(lambda path: path != "."))
    def rename(self, path: str, new: str) -> None:
        # A directory's rename is not asked for: nothing in a log directory needs it, and memory refuses it.
        if not Path(self._path(path)).is_dir():
            self._same(lambda files: files.rename(self._path(path), self._path(new)))

    @rule(path=paths)
    def remove(self, path: str) -> None:
        self._same(lambda files: files.remove(self._path(path)))

    @rule(path=paths)
    def list_(self, path: str) -> None:
        self._same(lambda files: files.list(self._path(path)))

    @rule(path=paths)
    def exists(self, path: str) -> None:
        self._same(lambda files: files.exists(self._path(path)))

    @rule(path=paths)
    def make_directory(self, path: str) -> None:
        self._same(lambda files: files.make_directory(self._path(path)))

    @rule(path=paths)
    def sync_directory(self, path: str) -> None:
        self._same(lambda files: files.sync_directory(self._path(path)))

    @rule(path=paths, data=data)
    def replace(self, path: str, data: bytes) -> None:
        self._same(lambda files: replace_file(files, self._path(path), data))

    @rule(path=paths)
    def lock(self, path: str) -> None:
        local, memory = self._both(lambda files: files.lock(self._path(path)), self._local, self._memory)
        if isinstance(local, Failure):
            assert local == memory
        else:
            self._locks.append(Pair(local, memory))

    @precondition(lambda self: self._locks)
    @rule()
    def unlock(self) -> None:
        pair = self._locks.pop(0)
        pair.local.close()
        pair.memory.close()

    @invariant()
    def holds_the_same(self) -> None:
        found = {path.as_posix(): path.read_bytes() for path in Path(self._root).rglob("*") if path.is_file()}
        assert self._memory.contents() == found


TestSideBySide = SideBySide.TestCase
TestSideBySide.settings = settings(stateful_step_count=30)
