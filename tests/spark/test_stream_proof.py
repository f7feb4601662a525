# SPDX-License-Identifier: Apache-2.0
"""A log is written while a stream reads it, stops and restarts: every record once and in order, or a typed error."""

import re
import threading
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tests.hang_limit import HANG_S
from tests.spark.growing_log import NAME, GrowingLog

pytestmark = pytest.mark.spark

_DIVERGED = re.compile(rf"{NAME}: the stream has read up to offset (\d+) of epoch (\d+), but the log has offset (\d+)")


class Reader:
    """A stream from a log's start, whose checkpoint outlives its queries; what it gave, by micro-batch."""

    def __init__(self, spark: SparkSession, data: Path, most: int | None) -> None:
        self._spark = spark
        self._data = data
        self._most = most
        self._rows: dict[int, list[tuple[int, int]]] = {}
        self._has_more = threading.Condition()

    def start(self) -> StreamingQuery:
        """Start a query that follows the log from where the last one was; it has read something then."""
        count = len(self._rows)
        query = self._writer().trigger(processingTime="0 seconds").start()
        with self._has_more:
            assert self._has_more.wait_for(lambda: len(self._rows) > count, HANG_S), query.exception()
        return query

    def read_what_is_there(self, *, fails_on_loss: bool = True) -> None:
        """Go on from where the last query was to where the log ends."""
        assert self._writer(fails_on_loss=fails_on_loss).trigger(availableNow=True).start().awaitTermination(HANG_S)

    def wait(self, seconds: float) -> None:
        """Wait for a micro-batch, so long at most."""
        with self._has_more:
            self._has_more.wait(seconds)

    def _writer(self, *, fails_on_loss: bool = True) -> DataStreamWriter:
        reader = self._spark.readStream.format("raftlog").option("startingOffsets", "earliest")
        reader = reader.option("failOnDataLoss", str(fails_on_loss).lower())
        if self._most is not None:
            reader = reader.option("maxOffsetsPerTrigger", str(self._most))
        writer = reader.load(str(self._data)).writeStream.foreachBatch(self._take)
        return writer.option("checkpointLocation", str(self._data.with_name("checkpoint")))

    def _take(self, frame: DataFrame, number: int) -> None:
        table = frame.select("offset", "value").toArrow()
        values = [int(value) for value in table["value"].to_pylist()]
        with self._has_more:
            self._rows[number] = list(zip(table["offset"].to_pylist(), values, strict=True))
            self._has_more.notify_all()

    @property
    def rows(self) -> list[tuple[int, int]]:
        """Offset and epoch of each record, as they came; a micro-batch that was done again counts once."""
        return [row for _, rows in sorted(self._rows.items()) for row in rows]

    @property
    def settled_end(self) -> int:
        """Up to where no query will read again, whenever it is stopped."""
        with self._has_more:
            settled = [rows for number, rows in self._rows.items() if number < max(self._rows)]
        return max((offset + 1 for rows in settled for offset, _ in rows), default=0)


def _drained(query: StreamingQuery) -> str | None:
    """Stop a query once it has read all there is; return its error if it has ended with one."""
    try:
        query.processAllAvailable()
        query.stop()
    except StreamingQueryException as error:
        return str(error)
    return None


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a log directory to be."""
    return tmp_path / "data"


@pytest.mark.parametrize(("seed", "most"), [(0, 30), (1, None)])
def test_every_record_comes_once_and_in_order(spark: SparkSession, data: Path, seed: int, most: int | None) -> None:
    """Changes of a replica before and after a stream's position: it rolls, takes snapshots, rewrites unread records."""
    random = Random(seed)
    reader = Reader(spark, data, most)
    with closing(GrowingLog(data, random)) as log:
        for is_drained in random.sample([True, False], 2):
            log.append()
            query = reader.start()
            for _ in range(6):
                log.append()
                log.take_snapshot(reader.settled_end)
                reader.wait(random.random() / 2)
            if is_drained:
                assert _drained(query) is None
            query.stop()
            log.append()
            if is_drained:
                log.truncate(len(reader.rows))
                log.append()
        reader.read_what_is_there()
        assert reader.rows == list(enumerate(log.records))
        assert log.start > 0
        assert log.truncated_to is not None


@pytest.mark.parametrize("seed", range(3))
def test_missing_records_that_were_read_end_the_stream(spark: SparkSession, data: Path, seed: int) -> None:
    """If a replica replaces records that were read, the stream reports it, or it has not read them."""
    random = Random(seed)
    reader = Reader(spark, data, random.choice([None, 20]))
    with closing(GrowingLog(data, random)) as log:
        log.append()
        query = reader.start()
        for _ in range(6):
            log.append()
            reader.wait(random.random() / 2)
            if random.random() < 0.3:
                log.truncate(log.end // 2)
                log.append()
        log.truncate(1, log.end // 4)
        log.append()
        error = _drained(query)
        read_in_common = [row for row in reader.rows if row[0] < (log.truncated_to or 0)]
        assert read_in_common == list(enumerate(log.records))[: len(read_in_common)]
        if error is None:
            assert reader.rows == list(enumerate(log.records))
        else:
            found = _DIVERGED.search(error)
            assert found is not None, error
            assert log.records[int(found[1]) - 1 : int(found[1])] != [int(found[2])]


def test_records_that_were_deleted_before_they_were_read_are_a_loss(spark: SparkSession, data: Path) -> None:
    """A snapshot replaced them: the stream reports the new log start, or continues from there if allowed."""
    reader = Reader(spark, data, None)
    with closing(GrowingLog(data, Random(0))) as log:
        log.append()
        reader.read_what_is_there()
        before, lost_from = reader.rows, log.end
        log.append()
        log.take_snapshot(log.end, lowest=log.end)
        start = log.start
        log.append()
        with pytest.raises(StreamingQueryException, match=f"{NAME} starts at {start}, so that {lost_from} is missing"):
            reader.read_what_is_there()
        reader.read_what_is_there(fails_on_loss=False)
        assert reader.rows == before + list(enumerate(log.records))[start:]
