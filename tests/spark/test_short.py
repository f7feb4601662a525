# SPDX-License-Identifier: Apache-2.0
"""The one test of Spark that ``make test`` runs: all others are marked ``spark``."""

from pyspark.sql import SparkSession

from raftlog.records.columns.columns import read_records
from tests.golden_files import GOLDEN


def test_a_log_as_a_data_frame(spark: SparkSession) -> None:
    """Each record of a metadata log is a row that has its offset, and a filter on offsets finds the same ones."""
    log = next((GOLDEN / "dynamic-quorum").rglob("*.log"))
    offsets = [record.offset for record in read_records(log.read_bytes(), data_only=False)]
    frame = spark.read.format("raftlog").option("view", "records_ext").load(str(log))
    assert [row.offset for row in frame.select("offset").orderBy("offset").collect()] == offsets
