# SPDX-License-Identifier: Apache-2.0
"""Message sets of magic 0 and 1."""

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
from raftlog.records.batches.batch import TimestampType
from raftlog.records.batches.compression import CompressionType, compress
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.batches.legacy import LegacyBatch, LegacyRecord, min_length
from raftlog.records.rules import RULES
from tests.records import vectors
from tests.records.oracles import AiokafkaLegacyBuilder, KafkaPythonLegacyBuilder, KafkaPythonRecords
from tests.records.vectors import TIMESTAMP
from tests.strategies import legacy_batches, legacy_message, mutated, nullable_bytes

magics = st.integers(0, 1)


def _contents(batch: LegacyBatch) -> list[tuple[int, int, bytes | None, bytes | None]]:
    return [(record.offset, record.timestamp, record.key, record.value) for record in batch.records()]


@settings(deadline=None, max_examples=60)
@given(magics, st.integers(0, 2**63 - 1), nullable_bytes, nullable_bytes, st.integers(-1, 2**62))
def test_a_message_reads_as_it_was_written(
    magic: int, offset: int, key: bytes | None, value: bytes | None, timestamp: int
) -> None:
    """A plain message gives its one record."""
    batch = LegacyBatch(legacy_message(magic, offset, key, value, timestamp=timestamp))
    assert _contents(batch) == [(offset, timestamp if magic else -1, key, value)]
    assert (batch.magic, batch.base_offset, batch.last_offset, batch.crc_holds) == (magic, offset, offset, True)


@settings(deadline=None, max_examples=50)
@given(legacy_batches().flatmap(lambda data: mutated(data, repair=False)))
def test_only_decode_errors_leave_a_mutated_message(data: bytes) -> None:
    """Whatever was done to a message, reading it raises nothing but a DecodeError with its place."""
    try:
        batch = LegacyBatch(data, 500)
    except TruncatedBatchError as refused:
        rule, position = refused.rule, refused.position
        assert (rule, position) == ("batch-length", 500)
        return
    error = _error_of(batch)
    if error is not None:
        assert error.rule in RULES
        assert (error.position, error.base_offset) == (500, batch.base_offset)


def _error_of(batch: LegacyBatch) -> DecodeError | None:
    try:
        for _ in batch.records(check_crc=False, max_size=10**6):
            pass
    except DecodeError as error:
        return error
    return None


def test_vectors() -> None:
    """Kafka's messages of magic 0 and 1 decode, also from inside gzip, and from lz4 with its bad header checksum."""
    plain = LegacyRecord(10, TIMESTAMP, b"k", b"v", 0x39268C33, True, TimestampType.CREATE_TIME)
    assert list(LegacyBatch(vectors.LEGACY_1).records()) == [plain]
    old = LegacyRecord(10, -1, b"k", b"v", 0x1FECD70A, True, TimestampType.NO_TIMESTAMP_TYPE)
    assert list(LegacyBatch(vectors.LEGACY_0).records()) == [old]
    assert list(LegacyBatch(vectors.LEGACY_0_LZ4).records()) == [old]
    assert _contents(LegacyBatch(vectors.LEGACY_1_GZIP)) == [
        (10, TIMESTAMP, b"k", b"v"),
        (11, TIMESTAMP + 1, b"k", b"w"),
    ]
    assert legacy_message(1, 10, b"k", b"v") == vectors.LEGACY_1
    assert legacy_message(0, 10, b"k", b"v") == vectors.LEGACY_0


def test_a_file_may_change_its_format() -> None:
    """Messages of magic 0 and 1 and a batch of magic 2 in one file are all given."""
    data = vectors.LEGACY_0 + vectors.LEGACY_1_GZIP + vectors.DATA + vectors.LEGACY_1
    assert [getattr(piece, "magic", None) for piece in split(BufferSource(data))] == [0, 1, 2, 1]


def test_magic_0_keeps_inner_offsets_and_magic_1_counts_back_from_the_last() -> None:
    """Inner offsets are absolute in magic 0, relative in magic 1, and untouched under a wrapper at offset 0."""

    def offsets_read(*, magic: int, offset: int, inner: list[int]) -> list[int]:
        """Return the offsets of records in a compressed message at an offset, by the offsets stored inside it."""
        messages = b"".join(legacy_message(magic, relative, None, b"v") for relative in inner)
        data = legacy_message(magic, offset, None, compress(CompressionType.GZIP, messages), CompressionType.GZIP)
        return [record.offset for record in LegacyBatch(data).records()]

    assert offsets_read(magic=0, offset=12, inner=[10, 12]) == [10, 12]
    assert offsets_read(magic=1, offset=12, inner=[0, 1, 2]) == [10, 11, 12]
    assert offsets_read(magic=1, offset=12, inner=[0, 5]) == [7, 12]
    assert offsets_read(magic=1, offset=0, inner=[3, 4]) == [3, 4]
    assert offsets_read(magic=1, offset=2**63 - 1, inner=[-(2**63), -1]) == [0, 2**63 - 1]
    with pytest.raises(InvalidRecordError, match="offset 5 in a message at 4"):
        offsets_read(magic=1, offset=4, inner=[0, 5])


def test_a_wrapper_with_log_append_time_sets_the_time() -> None:
    """The broker's time replaces that of the messages inside."""
    inner = legacy_message(1, 0, None, b"v", timestamp=5)
    data = legacy_message(1, 3, None, compress(CompressionType.GZIP, inner), 8 | CompressionType.GZIP)
    (record,) = LegacyBatch(data).records()
    assert (record.timestamp, record.timestamp_type) == (TIMESTAMP, TimestampType.LOG_APPEND_TIME)


@pytest.mark.parametrize(
    ("inner", "attributes", "rule"),
    [
        (b"", 1, "codec-stream"),
        (legacy_message(0, 0, None, b"v"), 1, "codec-stream"),
        (legacy_message(1, 0, None, b"v", 1), 1, "codec-stream"),
        (legacy_message(1, 0, None, b"v")[:-1], 1, "codec-stream"),
        (bytes(40), 1, "codec-stream"),
        (legacy_message(1, 0, None, b"v")[:16] + b"\2" + bytes(30), 1, "codec-stream"),
    ],
    ids=["empty", "other magic", "nested", "cut", "zeros", "magic 2"],
)
def test_bad_inner_messages_are_refused(inner: bytes, attributes: int, rule: str) -> None:
    """A compressed message holds at least one plain message of its own magic."""
    data = legacy_message(1, 7, None, compress(CompressionType.GZIP, inner), attributes)
    with pytest.raises((InvalidRecordError, CorruptBatchError)) as caught:
        list(LegacyBatch(data, 100).records())
    assert (caught.value.rule, caught.value.position, caught.value.base_offset) == (rule, 100, 7)


def test_a_cut_message_after_others_is_dropped() -> None:
    """Like Kafka, we read the messages before one that is cut at the end of the inner set."""
    inner = legacy_message(1, 0, None, b"a") + legacy_message(1, 1, None, b"b")[:-1]
    data = legacy_message(1, 7, None, compress(CompressionType.GZIP, inner), CompressionType.GZIP)
    assert [record.value for record in LegacyBatch(data).records()] == [b"a"]


def test_zstd_unknown_codecs_and_null_values_are_refused() -> None:
    """No message of magic 0 or 1 has zstd, and a compressed one has a value."""
    for attributes, error in ((4, InvalidRecordError), (5, UnsupportedCompressionError)):
        with pytest.raises(error):
            list(LegacyBatch(legacy_message(1, 0, None, b"v", attributes)).records())
    with pytest.raises(InvalidRecordError):
        list(LegacyBatch(legacy_message(1, 0, None, None, 1)).records())


def test_a_broken_crc_is_refused_at_once() -> None:
    """As with magic 2, asking for the records of a damaged message fails before the first."""
    data = vectors.LEGACY_1[:-1] + b"x"
    with pytest.raises(CorruptBatchError) as caught:
        LegacyBatch(data, 9).records()
    assert (caught.value.rule, caught.value.position, caught.value.base_offset) == ("batch-crc", 9, 10)
    assert [record.value for record in LegacyBatch(data).records(check_crc=False)] == [b"x"]


def test_too_short_a_message_is_refused() -> None:
    """The least is a message with null key and value."""
    for magic in (0, 1):
        data = legacy_message(magic, 0, None, None)
        assert len(data) == 12 + min_length(magic)
        with pytest.raises(TruncatedBatchError):
            LegacyBatch(data[:-1])


def test_very_many_messages_inside_one_take_no_memory_of_their_own() -> None:
    """Of two thousand inner messages one at a time is held, besides their bytes."""
    inner = legacy_message(1, 0, None, None) * 2000
    batch = LegacyBatch(legacy_message(1, 5, None, compress(CompressionType.GZIP, inner), CompressionType.GZIP))
    tracemalloc.start()
    try:
        assert sum(1 for _ in batch.records()) == 2000
        assert tracemalloc.get_traced_memory()[1] < 4 * len(inner)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("magic", "codec"),
    [
        (0, CompressionType.NONE),
        (0, CompressionType.GZIP),  # For lz4 of magic 0 it needs another package; the vectors have it.
        (1, CompressionType.NONE),
        (1, CompressionType.GZIP),
        (1, CompressionType.LZ4),
    ],
)
def test_we_read_what_kafka_python_writes(magic: int, codec: CompressionType) -> None:
    """Messages of kafka-python's, plain and compressed, are the records that it was given."""
    builder = KafkaPythonLegacyBuilder(magic, int(codec), 10**6)
    for index in range(5):
        builder.append(index, TIMESTAMP + index, None if index == 2 else b"key", b"v" * index)
    data = bytes(builder.build())
    pieces = list(split(BufferSource(data)))
    ours = [record for piece in pieces if isinstance(piece, LegacyBatch) for record in piece.records()]
    assert [(r.offset, r.timestamp, r.key, r.value, r.crc_holds) for r in ours] == [
        (index, TIMESTAMP + index if magic else -1, None if index == 2 else b"key", b"v" * index, True)
        for index in range(5)
    ]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP, CompressionType.SNAPPY])
def test_we_read_what_aiokafka_writes(magic: int, codec: CompressionType) -> None:
    """Messages of aiokafka's, plain and compressed, are the records that it was given."""
    builder = AiokafkaLegacyBuilder(magic=magic, compression_type=int(codec), batch_size=10**6)
    for index in range(5):
        builder.append(index, timestamp=TIMESTAMP + index, key=b"key", value=b"v" * index)
    pieces = list(split(BufferSource(bytes(builder.build()))))
    ours = [record for piece in pieces if isinstance(piece, LegacyBatch) for record in piece.records()]
    assert [(r.offset, r.value) for r in ours] == [(index, b"v" * index) for index in range(5)]


@settings(deadline=None, max_examples=40)
@given(legacy_batches().filter(lambda data: data[17] & 7 < 2))
def test_kafka_python_reads_our_test_messages_the_same(data: bytes) -> None:
    """The strategy's messages are messages for kafka-python too, and it reads them as we do."""
    (theirs,) = KafkaPythonRecords(data)
    assert theirs.validate_crc()
    expected = [(r.offset, r.timestamp, r.key, r.value) for r in theirs]
    ours = _contents(LegacyBatch(data))
    assert [(offset, None if data[16] == 0 else time, key, value) for offset, time, key, value in ours] == expected
