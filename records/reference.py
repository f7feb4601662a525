# SPDX-License-Identifier: Apache-2.0
"""The rules of a batch, and the digest of a record, in plain Python, written for reading; nothing here is fast.

Each ``require`` names a rule of ``raftlog.records.rules``. The readers that raftlog uses agree with this module on
every input, valid or not: same records, or same rule. Rules are checked in the order in which a reader meets them.
The kernel's digests are those of ``record_digest``.
"""

from typing import Final

import attrs

from raftlog.errors import DecodeError, InvalidRecordError
from raftlog.records.batches.compression import CompressionType, decompress
from raftlog.records.rules import RULES

_CASTAGNOLI_REFLECTED: Final = 0x82F63B78
_PRIMES: Final = (
    0xEC99BF0D8372CAAB,
    0x82434FE90EDCEF39,
    0xD4F06DB99D67BE4B,
    0xBD9CACC22C6E9571,
    0x9C06FAF4D023E3AB,
    0xC060724A8424F345,
    0xCB5AF53AE3AAAC31,
)
"""Of t1ha2, by their numbers there."""
_BLOCK_SIZE: Final = 32


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


def record_digest(record: ReferenceRecord) -> tuple[int, int]:
    """Return the digest of a record's contents, as the lower and the higher 64 bits. Its offset does not count."""
    return t1ha2(encoded_contents(record))


def encoded_contents(record: ReferenceRecord) -> bytes:
    """Encode all that a digest covers in whole blocks of 32 bytes; no two contents have the same encoding."""
    fields = [(record.timestamp, record.key, record.value), *((0, key, value) for key, value in record.headers)]
    return b"".join(_encoded_fields(number, key, value) for number, key, value in fields)


def _encoded_fields(number: int, key: bytes | None, value: bytes | None) -> bytes:
    """Encode a number, the sizes of a key and a value (-1 is null), the key from byte 16 on, and the value.

    Each of them is followed by zeros: the key up to the end of a block, the value too, with at least one block.
    """
    key_size, value_size = (-1 if field is None else len(field) for field in (key, value))
    sizes = key_size.to_bytes(4, "little", signed=True) + value_size.to_bytes(4, "little", signed=True)
    start = number.to_bytes(8, "little", signed=True) + sizes + (key or b"")
    return _padded(start) + _padded(value or b"\0")


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % _BLOCK_SIZE)


def t1ha2(data: bytes, seed: int = 0) -> tuple[int, int]:
    """Hash some bytes to 128 bits: the lower 64, and the higher.

    Source: t1ha by Leonid Yuriev, ``t1ha2_atonce128`` in ``src/t1ha2.c``.
    """
    size = len(data)
    a, b = seed, size
    c = as_uint64(rotated(size, 23) + as_uint64(~seed))
    d = as_uint64(as_uint64(~size) + rotated(seed, 19))
    position = 0
    while size > _BLOCK_SIZE and size - position >= _BLOCK_SIZE:
        first, second, third, fourth = words_of(data[position : position + _BLOCK_SIZE])
        even = first + rotated(third + d, 56)
        odd = second + rotated(fourth + c, 19)
        c ^= as_uint64(a + rotated(first, 57))
        d ^= as_uint64(b + rotated(second, 38))
        b ^= as_uint64(_PRIMES[6] * (odd + third))
        a ^= as_uint64(_PRIMES[5] * (even + fourth))
        position += _BLOCK_SIZE
    rest = words_of(data[position:])
    if len(rest) > 3:
        a, d = mixed_up(a, d, rest[-4], _PRIMES[4])
    if len(rest) > 2:
        b, a = mixed_up(b, a, rest[-3], _PRIMES[3])
    if len(rest) > 1:
        c, b = mixed_up(c, b, rest[-2], _PRIMES[2])
    if len(rest) > 0:
        d, c = mixed_up(d, c, rest[-1], _PRIMES[1])
    a, b = mixed_up(a, b, rotated(c, 41) ^ d, _PRIMES[0])
    b, c = mixed_up(b, c, rotated(d, 23) ^ a, _PRIMES[6])
    c, d = mixed_up(c, d, rotated(a, 19) ^ b, _PRIMES[5])
    d, a = mixed_up(d, a, rotated(b, 31) ^ c, _PRIMES[4])
    return a ^ b, as_uint64(c + d)


def words_of(data: bytes) -> list[int]:
    """Return bytes as little-endian numbers of eight bytes each; the last one may have fewer."""
    return [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)]


def mixed_up(left: int, right: int, word: int, prime: int) -> tuple[int, int]:
    """Multiply ``right + word`` by a prime, and mix the lower 64 bits into ``left``, the higher ones into ``right``."""
    high, low = divmod(as_uint64(right + word) * prime, 2**64)
    return left ^ low, as_uint64(right + high)


def rotated(value: int, count: int) -> int:
    """Rotate the lower 64 bits of a number to the right."""
    value = as_uint64(value)
    return as_uint64(value >> count | value << (64 - count))


def as_uint64(value: int) -> int:
    """Return the lower 64 bits of a number, unsigned."""
    return value % 2**64


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
