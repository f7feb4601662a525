# SPDX-License-Identifier: Apache-2.0
"""Message sets of magic 0 and 1, as Kafka wrote them before 0.11: recognised, checked and listed.

::

     0  int64   offset
     8  int32   size of what follows
    12  uint32  CRC-32 (IEEE) of everything from byte 16 to the end
    16  int8    magic
    17  int8    attributes: bits 0-2 codec, 3 LogAppendTime (magic 1)
    18  int64   timestamp in ms (magic 1 alone)
        int32   key length, -1 for null; key
        int32   value length, -1 for null; value

A compressed message has no key, and its value is a message set. The inner offsets are absolute in magic 0, and relative
in magic 1, where the wrapper holds the last one. A raft log never has such messages.
Source: LegacyRecord, AbstractLegacyRecordBatch.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from raftlog.errors import CorruptBatchError, DecodeError, InvalidRecordError, TruncatedBatchError
from raftlog.records import limits
from raftlog.records.batches.batch import LOG_APPEND_TIME_FLAG, NO_TIMESTAMP, TimestampType, wrap_int64
from raftlog.records.batches.compression import CompressionType, decompress, repair_legacy_lz4
from raftlog.records.checksum import crc32

CRC_START: Final = 16
_OVERHEAD: Final = {0: 14, 1: 22}
"""The smallest valid size field: a message with null key and value."""


def min_length(magic: int) -> int:
    """Return the smallest valid length field of a message of magic 0 or 1."""
    return _OVERHEAD[magic]


class LegacyRecord(NamedTuple):
    """One message of a message set, or of the set inside a compressed message."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    crc: int
    crc_holds: bool
    timestamp_type: TimestampType


class LegacyBatch:
    """A view of one stored message of magic 0 or 1, which Kafka treats as a batch.

    Attributes:
        buffer: the whole message, offset and size included.
        position: byte position in its file, for errors.
        base_offset: the stored offset; for a compressed message, that of its last inner message.
        magic: 0 or 1.
        crc: the stored CRC, unsigned.
        attributes: all 8 bits.

    Raises:
        TruncatedBatchError: the buffer is shorter than an empty message of its magic.
    """

    __slots__ = ("attributes", "base_offset", "buffer", "crc", "magic", "position")

    def __init__(self, buffer: memoryview | bytes, position: int = 0) -> None:
        self.buffer = memoryview(buffer)
        self.position = position
        if len(buffer) < limits.LOG_OVERHEAD + _OVERHEAD[1 if len(buffer) > 16 and buffer[16] == 1 else 0]:
            raise TruncatedBatchError(f"a message of {len(buffer)} bytes", "batch-length", position=position)
        self.base_offset = self._int(0, 8)
        self.crc = int.from_bytes(self.buffer[12:16], "big")
        self.magic = self._int(16, 1)
        self.attributes = self._int(17, 1)

    def _int(self, at: int, size: int) -> int:
        return int.from_bytes(self.buffer[at : at + size], "big", signed=True)

    @property
    def size_bytes(self) -> int:
        """The whole message, offset and size included."""
        return len(self.buffer)

    @property
    def last_offset(self) -> int:
        """The stored offset, inclusive; for a compressed message, that of its last inner message."""
        return self.base_offset

    @property
    def max_timestamp(self) -> int:
        """The stored timestamp in ms, -1 in magic 0."""
        return self._int(18, 8) if self.magic == 1 else NO_TIMESTAMP

    @property
    def timestamp_type(self) -> TimestampType:
        """CreateTime or LogAppendTime, or no timestamp at all in magic 0."""
        if self.magic == 0:
            return TimestampType.NO_TIMESTAMP_TYPE
        return TimestampType(bool(self.attributes & LOG_APPEND_TIME_FLAG))

    @property
    def compression_type(self) -> CompressionType:
        """How the value is compressed.

        Raises:
            UnsupportedCompressionError: the id is above 4.
        """
        try:
            return CompressionType.of_attributes(self.attributes)
        except DecodeError as error:
            raise error.located(position=self.position, base_offset=self.base_offset) from None

    @property
    def crc_holds(self) -> bool:
        """Whether the stored CRC-32 matches the bytes."""
        return crc32(self.buffer[CRC_START:]) == self.crc

    def ensure_valid(self) -> None:
        """Check the CRC.

        Raises:
            CorruptBatchError: it does not hold.
        """
        if not self.crc_holds:
            raise CorruptBatchError(
                f"the stored CRC is {self.crc}, that of the bytes {crc32(self.buffer[CRC_START:])}",
                "batch-crc",
                position=self.position,
                base_offset=self.base_offset,
            )

    def ensure_readable(self) -> None:
        """Check that the header names a codec of this magic.

        Raises:
            InvalidRecordError: the codec is zstd.
            UnsupportedCompressionError: the codec is unknown.
        """
        if self.compression_type is CompressionType.ZSTD:
            reason = f"a {CompressionType.ZSTD.label} message of magic {self.magic}"
            raise InvalidRecordError(reason, "codec-stream", position=self.position, base_offset=self.base_offset)

    def records(
        self, *, check_crc: bool = True, max_size: int = limits.MAX_DECOMPRESSED_SIZE
    ) -> Iterator[LegacyRecord]:
        """Yield the message itself, or the messages inside it if it is compressed.

        Raises:
            CorruptBatchError: the CRC does not hold.
            InvalidRecordError: a length does not fit, or compressed messages are nested or missing.
            UnsupportedCompressionError: zstd, or an unknown codec.
        """
        if check_crc:
            self.ensure_valid()
        return self._located_records(max_size)

    def _located_records(self, max_size: int) -> Iterator[LegacyRecord]:
        try:
            yield from self._read_records(max_size)
        except DecodeError as error:
            error.position = None
            raise error.located(position=self.position, base_offset=self.base_offset) from None

    def _read_records(self, max_size: int) -> Iterator[LegacyRecord]:
        self.ensure_readable()
        codec = self.compression_type
        key, value = self.key_and_value()
        if codec is CompressionType.NONE:
            yield LegacyRecord(
                self.base_offset, self.max_timestamp, key, value, self.crc, self.crc_holds, self.timestamp_type
            )
            return
        if value is None:
            raise InvalidRecordError(f"a {codec.label} message of magic {self.magic}", "codec-stream")
        if codec is CompressionType.LZ4 and self.magic == 0:
            value = repair_legacy_lz4(value)
        yield from self._placed(bytes(decompress(codec, value, max_size)))

    def _placed(self, message_set: bytes) -> Iterator[LegacyRecord]:
        """Yield inner messages with offsets from the wrapper, and its timestamp if the broker set that."""
        last_offset = None
        for message in _messages(message_set):
            last_offset = message.base_offset
        if last_offset is None:
            raise InvalidRecordError("a compressed message holds no messages", "codec-stream")
        is_relative = self.magic == 1 and self.base_offset != 0  # 0: a producer that left the offsets to the broker.
        if is_relative and self.base_offset < last_offset:
            raise InvalidRecordError(f"offset {last_offset} in a message at {self.base_offset}", "codec-stream")
        first_offset = self.base_offset - last_offset if is_relative else 0
        append_time = self.timestamp_type is TimestampType.LOG_APPEND_TIME
        for message in _messages(message_set):
            if message.magic != self.magic or message.attributes & 7:
                raise InvalidRecordError("a message inside a compressed one is of another kind", "codec-stream")
            key, value = message.key_and_value()
            yield LegacyRecord(
                wrap_int64(first_offset + message.base_offset),
                self.max_timestamp if append_time else message.max_timestamp,
                key,
                value,
                message.crc,
                message.crc_holds,
                self.timestamp_type,
            )

    def key_and_value(self) -> tuple[bytes | None, bytes | None]:
        """Return the message's own key and value as stored; the value of a compressed message is a message set.

        Raises:
            InvalidRecordError: a length does not fit.
        """
        key, at = self._field(26 if self.magic == 1 else 18)
        value, at = self._field(at)
        if at != len(self.buffer):
            raise InvalidRecordError(f"{len(self.buffer) - at} bytes after the value", "record-end")
        return key, value

    def _field(self, at: int) -> tuple[bytes | None, int]:
        size = self._int(at, 4)
        at += 4
        if size == -1:
            return None, at
        if not 0 <= size <= len(self.buffer) - at:
            raise InvalidRecordError(f"a field of {size} bytes does not fit", "record-field")
        return bytes(self.buffer[at : at + size]), at + size


def _messages(message_set: bytes) -> Iterator[LegacyBatch]:
    """Yield the messages of a decompressed set; like Kafka, drop one that is cut at its end."""
    view = memoryview(message_set)
    position = 0
    while position + limits.HEADER_UP_TO_MAGIC <= len(view):
        size = int.from_bytes(view[position + 8 : position + 12], "big", signed=True)
        magic = view[position + 16]
        if magic > 1 or size < _OVERHEAD[magic]:
            raise CorruptBatchError("a message inside a compressed one has a bad header", "codec-stream")
        end = position + limits.LOG_OVERHEAD + size
        if end > len(view):
            return
        yield LegacyBatch(view[position:end])
        position = end
