# SPDX-License-Identifier: Apache-2.0
"""The rules of a batch in plain Python, written for reading; nothing here is fast.

Each ``require`` names a rule of ``raftlog.records.rules``. The readers that raftlog uses agree with this module on
every input, valid or not: same records, or same rule. Rules are checked in the order in which a reader meets them.
"""

from typing import Final

import attrs

from raftlog.errors import DecodeError, InvalidRecordError
from raftlog.records.batches.compression import CompressionType, decompress
from raftlog.records.rules import RULES

_CASTAGNOLI_REFLECTED: Final = 0x82F63B78


@attrs.frozen
class ReferenceRecord:
    """One record: offset, timestamp in ms, key and value (None is null), and headers."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[bytes, bytes | None]]


def require(condition: bool, rule: str) -> None:
    """Refuse the input if a rule is broken.

    Raises:
        InvalidRecordError: ``condition`` is false; ``rule`` is its id.
    """
    if not condition:
        raise InvalidRecordError(f"not so: {RULES[rule].claim}", rule)


def crc32c(data: bytes) -> int:
    """Compute the CRC-32C of some bytes, one bit at a time."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ _CASTAGNOLI_REFLECTED * (crc & 1)
    return crc ^ 0xFFFFFFFF


def rule_broken_by_header(data: bytes) -> str | None:
    """Return the first rule that the batch at the start of some bytes breaks with its header or its CRC, or None."""
    if len(data) < 17:
        return "tail-torn"
    length = int.from_bytes(data[8:12], "big", signed=True)
    magic = data[16]
    if length < 14:
        return "batch-length"
    if 12 + length > len(data):
        return "tail-torn"
    if magic > 2:
        return "batch-magic"
    if length < {0: 14, 1: 22, 2: 49}[magic]:
        return "batch-length"
    if magic == 2 and crc32c(data[21 : 12 + length]) != int.from_bytes(data[17:21], "big"):
        return "batch-crc"
    return None


def read_records(batch: bytes) -> list[ReferenceRecord]:
    """Read all records of one batch of magic 2 whose header and CRC hold.

    Raises:
        DecodeError: a rule is broken; its id is ``rule``.
    """
    header = Cursor(batch)
    base_offset = header.integer(8)
    header.integer(4)  # length
    header.integer(4)  # partition leader epoch
    header.integer(1)  # magic
    header.integer(4)  # crc
    attributes = header.integer(2)
    header.integer(4)  # last offset delta
    base_timestamp = header.integer(8)
    max_timestamp = header.integer(8)
    header.integer(8 + 2 + 4)  # producer id, epoch, base sequence
    count = header.integer(4)

    codec = attributes & 0b111
    require(codec <= 4, "batch-codec")
    area = Cursor(bytes(decompress(CompressionType(codec), batch[61:])))
    require(count >= 0, "batch-count")
    records = []
    for _ in range(count):
        require(area.left() > 0, "batch-missing")
        timestamp_delta, offset_delta, key, value, headers = read_record(area)
        records.append(
            ReferenceRecord(
                offset=as_int64(base_offset + offset_delta),
                timestamp=max_timestamp if attributes & 0b1000 else as_int64(base_timestamp + timestamp_delta),
                key=key,
                value=value,
                headers=headers,
            )
        )
    require(area.left() == 0, "batch-trailing")
    return records


def read_record(
    area: "Cursor",
) -> tuple[int, int, bytes | None, bytes | None, list[tuple[bytes, bytes | None]]]:
    """Read one record: timestamp delta, offset delta, key, value, headers."""
    length = area.varint(32)
    require(0 <= length <= area.left(), "record-length")
    end = area.position + length
    require(length > 0, "record-end")
    area.integer(1)  # attributes
    timestamp_delta = area.varint(64)
    offset_delta = area.varint(32)
    key = read_field(area, end)
    value = read_field(area, end)
    count = area.varint(32)
    require(0 <= count <= end - area.position, "record-headers")
    headers = []
    for _ in range(count):
        size = area.varint(32)
        require(0 <= size <= end - area.position, "record-header-key")
        header_key = area.take(size)
        headers.append((header_key, read_field(area, end)))
    require(area.position == end, "record-end")
    return timestamp_delta, offset_delta, key, value, headers


def read_field(area: "Cursor", end: int) -> bytes | None:
    """Read a key or a value, which must end inside its record."""
    size = area.varint(32)
    if size == -1:
        return None
    require(0 <= size <= end - area.position, "record-field")
    return area.take(size)


def as_int64(value: int) -> int:
    """Wrap a sum to a signed 64-bit integer, as Java's ``long`` does."""
    return int.from_bytes((value % 2**64).to_bytes(8, "big"), "big", signed=True)


class Cursor:
    """Reads fields from bytes, one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def left(self) -> int:
        """Return how many bytes are left."""
        return len(self.data) - self.position

    def take(self, size: int) -> bytes:
        """Take the next bytes; the caller has checked that they are there."""
        self.position += size
        return self.data[self.position - size : self.position]

    def integer(self, size: int) -> int:
        """Take a big-endian signed integer."""
        return int.from_bytes(self.take(size), "big", signed=True)

    def varint(self, bits: int) -> int:
        """Take a zigzag varint of at most 32 or 64 bits."""
        raw = 0
        for index in range(5 if bits == 32 else 10):
            require(self.left() > 0, "varint-length")
            byte = self.take(1)[0]
            raw += (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                require(raw < 2**bits, "varint-range")
                return raw // 2 if raw % 2 == 0 else -(raw + 1) // 2
        raise DecodeError(f"not so: {RULES['varint-length'].claim}", "varint-length")
