# SPDX-License-Identifier: Apache-2.0
"""Files that are replaced, and directories that stay."""

import pytest

from raftlog.errors import OutOfSpaceError, StorageError
from raftlog.file_system import make_durable_directory, replace_file
from raftlog.testing.file_system.faults import Fault, Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem


@pytest.mark.parametrize("operation", [Operation.CREATE, Operation.WRITE, Operation.SYNC, Operation.RENAME])
def test_for_want_of_room_the_old_file_stays(operation: Operation) -> None:
    """An OutOfSpaceError means that the file is unchanged, whatever follows."""
    files = MemoryFileSystem()
    replace_file(files, "file", b"old")
    files.faults.append(Fault(operation, is_full=True))
    with pytest.raises(OutOfSpaceError):
        replace_file(files, "file", b"new")
    assert files.contents() == {"file": b"old"}


def test_want_of_room_after_the_new_file_is_there_is_another_error() -> None:
    """A caller may rely on the old file after an OutOfSpaceError; here the new one exists."""
    files = MemoryFileSystem()
    replace_file(files, "file", b"old")
    files.faults.append(Fault(Operation.SYNC_DIRECTORY, is_full=True))
    with pytest.raises(StorageError) as caught:
        replace_file(files, "file", b"new")
    assert not isinstance(caught.value, OutOfSpaceError)
    assert files.contents() == {"file": b"new"}


@pytest.mark.parametrize("made_before", ["", "a", "a/b", "a/b/c"])
def test_a_durable_directory_stays(made_before: str) -> None:
    """After a crash it is there with all above it, also where others had made some of them and not synced them."""
    files = MemoryFileSystem()
    if made_before:
        files.make_directory(made_before)
        files.sync_directory(made_before.rpartition("/")[0] or ".")
    make_durable_directory(files, "a/b/c")
    replace_file(files, "a/b/c/file", b"bytes")
    if made_before not in ("a/b", "a/b/c"):  # What is above the nearest one that was there is its maker's.
        assert files.crash(lambda count: 0).contents() == {"a/b/c/file": b"bytes"}
    assert files.contents() == {"a/b/c/file": b"bytes"}
