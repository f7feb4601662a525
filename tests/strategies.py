# SPDX-License-Identifier: Apache-2.0
"""Hypothesis strategies for batches, logs and what can go wrong with their bytes."""

import struct
import zlib
from typing import Final

import attrs
from hypothesis import strategies as st

from raftlog.records.batches.batch import TimestampType
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.compression import CompressionType, compress
from raftlog.records.batches.record import Header
from raftlog.records.checksum import crc32c
from raftlog.records.varint import uvarint, varint

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
TIMESTAMP: Final = 1_700_000_000_000
_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_CRC_START: Final = 21
_OVERHEAD: Final = 61

# Lengths around where a varint takes one byte more are the interesting ones.
short_bytes = st.binary(max_size=12) | st.sampled_from([b"", b"\0" * 63, b"\xff" * 64, b"a" * 700])
nullable_bytes = st.none() | short_bytes
headers = st.lists(st.builds(Header, st.text(max_size=5).map(str.encode), nullable_bytes), max_size=3)
codecs = st.sampled_from(CompressionType)


@attrs.frozen
class PlannedRecord:
    """The contents of a record of a planned batch."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[Header]


@attrs.frozen
class PlannedBatch:
    """The contents of a batch, before it is written."""

    builder: RecordBatchBuilder
    records: list[PlannedRecord]

    def build(self) -> bytes:
        """Write the batch."""
        builder = attrs.evolve(self.builder)
        for record in self.records:
            builder.append(record.timestamp, record.key, record.value, record.headers, offset=record.offset)
        return builder.build()


_FIELDS: Final = (None, b"", b"k", b"\0" * 63, b"\xff" * 64, b"a" * 700)
_PAYLOADS: Final = [
    (key, value, list(some_headers))
    for key in _FIELDS[:4]
    for value in _FIELDS
    for some_headers in ((), (Header(b"", None),), (Header(b"h", b""), Header("\u00fc".encode(), b"x" * 64)))
]
# Half of them are ready-made: drawing is what takes the time.
payloads = st.sampled_from(_PAYLOADS) | st.tuples(nullable_bytes, nullable_bytes, headers)
_timestamps = st.sampled_from([-1, 0, TIMESTAMP, 2**61]) | st.integers(TIMESTAMP - 200, TIMESTAMP + 200)
_producers = st.just((-1, -1, -1)) | st.tuples(
    st.integers(-1, INT64_MAX), st.integers(-1, 2**15 - 1), st.integers(-1, INT32_MAX)
)
# A strategy is checked when it is drawn from first: what depends on nothing that was drawn is made once.
_base_offsets = st.integers(0, 2**40)
_gaps = st.lists(st.sampled_from([0, 0, 0, 1, 70, 10**6]), min_size=1, max_size=4)
_flags = st.integers(0, 7)
_epochs = st.integers(-1, INT32_MAX)
_horizons = st.none() | st.integers(0, 2**61)
_choices = st.booleans()
_max_timestamps = st.none() | st.integers(-1, INT64_MAX)


@st.composite
def planned_batches(
    draw: st.DrawFn, base_offset: int | None = None, codec: CompressionType | None = None
) -> PlannedBatch:
    """Batches with any attributes, codec, headers, nulls, gaps, sequences and timestamps that a builder takes."""
    base_offset = draw(_base_offsets) if base_offset is None else base_offset
    offset = base_offset
    records = []
    for gap in draw(_gaps):
        records.append(PlannedRecord(offset + gap, draw(_timestamps), *draw(payloads)))
        offset += gap + 1
    producer_id, producer_epoch, base_sequence = draw(_producers)
    flags = draw(_flags)
    builder = RecordBatchBuilder(
        base_offset,
        partition_leader_epoch=draw(_epochs),
        compression_type=draw(codecs) if codec is None else codec,
        timestamp_type=TimestampType(flags & 1),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=producer_id != -1 and bool(flags & 2),
        is_control=bool(flags & 4),
        delete_horizon_ms=draw(_horizons),
        max_timestamp=draw(_max_timestamps),
        last_offset_delta=draw(st.integers(offset - 1 - base_offset, INT32_MAX)) if draw(_choices) else None,
    )
    return PlannedBatch(builder, records)


_any_planned_batches = planned_batches()
_plain_planned_batches = planned_batches(codec=CompressionType.NONE)
_attributes_of_empty = st.sampled_from([0x00, 0x08, 0x10, 0x20, 0x30, 0x48])


def batch_bytes(
    area: bytes = b"",
    *,
    base_offset: int = 0,
    epoch: int = 0,
    attributes: int = 0,
    last_offset_delta: int = 0,
    base_timestamp: int = TIMESTAMP,
    max_timestamp: int = TIMESTAMP,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    count: int = 0,
) -> bytes:
    """Write a batch of magic 2 around a record area, with any values in the header."""
    header = _HEADER.pack(
        base_offset,
        _OVERHEAD - 12 + len(area),
        epoch,
        2,
        0,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    return with_crc(header + area)


def with_crc(batch: bytes) -> bytes:
    """Return the same bytes with a CRC that holds, as far as there is one."""
    if len(batch) < _CRC_START:
        return batch
    return batch[:17] + crc32c(batch[_CRC_START:]).to_bytes(4, "big") + batch[_CRC_START:]


def with_length(batch: bytes) -> bytes:
    """Return the same bytes with a length field that says how many they are."""
    return batch[:8] + (len(batch) - 12).to_bytes(4, "big", signed=True) + batch[12:]


@st.composite
def batches(draw: st.DrawFn, base_offset: int | None = None, codec: CompressionType | None = None) -> bytes:
    """Whole batches, whose headers look likely: built ones, and empty ones that compaction left behind."""
    if draw(st.integers(0, 9)):
        is_any = base_offset is None and codec is None
        return draw(_any_planned_batches if is_any else planned_batches(base_offset, codec)).build()
    return batch_bytes(
        base_offset=draw(_base_offsets) if base_offset is None else base_offset,
        attributes=draw(_attributes_of_empty),
        last_offset_delta=draw(st.integers(0, 1000)),
        producer_id=draw(st.integers(-1, 10)),
    )


def legacy_message(
    magic: int, offset: int, key: bytes | None, value: bytes | None, attributes: int = 0, timestamp: int = TIMESTAMP
) -> bytes:
    """Write a message of magic 0 or 1."""
    body = bytes((magic, attributes))
    if magic == 1:
        body += timestamp.to_bytes(8, "big", signed=True)
    for field in (key, value):
        body += b"\xff" * 4 if field is None else len(field).to_bytes(4, "big") + field
    crc = zlib.crc32(body).to_bytes(4, "big")
    return offset.to_bytes(8, "big", signed=True) + (len(body) + 4).to_bytes(4, "big") + crc + body


@st.composite
def legacy_batches(draw: st.DrawFn) -> bytes:
    """Messages of magic 0 and 1, plain, or with more of them inside."""
    magic = draw(st.integers(0, 1))
    offset = draw(st.integers(2, 2**40))
    attributes = draw(st.sampled_from([0, 8])) if magic == 1 else 0
    codec = draw(st.sampled_from([CompressionType.NONE, CompressionType.GZIP, CompressionType.SNAPPY]))
    if codec is CompressionType.NONE:
        return legacy_message(magic, offset, draw(nullable_bytes), draw(nullable_bytes), attributes)
    inner = b"".join(
        legacy_message(magic, index, draw(nullable_bytes), draw(nullable_bytes))
        for index in range(draw(st.integers(1, 3)))
    )
    return legacy_message(magic, offset, None, compress(codec, inner), attributes | codec)


def _ready_made(index: int) -> bytes:
    builder = RecordBatchBuilder(
        index * 1000,
        partition_leader_epoch=index % 7 - 1,
        compression_type=CompressionType(index % 5),
        timestamp_type=TimestampType(index // 5 % 2),
        producer_id=index // 10 % 2 - 1,
        producer_epoch=0,
        base_sequence=INT32_MAX - 1,
        is_control=index % 3 == 0,
        delete_horizon_ms=TIMESTAMP if index % 4 == 3 else None,
    )
    for step, (key, value, some_headers) in enumerate(_PAYLOADS[index : 2 * index + 1 : 7]):
        builder.append(TIMESTAMP + step, key, value, some_headers, offset=builder.next_offset + step % 3)
    return builder.build()


_READY_MADE: Final = [
    batch_bytes(),
    batch_bytes(b"\x0c\0\0\0\x01\x01\0", count=1),
    batch_bytes(base_offset=7, attributes=0x38, last_offset_delta=9),
    *map(_ready_made, range(40)),
]

ready_made_batches = st.integers(0, len(_READY_MADE) - 1).map(_READY_MADE.__getitem__)
"""Whole batches of every kind, where many are needed and their contents matter little."""


def logs(*, min_size: int = 1, max_size: int = 6) -> st.SearchStrategy[list[bytes]]:
    """The batches of a log; some of them have the same size, some are the same."""
    return st.lists(ready_made_batches, min_size=min_size, max_size=max_size)


_LENGTHS: Final = [-(2**31), -1, 0, 13, 14, 21, 22, 48, 49, INT32_MAX]
_COUNTS: Final = [-(2**31), -1, 0, 1, 2, 1000, INT32_MAX]
_VARINTS: Final = [
    *map(varint, (-(2**31), -2, -1, 0, 1, 63, 64, 2**31 - 1)),
    uvarint(2**32),
    uvarint(2**63),
    uvarint(2**64),
    b"\x80\x00",
    b"\x81\x80\x80\x80\x00",
    b"\xff" * 5,
    b"\xff" * 10,
]
_short_spans = st.integers(1, 40)
_lengths = st.sampled_from(_LENGTHS) | st.integers(0, 2000)
_varints = st.sampled_from(_VARINTS)
_kinds = st.sampled_from(["bit", "byte", "cut", "drop", "insert", "repeat", "zeros", "length", "count", "varint"])


def _splice(data: bytes, start: int, stop: int, replacement: bytes) -> bytes:
    return data[:start] + replacement + data[stop:]


def _with_one_change(draw: st.DrawFn, data: bytes) -> bytes:
    at = draw(st.integers(0, max(0, len(data) - 1)))
    span = draw(_short_spans) if draw(_choices) else draw(st.integers(1, max(1, len(data))))
    kind = draw(_kinds)
    if kind == "length" and len(data) >= 12:
        stored = int.from_bytes(data[8:12], "big", signed=True)
        near = [length for length in (stored - 1, stored + 1, 2 * stored + 12) if 0 <= length <= INT32_MAX] or [0]
        length = draw(st.sampled_from(near) if draw(_choices) else _lengths)
        return _splice(data, 8, 12, length.to_bytes(4, "big", signed=True))
    if kind == "count" and len(data) >= _OVERHEAD:
        stored = int.from_bytes(data[57:61], "big", signed=True)
        near = [count for count in (stored - 1, stored + 1) if -INT32_MAX < count <= INT32_MAX]
        return _splice(data, 57, 61, draw(st.sampled_from(near + _COUNTS)).to_bytes(4, "big", signed=True))
    if kind == "varint" and len(data) > _OVERHEAD:
        at = draw(st.integers(_OVERHEAD, len(data) - 1))
        encoded = draw(_varints)
        return _splice(data, at, at + draw(st.sampled_from([1, len(encoded)])), encoded)
    if kind == "cut":
        return data[:at]
    if kind == "drop":
        return _splice(data, at, at + span, b"")
    if kind == "insert":
        return _splice(data, at, at, draw(st.binary(min_size=1, max_size=20)))
    if kind == "repeat":
        return _splice(data, at, at, data[at : at + span])
    if kind == "zeros":
        return _splice(data, at, min(len(data), at + span), bytes(min(span, len(data) - at)))
    byte = data[at] ^ 1 << draw(st.integers(0, 7)) if kind == "bit" and data else draw(st.integers(0, 255))
    return _splice(data, at, at + 1, bytes((byte,)))


@st.composite
def mutated(draw: st.DrawFn, data: bytes, *, repair: bool | None = None, max_changes: int = 3) -> bytes:
    """Bytes of a batch with one to ``max_changes`` changes to them.

    Args:
        draw: Hypothesis's.
        data: the batch.
        repair: whether the length and the CRC are corrected afterwards, so that a reader continues to the records; None
            for either.
        max_changes: the greatest number of changes.
    """
    for _ in range(draw(st.integers(1, max_changes))):
        data = _with_one_change(draw, data)
    if repair or (repair is None and draw(st.booleans())):
        return with_crc(with_length(data)) if len(data) >= _OVERHEAD else data
    return data


@st.composite
def with_mutated_area(draw: st.DrawFn, codec: CompressionType | None = None) -> bytes:
    """Batches whose header, length and CRC hold, and whose records, once decompressed, may not."""
    plain = draw(_plain_planned_batches).build()
    changed = draw(mutated(plain, repair=False))
    codec = draw(codecs) if codec is None else codec
    header = _splice(plain[:22] + bytes((plain[22] | codec,)) + plain[23:_OVERHEAD], 57, 61, changed[57:61])
    return with_crc(with_length(header.ljust(_OVERHEAD, b"\0") + compress(codec, changed[_OVERHEAD:])))
