# SPDX-License-Identifier: Apache-2.0
"""The values that fields are made of."""

import struct
import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import DecodeError, InvalidRecordError, TruncatedBatchError
from raftlog.records.messages import primitives
from raftlog.records.messages.primitives import Reader, Writer
from raftlog.records.varint import read_uvarint, uvarint
from tests.records.outcome import outcome

ints32 = st.integers(-(1 << 31), (1 << 31) - 1)
every = settings(deadline=None)

LENGTHS = [
    (primitives.read_compact_length, primitives.compact_length),
    (primitives.read_int16_length, primitives.int16_length),
    (primitives.read_int32_length, primitives.int32_length),
]


def pair(kind: str, length: int, *, nullable: bool) -> tuple[Reader, Writer]:
    """Give a reader and its writer."""
    read_length, encode_length = LENGTHS[length]
    match kind:
        case "string":
            return (
                primitives.string_reader("f", read_length, nullable=nullable),
                primitives.string_writer("f", encode_length, nullable=nullable),
            )
        case "bytes":
            return (
                primitives.bytes_reader("f", read_length, nullable=nullable),
                primitives.bytes_writer("f", encode_length, nullable=nullable),
            )
    write_item = primitives.fixed_writer("f element", "int32")
    return (
        primitives.fixed_array_reader("f", read_length, "int32", nullable=nullable),
        primitives.array_writer("f", encode_length, write_item, nullable=nullable),
    )


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(st.characters(codec="utf-8")) | st.binary().map(lambda b: b.decode("utf-8", "surrogateescape")),
    "bytes": st.binary(),
    "array": st.lists(ints32),
}


@pytest.mark.parametrize("kind", VALUES)
@every
@given(st.data(), st.integers(0, 2), st.booleans(), st.binary(max_size=3))
def test_sized_values_survive(kind: str, data: st.DataObject, length: int, nullable: bool, tail: bytes) -> None:
    """A string, bytes or array reads as it was written, in all forms of length, with what follows untouched."""
    read, write = pair(kind, length, nullable=nullable)
    value = data.draw(st.none() | VALUES[kind] if nullable else VALUES[kind])
    out = bytearray(b"x")
    write(out, value)
    assert read(bytes(out) + tail, 1) == (value, len(out))
    assert read(memoryview(bytes(out)), 1) == (value, len(out))


@pytest.mark.parametrize("kind", VALUES)
@every
@given(st.integers(0, 2), st.binary(max_size=12))
def test_any_bytes_read_or_are_refused(kind: str, length: int, data: bytes) -> None:
    """Any bytes give a value inside them, or a typed error with the position of the field."""
    read, _ = pair(kind, length, nullable=True)
    read_or_refused = outcome(lambda: read(b"x" + data, 1))
    if isinstance(read_or_refused, DecodeError):
        assert isinstance(read_or_refused, InvalidRecordError | TruncatedBatchError)
        assert (read_or_refused.position, read_or_refused.rule) == (1, "message-field")
    else:
        assert 1 < read_or_refused[1] <= len(data) + 1


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("length", [0, 1, 2])
def test_null_is_refused_where_it_is_not_allowed(kind: str, length: int) -> None:
    """A null in a field that is not nullable is an error, in reading and in writing."""
    read, write = pair(kind, length, nullable=False)
    with pytest.raises(InvalidRecordError, match="non-nullable field f was serialized as null"):
        read(LENGTHS[length][1](None), 0)
    with pytest.raises(InvalidRecordError, match="field f takes"):
        write(bytearray(), None)


@every
@given(st.sampled_from(sorted(primitives.FIXED_FORMATS)), st.binary(min_size=12, max_size=16), st.integers(0, 4))
def test_numbers_are_big_endian(type_name: str, data: bytes, start: int) -> None:
    """A number reads as the struct module says, and a bool is true for any byte but zero."""
    layout = struct.Struct(">" + primitives.FIXED_FORMATS[type_name])
    read = primitives.fixed_reader(type_name)
    value, end = read(data, start)
    assert end == start + layout.size
    out = bytearray()
    primitives.fixed_writer("f", type_name)(out, value)
    assert type_name == "bool" or bytes(out) == data[start:end]
    with pytest.raises(TruncatedBatchError):
        read(data[: end - 1], start)


@pytest.mark.parametrize(
    ("type_name", "value"),
    [("int8", 128), ("uint16", -1), ("int32", 1.0), ("int64", None), ("bool", 1), ("float64", "1"), ("int16", "1")],
)
def test_wrong_numbers_are_refused(type_name: str, value: object) -> None:
    """A number out of range, or of another kind, is an InvalidRecordError."""
    with pytest.raises(InvalidRecordError, match=f"field f takes {type_name}"):
        primitives.fixed_writer("f", type_name)(bytearray(), value)


def test_a_float_too_large_is_refused() -> None:
    """An integer that no double can hold does not fit a double."""
    with pytest.raises(InvalidRecordError):
        primitives.fixed_writer("f", "float64")(bytearray(), 10**400)


@every
@given(st.uuids())
def test_uuids_are_16_bytes(value: uuid.UUID) -> None:
    """A uuid is its bytes."""
    out = bytearray()
    primitives.uuid_writer("f")(out, value)
    assert bytes(out) == value.bytes
    assert primitives.read_uuid(bytes(out), 0) == (value, 16)
    with pytest.raises(TruncatedBatchError):
        primitives.read_uuid(bytes(out), 1)
    with pytest.raises(InvalidRecordError):
        primitives.uuid_writer("f")(out, value.bytes)


@every
@given(st.integers(0, (1 << 31) - 1))
def test_unsigned_varints_are_those_of_the_log(value: int) -> None:
    """Below 2^31 an unsigned varint of a message is one of a record."""
    assert (
        primitives.read_unsigned(uvarint(value), 0) == read_uvarint(uvarint(value), 0) == (value, len(uvarint(value)))
    )


@every
@given(st.integers(1 << 31, (1 << 32) - 1))
def test_large_unsigned_varints_are_negative(value: int) -> None:
    """From 2^31 on it comes out negative, as in Java, and as a length it is null: but the least is the greatest."""
    assert primitives.read_unsigned(uvarint(value), 0) == (value - (1 << 32), 5)
    length, _ = primitives.read_compact_length(uvarint(value), 0)
    assert length == (0x7FFFFFFF if value == 1 << 31 else value - (1 << 32) - 1)


def test_a_long_varint_error_has_the_value() -> None:
    """Six bytes are too many, and the error is Kafka's."""
    with pytest.raises(InvalidRecordError, match=r"Varint is too long.* converted value: ffffffff"):
        primitives.read_unsigned(b"\xff" * 6, 0)
    for size in range(5):
        with pytest.raises(TruncatedBatchError):
            primitives.read_unsigned(b"\xff" * size, 0)


def test_sizes_are_checked_before_they_are_used() -> None:
    """A length beyond the bytes, or a string beyond 32767, is refused with Kafka's words."""
    read_bytes, _ = pair("bytes", 2, nullable=True)
    with pytest.raises(InvalidRecordError, match=r"Error reading byte array of 2147483647 byte\(s\): only 2 byte"):
        read_bytes(b"\x7f\xff\xff\xffab", 0)
    read_array, _ = pair("array", 2, nullable=True)
    with pytest.raises(InvalidRecordError, match="collection of size 5, but there are only 4 bytes remaining"):
        read_array(b"\0\0\0\x05abcd", 0)
    with pytest.raises(TruncatedBatchError):
        read_array(b"\0\0\0\x04abcd", 0)
    _, write_string = pair("string", 0, nullable=True)
    with pytest.raises(InvalidRecordError, match="'f' field is too long to be serialized"):
        write_string(bytearray(), "é" * 0x4000)
    with pytest.raises(InvalidRecordError):
        write_string(bytearray(), "\ud800")
