# SPDX-License-Identifier: Apache-2.0
"""Writing a snapshot from records."""

import uuid
from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from raftlog.errors import (
    BatchTooLargeError,
    SnapshotError,
    SnapshotFrozenError,
    StorageError,
    UnsupportedVersionError,
)
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.batches.open_batch import KeyedRecord
from raftlog.snapshot.directory import SnapshotDirectory
from raftlog.snapshot.memory_raw import MemoryRawSnapshotWriter
from raftlog.snapshot.paths import BOOTSTRAP_SNAPSHOT_ID
from raftlog.snapshot.raw import RawSnapshotWriter
from raftlog.snapshot.reader import ControlBatch, RecordsSnapshotReader, verify_snapshot
from raftlog.snapshot.writer import RecordsSnapshotWriter
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import Endpoints, ReplicaKey, SupportedVersionRange, VoterNode, VoterSet
from tests.records import vectors
from tests.snapshot.snapshot_bytes import ID
from tests.strategies import TIMESTAMP, codecs, headers, nullable_bytes

LEVEL_0, LEVEL_1 = KRaftVersion
VOTERS = VoterSet.of(
    [
        VoterNode(
            ReplicaKey(1, uuid.UUID("01020304-0506-0708-090a-0b0c0d0e0f10")),
            Endpoints.of({"CONTROLLER": ("localhost", 9093)}),
            SupportedVersionRange(0, 1),
        )
    ]
)

values = st.binary(min_size=1, max_size=100) | st.sampled_from([b"v" * 600, b"v"])
value_lists = st.lists(st.lists(values, min_size=1, max_size=5), max_size=8)


class Written:
    """A snapshot that is being written into memory."""

    def __init__(
        self,
        snapshot_id: OffsetAndEpoch = ID,
        *,
        kraft_version: KRaftVersion = LEVEL_1,
        voter_set: VoterSet | None = None,
        compression_type: CompressionType = CompressionType.NONE,
        max_batch_size_bytes: int = 8192,
    ) -> None:
        self.snapshots: dict[OffsetAndEpoch, bytes] = {}
        self.raw = MemoryRawSnapshotWriter(self.snapshots, snapshot_id)
        self.writer = RecordsSnapshotWriter(
            self.raw,
            TIMESTAMP,
            last_contained_log_timestamp=TIMESTAMP - 1000,
            kraft_version=kraft_version,
            voter_set=voter_set,
            compression_type=compression_type,
            max_batch_size_bytes=max_batch_size_bytes,
        )

    def frozen(self, now_ms: int = TIMESTAMP) -> bytes:
        """Freeze it and return its bytes."""
        size = self.writer.freeze(now_ms)
        data = self.snapshots[self.writer.snapshot_id]
        assert size == len(data)
        return data


def batches(snapshot: bytes) -> list[RecordBatch]:
    """Split a snapshot."""
    found = list(split(BufferSource(snapshot)))
    assert all(isinstance(batch, RecordBatch) for batch in found)
    return [batch for batch in found if isinstance(batch, RecordBatch)]


def size_of(some: Sequence[bytes], base_offset: int) -> int:
    """Return what a batch of values takes."""
    builder = RecordBatchBuilder(base_offset)
    builder.extend([(TIMESTAMP, None, value) for value in some])
    return len(builder.build())


def kafka_batches(appends: Sequence[Sequence[bytes]], first_offset: int, limit: int) -> list[list[bytes]]:
    """Say how Kafka's writer groups values: naively, by its rules.

    A list that does not fit opens a new batch. Whenever a batch is complete, it is written, and the open one with it;
    the header is complete from the start.
    """
    done: list[list[bytes]] = []
    current: list[bytes] = []
    is_due = True
    offset = first_offset
    for some in appends:
        if current and size_of([*current, *some], offset) > limit:
            done.append(current)
            offset += len(current)
            current, is_due = [], True
        current = [*current, *some]
        if is_due:
            done.append(current)
            offset += len(current)
            current, is_due = [], False
    return [*done, current] if current else done


@given(appends=value_lists, limit=st.sampled_from([400, 1024, 8192]), level=st.sampled_from(KRaftVersion))
def test_appended_records_are_read(appends: list[list[bytes]], limit: int, level: KRaftVersion) -> None:
    """All values are read in order, in batches within the limit that are those of Kafka, header first, footer last."""
    assume(all(size_of(some, 100) <= limit for some in appends))
    written = Written(kraft_version=level, max_batch_size_bytes=limit)
    for some in appends:
        written.writer.append(some, TIMESTAMP)
    snapshot = written.frozen()
    header, *data, footer = RecordsSnapshotReader(BufferSource(snapshot), ID)
    assert isinstance(header, ControlBatch)
    assert isinstance(footer, ControlBatch)
    assert [len(header.records), len(footer.records)] == [1 + level, 1]
    read = [[record.value for record in batch.records()] for batch in data if isinstance(batch, RecordBatch)]
    assert read == kafka_batches(appends, 1 + level, limit)
    assert [value for batch in read for value in batch] == [value for some in appends for value in some]
    assert all(batch.size_bytes <= limit for batch in batches(snapshot))


@given(appends=value_lists, codec=codecs, voters=st.sampled_from([None, VOTERS]))
def test_what_is_written_verifies(appends: list[list[bytes]], codec: CompressionType, voters: VoterSet | None) -> None:
    """A snapshot of any records, with any codec, is whole, and its header says what was given."""
    written = Written(compression_type=codec, voter_set=voters)
    for some in appends:
        written.writer.append(some, TIMESTAMP)
    snapshot = written.frozen()
    summary = verify_snapshot(BufferSource(snapshot), ID)
    assert summary.header.last_contained_log_timestamp == TIMESTAMP - 1000
    assert (summary.header.kraft_version, summary.header.voter_set) == (LEVEL_1, voters)
    assert summary.record_count == sum(map(len, appends))
    assert summary.size_bytes == len(snapshot)


@given(st.lists(st.tuples(nullable_bytes, nullable_bytes, headers), min_size=1, max_size=5))
def test_records_may_have_keys_and_headers(
    rows: list[tuple[bytes | None, bytes | None, list[tuple[bytes, bytes]]]],
) -> None:
    """Keys, nulls and headers are read as they were given."""
    written = Written()
    written.writer.append_records([KeyedRecord(*row) for row in rows], TIMESTAMP)
    _, data, _ = RecordsSnapshotReader(BufferSource(written.frozen()), ID)
    assert isinstance(data, RecordBatch)
    assert [(record.key, record.value, list(record.headers)) for record in data.records()] == rows


def test_the_worked_example_of_kafka() -> None:
    """One voter and one FeatureLevelRecord give the 332 bytes that Kafka's own classes wrote."""
    written = Written(BOOTSTRAP_SNAPSHOT_ID, voter_set=VOTERS)
    metadata_version = bytes.fromhex("010c00116d657461646174612e76657273696f6e001900")
    written.writer.append([metadata_version], TIMESTAMP)
    assert written.frozen() == vectors.SNAPSHOT
    assert len(vectors.SNAPSHOT) == 332


def test_every_batch_has_its_time_and_epoch() -> None:
    """A batch has the time of the append that opened it, and the epoch of the snapshot's id."""
    written = Written(OffsetAndEpoch(9, 5))
    for step in (1, 2, 3):
        written.writer.append([b"v"], TIMESTAMP + step)
    found = batches(written.frozen(TIMESTAMP + 9))
    assert [batch.max_timestamp - TIMESTAMP for batch in found] == [0, 1, 2, 9]
    assert [batch.base_timestamp for batch in found] == [batch.max_timestamp for batch in found]
    assert {batch.partition_leader_epoch for batch in found} == {5}
    assert [batch.base_offset for batch in found] == [0, 2, 3, 5]


def test_level_0_writes_the_header_alone() -> None:
    """At kraft.version 0 there is neither a version nor voters."""
    _, footer = batches(Written(kraft_version=LEVEL_0).frozen())
    assert footer.base_offset == 1


def test_level_0_has_no_voters() -> None:
    """Static voters are never written: a voter set at level 0 is refused, before anything is written."""
    with pytest.raises(UnsupportedVersionError):
        Written(kraft_version=LEVEL_0, voter_set=VOTERS)


def test_level_1_may_have_no_voters() -> None:
    """A directory that was formatted without initial controllers has a version and no voters."""
    _, footer = batches(Written().frozen())
    assert footer.base_offset == 2


def test_a_list_that_does_not_fit_is_refused() -> None:
    """A list goes into one batch or is refused; what was there before and comes after is written."""
    written = Written(max_batch_size_bytes=1000)
    written.writer.append([b"before"], TIMESTAMP)
    with pytest.raises(BatchTooLargeError):
        written.writer.append([b"v" * 100] * 10, TIMESTAMP)
    written.writer.append([b"after"], TIMESTAMP)
    _, one, other, _ = batches(written.frozen())
    assert [record.value for batch in (one, other) for record in batch.records()] == [b"before", b"after"]


@pytest.mark.parametrize("some", [[], [b""], [b"v", b""]])
def test_empty_values_are_refused(some: list[bytes]) -> None:
    """Kafka's readers stop at an empty value, so none is written."""
    written = Written()
    with pytest.raises(ValueError, match="record"):
        written.writer.append(some, TIMESTAMP)
    assert len(batches(written.frozen())) == 2


def test_a_writer_that_is_not_empty_is_refused() -> None:
    """The header is the first thing in a snapshot."""
    raw = MemoryRawSnapshotWriter({}, ID)
    raw.append(b"data")
    with pytest.raises(SnapshotError):
        RecordsSnapshotWriter(raw, TIMESTAMP, last_contained_log_timestamp=0, kraft_version=LEVEL_1)
    assert raw.size_bytes == 4


def test_a_frozen_snapshot_takes_nothing_more() -> None:
    """Appends and a second freeze are refused, and the bytes stay, with one footer."""
    written = Written()
    data = written.frozen()
    for refused in (
        lambda: written.writer.append([b"v"], TIMESTAMP),
        lambda: written.writer.append_records([KeyedRecord(None, b"v")], TIMESTAMP),
        lambda: written.writer.freeze(TIMESTAMP),
    ):
        with pytest.raises(SnapshotFrozenError, match="frozen"):
            refused()
    written.writer.close()
    assert written.writer.is_frozen
    assert written.snapshots == {ID: data}


def test_a_snapshot_that_was_given_up_leaves_nothing() -> None:
    """Leaving the block without a freeze leaves no snapshot, and takes nothing more."""
    written = Written()
    with written.writer as writer:
        writer.append([b"v"], TIMESTAMP)
    assert written.snapshots == {}
    with pytest.raises(SnapshotFrozenError, match="closed"):
        writer.append([b"v"], TIMESTAMP)
    with pytest.raises(SnapshotFrozenError, match="closed"):
        writer.freeze(TIMESTAMP)


class FullDisk(MemoryRawSnapshotWriter):
    """Has no room for more than a header."""

    def append(self, data: bytes | memoryview) -> None:
        if self.size_bytes:
            raise StorageError("disk", "append", "full")
        super().append(data)


def begun(raw: RawSnapshotWriter) -> RecordsSnapshotWriter:
    """Begin a snapshot."""
    return RecordsSnapshotWriter(raw, TIMESTAMP, last_contained_log_timestamp=0, kraft_version=LEVEL_1)


def test_a_failing_disk_ends_it() -> None:
    """After a StorageError the writer is closed: no footer is written after missing bytes."""
    snapshots: dict[OffsetAndEpoch, bytes] = {}
    writer = begun(FullDisk(snapshots, ID))
    with pytest.raises(StorageError):
        writer.append([b"v"], TIMESTAMP)
    with pytest.raises(SnapshotFrozenError):
        writer.freeze(TIMESTAMP)
    assert snapshots == {}


def test_a_failing_freeze_is_not_tried_again() -> None:
    """A freeze that failed leaves nothing, and a second one is refused."""
    snapshots: dict[OffsetAndEpoch, bytes] = {}
    writer = begun(FullDisk(snapshots, ID))
    with pytest.raises(StorageError):
        writer.freeze(TIMESTAMP)
    with pytest.raises(SnapshotFrozenError):
        writer.freeze(TIMESTAMP)
    assert snapshots == {}


def test_contradictions_of_the_id() -> None:
    """The last contained offset is one before the end offset of the id."""
    writer = Written(OffsetAndEpoch(42, 3)).writer
    assert (writer.last_contained_log_offset, writer.last_contained_log_epoch) == (41, 3)
    assert not writer.is_frozen


def test_closing_lets_the_raw_snapshot_go() -> None:
    """An unfrozen snapshot leaves no file, and accepts no more; closing again is harmless."""
    file_system = MemoryFileSystem((("log", None, False),))
    snapshots = SnapshotDirectory(file_system, "log")
    raw = snapshots.create(OffsetAndEpoch(7, 1))
    level = KRaftVersion.KRAFT_VERSION_0
    writer = RecordsSnapshotWriter(raw, TIMESTAMP, last_contained_log_timestamp=0, kraft_version=level)
    writer.append([b"value"], TIMESTAMP)
    assert len(list(file_system.list("log"))) == 1
    for _ in range(2):
        writer.close()
        assert list(file_system.list("log")) == []
        with pytest.raises(SnapshotFrozenError):
            raw.append(b"more")
