# SPDX-License-Identifier: Apache-2.0
"""Iterates over a log from an offset on, batch by batch or record by record.

An iteration ends at the high watermark, or the log end, that the log has when the iteration begins. So it terminates
even if the loop body appends. If the log changes between two batches:

- it grows: the added batches are not yielded;
- it is truncated after the last batch yielded: the dropped batches are not yielded, and those appended in their place
  are, up to the end that the iteration began with;
- batches already yielded are truncated: ``DivergedLogError``, because later records do not follow from those before;
- a snapshot replaces records and the log start moves past the next batch: ``OffsetOutOfRangeError``. A reader continues
  from the snapshot.

Memory is bounded by one read (1 MiB, or one batch that is larger) and, for records, those of one batch.
"""

from collections.abc import Iterator
from typing import Final

from raftlog.errors import DivergedLogError, OffsetOutOfRangeError
from raftlog.log.replicated_log import Isolation, ReplicatedLog
from raftlog.records.batches.batch import RecordBatch, whole_batches
from raftlog.records.batches.record import Record

_READ_SIZE: Final = 1024 * 1024


def iterate_batches(
    log: ReplicatedLog, from_offset: int | None = None, isolation: Isolation = Isolation.COMMITTED
) -> Iterator[RecordBatch]:
    """Yield a log's batches, as ``ReplicatedLog.batches`` does."""
    position = log.start_offset if from_offset is None else from_offset
    end = (log.high_watermark if isolation is Isolation.COMMITTED else log.end_offset).offset
    if not log.start_offset <= position <= log.end_offset.offset:
        raise OffsetOutOfRangeError(f"offset {position} is not in {log.start_offset} to {log.end_offset.offset}")
    given: RecordBatch | None = None
    while position < end:
        if given is not None:
            _check_given(log, given)
        found = log.read(position, isolation, _READ_SIZE).records
        if not found:
            return
        is_new = True
        for batch in whole_batches(found):
            if batch.base_offset >= end:
                return
            if not is_new and not _is_held(log, batch):
                break  # The log has changed since this read: read again.
            yield batch
            is_new, given, position = False, batch, batch.next_offset


def iterate_records(
    log: ReplicatedLog,
    from_offset: int | None = None,
    isolation: Isolation = Isolation.COMMITTED,
    *,
    data_only: bool = True,
) -> Iterator[Record]:
    """Yield a log's records, as ``ReplicatedLog.records`` does."""
    for batch in iterate_batches(log, from_offset, isolation):
        if data_only and batch.is_control:
            continue
        for record in batch.records(check_crc=False):  # The log has checked what it reads.
            if from_offset is None or record.offset >= from_offset:
                yield record


def _is_held(log: ReplicatedLog, batch: RecordBatch) -> bool:
    """Whether a log has a batch. Then it has all before it too: logs that share a batch agree below it."""
    last_offset: int = batch.last_offset
    is_there = log.start_offset <= last_offset < log.end_offset.offset
    return is_there and log.epoch_at_offset(last_offset) == batch.partition_leader_epoch


def _check_given(log: ReplicatedLog, given: RecordBatch) -> None:
    """Raise ``DivergedLogError`` unless the log, or a snapshot in its place, still has the last batch yielded."""
    epoch, end = given.partition_leader_epoch, given.next_offset
    if given.last_offset >= log.start_offset:
        is_same = _is_held(log, given)
    else:
        is_same = all(each.epoch == epoch for each in log.snapshot_ids if each.offset == end)
    if not is_same:
        raise DivergedLogError(f"the log no longer has the records read up to offset {end} of epoch {epoch}")
