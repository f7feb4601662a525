# SPDX-License-Identifier: Apache-2.0
"""Checks which batches a replicated log accepts, from its own replica as leader and from another leader.

Every append passes here, usually after a leader has waited for an fsync. Caches are cold after an fsync, so each call
here costs several times what a microbenchmark shows. That is why sound batches take few calls and create few objects.

Source: KafkaRaftLog, UnifiedLog.
"""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from raftlog.errors import (
    BatchTooLargeError,
    CorruptBatchError,
    DecodeError,
    InvalidRecordError,
    NonContiguousAppendError,
    RaftLogError,
)
from raftlog.log.replicated_log import LogAppendInfo
from raftlog.offsets import EpochEntry
from raftlog.records.batches.batch import CONTROL_FLAG, CRC_START, NO_TIMESTAMP, RecordBatch, read_batch, whole_batches
from raftlog.records.batches.builder import MAGIC
from raftlog.records.batches.control_batch import check_leaders_control_batch, control_batch_problem
from raftlog.records.batches.raft_frames import length_problem
from raftlog.records.checksum import crc32c_function
from raftlog.records.columns.data_batch import check_data_records
from raftlog.records.kernel_choice import kernel
from raftlog.records.limits import BATCH_OVERHEAD, LOG_OVERHEAD, MAX_BATCH_SIZE
from raftlog.voters.voter_set import VoterSet

_MAX_END_OFFSET: Final = (1 << 63) - 1
_CODEC: Final = 7
"""The bits of a batch's attributes that hold its compression type."""
_MAX_SPAN: Final = 1 << 31
"""How many offsets an append may have: an index stores an offset as 32 bits, relative to its segment's base offset."""
_MAX_APPEND_SIZE: Final = (1 << 31) - 1
"""How many bytes an append may have: an index stores positions as 32 bits."""


_read_header: Final = struct.Struct(">qiibIhi8xq14xi").unpack_from
"""Reads a batch's header, except what a log ignores: base timestamp, producer id and epoch, base sequence."""


class CheckedBatch(NamedTuple):
    """The fields of an accepted batch that a log keeps track of.

    Attributes:
        base_offset: of its first record.
        epoch: of the leader that wrote it.
        last_offset: of its last record, inclusive.
        max_timestamp: in ms, or -1.
        size_bytes: header included.
    """

    base_offset: int
    epoch: int
    last_offset: int
    max_timestamp: int
    size_bytes: int


class CheckedAppend(NamedTuple):
    """Batches that may be written as they are.

    Attributes:
        data: the bytes that were checked.
        batches: at least one; they are contiguous from the start of the bytes.
        next_offset: the offset after the last batch.
        max_timestamp: the greatest of the batches, or -1.
        info: what the append adds to the log.
    """

    data: bytes | memoryview
    batches: list[CheckedBatch]
    next_offset: int
    max_timestamp: int
    info: LogAppendInfo

    @property
    def epochs(self) -> Iterator[EpochEntry]:
        """The epoch and the base offset of each batch."""
        return (EpochEntry(epoch, base_offset) for base_offset, epoch, *_ in self.batches)


PlainAppend = tuple[list[CheckedBatch], int, int, LogAppendInfo]
"""A ``CheckedAppend`` without the data. It is unpacked at once, so it is a plain tuple, which is faster to build."""


def check_append(  # noqa: C901 - one function for all checks: each call would slow appends measurably
    data: bytes | memoryview, epoch: int | None, end_offset: int, last_fetched_epoch: int = 0
) -> CheckedAppend:
    """Check batches that a leader, or a follower, is about to append.

    A leader's batches must pass the audit; a follower's must be readable by raft's readers (DECISIONS.md 40).

    Args:
        data: whole batches.
        epoch: of the leader, which all of its batches must carry; None as a follower.
        end_offset: of the log, exclusive: the base offset that the first batch must have.
        last_fetched_epoch: of the log: no batch may have a lower epoch.

    Raises:
        NonContiguousAppendError: a batch's base offset is not the offset after the batch before it, or there are more
            than 2^31 offsets.
        InvalidRecordError: a batch of another epoch than the leader's, or of one below that of the batch before it; a
            control batch that a state machine cannot follow; no batch; or a leader's record that raft does not write.
        VoterSetError: a leader's VotersRecord must not follow another one of the same append.
        BatchTooLargeError: a leader's batch of more than 8 MiB, or 2 GiB in total.
        DecodeError, MissingExtraError: a batch is corrupt, cannot be decompressed, or lacks a record for an offset.

    Source: KafkaRaftLog#appendAsLeader, UnifiedLog#analyzeAndValidateRecords. Differs: DECISIONS.md 14, 40.
    """
    view, batches, position, newest, voters = memoryview(data), [], 0, NO_TIMESTAMP, VoterSet()
    first_offset, size_bytes = end_offset, len(view)
    if not 0 < size_bytes <= _MAX_APPEND_SIZE:
        raise _wrong_size(size_bytes)
    while position < size_bytes:
        if size_bytes - position < BATCH_OVERHEAD:
            read_batch(view, position)  # It raises the error that describes the problem.
        base_offset, length, batch_epoch, magic, crc, attributes, delta, timestamp, count = _read_header(view, position)
        size, next_offset = length + LOG_OVERHEAD, base_offset + delta + 1
        if not BATCH_OVERHEAD <= size <= size_bytes - position:
            read_batch(view, position)  # Likewise.
        if epoch is not None and batch_epoch != epoch:
            raise _invalid(f"epoch {batch_epoch} in an append of epoch {epoch}", position, base_offset)
        if epoch is not None and size > MAX_BATCH_SIZE:
            raise BatchTooLargeError(f"a batch of {size} bytes, above the maximum of {MAX_BATCH_SIZE}")
        if magic != MAGIC:
            raise _corrupt(f"magic {magic}", "batch-magic", position, base_offset)
        if base_offset != end_offset or not end_offset < next_offset <= _MAX_END_OFFSET:
            reason = f"offsets {base_offset} to {next_offset - 1} after a log end of {end_offset}"
            raise NonContiguousAppendError(reason)
        if batch_epoch < last_fetched_epoch:
            raise _invalid(f"epoch {batch_epoch} after epoch {last_fetched_epoch}", position, base_offset)
        found = crc32c_function()(view[position + CRC_START : position + size])
        if found != crc:
            raise _corrupt(f"the stored CRC is {crc}, that of the bytes {found}", "batch-crc", position, base_offset)
        if count != delta + 1:
            raise _corrupt(f"{count} records for {delta + 1} offsets", "raft-batch", position, base_offset)
        if attributes & CONTROL_FLAG:
            _check_control_batch(view, position)
        voters = voters if epoch is None else _check_leaders_batch(view, position, size, voters)
        batches.append(CheckedBatch(base_offset, batch_epoch, next_offset - 1, timestamp, size))
        end_offset, last_fetched_epoch, position = next_offset, batch_epoch, position + size
        newest = max(newest, timestamp)
    if end_offset - first_offset > _MAX_SPAN:
        raise NonContiguousAppendError(f"offsets {first_offset} to {end_offset - 1} in one append")
    return CheckedAppend(view, batches, end_offset, newest, LogAppendInfo(first_offset, end_offset - 1))


def check_plain_append(data: bytes | memoryview, epoch: int, end_offset: int) -> PlainAppend | None:
    """Check a leader's usual append in one kernel call: plain data batches of the epoch that its log is in already.

    Args:
        data: as for ``check_append``.
        epoch: the leader's, and the last one in the log.
        end_offset: as for ``check_append``.

    Returns:
        What ``check_append`` would return. None if ``check_append`` must be called, because something is wrong or
        special: for example, a batch is compressed, or a varint is longer than necessary.
    """
    return kernel.plain_append(data, epoch, end_offset, MAX_BATCH_SIZE, CheckedBatch, LogAppendInfo)


def check_append_as_follower(
    data: bytes | memoryview, epoch: int, end_offset: int, last_fetched_epoch: int
) -> CheckedAppend | None:
    """Check what a leader has sent, and drop a truncated tail and batches of later epochs.

    A leader serves offset 0 without comparing epochs. If a log that ends there has entered an epoch, it has no record
    of it, and that epoch gives way to those of the records, which may be earlier.

    Args:
        data: batches; the last one may be cut off, and is dropped then.
        epoch: the leader's. The first batch of a higher epoch is dropped, with all batches after it.
        end_offset: as for ``check_append``.
        last_fetched_epoch: as for ``check_append``, but in a log that ends at 0.

    Returns:
        What is to be written, or None if nothing is left.

    Raises:
        NonContiguousAppendError, InvalidRecordError, BatchTooLargeError, CorruptBatchError, MissingExtraError: as for
            ``check_append``.

    Source: KafkaRaftLog#appendAsFollower, UnifiedLog#analyzeAndValidateRecords. Differs: DECISIONS.md 14.
    """
    view, taken = memoryview(data), 0
    if len(view) > _MAX_APPEND_SIZE:
        raise _wrong_size(len(view))
    for batch in whole_batches(view):  # A leader cuts its response at a limit in bytes, perhaps within a batch.
        if batch.partition_leader_epoch > epoch:
            break
        taken += batch.size_bytes
    least_epoch = last_fetched_epoch if end_offset else 0
    return check_append(view[:taken], None, end_offset, least_epoch) if taken else None


def _check_control_batch(view: memoryview, position: int) -> None:
    batch, _ = read_batch(view, position)
    problem = control_batch_problem(batch, knows_levels=True)
    if problem is not None:
        raise _invalid(problem, position, batch.base_offset)


def _check_leaders_batch(view: memoryview, position: int, size: int, voters: VoterSet) -> VoterSet:
    """Check the records of a batch whose header is sound; return the voter set known to be in force after it."""
    batch = RecordBatch(view[position : position + size], position, crc_is_checked=True)
    try:
        if batch.is_control:
            voters = check_leaders_control_batch(batch, voters)
        else:
            check_data_records(batch)
        problem = length_problem(batch) if batch.attributes & _CODEC else None
    except DecodeError as error:
        raise error.located(position=position, base_offset=batch.base_offset) from None
    if problem is not None:
        raise _invalid(problem, position, batch.base_offset)
    return voters


def _wrong_size(size_bytes: int) -> RaftLogError:
    if size_bytes == 0:
        return InvalidRecordError("an append without a batch")
    return BatchTooLargeError(f"an append of {size_bytes} bytes, above the maximum of {_MAX_APPEND_SIZE}")


def _invalid(reason: str, position: int, base_offset: int) -> DecodeError:
    return InvalidRecordError(reason, position=position, base_offset=base_offset)


def _corrupt(reason: str, rule: str, position: int, base_offset: int) -> DecodeError:
    return CorruptBatchError(reason, rule, position=position, base_offset=base_offset)
