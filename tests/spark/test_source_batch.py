# SPDX-License-Identifier: Apache-2.0
"""The source in a session: what Spark makes of it."""

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from raftlog.tools.spark.rows.options import VIEWS
from raftlog.tools.spark.rows.views import view_schema
from tests.golden_files import GOLDEN
from tests.tools.made_logs import batch, flip, write_log
from tests.tools.spark import source_reads

pytestmark = pytest.mark.spark

NODE = GOLDEN / "mirror/data/n1"


def load(spark: SparkSession, path: Path | str, **options: object) -> DataFrame:
    """Load a path with options."""
    return spark.read.format("raftlog").options(**{name: str(value) for name, value in options.items()}).load(str(path))


@pytest.mark.parametrize("view", VIEWS)
def test_rows_are_those_of_a_reading_without_spark(spark: SparkSession, view: str) -> None:
    """Each view gives in Spark, with one split and with many, what it gives without, in the same order."""
    expected = source_reads.rows(NODE, view=view, includeHeaders="true")
    schema = view_schema(source_reads.source_options(NODE, view=view, includeHeaders="true"))
    for size in ("128m", "8k"):
        frame = load(spark, NODE, view=view, splitSize=size, includeHeaders=True)
        assert frame.toArrow().cast(schema).to_pylist() == expected


def test_the_schema_is_that_of_kafkas_source(spark: SparkSession) -> None:
    """The default view has the columns, types and nullability that Spark's Kafka source has."""
    kafka = (
        "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
    )
    assert load(spark, NODE).schema == spark.createDataFrame([], kafka).schema
    with_headers = f"{kafka}, headers array<struct<key: string, value: binary>>"
    assert load(spark, NODE, includeHeaders=True).schema == spark.createDataFrame([], with_headers).schema


def test_a_schema_of_ones_own_reads_those_columns_alone(spark: SparkSession) -> None:
    """Columns come as they were asked for; one that is not there, or of another type, is a clear error."""
    reader = spark.read.format("raftlog")
    frame = reader.schema("offset long, timestamp timestamp").load(str(NODE / "orders-0"))
    assert frame.columns == ["offset", "timestamp"]
    assert (
        frame.agg(F.count("*"), F.max("offset")).collect()
        == load(spark, NODE / "orders-0").agg(F.count("*"), F.max("offset")).collect()
    )
    with pytest.raises(AnalysisException, match="did you mean offset"):
        reader.schema("ofset long").load(str(NODE)).collect()
    with pytest.raises(AnalysisException, match="column offset of view records is bigint, not int"):
        reader.schema("offset int").load(str(NODE)).collect()


def test_sql_reads_a_view_of_its_own(spark: SparkSession) -> None:
    """USING raftlog works with no line of Python."""
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW logs USING raftlog OPTIONS (path '{NODE}', view 'batches')")
    [row] = spark.sql("SELECT sum(recordCount) AS records FROM logs WHERE NOT isControl").collect()
    assert row.records == load(spark, NODE).count()


def test_filters_are_pushed_down_on_demand(spark: SparkSession) -> None:
    """With pushdown the rows are the same; without the session's leave Spark says what is missing."""
    setting = "spark.sql.python.filterPushdown.enabled"
    condition = "offset between 3 and 40 and topic = 'orders' and timestamp >= '2020-01-01' and partition in (0, 1)"
    before = spark.conf.get(setting, "false")
    plain = load(spark, NODE).where(condition).orderBy("topic", "partition", "offset").collect()
    try:
        spark.conf.set(setting, "true")
        pushed = load(spark, NODE, pushdown=True).where(condition).orderBy("topic", "partition", "offset").collect()
    finally:
        spark.conf.set(setting, str(before))
    assert pushed == plain
    assert plain


@pytest.mark.parametrize(
    "start", [{"startingTimestamp": 10**15}, {"startingOffsetsByTimestamp": '{"orders": {"7": 1000000000000000}}'}]
)
def test_no_record_is_that_new(spark: SparkSession, tmp_path: Path, start: dict[str, object]) -> None:
    """With the strategy latest there are no rows, whichever option has the time; by default that is an error."""
    log = write_log(tmp_path / "orders-7", batch(0), batch(1))
    assert load(spark, log.parent, **start, startingOffsetsByTimestampStrategy="latest").collect() == []
    with pytest.raises(AnalysisException, match="orders-7 has no record of that time or later"):
        load(spark, log.parent, **start).collect()


def test_replicas_of_a_raft_log_up_to_what_is_proven(spark: SparkSession) -> None:
    """With committedOnly one of the nodes is read; of a node that proves little, little is."""
    nodes = [str(GOLDEN / "dynamic-quorum/data" / name) for name in ("n1", "n2", "n3", "n4")]
    reader = spark.read.format("raftlog").option("view", "records_ext").option("committedOnly", "true")
    frame = reader.load(nodes).select("file", "offset").orderBy("offset")
    assert [row.offset for row in frame.collect()] == list(range(230))
    assert len({row.file.split("/")[-3] for row in frame.collect()}) == 1
    assert [row.offset for row in reader.load(nodes[:1]).orderBy("offset").collect()] == list(range(115))
    with pytest.raises(AnalysisException, match="orders-0 is not a raft log"):
        reader.load(str(NODE / "orders-0")).collect()


def test_mistakes_are_clear(spark: SparkSession, tmp_path: Path) -> None:
    """A misspelt option and a path that is not there are errors that say so; an empty directory has no rows."""
    with pytest.raises(AnalysisException, match=r"option veiw: there is no such option; did you mean view\?"):
        load(spark, NODE, veiw="records")
    with pytest.raises(AnalysisException, match="nowhere: open failed"):
        load(spark, tmp_path / "nowhere").collect()
    (tmp_path / "empty").mkdir()
    assert load(spark, tmp_path / "empty").count() == 0


def test_a_schema_may_declare_not_null(spark: SparkSession, tmp_path: Path) -> None:
    """The rows are the same, and Spark knows it; where a path says no partition, that is an error and no zero."""
    declared = "key binary, partition int not null, offset bigint not null"
    path = write_log(tmp_path / "orders-7", batch(0), batch(1))
    reader = spark.read.format("raftlog").schema(declared)
    assert [field.nullable for field in reader.load(str(path)).schema] == [True, False, False]
    assert [(row.partition, row.offset) for row in reader.load(str(path)).collect()] == [(7, 0), (7, 1)]
    nowhere = write_log(tmp_path / "nowhere", batch(0))
    with pytest.raises(PythonException, match=f"column partition is NOT NULL, and there are nulls in {nowhere}"):
        reader.load(str(nowhere)).collect()


def test_damage_in_one_file_of_many(spark: SparkSession, tmp_path: Path) -> None:
    """The other files are read and the damage is a row; FAILFAST names file, position and offset."""
    for number in range(30):
        write_log(tmp_path / f"orders-{number}", batch(0), batch(1))
    bad = tmp_path / "orders-7" / "00000000000000000000.log"
    size = bad.stat().st_size // 2
    flip(bad, size + 65)
    frame = load(spark, tmp_path, mode="PERMISSIVE")
    [damage] = frame.where("_corrupt is not null").select("_corrupt.*").collect()
    assert (damage.file, damage.position, damage.offset, damage.rule) == (str(bad), size, 1, "batch-crc")
    assert frame.where("_corrupt is null").count() == 59
    assert load(spark, tmp_path, mode="DROPMALFORMED").count() == 59
    with pytest.raises(PythonException, match=rf"{bad}, position {size}, base offset 1: .* \[batch-crc\]"):
        load(spark, tmp_path).collect()
