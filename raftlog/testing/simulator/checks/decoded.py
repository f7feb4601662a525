# SPDX-License-Identifier: Apache-2.0
"""What batches say, decoded once: the same bytes are read for each replica, and by several checks."""

import functools

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.messages.control import KRaftVersionRecord, VotersRecord, read_control_record
from raftlog.voters.voter_set import ReplicaKey


def values_in(batch: RecordBatch) -> tuple[tuple[int, bytes], ...]:
    """Return the values of the records of a data batch, with their offsets."""
    return _values_in(bytes(batch.buffer))


@functools.lru_cache(maxsize=4096)
def _values_in(data: bytes) -> tuple[tuple[int, bytes], ...]:
    records = RecordBatch(memoryview(data)).records(check_crc=False)
    return tuple((each.offset, bytes(each.value or b"")) for each in records)


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
