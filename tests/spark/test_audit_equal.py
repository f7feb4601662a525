# SPDX-License-Identifier: Apache-2.0
"""The audit on Spark leaves what the audit on this machine leaves: rows in their order, summary and page."""

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from raftlog.tools.findings import Finding
from tests.golden_files import GOLDEN
from tests.planted.faults import FAULTS
from tests.spark.audit_results import assert_equal_on_spark
from tests.spark.planted_trees import plant_all

pytestmark = pytest.mark.spark

OUTSHONE = {"node-twice", "directory-of-other-id", "partition-twice"}
"""Kinds that are about ids of directories: among many copies of these, others are named."""


def test_of_real_logs(spark: SparkSession, tmp_path: Path) -> None:
    """All logs of the corpus at once, replicas and clusters beside each other, give equal results."""
    sources = sorted(path for path in GOLDEN.glob("*/data") if path.is_dir())
    found = assert_equal_on_spark(spark, tmp_path, sources)

    assert found["runs"][0]["files"] > 100
    assert found["voter_timeline"]
    assert found["epochs"]


def test_of_relative_paths_and_odd_names(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers find what is named from where the driver is, and names that are no Unicode are the same in the tables."""
    monkeypatch.chdir(tmp_path)
    source = GOLDEN / "data-topics" / "data" / "n1" / "txn-0"
    for name in (b"data/odd\xff-0", "data/käse-1".encode(), b"data/plain-2"):
        Path(os.fsdecode(name)).parent.mkdir(exist_ok=True)
        Path(os.fsdecode(name)).mkdir()
        for file in source.iterdir():
            (Path(os.fsdecode(name)) / file.name).write_bytes(file.read_bytes()[:-3])
    found = assert_equal_on_spark(spark, tmp_path, ["data", "nowhere"])

    assert {"data", "nowhere"} <= {row["file"].partition("/")[0] for row in found["findings"]}


def test_of_all_planted_faults(spark: SparkSession, tmp_path: Path) -> None:
    """Every kind of fault gives the rows that it gives on one machine, with its rule and place among them."""
    spots = plant_all(tmp_path / "trees")
    rows = assert_equal_on_spark(spark, tmp_path, [tmp_path / "trees"])["findings"]
    found = [
        Finding(row["file"], row["rule"], row["reason"], row["position"], 0, row["offset"], row["epoch"])
        for row in rows
    ]
    missed = {
        name
        for name, spot in spots.items()
        if not any(each.rule in FAULTS[name].rules and spot.is_named_by(each) for each in found)
    }

    assert missed <= OUTSHONE
