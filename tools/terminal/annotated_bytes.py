# SPDX-License-Identifier: Apache-2.0
"""Describes the bytes of one batch, field by field: position, name and meaning."""

import datetime
import struct
from collections.abc import Callable, Generator, Iterator
from typing import Final

import attrs

from raftlog.errors import DecodeError
from raftlog.records.batches.batch import CRC_START, RecordBatch, TimestampType
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.record import MARK_FLAGS, RawRecord, Record, read_record
from raftlog.records.limits import BATCH_OVERHEAD, LOG_OVERHEAD
from raftlog.records.messages.control import ControlRecordType
from raftlog.records.varint import read_varint, read_varlong

HEADER_FIELDS: Final = (
    (0, "int64", "base offset"),
    (8, "int32", "length"),
    (12, "int32", "partition leader epoch"),
    (16, "int8", "magic"),
    (17, "uint32", "CRC-32C"),
    (21, "int16", "attributes"),
    (23, "int32", "last offset delta"),
    (27, "int64", "base timestamp"),
    (35, "int64", "max timestamp"),
    (43, "int64", "producer id"),
    (51, "int16", "producer epoch"),
    (53, "int32", "base sequence"),
    (57, "int32", "record count"),
)
"""Position, type and name of each field of a header."""
_LAYOUTS: Final = {"int8": "b", "int16": "h", "int32": "i", "uint32": "I", "int64": "q"}


@attrs.frozen
class AnnotatedField:
    """Bytes with a meaning.

    Attributes:
        position: byte position in the file; for a record of a compressed batch, in its decompressed records.
        data: the bytes.
        type: how they are stored: a number of fixed width, a zigzag varint or varlong, or bytes.
        name: the name of the field.
        meaning: the value of the bytes, in words.
        depth: 0 for a field of the batch, 1 for one of a record.
        is_in_crc: whether the batch's CRC covers the bytes.
        is_decompressed: whether the position counts from the start of the decompressed records.
        is_secret: whether the bytes must not be shown.
        is_damage: whether a sound batch cannot have these bytes here.
    """

    position: int
    data: bytes
    type: str
    name: str
    meaning: str = ""
    depth: int = 0
    is_in_crc: bool = True
    is_decompressed: bool = False
    is_secret: bool = False
    is_damage: bool = False


@attrs.frozen
class Description:
    """Describes a record's value.

    Attributes:
        text: the value in words; None to show the bytes as text, if they are text.
        is_secret: whether the bytes must not be shown.
        is_damage: whether the bytes are damaged.
    """

    text: str | None = None
    is_secret: bool = False
    is_damage: bool = False


DescribeRecord = Callable[[Record], Description]
"""Returns the description of a record's value."""


def annotate_batch(data: bytes, position: int, describe: DescribeRecord) -> Iterator[AnnotatedField]:
    """Yield the fields of a batch of magic 2, in the order of their bytes, as far as they can be separated.

    Args:
        data: the bytes of the batch, from its base offset on. They may end early, and may be damaged.
        position: position of the batch in its file.
        describe: describes a record's value.
    """
    yield from _annotate_header(data, position)
    if len(data) < BATCH_OVERHEAD:
        return
    batch, stored = RecordBatch(data, position), data[BATCH_OVERHEAD:]
    try:
        codec = batch.compression_type
        area = stored if codec is CompressionType.NONE else batch.record_area()
    except DecodeError as error:
        meaning = f"unreadable: {error.reason}"
        yield AnnotatedField(position + BATCH_OVERHEAD, stored, "bytes", "records", meaning, is_damage=True)
        return
    if codec is CompressionType.NONE:
        yield from _Records(batch, data, position, describe).annotate(BATCH_OVERHEAD)
        return
    meaning = f"{len(stored)} bytes of {codec.label}, decompressed {len(area)} bytes; positions below are in those"
    fields = list(_Records(batch, area, 0, describe, is_decompressed=True).annotate(0))
    has_secret = any(each.is_secret for each in fields)
    yield AnnotatedField(position + BATCH_OVERHEAD, stored, "bytes", "records", meaning, is_secret=has_secret)
    yield from fields


def _annotate_header(data: bytes, position: int) -> Iterator[AnnotatedField]:
    for start, type_, name in HEADER_FIELDS:
        layout = ">" + _LAYOUTS[type_]
        field = data[start : start + struct.calcsize(layout)]
        is_whole = len(field) == struct.calcsize(layout)
        meaning = _header_meaning(name, struct.unpack(layout, field)[0], data) if is_whole else "the file ends here"
        yield AnnotatedField(position + start, field, type_, name, meaning, is_in_crc=start >= CRC_START)
        if not is_whole:
            return


def _header_meaning(name: str, value: int, data: bytes) -> str:
    match name:
        case "length":
            size = value + LOG_OVERHEAD
            missing = f"; {size - len(data)} of these are missing" if size > len(data) else ""
            return f"{value}: the batch has {size} bytes{missing}"
        case "CRC-32C":
            return _crc_meaning(value, data)
        case "attributes":
            return f"{value:#06x}: {_attributes_meaning(value)}"
        case "last offset delta" if len(data) >= 8:
            return f"{value}: the last offset is {int.from_bytes(data[:8], 'big', signed=True) + value}"
        case "base timestamp" | "max timestamp":
            return f"{value}{_utc(value)}"
        case "partition leader epoch" | "producer id" | "producer epoch" | "base sequence" if value == -1:
            return "-1: none"
    return str(value)


def _crc_meaning(stored: int, data: bytes) -> str:
    if len(data) < BATCH_OVERHEAD:
        return f"{stored:#010x}"
    batch = RecordBatch(data)
    if len(data) < int.from_bytes(data[8:12], "big", signed=True) + LOG_OVERHEAD:
        return f"{stored:#010x}: cannot be checked, as bytes are missing"
    if batch.crc_holds:
        return f"{stored:#010x}: holds for bytes {CRC_START} to {len(data) - 1} of the batch"
    return f"{stored:#010x}: does not hold for bytes {CRC_START} to {len(data) - 1} of the batch"


def _attributes_meaning(attributes: int) -> str:
    codec = attributes & 7
    known = {each.value: each.label for each in CompressionType}
    words = [known.get(codec, f"codec {codec}, which does not exist")]
    words.append("LogAppendTime" if attributes & 0x08 else "CreateTime")
    flags = {0x10: "transactional", 0x20: "control", 0x40: "delete horizon"}
    words += [word for bit, word in flags.items() if attributes & bit]
    if attributes & ~0x7F:
        words.append(f"unknown bits {attributes & 0xFF80:#06x}")
    return ", ".join(words)


def _utc(timestamp_ms: int) -> str:
    """Format a timestamp as a date and time, if a calendar has it."""
    try:
        moment = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return ""
    return "" if timestamp_ms < 0 else f" ({moment.isoformat(timespec='milliseconds')})"


@attrs.define
class _Records:
    """The records of a batch.

    Attributes:
        batch: the batch.
        data: the bytes that contain the records.
        position: position of these bytes in the file, or 0.
        describe: describes a record's value.
        is_decompressed: whether the bytes are decompressed, and so not part of the file.
    """

    batch: RecordBatch
    data: bytes
    position: int
    describe: DescribeRecord
    is_decompressed: bool = False

    def annotate(self, start: int) -> Iterator[AnnotatedField]:
        at, number = start, 0
        while at < len(self.data) and number < self.batch.record_count:
            try:
                raw, end = read_record(self.data, at)
                fields = list(self._annotate_record(self._record_of(raw), at, number))
            except DecodeError as error:
                yield self._damage(at, f"record {number}", f"unreadable: {error.reason}")
                return
            yield from fields
            at, number = end, number + 1
        if at < len(self.data):
            yield self._damage(at, "left over", "bytes after the last record")
        elif number < self.batch.record_count:
            missing = self.batch.record_count - number
            yield self._damage(at, "missing", f"{missing} records that the header counts are not there")

    def _record_of(self, raw: RawRecord) -> Record:
        is_append_time = self.batch.timestamp_type is TimestampType.LOG_APPEND_TIME
        timestamp = self.batch.base_timestamp + raw.timestamp_delta
        return Record(
            self.batch.base_offset + raw.offset_delta,
            self.batch.max_timestamp if is_append_time else timestamp,
            raw.key,
            raw.value,
            raw.headers,
            raw.attributes,
            raw.timestamp_delta,
            self.batch.attributes & MARK_FLAGS,
        )

    def _damage(self, start: int, name: str, meaning: str) -> AnnotatedField:
        return attrs.evolve(self._field(start, len(self.data), "bytes", name, meaning), is_damage=True)

    def _field(self, start: int, end: int, type_: str, name: str, meaning: str = "") -> AnnotatedField:
        return AnnotatedField(
            self.position + start,
            self.data[start:end],
            type_,
            name,
            meaning,
            depth=1,
            is_decompressed=self.is_decompressed,
        )

    def _annotate_record(self, record: Record, start: int, number: int) -> Iterator[AnnotatedField]:
        size, at = read_varint(self.data, start)
        yield self._field(start, at, "varint", f"record {number}: length", f"{size} bytes follow")
        yield self._field(at, at + 1, "int8", "attributes", str(record.attributes))
        at += 1
        delta, end = read_varlong(self.data, at)
        yield self._field(at, end, "varlong", "timestamp delta", f"{delta}: {record.timestamp}{_utc(record.timestamp)}")
        delta, at = read_varint(self.data, end)
        yield self._field(end, at, "varint", "offset delta", f"{delta}: offset {record.offset}")
        at = yield from self._sized("key", at, self._key_text(record.key))
        value = self.describe(record)
        shown = "" if value.is_secret else _text(record.value)
        meaning = shown if value.text is None else value.text
        at = yield from self._sized("value", at, meaning, is_secret=value.is_secret, is_damage=value.is_damage)
        yield from self._annotate_headers(record, at)

    def _key_text(self, key: bytes | None) -> str:
        if not self.batch.is_control or key is None or len(key) != 4:
            return _text(key)
        version, number = struct.unpack(">hh", key)
        known = {each.value: each.name for each in ControlRecordType}
        return f"version {version}, type {number}: {known.get(number, 'unknown')}"

    def _sized(
        self, name: str, at: int, meaning: str, *, is_secret: bool = False, is_damage: bool = False
    ) -> Generator[AnnotatedField, None, int]:
        """Yield a length and the bytes that it counts; return the position after them."""
        size, start = read_varint(self.data, at)
        yield self._field(at, start, "varint", f"{name} length", "-1: null" if size < 0 else str(size))
        if size <= 0:
            return start
        field = self._field(start, start + size, "bytes", name, meaning)
        yield attrs.evolve(field, is_secret=is_secret, is_damage=is_damage)
        return start + size

    def _annotate_headers(self, record: Record, at: int) -> Iterator[AnnotatedField]:
        _, end = read_varint(self.data, at)
        yield self._field(at, end, "varint", "header count", str(len(record.headers)))
        for header in record.headers:
            end = yield from self._sized("header key", end, _text(header.key))
            end = yield from self._sized("header value", end, _text(header.value))


def _text(data: bytes | None) -> str:
    """Show bytes as text, if they are text."""
    if data is None:
        return "null"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"{len(data)} bytes"
    return repr(text) if text.isprintable() else f"{len(data)} bytes"
