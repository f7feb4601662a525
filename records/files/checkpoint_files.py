# SPDX-License-Identifier: Apache-2.0
r"""Checkpoints: small text files with a version, a count, and one entry per line.

::

    0\n             version
    2\n             count
    3 24\n          leader-epoch-checkpoint: epoch, start offset
    5 48\n

    orders 0 42\n   the offset checkpoints of a log directory: topic, partition, offset

An empty file has no entries, and neither has one that ends after the version. All line endings that Java accepts are
accepted; Kafka writes ``\n``.

Source: CheckpointFile, LeaderEpochCheckpointFile, OffsetCheckpointFile.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

import attrs

from raftlog.errors import DecodeError, UnsupportedVersionError
from raftlog.offsets import EpochEntry

CHECKPOINT_VERSION: Final = 0
"""The only version of every checkpoint."""

_NUMBER = re.compile(rb"-?[0-9]{1,19}")

Entry = TypeVar("Entry")


@attrs.frozen
class PartitionOffset:
    """One line of an offset checkpoint.

    What the offset is depends on the file: the recovery point (exclusive), the log start (inclusive) or the high
    watermark (exclusive) of the partition.
    """

    topic: str
    partition: int
    offset: int


def read_leader_epoch_checkpoint(data: bytes) -> tuple[EpochEntry, ...]:
    """Read ``leader-epoch-checkpoint``, in the order of the file; whether epochs increase is not checked.

    Raises:
        DecodeError: the file is malformed, or an epoch or offset is negative.
        UnsupportedVersionError: the version is not 0.
    """
    return _read(data, _epoch_entry)


def write_leader_epoch_checkpoint(entries: Iterable[EpochEntry]) -> bytes:
    """Return the bytes of ``leader-epoch-checkpoint`` as Kafka writes them."""
    return _write(f"{entry.epoch} {entry.start_offset}" for entry in entries)


def read_offset_checkpoint(data: bytes) -> tuple[PartitionOffset, ...]:
    """Read the recovery point, log start or replication offset checkpoint, in the order of the file.

    If a partition has two lines, Kafka uses the later one; here both are returned.

    Raises:
        DecodeError: the file is malformed.
        UnsupportedVersionError: the version is not 0.
    """
    return _read(data, _partition_offset)


def write_offset_checkpoint(entries: Iterable[PartitionOffset]) -> bytes:
    """Return the bytes of an offset checkpoint, in the order given (Kafka's own order is that of a hash table).

    Raises:
        ValueError: a topic is empty or contains white space.
    """
    return _write(f"{_one_word(entry.topic)} {entry.partition} {entry.offset}" for entry in entries)


def _read(data: bytes, entry_of: Callable[[list[bytes]], Entry]) -> tuple[Entry, ...]:
    lines = _lines(data)
    if lines:
        version = _line_value(*lines[0], _one_number)
        if version != CHECKPOINT_VERSION:
            raise UnsupportedVersionError(f"unknown checkpoint version {version}", "file-format", position=0)
    if len(lines) < 2:
        return ()
    count = _line_value(*lines[1], _one_number)
    entries = tuple([_line_value(position, line, entry_of) for position, line in lines[2:]])
    if len(entries) != count:
        raise DecodeError(f"{len(entries)} entries, not {count}", "file-format", position=lines[1][0])
    return entries


def _lines(data: bytes) -> list[tuple[int, bytes]]:
    lines = []
    position = 0
    for line in data.splitlines(keepends=True):
        lines.append((position, line))
        position += len(line)
    return lines


def _line_value(position: int, line: bytes, parse: Callable[[list[bytes]], Entry]) -> Entry:
    try:
        return parse(re.split(rb"\s+", line.rstrip()))
    except ValueError as error:
        raise DecodeError(f"a malformed line ({error}): {line[:80]!r}", "file-format", position=position) from None


def _write(lines: Iterable[str]) -> bytes:
    entries = list(lines)
    return "".join(f"{line}\n" for line in (str(CHECKPOINT_VERSION), str(len(entries)), *entries)).encode()


def _one_word(topic: str) -> str:
    if len(topic.split()) != 1 or topic != topic.strip():
        raise ValueError(f"not a topic: {topic!r}")
    return topic


def _one_number(words: list[bytes]) -> int:
    (word,) = words
    return _number(word, -(1 << 31), 31)


def _epoch_entry(words: list[bytes]) -> EpochEntry:
    epoch, start_offset = words
    return EpochEntry(_number(epoch, 0, 31), _number(start_offset, 0, 63))


def _partition_offset(words: list[bytes]) -> PartitionOffset:
    topic, partition, offset = words
    return PartitionOffset(_one_word(topic.decode()), _number(partition, 0, 31), _number(offset, -(1 << 63), 63))


def _number(word: bytes, minimum: int, bits: int) -> int:
    if not _NUMBER.fullmatch(word):
        raise ValueError("not a number")
    value = int(word)
    if not minimum <= value < 1 << bits:
        raise ValueError("a number is out of range")
    return value
