# SPDX-License-Identifier: Apache-2.0
"""Small logs, made for a test."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.compression import CompressionType

TIMESTAMP = 1_700_000_000_000
LOG_NAME = "00000000000000000000.log"


def batch(
    base_offset: int = 0,
    values: Iterable[bytes | None] = (b"v",),
    *,
    key: bytes | None = b"k",
    timestamp: int = TIMESTAMP,
    codec: CompressionType = CompressionType.NONE,
    **options: Any,
) -> bytes:
    """Make a batch of records with these values; each is a millisecond later than the one before."""
    builder = RecordBatchBuilder(base_offset, partition_leader_epoch=1, compression_type=codec, **options)
    for index, value in enumerate(values):
        builder.append(timestamp + index, key, value)
    return builder.build()


def control_batch(base_offset: int, key: bytes | None, value: bytes | None) -> bytes:
    """Make a batch of one control record, with any key and value."""
    return batch(base_offset, (value,), key=key, is_control=True)


def write_log(folder: Path, *parts: bytes | bytearray, name: str = LOG_NAME) -> Path:
    """Write a log's file and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(b"".join(parts))
    return path


def flip(path: Path, position: int) -> None:
    """Change a byte of a file."""
    data = bytearray(path.read_bytes())
    data[position] ^= 0x55
    path.write_bytes(data)
