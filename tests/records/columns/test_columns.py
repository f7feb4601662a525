# SPDX-License-Identifier: Apache-2.0
"""Columns by example: what they hold, as numpy arrays, as Arrow tables and as objects."""

import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from raftlog.errors import (
    CorruptBatchError,
    InvalidRecordError,
    MissingExtraError,
    UnsupportedCompressionError,
    UnsupportedMagicError,
)
from raftlog.records.batches.batch import RecordBatch, TimestampType
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.compression import CompressionType, compress
from raftlog.records.batches.iterator import Corruption, TornTail, ZeroPadding
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.records.columns.columns import (
    BATCH_COLUMNS,
    RECORD_COLUMNS,
    Chunk,
    read_columns,
    read_records,
    run_columns,
)
from tests.records.kernel_forms import FORMS, examples, using
from tests.strategies import TIMESTAMP, batch_bytes, legacy_message, logs, with_crc

_forms = pytest.mark.parametrize("form", FORMS)
_PAYLOADS = [(b"k", b"value"), (None, b""), (b"", None), (None, None), (b"\xff" * 70, b"x" * 300)]


def _batch(base_offset: int = 0, codec: CompressionType = CompressionType.NONE, **fields: Any) -> bytes:
    builder = RecordBatchBuilder(base_offset, compression_type=codec, **fields)
    for index, (key, value) in enumerate(_PAYLOADS):
        builder.append(TIMESTAMP + index, key, value, [(b"h", None), (b"", b"v")] if index == 1 else ())
    return builder.build()


_LOG = _batch() + _batch(5, CompressionType.ZSTD) + _batch(10)


def _only_chunk(data: bytes, *columns: str) -> Any:
    (chunk,) = read_columns(data, columns or RECORD_COLUMNS)
    return chunk


@_forms
def test_columns_hold_what_was_written(form: Any) -> None:
    """Offsets, timestamps, keys, values and headers are those that were appended; null and empty differ."""
    with using(form):
        records = _only_chunk(_LOG).records
    assert records.count == 15
    assert records.ends.tolist() == [5, 10, 15]
    assert records.columns["offset"].tolist() == list(range(15))
    assert records.columns["timestamp"].tolist() == [TIMESTAMP + index for index in range(5)] * 3
    assert list(zip(records.keys(), records.values(), strict=True)) == _PAYLOADS * 3
    assert records.headers() == [(), ((b"h", None), (b"", b"v")), (), (), ()] * 3


@_forms
def test_batch_columns_are_header_fields(form: Any) -> None:
    """Each column of batches has the field of that name, of each header; the position is that in the log."""
    data = _batch(7, producer_id=2**40, producer_epoch=-1, base_sequence=9) + batch_bytes(attributes=-1, epoch=-5)
    with using(form):
        batches = _only_chunk(data, "offset").batches
        columns = {name: batches.column(name).tolist() for name in BATCH_COLUMNS}
    first, second = RecordBatch(data[:-61]), RecordBatch(data[-61:])
    assert (columns.pop("position"), columns.pop("size")) == ([0, first.size_bytes], [first.size_bytes, 61])
    assert columns.pop("length") == [first.size_bytes - 12, 49]
    assert [crc % 2**32 for crc in columns.pop("crc")] == [first.crc, second.crc]
    assert columns == {name: [getattr(first, name), getattr(second, name)] for name in columns}
    with pytest.raises(KeyError):
        batches.column("offset")


@_forms
def test_headers_alone_leave_records_alone(form: Any) -> None:
    """Where no columns of records are asked for, none are there, and no record is looked at."""
    with using(form):
        chunk = _only_chunk(batch_bytes(b"what", count=3))
        headers = next(iter(read_columns(batch_bytes(b"what", count=3), ())))
    assert [index for index, _ in chunk.errors] == [0]
    assert isinstance(headers, Chunk)
    assert (headers.records, headers.errors, len(headers.batches)) == (None, (), 1)
    with pytest.raises(KeyError):
        headers.objects(0)


@_forms
def test_damage_stays_where_it_is(form: Any) -> None:
    """Batches that cannot be read have errors and no rows; those around them have their rows."""
    bad_stream = with_crc(_batch(5, CompressionType.GZIP)[:-9] + b"\0" * 9)
    unknown_codec = batch_bytes(b"?", attributes=6, count=1)
    bad_record = with_crc(_batch(5)[:-1] + b"\1")
    for bad, kind, rule in (
        (bad_stream, InvalidRecordError, "codec-stream"),
        (unknown_codec, UnsupportedCompressionError, "batch-codec"),
        (bad_record, InvalidRecordError, "record-headers"),
        (batch_bytes(count=-1), CorruptBatchError, "batch-count"),
        (batch_bytes(count=1), InvalidRecordError, "batch-missing"),
        (batch_bytes(b"\0"), InvalidRecordError, "batch-trailing"),
    ):
        for around in (_batch(), _batch(codec=CompressionType.LZ4)):
            with using(form):
                chunk = _only_chunk(bad + around + bad + bad + around)
            assert chunk.records.ends.tolist() == [0, 5, 5, 5, 10]
            assert chunk.records.keys() == [key for key, _ in _PAYLOADS] * 2
            assert [index for index, _ in chunk.errors] == [0, 2, 3]
            for _, error in chunk.errors:
                assert isinstance(error, kind)
                assert error.rule == rule
            positions = [error.position for _, error in chunk.errors]
            assert positions == sorted(positions)
            assert positions[1] >= len(bad) + len(around)


@_forms
def test_bytes_without_a_batch_are_yielded_in_place(form: Any) -> None:
    """Legacy messages, corruption, padding and a torn tail come between chunks, as the splitter gives them."""
    corrupt = bytearray(_batch(5))
    corrupt[70] ^= 1
    data = _batch() + legacy_message(1, 5, None, b"v") + _batch(6) + corrupt + _batch(11)
    with using(form):
        pieces = list(read_columns(data + b"\0" * 100))
        torn = list(read_columns(data + _batch(16)[:-3]))
    kinds = [Chunk, LegacyBatch, Chunk, Corruption, Chunk]
    assert [type(piece) for piece in pieces] == [*kinds, ZeroPadding]
    assert [type(piece) for piece in torn] == [*kinds, TornTail]
    assert pieces[4].position + pieces[4].size_bytes == len(data)


@_forms
def test_reading_starts_and_stops_as_requested(form: Any) -> None:
    """``start`` and ``stop`` are byte positions; a batch that extends past the stop is not returned."""
    size = len(_batch())
    with using(form):
        (chunk,) = read_columns(_batch() * 4, ["offset"], start=size, stop=3 * size + 1)
    assert isinstance(chunk, Chunk)
    assert chunk.batches.column("position").tolist() == [size, 2 * size]
    assert (chunk.position, chunk.size_bytes) == (size, 2 * size)


@_forms
def test_the_limit_on_decompressed_sizes_is_kept(form: Any) -> None:
    """A batch that decompresses to more than the limit is an error; a larger limit than the default is taken."""
    log = _batch() + _batch(5, CompressionType.ZSTD)
    with using(form):
        (chunk,) = read_columns(log, max_size=100)
        assert isinstance(chunk, Chunk)
        assert [(index, error.rule) for index, error in chunk.errors] == [(1, "codec-size")]  # type: ignore[union-attr]
        (whole,) = read_columns(log, max_size=2**40)
        assert isinstance(whole, Chunk)
        assert whole.errors == ()


@_forms
def test_an_error_is_found_by_the_same_limit(form: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Problems of a batch are found by a reader with the same limit on decompression as the columns."""
    area = _batch()[61:-1] + b"\7"
    bad = batch_bytes(compress(CompressionType.ZSTD, area), attributes=CompressionType.ZSTD, count=5)
    monkeypatch.setattr(RecordBatch.records, "__kwdefaults__", {"check_crc": True, "max_size": 10})
    with using(form):
        (chunk,) = read_columns(bad)
    assert isinstance(chunk, Chunk)
    assert [error.rule for _, error in chunk.errors] == ["record-headers"]  # type: ignore[union-attr]


@_forms
def test_unknown_columns_are_refused(form: Any) -> None:
    """A column that there is not is the caller's error; so is asking for objects of some columns."""
    with using(form):
        with pytest.raises(ValueError, match=r"no such columns: keys; there are offset, .*headers"):
            next(read_columns(_LOG, ["keys", "offset"]))
        records = _only_chunk(_LOG, "offset", "value").records
    with pytest.raises(KeyError):
        records.objects()
    with pytest.raises(KeyError):
        records.keys()


@_forms
def test_numpy_arrays_are_views(form: Any) -> None:
    """An array of a column of records shares that column's memory, even without records."""
    with using(form):
        records = _only_chunk(_batch()).records
        nothing = _only_chunk(batch_bytes()).records
        batches = _only_chunk(_LOG).batches
    for name, column in records.columns.items():
        array = records.to_numpy(name)
        assert array.tolist() == column.tolist()
        assert array.dtype == (np.int64 if name in {"offset", "timestamp"} else np.int32)
        assert np.shares_memory(array, np.frombuffer(column, array.dtype))
        assert nothing.to_numpy(name).tolist() == []
    assert batches.to_numpy("base_offset").tolist() == [0, 5, 10]
    with pytest.raises(KeyError):
        records.to_numpy("key")


_SCHEMA = pa.schema(
    {
        "offset": pa.int64(),
        "timestamp": pa.timestamp("ms", "UTC"),
        "key": pa.binary(),
        "value": pa.binary(),
        "headers": pa.list_(pa.struct({"key": pa.binary(), "value": pa.binary()})),
    }
)


@_forms
@pytest.mark.parametrize("log", [_LOG, batch_bytes(), batch_bytes(b"?", count=1)], ids=["records", "none", "bad"])
def test_arrow_tables_have_one_schema(form: Any, log: bytes) -> None:
    """Whatever records there are, the schema is the same; some columns are the same columns; Arrow finds all valid."""
    with using(form):
        records = _only_chunk(log).records
        table = records.to_arrow()
        some = _only_chunk(log, "value", "offset").records.to_arrow()
    table.validate(full=True)
    assert table.schema == _SCHEMA
    assert some == table.select(["offset", "value"])
    assert table.num_rows == records.count


@_forms
@examples(25)
@given(log=logs())
def test_arrow_tables_equal_objects(form: Any, log: list[bytes]) -> None:
    """A table's rows are the objects' attributes, nulls as nulls and empty as empty."""
    with using(form):
        for chunk in read_columns(b"".join(log)):
            assert isinstance(chunk, Chunk)
            assert chunk.records is not None
            table = chunk.records.to_arrow()
            table.validate(full=True)
            objects = chunk.records.objects()
            assert table["offset"].to_pylist() == [each.offset for each in objects]
            assert table["timestamp"].cast(pa.int64()).to_pylist() == [each.timestamp for each in objects]
            assert table["key"].to_pylist() == [each.key for each in objects]
            assert table["value"].to_pylist() == [each.value for each in objects]
            assert [[(one["key"], one["value"]) for one in row] for row in table["headers"].to_pylist()] == [
                list(each.headers) for each in objects
            ]


def test_batches_come_as_an_arrow_table() -> None:
    """Headers are int64 columns, in the order asked for."""
    table = _only_chunk(_LOG).batches.to_arrow(["record_count", "base_offset"])
    table.validate(full=True)
    assert table.to_pydict() == {"record_count": [5, 5, 5], "base_offset": [0, 5, 10]}
    assert _only_chunk(_LOG).batches.to_arrow().schema == pa.schema({name: pa.int64() for name in BATCH_COLUMNS})


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without numpy or pyarrow, columns are there, and what needs the package says which extra has it."""
    monkeypatch.setitem(sys.modules, "numpy", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    chunk = _only_chunk(_LOG)
    for call in (
        lambda: chunk.records.to_numpy("offset"),
        chunk.records.to_arrow,
        lambda: chunk.batches.to_numpy("size"),
        chunk.batches.to_arrow,
    ):
        with pytest.raises(MissingExtraError) as caught:
            call()
        assert caught.value.extra == "columns"


@_forms
def test_log_append_time_is_every_record_s(form: Any) -> None:
    """Records of a LogAppendTime batch have its max timestamp, compressed or not; a delete horizon is no timestamp."""
    for codec in (CompressionType.NONE, CompressionType.GZIP):
        fields: dict[str, Any] = {"delete_horizon_ms": 5, "max_timestamp": 77}
        data = _batch(0, codec, timestamp_type=TimestampType.LOG_APPEND_TIME, **fields) + _batch(5, codec, **fields)
        with using(form):
            records = _only_chunk(data).records
        assert records.columns["timestamp"].tolist() == [77] * 5 + [TIMESTAMP + index for index in range(5)]


@_forms
def test_records_of_a_log_come_one_after_the_other(form: Any) -> None:
    """``read_records`` gives all records; a torn tail and zeros are the end."""
    for tail in (b"", b"\0" * 200, _batch(15)[:-1]):
        with using(form):
            records = list(read_records(_LOG + tail))
        assert [(record.key, record.value) for record in records] == _PAYLOADS * 3
        assert [record.offset for record in records] == list(range(15))


@_forms
@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        (batch_bytes(count=1), InvalidRecordError),
        (_batch()[:-1] + b"\1", CorruptBatchError),
        (legacy_message(1, 0, None, b"v"), UnsupportedMagicError),
    ],
    ids=["records", "crc", "legacy"],
)
def test_records_end_with_the_first_error(form: Any, bad: bytes, kind: type[Exception]) -> None:
    """All records before the damage are given; then the error, which says where."""
    with using(form):
        records = read_records(_LOG + bad + _LOG)
        assert [next(records).offset for _ in range(15)] == list(range(15))
        with pytest.raises(kind) as caught:
            next(records)
    assert caught.value.position == len(_LOG)  # type: ignore[attr-defined]


@_forms
def test_objects_of_a_part(form: Any) -> None:
    """Objects can be had of some rows, or of one batch; rows that there are not are left out."""
    with using(form):
        chunk = _only_chunk(_LOG)
        assert [each.offset for each in chunk.objects(1)] == [5, 6, 7, 8, 9]
        assert [each.offset for each in chunk.records.objects(3, 5)] == [3, 4]
        assert [each.offset for each in chunk.records.iterate(-2)] == [13, 14]
        assert chunk.records.objects(15) == chunk.records.objects(40, 50) == chunk.records.objects(4, 2) == []


@_forms
def test_any_buffer_will_do(form: Any) -> None:
    """Bytes, bytearrays and parts of a memoryview are read alike."""
    with using(form):
        for source in (_LOG, bytearray(_LOG), memoryview(b"x" + _LOG + b"y")[1:-1]):
            assert [record.offset for record in read_records(source)] == list(range(15))
            assert _only_chunk(source).records.keys() == [key for key, _ in _PAYLOADS] * 3  # type: ignore[arg-type]


@_forms
def test_batches_that_are_not_adjacent_are_read(form: Any) -> None:
    """Of a run, any batches can be unpacked, and the records of the others do not come."""
    with using(form):
        [chunk] = read_columns(_LOG, ())
        assert isinstance(chunk, Chunk)
        run = chunk.batches.run
        chosen = BatchRun(
            run.data,
            run.position,
            memoryview(bytearray(run.positions)[0:8] + bytearray(run.positions)[16:24]).cast("q"),
            memoryview(bytearray(run.sizes)[0:4] + bytearray(run.sizes)[8:12]).cast("i"),
        )
        chunks = list(run_columns(chosen, ("offset",)))
    assert [each for chunk in chunks if chunk.records for each in chunk.records.columns["offset"]] == [
        *range(5),
        *range(10, 15),
    ]
