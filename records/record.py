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

Source: DefaultRecord. Differs: a length below -1 is refused, where Kafka takes it for null (DECISIONS.md, 4).
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from raftlog.errors import InvalidRecordError
from raftlog.records.kernel_choice import kernel
from raftlog.records.varint import read_varint, read_varlong


class Header(NamedTuple):
    """A record header: the key's bytes (UTF-8 by convention), and a value or None."""

    key: bytes
    value: bytes | None


class Record(NamedTuple):
    """One record.

    Attributes:
        offset: its log offset.
        timestamp: milliseconds since the epoch; of a LogAppendTime batch, the batch's max timestamp.
        key: its bytes, or None; empty and None are different.
        value: its bytes, or None.
        headers: in the order written.
        attributes: the record's own attribute byte, 0 from every known writer.
        timestamp_delta: as stored, relative to the batch's base timestamp.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    attributes: int = 0
    timestamp_delta: int = 0


class RecordView(Protocol):
    """What every form of a record of magic 2 has: ``Record``, and the kernel's, which cuts fields out when asked."""

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
    at = start + 1
    # Most fields are varints of one byte: spare them the call.
    if at < end and (byte := buffer[at]) < 0x80:
        timestamp_delta, at = (byte >> 1) ^ -(byte & 1), at + 1
    else:
        timestamp_delta, at = read_varlong(buffer, at)
    if at < end and (byte := buffer[at]) < 0x80:
        offset_delta, at = (byte >> 1) ^ -(byte & 1), at + 1
    else:
        offset_delta, at = read_varint(buffer, at)
    key, at = _read_field(buffer, at, end, "key")
    value, at = _read_field(buffer, at, end, "value")
    headers: tuple[Header, ...] = ()
    if at < end and buffer[at] == 0:
        at += 1
    else:
        headers, at = _read_headers(buffer, at, end)
    if at != end:
        raise InvalidRecordError(
            f"a record's fields take {at - start} of its {length} bytes", "record-end", position=position
        )
    return RawRecord(attributes, timestamp_delta, offset_delta, key, value, headers), end


def _read_field(buffer: bytes, position: int, end: int, what: str) -> tuple[bytes | None, int]:
    if position < end and (byte := buffer[position]) < 0x80:
        size, start = (byte >> 1) ^ -(byte & 1), position + 1
    else:
        size, start = read_varint(buffer, position)
    if size == -1:
        return None, start
    stop = start + size
    if size < 0 or stop > end:
        raise InvalidRecordError(f"a {what} of {size} bytes does not fit", "record-field", position=position)
    return buffer[start:stop], stop


def _read_headers(buffer: bytes, position: int, end: int) -> tuple[tuple[Header, ...], int]:
    count, at = read_varint(buffer, position)
    if not 0 <= count <= end - at:
        raise InvalidRecordError(f"{count} headers do not fit", "record-headers", position=position)
    headers = []
    for _ in range(count):
        size, start = read_varint(buffer, at)
        stop = start + size
        if size < 0 or stop > end:
            raise InvalidRecordError(f"a header key of {size} bytes does not fit", "record-header-key", position=at)
        value, at = _read_field(buffer, stop, end, "header value")
        headers.append(Header(buffer[start:stop], value))
    return tuple(headers), at


def read_usual_record(
    buffer: bytes, position: int, base_offset: int, base_timestamp: int, append_time: int | None
) -> tuple[Record, int] | None:
    """Read one record quickly, if it is a usual one: sound, without headers, its varints of at most four bytes.

    Args:
        buffer: the record area.
        position: of the record in it.
        base_offset: what the offset delta is added to; the sum must fit in 64 bits.
        base_timestamp: the same for the timestamp.
        append_time: the timestamp that LogAppendTime gives to every record, or None.

    Returns:
        The record, and the position after it; None if ``read_record`` is to say what it is.
    """
    try:
        size, at = buffer[position], position + 1
        if size > 0x7F:
            size, at = _rest_of_uvarint(buffer, at, size)
        end = at + (size >> 1)
        is_usual = not size & 1
        attributes, timestamp_delta, at = buffer[at], buffer[at + 1], at + 2
        if timestamp_delta > 0x7F:
            timestamp_delta, at = _rest_of_uvarint(buffer, at, timestamp_delta)
        timestamp_delta = (timestamp_delta >> 1) ^ -(timestamp_delta & 1)
        offset_delta, at = buffer[at], at + 1
        if offset_delta > 0x7F:
            offset_delta, at = _rest_of_uvarint(buffer, at, offset_delta)
        offset = base_offset + ((offset_delta >> 1) ^ -(offset_delta & 1))
        key = value = None
        size, at = buffer[at], at + 1
        if size > 0x7F:
            size, at = _rest_of_uvarint(buffer, at, size)
        if size != 1:  # -1 is null.
            is_usual = is_usual and not size & 1
            start, at = at, at + (size >> 1)
            key = buffer[start:at]
        size, at = buffer[at], at + 1
        if size > 0x7F:
            size, at = _rest_of_uvarint(buffer, at, size)
        if size != 1:
            is_usual = is_usual and not size & 1
            start, at = at, at + (size >> 1)
            value = buffer[start:at]
        if buffer[at] != 0 or at + 1 != end or not is_usual:
            return None
    except IndexError:
        return None
    timestamp = base_timestamp + timestamp_delta if append_time is None else append_time
    fields = (offset, timestamp, key, value, (), attributes, timestamp_delta)
    return tuple.__new__(Record, fields), end


def _rest_of_uvarint(buffer: bytes, position: int, value: int) -> tuple[int, int]:
    """Read on after the first byte of a varint; four bytes are the most."""
    for shift in (7, 14, 21):
        byte = buffer[position]
        value += byte - 1 << shift  # The byte before it has said with a bit that this one follows.
        position += 1
        if byte < 0x80:
            return value, position
    raise IndexError


def encode_record(record: RawRecord) -> bytes:
    """Encode a record, with its length in front, in the fewest bytes.

    Raises:
        ValueError: a delta does not fit its varint.
    """
    row = (record.timestamp_delta, record.key, record.value, record.headers)
    encoded = bytearray()
    try:
        kernel.encode([row], 0, record.offset_delta, encoded)
    except OverflowError as error:
        raise ValueError(f"no 64-bit value, or no 32-bit value: {error}") from None
    _, at = read_varint(memoryview(encoded), 0)
    encoded[at] = record.attributes
    return bytes(encoded)
