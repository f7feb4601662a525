# SPDX-License-Identifier: Apache-2.0
"""Compressed batches with a record of any length beside that of the batch as it is stored."""

import struct
import zlib
from typing import Any, Final

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.record import RawRecord, encode_record
from raftlog.records.limits import BATCH_OVERHEAD
from raftlog.records.messages.control import LeaderChangeMessage, Voter, write_control_record
from raftlog.records.messages.metadata import metadata_record, write_metadata_record
from raftlog.records.varint import read_varint
from tests.strategies import batch_bytes

_HAS_NAME: Final = 8
_VALUE: Final = b"\x01\x14\x00\x00"
"""A NoOpRecord."""


def _gzip(data: bytes, name: bytes) -> bytes:
    """Compress bytes as a file of a name, which is as good as padding: readers pass over it."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = deflate.compress(data) + deflate.flush()
    trailer = struct.pack("<II", zlib.crc32(data), len(data))
    return bytes((0x1F, 0x8B, 8, _HAS_NAME, 0, 0, 0, 0, 0, 255)) + name + b"\0" + body + trailer


def _leader_change(size: int) -> tuple[bytes, bytes]:
    return write_control_record(LeaderChangeMessage(1, (Voter(1),) * (size // 5)))


def _config(size: int) -> bytes:
    fields = {"resourceType": 4, "resourceName": "", "name": "x", "value": "x" * size}
    return write_metadata_record(metadata_record("ConfigRecord", fields, version=0))


def batch_with_a_record_longer_by(
    difference: int, *, base_offset: int = 0, epoch: int = 1, before: int = 0, attributes: int = 1, size: int = 3000
) -> bytes:
    """Return a gzip batch whose last record is longer than the stored batch by so many bytes.

    Args:
        difference: may be negative.
        base_offset: of the batch.
        epoch: of the batch.
        attributes: of the batch; with the flag of control batches, the record is a LeaderChange.
        before: number of short records before it.
        size: least size of the record's value in bytes; it compresses well.
    """
    short = [encode_record(RawRecord(0, 0, index, None, _VALUE, ())) for index in range(before)]
    key, value = _leader_change(size) if attributes & 0x20 else (None, _config(size))
    long = encode_record(RawRecord(0, 0, before, key, value, ()))
    area = b"".join([*short, long])
    room = read_varint(long, 0)[0] - difference - BATCH_OVERHEAD - len(_gzip(area, b""))
    fields: dict[str, Any] = {"base_offset": base_offset, "epoch": epoch, "attributes": attributes}
    batch = batch_bytes(_gzip(area, b"n" * room), count=before + 1, last_offset_delta=before, **fields)
    assert read_varint(long, 0)[0] - RecordBatch(batch).size_bytes == difference
    return batch
