# SPDX-License-Identifier: Apache-2.0
"""The clauses of Kafka's tests of snapshot files.

They are FileRawSnapshotTest, NotifyingRawSnapshotWriterTest, RecordsSnapshotWriterTest, SnapshotWriterReaderTest and
SnapshotsTest.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from raftlog.errors import SnapshotFrozenError, UnsupportedVersionError
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.files.file_names import FileState
from raftlog.records.messages.control import ControlRecordType
from raftlog.snapshot.directory import SnapshotDirectory
from raftlog.snapshot.memory_raw import MemoryRawSnapshotWriter
from raftlog.snapshot.notifying import NotifyingRawSnapshotWriter
from raftlog.snapshot.order import ControlBatch
from raftlog.snapshot.paths import parse_snapshot_name, partial_name, snapshot_name
from raftlog.snapshot.reader import RecordsSnapshotReader
from raftlog.snapshot.writer import RecordsSnapshotWriter
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.testing.contracts.made_batches import TIMESTAMP, raft_batch
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import VoterSet
from tests.log.control_batches import voters
from tests.raises import raised

ID = OffsetAndEpoch(10, 3)
BATCH = raft_batch(0, 3)


@pytest.fixture
def snapshots(tmp_path: Path) -> SnapshotDirectory:
    """A directory without snapshots."""
    return SnapshotDirectory(LocalFileSystem(), str(tmp_path))


def _read(snapshots: SnapshotDirectory) -> bytes:
    reader = snapshots.open(ID)
    assert reader is not None
    with reader:
        return bytes(reader.read_at(0, reader.size()))


def _write(snapshots: SnapshotDirectory, *parts: bytes) -> None:
    with snapshots.create(ID) as writer:
        for part in parts:
            writer.append(part)
        writer.freeze()


# FileRawSnapshotTest


def test_writing_snapshot(snapshots: SnapshotDirectory, tmp_path: Path) -> None:
    """The size of the file is that of what was appended."""
    with snapshots.create(ID) as writer:
        for count in range(1, 6):
            writer.append(BATCH)
            assert writer.size_bytes == count * len(BATCH)
        writer.freeze()
    assert (tmp_path / snapshot_name(ID)).stat().st_size == 5 * len(BATCH)


def test_write_read_snapshot(snapshots: SnapshotDirectory) -> None:
    """What was appended is read."""
    _write(snapshots, BATCH, BATCH)
    assert _read(snapshots) == BATCH * 2


@pytest.mark.parametrize("size", [1, 7, len(BATCH) - 1, len(BATCH) + 1])
def test_partial_write_read_snapshot(snapshots: SnapshotDirectory, size: int) -> None:
    """Slices of any size make the same snapshot, as a follower fetches them, and as a leader serves them."""
    whole = BATCH * 3
    _write(snapshots, *(whole[start : start + size] for start in range(0, len(whole), size)))
    reader = snapshots.open(ID)
    assert reader is not None
    with reader:
        slices = [bytes(reader.read_at(start, size)) for start in range(0, reader.size(), size)]
    assert b"".join(slices) == whole


def test_batch_write_read_snapshot(snapshots: SnapshotDirectory) -> None:
    """A snapshot is split into the batches that were appended."""
    batches = [raft_batch(offset, 3) for offset in range(5)]
    _write(snapshots, *batches)
    found = list(split(BufferSource(_read(snapshots))))
    assert [each.base_offset for each in found if isinstance(each, RecordBatch)] == [0, 1, 2, 3, 4]


def test_buffer_write_read_snapshot(snapshots: SnapshotDirectory) -> None:
    """A part of a larger buffer can be appended."""
    with snapshots.create(ID) as writer:
        writer.append(memoryview(b"before" + BATCH + b"after")[6:-5])
        writer.freeze()
    assert _read(snapshots) == BATCH


def test_aborted_snapshot(snapshots: SnapshotDirectory, tmp_path: Path) -> None:
    """A snapshot that is closed before it is frozen leaves no file."""
    with snapshots.create(ID) as writer:
        writer.append(BATCH)
    assert list(tmp_path.iterdir()) == []
    assert snapshots.open(ID) is None


def test_append_to_frozen_snapshot(snapshots: SnapshotDirectory) -> None:
    """A frozen snapshot takes nothing more."""
    with snapshots.create(ID) as writer:
        writer.append(BATCH)
        writer.freeze()
        assert raised(lambda: writer.append(BATCH)) is SnapshotFrozenError
    assert _read(snapshots) == BATCH


def test_create_snapshot_with_same_id(snapshots: SnapshotDirectory) -> None:
    """A snapshot that is created again replaces the one before."""
    _write(snapshots, BATCH)
    _write(snapshots, BATCH, BATCH)
    assert _read(snapshots) == BATCH * 2


# NotifyingRawSnapshotWriterTest


def test_freeze_close() -> None:
    """The callback is called once, with the id, after the freeze and not at the close."""
    called: list[OffsetAndEpoch] = []
    frozen: dict[OffsetAndEpoch, bytes] = {}
    with NotifyingRawSnapshotWriter(MemoryRawSnapshotWriter(frozen, ID), called.append) as writer:
        writer.append(BATCH)
        assert called == []
        writer.freeze()
        assert called == [ID]
    assert called == [ID]
    assert list(frozen) == [ID]


class _FailingWriter(MemoryRawSnapshotWriter):
    """Fails to freeze."""

    is_closed = False

    def prepare_freeze(self) -> object:  # type: ignore[override]  # it returns nothing
        """Fail."""
        raise OSError("the disk failed")

    def close(self) -> None:
        """Close, and say so."""
        self.is_closed = True
        super().close()


def test_failing_freeze() -> None:
    """If freezing fails, the callback is not called, and the writer is still closed."""
    called: list[OffsetAndEpoch] = []
    failing = _FailingWriter({}, ID)
    with pytest.raises(OSError, match="the disk failed"), NotifyingRawSnapshotWriter(failing, called.append) as writer:
        writer.freeze()
    assert called == []
    assert failing.is_closed


def test_close_without_freeze() -> None:
    """Without a freeze the callback is not called."""
    called: list[OffsetAndEpoch] = []
    with NotifyingRawSnapshotWriter(MemoryRawSnapshotWriter({}, ID), called.append) as writer:
        writer.append(BATCH)
    assert called == []


# RecordsSnapshotWriterTest


def _snapshot(
    level: KRaftVersion, voter_set: VoterSet | None, values: tuple[bytes, ...] = (b"value",)
) -> RecordsSnapshotReader:
    frozen: dict[OffsetAndEpoch, bytes] = {}
    with RecordsSnapshotWriter(
        MemoryRawSnapshotWriter(frozen, ID),
        TIMESTAMP,
        last_contained_log_timestamp=42,
        kraft_version=level,
        voter_set=voter_set,
    ) as writer:
        if values:
            writer.append(values, TIMESTAMP)
        writer.freeze(TIMESTAMP)
    return RecordsSnapshotReader(BufferSource(frozen[ID]), ID)


def _types(reader: RecordsSnapshotReader) -> Iterator[list[ControlRecordType | int]]:
    for batch in reader:
        yield [record.type for record in batch.records] if isinstance(batch, ControlBatch) else []


HEADER, FOOTER = ControlRecordType.SNAPSHOT_HEADER, ControlRecordType.SNAPSHOT_FOOTER
VERSION, VOTERS = ControlRecordType.KRAFT_VERSION, ControlRecordType.KRAFT_VOTERS


def test_builder_kraft_version_0() -> None:
    """At level 0 the first batch has the header alone."""
    assert list(_types(_snapshot(KRaftVersion.KRAFT_VERSION_0, None))) == [[HEADER], [], [FOOTER]]


def test_builder_kraft_version_0_with_voter_set() -> None:
    """At level 0 there are no voters to write."""
    assert raised(lambda: _snapshot(KRaftVersion.KRAFT_VERSION_0, voters(1, 2))) is UnsupportedVersionError


def test_builder_kraft_version_1_with_voter_set() -> None:
    """At level 1 header, kraft.version and voters are one batch, and the footer is the last record."""
    reader = _snapshot(KRaftVersion.KRAFT_VERSION_1, voters(1, 2))
    assert list(_types(reader)) == [[HEADER, VERSION, VOTERS], [], [FOOTER]]
    assert (reader.kraft_version, reader.voter_set) == (KRaftVersion.KRAFT_VERSION_1, voters(1, 2))


def test_builder_kraft_version_1_without_voter_set() -> None:
    """Without voters, the first batch has header and kraft.version."""
    assert list(_types(_snapshot(KRaftVersion.KRAFT_VERSION_1, None))) == [[HEADER, VERSION], [], [FOOTER]]


# SnapshotWriterReaderTest


def test_snapshot_delimiters() -> None:
    """An empty snapshot is a header, with the timestamp that it was given, and a footer."""
    reader = _snapshot(KRaftVersion.KRAFT_VERSION_0, None, values=())
    assert list(_types(reader)) == [[HEADER], [FOOTER]]
    assert reader.last_contained_log_timestamp == 42
    assert (reader.last_contained_log_offset, reader.last_contained_log_epoch) == (9, 3)


def test_snapshot_writer_reader_writing_snapshot() -> None:
    """Records are read in the order in which they were appended."""
    reader = _snapshot(KRaftVersion.KRAFT_VERSION_0, None, values=(b"a", b"b", b"c"))
    data = [batch for batch in reader if isinstance(batch, RecordBatch)]
    assert [record.value for batch in data for record in batch.records()] == [b"a", b"b", b"c"]


def _writer(frozen: dict[OffsetAndEpoch, bytes]) -> RecordsSnapshotWriter:
    return RecordsSnapshotWriter(
        MemoryRawSnapshotWriter(frozen, ID),
        TIMESTAMP,
        last_contained_log_timestamp=0,
        kraft_version=KRaftVersion.KRAFT_VERSION_0,
    )


def test_snapshot_writer_reader_aborted_snapshot() -> None:
    """A snapshot that is not frozen cannot be read."""
    frozen: dict[OffsetAndEpoch, bytes] = {}
    with _writer(frozen) as writer:
        writer.append([b"a"], TIMESTAMP)
    assert frozen == {}


def test_snapshot_writer_reader_append_to_frozen_snapshot() -> None:
    """A frozen snapshot takes no records."""
    with _writer({}) as writer:
        writer.freeze(TIMESTAMP)
        assert raised(lambda: writer.append([b"a"], TIMESTAMP)) is SnapshotFrozenError


# SnapshotsTest


def test_valid_snapshot_filename() -> None:
    """The name of a snapshot is taken apart into its id."""
    found = parse_snapshot_name(snapshot_name(ID))
    assert found is not None
    assert (found.snapshot_id, found.state) == (ID, FileState.CURRENT)


def test_valid_partial_snapshot_filename() -> None:
    """So is that of one that is being written."""
    found = parse_snapshot_name(partial_name(ID, "12345"))
    assert found is not None
    assert (found.snapshot_id, found.state) == (ID, FileState.PART)


def test_valid_deleted_snapshot_filename() -> None:
    """And that of one that is marked as deleted."""
    found = parse_snapshot_name(snapshot_name(ID) + ".deleted")
    assert found is not None
    assert (found.snapshot_id, found.state) == (ID, FileState.DELETED)


@pytest.mark.parametrize(
    "name",
    [
        "00000000000000000000.log",
        "00000000000000000000.index",
        "00000000000000000010.snapshot",
        "leader-epoch-checkpoint",
        "00000000000000000010.checkpoint",
        "partition.metadata",
    ],
)
def test_invalid_snapshot_filenames(name: str) -> None:
    """Other files of a log are no snapshots."""
    assert parse_snapshot_name(name) is None


def test_delete_snapshot(snapshots: SnapshotDirectory, tmp_path: Path) -> None:
    """A snapshot is deleted under its name, and also after it was renamed to be deleted later, as Kafka does."""
    _write(snapshots, BATCH)
    assert snapshots.delete(ID)
    assert list(tmp_path.iterdir()) == []
    _write(snapshots, BATCH)
    path = tmp_path / snapshot_name(ID)
    path.rename(f"{path}.deleted")
    snapshots.clean_up()
    assert list(tmp_path.iterdir()) == []
