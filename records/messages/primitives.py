# SPDX-License-Identifier: Apache-2.0
"""Readers and writers of the primitive values in message fields.

A reader is ``read(buffer, position) -> (value, position after it)``. A writer is ``write(out, value)`` and appends.
Lengths come in two forms: classic (a signed integer, -1 is null) and compact (an unsigned varint of length + 1, 0 is
null).

Source: Readable, Writable, ByteBufferAccessor, ByteUtils and the code that Kafka generates for each message. A reader's
InvalidRecordError has Kafka's own text. If Kafka has no text, because its buffer just underflows, the error is a
TruncatedBatchError.
"""

import functools
import struct
import uuid
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final

from raftlog.errors import InvalidRecordError, TruncatedBatchError
from raftlog.records.limits import MAX_MESSAGE_ITEMS
from raftlog.records.varint import uvarint

Buffer = bytes | bytearray | memoryview
Reader = Callable[[Buffer, int], tuple[Any, int]]
Writer = Callable[[bytearray, Any], None]
LengthReader = Callable[[Buffer, int], tuple[int, int]]
LengthWriter = Callable[[int | None], bytes]

RULE: Final = "message-field"
MAX_STRING_SIZE: Final = 0x7FFF

FIXED_FORMATS: Final = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint16": "H",
    "uint32": "I",
    "float64": "d",
}
"""The types of a fixed size, and their letters in the struct module."""


def ended(position: int) -> TruncatedBatchError:
    """Return the error for a value that continues past the end of the bytes."""
    return TruncatedBatchError("the bytes end inside a field", RULE, position=position)


def invalid(reason: str, position: int | None = None) -> InvalidRecordError:
    """Return the error for a value that breaks the format."""
    return InvalidRecordError(reason, RULE, position=position)


# Reading


def read_unsigned(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read an unsigned varint into a signed 32-bit integer, as Java does: 2^31 and more become negative.

    Raises:
        TruncatedBatchError: the bytes end inside it.
        InvalidRecordError: it has more than 5 bytes.
    """
    start = position
    try:
        byte = buffer[position]
        if byte < 0x80:
            return byte, position + 1
        value = byte & 0x7F
        for shift in (7, 14, 21):
            position += 1
            byte = buffer[position]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, position + 1
        byte = buffer[position + 1]
    except IndexError:
        raise ended(start) from None
    value |= (byte & 0x0F) << 28
    if byte >= 0x80:
        problem = "Varint is too long, the most significant bit in the 5th byte is set, converted value"
        raise invalid(f"{problem}: {value:x}", start)
    return value - ((value & 0x80000000) << 1), position + 2


def read_compact_length(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read the length of a compact value; null is a negative length."""
    try:
        byte = buffer[position]
    except IndexError:
        raise ended(position) from None
    if byte < 0x80:  # nearly all are that short
        return byte - 1, position + 1
    value, position = read_unsigned(buffer, position)
    # In Java the least integer minus one wraps to the greatest.
    return (value - 1 if value != -0x80000000 else 0x7FFFFFFF), position


def fixed_reader(type_name: str) -> Reader:
    """Return the reader of a number or bool."""
    layout = struct.Struct(">" + FIXED_FORMATS[type_name])
    unpack_from, size = layout.unpack_from, layout.size

    def read(buffer: Buffer, position: int) -> tuple[Any, int]:
        try:
            return unpack_from(buffer, position)[0], position + size
        except struct.error:
            raise ended(position) from None

    return read


read_int16_length: Final[LengthReader] = fixed_reader("int16")
read_int32_length: Final[LengthReader] = fixed_reader("int32")


def read_uuid(buffer: Buffer, position: int) -> tuple[uuid.UUID, int]:
    """Read a uuid of 16 bytes."""
    end = position + 16
    data = bytes(buffer[position:end])
    if len(data) < 16:
        raise ended(position)
    return cached_uuid(data), end


@functools.lru_cache(maxsize=4096)
def cached_uuid(data: bytes) -> uuid.UUID:
    """Return the uuid of 16 bytes, cached since those of topics and directories recur."""
    return uuid.UUID(int=int.from_bytes(data, "big"))


def bytes_reader(name: str, read_length: LengthReader, *, nullable: bool) -> Reader:
    """Return the reader of the bytes field ``name``."""

    def read(buffer: Buffer, position: int) -> tuple[bytes | None, int]:
        length, start = read_length(buffer, position)
        if length < 0:
            _check_null(name, nullable, position)
            return None, start
        end = start + length
        if end > len(buffer):
            raise too_short(length, len(buffer) - start, position)
        return bytes(buffer[start:end]), end

    return read


def string_reader(name: str, read_length: LengthReader, *, nullable: bool) -> Reader:
    """Return the reader of the string field ``name``; bytes that are not UTF-8 are kept as lone surrogates."""

    def read(buffer: Buffer, position: int) -> tuple[str | None, int]:
        length, start = read_length(buffer, position)
        if length < 0:
            _check_null(name, nullable, position)
            return None, start
        if length > MAX_STRING_SIZE:
            raise invalid(f"string field {name} had invalid length {length}", position)
        end = start + length
        if end > len(buffer):
            raise too_short(length, len(buffer) - start, position)
        return str(buffer[start:end], "utf-8", "surrogateescape"), end

    return read


_items_read: ContextVar[int] = ContextVar("items_read", default=0)
"""The item count of the message that is being read, per thread."""


def begin_message() -> None:
    """Reset the item count at the start of a message."""
    _items_read.set(0)


def count_items(count: int, position: int) -> None:
    """Count items of a message that are about to be read.

    Raises:
        InvalidRecordError: there are more than ``limits.MAX_MESSAGE_ITEMS`` in the message.
    """
    count += _items_read.get()
    if count > MAX_MESSAGE_ITEMS:
        raise invalid(f"a message of {count} items or more, and at most {MAX_MESSAGE_ITEMS} are allowed", position)
    _items_read.set(count)


def array_reader(name: str, read_length: LengthReader, read_item: Reader, *, nullable: bool) -> Reader:
    """Return the reader of the array field ``name``, whose items ``read_item`` reads one by one."""

    def read(buffer: Buffer, position: int) -> tuple[list[Any] | None, int]:
        count, start = read_length(buffer, position)
        if count < 0:
            _check_null(name, nullable, position)
            return None, start
        if count > len(buffer) - start:
            raise _too_many(count, len(buffer) - start, position)
        count_items(count, position)
        items = []
        for _ in range(count):
            item, start = read_item(buffer, start)
            items.append(item)
        return items, start

    return read


def fixed_array_reader(name: str, read_length: LengthReader, type_name: str, *, nullable: bool) -> Reader:
    """Return the reader of an array of numbers, which reads them all at once."""
    letter = FIXED_FORMATS[type_name]
    size = struct.calcsize(">" + letter)

    def read(buffer: Buffer, position: int) -> tuple[list[Any] | None, int]:
        count, start = read_length(buffer, position)
        if count < 0:
            _check_null(name, nullable, position)
            return None, start
        if count > len(buffer) - start:
            raise _too_many(count, len(buffer) - start, position)
        end = start + count * size
        if end > len(buffer):
            raise ended(position)
        count_items(count, position)
        return list(_layout(letter, count).unpack_from(buffer, start)), end

    return read


@functools.lru_cache(maxsize=256)
def _layout(letter: str, count: int) -> struct.Struct:
    return struct.Struct(f">{count}{letter}")


def _check_null(name: str, nullable: bool, position: int) -> None:
    if not nullable:
        raise invalid(f"non-nullable field {name} was serialized as null", position)


def _too_many(count: int, remaining: int, position: int) -> InvalidRecordError:
    """Return the error for an array that claims more items than there are bytes."""
    problem = f"Tried to allocate a collection of size {count}, but there are only {remaining} bytes remaining."
    return invalid(problem, position)


def too_short(wanted: int, available: int, position: int) -> InvalidRecordError:
    """Return the error for a field of bytes that continues past the end."""
    return invalid(f"Error reading byte array of {wanted} byte(s): only {available} byte(s) available", position)


# Writing


def write_unsigned(out: bytearray, value: int) -> None:
    """Append an unsigned varint."""
    out += uvarint(value)


def compact_length(length: int | None) -> bytes:
    """Encode the length of a compact value, None for null."""
    return b"\x00" if length is None else uvarint(length + 1)


def int16_length(length: int | None) -> bytes:
    """Encode the length of a classic string, None for null."""
    return struct.pack(">h", -1 if length is None else length)


def int32_length(length: int | None) -> bytes:
    """Encode the length of classic bytes or of a classic array, None for null."""
    return struct.pack(">i", -1 if length is None else length)


_PYTHON_TYPES: dict[str, Any] = {"bool": bool, "float64": float | int}


def fixed_writer(name: str, type_name: str) -> Writer:
    """Return the writer of the number or bool field ``name``."""
    pack = struct.Struct(">" + FIXED_FORMATS[type_name]).pack
    wanted = _PYTHON_TYPES.get(type_name, int)

    def write(out: bytearray, value: Any) -> None:
        if not isinstance(value, wanted):
            raise _unfit(name, type_name, value)
        try:
            out += pack(value)
        except (struct.error, OverflowError):
            raise _unfit(name, type_name, value) from None

    return write


def uuid_writer(name: str) -> Writer:
    """Return the writer of the uuid field ``name``."""

    def write(out: bytearray, value: Any) -> None:
        if not isinstance(value, uuid.UUID):
            raise _unfit(name, "uuid", value)
        out += value.bytes

    return write


def bytes_writer(name: str, encode_length: LengthWriter, *, nullable: bool) -> Writer:
    """Return the writer of the bytes field ``name``."""

    def write(out: bytearray, value: Any) -> None:
        if value is None and nullable:
            out += encode_length(None)
        elif isinstance(value, bytes | bytearray | memoryview):
            data = bytes(value)
            out += encode_length(len(data))
            out += data
        else:
            raise _unfit(name, "bytes", value)

    return write


def string_writer(name: str, encode_length: LengthWriter, *, nullable: bool) -> Writer:
    """Return the writer of the string field ``name``."""

    def write(out: bytearray, value: Any) -> None:
        if value is None and nullable:
            out += encode_length(None)
            return
        if not isinstance(value, str):
            raise _unfit(name, "string", value)
        try:
            data = value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise _unfit(name, "string", value) from None
        if len(data) > MAX_STRING_SIZE:
            raise invalid(f"'{name}' field is too long to be serialized")
        out += encode_length(len(data))
        out += data

    return write


def array_writer(name: str, encode_length: LengthWriter, write_item: Writer, *, nullable: bool) -> Writer:
    """Return the writer of the array field ``name``."""

    def write(out: bytearray, value: Any) -> None:
        if value is None and nullable:
            out += encode_length(None)
        elif isinstance(value, list | tuple):
            out += encode_length(len(value))
            for item in value:
                write_item(out, item)
        else:
            raise _unfit(name, "array", value)

    return write


def _unfit(name: str, type_name: str, value: object) -> InvalidRecordError:
    return invalid(f"field {name} takes {type_name}, not {value!r:.60}")
