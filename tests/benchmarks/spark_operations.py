# SPDX-License-Identifier: Apache-2.0
"""What is measured on Spark, in a process that has a session and goes on from one round to the next.

The session's start is measured apart.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from raftlog.tools.auditing.run.full_audit import audit_into
from raftlog.tools.report.page import Report
from raftlog.tools.spark.audit.audit_engine import SparkEngine
from raftlog.tools.spark.session import register, session
from raftlog.tools.spark.source.source import RaftLogDataSource
from raftlog.tools.terminal.garbage_collector import collect_garbage_seldom


class TupleReader(DataSourceReader):
    """Reads the same rows, and hands them to Spark one by one, as a source does that knows no Arrow.

    Args:
        reader: reads them.
    """

    def __init__(self, reader: DataSourceReader) -> None:
        self._reader = reader

    def partitions(self) -> Any:
        """Divide them as the reader does."""
        return self._reader.partitions()

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """Yield them."""
        for batch in self._reader.read(partition):
            assert isinstance(batch, pa.RecordBatch)
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


class TupleSource(RaftLogDataSource):
    """The data source ``raftlog``, without Arrow."""

    @classmethod
    def name(cls) -> str:
        """Return what ``format`` calls it."""
        return "raftlog_tuples"

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of tuples."""
        return TupleReader(super().reader(schema))


_OF_A_RECORD: Final = "key,value,offset,timestamp"
"""What is in a record itself: all records of a log have the rest in common."""
_SMALL_SPLITS: Final = "8m"
"""Of what is too little to be divided well by splits of the usual size."""


def _rows(spark: SparkSession, source: str, path: Path, **options: str) -> int:
    """Have columns handed over for every record, all of Spark's Kafka source if no option says otherwise; count them.

    Args:
        spark: the session.
        source: its name.
        path: of the logs.
        options: of the source.
    """
    return spark.read.format(source).options(mode="FAILFAST", **options).load(str(path)).count()


def _audit(spark: SparkSession, path: Path) -> int:
    """Audit a directory as if for the first time, and return how many files there are."""
    paths = [str(path)]
    engine = SparkEngine(spark, paths, is_fresh=True)
    return audit_into(f"{path}-audited", paths, engine, Report(paths)).account.files


OPERATIONS: Final[dict[str, Callable[[SparkSession, Path], int]]] = {
    "arrow": lambda spark, path: _rows(spark, "raftlog", path),
    "arrow-of-a-record": lambda spark, path: _rows(spark, "raftlog", path, columns=_OF_A_RECORD),
    "tuples": lambda spark, path: _rows(spark, "raftlog_tuples", path, splitSize=_SMALL_SPLITS),
    "audit": _audit,
}


def main() -> None:
    """Answer each line of JSON, an operation and a path, with one; the first line says what the start took."""
    collect_garbage_seldom()  # As the command line does.
    master, configuration = sys.argv[1], json.loads(sys.argv[2])
    start = time.perf_counter()
    with session(master, configuration) as spark:
        register(spark)
        spark.dataSource.register(TupleSource)
        spark.range(2).mapInArrow(lambda batches: batches, "id long").collect()
        print(json.dumps({"start_s": time.perf_counter() - start}), flush=True)
        for line in sys.stdin:
            job = json.loads(line)
            operation = OPERATIONS[job["operation"]]
            start = time.perf_counter()
            count = operation(spark, Path(job["path"]))
            print(json.dumps({"count": count, "wall_s": time.perf_counter() - start}), flush=True)


if __name__ == "__main__":
    # By the name that workers import it by, so that they find its classes.
    from tests.benchmarks import spark_operations

    spark_operations.main()
