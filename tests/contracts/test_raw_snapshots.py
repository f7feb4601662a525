# SPDX-License-Identifier: Apache-2.0
"""The contract of raw snapshots: in memory, in files, and wrapped by another writer."""

from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import InvalidSnapshotIdError, SnapshotFrozenError, SnapshotPositionError
from raftlog.file_system import FileSystem
from raftlog.offsets import OffsetAndEpoch
from raftlog.snapshot.directory import SnapshotDirectory
from raftlog.snapshot.memory_raw import MemoryRawSnapshotReader, MemoryRawSnapshotWriter
from raftlog.snapshot.notifying import NotifyingRawSnapshotWriter
from raftlog.snapshot.raw import RawSnapshotReader, RawSnapshotWriter
from raftlog.snapshot.verifying import ReadableRawSnapshotWriter
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem

ID = OffsetAndEpoch(42, 3)
OTHER_ID = OffsetAndEpoch(50, 3)


class Place(Protocol):
    """Where snapshots are written, and read again."""

    def write(self, snapshot_id: OffsetAndEpoch) -> RawSnapshotWriter:
        """Begin a snapshot."""
        ...

    def read(self, snapshot_id: OffsetAndEpoch) -> RawSnapshotReader | None:
        """Open a frozen snapshot."""
        ...

    def ids(self) -> list[OffsetAndEpoch]:
        """Say which snapshots are frozen."""
        ...


class Memory:
    """Snapshots in a dict."""

    def __init__(self) -> None:
        self.snapshots: dict[OffsetAndEpoch, bytes] = {}

    def write(self, snapshot_id: OffsetAndEpoch) -> ReadableRawSnapshotWriter:
        return MemoryRawSnapshotWriter(self.snapshots, snapshot_id)

    def read(self, snapshot_id: OffsetAndEpoch) -> RawSnapshotReader | None:
        data = self.snapshots.get(snapshot_id)
        return None if data is None else MemoryRawSnapshotReader(snapshot_id, data)

    def ids(self) -> list[OffsetAndEpoch]:
        return list(self.snapshots)


class Files:
    """Snapshots in files."""

    def __init__(self, file_system: FileSystem, directory: str) -> None:
        file_system.make_directory(directory)
        self._directory = SnapshotDirectory(file_system, directory)

    def write(self, snapshot_id: OffsetAndEpoch) -> ReadableRawSnapshotWriter:
        return self._directory.create(snapshot_id)

    def read(self, snapshot_id: OffsetAndEpoch) -> RawSnapshotReader | None:
        return self._directory.open(snapshot_id)

    def ids(self) -> list[OffsetAndEpoch]:
        return list(self._directory.snapshot_ids())


class Notifying(Memory):
    """Snapshots in a dict, by a writer around another one."""

    def write(self, snapshot_id: OffsetAndEpoch) -> RawSnapshotWriter:  # type: ignore[override]  # it is not read back
        return NotifyingRawSnapshotWriter(super().write(snapshot_id), lambda _: None)


def place_of(form: str, path: Path) -> Memory | Files:
    """Make an empty place of a form."""
    match form:
        case "local files":
            return Files(LocalFileSystem(), str(path))
        case "memory files":
            return Files(MemoryFileSystem(), "log")
        case _:
            return Memory()


@pytest.fixture(params=["memory", "memory files", "local files", "notifying"], scope="module")
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Make a place of each form; the tests of this module leave it empty of ``OTHER_ID``."""
    form = str(request.param)
    return Notifying() if form == "notifying" else place_of(form, tmp_path_factory.mktemp("snapshots"))


def contents(place: Place, snapshot_id: OffsetAndEpoch = ID) -> bytes:
    """Return all bytes of a snapshot."""
    reader = place.read(snapshot_id)
    assert reader is not None
    with reader:
        return bytes(reader.read_at(0, reader.size()))


def frozen(place: Place, data: bytes, snapshot_id: OffsetAndEpoch = ID) -> RawSnapshotWriter:
    """Write a snapshot."""
    writer = place.write(snapshot_id)
    writer.append(data)
    writer.freeze()
    return writer


@given(chunks=st.lists(st.binary(max_size=40), max_size=8), view=st.booleans())
def test_appended_batches_are_read(place: Place, chunks: list[bytes], view: bool) -> None:
    """A frozen snapshot has all bytes of all chunks, of whatever sizes, in order."""
    with place.write(ID) as writer:
        for chunk in chunks:
            size = writer.size_bytes
            writer.append(memoryview(chunk) if view else chunk)
            assert writer.size_bytes == size + len(chunk)
        writer.freeze()
    assert contents(place) == b"".join(chunks)
    assert writer.size_bytes == len(b"".join(chunks))


@given(data=st.binary(max_size=40), position=st.integers(0, 60), size=st.integers(0, 60))
def test_any_part_is_read(place: Place, data: bytes, position: int, size: int) -> None:
    """A read returns the bytes at its position, and fewer than requested only at the end."""
    frozen(place, data)
    with place.read(ID) or pytest.fail("it is frozen") as reader:
        assert bytes(reader.read_at(position, size)) == data[position : position + size]
        assert reader.size() == len(data)
        assert reader.snapshot_id == ID


def test_nothing_is_there_before_it_is_frozen(place: Place) -> None:
    """A snapshot that is being written, or was given up, is neither listed nor opened."""
    with place.write(OTHER_ID) as writer:
        writer.append(b"data")
        assert not writer.is_frozen
        assert writer.snapshot_id == OTHER_ID
        assert OTHER_ID not in place.ids()
        assert place.read(OTHER_ID) is None
    assert OTHER_ID not in place.ids()
    assert place.read(OTHER_ID) is None
    assert not writer.is_frozen


def test_an_error_inside_the_block_leaves_nothing(place: Place) -> None:
    """Leaving the block by an exception aborts the snapshot, and the exception propagates."""
    with pytest.raises(TypeError), place.write(OTHER_ID) as writer:
        writer.append("no bytes")  # type: ignore[arg-type]
    assert place.read(OTHER_ID) is None


def test_a_frozen_snapshot_takes_nothing_more(place: Place) -> None:
    """Appends and freezes after the freeze are refused, and the bytes stay."""
    writer = frozen(place, b"data")
    with pytest.raises(SnapshotFrozenError):
        writer.append(b"more")
    with pytest.raises(SnapshotFrozenError):
        writer.freeze()
    assert writer.is_frozen
    assert writer.size_bytes == 4
    assert contents(place) == b"data"


def test_a_chunk_must_follow(place: Place) -> None:
    """A chunk with a position is taken where the bytes written end, and nowhere else."""
    with place.write(ID) as writer:
        writer.append_at(0, b"one")
        for position in (-1, 0, 2, 4):
            with pytest.raises(SnapshotPositionError):
                writer.append_at(position, b"two")
        writer.append_at(3, memoryview(b"two"))
        writer.freeze()
        with pytest.raises(SnapshotFrozenError):
            writer.append_at(6, b"more")
    assert contents(place) == b"onetwo"


def test_a_closed_snapshot_takes_nothing_more(place: Place) -> None:
    """Appends and freezes after the close are refused, and nothing comes of it."""
    writer = place.write(OTHER_ID)
    writer.close()
    with pytest.raises(SnapshotFrozenError):
        writer.append(b"more")
    with pytest.raises(SnapshotFrozenError):
        writer.freeze()
    assert not writer.is_frozen
    assert place.read(OTHER_ID) is None


def test_closing_is_harmless(place: Place) -> None:
    """A frozen snapshot stays when its writer is closed, once or twice, and so does one whose reader is."""
    writer = frozen(place, b"data")
    writer.close()
    writer.close()
    reader = place.read(ID)
    assert reader is not None
    reader.close()
    reader.close()
    assert contents(place) == b"data"


def test_two_writers_of_one_id_do_not_meet(place: Place) -> None:
    """Each has bytes of its own; the one that is frozen last has the name."""
    with place.write(ID) as one, place.write(ID) as other:
        one.append(b"one")
        other.append(b"other")
        one.freeze()
        assert contents(place) == b"one"
        other.freeze()
    assert contents(place) == b"other"


@pytest.mark.parametrize("snapshot_id", [OffsetAndEpoch(-1, 0), OffsetAndEpoch(0, -1), OffsetAndEpoch(2**63, 0)])
def test_an_id_without_a_name_is_refused(place: Place, snapshot_id: OffsetAndEpoch) -> None:
    """An id that no file name can hold is refused, in memory too."""
    with pytest.raises(InvalidSnapshotIdError):
        place.write(snapshot_id)


@pytest.mark.parametrize("form", ["memory", "memory files", "local files"])
def test_what_was_written_is_read_back(form: str, tmp_path: Path) -> None:
    """Until it is frozen or closed, the writer returns what was written, and accepts more."""
    with place_of(form, tmp_path).write(ID) as writer:
        writer.append(b"abc")
        view = writer.read_at(1, 10)
        writer.append(b"def")
        assert (bytes(view), bytes(writer.read_at(1, 3)), writer.size()) == (b"bc", b"bcd", 6)
    with pytest.raises(SnapshotFrozenError):
        writer.read_at(0, 1)
    with pytest.raises(SnapshotFrozenError):
        writer.size()
