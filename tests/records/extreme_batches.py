# SPDX-License-Identifier: Apache-2.0
"""Batches that no builder writes: numbers at their ends, long forms of varints, sizes and counts that are not so."""

from typing import Final

from hypothesis import strategies as st

from raftlog.records.varint import uvarint
from tests.strategies import batch_bytes

_INT32: Final = (0, 1, -1, -2, 63, -64, 8191, 8192, 2**31 - 1, -(2**31))
_INT64: Final = (*_INT32, 2**31, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1)
_int32s = st.sampled_from(_INT32)
_int64s = st.sampled_from(_INT64)
_OFF: Final = [0] * 12
"""What most sizes and counts are off by."""
# Each strategy is made once: making one takes longer than drawing from it.
_sizes = st.sampled_from([-1, 0, 1, 5, 63, 64, 200, 8191, 8192])
_size_errors = st.sampled_from([*_OFF, -1, 1, -2, 2**31 - 500])
_count_errors = st.sampled_from([*_OFF, -1, 1, 2**31 - 1])
_extras_of_fields = st.sampled_from([0, 0, 0, 1, 4])
_extras = st.sampled_from([0, 0, 0, 1, 9])
_attributes = st.sampled_from([b"\0", b"\xff"])


def long_varint(value: int, extra: int, bits: int) -> bytes:
    """Encode a number as a zigzag varint with up to ``extra`` bytes more than it needs."""
    encoded = bytearray(uvarint((value << 1) ^ (value >> bits - 1)))
    for _ in range(extra):
        if len(encoded) < (5 if bits == 32 else 10):
            encoded[-1] |= 0x80
            encoded.append(0)
    return bytes(encoded)


@st.composite
def _fields(draw: st.DrawFn) -> bytes:
    """A key or a value, its size in front: mostly as long as that says."""
    size = draw(_sizes)
    said = size + draw(_size_errors)
    return long_varint(said, draw(_extras_of_fields), 32) + b"v" * size


_field = _fields()
_headers = st.lists(_field, max_size=4)


@st.composite
def _records(draw: st.DrawFn) -> bytes:
    headers = draw(_headers)
    count = len(headers) // 2 + draw(_count_errors)
    extra = draw(_extras)
    body = b"".join(
        (
            draw(_attributes),
            long_varint(draw(_int64s), extra, 64),
            long_varint(draw(_int32s), extra, 32),
            draw(_field),
            draw(_field),
            long_varint(count, extra, 32),
            *headers,
        )
    )
    size = max(-(2**31), len(body) + draw(st.sampled_from([*_OFF, -1, 1, -len(body), -len(body) - 1, -len(body) + 1])))
    return long_varint(size, extra, 32) + body


_some_records = st.lists(_records(), max_size=3)


@st.composite
def extreme_batches(draw: st.DrawFn) -> bytes:
    """Batches whose CRC holds, of records that mostly read."""
    records = draw(_some_records)
    return batch_bytes(
        b"".join(records) + draw(st.sampled_from([*[b""] * 8, b"\0", b"\x80"])),
        base_offset=draw(_int64s),
        attributes=draw(st.sampled_from([0x00, 0x08, 0x10, 0x20, 0x40, 0x48, 0x7FF0, -16])),
        base_timestamp=draw(_int64s),
        max_timestamp=draw(_int64s),
        last_offset_delta=draw(_int32s),
        base_sequence=draw(_int32s),
        count=len(records) + draw(st.sampled_from([*_OFF, -1, 1, 2**31 - 1 - len(records), -(2**31)])),
    )
