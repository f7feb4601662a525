# SPDX-License-Identifier: Apache-2.0
"""The streaming form of the data source: logs that grow, read a micro-batch at a time.

A checkpoint holds, for each log, ``{"orders-0": {"offset": 1234, "epoch": 7}}``. Only sound batches count: a write that
is cut waits until it is whole. ``planning`` and ``reading`` do the work, as they do for a query that ends.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from raftlog.offsets import OffsetAndEpoch
from raftlog.tools.spark.file_partition import FilePartition, read_partition
from raftlog.tools.spark.filters import Hints
from raftlog.tools.spark.options import SourceOptions
from raftlog.tools.spark.planning import plan
from raftlog.tools.spark.stream_positions import Positions, StreamLogs, list_logs

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow
else:
    try:
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow
    except ImportError:  # Before Spark 4.2, nobody asks for these.
        ReadAllAvailable = ReadMaxRows = type("ReadLimit", (), {})
        SupportsTriggerAvailableNow = type("SupportsTriggerAvailableNow", (), {})

Offsets = dict[str, Any]
"""Positions as Spark writes them to a checkpoint."""


class RaftLogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches on the driver, and reads them in tasks.

    Args:
        options: what the user asks for.
        schema: the columns that are wanted, in order.
    """

    def __init__(self, options: SourceOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        self._last: Positions | None = None

    def initialOffset(self) -> Offsets:  # noqa: N802 - Spark's name, as all here
        """Return where a new stream starts: where ``startingOffsets`` says, else at the ends of the logs."""
        return _written(self._logs().first())

    def latestOffset(self, start: Offsets | None = None, limit: Any = None) -> Offsets:  # noqa: N802
        """Return up to where the next micro-batch reads.

        Raises:
            DivergedStreamError: a log is not the one any more that the stream has read.
            OptionError: a log is gone, or its start is behind the stream, and that is an error.
        """
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        if limit is None and start is not None:
            most = self._options.max_offsets_per_trigger
        end = self._logs().latest(_read(start or {}), most)
        if self._last is not None:
            end = {name: min(place, self._last[name], key=_offset) for name, place in end.items() if name in self._last}
        return _written(end)

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """Return what ``maxOffsetsPerTrigger`` says."""
        most = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Note where the logs end now: the query stops there, in as many micro-batches as the limit makes."""
        self._last = self._logs().latest({}, None)

    def partitions(self, start: Offsets, end: Offsets) -> list[InputPartition]:
        """Divide a micro-batch among tasks.

        Raises:
            DivergedStreamError, OptionError: as ``latestOffset``.
        """
        logs = self._logs()
        return [FilePartition(split) for split in plan(logs.between(_read(start), _read(end)), logs.listing)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task, as a query that ends does."""
        return read_partition(self._options, self._schema, Hints(), partition)

    def _logs(self) -> StreamLogs:
        return list_logs(self._options)


def _offset(place: OffsetAndEpoch) -> int:
    return place.offset


def _written(places: Positions) -> Offsets:
    return {name: {"offset": place.offset, "epoch": place.epoch} for name, place in places.items()}


def _read(offsets: Mapping[str, Any]) -> dict[str, OffsetAndEpoch]:
    return {name: OffsetAndEpoch(each["offset"], each["epoch"]) for name, each in offsets.items()}
