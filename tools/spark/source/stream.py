# SPDX-License-Identifier: Apache-2.0
"""The streaming form of the data source: reads growing logs in micro-batches.

A checkpoint holds, for each log, ``{"orders-0": {"offset": 1234, "epoch": 7}}``, and the ids of cluster and topic if
files have them. Only sound batches are read: a torn write is read once it is complete. A stream reads up to the end of
one replica, and no file says how much of that is committed: if records that were read are truncated, the stream fails
with an error that says so.
``planning`` and ``reading`` do the work, as for a batch query.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from raftlog.errors import DecodeError, OptionError, StorageError
from raftlog.file_paths import directory_of
from raftlog.offsets import OffsetAndEpoch
from raftlog.tools.spark.rows.filters import Hints
from raftlog.tools.spark.rows.options import SourceOptions
from raftlog.tools.spark.rows.parts import Split, log_name
from raftlog.tools.spark.source.batch_places import BatchPlaces
from raftlog.tools.spark.source.file_partition import FilePartition, read_partition
from raftlog.tools.spark.source.planning import plan
from raftlog.tools.spark.source.stream_identity import NAMES, difference
from raftlog.tools.spark.source.stream_positions import Positions, StreamLogs, list_logs
from raftlog.tools.spark.source.transactions import TransactionFollower

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow
else:
    try:
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow
    except ImportError:  # Spark before 4.2 does not use these.
        ReadAllAvailable = ReadMaxRows = type("ReadLimit", (), {})
        SupportsTriggerAvailableNow = type("SupportsTriggerAvailableNow", (), {})

Offsets = dict[str, Any]
"""Positions in the form in which Spark writes them to a checkpoint."""

_ATTEMPTS: Final = 5
"""Attempts to list logs whose files are deleted meanwhile."""

Answer = TypeVar("Answer")


class StreamPartition(FilePartition):
    """The input of one task of a micro-batch.

    Args:
        split: the parts of files.
        start, end: the positions in its logs between which they lie.
    """

    def __init__(self, split: Split, start: Offsets, end: Offsets) -> None:
        super().__init__(split)
        self.start = start
        self.end = end


class RaftLogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches on the driver, and reads them in tasks. Its state is only a cache.

    Args:
        options: the user's options.
        schema: the wanted columns, in order.
    """

    def __init__(self, options: SourceOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        self._last: Positions | None = None
        self._places = BatchPlaces()
        self._transactions = TransactionFollower()

    def initialOffset(self) -> Offsets:  # noqa: N802 - Spark's name, as all here
        """Return the start of a new stream: as ``startingOffsets`` says, else the ends of the logs."""
        return self._ask(lambda logs: _written(logs, logs.first()))

    def latestOffset(self, start: Offsets | None = None, limit: Any = None) -> Offsets:  # noqa: N802
        """Return the end of the next micro-batch. Spark before 4.2 passes no arguments: then it is the end of the logs.

        Args:
            start: the position of the stream.
            limit: the result of ``getDefaultReadLimit``, if any.

        Raises:
            DivergedStreamError: a log has diverged from what the stream has read.
            OptionError: a log is missing, or starts after the stream's position, and the options make that an error.
        """
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        places = {} if start is None else start
        return self._ask(lambda logs: _written(logs, logs.latest(_read(logs, places), most, self._last), places))

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """Return the limit of ``maxOffsetsPerTrigger``."""
        most = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Record the current ends of the logs: the query stops there, after as many micro-batches as that takes."""
        self._last = self._ask(lambda logs: logs.latest({}))

    def partitions(self, start: Offsets, end: Offsets) -> list[InputPartition]:
        """Divide a micro-batch among tasks.

        Raises:
            DivergedStreamError, OptionError: as ``latestOffset``.
        """

        def divided(logs: StreamLogs) -> list[InputPartition]:
            query = logs.between(_read(logs, start), _read(logs, end))
            splits = plan(query, logs.listing, follower=self._transactions)
            return [StreamPartition(split, _of_logs(split, start), _of_logs(split, end)) for split in splits]

        return self._ask(divided)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task. A log that was truncated since planning is not reported as damaged.

        Raises:
            DivergedStreamError, OptionError: as ``latestOffset``.
            DecodeError, StorageError, MissingExtraError, OptionError: as ``read_partition``.
        """
        if not isinstance(partition, StreamPartition):
            return  # Spark's own class, if there is nothing to read.
        try:
            yield from read_partition(self._options, self._schema, Hints(), partition)
        except DecodeError:
            # A log that ends early because of damage was not truncated.
            self._look_again(partition, functools.partial(StreamLogs.check_histories, by_epochs_alone=True))
            raise
        except StorageError:
            self._look_again(partition, StreamLogs.check)
            raise
        if any(part.may_be_torn for part in partition.split):
            self._look_again(partition, StreamLogs.check_histories)

    def _look_again(self, partition: StreamPartition, check: Callable[[StreamLogs, Positions], None]) -> None:
        """Check the current state of a task's logs, if they can be read."""
        directories = {directory_of(part.path) for part in partition.split}
        options = SourceOptions(tuple(sorted(directories)), fails_on_loss=self._options.fails_on_loss)

        def checked(logs: StreamLogs) -> None:
            check(logs, _read(logs, partition.start))
            check(logs, _read(logs, partition.end))

        with contextlib.suppress(StorageError):
            self._ask(checked, options)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the cache, which only the driver needs."""
        return self.__dict__ | {"_places": BatchPlaces(), "_transactions": TransactionFollower()}

    def _ask(self, question: Callable[[StreamLogs], Answer], options: SourceOptions | None = None) -> Answer:
        """List the logs, again if a file was deleted meanwhile by the process that writes them."""
        options = self._options if options is None else options
        for _ in range(_ATTEMPTS - 1):
            try:
                return question(list_logs(options, self._places, self._transactions))
            except StorageError as error:
                if not isinstance(error.__cause__, FileNotFoundError):
                    raise
        return question(list_logs(options, self._places, self._transactions))


def _written(logs: StreamLogs, places: Positions, before: Offsets | None = None) -> Offsets:
    """Return positions for a checkpoint; ids that no file has any more, as of a missing log, are kept."""
    written: Offsets = {}
    for name, place in places.items():
        known = {key: value for key, value in (before or {}).get(name, {}).items() if key in NAMES}
        written[name] = {"offset": place.offset, "epoch": place.epoch, **known, **logs.identities.get(name, {})}
    return written


def _of_logs(split: Split, places: Offsets) -> Offsets:
    """Return the positions of the logs that a split has parts of."""
    names = {log_name(part.topic, part.partition) for part in split}
    return {name: place for name, place in places.items() if name in names}


def _read(logs: StreamLogs, offsets: Offsets) -> dict[str, OffsetAndEpoch]:
    """Return the positions of a checkpoint.

    Raises:
        OptionError: it belongs to another cluster, to other topics of the same names, or to another source.
    """
    places: dict[str, OffsetAndEpoch] = {}
    if not isinstance(offsets, dict):
        raise OptionError("checkpointLocation", f"it belongs to another source: {offsets!r}")
    for name, each in offsets.items():
        try:
            places[name] = OffsetAndEpoch(int(each["offset"]), int(each["epoch"]))
        except (KeyError, OverflowError, TypeError, ValueError):
            raise OptionError(
                "checkpointLocation", f"it belongs to another source: {each!r} is not a position in log {name}"
            ) from None
        reason = difference(each, logs.identities.get(name, {}))
        if reason is not None:
            raise OptionError("checkpointLocation", f"it belongs to another log: {name} {reason}")
    return places
