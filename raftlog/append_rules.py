# SPDX-License-Identifier: Apache-2.0
"""Which batches a replicated log takes, from its own leader and from another.

Every append passes here, and a leader waits for the disk behind each: what is cold after such a wait costs several
times as much as it does in a loop. So there are few calls and few objects on the way of a sound batch.

Source: KafkaRaftLog, UnifiedLog.
"""

from typing import Final, NamedTuple

from raftlog.errors import (
    BatchTooLargeError,
    CorruptBatchError,
    DecodeError,
    InvalidRecordError,
    NonContiguousAppendError,
    TruncatedBatchError,
)
from raftlog.records.batch import CONTROL_FLAG, RecordBatch, read_batch
from raftlog.records.builder import MAGIC
from raftlog.records.control_batch import control_batch_problem
from raftlog.records.limits import MAX_BATCH_SIZE
from raftlog.replicated_log import LogAppendInfo

_MAX_END_OFFSET: Final = (1 << 63) - 1
_MAX_SPAN: Final = 1 << 31
"""How many offsets an append may have: an index says in 32 bits how far above the start of its segment one is."""
_MAX_APPEND_SIZE: Final = (1 << 31) - 1
"""How many bytes it may have: an index says positions in 32 bits."""


class CheckedAppend(NamedTuple):
    """Batches that may be written as they are.

    Attributes:
        data: the bytes that were checked.
        batches: one at least: views of the bytes, end to end from their start.
        next_offset: the offset after all of them.
    """

    data: memoryview
    batches: list[RecordBatch]
    next_offset: int

    @property
    def size_bytes(self) -> int:
        """Of all of them."""
        return len(self.data)

    @property
    def info(self) -> LogAppendInfo:
        """What the append adds to the log."""
        return LogAppendInfo(self.batches[0].base_offset, self.next_offset - 1)


def check_append_as_leader(
    data: bytes | memoryview, epoch: int, end_offset: int, last_fetched_epoch: int = 0
) -> CheckedAppend:
    """Check what a leader is about to append.

    Args:
        data: whole batches.
        epoch: that every batch must carry.
        end_offset: of the log, exclusive: the base offset that the first batch must have.
        last_fetched_epoch: of the log, below which it does not go.

    Raises:
        NonContiguousAppendError: a batch's base offset is not the offset after the batch before it, or there are more
            than 2^31 offsets.
        InvalidRecordError: a batch of another epoch, an epoch below the log's, a control batch that a state machine
            cannot follow, or no batch at all.
        BatchTooLargeError: a batch of more than 8 MiB, or 2 GiB in all.
        CorruptBatchError, TruncatedBatchError: a batch does not check, or has not a record for each of its offsets.

    Source: KafkaRaftLog#appendAsLeader, UnifiedLog#analyzeAndValidateRecords. Differs: DECISIONS.md 14.
    """
    view, batches, position = memoryview(data), [], 0
    _check_size(view)
    while position < len(view):
        batch, position = read_batch(view, position)
        if batch.partition_leader_epoch != epoch:
            raise _invalid(batch, f"epoch {batch.partition_leader_epoch} in an append of epoch {epoch}")
        if len(batch.buffer) > MAX_BATCH_SIZE:
            raise BatchTooLargeError(f"a batch of {batch.size_bytes} bytes, {MAX_BATCH_SIZE} are the most")
        end_offset = _checked_end(batch, end_offset, last_fetched_epoch)
        batches.append(batch)
    if not batches:
        raise InvalidRecordError("an append without a batch")
    return _checked(view, batches, end_offset)


def check_append_as_follower(
    data: bytes | memoryview, epoch: int, end_offset: int, last_fetched_epoch: int
) -> CheckedAppend | None:
    """Check what a leader has sent, and leave out what a follower does not take.

    Args:
        data: batches, the last one perhaps cut off; it is left out then.
        epoch: the leader's. The first batch of a higher one is left out, with all that is behind it.
        end_offset: of the log, exclusive: the base offset that the first batch must have.
        last_fetched_epoch: of the log, below which it does not go.

    Returns:
        What is to be written, or None where nothing is left.

    Raises:
        NonContiguousAppendError: a batch's base offset is not the offset after the batch before it, or there are more
            than 2^31 offsets.
        InvalidRecordError: a batch's epoch is below that of the batch before it, or a state machine cannot follow a
            control batch.
        BatchTooLargeError: 2 GiB in all.
        CorruptBatchError: a batch does not check, or has not a record for each of its offsets.

    Source: KafkaRaftLog#appendAsFollower, UnifiedLog#analyzeAndValidateRecords. Differs: DECISIONS.md 14.
    """
    view, batches, taken = memoryview(data), [], 0
    _check_size(view)
    while taken < len(view):
        try:
            batch, end = read_batch(view, taken)
        except TruncatedBatchError:
            break  # A leader cuts what it sends at a number of bytes.
        if batch.partition_leader_epoch > epoch:
            break
        end_offset = _checked_end(batch, end_offset, last_fetched_epoch)
        last_fetched_epoch, taken = batch.partition_leader_epoch, end
        batches.append(batch)
    return _checked(view[:taken], batches, end_offset) if batches else None


def _check_size(data: memoryview) -> None:
    if len(data) > _MAX_APPEND_SIZE:
        raise BatchTooLargeError(f"an append of {len(data)} bytes, {_MAX_APPEND_SIZE} are the most")


def _checked_end(batch: RecordBatch, end_offset: int, last_epoch: int) -> int:
    """Check a batch that shall follow an offset and an epoch, and return the offset after it."""
    next_offset: int = batch.base_offset + batch.last_offset_delta + 1
    if batch.magic != MAGIC:
        raise _placed(CorruptBatchError(f"magic {batch.magic}", "batch-magic"), batch)
    if batch.base_offset != end_offset or not end_offset < next_offset <= _MAX_END_OFFSET:
        reason = f"offsets {batch.base_offset} to {next_offset - 1} after a log end of {end_offset}"
        raise NonContiguousAppendError(reason)
    if batch.partition_leader_epoch < last_epoch:
        raise _invalid(batch, f"epoch {batch.partition_leader_epoch} after epoch {last_epoch}")
    batch.ensure_valid()
    if batch.record_count != batch.last_offset_delta + 1:
        reason = f"{batch.record_count} records for {batch.last_offset_delta + 1} offsets"
        raise _placed(CorruptBatchError(reason, "raft-batch"), batch)
    if batch.attributes & CONTROL_FLAG and (problem := control_batch_problem(batch, knows_levels=True)) is not None:
        raise _invalid(batch, problem)
    return next_offset


def _invalid(batch: RecordBatch, reason: str) -> DecodeError:
    return _placed(InvalidRecordError(reason), batch)


def _placed(error: DecodeError, batch: RecordBatch) -> DecodeError:
    return error.located(position=batch.position, base_offset=batch.base_offset)


def _checked(data: memoryview, batches: list[RecordBatch], next_offset: int) -> CheckedAppend:
    first_offset = batches[0].base_offset
    if next_offset - first_offset > _MAX_SPAN:
        raise NonContiguousAppendError(f"offsets {first_offset} to {next_offset - 1} in one append")
    return CheckedAppend(data, batches, next_offset)
