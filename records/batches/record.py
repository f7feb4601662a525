# SPDX-License-Identifier: Apache-2.0
"""One record of a batch of magic 2: reading and writing.

::

    varint   length of what follows
    int8     attributes (0)
    varlong  timestamp delta to the batch's base timestamp
    varint   offset delta to the batch's base offset
    varint   key length, -1 for null; key
    varint   value length, -1 for null; value
    varint   number of headers
             each: varint key length, UTF-8 key, varint value length (-1 for null), value

Source: DefaultRecord. Differs: a length below -1 is refused, while Kafka treats it as null (DECISIONS.md, 4).
"""

import functools
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from raftlog.errors import InvalidRecordError
from raftlog.records.checksum import crc32c
from raftlog.records.kernel_choice import kernel
from raftlog.records.varint import read_varint, read_varlong

_TRANSACTIONAL_FLAG: Final = 0x10
_CONTROL_FLAG: Final = 0x20
MARK_FLAGS: Final = _TRANSACTIONAL_FLAG | _CONTROL_FLAG
"""The bits of a batch's attributes that each of its records takes over as marks."""

_NULL: Final = 1
_NEGATIVE: Final = 1
_LONGER: Final = 1 << 14
"""In a raw varint: null, the bit of negative numbers, and the bit that only a third byte can set."""


class Header(NamedTuple):
    """A record header: the key's bytes (UTF-8 by convention), and a value or None."""

    key: bytes
    value: bytes | None


class Record(NamedTuple):
    """One record.

    Attributes:
        offset: its log offset.
        timestamp: milliseconds since the Unix epoch; in a LogAppendTime batch, the batch's max timestamp.
        key: its bytes, or None; empty and None are different.
        value: its bytes, or None.
        headers: in the order written.
        attributes: the record's own attribute byte, 0 from every known writer.
        timestamp_delta: as stored, relative to the batch's base timestamp.
        marks: the bits of its batch's attributes that make it transactional or a control record.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    attributes: int = 0
    timestamp_delta: int = 0
    marks: int = 0

    @property
    def is_control(self) -> bool:
        """Whether it is a control record: its key says which, and is no key of a user's."""
        return bool(self.marks & _CONTROL_FLAG)

    @property
    def is_transactional(self) -> bool:
        """Whether it belongs to a transaction, which may have been aborted."""
        return bool(self.marks & _TRANSACTIONAL_FLAG)


_record_of: Final[Callable[[tuple[object, ...]], Record]] = functools.partial(tuple.__new__, Record)
"""A faster ``Record._make``."""


class RecordView(Protocol):
    """What all records of magic 2 have: ``Record``, and the kernel's records, which copy fields on demand."""

    @property
    def offset(self) -> int:
        """Its log offset."""
        ...

    @property
    def timestamp(self) -> int:
        """Milliseconds since the epoch."""
        ...

    @property
    def key(self) -> bytes | None:
        """Its bytes, or None."""
        ...

    @property
    def value(self) -> bytes | None:
        """Its bytes, or None."""
        ...

    @property
    def headers(self) -> Sequence[tuple[bytes, bytes | None]]:
        """Pairs of key and value, in the order written."""
        ...

    @property
    def is_control(self) -> bool:
        """Whether it is a control record: its key says which, and is no key of a user's."""
        ...

    @property
    def is_transactional(self) -> bool:
        """Whether it belongs to a transaction, which may have been aborted."""
        ...


class RawRecord(NamedTuple):
    """A record as stored: deltas instead of offset and timestamp."""

    attributes: int
    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


def read_record(buffer: bytes, position: int) -> tuple[RawRecord, int]:
    """Read one record at a position.

    Returns:
        The record, and the position after it.

    Raises:
        InvalidRecordError: a field breaks its rule; its position is that of the field, in ``buffer``.
    """
    length, start = read_varint(buffer, position)
    end = start + length
    if length < 0 or end > len(buffer):
        raise InvalidRecordError(
            f"a record of {length} bytes does not fit in {len(buffer) - start}", "record-length", position=position
        )
    if length == 0:
        raise InvalidRecordError("a record has no attributes", "record-end", position=position)
    attributes = buffer[start]
    timestamp_delta, at = read_varlong(buffer, start + 1)
    offset_delta, at = read_varint(buffer, at)
    key, at = _read_field(buffer, at, end, "key")
    value, at = _read_field(buffer, at, end, "value")
    headers, at = _read_headers(buffer, at, end)
    if at != end:
        raise InvalidRecordError(
            f"a record's fields take {at - start} of its {length} bytes", "record-end", position=position
        )
    return RawRecord(attributes, timestamp_delta, offset_delta, key, value, headers), end


def _read_size(buffer: bytes, position: int, end: int) -> tuple[int, int]:
    """Read a varint. Most have one byte, so that case is inlined."""
    if position < end and (byte := buffer[position]) < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    return read_varint(buffer, position)


def _read_field(buffer: bytes, position: int, end: int, what: str) -> tuple[bytes | None, int]:
    size, start = _read_size(buffer, position, end)
    if size == -1:
        return None, start
    stop = start + size
    if size < 0 or stop > end:
        raise InvalidRecordError(f"a {what} of {size} bytes does not fit", "record-field", position=position)
    return buffer[start:stop], stop


def _read_headers(buffer: bytes, position: int, end: int) -> tuple[tuple[Header, ...], int]:
    count, at = _read_size(buffer, position, end)
    if not 0 <= count <= end - at:
        raise InvalidRecordError(f"{count} headers do not fit", "record-headers", position=position)
    headers: list[Header] = []
    for _ in range(count):
        size, start = _read_size(buffer, at, end)
        stop = start + size
        if size < 0 or stop > end:
            raise InvalidRecordError(f"a header key of {size} bytes does not fit", "record-header-key", position=at)
        value, at = _read_field(buffer, stop, end, "header value")
        headers.append(Header(buffer[start:stop], value))
    return tuple(headers), at


def read_usual_records(
    buffer: bytes, position: int, count: int, base_offset: int, base_timestamp: int, append_time: int | None, marks: int
) -> tuple[list[Record], int]:
    """Read usual records fast: sound ones whose sizes and offset deltas have one or two bytes.

    Args:
        buffer: the record area.
        position: of the first record in it.
        count: the most records to read.
        base_offset: what offset deltas are added to; the sums must fit in 64 bits.
        base_timestamp: the same for timestamps.
        append_time: the timestamp of every record of a LogAppendTime batch, or None.
        marks: the marks of all of them.

    Returns:
        The records, and the position after them. If there are fewer than ``count``, continue there with
        ``read_record``.
    """
    records: list[Record] = []
    try:
        for _ in range(count):  # Inlined: a call per field would take longer than reading the field.
            size, at = buffer[position], position + 1
            if size > 0x7F:
                size, at = size + (buffer[at] - 1 << 7), at + 1
            end, seen = at + (size >> 1), size
            attributes, timestamp_delta, at = buffer[at], buffer[at + 1], at + 2
            if timestamp_delta > 0x7F:
                timestamp_delta, at = _rest_of_uvarint(buffer, at, timestamp_delta)
            offset_delta, at = buffer[at], at + 1
            if offset_delta > 0x7F:
                offset_delta, at = offset_delta + (buffer[at] - 1 << 7), at + 1
            key = value = None
            size, at = buffer[at], at + 1
            if size != _NULL:
                if size > 0x7F:
                    size, at = size + (buffer[at] - 1 << 7), at + 1
                start, at = at, at + (size >> 1)
                key = buffer[start:at]
                seen |= size
            size, at = buffer[at], at + 1
            if size != _NULL:
                if size > 0x7F:
                    size, at = size + (buffer[at] - 1 << 7), at + 1
                start, at = at, at + (size >> 1)
                value = buffer[start:at]
                seen |= size
            headers: tuple[Header, ...] = ()
            header_count, at = buffer[at], at + 1
            if header_count:
                headers, at = _read_usual_headers(buffer, at, header_count)
            if at != end or end > len(buffer) or (seen | offset_delta & _LONGER) & (_LONGER | _NEGATIVE):
                break
            offset = base_offset + ((offset_delta >> 1) ^ -(offset_delta & 1))
            timestamp_delta = (timestamp_delta >> 1) ^ -(timestamp_delta & 1)
            timestamp = base_timestamp + timestamp_delta if append_time is None else append_time
            records.append(_record_of((offset, timestamp, key, value, headers, attributes, timestamp_delta, marks)))
            position = end
    except IndexError:
        pass  # The record is cut, or it is not a usual one.
    return records, position


def _read_usual_headers(buffer: bytes, position: int, raw_count: int) -> tuple[tuple[Header, ...], int]:
    """Read headers whose sizes have one byte each; there are fewer than 64."""
    if raw_count & 0x81:
        raise IndexError
    at = position
    headers: list[Header] = []
    for _ in range(raw_count >> 1):
        size, start = buffer[at], at + 1
        at = start + (size >> 1)
        key, value = buffer[start:at], None
        seen = size
        size, at = buffer[at], at + 1
        if size != _NULL:
            start, at = at, at + (size >> 1)
            value = buffer[start:at]
            seen |= size
        if seen & 0x81:  # One is negative, or longer than a byte.
            raise IndexError
        headers.append(tuple.__new__(Header, (key, value)))
    return tuple(headers), at


def _rest_of_uvarint(buffer: bytes, position: int, value: int) -> tuple[int, int]:
    """Read the remaining bytes of a varint after its first one; there are at most four."""
    for shift in (7, 14, 21):
        byte = buffer[position]
        value += byte - 1 << shift  # Subtracts the continuation bit of the byte before, which was added to the value.
        position += 1
        if byte < 0x80:
            return value, position
    raise IndexError


def encode_record(record: RawRecord) -> bytes:
    """Encode a record, preceded by its length, in the fewest bytes.

    Raises:
        ValueError: a delta does not fit its varint.
    """
    row = (record.timestamp_delta, record.key, record.value, record.headers)
    try:
        prepared, size, *_ = kernel.prepare([row], 0, record.offset_delta)
    except OverflowError as error:
        raise ValueError(f"no 64-bit value, or no 32-bit value: {error}") from None
    encoded = kernel.encode(b"", [prepared], size, crc32c)
    _, at = read_varint(encoded, 0)
    return b"%b%c%b" % (encoded[:at], record.attributes, encoded[at + 1 :])
