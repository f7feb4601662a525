# SPDX-License-Identifier: Apache-2.0
"""Tries everything that raftlog does on Spark, once, on the Python and the Spark that run this.

::

    python -m tests.spark.runtimes 'local[2]'
    python -m tests.spark.runtimes standalone
    SPARK_REMOTE='local[2]' python -m tests.spark.runtimes connect

The table of runtimes in docs/spark.md has what this was run on. It exits with 1 if anything differs.
"""

import contextlib
import functools
import platform
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pyspark
from pyspark.sql import SparkSession

import raftlog.spark
from raftlog.tools.spark.rows.options import VIEWS
from raftlog.tools.spark.session import register, session
from tests.golden_files import GOLDEN
from tests.spark.standalone_cluster import standalone_cluster
from tests.tools.spark import source_reads

NODE: Final = GOLDEN / "mirror/data/n1"


def checks_of(spark: SparkSession, folder: Path) -> Iterator[tuple[str, Callable[[], bool]]]:
    """Yield each check with what it is about."""
    yield "register", functools.partial(_is_registered, spark)
    for view in VIEWS:
        yield f"view {view}", functools.partial(_is_read, spark, view)
    filtered = "topic = 'orders' and offset > 5"
    yield "filters", lambda: _count(spark, filtered, pushdown="true") == _count(spark, filtered)
    yield "a view of SQL", lambda: _count_by_sql(spark) == _count(spark)
    yield "a stream", lambda: _streamed(spark, folder / "stream") == 320
    yield "a stream in micro-batches", lambda: _streamed(spark, folder / "limited", maxOffsetsPerTrigger="50") == 320
    yield (
        "tables are refused",
        lambda: (
            "a table does not keep it"
            in _problem(lambda: spark.sql(f"CREATE TABLE t USING raftlog OPTIONS (path '{NODE}')"))
        ),
    )
    yield (
        "writing is refused",
        lambda: (
            "never writes them"
            in _problem(lambda: spark.range(1).write.format("raftlog").mode("append").save(str(folder / "written")))
        ),
    )
    yield "the audit", lambda: raftlog.spark.audit(spark, NODE, out=folder / "audit").runs.count() == 1


def _is_registered(spark: SparkSession) -> bool:
    register(spark)
    return "raftlog" in _problem(lambda: spark.read.format("raftlog").load().schema)


def _is_read(spark: SparkSession, view: str) -> bool:
    return _count(spark, view=view) == len(source_reads.rows(NODE, view=view))


def _count(spark: SparkSession, condition: str = "true", **options: str) -> int:
    return spark.read.format("raftlog").options(**options).load(str(NODE)).where(condition).count()


def _count_by_sql(spark: SparkSession) -> int:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW logs USING raftlog OPTIONS (path '{NODE}')")
    return int(spark.sql("SELECT count(*) AS count FROM logs").collect()[0]["count"])


def _streamed(spark: SparkSession, folder: Path, **options: str) -> int:
    source = spark.readStream.format("raftlog").options(startingOffsets="earliest", **options)
    sink = source.load(str(NODE / "orders-0")).writeStream.format("parquet").trigger(availableNow=True)
    sink.option("checkpointLocation", f"{folder}/checkpoint").start(f"{folder}/rows").awaitTermination()
    return spark.read.parquet(f"{folder}/rows").count()


def _problem(work: Callable[[], object]) -> str:
    try:
        work()
    except Exception as error:
        return str(error)
    return ""


def try_all(spark: SparkSession, folder: Path) -> bool:
    """Run all checks, print the outcome of each, and return whether all are as they should be."""
    outcomes = []
    for name, check in checks_of(spark, folder):
        try:
            outcome = "ok" if check() else "DIFFERS"
        except Exception as error:
            outcome = re.sub(r"\s+", " ", f"FAILED {error}")[:300]
        print(f"{name}: {outcome}", flush=True)
        outcomes.append(outcome == "ok")
    return all(outcomes)


def main(master: str) -> int:
    """Try all on a master, and return the exit code."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="raftlog-runtimes-")))
        if master == "standalone":
            (folder / "cluster").mkdir()
            master = stack.enter_context(standalone_cluster(folder / "cluster")).url
        spark = stack.enter_context(session(None if master == "connect" else master))
        print(f"Python {platform.python_version()}, Spark {pyspark.__version__}, {type(spark).__module__} on {master}")
        return 0 if try_all(spark, folder) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
