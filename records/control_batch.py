# SPDX-License-Identifier: Apache-2.0
"""A batch of control records as a raft log takes it: writing one, and checking one that somebody else wrote.

Source: MemoryRecords#withVotersRecord and its like, BatchAccumulator#appendControlMessages.
"""

from collections.abc import Sequence
from typing import Final

from raftlog.errors import DecodeError, InvalidControlBatchError
from raftlog.records import limits
from raftlog.records.batch import RecordBatch, read_batch
from raftlog.records.builder import MAGIC, RecordBatchBuilder
from raftlog.records.compression import CompressionType
from raftlog.records.control import ControlRecordType, ControlValue, read_control_record, write_control_record

_RAFT_TYPES: Final = frozenset(ControlRecordType) - {ControlRecordType.ABORT, ControlRecordType.COMMIT}


def write_control_batch(
    values: Sequence[ControlValue],
    *,
    base_offset: int,
    epoch: int,
    timestamp: int,
    compression_type: CompressionType = CompressionType.NONE,
) -> bytes:
    """Write control records as one batch, all with one timestamp, in ms.

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
    return builder.build()


def read_control_batch(
    data: bytes, *, base_offset: int, epoch: int, max_size: int = limits.MAX_BATCH_SIZE
) -> RecordBatch:
    """Read bytes that must be exactly one control batch, and one that every raft reader can read.

    Args:
        data: the batch.
        base_offset: what its base offset must be.
        epoch: what its partition leader epoch must be.
        max_size: what its records may decompress to, in bytes.

    Raises:
        InvalidControlBatchError: the bytes are no batch, more than one, or a damaged one; it is no control batch, has
            another base offset or epoch, no records, offsets with gaps or above 2**63 - 1, or a record that a raft
            reader stops at.
        MissingExtraError: the codec's package is not installed.
    """
    try:
        batch, end = read_batch(data)
        problem = _header_problem(batch, base_offset, epoch) or _record_problem(batch, max_size)
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


def _record_problem(batch: RecordBatch, max_size: int) -> str | None:
    for index, record in enumerate(batch.records(max_size=max_size)):
        type_ = read_control_record(record.key, record.value).type
        is_plain = record.offset == batch.base_offset + index and not record.timestamp_delta and not record.headers
        if type_ not in _RAFT_TYPES or not is_plain:
            return f"record {index} of the control batch, of type {type_!r}, is none that a raft log has"
    return None
