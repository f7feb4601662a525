# SPDX-License-Identifier: Apache-2.0
"""The audit as DataFrames: the rows, columns and types of the Parquet tables that the audit on this machine writes."""

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from raftlog.spark import AuditFrames, audit
from raftlog.tools.catalogue.audit_columns import TABLES, schema
from tests.checkout import ROOT
from tests.golden_files import GOLDEN
from tests.spark.audit_results import audit_locally
from tests.tools.made_logs import batch, flip, write_log

pytestmark = pytest.mark.spark

SOURCES = [GOLDEN / "dynamic-quorum/data", GOLDEN / "mirror/data/n1"]
OF_THE_RUN = {"run_id", "started", "finished"}


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log directory with a finding."""
    path = tmp_path_factory.mktemp("damaged")
    flip(write_log(path / "orders-0", batch(0), batch(1)), 65)
    return path


@pytest.fixture(scope="module")
def found(spark: SparkSession, damaged: Path) -> AuditFrames:
    """The results of an audit of two clusters and the damage, in a session whose times are not in UTC."""
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    try:
        return audit(spark, [*SOURCES, damaged], messages=True)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.fixture(scope="module")
def written(damaged: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, pa.Table]:
    """The tables that an audit on this machine writes."""
    out = tmp_path_factory.mktemp("out")
    outcome = audit_locally(out, *SOURCES, damaged)
    return {table: pq.read_table(out / table / f"{outcome.run_id}.parquet") for table in TABLES}


@pytest.mark.parametrize("table", TABLES)
def test_rows_are_those_of_the_tables(found: AuditFrames, written: dict[str, pa.Table], table: str) -> None:
    """Each DataFrame has the rows of its table, in their order, but for the run's id and times."""
    frame: DataFrame = getattr(found, table)
    rows = [_timeless(row) for row in frame.toArrow().cast(schema(table)).to_pylist()]

    assert rows == [_timeless(row) for row in written[table].to_pylist()]
    assert rows
    assert {row["run_id"] for row in frame.select("run_id").distinct().collect()} == {found.run_id}


@pytest.mark.parametrize("table", TABLES)
def test_columns_are_those_of_the_files(spark: SparkSession, found: AuditFrames, tmp_path: Path, table: str) -> None:
    """Columns and types are those that Spark reads from the file, so that both can go to one table."""
    pq.write_table(schema(table).empty_table(), path := tmp_path / "empty.parquet")

    assert getattr(found, table).schema == spark.read.parquet(str(path)).schema


def test_the_verdict_and_the_page(found: AuditFrames) -> None:
    """The verdict is that of the run's row, and the page is of the run."""
    assert found.verdict == "damaged"
    assert [row.verdict for row in found.runs.collect()] == ["damaged"]
    assert found.run_id in found.page


def test_the_example_of_the_docs(spark: SparkSession, damaged: Path, tmp_path: Path) -> None:
    """What docs/spark.md shows works: findings are appended to a table, run by run, and evidence is used again."""
    page = (ROOT / "docs/spark.md").read_text("utf-8")
    [example] = re.findall(r"^```python\n(from raftlog\.spark import audit\n.*?)^```", page, re.MULTILINE | re.DOTALL)
    places = {"/var/lib/kafka": damaged, "/mnt/audits": tmp_path / "out", "/srv/findings": tmp_path / "findings"}
    for name, path in places.items():
        assert name in example
        example = example.replace(name, str(path))
    try:
        for count in (1, 2):
            known: dict[str, Any] = {"spark": spark}
            exec(compile(example, "docs/spark.md", "exec"), known)
            rows = spark.table("audit_findings").collect()
            assert len({row.run_id for row in rows}) == count
            assert "batch-crc" in {row.rule for row in rows}
            assert known["found"].runs.collect()[0].reused_files == count - 1
    finally:
        spark.sql("DROP TABLE IF EXISTS audit_findings")


def _timeless(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in OF_THE_RUN}
