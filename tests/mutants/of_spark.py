# SPDX-License-Identifier: Apache-2.0
"""A wrong Spark source: bounds, limits and comparisons that are off by one, and losses that nobody is told of."""

import itertools
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs
import pyarrow as pa

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.columns.transactions import AbortedRange
from raftlog.tools.spark.rows import reading, selection, views
from raftlog.tools.spark.rows.dropped import Dropped
from raftlog.tools.spark.rows.filters import Hints
from raftlog.tools.spark.source import planning, stream_checks
from raftlog.tools.spark.source.boundaries import Boundaries
from raftlog.tools.spark.source.data_loss import DataLoss
from raftlog.tools.spark.source.log_starts import LogStarts
from raftlog.tools.spark.source.planning import Partition
from raftlog.tools.spark.source.source import RaftLogFilteringReader
from raftlog.tools.spark.source.stream_checks import NO_EPOCH, EpochWitness
from raftlog.tools.spark.source.stream_positions import StreamLogs
from tests.mutants.planting import Mutant, Wrong, instead, instead_of_property, missing, swapped

BOUNDARIES: Final = "tests/tools/spark/source/test_exact_boundaries.py"
STARTS: Final = "tests/tools/spark/source/test_log_starts.py"
SELECTION: Final = "tests/tools/spark/rows/test_selection.py"
PUSHDOWN: Final = "tests/tools/spark/source/test_pushdown.py"
READING: Final = "tests/tools/spark/rows/test_reading.py"


def _up_to_the_place(self: EpochWitness, place: OffsetAndEpoch) -> bool:
    if NO_EPOCH in {self.epoch, place.epoch}:
        return False
    if self.next_offset <= place.offset:
        return self.epoch > place.epoch
    if self.first_offset >= place.offset:
        return self.epoch < place.epoch
    return self.epoch != place.epoch


def _after_the_place(self: EpochWitness, place: OffsetAndEpoch) -> bool:
    if NO_EPOCH in {self.epoch, place.epoch}:
        return False
    if self.next_offset < place.offset:
        return self.epoch > place.epoch
    if self.first_offset > place.offset:
        return self.epoch < place.epoch
    return self.epoch != place.epoch


def _one_more(waiting: Mapping[str, int], most: int) -> dict[str, int]:
    return _right_shares(waiting, most + 1)


_right_shares: Final = stream_checks.shares


def _whole_batches_from(right: Wrong) -> Wrong:
    def wanted_batches(table: Any, part: Any, hints: Hints, **keywords: Any) -> Any:
        found = right(table, part, hints, **keywords)
        inside = None if part.first_offset is None else table.base_offsets >= part.first_offset
        return found if inside is None else inside if found is None else found & inside

    return wanted_batches


def _whole_batches_to(right: Wrong) -> Wrong:
    def wanted_batches(table: Any, part: Any, hints: Hints, **keywords: Any) -> Any:
        found = right(table, part, hints, **keywords)
        inside = None if part.end_offset is None else table.last_offsets < part.end_offset
        return found if inside is None else inside if found is None else found & inside

    return wanted_batches


def _hints_exclusive(right: Wrong) -> Wrong:
    def narrowed(self: Hints, operator: str, values: Any) -> Hints:
        found: Hints = right(self, operator, values)
        last = found.last_offset
        return attrs.evolve(found, last_offset=None if last is None else last - 1)

    return narrowed


def _hints_from_the_next(right: Wrong) -> Wrong:
    def narrowed(self: Hints, operator: str, values: Any) -> Hints:
        found: Hints = right(self, operator, values)
        first = found.first_offset
        return attrs.evolve(found, first_offset=None if first is None else first + 1)

    return narrowed


def _without_the_batch_at_the_bound(right: Wrong) -> Wrong:
    def first_from(self: Boundaries, start: int, end: int, **limits: Any) -> Any:
        base_offset = limits.pop("base_offset", None)
        return right(self, start, end, base_offset=None if base_offset is None else base_offset - 1, **limits)

    return first_from


def _parts_of_one_more(right: Wrong) -> Wrong:
    def cuts(self: Boundaries, start: int, end: int, size_bytes: int, max_offsets: int | None) -> Any:
        return right(self, start, end, size_bytes, None if max_offsets is None else max_offsets + 1)

    return cuts


def _ends_within_one_more(right: Wrong) -> Wrong:
    return lambda self, partition, begin, count, end: right(self, partition, begin, count + 1, end)


def _skipping_the_segment_at_the_end(right: Wrong) -> Wrong:
    return lambda self, task, first, end: right(self, task, first, None if end is None else end - 1)


def _skipping_the_segment_that_ends_after(right: Wrong) -> Wrong:
    return lambda self, task, first, end: right(self, task, None if first is None else first + 1, end)


def _but_at_the_end(self: StreamLogs, places: Any, *, by_epochs_alone: bool = False) -> None:
    for name, place in places.items():
        partition = self.partitions.get(name)
        if partition is not None and self._log_end(partition).offset != place.offset:
            _right_check_histories(self, {name: place}, by_epochs_alone=by_epochs_alone)


_right_check_histories: Final = StreamLogs.check_histories


def _from_the_place_alone(self: StreamLogs, name: str, start: Any) -> OffsetAndEpoch:
    found: OffsetAndEpoch = start.get(name, OffsetAndEpoch(self.partitions[name].start_offset, NO_EPOCH))
    return found


def _from_the_first_segment(self: StreamLogs, name: str, start: Any) -> OffsetAndEpoch:
    first = OffsetAndEpoch(self.partitions[name].segments[0].base_offset or 0, NO_EPOCH)
    place: OffsetAndEpoch = start.get(name, first)
    return place if place.offset > first.offset else first


def _trimmed_at_the_last(right: Wrong) -> Wrong:
    def trimmed(self: planning._Planner, whole: Any, task: Any) -> Any:
        last = self.hints.last_offset
        fewer = attrs.evolve(self.hints, last_offset=None if last is None else last - 1)
        return right(attrs.evolve(self, hints=fewer), whole, task)

    return trimmed


def _with_the_batch_at_the_end(right: Wrong) -> Wrong:
    def wanted_batches(table: Any, part: Any, hints: Hints, **keywords: Any) -> Any:
        end = None if part.end_offset is None else part.end_offset + 1
        return right(table, attrs.evolve(part, end_offset=end), hints, **keywords)

    return wanted_batches


def _with_the_row_at_the_end(right: Wrong) -> Wrong:
    def wanted_rows(part: Any, offsets: Any) -> Any:
        end = None if part.end_offset is None else part.end_offset + 1
        return right(attrs.evolve(part, end_offset=end), offsets)

    return wanted_rows


def _ranges(change: Callable[[AbortedRange], AbortedRange]) -> Callable[[Wrong], Wrong]:
    def changed(right: Wrong) -> Wrong:
        return lambda table, part: right(table, attrs.evolve(part, aborted=tuple(map(change, part.aborted))))

    return changed


def _of_any_producer(right: Wrong) -> Wrong:
    def are_aborted(table: Any, part: Any) -> Any:
        ids = {int(each) for each in table.producer_ids}
        every = tuple(each._replace(producer_id=one) for each in part.aborted for one in ids)
        return right(table, attrs.evolve(part, aborted=every))

    return are_aborted


def _and_not_transactional(right: Wrong) -> Wrong:
    def are_aborted(table: Any, part: Any) -> Any:
        found = None
        for each in part.aborted:
            inside = (table.base_offsets >= each.first_offset) & (table.base_offsets <= each.last_offset)
            mine = inside & (table.producer_ids == each.producer_id)
            found = mine if found is None else found | mine
        return found

    return are_aborted


def _limits_in_spite_of_filters(self: RaftLogFilteringReader, limit: int) -> bool:
    self._most_rows = limit
    return True


MUTANTS: Final = (
    Mutant(
        "R-spark-witness-before",
        "a batch that ends at the stream's place has the epoch of the place, not any earlier one",
        "Spark's Kafka source, whose options these are",
        instead(EpochWitness, "contradicts", _up_to_the_place),
        (f"{BOUNDARIES}::test_evidence_at_every_offset_of_a_place",),
    ),
    Mutant(
        "R-spark-witness-after",
        "a batch that starts at the stream's place may have a later epoch",
        "Spark's Kafka source, whose options these are",
        instead(EpochWitness, "contradicts", _after_the_place),
        (f"{BOUNDARIES}::test_evidence_at_every_offset_of_a_place",),
    ),
    Mutant(
        "R-spark-replaced-log",
        "a replaced log that ends exactly at the stream's place is noticed",
        "Spark's Kafka source, whose options these are",
        instead(StreamLogs, "check_histories", _but_at_the_end),
        (f"{BOUNDARIES}::test_a_replaced_log_that_ends_around_the_place",),
    ),
    Mutant(
        "R-spark-shares",
        "the shares of all logs add up to the limit",
        "Spark's Kafka source, whose options these are",
        instead(stream_checks, "shares", _one_more),
        (f"{BOUNDARIES}::test_every_limit_of_a_micro_batch",),
    ),
    Mutant(
        "R-spark-trigger",
        "a micro-batch has no more offsets than maxOffsetsPerTrigger",
        "Spark's Kafka source, whose options these are",
        swapped(StreamLogs, "_end_within", _ends_within_one_more),
        (f"{BOUNDARIES}::test_every_limit_of_a_micro_batch",),
    ),
    Mutant(
        "R-spark-part-size",
        "a part of several batches has no more offsets than maxRecordsPerPartition",
        "Spark's Kafka source, whose options these are",
        swapped(Boundaries, "cuts", _parts_of_one_more),
        (f"{BOUNDARIES}::test_every_limit_of_a_part",),
    ),
    Mutant(
        "R-spark-begin-inside",
        "a start inside a batch keeps the rest of that batch",
        "Spark's Kafka source, whose options these are",
        swapped(selection, "wanted_batches", _whole_batches_from),
        (f"{BOUNDARIES}::test_every_start_and_end",),
    ),
    Mutant(
        "R-spark-end-inside",
        "an end inside a batch keeps the beginning of that batch",
        "Spark's Kafka source, whose options these are",
        swapped(selection, "wanted_batches", _whole_batches_to),
        (BOUNDARIES,),
    ),
    Mutant(
        "R-spark-hint-last",
        "a filter's last offset is one that matches",
        "Spark's Kafka source, whose options these are",
        swapped(Hints, "_within_offsets", _hints_exclusive),
        (f"{BOUNDARIES}::test_every_offset_of_a_filter",),
    ),
    Mutant(
        "R-spark-hint-first",
        "a filter's first offset is one that matches",
        "Spark's Kafka source, whose options these are",
        swapped(Hints, "_within_offsets", _hints_from_the_next),
        (f"{BOUNDARIES}::test_every_offset_of_a_filter",),
    ),
    Mutant(
        "R-spark-trimmed",
        "a batch that starts before an end by one is read",
        "Spark's Kafka source, whose options these are",
        swapped(Boundaries, "first_from", _without_the_batch_at_the_bound),
        (f"{BOUNDARIES}::test_every_start_and_end",),
    ),
    Mutant(
        "R-spark-segment-end",
        "a segment that starts one before the end is read",
        "Spark's Kafka source, whose options these are",
        swapped(planning._Planner, "_may_have", _skipping_the_segment_at_the_end),
        (BOUNDARIES,),
    ),
    Mutant(
        "R-spark-segment-begin",
        "a segment whose last offset is the start is read",
        "Spark's Kafka source, whose options these are",
        swapped(planning._Planner, "_may_have", _skipping_the_segment_that_ends_after),
        (f"{BOUNDARIES}::test_every_start_and_end",),
    ),
    Mutant(
        "R-spark-log-start",
        "deleted records do not come back",
        "LogLoader#load",
        instead(LogStarts, "of", lambda *_: None),
        (f"{STARTS}::test_a_start_within_a_batch",),
    ),
    Mutant(
        "R-spark-log-start-stream",
        "a stream begins at the log start",
        "LogLoader#load",
        instead_of_property(Partition, "start_offset", lambda self: self.segments[0].base_offset or 0),
        (f"{STARTS}::test_a_stream_starts_at_the_log_start",),
    ),
    Mutant(
        "R-spark-silent-damage",
        "damage that is left out is logged",
        "Spark's Kafka source, whose options these are",
        missing(Dropped, "log"),
        (f"{READING}::test_damage_that_is_left_out_is_counted_and_logged",),
    ),
    Mutant(
        "R-spark-silent-loss",
        "records that are gone are an error, unless losses are forgiven",
        "KafkaMicroBatchStream#reportDataLoss",
        missing(DataLoss, "report"),
        (f"{STARTS}::test_a_stream_starts_at_the_log_start",),
    ),
    Mutant(
        "R-spark-forgiven-damage",
        "failOnDataLoss=false forgives no file that cannot be read",
        "Spark's Kafka source, whose options these are",
        instead(reading.PartReader, "_unreadable", reading.PartReader._loss),
        (f"{READING}::test_a_file_that_cannot_be_read_is_damage",),
    ),
    Mutant(
        "R-spark-limit-rows",
        "a task has as many rows as the limit",
        "SPARK-58551",
        instead(reading, "_first_rows", lambda batches, count: itertools.islice(batches, max(count, 1))),
        (f"{PUSHDOWN}::test_a_limit_holds_for_each_task",),
    ),
    Mutant(
        "R-spark-limit-filters",
        "a limit is refused if rows that are returned may be filtered later",
        "SPARK-58551",
        instead(RaftLogFilteringReader, "pushLimit", _limits_in_spite_of_filters),
        (f"{PUSHDOWN}::test_a_limit_after_filters_is_refused",),
    ),
    Mutant(
        "R-spark-no-columns",
        "rows are counted if no column is needed",
        "SPARK-51713",
        swapped(
            views, "pruned_schema", lambda right: lambda whole, names: right(whole, names) if names else pa.schema([])
        ),
        (f"{PUSHDOWN}::test_rows_are_counted_without_columns",),
    ),
    Mutant(
        "R-spark-lag",
        "the reported ends are those of the logs, not of the micro-batch",
        "Spark's Kafka source, whose options these are",
        swapped(
            StreamLogs,
            "ends",
            lambda right: lambda self, start, last=None: self.within(start, right(self, start, last), 1),
        ),
        ("tests/tools/spark/source/test_stream_reader.py::test_the_ends_of_the_logs_are_reported",),
    ),
    Mutant(
        "R-spark-begin-log-start",
        "a stream whose place retention has passed continues at the log start",
        "KafkaMicroBatchStream#reportDataLoss",
        instead(StreamLogs, "_begin_of", _from_the_place_alone),
        (f"{STARTS}::test_a_stream_starts_at_the_log_start",),
    ),
    Mutant(
        "R-spark-begin-new-log",
        "a log that a stream does not know is read from its log start",
        "LogLoader#load",
        instead(StreamLogs, "_begin_of", _from_the_first_segment),
        (f"{STARTS}::test_a_stream_starts_at_the_log_start",),
    ),
    Mutant(
        "R-spark-not-trimmed",
        "batches after the end are not read",
        "Spark's Kafka source, whose options these are",
        instead(planning._Planner, "_trimmed", lambda self, whole, task: whole),
        (f"{BOUNDARIES}::test_bytes_after_every_end_are_not_read",),
    ),
    Mutant(
        "R-spark-trimmed-hint",
        "the batch that starts at a filter's last offset is read",
        "Spark's Kafka source, whose options these are",
        swapped(planning._Planner, "_trimmed", _trimmed_at_the_last),
        (f"{BOUNDARIES}::test_every_offset_of_a_filter",),
    ),
    Mutant(
        "R-spark-batch-at-end",
        "a batch that starts at the end is not wanted",
        "Spark's Kafka source, whose options these are",
        swapped(selection, "wanted_batches", _with_the_batch_at_the_end),
        (f"{SELECTION}::test_batches_at_every_bound",),
    ),
    Mutant(
        "R-spark-row-at-end",
        "a record at the end is not wanted",
        "Spark's Kafka source, whose options these are",
        swapped(selection, "wanted_rows", _with_the_row_at_the_end),
        (f"{SELECTION}::test_rows_at_every_bound",),
    ),
    Mutant(
        "R-spark-aborted-first",
        "the first batch of an aborted transaction is left out",
        "CompletedFetch#isBatchAborted",
        swapped(selection, "are_aborted", _ranges(lambda each: each._replace(first_offset=each.first_offset + 1))),
        (f"{SELECTION}::test_batches_of_aborted_transactions",),
    ),
    Mutant(
        "R-spark-aborted-last",
        "a batch after the marker is of another transaction",
        "CompletedFetch#isBatchAborted",
        swapped(selection, "are_aborted", _ranges(lambda each: each._replace(last_offset=each.last_offset + 1))),
        (f"{SELECTION}::test_batches_of_aborted_transactions",),
    ),
    Mutant(
        "R-spark-aborted-producer",
        "a transaction is of one producer",
        "CompletedFetch#isBatchAborted",
        swapped(selection, "are_aborted", _of_any_producer),
        (f"{SELECTION}::test_batches_of_aborted_transactions",),
    ),
    Mutant(
        "R-spark-aborted-kind",
        "markers, and records outside transactions, are not aborted",
        "CompletedFetch#isBatchAborted",
        swapped(selection, "are_aborted", _and_not_transactional),
        (f"{SELECTION}::test_batches_of_aborted_transactions",),
    ),
)
