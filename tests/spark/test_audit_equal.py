# SPDX-License-Identifier: Apache-2.0
"""The audit on Spark leaves what the audit on this machine leaves: rows in their order, summary and page."""

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from raftlog.records.rules import Severity
from raftlog.tools.catalogue.findings import Finding
from tests.golden_files import GOLDEN
from tests.planted.fault import Spot
from tests.planted.faults import FAULTS
from tests.spark.audit_results import assert_equal_on_spark
from tests.spark.planted_trees import plant_all

pytestmark = pytest.mark.spark

OF_DIRECTORY_IDS = (
    "node-twice",
    "directory-of-other-id",
    "directory-of-other-node",
    "partition-twice",
    "topic-replica-of-other-id",
    "topics-of-another-cluster",
)
"""Kinds that need directories whose ids are their own: among copies of these, it is the copying that is told."""


def test_of_real_logs(spark: SparkSession, tmp_path: Path) -> None:
    """All logs of the corpus at once, replicas and clusters beside each other, give equal results."""
    sources = sorted(path for path in GOLDEN.glob("*/data") if path.is_dir())
    found = assert_equal_on_spark(spark, tmp_path, sources)

    assert found["runs"][0]["files"] > 100
    assert found["voter_timeline"]
    assert found["epochs"]


def test_of_relative_paths_and_odd_names(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers find paths relative to the driver's directory; names that are not Unicode are equal in the tables."""
    monkeypatch.chdir(tmp_path)
    source = GOLDEN / "data-topics" / "data" / "n1" / "txn-0"
    for name in (b"data/odd\xff-0", "data/käse-1".encode(), b"data/plain-2"):
        Path(os.fsdecode(name)).parent.mkdir(exist_ok=True)
        Path(os.fsdecode(name)).mkdir()
        for file in source.iterdir():
            (Path(os.fsdecode(name)) / file.name).write_bytes(file.read_bytes()[:-3])
    found = assert_equal_on_spark(spark, tmp_path, ["data", "nowhere"])

    assert {"data", "nowhere"} <= {row["file"].partition("/")[0] for row in found["findings"]}


@pytest.mark.longest
def test_of_planted_faults_beside_each_other(spark: SparkSession, tmp_path: Path) -> None:
    """Kinds of faults give the rows that they give on one machine, each with its rule and place among them."""
    spots = plant_all(tmp_path / "trees", [name for name in FAULTS if name not in OF_DIRECTORY_IDS])
    found = _found_on_spark(spark, tmp_path, tmp_path / "trees")
    missed = [name for name, spot in spots.items() if not any(_tells(each, name, spot) for each in found)]

    assert missed == []


@pytest.mark.parametrize("name", OF_DIRECTORY_IDS)
def test_of_a_planted_fault_alone(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """The other kinds do so in a tree of their own, and nothing else is said there that is not harmless."""
    [spot] = plant_all(tmp_path / "trees", [name]).values()
    found = _found_on_spark(spark, tmp_path, tmp_path / "trees")
    [told] = [each for each in found if each.severity is not Severity.HARMLESS]

    assert _tells(told, name, spot)


def _found_on_spark(spark: SparkSession, directory: Path, source: Path) -> list[Finding]:
    """Return what an audit on Spark finds, which is what one on this machine does."""
    rows = assert_equal_on_spark(spark, directory, [source])["findings"]
    return [
        Finding(row["file"], row["rule"], row["reason"], row["position"], 0, row["offset"], row["epoch"])
        for row in rows
    ]


def _tells(finding: Finding, name: str, spot: Spot) -> bool:
    return finding.rule in FAULTS[name].rules and spot.is_named_by(finding)
