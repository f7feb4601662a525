# SPDX-License-Identifier: Apache-2.0
"""Variable-length integers: unsigned LEB128 (``uvarint``), and zigzag (``varint``, 32 bits; ``varlong``, 64 bits).

Source: ByteUtils. Readers take any buffer and a position, and return the value and the position after it. They accept
non-minimal encodings, as Kafka does.
"""

from raftlog.errors import InvalidRecordError

_INT32_MIN, _INT32_MAX = -(1 << 31), (1 << 31) - 1
_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1


def read_uvarint(buffer: memoryview | bytes, position: int, *, max_bytes: int = 5) -> tuple[int, int]:
    """Read an unsigned varint of at most ``max_bytes`` bytes.

    Returns:
        The value, and the position after it.

    Raises:
        InvalidRecordError: the varint is longer, or continues past the end of the buffer. The error's position is
            ``position``.
    """
    value = shift = 0
    end = min(len(buffer), position + max_bytes)
    at = position
    while at < end:
        byte = buffer[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    problem = "ends inside" if at == len(buffer) else f"has more than {max_bytes} bytes"
    raise InvalidRecordError(f"a varint {problem}", "varint-length", position=position)


def read_varint(buffer: memoryview | bytes, position: int) -> tuple[int, int]:
    """Read a zigzag varint of 32 bits.

    Raises:
        InvalidRecordError: it is longer than 5 bytes, is cut, or does not fit in 32 bits.
    """
    raw, end = read_uvarint(buffer, position)
    if raw >> 32:
        raise InvalidRecordError("a varint does not fit in 32 bits", "varint-range", position=position)
    return (raw >> 1) ^ -(raw & 1), end


def read_varlong(buffer: memoryview | bytes, position: int) -> tuple[int, int]:
    """Read a zigzag varint of 64 bits.

    Raises:
        InvalidRecordError: it is longer than 10 bytes, is cut, or does not fit in 64 bits.
    """
    raw, end = read_uvarint(buffer, position, max_bytes=10)
    if raw >> 64:
        raise InvalidRecordError("a varlong does not fit in 64 bits", "varint-range", position=position)
    return (raw >> 1) ^ -(raw & 1), end


def uvarint(value: int) -> bytes:
    """Encode a non-negative value as an unsigned varint, in the fewest bytes.

    Raises:
        ValueError: the value is negative.
    """
    if value < 0:
        raise ValueError(f"not an unsigned value: {value}")
    if value < 0x80:
        return bytes((value,))
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def varint(value: int) -> bytes:
    """Encode a value of 32 bits as a zigzag varint.

    Raises:
        ValueError: the value does not fit.
    """
    if not _INT32_MIN <= value <= _INT32_MAX:
        raise ValueError(f"not a 32-bit value: {value}")
    return uvarint((value << 1) ^ (value >> 31))


def varlong(value: int) -> bytes:
    """Encode a value of 64 bits as a zigzag varint.

    Raises:
        ValueError: the value does not fit.
    """
    if not _INT64_MIN <= value <= _INT64_MAX:
        raise ValueError(f"not a 64-bit value: {value}")
    return uvarint((value << 1) ^ (value >> 63))
