# SPDX-License-Identifier: Apache-2.0
"""The file of a log's epochs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import DecodeError, MissingFileError, StorageError
from raftlog.file_system import join, replace_file
from raftlog.log.epochs import LeaderEpochs
from raftlog.offsets import EpochEntry
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.recovery.leader_epoch_checkpoint import LeaderEpochCheckpoint
from raftlog.testing.crash_points import Promise, enumerate_crashes
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.golden_files import GOLDEN

growing = st.lists(st.tuples(st.integers(1, 1000), st.integers(1, 2**40)), max_size=5)


def cache_of(steps: list[tuple[int, int]]) -> LeaderEpochs:
    """Return epochs that grow by these steps."""
    epoch, offset, entries = 0, 0, []
    for more_epochs, more_offsets in steps:
        epoch, offset = epoch + more_epochs, offset + more_offsets
        entries.append(EpochEntry(epoch, offset))
    return LeaderEpochs(entries)


def file_with(data: bytes) -> LeaderEpochCheckpoint:
    """Return the file of a directory, with these bytes."""
    file_system = MemoryFileSystem()
    replace_file(file_system, "leader-epoch-checkpoint", data)
    return LeaderEpochCheckpoint(file_system, ".")


@given(growing)
def test_what_is_stored_is_loaded(steps: list[tuple[int, int]]) -> None:
    """Any epochs come back as they were stored."""
    file = LeaderEpochCheckpoint(MemoryFileSystem(), ".")
    file.store(cache_of(steps))
    assert file.load().entries == cache_of(steps).entries


@given(st.binary(max_size=40) | st.text("0123456789 \n-", max_size=40).map(str.encode))
def test_any_bytes_are_epochs_or_a_typed_error(data: bytes) -> None:
    """Whatever the file holds, it is loaded, or a decode error names it."""
    try:
        epochs = file_with(data).load()
        assert LeaderEpochs(epochs.entries) == epochs
    except DecodeError as error:
        assert error.path == "./leader-epoch-checkpoint"  # noqa: PT017


@pytest.mark.parametrize("data", [b"0\n2\n3 0\n3 5\n", b"0\n2\n3 5\n4 5\n", b"0\n2\n3 5\n2 9\n"])
def test_epochs_must_grow(data: bytes) -> None:
    """A file that reads, but whose epochs or offsets do not grow, is damaged."""
    with pytest.raises(DecodeError, match="not strictly increasing"):
        file_with(data).load()


def test_a_missing_file_has_an_error_of_its_own() -> None:
    """A missing file has its own error: the caller rebuilds it. An empty one, as Kafka makes it, has no epochs."""
    with pytest.raises(MissingFileError):
        LeaderEpochCheckpoint(MemoryFileSystem(), ".").load()
    assert len(file_with(b"").load()) == 0


def test_a_huge_file_is_refused() -> None:
    """A file of more than 16 MiB is not read."""
    with pytest.raises(DecodeError, match="bytes"):
        file_with(b"0\n" * (8 * 1024 * 1024 + 1)).load()


def test_kafkas_file() -> None:
    """The file of a real Kafka loads, and is written back byte for byte."""
    directory = GOLDEN / "dynamic-quorum/data/n1/__cluster_metadata-0"
    epochs = LeaderEpochCheckpoint(LocalFileSystem(), str(directory)).load()
    assert epochs.entries == (EpochEntry(2, 0), EpochEntry(3, 67), EpochEntry(4, 148))
    copy = MemoryFileSystem()
    LeaderEpochCheckpoint(copy, ".").store(epochs)
    assert copy.contents() == {"leader-epoch-checkpoint": (directory / "leader-epoch-checkpoint").read_bytes()}


def test_every_crash_leaves_the_old_or_the_new() -> None:
    """At no point of a store does a crash leave anything but the old epochs or the new; nor the old after it."""
    old, new = cache_of([(1, 1)]), cache_of([(1, 1), (1, 5)])
    start = MemoryFileSystem()
    LeaderEpochCheckpoint(start, ".").store(old)

    def scenario(file_system: MemoryFileSystem, promise: Promise) -> None:
        LeaderEpochCheckpoint(file_system, ".").store(new)
        promise(new)

    def check(file_system: MemoryFileSystem, promised: LeaderEpochs | None) -> None:
        found = LeaderEpochCheckpoint(file_system, ".").load().entries
        assert found == new.entries or (promised is None and found == old.entries)

    assert enumerate_crashes(scenario, check, start=start).is_complete


def test_a_directory_that_is_not_there() -> None:
    """Where the directory is missing, both ways give a typed error."""
    file = LeaderEpochCheckpoint(MemoryFileSystem(), join(".", "nowhere"))
    with pytest.raises(StorageError):
        file.store(LeaderEpochs())
    with pytest.raises(MissingFileError):
        file.load()
