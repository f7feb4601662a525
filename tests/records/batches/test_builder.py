# SPDX-License-Identifier: Apache-2.0
"""Writing batches of magic 2, for ourselves and for other readers."""

import itertools
from typing import TYPE_CHECKING

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import CorruptBatchError, DecodeError, InvalidRecordError
from raftlog.records.batches.batch import RecordBatch, TimestampType
from raftlog.records.batches.builder import RecordBatchBuilder, re_encode
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.record import Header, Record
from tests.records import vectors
from tests.records.oracles import AiokafkaBuilder, AiokafkaRecords, KafkaPythonBuilder, KafkaPythonRecords
from tests.records.vectors import TIMESTAMP
from tests.strategies import PlannedBatch, batch_bytes, batches, mutated, planned_batches, with_crc

if TYPE_CHECKING:
    from raftlog.records.kernel import Row

_KAFKA_PYTHON_CODECS = [CompressionType.NONE, CompressionType.GZIP, CompressionType.LZ4, CompressionType.ZSTD]
"""kafka-python's snappy needs a package that is not ours."""


@settings(deadline=None, max_examples=35)
@given(batches(codec=CompressionType.NONE))
def test_an_uncompressed_batch_is_re_encoded_to_its_bytes(data: bytes) -> None:
    """Decoding and encoding an uncompressed batch gives the same bytes."""
    assert re_encode(RecordBatch(data)) == data


@settings(deadline=None, max_examples=35)
@given(batches())
def test_a_re_encoded_batch_holds_the_same(data: bytes) -> None:
    """Decoding and encoding any batch gives the same header fields, record area and records."""
    batch = RecordBatch(data)
    again = RecordBatch(re_encode(batch))
    copy = bytes(again.buffer)
    assert (copy[:8], copy[12:17], copy[21:61]) == (data[:8], data[12:17], data[21:61])
    assert again.record_area() == batch.record_area()
    assert list(again.records()) == list(batch.records())


def _outcome(data: bytes) -> list[Record] | str | None:
    try:
        return list(RecordBatch(data).records())
    except DecodeError as error:
        return error.rule


@settings(deadline=None, max_examples=35)
@given(batches().flatmap(lambda data: mutated(data, repair=True)))
def test_a_damaged_batch_is_never_re_encoded(data: bytes) -> None:
    """Of a batch that does not decode, ``re_encode`` gives an error with its place, and nothing else."""
    if len(data) < 61 or data[16] != 2:
        return
    expected = _outcome(data)
    if isinstance(expected, list):
        assert _outcome(re_encode(RecordBatch(data))) == expected
        return
    with pytest.raises(DecodeError) as caught:
        re_encode(RecordBatch(data, 900))
    assert (caught.value.rule, (caught.value.position or 0) >= 900) == (expected, True)


@settings(deadline=None, max_examples=40)
@given(planned_batches(), st.integers(0, 2**40))
def test_building_twice_gives_the_same(plan: PlannedBatch, offset: int) -> None:
    """A builder may be built more than once, and may continue after that."""
    builder = attrs.evolve(plan.builder, base_offset=offset, last_offset_delta=None)
    assert builder.append(TIMESTAMP, b"k", None) == offset
    assert builder.build() == builder.build()
    assert builder.append(TIMESTAMP, None, b"v") == offset + 1
    assert RecordBatch(builder.build()).record_count == 2


@settings(deadline=None, max_examples=40)
@given(planned_batches(), st.lists(st.integers(0, 600), max_size=4))
def test_the_size_is_known_before_the_batch_is_built(plan: PlannedBatch, sizes: list[int]) -> None:
    """``size_bytes`` is that of the uncompressed batch, and ``size_with`` what it will be; asking changes nothing."""
    builder = attrs.evolve(plan.builder, compression_type=CompressionType.NONE, last_offset_delta=None)
    assert builder.size_bytes == 61
    builder.append(TIMESTAMP, b"k", None)
    rows: list[Row] = [(TIMESTAMP + size, b"k" * size, b"v" * (2 * size)) for size in sizes]
    expected = builder.size_with(rows)
    assert builder.size_bytes == len(builder.build())
    builder.extend(rows)
    assert builder.size_bytes == expected == len(builder.build())


@pytest.mark.parametrize(("row", "problem"), [((), ValueError), ((-2, None, None), ValueError), (None, TypeError)])
def test_a_size_of_what_is_refused(row: "Row", problem: type[Exception]) -> None:
    """Rows that ``extend`` refuses have no size, and leave the builder unchanged."""
    builder = RecordBatchBuilder(0)
    for work in (builder.size_with, builder.extend):
        with pytest.raises(problem):
            work([row])
    assert (builder.size_bytes, builder.next_offset) == (61, 0)


def test_leader_change_vector() -> None:
    """A control batch is written as Kafka writes it."""
    builder = RecordBatchBuilder(0, partition_leader_epoch=5, is_control=True)
    builder.append(TIMESTAMP, b"\0\0\0\2", vectors.LEADER_CHANGE[71:105])
    assert builder.build() == vectors.LEADER_CHANGE


def test_data_vector() -> None:
    """Nulls, headers and a timestamp before the first are written as Kafka writes them."""
    builder = RecordBatchBuilder(100, partition_leader_epoch=7)
    builder.append(TIMESTAMP, b"k1", b"v1")
    builder.append(TIMESTAMP + 300, None, b"value-2", [(b"h", b"x"), Header(b"hn", None)])
    builder.append(TIMESTAMP - 5, b"k3", None)
    assert builder.build() == vectors.DATA


def test_log_append_time_vector() -> None:
    """With LogAppendTime the max timestamp is the one given."""
    builder = RecordBatchBuilder(
        100,
        partition_leader_epoch=7,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        max_timestamp=TIMESTAMP + 9,
    )
    builder.append(TIMESTAMP, b"k1", b"v1")
    builder.append(TIMESTAMP + 300, None, b"v2")
    assert builder.build() == vectors.LOG_APPEND_TIME


def test_abort_marker_vector() -> None:
    """A transaction marker is written as Kafka writes it."""
    builder = RecordBatchBuilder(
        5, partition_leader_epoch=3, producer_id=77, producer_epoch=2, is_transactional=True, is_control=True
    )
    builder.append(TIMESTAMP, b"\0\0\0\0", b"\0\0\0\0\0\x09")
    assert builder.build() == vectors.ABORT_MARKER


def test_raft_data_vector() -> None:
    """A batch of metadata records is written as Kafka's raft leader writes it."""
    builder = RecordBatchBuilder(10, partition_leader_epoch=5)
    builder.append(TIMESTAMP, None, bytes.fromhex("01140000"))
    builder.append(TIMESTAMP, None, b"\x01\x0c\x00\x0ekraft.version\x00\x01\x00")
    assert builder.build() == vectors.RAFT_DATA


@pytest.mark.parametrize("vector", [*vectors.TWO_VALUES.values(), vectors.SNAPSHOT[:166], vectors.SNAPSHOT[166:257]])
def test_vectors_are_re_encoded(vector: bytes) -> None:
    """Batches that Kafka wrote decode and encode to the same records, and if uncompressed to the same bytes."""
    batch = RecordBatch(vector)
    again = re_encode(batch)
    assert list(RecordBatch(again).records()) == list(batch.records())
    assert batch.compression_type is not CompressionType.NONE or again == vector


def test_a_batch_keeps_the_span_of_what_compaction_removed() -> None:
    """Offsets may have gaps, before the first record and after the last one too."""
    builder = RecordBatchBuilder(10, last_offset_delta=9)
    assert builder.append(TIMESTAMP, None, b"a", offset=12) == 12
    assert builder.append(TIMESTAMP, None, b"b") == 13
    batch = RecordBatch(builder.build())
    assert [record.offset for record in batch.records()] == [12, 13]
    assert (batch.base_offset, batch.last_offset) == (10, 19)


def test_a_delete_horizon_takes_the_place_of_the_base_timestamp() -> None:
    """Timestamps are right although the base timestamp is something else."""
    builder = RecordBatchBuilder(0, delete_horizon_ms=TIMESTAMP + 10**9)
    builder.append(TIMESTAMP, b"k", None)
    batch = RecordBatch(builder.build())
    assert (batch.base_timestamp, batch.delete_horizon_ms) == (TIMESTAMP + 10**9, TIMESTAMP + 10**9)
    assert [record.timestamp for record in batch.records()] == [TIMESTAMP]
    assert batch.max_timestamp == TIMESTAMP


def test_what_a_builder_refuses() -> None:
    """No record, no producer for a transaction, an offset that does not grow, and a timestamp below -1 are refused."""
    with pytest.raises(ValueError, match="needs a record"):
        RecordBatchBuilder(0).build()
    with pytest.raises(ValueError, match="producer id"):
        RecordBatchBuilder(0, is_transactional=True)
    builder = RecordBatchBuilder(5)
    builder.append(TIMESTAMP, None, b"v")
    before = builder.build()
    for offset in (4, 5, 5 + 2**31):
        with pytest.raises(ValueError, match="cannot follow 5"):
            builder.append(TIMESTAMP, None, b"v", offset=offset)
    with pytest.raises(ValueError, match="timestamp"):
        builder.append(-2, None, b"v")
    assert builder.build() == before


@pytest.mark.parametrize(
    "builder",
    [
        RecordBatchBuilder(2**63),
        RecordBatchBuilder(0, partition_leader_epoch=2**31),
        RecordBatchBuilder(0, producer_id=2**63),
        RecordBatchBuilder(0, producer_epoch=-(2**15) - 1),
        RecordBatchBuilder(0, base_sequence=2**31),
        RecordBatchBuilder(0, max_timestamp=2**63),
        RecordBatchBuilder(0, last_offset_delta=2**31),
        RecordBatchBuilder(0, last_offset_delta=-1),
    ],
)
def test_numbers_that_do_not_fit_are_refused(builder: RecordBatchBuilder) -> None:
    """A number that its header field cannot hold, or a span that is too short, is a ValueError."""
    builder.append(TIMESTAMP, None, b"v")
    with pytest.raises(ValueError, match=r"fit|last offset delta"):
        builder.build()


def test_a_refused_first_record_leaves_no_trace() -> None:
    """After an append that failed, the builder is as it was: still empty, and without a base timestamp."""
    builder = RecordBatchBuilder(0, delete_horizon_ms=-(2**63))
    with pytest.raises(ValueError, match="64-bit"):
        builder.append(2**63 - 1, None, b"v")
    with pytest.raises(ValueError, match="needs a record"):
        builder.build()


def test_re_encoding_checks_the_batch() -> None:
    """A CRC that does not hold, and a count that is not that of the records, are errors."""
    broken = bytearray(vectors.DATA)
    broken[-1] ^= 1
    with pytest.raises(CorruptBatchError):
        re_encode(RecordBatch(bytes(broken)))
    with pytest.raises(InvalidRecordError):
        re_encode(RecordBatch(batch_bytes(bytes.fromhex("0c000000010100"), count=2)))


def test_varints_are_made_minimal() -> None:
    """Longer varints than need be are read, and written in the fewest bytes."""
    long_form = batch_bytes(bytes.fromhex("90800000800080000101 00"), count=1)
    assert re_encode(RecordBatch(long_form)) == batch_bytes(bytes.fromhex("0c000000010100"), count=1)


def _readable_by_others(plan: PlannedBatch) -> bytes:
    """The plan's bytes, without what other libraries cannot read: control records of their own, and huge timestamps."""
    builder = attrs.evolve(plan.builder, is_control=False, delete_horizon_ms=None, max_timestamp=None)
    return attrs.evolve(plan, builder=builder).build()


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(_KAFKA_PYTHON_CODECS).flatmap(lambda codec: planned_batches(codec=codec)))
def test_kafka_python_reads_what_we_write(plan: PlannedBatch) -> None:
    """kafka-python finds the same header and records, with each of the codecs that it has."""
    data = _readable_by_others(plan)
    ours = RecordBatch(data)
    (theirs,) = KafkaPythonRecords(data)
    assert theirs.validate_crc()
    for field in ("base_offset", "magic", "crc", "attributes", "last_offset_delta", "last_offset", "max_timestamp"):
        assert getattr(theirs, field) == getattr(ours, field), field
    for field in ("producer_id", "producer_epoch", "base_sequence", "last_sequence", "is_transactional"):
        assert getattr(theirs, field) == getattr(ours, field), field
    assert [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in theirs] == [
        (r.offset, r.timestamp, r.key, r.value, [(h.key.decode(), h.value) for h in r.headers]) for r in ours.records()
    ]


@settings(deadline=None, max_examples=40)
@given(planned_batches())
def test_aiokafka_reads_what_we_write(plan: PlannedBatch) -> None:
    """aiokafka finds the same header and records, with every codec."""
    data = _readable_by_others(plan)
    ours = RecordBatch(data)
    records = AiokafkaRecords(data)
    theirs = records.next_batch()
    assert not records.has_next()
    assert theirs.validate_crc()
    for field in ("base_offset", "magic", "crc", "attributes", "next_offset", "max_timestamp", "producer_id"):
        assert getattr(theirs, field) == getattr(ours, field), field
    assert [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in theirs] == [
        (r.offset, r.timestamp, r.key, r.value, [(h.key.decode(), h.value) for h in r.headers]) for r in ours.records()
    ]


@pytest.mark.parametrize("codec", _KAFKA_PYTHON_CODECS)
def test_we_read_what_kafka_python_writes(codec: CompressionType) -> None:
    """A batch of kafka-python's decodes to what it was given, and if uncompressed is what our builder writes."""
    theirs = KafkaPythonBuilder(
        2, int(codec), 10**6, transactional=True, producer_id=7, producer_epoch=1, base_sequence=3
    )
    ours = RecordBatchBuilder(
        0, partition_leader_epoch=0, producer_id=7, producer_epoch=1, base_sequence=3, is_transactional=True
    )
    for index in range(50):
        key, value = (None, b"v" * index) if index % 2 else (b"k" * index, None)
        theirs.append(TIMESTAMP + index, key, value, [("h", b"x"), ("n", None)])
        ours.append(TIMESTAMP + index, key, value, [(b"h", b"x"), (b"n", None)])
    theirs.close()
    batch = RecordBatch(bytes(theirs.buffer()))
    assert batch.compression_type is codec
    assert list(batch.records()) == list(RecordBatch(ours.build()).records())
    if codec is CompressionType.NONE:
        assert batch.buffer == ours.build()


@pytest.mark.parametrize("codec", CompressionType)
def test_we_read_what_aiokafka_writes(codec: CompressionType) -> None:
    """A batch of aiokafka's decodes to what it was given, with every codec."""
    theirs = AiokafkaBuilder(
        magic=2,
        compression_type=int(codec),
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=10**6,
    )
    for index in range(50):
        theirs.append(index, timestamp=TIMESTAMP + index, key=b"k", value=b"v" * 40, headers=[("h", None)])
    batch = RecordBatch(bytes(theirs.build()))
    assert batch.compression_type is codec
    assert [tuple(record)[:5] for record in batch.records()] == [
        (index, TIMESTAMP + index, b"k", b"v" * 40, (Header(b"h", None),)) for index in range(50)
    ]


def test_a_repaired_crc_is_the_one_we_write() -> None:
    """The tests' own way to make a CRC hold agrees with the builder."""
    assert with_crc(vectors.DATA) == vectors.DATA


@settings(deadline=None, max_examples=40)
@given(planned_batches(), st.lists(st.integers(0, 4), max_size=3))
def test_extending_is_appending_many_times(plan: PlannedBatch, cuts: list[int]) -> None:
    """Rows that are added together, in any portions, make the batch that they make one by one."""
    one_by_one = attrs.evolve(plan.builder, last_offset_delta=None)
    together = attrs.evolve(one_by_one)
    rows: list[Row] = []
    for record in plan.records:
        one_by_one.append(record.timestamp, record.key, record.value, record.headers)
        fields = (record.timestamp, record.key, record.value)
        rows.append((*fields, record.headers) if record.headers else fields)
    for first, last in itertools.pairwise([0, *sorted(cuts), len(rows)]):
        together.extend(rows[first:last])
    assert together.build() == one_by_one.build()


@given(planned_batches(), st.lists(st.booleans(), min_size=1))
def test_staging_tells_the_size_and_adds_nothing(plan: PlannedBatch, is_added: list[bool]) -> None:
    """A batch has the size that staging told, once the records are added; those that are not added leave no trace."""
    staged, plain = (
        attrs.evolve(plan.builder, last_offset_delta=None),
        attrs.evolve(plan.builder, last_offset_delta=None),
    )
    for record, adds in zip(plan.records, itertools.cycle(is_added)):
        rows: list[Row] = [(record.timestamp, record.key, record.value, record.headers)]
        before = staged.size_bytes, staged.record_count, staged.next_offset
        size_bytes = staged.stage(rows)
        assert size_bytes == staged.size_with(rows)
        assert (staged.size_bytes, staged.record_count, staged.next_offset) == before
        if adds:
            staged.add_staged()
            plain.extend(rows)
            assert (staged.size_bytes, staged.record_count) == (size_bytes, before[1] + 1)
    if plain.record_count:
        assert staged.build() == plain.build()


def test_what_is_not_staged_cannot_be_added() -> None:
    """Nothing is staged at first, after it was added, and after other records were."""
    builder = RecordBatchBuilder(0)
    rows: list[Row] = [(TIMESTAMP, b"k", b"v")]
    with pytest.raises(ValueError, match="no records are staged"):
        builder.add_staged()
    with pytest.raises(ValueError, match="no records"):
        builder.stage([])
    builder.stage(rows)
    builder.add_staged()
    with pytest.raises(ValueError, match="no records are staged"):
        builder.add_staged()
    builder.stage(rows)
    builder.extend(rows)
    with pytest.raises(ValueError, match="no records are staged"):
        builder.add_staged()
    assert builder.record_count == 2


def test_extending_adds_all_or_nothing() -> None:
    """Rows that are refused leave the builder as it was, whichever of them is wrong; no rows change nothing."""
    builder = RecordBatchBuilder(2**40)
    builder.extend([])
    with pytest.raises(ValueError, match="needs a record"):
        builder.build()
    with pytest.raises(ValueError, match="timestamp"):
        builder.extend([(TIMESTAMP, b"k", b"v"), (-2, None, None)])
    with pytest.raises(ValueError, match="needs a record"):
        builder.build()
    builder.extend([(TIMESTAMP, b"k", b"v"), (-1, None, b"")])
    built = builder.build()
    with pytest.raises(TypeError):
        builder.extend([(TIMESTAMP, b"k", b"v"), (TIMESTAMP, "k", None)])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="unpack"):
        builder.extend([(TIMESTAMP, b"k", b"v"), (TIMESTAMP, b"k")])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="64-bit"):
        builder.extend([(TIMESTAMP, b"k", b"v"), (2**63, None, None)])
    assert (builder.build(), builder.next_offset) == (built, 2**40 + 2)
    builder.append(TIMESTAMP, None, None, offset=2**40 + 2**31 - 1)
    with pytest.raises(ValueError, match="cannot follow"):
        builder.extend([(TIMESTAMP, None, None)])


@pytest.mark.parametrize("compression_type", CompressionType)
def test_a_batch_is_compressed_as_it_is_asked_to_be(compression_type: CompressionType) -> None:
    """A batch says the codec that was asked for, its records read back, and all codecs but none make it smaller."""
    builder = RecordBatchBuilder(0, compression_type=compression_type)
    builder.extend([(TIMESTAMP, None, b"value" * 500)] * 3)
    batch = RecordBatch(builder.build())
    assert batch.compression_type is compression_type
    assert [record.value for record in batch.records()] == [b"value" * 500] * 3
    assert (len(batch.buffer) < 7500) == (compression_type is not CompressionType.NONE)
