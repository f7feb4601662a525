# SPDX-License-Identifier: Apache-2.0
"""Digests of records: both forms of the kernel, beside the reference, and with columns that are wrong."""

import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import DecodeError
from raftlog.records import reference
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.columns.column_values import Chunk
from raftlog.records.columns.columns import read_columns
from raftlog.records.columns.record_digests import record_digests
from raftlog.records.reference import ReferenceRecord
from raftlog.records.varint import varint
from tests.records.extreme_batches import extreme_batches
from tests.records.kernel_forms import BUILT_FORMS, FORMS, examples, using
from tests.strategies import logs, ready_made_batches

_forms = pytest.mark.parametrize("kernel", FORMS)
_ALL_BITS = 2**64 - 1
# A key starts in the middle of a block, a value at its start; a block has 32 bytes, and is read as words of 8.
_SIZES = (0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 80, 81, 200)
_fields = st.none() | st.sampled_from(_SIZES).flatmap(lambda size: st.binary(min_size=size, max_size=size))
_records = st.builds(
    ReferenceRecord,
    st.just(0),
    st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1]) | st.integers(0, 2**45),
    _fields,
    _fields,
    st.lists(st.tuples(_fields.map(lambda key: key or b""), _fields), max_size=3),
)
_NUMBERS = (-(2**31), -2, -1, 0, 1, 2, 15, 16, 17, 31, 32, 33, 50, 61, 62, 63, 2**31 - 1)
_HEADERS = b"\x02k\x04vw\x00\x01\x00\x00"
"""Three headers: k with vw, an empty key with null, an empty key with an empty value."""


def _column(kind: str, *numbers: int) -> memoryview:
    return memoryview(array.array(kind, numbers))


def _laid_out(records: list[ReferenceRecord], gap: bytes) -> tuple[bytes, list[memoryview]]:
    """Place the fields of records one after the other, and return the bytes, and the columns that a digest takes."""
    data = bytearray(gap)
    rows: list[list[int]] = []
    for record in records:
        row = [record.timestamp]
        for field in (record.key, record.value):
            row += [len(data), -1 if field is None else len(field)]
            data += field or b""
        row += [len(data), len(record.headers)]
        for key, value in record.headers:
            data += varint(len(key)) + key + varint(-1 if value is None else len(value)) + (value or b"")
        rows.append(row)
    columns = list(zip(*rows, strict=True)) if rows else [()] * 7
    return bytes(data), [_column("q", *columns[0]), *(_column("i", *column) for column in columns[1:])]


def _digests(kernel: Any, data: bytes, columns: list[memoryview]) -> list[tuple[int, int]]:
    rows = len(columns[0])
    out = _column("q", *[0] * (2 * rows))
    kernel.digest_records(data, *columns, out)
    halves = [number & _ALL_BITS for number in out]
    return list(zip(halves[:rows], halves[rows:], strict=True))


# The hash


def test_the_reference_is_t1ha2() -> None:
    """The hash has published values: those of its own self-check, and the number by which SMHasher3 verifies it.

    That number covers both halves of hashes of 0 to 255 bytes with as many seeds, and of 4096 bytes.
    """
    pattern = bytes([*range(8), 0xFF, 0x7F, 0x3F, 0x1F, 0xF, 8, 16, 32, 64, 0x80, 0xFE, 0xFC, 0xF8, 0xF0, 0xE0, 0xC0])
    pattern += bytes([0xFD, 0xFB, 0xF7, 0xEF, 0xDF, 0xBF, 0x55, 0xAA, 11, 17, 19, 23, 29, 37, 42, 43])
    pattern += b"abcdefghijklmnopqrstuvwx"
    assert reference.t1ha2(b"")[0] == 0x4EC7F6A48E33B00A
    assert reference.t1ha2(b"", _ALL_BITS)[0] == 0xB7B7FAA5BD7D8C1E
    assert reference.t1ha2(pattern)[0] == 0x3269533F66534A76
    assert reference.t1ha2(pattern[:1], 1)[0] == 0x6C3EC6B687923BFC
    assert reference.t1ha2(bytes(range(7, 254)), _ALL_BITS << 7 & _ALL_BITS)[0] == 0x3356A5CFA8F23BF4
    hashes = b""
    for size in range(256):
        for half in reference.t1ha2(bytes(range(size)), 256 - size):
            hashes += half.to_bytes(8, "little")
    assert reference.t1ha2(hashes)[0] & 0xFFFFFFFF == 0xB44C43A1


@examples(100)
@given(_records)
def test_an_encoding_has_one_meaning(record: ReferenceRecord) -> None:
    """The contents can be read back from what is hashed: no other contents have the same encoding."""
    encoded = reference.encoded_contents(record)
    assert len(encoded) >= 64
    assert len(encoded) % 32 == 0
    number, key, value, rest = _decoded(encoded)
    headers = []
    while rest:
        _, header_key, header_value, rest = _decoded(rest)
        headers.append((header_key, header_value))
    assert (number, key, value, headers) == (record.timestamp, record.key, record.value, record.headers)


def _decoded(encoded: bytes) -> tuple[int, bytes | None, bytes | None, bytes]:
    number, key_size, value_size = (
        int.from_bytes(encoded[start:end], "little", signed=True) for start, end in ((0, 8), (8, 12), (12, 16))
    )
    start = 32
    while start < 16 + key_size:
        start += 32
    end = start + 32
    while end < start + value_size:
        end += 32
    key = None if key_size < 0 else encoded[16 : 16 + key_size]
    value = None if value_size < 0 else encoded[start : start + value_size]
    return number, key, value, encoded[end:]


# Agreement


@examples(60)
@given(st.lists(_records, max_size=4), st.sampled_from([b"", b"\xff" * 5]))
def test_both_forms_digest_as_the_reference_does(records: list[ReferenceRecord], gap: bytes) -> None:
    """Whatever the sizes of fields are, and wherever they are, also at the very end of the data."""
    data, columns = _laid_out(records, gap)
    expected = [reference.record_digest(record) for record in records]
    for kernel in BUILT_FORMS:
        assert _digests(kernel, data, columns) == expected
        assert _digests(kernel, data + b"\xff" * 100, columns) == expected


@examples(25)
@given(logs() | st.lists(ready_made_batches | extreme_batches(), min_size=1, max_size=4))
def test_digests_of_logs_are_those_of_their_records(log: list[bytes]) -> None:
    """Each record of a log has the digest of what the reference reads, in both forms."""
    for kernel in BUILT_FORMS:
        with using(kernel):
            for chunk in read_columns(b"".join(log), data_only=False):
                if isinstance(chunk, Chunk):
                    _check_chunk(chunk)


def _check_chunk(chunk: Chunk) -> None:
    assert chunk.records is not None
    bad = dict(chunk.errors)
    batches: list[RecordBatch] = list(chunk.batches.run.batches())
    records = [
        record
        for index, batch in enumerate(batches)
        if index not in bad
        for record in reference.read_records(bytes(batch.buffer))
    ]
    digests = record_digests(chunk.records)
    halves = zip(digests.low, digests.high, strict=True)
    found = [(low & _ALL_BITS, high & _ALL_BITS) for low, high in halves]
    assert found == [reference.record_digest(record) for record in records]


@_forms
@pytest.mark.parametrize("is_key", [True, False], ids=["key", "value"])
def test_fields_of_every_size_end_with_the_data(kernel: Any, is_key: bool) -> None:
    """A field of 0 to 100 bytes at the end of the data is digested as it is before others."""
    for size in range(101):
        field = bytes(range(100, 100 + size))
        record = ReferenceRecord(0, 5, field if is_key else None, None if is_key else field, [])
        data, columns = _laid_out([record], b"")
        assert _digests(kernel, data, columns) == [reference.record_digest(record)]
        for after in (1, 8, 15, 16, 17, 31, 32, 33):
            assert _digests(kernel, data + b"\xff" * after, columns) == [reference.record_digest(record)]


# Wrong columns


@_forms
@pytest.mark.parametrize(("position", "size"), [(0, 51), (1, 50), (51, 0), (50, 1), (-1, 1), (-1, 0), (0, -2)])
@pytest.mark.parametrize("field", [1, 3], ids=["key", "value"])
def test_a_field_is_in_the_data(kernel: Any, field: int, position: int, size: int) -> None:
    """One byte before the data, or after it, and a size that is none, are refused; all of the data is a field."""
    columns = [_column("q", 5), *(_column("i", number) for number in (0, 50, 50, 0, 0, 0))]
    (expected,) = _digests(kernel, bytes(50), columns)
    assert expected == reference.record_digest(ReferenceRecord(0, 5, bytes(50), b"", []))
    columns[field], columns[field + 1] = _column("i", position), _column("i", size)
    with pytest.raises(ValueError):
        _digests(kernel, bytes(50), columns)


@_forms
@pytest.mark.parametrize(
    ("position", "count"),
    [(0, 4), (1, 3), (-1, 1), (9, 1), (10, 1), (2**31 - 1, 1), (-(2**31), 1), (0, -1), (0, 2**31 - 1), (0, -(2**31))],
)
def test_headers_are_in_the_data(kernel: Any, position: int, count: int) -> None:
    """What is not a header, or is past the data, is refused; the position of no headers does not count."""
    columns = [_column("q", 5), *(_column("i", number) for number in (0, -1, 0, -1, 0, 3))]
    headers = [(b"k", b"vw"), (b"", None), (b"", b"")]
    assert _digests(kernel, _HEADERS, columns) == [reference.record_digest(ReferenceRecord(0, 5, None, None, headers))]
    columns[5:] = [_column("i", position), _column("i", count)]
    with pytest.raises(ValueError):
        _digests(kernel, _HEADERS, columns)
    columns[6] = _column("i", 0)
    assert _digests(kernel, _HEADERS, columns) == [reference.record_digest(ReferenceRecord(0, 5, None, None, []))]


@_forms
@pytest.mark.parametrize(
    "header",
    [b"\x01\x00", b"\x02k\x03", b"\x02k\x04v", b"\x02", b"\x80", b"\x02k", b"\xff\xff\xff\xff\xff\x01\x00"],
    ids=["null key", "size -2", "short value", "no key", "no size", "no value", "long varint"],
)
def test_headers_that_are_none(kernel: Any, header: bytes) -> None:
    """A key that is null, a size that is none or beyond the data, and a varint that does not end, are refused."""
    columns = [_column("q", 5), *(_column("i", number) for number in (0, -1, 0, -1, 0, 1))]
    with pytest.raises(ValueError):
        _digests(kernel, header, columns)


@_forms
@pytest.mark.parametrize("argument", range(8))
def test_there_is_a_number_for_each_row(kernel: Any, argument: int) -> None:
    """A column that is one too short is refused, before anything is written; no rows need nothing."""
    columns = [_column("q", 5, 5), *(_column("i", number, number) for number in (0, -1, 0, -1, 0, 0))]
    arguments = [*columns, _column("q", *[7] * 4)]
    if argument == 0:
        kernel.digest_records(b"", *(column[2:] for column in columns), _column("q"))
        return
    out = arguments[7]
    arguments[argument] = arguments[argument][1:]
    with pytest.raises(ValueError):
        kernel.digest_records(b"", *arguments)
    assert out.tolist() == [7] * 4


@examples(150)
@given(st.lists(st.sampled_from(_NUMBERS), min_size=6, max_size=6), st.sampled_from([0, 1, 33, 62]))
def test_any_numbers_are_refused_or_digested(numbers: list[int], size: int) -> None:
    """Whatever positions, sizes and counts are: the record that they say is digested, or there is a ValueError."""
    data = (_HEADERS * 8)[:size]
    expected = _said(data, *numbers)
    columns = [_column("q", 5), *(_column("i", number) for number in numbers)]
    for kernel in BUILT_FORMS:
        if expected is None:
            with pytest.raises(ValueError):
                _digests(kernel, data, columns)
        else:
            assert _digests(kernel, data, columns) == [reference.record_digest(expected)]


def _said(data: bytes, key: int, key_size: int, value: int, value_size: int, header: int, count: int) -> Any:
    """Return the record that some columns say, or None if it is not in the data."""
    for position, size in ((key, key_size), (value, value_size)):
        if size < -1 or (size >= 0 and not 0 <= position <= len(data) - size):
            return None
    fields = [
        data[position : position + size] if size >= 0 else None
        for position, size in ((key, key_size), (value, value_size))
    ]
    headers: list[tuple[bytes, bytes | None]] = []
    area = reference.Cursor(data)
    area.position = header
    if count < 0 or (count > 0 and header < 0):
        return None
    for _ in range(count):
        try:
            size = area.varint(32)
            reference.require(0 <= size <= area.left(), "record-header-key")
            headers.append((area.take(size), reference.read_field(area, len(data))))
        except DecodeError:
            return None
    return ReferenceRecord(0, 5, fields[0], fields[1], headers)
