# SPDX-License-Identifier: Apache-2.0
"""The file system of this machine and the one in memory keep the contract, and do the same side by side."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from raftlog.errors import (
    RaftLogError,
)
from raftlog.file_system import FileSystem, OpenFile, join, parent_directory, replace_file
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.testing.contracts.file_system import FileSystemContract
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem


class TestMemoryFileSystem(FileSystemContract):
    """The one in memory."""

    def make_file_system(self) -> FileSystem:
        """Make an empty one."""
        return MemoryFileSystem()


class TestLocalFileSystem(FileSystemContract):
    """The one of this machine, in an empty directory."""

    @pytest.fixture(autouse=True)
    def _in_an_empty_directory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)

    def make_file_system(self) -> FileSystem:
        """Make the one of this machine."""
        return LocalFileSystem()


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
