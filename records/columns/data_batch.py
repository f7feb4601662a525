# SPDX-License-Identifier: Apache-2.0
"""Checks the records of a data batch that a leader appends to a raft log.

Source: BatchBuilder, RecordsIterator#readRecord.
"""

from typing import Final

from raftlog.errors import CorruptBatchError, InvalidRecordError, fresh_copy
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.compression import CompressionType
from raftlog.records.columns.record_summaries import (
    HAS_HEADERS,
    HAS_TIME_DELTA,
    OFFSETS_GO_BACK,
    OFFSETS_GO_BEYOND,
    OFFSETS_HAVE_GAPS,
    summarize_records,
)
from raftlog.records.kernel_choice import kernel
from raftlog.records.limits import BATCH_OVERHEAD

_CODEC: Final = 7


def check_data_records(batch: RecordBatch) -> None:
    """Check that the records of a batch are as raft writes them; an audit would report any others as damage.

    Args:
        batch: a data batch with a sound header and CRC, and one record per offset.

    Raises:
        CorruptBatchError: a record's offset is not the base offset plus its index.
        InvalidRecordError: a record has headers, or a time of its own, or does not read.
        DecodeError: there are not as many records as the header says, or they do not decompress.
        MissingExtraError: the codec's package is not installed.
    """
    is_compressed = batch.attributes & _CODEC != CompressionType.NONE.value
    buffer = batch.buffer
    if not is_compressed and kernel.are_raft_records(buffer, BATCH_OVERHEAD, len(buffer), batch.record_count):
        return
    found = summarize_records(BatchRun.of(batch), may_be_compressed=is_compressed)
    for _, error in found.errors:
        raise fresh_copy(error)
    if found.all_traits & (OFFSETS_GO_BACK | OFFSETS_GO_BEYOND):
        raise CorruptBatchError("offsets of records do not increase within those of their batch", "record-offset")
    if found.all_traits & OFFSETS_HAVE_GAPS:
        raise CorruptBatchError("records leave out offsets of their batch", "raft-batch")
    if found.all_traits & (HAS_TIME_DELTA | HAS_HEADERS):
        raise InvalidRecordError("a record has a time of its own, or headers", "raft-record")
