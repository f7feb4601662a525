# SPDX-License-Identifier: Apache-2.0
"""Resolves the start and end options of a query to offsets, per partition."""

from collections.abc import Iterable, Sequence
from typing import Final

from raftlog.errors import DecodeError, MissingExtraError, OptionError
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.iterator import split_runs
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.records.columns.columns import BatchColumns
from raftlog.storage.reading.file_source import open_source
from raftlog.storage.reading.index_seek import IndexSeek
from raftlog.tools.auditing.batches.batch_table import BatchTable
from raftlog.tools.auditing.evidence import SurveyTask
from raftlog.tools.spark.rows.options import EARLIEST, LATEST, OffsetBound, SourceOptions, TopicPartition
from raftlog.tools.spark.source.data_loss import DataLoss

AFTER_ALL: Final = (1 << 63) - 1
"""The first offset if no record is as new as the starting timestamp, and the options make that no error."""


def offset_range(
    options: SourceOptions,
    partition: TopicPartition,
    segments: Sequence[SurveyTask],
    loss: DataLoss,
    log_start: int | None = None,
) -> tuple[int | None, int | None]:
    """Return the first offset (inclusive) and the end (exclusive) to read of a partition; None for no bound.

    Args:
        options: of the source.
        partition: the partition.
        segments: of its log, by offset.
        loss: is told if the start is before the log.
        log_start: the first offset to read, if records before it are in the segments; else None.

    Raises:
        OptionError: the start is before the log, and a loss is an error; or no record is as new as a starting
            timestamp, and the options make that an error; or a bound names the wrong end of the log.
        StorageError: a segment cannot be read.
    """
    first = _resolved(options.starting, partition, segments, log_start)
    if options.starting.is_time and options.starting.of(partition) is not None and first is None:
        if options.fails_without_match:
            raise OptionError(options.starting.option, f"{_name(partition)} has no record of that time or later")
        first = AFTER_ALL
    if first == LATEST:
        raise OptionError(options.starting.option, "a query cannot start at latest")
    end = _resolved(options.ending, partition, segments, log_start)
    if end == EARLIEST:
        raise OptionError(options.ending.option, "a query cannot end at earliest")
    first = None if first in {None, EARLIEST} else first
    start = log_start if log_start is not None else segments[0].base_offset if segments else None
    if first is not None and start is not None and first < start:
        loss.report(options.starting.option, f"{_name(partition)} starts at {start}, so that {first} is missing")
    if log_start is not None:
        first = log_start if first is None else max(first, log_start)
    return first, None if end == LATEST else end


def offset_since(segments: Sequence[SurveyTask], timestamp: int, log_start: int | None = None) -> int | None:
    """Return the offset of the first record with a timestamp (ms) at or after a given one; None if there is none.

    Args:
        segments: of a log, by offset.
        timestamp: the least timestamp.
        log_start: the least offset of the record, or None.

    Raises:
        StorageError: a segment cannot be read.
    """
    for segment in segments:
        found = _offset_since(segment, timestamp, -1 if log_start is None else log_start)
        if found is not None:
            return found
    return None


def _resolved(
    bound: OffsetBound, partition: TopicPartition, segments: Sequence[SurveyTask], log_start: int | None
) -> int | None:
    number = bound.of(partition)
    return offset_since(segments, number, log_start) if bound.is_time and number is not None else number


def _offset_since(segment: SurveyTask, timestamp: int, log_start: int) -> int | None:
    seek = IndexSeek(segment.path, segment.base_offset)
    with open_source(segment.path) as source:
        start = seek.position_before(source, seek.offset_before(source, timestamp))
        for piece in split_runs(source, start=start):
            if isinstance(piece, BatchRun):
                table = BatchTable(BatchColumns(piece))
                late = (table.max_timestamps >= timestamp).nonzero()[0]
                batches: Iterable[RecordBatch | LegacyBatch] = (piece.batch(int(index)) for index in late)
            else:
                batches = [piece] if isinstance(piece, LegacyBatch) else []
            for batch in batches:
                if (found := _in_batch(batch, timestamp, log_start)) is not None:
                    return found
    return None


def _in_batch(batch: RecordBatch | LegacyBatch, timestamp: int, log_start: int) -> int | None:
    if batch.last_offset < log_start:
        return None
    try:
        late = [
            record.offset for record in batch.records() if record.timestamp >= timestamp and record.offset >= log_start
        ]
    except (DecodeError, MissingExtraError):
        return max(
            batch.base_offset, log_start
        )  # It cannot be read, which is reported when rows are read from here on.
    return late[0] if late else None


def _name(partition: TopicPartition) -> str:
    return f"{partition[0]}-{partition[1]}"
