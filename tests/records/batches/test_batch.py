# SPDX-License-Identifier: Apache-2.0
"""Reading batches of magic 2."""

import itertools
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import (
    CorruptBatchError,
    DecodeError,
    InvalidRecordError,
    TruncatedBatchError,
    UnsupportedCompressionError,
)
from raftlog.records.batches.batch import (
    RecordBatch,
    TimestampType,
    add_sequence,
    read_batch,
    whole_batches,
    wrap_int64,
)
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.record import Header, Record
from tests.records import vectors
from tests.records.vectors import TIMESTAMP
from tests.strategies import PlannedBatch, batch_bytes, batches, mutated, planned_batches


@settings(deadline=None, max_examples=35)
@given(planned_batches())
def test_what_was_written_is_read(plan: PlannedBatch) -> None:
    """A batch gives the header and the records that its builder was given."""
    batch = RecordBatch(plan.build())
    written = plan.builder
    append_time = batch.max_timestamp if written.timestamp_type is TimestampType.LOG_APPEND_TIME else None
    assert [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in batch.records()] == [
        (r.offset, r.timestamp if append_time is None else append_time, r.key, r.value, r.headers) for r in plan.records
    ]
    assert batch.crc_holds
    assert batch.magic == 2
    assert batch.record_count == len(plan.records)
    assert (batch.base_offset, batch.partition_leader_epoch) == (written.base_offset, written.partition_leader_epoch)
    assert (batch.producer_id, batch.producer_epoch) == (written.producer_id, written.producer_epoch)
    assert (batch.base_sequence, batch.compression_type) == (written.base_sequence, written.compression_type)
    assert (batch.is_control, batch.is_transactional) == (written.is_control, written.is_transactional)
    assert (batch.timestamp_type, batch.delete_horizon_ms) == (written.timestamp_type, written.delete_horizon_ms)
    assert batch.last_offset >= plan.records[-1].offset
    assert batch.next_offset == batch.last_offset + 1


@settings(deadline=None, max_examples=35)
@given(batches(), st.data())
def test_a_change_under_the_crc_is_noticed(data: bytes, draw: st.DataObject) -> None:
    """A bit that is flipped anywhere from the CRC on breaks the CRC, and records are refused for it."""
    bit = draw.draw(st.integers(17 * 8, len(data) * 8 - 1))
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    batch = RecordBatch(bytes(changed), 1000)
    assert not batch.crc_holds
    with pytest.raises(CorruptBatchError) as caught:
        batch.records()
    assert (caught.value.rule, caught.value.position) == ("batch-crc", 1000)
    assert caught.value.base_offset == batch.base_offset


@settings(deadline=None, max_examples=35)
@given(batches().flatmap(mutated), st.integers(0, 100))
def test_reading_a_batch_fails_only_with_its_errors(data: bytes, position: int) -> None:
    """On mutated bytes ``read_batch`` gives a batch inside the buffer, or a DecodeError at the position."""
    try:
        batch, end = read_batch(bytes(position) + data, position)
    except DecodeError as error:
        place, rule = error.position, error.rule
        assert (place, rule in {"tail-torn", "batch-length"}) == (position, True)
    else:
        assert batch.position == position
        assert end == position + batch.size_bytes <= position + len(data)


def test_leader_change_vector() -> None:
    """The batch that Kafka writes at the start of an epoch decodes to its fields."""
    batch = RecordBatch(vectors.LEADER_CHANGE)
    assert (batch.base_offset, batch.last_offset, batch.partition_leader_epoch) == (0, 0, 5)
    assert (batch.is_control, batch.is_transactional) == (True, False)
    assert (batch.base_timestamp, batch.max_timestamp) == (TIMESTAMP, TIMESTAMP)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_sequence) == (-1, -1, -1, -1)
    (record,) = batch.records()
    assert (record.offset, record.key) == (0, b"\0\0\0\2")
    assert record.value == vectors.LEADER_CHANGE[71:105]


def test_data_vector() -> None:
    """Nulls, headers and a negative timestamp delta decode to what Kafka's builder was given."""
    assert list(RecordBatch(vectors.DATA).records()) == [
        Record(100, TIMESTAMP, b"k1", b"v1"),
        Record(101, TIMESTAMP + 300, None, b"value-2", (Header(b"h", b"x"), Header(b"hn", None)), timestamp_delta=300),
        Record(102, TIMESTAMP - 5, b"k3", None, timestamp_delta=-5),
    ]


def test_log_append_time_vector() -> None:
    """With LogAppendTime every record has the batch's max timestamp, and keeps its stored delta."""
    batch = RecordBatch(vectors.LOG_APPEND_TIME)
    assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert [(r.timestamp, r.timestamp_delta) for r in batch.records()] == [(TIMESTAMP + 9, 0), (TIMESTAMP + 9, 300)]


@pytest.mark.parametrize("codec", CompressionType)
def test_codec_vectors(codec: CompressionType) -> None:
    """Kafka's batches of each codec have the same two records."""
    batch = RecordBatch(vectors.TWO_VALUES[codec.label])
    assert batch.compression_type is codec
    assert list(batch.records()) == [Record(100, TIMESTAMP, None, b"a" * 40), Record(101, TIMESTAMP, None, b"a" * 40)]


def test_abort_marker_vector() -> None:
    """A transaction marker is transactional and control, and has a producer."""
    batch = RecordBatch(vectors.ABORT_MARKER)
    assert (batch.is_transactional, batch.is_control) == (True, True)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (77, 2, -1)
    [record] = batch.records()
    assert record == Record(5, TIMESTAMP, b"\0\0\0\0", b"\0\0\0\0\0\x09", marks=0x30)
    assert (record.is_control, record.is_transactional) == (True, True)


def test_raft_data_vector() -> None:
    """Metadata records have no key, and offsets from 10."""
    assert list(RecordBatch(vectors.RAFT_DATA).records()) == [
        Record(10, TIMESTAMP, None, bytes.fromhex("01140000")),
        Record(11, TIMESTAMP, None, b"\x01\x0c\x00\x0ekraft.version\x00\x01\x00"),
    ]


def test_snapshot_vector() -> None:
    """A checkpoint's three batches are read one after the other, to its end."""
    position, read = 0, []
    while position < len(vectors.SNAPSHOT):
        batch, position = read_batch(vectors.SNAPSHOT, position)
        read.append((batch.position, batch.is_control, [record.key for record in batch.records()]))
    assert position == 332
    assert read == [
        (0, True, [b"\0\0\0\x03", b"\0\0\0\x05", b"\0\0\0\x06"]),
        (166, False, [None]),
        (257, True, [b"\0\0\0\x04"]),
    ]


@pytest.mark.parametrize("codec_id", [5, 6, 7])
def test_an_unknown_codec_is_named_with_its_place(codec_id: int) -> None:
    """Compression ids 5 to 7 are refused where the batch is."""
    batch = RecordBatch(batch_bytes(base_offset=9, attributes=codec_id), 500)
    for ask in (lambda: batch.compression_type, lambda: list(batch.records())):
        with pytest.raises(UnsupportedCompressionError) as caught:
            ask()
        assert (caught.value.rule, caught.value.position, caught.value.base_offset) == ("batch-codec", 500, 9)


@pytest.mark.parametrize(
    ("area", "count", "rule", "position"),
    [
        (b"", -1, "batch-count", 1000),
        (b"", 1, "batch-missing", 1000),
        (bytes.fromhex("0c000000010100"), 2, "batch-missing", 1000),
        (bytes.fromhex("0c000000010100"), 0, "batch-trailing", 1000),
        (bytes.fromhex("0c00000001010000"), 1, "batch-trailing", 1000),
        (bytes.fromhex("0c000000010100 0c000002050100"), 2, "record-field", 1000 + 61 + 7 + 4),
    ],
)
def test_a_bad_record_area_is_refused_at_its_place(area: bytes, count: int, rule: str, position: int) -> None:
    """Errors among records say which rule, where in the file, and in which batch."""
    batch = RecordBatch(batch_bytes(area, base_offset=77, count=count), 1000)
    with pytest.raises((CorruptBatchError, InvalidRecordError)) as caught:
        list(batch.records())
    assert (caught.value.rule, caught.value.position, caught.value.base_offset) == (rule, position, 77)


def test_records_before_a_bad_one_are_given() -> None:
    """Sound records before the first bad one are yielded before the error is raised."""
    records = RecordBatch(batch_bytes(bytes.fromhex("0c000000010100 0c0000"), count=2)).records()
    assert next(records).offset == 0
    with pytest.raises(InvalidRecordError):
        next(records)


def test_a_huge_count_takes_no_memory() -> None:
    """A record count of two thousand million costs nothing before the records are there."""
    batch = RecordBatch(batch_bytes(count=2**31 - 1, last_offset_delta=2**31 - 1))
    tracemalloc.start()
    try:
        with pytest.raises(InvalidRecordError):
            list(batch.records())
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("length", "error", "rule"),
    [
        (2**31 - 1, TruncatedBatchError, "tail-torn"),
        (50, TruncatedBatchError, "tail-torn"),
        (48, CorruptBatchError, "batch-length"),
        (0, CorruptBatchError, "batch-length"),
        (-1, CorruptBatchError, "batch-length"),
        (-(2**31), CorruptBatchError, "batch-length"),
    ],
)
def test_a_length_is_checked_before_it_is_used(length: int, error: type[DecodeError], rule: str) -> None:
    """An impossible length is refused, whatever its value."""
    data = batch_bytes()
    with pytest.raises(error) as caught:
        read_batch(b"xyz" + data[:8] + length.to_bytes(4, "big", signed=True) + data[12:], 3)
    assert (caught.value.rule, caught.value.position) == (rule, 3)


def test_a_header_that_is_cut_is_refused() -> None:
    """Fewer bytes than a header are not a batch."""
    with pytest.raises(TruncatedBatchError):
        RecordBatch(batch_bytes()[:60])
    with pytest.raises(TruncatedBatchError):
        read_batch(b"", 0)


@given(st.lists(batches(), max_size=3), st.integers(min_value=0))
def test_a_buffer_may_end_within_a_batch(written: list[bytes], cut: int) -> None:
    """The batches before that are read, wherever it ends."""
    data = b"".join(written)
    size = len(data) - cut % (len(data) + 1)
    expected = [each for each, end in zip(written, itertools.accumulate(map(len, written)), strict=True) if end <= size]
    assert [bytes(each.buffer) for each in whole_batches(data[:size])] == expected


def test_batches_compare_by_their_bytes() -> None:
    """Two batches are equal if their bytes are, whatever their positions."""
    data = batch_bytes()
    assert RecordBatch(data, 5) == RecordBatch(memoryview(data), 9)
    assert RecordBatch(data) != RecordBatch(batch_bytes(epoch=1))
    assert RecordBatch(data) != data
    assert "base_offset=0, last_offset=0" in repr(RecordBatch(data))


def test_an_empty_batch_has_no_records() -> None:
    """A batch that compaction emptied keeps its span."""
    batch = RecordBatch(batch_bytes(base_offset=10, last_offset_delta=4))
    assert list(batch.records()) == []
    assert (batch.last_offset, batch.next_offset) == (14, 15)


def test_sums_wrap_as_in_java() -> None:
    """Offsets and timestamps whose sum leaves 64 bits wrap; so do sequences after 2147483647."""
    assert wrap_int64(2**63) == -(2**63)
    assert wrap_int64(-(2**63) - 1) == 2**63 - 1
    assert wrap_int64(-1) == -1
    assert [add_sequence(2**31 - 1, 1), add_sequence(2**31 - 2, 5), add_sequence(-1, 7), add_sequence(0, 0)] == [
        0,
        3,
        -1,
        0,
    ]
    ends = [(2**31 - 1, 1), (2**31 - 2, 1), (0, 4), (-1, 4), (-5, 1), (-5, 5)]
    batches = [RecordBatch(batch_bytes(base_sequence=first, last_offset_delta=delta)) for first, delta in ends]
    assert [batch.last_sequence for batch in batches] == [0, 2**31 - 1, 4, -1, -4, 0]
    area = bytes.fromhex("0c0002020101 00")
    (record,) = RecordBatch(batch_bytes(area, base_offset=2**63 - 1, base_timestamp=2**63 - 1, count=1)).records()
    assert (record.offset, record.timestamp) == (-(2**63), -(2**63))


def test_timestamp_types_have_kafkas_names() -> None:
    """The labels are those of kafka-dump-log."""
    assert [kind.label for kind in TimestampType] == ["NoTimestampType", "CreateTime", "LogAppendTime"]
