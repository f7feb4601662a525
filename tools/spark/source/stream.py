# SPDX-License-Identifier: Apache-2.0
"""The data source as a stream: reads growing logs in micro-batches.

A checkpoint has a place per log, ``{"orders-0": {"offset": 1234, "epoch": 7}}``, and the ids of cluster and topic if
files have them. A stream reads only sound batches: a batch that is still being written is read once it is complete. It
reads up to the end of one replica, and these records need not be committed: if they are truncated later, the stream
fails with ``DivergedStreamError``. As for a batch query, ``planning`` and ``reading`` do the work.
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
from raftlog.tools.spark.source.data_loss import DataLoss
from raftlog.tools.spark.source.file_partition import FilePartition, read_partition
from raftlog.tools.spark.source.planning import plan
from raftlog.tools.spark.source.stream_identity import NAMES, TOPIC_ID, difference
from raftlog.tools.spark.source.stream_positions import Positions, StreamLogs, list_logs
from raftlog.tools.spark.source.transactions import TransactionFollower

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow

    from raftlog.tools.spark.source.committed import CommittedEnds
else:
    try:
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow
    except ImportError:  # Spark before 4.2 does not use them.
        ReadAllAvailable = ReadMaxRows = type("ReadLimit", (), {})
        SupportsTriggerAvailableNow = type("SupportsTriggerAvailableNow", (), {})

Offsets = dict[str, Any]
"""Places by log, in the form that Spark writes to a checkpoint."""

_ATTEMPTS: Final = 5
"""The most attempts to list and read logs while files are deleted from them."""

Answer = TypeVar("Answer")


class StreamPartition(FilePartition):
    """The input of one task of a micro-batch.

    Args:
        split: the parts of files to read.
        start, end: the places of their logs at which the micro-batch starts and ends.
    """

    def __init__(self, split: Split, start: Offsets, end: Offsets) -> None:
        super().__init__(split)
        self.start = start
        self.end = end


class RaftLogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches on the driver, and reads them in tasks. What it remembers only makes it faster.

    Args:
        options: of the source.
        schema: the wanted columns, in order.
    """

    def __init__(self, options: SourceOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        self._last: Positions | None = None
        self._ends: Offsets | None = None
        self._places = BatchPlaces()
        self._transactions = TransactionFollower()
        self._loss = DataLoss(fails=options.fails_on_loss)
        self._committed: CommittedEnds | None = None

    def initialOffset(self) -> Offsets:  # noqa: N802 - Spark's name, as all here
        """Return where a new stream starts: at the starting option, or else at the ends of the logs."""
        return self._ask(lambda logs: _written(logs, logs.first()))

    def latestOffset(self, start: Offsets | None = None, limit: Any = None) -> Offsets:  # noqa: N802
        """Return where the next micro-batch ends. Spark before 4.2 passes no arguments, and gets the ends of the logs.

        Args:
            start: where the stream is.
            limit: the result of ``getDefaultReadLimit``, or None.

        Raises:
            DivergedStreamError: a log no longer has the records that the stream has read.
            OptionError: a log is missing, or starts after the stream's place, and ``failOnDataLoss`` is true; or the
                checkpoint is of another log or source.
        """
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        written = {} if start is None else start

        def found(logs: StreamLogs) -> Offsets:
            places = _read(logs, written)
            ends = logs.ends(places, self._last)
            self._ends = _written(logs, ends, written)
            return _written(logs, logs.within(places, ends, most), written)

        return self._ask(found)

    def reportLatestOffset(self) -> Offsets | None:  # noqa: N802
        """Return the ends of the logs that ``latestOffset`` saw last, so that Spark can show the lag; None before."""
        return self._ends

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """Return the limit of ``maxOffsetsPerTrigger``."""
        most = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember where the logs end now. The query stops there, after as many micro-batches as the limit requires."""
        self._last = self._ask(lambda logs: logs.latest({}))

    def partitions(self, start: Offsets, end: Offsets) -> list[InputPartition]:
        """Divide a micro-batch among tasks.

        Raises:
            DivergedStreamError, OptionError: as ``latestOffset``.
        """

        def divided(logs: StreamLogs) -> list[InputPartition]:
            query = logs.between(_read(logs, start), _read(logs, end))
            splits = plan(query, logs.listing, follower=self._transactions, loss=self._loss)
            return [StreamPartition(split, _of_logs(split, start), _of_logs(split, end)) for split in splits]

        return self._ask(divided)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task. If a log was truncated after planning, that is reported instead of damage.

        Raises:
            DivergedStreamError, OptionError: as ``latestOffset``.
            DecodeError, StorageError, MissingExtraError, OptionError: as ``read_partition``.
        """
        if not isinstance(partition, StreamPartition):
            return  # A partition that Spark made, since there is nothing to read.
        try:
            yield from read_partition(self._options, self._schema, Hints(), partition)
        except DecodeError:
            # Bit rot can make a log end early too: only epochs prove that it was truncated.
            self._look_again(partition, functools.partial(StreamLogs.check_histories, by_epochs_alone=True))
            raise
        except StorageError:
            self._look_again(partition, StreamLogs.check)
            raise
        if any(part.may_be_torn for part in partition.split):
            self._look_again(partition, StreamLogs.check_histories)

    def _look_again(self, partition: StreamPartition, check: Callable[[StreamLogs, Positions], None]) -> None:
        """Check the logs of a task in their present state, if they can be read."""
        directories = {directory_of(part.path) for part in partition.split}
        options = SourceOptions(
            tuple(sorted(directories)),
            fails_on_loss=self._options.fails_on_loss,
            include_deleted=self._options.include_deleted,
        )

        def checked(logs: StreamLogs) -> None:
            check(logs, _read(logs, partition.start))
            # A log that was replaced since its planning fails the task, even if the loss would be forgiven: the task
            # would return records of the new topic, and the next micro-batch all of them again.
            check(logs, _read(logs, partition.end, DataLoss(fails=True)))

        with contextlib.suppress(StorageError):
            self._ask(checked, options)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for workers, without what the driver remembers of logs."""
        forgotten = {"_places": BatchPlaces(), "_transactions": TransactionFollower(), "_committed": None}
        return self.__dict__ | forgotten

    def _ask(self, question: Callable[[StreamLogs], Answer], options: SourceOptions | None = None) -> Answer:
        """Answer a question about the logs; if a file is deleted meanwhile, list them again and retry."""
        options = self._options if options is None else options
        if options.committed_only and self._committed is None:
            from raftlog.tools.spark.source.committed import CommittedEnds  # Only now: the audit comes with it.

            self._committed = CommittedEnds()
        remembered = (self._places, self._transactions, self._loss, self._committed)
        for _ in range(_ATTEMPTS - 1):
            try:
                return question(list_logs(options, *remembered))
            except StorageError as error:
                if not isinstance(error.__cause__, FileNotFoundError):
                    raise
        return question(list_logs(options, *remembered))


def _written(logs: StreamLogs, places: Positions, before: Offsets | None = None) -> Offsets:
    """Return places in the form of a checkpoint. Ids that no file has any longer are kept from ``before``."""
    written: Offsets = {}
    for name, place in places.items():
        known = {key: value for key, value in (before or {}).get(name, {}).items() if key in NAMES}
        written[name] = {"offset": place.offset, "epoch": place.epoch, **known, **logs.identities.get(name, {})}
    return written


def _of_logs(split: Split, places: Offsets) -> Offsets:
    """Return the places of those logs that a split has parts of."""
    names = {log_name(part.topic, part.partition) for part in split}
    return {name: place for name, place in places.items() if name in names}


def _read(logs: StreamLogs, offsets: Offsets, loss: DataLoss | None = None) -> dict[str, OffsetAndEpoch]:
    """Return the places of a checkpoint. If losses are forgiven, a replaced log has none: it is read from its start.

    Raises:
        OptionError: the checkpoint is of another cluster or source; or of other topics with the same names, and a loss
            is an error.
    """
    places: dict[str, OffsetAndEpoch] = {}
    if not isinstance(offsets, dict):
        raise OptionError("checkpointLocation", f"it is of another source: {offsets!r}")
    for name, each in offsets.items():
        try:
            place = OffsetAndEpoch(int(each["offset"]), int(each["epoch"]))
        except (KeyError, OverflowError, TypeError, ValueError):
            raise OptionError(
                "checkpointLocation", f"it is of another source: {each!r} is not a place in log {name}"
            ) from None
        found = difference(each, logs.identities.get(name, {}))
        if found is None:
            places[name] = place
            continue
        reason = f"it is of another log: {name} {found.reason}"
        if found.key != TOPIC_ID:
            raise OptionError("checkpointLocation", reason)
        (loss or logs.loss).report("checkpointLocation", reason, "with the new topic from its start")
    return places
