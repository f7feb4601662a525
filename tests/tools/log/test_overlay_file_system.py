# SPDX-License-Identifier: Apache-2.0
"""The overlay answers as the file system below would, had it been written to; and that one is never written to."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import MissingFileError, StorageError
from raftlog.file_system import FileSystem
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from raftlog.tools.log.overlay_file_system import OverlayFileSystem

NAMES = ("log/a", "log/b", "log/c")
Operation = Callable[[FileSystem], Any]

names = st.sampled_from(NAMES)
positions = st.integers(0, 12)
contents = st.binary(max_size=8)


def on_file(path: str, act: Callable[[Any], Any]) -> Operation:
    """An operation on an open file."""
    return lambda files: act(files.open(path))


operations = st.one_of(
    st.builds(lambda path: lambda files: files.open(path, create=True).size(), names),
    st.builds(lambda path: lambda files: files.open_for_reads(path).size(), names),
    st.builds(lambda path, data: on_file(path, lambda file: file.append(data)), names, contents),
    st.builds(lambda path, at, data: on_file(path, lambda file: file.write_at(at, data)), names, positions, contents),
    st.builds(lambda path, at, size: on_file(path, lambda f: bytes(f.read_at(at, size))), names, positions, positions),
    st.builds(lambda path, size: on_file(path, lambda file: file.truncate(size)), names, positions),
    st.builds(lambda source, target: lambda files: files.rename(source, target), names, names),
    st.builds(lambda path: lambda files: files.remove(path), names),
    st.builds(lambda path: lambda files: files.exists(path), names),
    st.just(lambda files: list(files.list("log"))),
)


def outcome(operation: Operation, files: FileSystem) -> object:
    """The result of an operation, or the type of its error."""
    try:
        return operation(files)
    except StorageError as error:
        return type(error)


def file_system(stored: dict[str, bytes]) -> MemoryFileSystem:
    """A file system with some files in its directory."""
    files = MemoryFileSystem()
    files.make_directory("log")
    for path, data in stored.items():
        files.open(path, create=True).append(data)
    return files


def everything(files: FileSystem) -> dict[str, bytes]:
    """All files of the directory."""
    paths = [f"log/{name}" for name in files.list("log")]
    return {path: bytes(files.open_for_reads(path).read_at(0, 1 << 20)) for path in paths}


@settings(deadline=None, max_examples=50)
@given(st.dictionaries(names, st.binary(max_size=12)), st.lists(operations, max_size=12))
def test_it_is_what_would_have_been_written(stored: dict[str, bytes], steps: list[Operation]) -> None:
    """Every operation gives what it gives on a file system that is written to, and the one below stays as it was."""
    below, written = file_system(stored), file_system(stored)
    overlay = OverlayFileSystem(below)
    for step in steps:
        assert outcome(step, overlay) == outcome(step, written)
    assert everything(overlay) == everything(written)
    assert everything(below) == stored


def test_directories_and_locks_are_made_up() -> None:
    """A created directory exists, a held lock can be taken, and neither changes the file system below."""
    below = file_system({})
    lock = below.lock("log/.lock")
    overlay = OverlayFileSystem(below)
    overlay.make_directory("log/deeper")
    overlay.open("log/deeper/x", create=True).sync()
    overlay.sync_directory("log/deeper")
    overlay.set_read_only("log/deeper/x")
    overlay.lock("log/.lock").close()
    assert overlay.exists("log/deeper")
    assert overlay.list("log/deeper") == ["x"]
    assert not below.exists("log/deeper")
    with pytest.raises(MissingFileError):
        overlay.list("nowhere")
    lock.close()
    overlay.close()
