# SPDX-License-Identifier: Apache-2.0
"""The source as a stream, in a session."""

import json
import shutil
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from raftlog.records.batches.batch import read_batch
from tests.golden_files import GOLDEN
from tests.tools.made_logs import batch, write_log

pytestmark = pytest.mark.spark


def _run(spark: SparkSession, log: Path, out: Path, **options: object) -> list[int]:
    """Read what is there, from the checkpoint on; return all offsets that were ever written out."""
    _read(spark, log, out, **options)
    return sorted(row.offset for row in spark.read.parquet(str(out / "rows")).select("offset").collect())


def _read(spark: SparkSession, log: Path, out: Path, **options: object) -> StreamingQuery:
    """Read what is there, from the checkpoint on."""
    texts = {"startingOffsets": "earliest"} | {name: str(value) for name, value in options.items()}
    query = (
        spark.readStream.format("raftlog")
        .options(**texts)
        .load(str(log))
        .writeStream.format("parquet")
        .option("checkpointLocation", str(out / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(out / "rows"))
    )
    query.awaitTermination()
    return query


def test_a_restarted_stream_resumes(spark: SparkSession, tmp_path: Path) -> None:
    """Every record once, over restarts and a roll; another cluster's log, or one that parted, is an error with both."""
    log, out = tmp_path / "log", tmp_path / "out"
    write_log(log / "orders-0", *map(batch, range(5)))
    first, *_ = _read(spark, log, out, maxOffsetsPerTrigger=2).recentProgress
    [of_source] = first["sources"]
    ends = [json.loads(of_source[name])["orders-0"]["offset"] for name in ("endOffset", "latestOffset")]
    assert ends == [2, 5]  # Which is how far the stream is, and how far it may go.
    write_log(log / "orders-0", batch(5), batch(6)[:40], name="00000000000000000005.log")
    assert _run(spark, log, out) == list(range(6))
    write_log(log / "orders-0", batch(5), batch(6), name="00000000000000000005.log")
    (log / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=ours\n")
    assert _run(spark, log, out) == list(range(7))
    (log / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=theirs\n")
    with pytest.raises(StreamingQueryException, match="orders-0 had cluster id ours there, and has theirs under"):
        _run(spark, log, out)
    (log / "meta.properties").unlink()
    (log / "orders-0" / "00000000000000000005.log").unlink()
    with pytest.raises(StreamingQueryException, match=r"orders-0: the stream has read up to offset 7 of epoch 1"):
        _run(spark, log, out)


def test_committed_records_come_once_over_restarts(spark: SparkSession, tmp_path: Path) -> None:
    """Records of aborted transactions are never returned; those of open ones, and later records, only after their end.

    The logs are Kafka's: all transactions of txn-0 were committed, and all of txn-1 aborted.
    """
    log, out, kafka = tmp_path / "log", tmp_path / "out", GOLDEN / "data-topics" / "data" / "n1"
    committed, aborted = kafka / "txn-0", kafka / "txn-1"
    options = {"kafka.isolation.level": "read_committed"}

    _grow(log / "txn-0", committed, 36)
    _grow(log / "txn-1", aborted, 25)
    assert _run(spark, log, out, **options) == [*range(35)]
    _grow(log / "txn-0", committed, 71)
    _grow(log / "txn-1", aborted, 51)
    assert _run(spark, log, out, **options) == [*range(35), *range(36, 46)]
    _grow(log / "txn-0", committed, 92)
    _grow(log / "txn-1", aborted, 52)
    assert _run(spark, log, out, **options) == [*range(35), *range(36, 71), *range(72, 92)]


def _grow(log: Path, whole: Path, end: int) -> None:
    """Have a log be what another one was when it ended at an offset, where a batch does."""
    log.mkdir(parents=True, exist_ok=True)
    for path in whole.iterdir():
        if path.stem.isdigit() and int(path.stem) < end:
            shutil.copy(path, log)
    newest = max(log.glob("*.log"))
    data, position, next_offset = newest.read_bytes(), 0, 0
    while next_offset < end:
        found, position = read_batch(data, position)
        next_offset = found.next_offset
    newest.write_bytes(data[:position])


@pytest.mark.parametrize(
    "start", [{"startingTimestamp": 10**15}, {"startingOffsetsByTimestamp": '{"orders": {"7": 1000000000000000}}'}]
)
def test_a_stream_from_a_time_after_all_records(spark: SparkSession, tmp_path: Path, start: dict[str, object]) -> None:
    """With the strategy latest it begins at the end, whichever option has the time, and reads what comes later."""
    log, out = tmp_path / "log", tmp_path / "out"
    write_log(log / "orders-7", batch(0), batch(1))
    options = start | {"startingOffsetsByTimestampStrategy": "latest"}
    assert _run(spark, log, out, **options) == []
    write_log(log / "orders-7", batch(0), batch(1), batch(2))
    assert _run(spark, log, out, **options) == [2]
