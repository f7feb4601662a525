# SPDX-License-Identifier: Apache-2.0
"""The clauses of Kafka's RecordsIteratorTest: batches of a log, read from memory and from a file."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import CorruptBatchError
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.iterator import BufferSource, ByteSource, Corruption, split
from raftlog.records.messages.control import (
    ControlRecordType,
    ControlValue,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    Voter,
    read_control_record,
)
from raftlog.records.messages.voters import voters_record
from raftlog.snapshot.memory_raw import MemoryRawSnapshotWriter
from raftlog.snapshot.order import ControlBatch
from raftlog.snapshot.reader import RecordsSnapshotReader
from raftlog.snapshot.writer import RecordsSnapshotWriter
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import VoterSet
from tests.log.control_batches import TIMESTAMP, control_bytes, voters

CRC_POSITION = 17

VALUES = st.lists(st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=20), min_size=1, max_size=20)


def _log(batches: list[list[bytes]], codec: CompressionType) -> bytes:
    written, offset = b"", 0
    for values in batches:
        builder = RecordBatchBuilder(offset, partition_leader_epoch=1, compression_type=codec)
        builder.extend([(TIMESTAMP, None, value) for value in values])
        written += builder.build()
        offset += len(values)
    return written


def _read(source: ByteSource) -> list[list[bytes | None]]:
    pieces = list(split(source))
    assert all(isinstance(each, RecordBatch) for each in pieces)
    return [[record.value for record in each.records()] for each in pieces if isinstance(each, RecordBatch)]


def test_empty_records() -> None:
    """No bytes are no batches."""
    assert list(split(BufferSource(b""))) == []


@given(VALUES, st.sampled_from(CompressionType))
def test_memory_records(batches: list[list[bytes]], codec: CompressionType) -> None:
    """Every batch of every codec is read from memory with its records, in order."""
    assert _read(BufferSource(_log(batches, codec))) == batches


@given(VALUES, st.sampled_from(CompressionType))
def test_file_records(batches: list[list[bytes]], codec: CompressionType) -> None:
    """The same from a file."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "log")
        path.write_bytes(_log(batches, codec))
        file = LocalFileSystem().open(str(path))
        try:
            assert _read(file) == batches
        finally:
            file.close()


@given(VALUES, st.integers(0, 3), st.integers(1, 255))
def test_crc_validation(batches: list[list[bytes]], byte: int, change: int) -> None:
    """A changed CRC is found, and so is the batch after it; once restored, everything is read.

    The check can be switched off, to look at what a damaged batch holds.
    """
    right = _log(batches, CompressionType.NONE)
    wrong = bytearray(right)
    wrong[CRC_POSITION + byte] ^= change
    first, *rest = split(BufferSource(bytes(wrong)))
    assert isinstance(first, Corruption)
    assert len(rest) == len(batches) - 1
    unchecked = RecordBatch(bytes(wrong[: len(_log(batches[:1], CompressionType.NONE))]), 0)
    with pytest.raises(CorruptBatchError):
        list(unchecked.records())
    assert [record.value for record in unchecked.records(check_crc=False)] == batches[0]
    wrong[CRC_POSITION + byte] ^= change
    assert _read(BufferSource(bytes(wrong))) == batches


def _snapshot(kraft_version: KRaftVersion, voter_set: VoterSet | None) -> list[ControlBatch | RecordBatch]:
    frozen: dict[OffsetAndEpoch, bytes] = {}
    snapshot_id = OffsetAndEpoch(10, 1)
    with RecordsSnapshotWriter(
        MemoryRawSnapshotWriter(frozen, snapshot_id),
        TIMESTAMP,
        last_contained_log_timestamp=TIMESTAMP,
        kraft_version=kraft_version,
        voter_set=voter_set,
    ) as writer:
        writer.append([b"a", b"b"], TIMESTAMP)
        writer.freeze(TIMESTAMP)
    return list(RecordsSnapshotReader(BufferSource(frozen[snapshot_id]), snapshot_id))


def _control_types(batch: ControlBatch | RecordBatch) -> list[ControlRecordType | int]:
    assert isinstance(batch, ControlBatch)
    return [record.type for record in batch.records]


def test_control_record_iteration_with_kraft_version_0() -> None:
    """A snapshot of level 0 has a header, the data, and a footer at the end."""
    header, data, footer = _snapshot(KRaftVersion.KRAFT_VERSION_0, None)
    assert _control_types(header) == [ControlRecordType.SNAPSHOT_HEADER]
    assert isinstance(data, RecordBatch)
    assert _control_types(footer) == [ControlRecordType.SNAPSHOT_FOOTER]


def test_control_record_iteration_with_kraft_version_1() -> None:
    """A snapshot of level 1 has header, kraft.version and voters in one batch."""
    header, _, footer = _snapshot(KRaftVersion.KRAFT_VERSION_1, voters(1, 2, 3))
    assert _control_types(header) == [
        ControlRecordType.SNAPSHOT_HEADER,
        ControlRecordType.KRAFT_VERSION,
        ControlRecordType.KRAFT_VOTERS,
    ]
    assert _control_types(footer) == [ControlRecordType.SNAPSHOT_FOOTER]


def test_with_all_supported_control_records() -> None:
    """The five control records of raft are read as they were written."""
    values: list[ControlValue] = [
        LeaderChangeMessage(1, (Voter(1),), (Voter(1),)),
        SnapshotHeaderRecord(TIMESTAMP),
        SnapshotFooterRecord(),
        KRaftVersionRecord(1),
        voters_record(voters(1, 2)),
    ]
    (batch,) = split(BufferSource(control_bytes(0, values)))
    assert isinstance(batch, RecordBatch)
    assert [read_control_record(each.key, each.value).value for each in batch.records()] == values


def test_control_record_type_values() -> None:
    """Control record types, with the numbers that are stored; a new one must be decided on."""
    assert {each.name: each.value for each in ControlRecordType} == {
        "ABORT": 0,
        "COMMIT": 1,
        "LEADER_CHANGE": 2,
        "SNAPSHOT_HEADER": 3,
        "SNAPSHOT_FOOTER": 4,
        "KRAFT_VERSION": 5,
        "KRAFT_VOTERS": 6,
    }
