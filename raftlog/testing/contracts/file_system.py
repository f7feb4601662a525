# SPDX-License-Identifier: Apache-2.0
"""The contract of a file system, as tests to run on your own implementation."""

import threading
from collections.abc import Callable
from typing import Final

from raftlog.errors import (
    CorruptFileError,
    DirectoryLockedError,
    MissingExtraError,
    MissingFileError,
    OutOfSpaceError,
    StorageError,
)
from raftlog.file_system import FileSystem, read_file, remove_if_there, replace_file

try:
    import pytest
except ImportError as error:
    raise MissingExtraError("testing", "raftlog.testing.contracts.file_system") from error

_HANG_S: Final = 600
"""How long another thread may take before the test fails: much longer than even on a busy machine."""


class FileSystemContract:
    """The tests that every ``FileSystem`` must pass.

    Subclass it in a test module, and define how to make a file system::

        class TestMyFiles(FileSystemContract):
            def make_file_system(self) -> FileSystem:
                return MyFileSystem()

    pytest then collects all of its tests for your file system.
    """

    def make_file_system(self) -> FileSystem:
        """Make a file system whose current directory, ``.``, is empty."""
        raise NotImplementedError

    @pytest.fixture
    def files(self) -> FileSystem:
        """An empty file system."""
        return self.make_file_system()

    def test_bytes_are_read_back(self, files: FileSystem) -> None:
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

    def test_a_gap_reads_as_zeros(self, files: FileSystem) -> None:
        """A write after the end fills the gap with zeros."""
        file = files.open("log", create=True)
        file.write_at(3, b"x")
        assert bytes(file.read_at(0, 9)) == b"\0\0\0x"

    def test_what_was_read_does_not_change(self, files: FileSystem) -> None:
        """A view that was read stays as it is, whatever is written later."""
        file = files.open("log", create=True)
        file.append(b"before")
        view = file.read_at(0, 6)
        file.write_at(0, b"after!")
        file.truncate(0)
        assert bytes(view) == b"before"

    @pytest.mark.parametrize("size_bytes", [0, 5, 10, 11, 1 << 20, 1 << 62])
    def test_reserved_room_is_nothing_that_is_read(self, files: FileSystem, size_bytes: int) -> None:
        """Length, bytes and the place of the next append are what they were, however much room is asked for."""
        file = files.open("log", create=True)
        file.append(b"0123456789")
        file.reserve(size_bytes)
        file.append(b"ab")
        file.reserve(0)
        assert file.size() == 12
        assert bytes(file.read_at(0, 100)) == b"0123456789ab"

    def test_truncation_only_cuts(self, files: FileSystem) -> None:
        """A file is cut to a length; one above its own, and a negative one, are refused and change nothing."""
        file = files.open("log", create=True)
        file.append(b"0123456789")
        file.truncate(4)
        for size in (5, -1):
            with pytest.raises(StorageError):
                file.truncate(size)
        assert bytes(file.read_at(0, 10)) == b"0123"

    def test_a_closed_file_does_nothing(self, files: FileSystem) -> None:
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

    def test_a_file_for_reads_takes_no_writes(self, files: FileSystem) -> None:
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

    def test_a_write_that_hardly_a_file_can_hold(self, files: FileSystem) -> None:
        """At the largest position there is, it finds no room or takes that of its bytes, as in memory: not more."""
        file = files.open("log", create=True)
        try:
            file.write_at(2**63 - 2, b"x")
        except OutOfSpaceError:
            assert file.size() == 0
        else:
            assert (file.size(), bytes(file.read_at(2**63 - 2, 9))) == (2**63 - 1, b"x")

    def test_names(self, files: FileSystem) -> None:
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

    def test_an_open_file_outlives_its_name(self, files: FileSystem) -> None:
        """A file that was removed, renamed or replaced stays what it was for those who have it open."""
        file = files.open("log", create=True)
        file.append(b"old")
        files.open("new", create=True).append(b"new")
        files.rename("new", "log")
        file.append(b"er")
        assert bytes(file.read_at(0, 9)) == b"older"
        assert bytes(files.open_for_reads("log").read_at(0, 9)) == b"new"

    def test_errors_name_the_path_and_the_operation(self, files: FileSystem) -> None:
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

    def test_a_read_only_file_is_read_renamed_and_removed(self, files: FileSystem) -> None:
        """Taking the right to write takes nothing else."""
        files.open("snapshot", create=True).append(b"bytes")
        files.set_read_only("snapshot")
        files.rename("snapshot", "renamed")
        assert bytes(files.open_for_reads("renamed").read_at(0, 9)) == b"bytes"
        files.remove("renamed")

    def test_a_file_is_synced_in_another_thread(self, files: FileSystem) -> None:
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
                failures.append(repr(error))

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
        thread.join(_HANG_S)
        assert failures == []
        assert syncs[0] > 0
        assert bytes(file.read_at(0, 9999)) == expected

    def test_what_was_appended_since_a_sync_is_read_after_it(self, files: FileSystem) -> None:
        """A sync changes nothing that is read, however often it is done."""
        file = files.open("log", create=True)
        for data in (b"one", b"two", b"three"):
            file.append(data)
            file.sync()
            file.sync()
        file.truncate(6)
        file.sync()
        assert bytes(file.read_at(0, 99)) == b"onetwo"

    def test_a_lock_has_one_owner(self, files: FileSystem) -> None:
        """A second owner is refused until the first releases the lock; the file stays; the refusal changes nothing."""
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

    def test_a_file_is_replaced(self, files: FileSystem) -> None:
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
