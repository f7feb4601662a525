# SPDX-License-Identifier: Apache-2.0
"""Producer snapshots, ``<20-digit offset>.snapshot``: the state of a log's producers up to that offset (exclusive).

::

    0   i16  version, 1
    2   u32  CRC-32C of all that follows
    6   i32  count
    10  46 bytes for each producer:
        i64 producer id · i16 producer epoch · i32 last sequence · i64 last offset · i32 offset delta
        i64 timestamp · i32 coordinator epoch · i64 first offset of the current transaction, or -1

Not to be confused with KRaft snapshots, ``.checkpoint``.

Source: ProducerStateManager.
"""

import struct
from collections.abc import Iterable
from typing import Final

import attrs

from raftlog.errors import DecodeError, UnsupportedVersionError
from raftlog.records.checksum import crc32c

PRODUCER_SNAPSHOT_VERSION: Final = 1
"""The only version."""

_HEADER = struct.Struct(">hIi")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_CRC_START = 6


@attrs.frozen
class ProducerStateEntry:
    """The state that a log keeps of one producer: its newest batch, and its open transaction.

    Attributes:
        producer_id: the producer.
        producer_epoch: its latest epoch.
        last_sequence: sequence number of the last record of the newest batch, or -1.
        last_offset: log offset of that record (inclusive), or -1 if no batch is remembered.
        offset_delta: how many records the batch has, less one.
        timestamp: timestamp of the last batch or marker, in ms.
        coordinator_epoch: epoch of the coordinator that wrote the latest marker, or -1.
        current_transaction_first_offset: where the open transaction starts (inclusive), or -1.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_transaction_first_offset: int

    @property
    def first_sequence(self) -> int | None:
        """Sequence number of the newest batch's first record, or None if no batch is remembered.

        Sequence numbers wrap: the one before 0 is 2**31 - 1.
        """
        return None if self.last_offset < 0 else (self.last_sequence - self.offset_delta) % (1 << 31)


def read_producer_snapshot(data: bytes, *, allow_trailing_bytes: bool = False) -> tuple[ProducerStateEntry, ...]:
    """Read a producer snapshot.

    Args:
        data: the whole file.
        allow_trailing_bytes: ignore bytes after the last entry, as Kafka does; the CRC covers them.

    Raises:
        DecodeError: the file is shorter or longer than its count says (rule ``file-format``), or the CRC does not hold
            (rule ``file-crc``).
        UnsupportedVersionError: the version is not 1.
    """
    if len(data) < _HEADER.size:
        raise DecodeError(f"{len(data)} bytes are too few for a producer snapshot", "file-format", position=0)
    version, crc, count = _HEADER.unpack_from(data)
    if version != PRODUCER_SNAPSHOT_VERSION:
        raise UnsupportedVersionError(f"unknown producer snapshot version {version}", "file-format", position=0)
    computed = crc32c(memoryview(data)[_CRC_START:])
    if crc != computed:
        raise DecodeError(f"stored CRC {crc}, computed {computed}", "file-crc", position=2)
    end = _HEADER.size + count * _ENTRY.size
    fits = _HEADER.size <= end <= len(data) if allow_trailing_bytes else end == len(data)
    if not fits:
        raise DecodeError(f"{len(data)} bytes do not hold {count} producers", "file-format", position=_CRC_START)
    entries = _ENTRY.iter_unpack(memoryview(data)[_HEADER.size : end])
    return tuple([ProducerStateEntry(*fields) for fields in entries])


def write_producer_snapshot(entries: Iterable[ProducerStateEntry]) -> bytes:
    """Return the bytes of a producer snapshot, in the order given, as Kafka writes them.

    Raises:
        ValueError: a number does not fit in its field.
    """
    try:
        packed = [_ENTRY.pack(*attrs.astuple(entry)) for entry in entries]
    except struct.error as error:
        raise ValueError(f"a producer's state does not fit: {error}") from None
    body = _COUNT.pack(len(packed)) + b"".join(packed)
    return struct.pack(">hI", PRODUCER_SNAPSHOT_VERSION, crc32c(body)) + body
