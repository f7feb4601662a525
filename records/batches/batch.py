# SPDX-License-Identifier: Apache-2.0
"""The record batch of magic 2, as stored: all integers big-endian.

::

     0  int64   base offset                     (not covered by the CRC)
     8  int32   length of what follows, so the batch is 12 bytes longer
    12  int32   partition leader epoch, -1 = unknown   (not covered by the CRC)
    16  int8    magic = 2                       (not covered by the CRC)
    17  uint32  CRC-32C of everything from byte 21 to the end
    21  int16   attributes: bits 0-2 codec, 3 LogAppendTime, 4 transactional, 5 control, 6 delete horizon
    23  int32   last offset delta
    27  int64   base timestamp in ms, or the delete horizon where bit 6 is set
    35  int64   max timestamp in ms
    43  int64   producer id, -1 = none
    51  int16   producer epoch, -1 = none
    53  int32   base sequence, -1 = none
    57  int32   record count
    61          the records, one stream if compressed

Source: DefaultRecordBatch.
"""

import enum
import functools
import struct
from collections.abc import Iterator
from typing import Final

from raftlog.errors import CorruptBatchError, DecodeError, InvalidRecordError, TruncatedBatchError
from raftlog.records import limits
from raftlog.records.batches.compression import CompressionType, decompress
from raftlog.records.batches.record import MARK_FLAGS, Record, read_record, read_usual_records
from raftlog.records.checksum import crc32c

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
CRC_START: Final = 21
_LENGTH: Final = struct.Struct(">i")
_LENGTH_POSITION: Final = 8
NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_PARTITION_LEADER_EPOCH: Final = -1

_FAR_FROM_WRAPPING: Final = 1 << 62
"""The largest int64 to which a record's delta can be added without overflow."""
_RECORDS_AT_ONCE: Final = 1000
"""How many records are decoded ahead of the one that is yielded."""

LOG_APPEND_TIME_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40


class TimestampType(enum.IntEnum):
    """What a batch's timestamps mean: bit 3 of its attributes. Batches of magic 0 have no timestamps."""

    NO_TIMESTAMP_TYPE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1

    @classmethod
    def of_attributes(cls, attributes: int) -> "TimestampType":
        """Return the type that is set in the attributes of a batch of magic 1 or 2."""
        return cls.LOG_APPEND_TIME if attributes & LOG_APPEND_TIME_FLAG else cls.CREATE_TIME

    @functools.cached_property
    def label(self) -> str:
        """Kafka's name for it, such as ``CreateTime``."""
        return "".join(word.capitalize() for word in self.name.split("_"))


def wrap_int64(value: int) -> int:
    """Return a sum of 64-bit values as Java's ``long`` would hold it."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def add_sequence(sequence: int, increment: int) -> int:
    """Return a producer's sequence ``increment`` records later: 0 follows 2147483647, and -1 (none) stays -1."""
    return NO_SEQUENCE if sequence < 0 else (sequence + increment) % (1 << 31)


class RecordBatch:
    """A view of one stored batch. The header is read on creation, the records on request; until then nothing is copied.

    Attributes:
        buffer: the whole batch, header included.
        position: byte position of the batch in its file, for errors.
        base_offset: offset of the first record at the time of writing; compaction may have removed that record.
        partition_leader_epoch: epoch of the leader that appended it, -1 if unknown.
        magic: 2; may differ only in the view of a damaged batch.
        crc: the stored CRC, unsigned.
        attributes: all 16 bits, signed.
        last_offset_delta: offset of the last record at the time of writing, relative to the base offset.
        base_timestamp: in ms; timestamp deltas are relative to it. It is the delete horizon if there is one.
        max_timestamp: in ms.
        producer_id: -1 if none.
        producer_epoch: -1 if none.
        base_sequence: -1 if none.
        record_count: the number of records according to the header.

    Raises:
        TruncatedBatchError: the buffer is shorter than a header.
    """

    __slots__ = (
        "_computed_crc",
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "buffer",
        "crc",
        "last_offset_delta",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "position",
        "producer_epoch",
        "producer_id",
        "record_count",
    )

    def __init__(self, buffer: memoryview | bytes, position: int = 0, *, crc_is_checked: bool = False) -> None:
        self.buffer = memoryview(buffer)
        self.position = position
        if len(buffer) < limits.BATCH_OVERHEAD:
            raise TruncatedBatchError(
                f"a batch header takes {limits.BATCH_OVERHEAD} bytes, not {len(buffer)}",
                "batch-length",
                position=position,
            )
        (
            self.base_offset,
            _,
            self.partition_leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.record_count,
        ) = HEADER.unpack_from(buffer)
        self._computed_crc: int | None = self.crc if crc_is_checked else None

    def __repr__(self) -> str:
        return (
            f"RecordBatch(position={self.position}, base_offset={self.base_offset}, last_offset={self.last_offset}, "
            f"partition_leader_epoch={self.partition_leader_epoch}, record_count={self.record_count}, "
            f"attributes={self.attributes:#06x}, size_bytes={self.size_bytes})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecordBatch) and self.buffer == other.buffer

    __hash__ = None  # type: ignore[assignment]

    @property
    def size_bytes(self) -> int:
        """The whole batch, header included."""
        return len(self.buffer)

    @property
    def last_offset(self) -> int:
        """Offset of the last record at the time of writing, inclusive."""
        return wrap_int64(self.base_offset + self.last_offset_delta)

    @property
    def next_offset(self) -> int:
        """The offset after the batch."""
        return wrap_int64(self.last_offset + 1)

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record, -1 if there is none. Unlike records, accepts a base sequence below -1."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        sequence: int = self.base_sequence + self.last_offset_delta
        return sequence if sequence < 1 << 31 else sequence - (1 << 31)

    @property
    def compression_type(self) -> CompressionType:
        """How the record area is compressed.

        Raises:
            UnsupportedCompressionError: the id is 5, 6 or 7.
        """
        try:
            return CompressionType.of_attributes(self.attributes)
        except DecodeError as error:
            raise error.located(position=self.position, base_offset=self.base_offset) from None

    @property
    def timestamp_type(self) -> TimestampType:
        """CreateTime or LogAppendTime."""
        return TimestampType.of_attributes(self.attributes)

    @property
    def is_transactional(self) -> bool:
        """Whether the records belong to a transaction."""
        return bool(self.attributes & TRANSACTIONAL_FLAG)

    @property
    def is_control(self) -> bool:
        """Whether the records are control records."""
        return bool(self.attributes & CONTROL_FLAG)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When tombstones of the batch may be removed, in ms since the Unix epoch, or None."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_FLAG else None

    @property
    def crc_holds(self) -> bool:
        """Whether the stored CRC matches the bytes; computed once."""
        try:
            self.ensure_valid()
        except CorruptBatchError:
            return False
        return True

    def ensure_valid(self) -> None:
        """Check the CRC.

        Raises:
            CorruptBatchError: the stored CRC does not match the bytes.
        """
        if self._computed_crc is None:
            self._computed_crc = crc32c(self.buffer[CRC_START:])
        if self._computed_crc != self.crc:
            raise CorruptBatchError(
                f"the stored CRC is {self.crc}, that of the bytes {self._computed_crc}",
                "batch-crc",
                position=self.position,
                base_offset=self.base_offset,
            )

    def ensure_readable(self) -> None:
        """Check the header fields that describe the records: the compression id and the record count.

        Raises:
            UnsupportedCompressionError: the codec's id is 5, 6 or 7.
            CorruptBatchError: the record count is negative.
        """
        try:
            CompressionType.of_attributes(self.attributes)
            self._check_count()
        except DecodeError as error:
            raise error.located(position=self.position, base_offset=self.base_offset) from None

    def record_area(self, max_size: int = limits.MAX_DECOMPRESSED_SIZE) -> bytes:
        """Return the bytes of all records, decompressed.

        Raises:
            DecodeError: unknown codec, a damaged stream, or more than ``max_size`` bytes.
            MissingExtraError: the codec's package is not installed.
        """
        area, _ = self.record_area_and_rest(max_size)
        return area

    def record_area_and_rest(self, max_size: int = limits.MAX_DECOMPRESSED_SIZE) -> tuple[bytes, int]:
        """Return what ``record_area`` returns, and the number of bytes after the end of the compressed stream.

        Raises:
            DecodeError, MissingExtraError: as ``record_area``.
        """
        if self.attributes & 7 == CompressionType.NONE:
            return bytes(self.buffer[limits.BATCH_OVERHEAD :]), 0
        rest: list[int] = []
        try:
            area = decompress(self.compression_type, self.buffer[limits.BATCH_OVERHEAD :], max_size, rest)
            return bytes(area), sum(rest)
        except DecodeError as error:
            raise error.located(position=self.position, base_offset=self.base_offset) from None

    def records(self, *, check_crc: bool = True, max_size: int = limits.MAX_DECOMPRESSED_SIZE) -> Iterator[Record]:
        """Yield the batch's records in order, control records too; records before a bad one are yielded first.

        Args:
            check_crc: whether to refuse a batch whose CRC does not match. The records of such a batch may be wrong.
            max_size: the most bytes that the record area may decompress to.

        Raises:
            CorruptBatchError: the CRC does not match, or the record count is impossible.
            InvalidRecordError: a record is damaged, or the bytes hold more or fewer records than the header says.
            UnsupportedCompressionError, MissingExtraError: as ``record_area``.
        """
        if check_crc:
            self.ensure_valid()
        return self._read_records(max_size)

    def _read_records(self, max_size: int) -> Iterator[Record]:
        area = self.record_area(max_size)
        base_offset, base_timestamp = self.base_offset, self.base_timestamp
        append_time = self.max_timestamp if self.attributes & LOG_APPEND_TIME_FLAG else None
        marks = self.attributes & MARK_FLAGS
        may_wrap = max(abs(base_offset), abs(base_timestamp)) > _FAR_FROM_WRAPPING
        at = 0
        left = self.record_count
        try:
            self._check_count()
            while left > 0:
                if not may_wrap:
                    most = min(left, _RECORDS_AT_ONCE)
                    usual, at = read_usual_records(area, at, most, base_offset, base_timestamp, append_time, marks)
                    yield from usual
                    left -= len(usual)
                    if len(usual) == most:
                        continue
                if at == len(area):
                    raise InvalidRecordError(f"fewer records than {self.record_count}", "batch-missing")
                record, at = self._read_record(area, at, append_time)
                yield record
                left -= 1
            if at != len(area):
                raise InvalidRecordError(f"{len(area) - at} bytes after the last record", "batch-trailing")
        except DecodeError as error:
            raise self._placed(error) from None

    def _read_record(self, area: bytes, position: int, append_time: int | None) -> tuple[Record, int]:
        raw, end = read_record(area, position)
        record = Record(
            wrap_int64(self.base_offset + raw.offset_delta),
            wrap_int64(self.base_timestamp + raw.timestamp_delta) if append_time is None else append_time,
            raw.key,
            raw.value,
            raw.headers,
            raw.attributes,
            raw.timestamp_delta,
            self.attributes & MARK_FLAGS,
        )
        return record, end

    def _check_count(self) -> None:
        if self.record_count < 0:
            raise CorruptBatchError(f"a record count of {self.record_count}", "batch-count")

    def _placed(self, error: DecodeError) -> DecodeError:
        """Add a position in the file to an error from inside the record area, if the area is not compressed."""
        if error.position is not None and self.attributes & 7 == CompressionType.NONE:
            error.position += self.position + limits.BATCH_OVERHEAD
        else:
            error.position = None
        return error.located(position=self.position, base_offset=self.base_offset)


def read_batch(buffer: memoryview | bytes, position: int = 0) -> tuple[RecordBatch, int]:
    """Read the batch at a position of a buffer; its CRC is checked when its records are.

    Returns:
        The batch, and the position after it.

    Raises:
        TruncatedBatchError: the buffer ends before the batch does.
        CorruptBatchError: the length is below that of an empty batch.
    """
    left = max(0, len(buffer) - position)
    if left < limits.BATCH_OVERHEAD:
        raise TruncatedBatchError(f"{left} bytes are no batch", "tail-torn", position=position)
    size: int = _LENGTH.unpack_from(buffer, position + _LENGTH_POSITION)[0] + limits.LOG_OVERHEAD
    if size < limits.BATCH_OVERHEAD:
        raise CorruptBatchError(f"a batch of {size} bytes", "batch-length", position=position)
    if size > left:
        raise TruncatedBatchError(f"a batch of {size} bytes in {left}", "tail-torn", position=position)
    end = position + size
    return RecordBatch(memoryview(buffer)[position:end], position), end


def whole_batches(buffer: memoryview | bytes) -> Iterator[RecordBatch]:
    """Yield the batches of a buffer, up to one that is cut off; their CRCs are checked when their records are.

    Raises:
        CorruptBatchError: a length is below that of an empty batch.
    """
    position = 0
    while position < len(buffer):
        try:
            batch, position = read_batch(buffer, position)
        except TruncatedBatchError:
            return
        yield batch
