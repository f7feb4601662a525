# SPDX-License-Identifier: Apache-2.0
"""What batches say, decoded once: the same bytes are read for each replica, and by several checks."""

import functools
import struct
from typing import Final

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.messages.control import KRaftVersionRecord, VotersRecord, read_control_record
from raftlog.voters.voter_set import ReplicaKey

_VALUE: Final = struct.Struct(">Q")


def value_of(number: int) -> bytes:
    """Return the record value that stands for a number."""
    return _VALUE.pack(number)


def numbers_in(batch: RecordBatch) -> tuple[tuple[int, int], ...]:
    """Return the numbers that the records of a data batch stand for, with their offsets."""
    return _numbers_in(bytes(batch.buffer))


@functools.lru_cache(maxsize=4096)
def _numbers_in(data: bytes) -> tuple[tuple[int, int], ...]:
    records = RecordBatch(memoryview(data)).records(check_crc=False)
    return tuple((each.offset, _VALUE.unpack(each.value or b"")[0]) for each in records)


def put_in_force(batch: RecordBatch) -> tuple[tuple[int, int | frozenset[ReplicaKey]], ...]:
    """Return what the records of a control batch put in force, with offsets: levels of kraft.version, and voters."""
    return _put_in_force(bytes(batch.buffer))


@functools.lru_cache(maxsize=1024)
def _put_in_force(data: bytes) -> tuple[tuple[int, int | frozenset[ReplicaKey]], ...]:
    found: list[tuple[int, int | frozenset[ReplicaKey]]] = []
    for record in RecordBatch(memoryview(data)).records(check_crc=False):
        value = read_control_record(record.key, record.value).value
        if isinstance(value, KRaftVersionRecord):
            found.append((record.offset, value.kraft_version))
        elif isinstance(value, VotersRecord):
            found.append((record.offset, frozenset(ReplicaKey(each.id, each.directory_id) for each in value.voters)))
    return tuple(found)
