# SPDX-License-Identifier: Apache-2.0
"""Writes Kafka's formats field by field, wrong ones included; shares no code with raftlog, which it is to test."""

import struct
import zlib
from collections.abc import Sequence

import attrs
import crc32c

BASE_TIME = 1_700_000_000_000
NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 8, 16, 32, 64
Header = tuple[bytes, bytes | None]


def int8(value: int) -> bytes:
    return struct.pack(">b", value)


def int16(value: int) -> bytes:
    return struct.pack(">h", value)


def int32(value: int) -> bytes:
    return struct.pack(">i", value)


def int64(value: int) -> bytes:
    return struct.pack(">q", value)


def float64(value: float) -> bytes:
    return struct.pack(">d", value)


def uvarint(value: int) -> bytes:
    """An unsigned varint: seven bits a byte, the low ones first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def varint(value: int) -> bytes:
    """A zigzag varint (or varlong: the bytes are the same)."""
    return uvarint(value << 1 if value >= 0 else (-value << 1) - 1)


def string(value: str | None) -> bytes:
    """A string of a version that is not flexible: int16 length, -1 for null."""
    return int16(-1) if value is None else int16(len(value.encode())) + value.encode()


def blob(value: bytes | None) -> bytes:
    """Bytes of a version that is not flexible: int32 length, -1 for null."""
    return int32(-1) if value is None else int32(len(value)) + value


def array(items: Sequence[bytes] | None) -> bytes:
    """An array of a version that is not flexible, of elements already in bytes."""
    return int32(-1) if items is None else int32(len(items)) + b"".join(items)


def compact(value: str | bytes | None) -> bytes:
    """A compact string or bytes."""
    if value is None:
        return b"\0"
    data = value.encode() if isinstance(value, str) else value
    return uvarint(len(data) + 1) + data


def compact_array(items: Sequence[bytes] | None) -> bytes:
    """A compact array of elements already in bytes."""
    return b"\0" if items is None else uvarint(len(items) + 1) + b"".join(items)


def tags(fields: dict[int, bytes] | None = None) -> bytes:
    """The tagged fields that end a flexible struct."""
    fields = fields or {}
    return uvarint(len(fields)) + b"".join(uvarint(tag) + uvarint(len(v)) + v for tag, v in sorted(fields.items()))


def nullable_bytes(data: bytes | None) -> bytes:
    """A record's key or value: varint length, -1 for null."""
    return varint(-1) if data is None else varint(len(data)) + data


def record(
    key: bytes | None,
    value: bytes | None,
    offset_delta: int = 0,
    headers: Sequence[Header] = (),
    timestamp_delta: int = 0,
) -> bytes:
    """A record of a magic 2 batch."""
    parts = [b"\0", varint(timestamp_delta), varint(offset_delta), nullable_bytes(key), nullable_bytes(value)]
    parts.append(varint(len(headers)))
    parts += [varint(len(name)) + name + nullable_bytes(content) for name, content in headers]
    body = b"".join(parts)
    return varint(len(body)) + body


def records(*pairs: tuple[bytes | None, bytes | None]) -> list[bytes]:
    """Records of these keys and values, at consecutive offsets."""
    return [record(key, value, delta) for delta, (key, value) in enumerate(pairs)]


@attrs.frozen(kw_only=True)
class Batch:
    """A magic 2 batch; every field can be given a value that is not the right one."""

    records: Sequence[bytes] = ()
    base_offset: int = 0
    leader_epoch: int = 3
    magic: int = 2
    attributes: int = 0
    last_offset_delta: int | None = None
    base_timestamp: int = BASE_TIME
    max_timestamp: int = BASE_TIME
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    count: int | None = None
    body: bytes | None = None  # in place of the records, as they are to lie in the file

    def to_bytes(self) -> bytes:
        body = stored(self.attributes & 7, b"".join(self.records)) if self.body is None else self.body
        count = len(self.records) if self.count is None else self.count
        last_offset_delta = max(0, count - 1) if self.last_offset_delta is None else self.last_offset_delta
        checked = int16(self.attributes) + int32(last_offset_delta) + int64(self.base_timestamp)
        checked += int64(self.max_timestamp) + int64(self.producer_id) + int16(self.producer_epoch)
        checked += int32(self.base_sequence) + int32(count) + body
        head = int32(self.leader_epoch) + int8(self.magic) + struct.pack(">I", crc32c.crc32c(checked))
        return int64(self.base_offset) + int32(len(head) + len(checked)) + head + checked


def message(
    magic: int,
    offset: int,
    key: bytes | None,
    value: bytes | None,
    attributes: int = 0,
    timestamp: int = BASE_TIME,
) -> bytes:
    """A message of magic 0 or 1; a wrapper when the attributes name a codec."""
    body = int8(magic) + int8(attributes) + (int64(timestamp) if magic else b"") + blob(key) + blob(value)
    return int64(offset) + int32(len(body) + 4) + struct.pack(">I", zlib.crc32(body)) + body


def stored(codec: int, data: bytes, magic: int = 2) -> bytes:
    """Data in a codec's frame without being compressed: the same bytes from every library and machine."""
    if codec == GZIP:
        return _stored_gzip(data)
    if codec == SNAPPY:
        block = uvarint(len(data)) + _snappy_literal(data)
        return b"\x82SNAPPY\0" + int32(1) + int32(1) + int32(len(block)) + block
    if codec == LZ4:
        # The header checksum of magic 0 is Kafka's old mistake: it covers the frame's own magic too.
        frame = bytes.fromhex("04224d186040") + (b"\x82" if magic else b"\x1a")
        block = struct.pack("<I", 1 << 31 | len(data)) + data if data else b""
        return frame + block + bytes(4)
    if codec == ZSTD:
        # One segment whose content size takes four bytes, then one raw block, the last.
        return bytes.fromhex("28b52ffda0") + struct.pack("<I", len(data)) + _zstd_raw_block(data)
    return data


def _stored_gzip(data: bytes) -> bytes:
    length = struct.pack("<HH", len(data), len(data) ^ 0xFFFF)
    trailer = struct.pack("<II", zlib.crc32(data), len(data))
    return bytes.fromhex("1f8b08000000000000ff") + b"\x01" + length + data + trailer


def _snappy_literal(data: bytes) -> bytes:
    return b"\xf4" + struct.pack("<H", len(data) - 1) + data if data else b""


def _zstd_raw_block(data: bytes) -> bytes:
    return struct.pack("<I", len(data) << 3 | 1)[:3] + data


def index(*entries: tuple[int, int]) -> bytes:
    """An offset index: (relative offset, position)."""
    return b"".join(int32(offset) + int32(position) for offset, position in entries)


def time_index(*entries: tuple[int, int]) -> bytes:
    """A time index: (timestamp, relative offset)."""
    return b"".join(int64(timestamp) + int32(offset) for timestamp, offset in entries)


def flipped(data: bytes, position: int, bit: int = 0) -> bytes:
    """The same bytes except for one bit; a negative position counts from the end."""
    changed = bytearray(data)
    changed[position] ^= 1 << bit
    return bytes(changed)
