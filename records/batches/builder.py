# SPDX-License-Identifier: Apache-2.0
"""Writing batches of magic 2.

``RecordBatchBuilder`` has the fields that a writer may choose; ``RecordBatch`` has all fields as stored.
Source: MemoryRecordsBuilder, BatchBuilder.
"""

import operator
import struct
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs

from raftlog.errors import InvariantViolation
from raftlog.records import limits
from raftlog.records.batches.batch import (
    CONTROL_FLAG,
    CRC_START,
    DELETE_HORIZON_FLAG,
    HEADER,
    LOG_APPEND_TIME_FLAG,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    RecordBatch,
    TimestampType,
    wrap_int64,
)
from raftlog.records.batches.compression import CompressionType, compress
from raftlog.records.batches.record import RawRecord, encode_record
from raftlog.records.checksum import crc32c
from raftlog.records.kernel_choice import kernel

if TYPE_CHECKING:
    from raftlog.records.kernel import Prepared, Row

MAGIC: Final = 2
_INT32_MAX: Final = 2**31 - 1


_Staged: TypeAlias = "tuple[Prepared, int, int, int, int, int]"
"""Records in the kernel's form; their size, largest timestamp, base timestamp, number and first offset."""


@attrs.define
class RecordBatchBuilder:
    """Collects records and writes them as one batch.

    Timestamps are in ms. Offsets increase, and may have gaps. Fields that are not given are derived from the records:
    the base timestamp is that of the first record, the max timestamp the largest one, and the last offset that of the
    last record.

    Attributes:
        base_offset: offset of the first record, unless compaction removed it.
        partition_leader_epoch: epoch of the leader that appends.
        compression_type: how to compress the record area.
        timestamp_type: for LogAppendTime, ``max_timestamp`` is the time of every record.
        producer_id, producer_epoch, base_sequence: -1 for none.
        is_transactional: needs a producer id.
        is_control: whether the records are control records.
        delete_horizon_ms: when tombstones may be removed; it takes the place of the base timestamp.
        last_offset_delta: keeps the span of a batch whose last records compaction removed.
    """

    base_offset: int
    partition_leader_epoch: int = attrs.field(default=NO_PARTITION_LEADER_EPOCH, kw_only=True)
    compression_type: CompressionType = attrs.field(default=CompressionType.NONE, kw_only=True)
    timestamp_type: TimestampType = attrs.field(default=TimestampType.CREATE_TIME, kw_only=True)
    producer_id: int = attrs.field(default=NO_PRODUCER_ID, kw_only=True)
    producer_epoch: int = attrs.field(default=NO_PRODUCER_EPOCH, kw_only=True)
    base_sequence: int = attrs.field(default=NO_SEQUENCE, kw_only=True)
    is_transactional: bool = attrs.field(default=False, kw_only=True)
    is_control: bool = attrs.field(default=False, kw_only=True)
    delete_horizon_ms: int | None = attrs.field(default=None, kw_only=True)
    max_timestamp: int | None = attrs.field(default=None, kw_only=True)
    last_offset_delta: int | None = attrs.field(default=None, kw_only=True)
    _prepared: "list[Prepared]" = attrs.field(factory=list, init=False, repr=False)
    _area_size: int = attrs.field(default=0, init=False)
    _base_timestamp: int | None = attrs.field(default=None, init=False)
    _largest_timestamp: int = attrs.field(default=NO_TIMESTAMP, init=False)
    _last_offset: int | None = attrs.field(default=None, init=False)
    _record_count: int = attrs.field(default=0, init=False)
    _staged: "_Staged | None" = attrs.field(default=None, init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        if self.is_transactional and self.producer_id == NO_PRODUCER_ID:
            raise ValueError("a transactional batch needs a producer id")

    @property
    def next_offset(self) -> int:
        """The offset of the next record, unless ``append`` is given another."""
        return self.base_offset if self._last_offset is None else self._last_offset + 1

    def append(
        self,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Iterable[tuple[bytes, bytes | None]] = (),
        *,
        offset: int | None = None,
    ) -> int:
        """Add a record and return its offset.

        Args:
            timestamp: in ms since the epoch, or -1 for none.
            key: or None.
            value: or None.
            headers: pairs of key and value, in order.
            offset: pass it to reproduce gaps that compaction left; the default is the next offset.

        Raises:
            ValueError: the offset does not increase or is too far from the base offset, or the timestamp is below -1.
            TypeError: the timestamp is not an integer, a header is not a pair, a header key is not bytes, or any other
                key or value is neither bytes nor None.
        """
        if offset is None:
            offset = self.next_offset
        elif offset < self.next_offset:
            raise self._cannot_follow(offset)
        self._add(self._prepare(((timestamp, key, value, tuple(headers)),), offset))
        return offset

    def extend(self, rows: "Sequence[Row]") -> None:
        """Add records at the next offsets: all of them, or none if one is refused.

        Args:
            rows: (timestamp, key, value) or (timestamp, key, value, headers), as ``append`` takes them.

        Raises:
            ValueError: the offsets go too far from the base offset, a timestamp is below -1, a row has more or fewer
                fields, or there are more or fewer rows, or headers of a row, than their length says.
            TypeError: as for ``append``.
        """
        rows = _stable(rows)
        if rows:
            self._add(self._prepare(rows, self.next_offset))

    @property
    def record_count(self) -> int:
        """How many records were added so far."""
        return self._record_count

    @property
    def size_bytes(self) -> int:
        """Size of the batch so far, header included and uncompressed."""
        return limits.BATCH_OVERHEAD + self._area_size

    def size_with(self, rows: "Sequence[Row]") -> int:
        """Return what ``size_bytes`` will be once ``extend`` has added these records; nothing changes.

        Raises:
            ValueError: ``extend`` will refuse them.
            TypeError: ``extend`` will refuse them.
        """
        rows = _stable(rows)
        return self.size_bytes + (self._prepare(rows, self.next_offset)[1] if rows else 0)

    def stage(self, rows: "Sequence[Row]") -> int:
        """Encode one or more records, and return what ``size_bytes`` will be once ``add_staged`` has added them.

        Raises:
            ValueError: as for ``extend``, or there are no rows.
            TypeError: as for ``extend``.
        """
        rows = _stable(rows)
        if not rows:
            raise ValueError("no records")
        self._staged = staged = self._prepare(rows, self.next_offset)
        return limits.BATCH_OVERHEAD + self._area_size + staged[1]

    def add_staged(self) -> None:
        """Add the records that were staged last.

        Raises:
            ValueError: none were staged since records were added last. Nothing has changed.
        """
        if self._staged is None:
            raise ValueError("no records are staged")
        self._add(self._staged)

    def _add(self, staged: _Staged) -> None:
        prepared, size, largest, base_timestamp, count, offset = staged
        if count < 1 or size < count:
            raise InvariantViolation(f"offset {offset}: {count} records were encoded in {size} bytes")
        # What may fail has not: from here on, things change.
        self._staged = None
        self._base_timestamp = base_timestamp
        self._prepared.append(prepared)
        self._area_size += size
        if largest > self._largest_timestamp:
            self._largest_timestamp = largest
        self._last_offset = offset + count - 1
        self._record_count += count

    def _prepare(self, rows: "Sequence[Row]", offset: int) -> _Staged:
        last_offset = offset + len(rows) - 1
        if last_offset - self.base_offset > _INT32_MAX:
            raise self._cannot_follow(last_offset)
        base_timestamp = self._base_timestamp
        if base_timestamp is None:
            base_timestamp = self.delete_horizon_ms
        if base_timestamp is None:
            base_timestamp, *_ = rows[0]
            base_timestamp = operator.index(base_timestamp)
        try:
            prepared, size, smallest, largest, count = kernel.prepare(rows, base_timestamp, offset - self.base_offset)
        except OverflowError as error:
            raise ValueError(f"not a 64-bit timestamp: {error}") from None
        if smallest < NO_TIMESTAMP or self._area_size + size > _INT32_MAX:
            raise ValueError(f"a timestamp of {smallest}, or too many bytes: {self._area_size + size}")
        return prepared, size, largest, base_timestamp, count, offset

    def _cannot_follow(self, offset: int) -> ValueError:
        return ValueError(f"offset {offset} cannot follow {self.next_offset - 1} from {self.base_offset} on")

    def build(self) -> bytes:
        """Write the batch.

        Raises:
            ValueError: there are no records, ``last_offset_delta`` is below that of the last record, or a number does
                not fit its field.
            MissingExtraError: the codec's package is not installed.
        """
        if self._base_timestamp is None:
            raise ValueError("a batch needs a record")
        span = self.next_offset - 1 - self.base_offset
        if self.last_offset_delta is not None and self.last_offset_delta < span:
            raise ValueError(f"a last offset delta of {self.last_offset_delta}, and a record at {span}")
        stored = None
        if self.compression_type is not CompressionType.NONE:
            stored = compress(self.compression_type, kernel.encode(b"", self._prepared, self._area_size, crc32c))
        header = _header(
            self._area_size if stored is None else len(stored),
            base_offset=self.base_offset,
            partition_leader_epoch=self.partition_leader_epoch,
            attributes=self._attributes(),
            last_offset_delta=span if self.last_offset_delta is None else self.last_offset_delta,
            base_timestamp=self._base_timestamp,
            max_timestamp=self._largest_timestamp if self.max_timestamp is None else self.max_timestamp,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
            record_count=self._record_count,
        )
        if stored is not None:
            return _with_crc(header, stored)
        data = kernel.encode(header, self._prepared, self._area_size, crc32c)
        if len(data) != self.size_bytes or self._record_count > span + 1:
            raise InvariantViolation(
                f"offset {self.base_offset}: {len(data)} bytes of a batch of {self.size_bytes}, "
                f"and {self._record_count} records for {span + 1} offsets"
            )
        return data

    def _attributes(self) -> int:
        return (
            self.compression_type
            | LOG_APPEND_TIME_FLAG * (self.timestamp_type is TimestampType.LOG_APPEND_TIME)
            | TRANSACTIONAL_FLAG * self.is_transactional
            | CONTROL_FLAG * self.is_control
            | DELETE_HORIZON_FLAG * (self.delete_horizon_ms is not None)
        )


def _stable(rows: "Sequence[Row]") -> "Sequence[Row]":
    """Return rows as a sequence whose length the kernel can trust; it raises an error if the rows change meanwhile."""
    return rows if type(rows) in (list, tuple) else kernel.as_tuple(rows)


def re_encode(batch: RecordBatch) -> bytes:
    """Decode a batch and encode it again: the bytes are the same if it is uncompressed and its varints are minimal.

    Raises:
        DecodeError: the batch does not decode.
    """
    area = b"".join(
        encode_record(
            RawRecord(
                record.attributes,
                record.timestamp_delta,
                wrap_int64(record.offset - batch.base_offset),
                record.key,
                record.value,
                record.headers,
            )
        )
        for record in batch.records()
    )
    codec = CompressionType.of_attributes(batch.attributes)
    stored = area if codec is CompressionType.NONE else compress(codec, area)
    header = _header(
        len(stored),
        base_offset=batch.base_offset,
        partition_leader_epoch=batch.partition_leader_epoch,
        attributes=batch.attributes,
        last_offset_delta=batch.last_offset_delta,
        base_timestamp=batch.base_timestamp,
        max_timestamp=batch.max_timestamp,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        record_count=batch.record_count,
    )
    return _with_crc(header, stored)


def _header(
    stored_size: int,
    *,
    base_offset: int,
    partition_leader_epoch: int,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    record_count: int,
) -> bytes:
    """Write the header of a batch, with a CRC of 0."""
    try:
        return HEADER.pack(
            base_offset,
            limits.BATCH_OVERHEAD - limits.LOG_OVERHEAD + stored_size,
            partition_leader_epoch,
            MAGIC,
            0,
            attributes,
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            record_count,
        )
    except struct.error as error:
        raise ValueError(f"a field of the batch does not fit: {error}") from None


def _with_crc(header: bytes, stored: bytes) -> bytes:
    crc = crc32c(stored, crc32c(header[CRC_START:]))
    return b"".join((header[: CRC_START - 4], crc.to_bytes(4, "big"), header[CRC_START:], stored))
