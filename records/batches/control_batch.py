# SPDX-License-Identifier: Apache-2.0
"""Writes batches of control records for a raft log, and checks those that another writer made.

A log refuses a control batch that its state machine cannot apply.

Source: MemoryRecords#withVotersRecord and its like, BatchAccumulator#appendControlMessages.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import Final

from raftlog.errors import DecodeError, InvalidControlBatchError, InvalidRecordError, MissingExtraError
from raftlog.records import limits
from raftlog.records.batches.batch import RecordBatch, read_batch
from raftlog.records.batches.builder import MAGIC, RecordBatchBuilder
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.raft_frames import length_problem, too_long_for_raft
from raftlog.records.batches.record import Record
from raftlog.records.messages.control import (
    ControlRecordType,
    ControlValue,
    KRaftVersionRecord,
    VotersRecord,
    read_control_record,
    write_control_record,
)
from raftlog.records.messages.voters import voter_set, voters_problem
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import VoterSet
from raftlog.voters.voter_set_change import check_voter_set_change

_RAFT_TYPES: Final = frozenset(ControlRecordType) - {ControlRecordType.ABORT, ControlRecordType.COMMIT}
_OUT_OF_PLACE: Final = frozenset(ControlRecordType) - {
    ControlRecordType.LEADER_CHANGE,
    ControlRecordType.KRAFT_VERSION,
    ControlRecordType.KRAFT_VOTERS,
}
_REMEMBERED_SIZE_BYTES: Final = 1024
"""Records up to this size are cached once read: enough for a few voters."""


def write_control_batch(
    values: Sequence[ControlValue],
    *,
    base_offset: int,
    epoch: int,
    timestamp: int,
    compression_type: CompressionType = CompressionType.NONE,
) -> bytes:
    """Write control records as one batch, all with one timestamp, in ms.

    It is stored uncompressed if Kafka's raft readers could not read it compressed (``raft_frames``).

    Raises:
        UnsupportedVersionError: a voter of a LeaderChangeMessage has a directory id.
        InvalidRecordError: a field of a record does not fit its type.
        ValueError: there are no records, or a number does not fit its field of the batch.
        MissingExtraError: the codec's package is not installed.
    """
    builder = RecordBatchBuilder(
        base_offset, partition_leader_epoch=epoch, compression_type=compression_type, is_control=True
    )
    builder.extend([(timestamp, *write_control_record(value)) for value in values])
    data = builder.build()
    if too_long_for_raft(RecordBatch(data), limits.MAX_STORED_BATCH_SIZE) is not None:
        builder.compression_type = CompressionType.NONE
        data = builder.build()
    return data


def read_control_batch(data: bytes, *, base_offset: int, epoch: int) -> RecordBatch:
    """Read bytes that must be exactly one control batch, and one that every raft reader can read.

    Args:
        data: the batch.
        base_offset: what its base offset must be.
        epoch: what its partition leader epoch must be.

    Raises:
        InvalidControlBatchError: the bytes are not exactly one sound batch; or the batch is not a control batch, has
            the wrong base offset or epoch, has no records, has records that decompress to more than a log's readers
            accept (``limits.MAX_BATCH_SIZE``), has offsets with gaps or above 2**63 - 1, or has a record that raft
            readers refuse.
        MissingExtraError: the codec's package is not installed.
    """
    try:
        batch, end = read_batch(data)
        problem = _header_problem(batch, base_offset, epoch) or _record_problem(batch)
    except DecodeError as error:
        raise InvalidControlBatchError(f"not a batch that can be read: {error}") from error
    if end < len(data):
        problem = f"{len(data) - end} bytes follow the control batch"
    if problem:
        raise InvalidControlBatchError(problem)
    return batch


def _header_problem(batch: RecordBatch, base_offset: int, epoch: int) -> str | None:
    if batch.record_count < 1:
        return "the control batch has no records"
    fields = {
        "magic": (batch.magic, MAGIC),
        "control flag": (batch.is_control, True),
        "base offset": (batch.base_offset, base_offset),
        "epoch": (batch.partition_leader_epoch, epoch),
        "last offset delta": (batch.last_offset_delta, batch.record_count - 1),
    }
    for field, (actual, wanted) in fields.items():
        if actual != wanted:
            return f"the {field} of the control batch is {actual}, not {wanted}"
    return None


def _record_problem(batch: RecordBatch) -> str | None:
    for index, record in enumerate(batch.records(max_size=limits.MAX_BATCH_SIZE)):
        found = read_control_record(record.key, record.value)
        if found.type not in _RAFT_TYPES or not _is_bare(record, batch.base_offset + index):
            return f"record {index} of the control batch, of type {found.type!r}, does not belong in a raft log"
        if isinstance(found.value, VotersRecord) and found.value.voters and (problem := voters_problem(found.value)):
            return f"record {index} of the control batch: {problem}"
    return length_problem(batch, limits.MAX_BATCH_SIZE)


def named_voters(batch: RecordBatch) -> Iterator[VoterSet]:
    """Yield the voter sets that the VotersRecords of a control batch name, in order.

    Raises:
        DecodeError, MissingExtraError: as ``RecordBatch.records`` and ``control_batch_problem``.
    """
    for record in batch.records(max_size=limits.MAX_BATCH_SIZE):
        value = _read(record.key, record.value)
        if isinstance(value, VotersRecord):
            yield voter_set(value)


def check_is_bare(record: Record) -> None:
    """Check that a control record has neither headers nor a time of its own, both of which raft readers refuse.

    The offset is not checked, since raft readers count records instead.

    Raises:
        InvalidRecordError: it has headers or a time of its own.

    Source: RecordsIterator#readRecord.
    """
    if record.timestamp_delta != 0 or record.headers:
        raise InvalidRecordError("a control record has headers, or a time of its own", "raft-batch")


def _is_bare(record: Record, offset: int) -> bool:
    return record.offset == offset and record.timestamp_delta == 0 and not record.headers


def control_batch_problem(batch: RecordBatch, *, knows_levels: bool = False) -> str | None:
    """Describe in one clause what is wrong with the records of a control batch; None if nothing is.

    The CRC is not checked. A control record of an unknown type counts as sound, since a newer Kafka may have written
    it. So does a batch in an existing log whose codec's package is not installed, since it cannot be read.

    Args:
        batch: the batch.
        knows_levels: whether an unknown level of kraft.version is a problem too. Pass True before an append; in an
            existing log it comes from a newer version, and is not damage.

    Raises:
        MissingExtraError: before an append, the codec's package is not installed: no state machine could follow.
    """
    try:
        records = batch.records(check_crc=False, max_size=limits.MAX_BATCH_SIZE)
        for record in records:
            check_is_bare(record)
            value = _read(record.key, record.value)
            if knows_levels and isinstance(value, KRaftVersionRecord):
                KRaftVersion.from_level(value.kraft_version)
    except DecodeError as error:
        return f"a control batch that does not read: {error.reason}"
    except MissingExtraError:
        if knows_levels:
            raise
        return None
    return None


def check_leaders_control_batch(batch: RecordBatch, voters: VoterSet) -> VoterSet:
    """Check that a control batch, sound for readers, has nothing that a leader must not write.

    Args:
        batch: one for which ``control_batch_problem`` returns None.
        voters: the last voter set known to be in force before it; empty if none is known.

    Returns:
        The last voter set known to be in force after it.

    Raises:
        InvalidRecordError: a record's offset is not the base offset plus its index; or the record marks a snapshot or a
            transaction; or it names a voter, directory or listener twice.
        EmptyVoterSetError, NoOverlappingMajorityError, TooManyVoterChangesError: as for ``check_voter_set_change``.
        MissingExtraError: the codec's package is not installed, so the batch cannot be checked.
    """
    for offset, record in enumerate(batch.records(check_crc=False, max_size=limits.MAX_BATCH_SIZE), batch.base_offset):
        if record.offset != offset:
            raise InvalidRecordError(f"a control record of offset {record.offset} at {offset}", "raft-batch")
        found = read_control_record(record.key, record.value)
        if found.type in _OUT_OF_PLACE:
            raise InvalidRecordError(f"a record of type {found.type!r} in a log of raft", "control-place")
        if isinstance(found.value, VotersRecord):
            if found.value.voters and (problem := voters_problem(found.value)):
                raise InvalidRecordError(problem, "voters-schema")
            named = voter_set(found.value)
            check_voter_set_change(voters, named)
            voters = named
    return voters


def _read(key: bytes | None, value: bytes | None) -> ControlValue | None:
    if len(key or b"") + len(value or b"") <= _REMEMBERED_SIZE_BYTES:
        return _read_once(key, value)
    return _read_uncached(key, value)


def _read_uncached(key: bytes | None, value: bytes | None) -> ControlValue | None:
    found = read_control_record(key, value).value
    if isinstance(found, VotersRecord):
        voter_set(found)  # Raises an error if the record does not make a valid voter set.
    return found


@functools.lru_cache(maxsize=1024)
def _read_once(key: bytes | None, value: bytes | None) -> ControlValue | None:
    """Read a record and cache the result: the same record often recurs in every epoch."""
    return _read_uncached(key, value)
