# SPDX-License-Identifier: Apache-2.0
"""Control batches that read, and those that do not."""

import uuid
from pathlib import Path

import pytest
from hypothesis import given, settings

from raftlog.records.batches.batch import RecordBatch, read_batch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.control_batch import control_batch_problem
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.messages.control import (
    KRaftVersionRecord,
    VotersRecord,
    VotersRecordEndpoint,
    VotersRecordVoter,
    write_control_record,
)
from tests.golden_files import golden_id, record_files
from tests.records.vectors import LEADER_CHANGE
from tests.strategies import TIMESTAMP, with_mutated_area

DIRECTORY_ID = uuid.UUID(int=1000)
GOLDEN_FILES = [path for path in record_files() if path.parent.name == "__cluster_metadata-0"]


def control_batch(*records: tuple[bytes | None, bytes | None]) -> RecordBatch:
    """Return a control batch of keys and values."""
    builder = RecordBatchBuilder(0, partition_leader_epoch=1, is_control=True)
    builder.extend([(TIMESTAMP, key, value) for key, value in records])
    return RecordBatch(builder.build())


@pytest.mark.parametrize("path", GOLDEN_FILES, ids=golden_id)
def test_kafkas_control_batches_read(path: Path) -> None:
    """Every control batch that a real Kafka wrote is sound."""
    pieces = split(BufferSource(memoryview(path.read_bytes())))
    control = [piece for piece in pieces if isinstance(piece, RecordBatch) and piece.is_control]
    assert [control_batch_problem(batch) for batch in control] == [None] * len(control)


def test_undecodable_input_is_reported() -> None:
    """A key, a value or a record that does not read is a problem, wherever in the batch it is."""
    sound = write_control_record(KRaftVersionRecord(0, 1))
    assert control_batch_problem(control_batch(sound, sound)) is None
    for bad in ((None, b""), (b"\0", b""), (sound[0], b"\0"), (sound[0], None), (b"\0" * 3, b"large" * 1000)):
        assert control_batch_problem(control_batch(sound, bad)) is not None
    assert control_batch_problem(read_batch(LEADER_CHANGE[:57] + b"\0\0\0\2" + LEADER_CHANGE[61:])[0]) is not None


def test_an_unknown_type_is_sound() -> None:
    """Records that a newer Kafka may have written are accepted."""
    assert control_batch_problem(control_batch((b"\0\0\0\x63", b"anything"))) is None


def test_batches_that_raft_does_not_write_are_reported() -> None:
    """Headers or a time of its own, and voters that are none, are problems; readers pass over an offset of its own."""
    key, value = write_control_record(KRaftVersionRecord(1))
    for timestamp, headers, offset in ((0, [(b"h", b"")], None), (0, (), 7), (1, (), None)):
        builder = RecordBatchBuilder(0, partition_leader_epoch=1, is_control=True)
        builder.append(TIMESTAMP, key, value)
        builder.append(TIMESTAMP + timestamp, key, value, headers, offset=offset)
        assert (control_batch_problem(RecordBatch(builder.build())) is None) == (offset is not None)
    nameless = VotersRecordVoter(1, DIRECTORY_ID, (VotersRecordEndpoint("", "localhost", 9093),), 0, 1)
    voters = control_batch(write_control_record(VotersRecord((nameless,))))
    assert control_batch_problem(voters) is not None


def test_an_unknown_level_is_refused_where_it_matters() -> None:
    """In an existing log, a level of a newer version is not damage; it is not appended."""
    for level, is_known in ((0, True), (1, True), (9, False), (-1, False)):
        batch = control_batch(write_control_record(KRaftVersionRecord(level)))
        assert control_batch_problem(batch) is None
        assert (control_batch_problem(batch, knows_levels=True) is None) == is_known


@settings(max_examples=25)
@given(with_mutated_area())
def test_any_records_are_judged(batch: bytes) -> None:
    """Whatever the records hold, there is an answer."""
    control_batch_problem(RecordBatch(batch))
