# SPDX-License-Identifier: Apache-2.0
"""Logs and rows for the fuzzer of the kernel: made of what they consist of, then wrong in a few places."""

import random
from typing import Any, Final

from raftlog.records.varint import uvarint
from tests.strategies import batch_bytes, with_crc, with_length

_INT32: Final = (0, 1, -1, -2, 63, -64, 8191, 8192, 2**31 - 1, -(2**31))
_INT64: Final = (*_INT32, 2**31, 2**62, 2**63 - 1, -(2**63), 10**18)
SIZES: Final = (0, 0, 1, 2, 7, 8, 15, 16, 24, 31, 32, 33, 63, 64, 127, 128, 255, 256, 257, 300, 8191)
"""Those around which a loop, a varint or a buffer takes another way."""
_ATTRIBUTES: Final = (0, 0, 0, 0, 8, 16, 32, 32, 40, 64, 1, 5, 0x7FF0, -16)


def _varint(chance: random.Random, value: int) -> bytes:
    raw = (value << 1) ^ (value >> 63)
    encoded = bytearray(uvarint(raw % 2**64 if abs(value) >= 2**31 else raw % 2**32))
    if chance.random() < 0.05:
        for _ in range(chance.randrange(1, 9)):
            encoded[-1] |= 0x80
            encoded.append(0)
    return bytes(encoded)


def _off(chance: random.Random, size: int) -> int:
    """Mostly the size; sometimes another one."""
    if chance.random() < 0.96:
        return size
    return size + chance.choice((-1, 1, -2, 7, 24, 25, -size, -size - 1, -size - 2, 2**31 - 1 - size))


def _field(chance: random.Random, *, is_key: bool = False) -> bytes:
    if chance.random() < 0.2 and not is_key:
        return b"\x01"
    data = chance.randbytes(chance.choice(SIZES))
    if chance.random() < 0.5:
        data = data.translate(_TEXT)
    return _varint(chance, _off(chance, len(data))) + data


_TEXT: Final = bytes((b"abcdefgh \xc3\xa9\xe2\x82\xac\xed\xa0\x01s" * 15)[:256])


def _record(chance: random.Random, index: int) -> bytes:
    headers = chance.choice((0, 0, 0, 0, 1, 2, 9))
    body = b"".join(
        (
            b"\0",
            _varint(chance, chance.choice((0, 0, index, *_INT64))),
            _varint(chance, index if chance.random() < 0.9 else chance.choice(_INT32)),
            _field(chance),
            _field(chance),
            _varint(chance, _off(chance, headers)),
            *(_field(chance, is_key=True) + _field(chance) for _ in range(headers)),
        )
    )
    return _varint(chance, _off(chance, len(body))) + body


def _control_record(chance: random.Random, index: int) -> bytes:
    key = bytes((0, chance.choice((0, 0, 1)), 0, chance.choice((2, 3, 4, 5, 6))))
    value = chance.randbytes(chance.choice(SIZES[:12]))
    body = b"\0" + _varint(chance, 0) + _varint(chance, index) + b"\x08" + key
    body += _varint(chance, _off(chance, len(value))) + value + b"\0"
    return _varint(chance, _off(chance, len(body))) + body


def _batch(chance: random.Random, base_offset: int) -> tuple[bytes, int]:
    attributes = chance.choice(_ATTRIBUTES)
    count = chance.choice((0, 1, 1, 2, 3, 9))
    make = _control_record if attributes & 32 else _record
    area = b"".join(make(chance, index) for index in range(count))
    area += chance.choice((*[b""] * 9, b"\0", b"\x80", b"\xff" * 5))
    is_odd = chance.random() < 0.1
    data = batch_bytes(
        area,
        base_offset=chance.choice(_INT64) if is_odd else base_offset,
        epoch=chance.choice(_INT32) if is_odd else 3,
        attributes=attributes,
        last_offset_delta=chance.choice(_INT32) if is_odd else max(0, count - 1),
        base_timestamp=chance.choice(_INT64),
        max_timestamp=chance.choice(_INT64),
        base_sequence=chance.choice(_INT32),
        count=chance.choice((-1, count + 1, 2**31 - 1, -(2**31))) if chance.random() < 0.05 else count,
    )
    return data, base_offset + max(1, count)


def log_of(chance: random.Random) -> bytes:
    """Return batches whose CRCs hold, some of them with wrong contents; after the last, perhaps a part of one."""
    batches = []
    offset = 0
    for _ in range(chance.choice((1, 1, 2, 3, 6))):
        data, offset = _batch(chance, offset)
        if chance.random() < 0.25:
            wrong = bytearray(data)
            for _ in range(chance.choice((1, 1, 2, 5))):
                wrong[chance.randrange(21, len(wrong))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
            data = with_crc(bytes(wrong[: chance.randrange(61, len(wrong) + 1)] if chance.random() < 0.3 else wrong))
            data = with_length(data)
        batches.append(data)
    if chance.random() < 0.3:
        batches.append(chance.choice(batches)[: chance.randrange(80)])
    return b"".join(batches)


def payload(chance: random.Random) -> bytes | None:
    """Return a key or a value."""
    return None if chance.random() < 0.2 else bytes(chance.choice(SIZES))


class SaysOtherwise(list[Any]):
    """A list whose length is not how many items it gives."""

    length = 0

    def __len__(self) -> int:
        return self.length


class Changing(list[Any]):
    """Headers that change the rows that they belong to."""

    rows: list[Any]
    more: list[Any]

    def __len__(self) -> int:
        self.rows[:] = self.more
        return super().__len__()


def rows_of(chance: random.Random) -> Any:
    """Return rows for ``prepare``: most are sound, some lie about their number, or change while they are read."""
    rows: list[Any] = []
    for _ in range(chance.choice((0, 1, 1, 2, 5, 70))):
        row: tuple[Any, ...] = (chance.choice((0, 5, *_INT64)), payload(chance), payload(chance))
        if chance.random() < 0.3:
            row = (*row, [(payload(chance) or b"", payload(chance)) for _ in range(chance.choice((0, 1, 3)))])
        rows.append(row)
    if not rows or chance.random() < 0.7:
        return rows
    lying = SaysOtherwise(rows)
    lying.length = max(0, len(rows) + chance.choice((-1, 1, -2, -60)))
    changing = Changing([(b"h", b"v")])
    changing.rows, changing.more = rows, [rows[0]] * chance.choice((0, 1, 200))
    wrong = memoryview(b"12345678").cast("i")
    odd = [(0, None, None, changing), (0, None, None, [(b"k", wrong)]), (0, wrong, None), [0, b"k", b"v"], (0, None)]
    rows.insert(chance.randrange(len(rows) + 1), chance.choice(odd))
    return chance.choice((lying, rows, rows))
