# SPDX-License-Identifier: Apache-2.0
"""``raftlog verify-mirror --engine spark`` finds what it finds on this machine."""

import functools
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from raftlog.tools.mirrors.on_spark import spark_summer
from tests.tools.mirrors.planted_clusters import FAULTS, plant, rules_by_topic, verified

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("part_size", [64 << 20, 1], ids=["whole", "one batch"])
def test_faults_are_found_alike(
    spark: SparkSession, part_size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real mirror and a fault of each kind, at once: the same output to the byte, and the same exit code."""
    sized = functools.partial(spark_summer.SparkSummer, part_size=part_size, task_size=2 << 20)
    monkeypatch.setattr(spark_summer, "SparkSummer", sized)
    source, target = plant(tmp_path)
    local = verified(source, target, "--format", "jsonl")
    lines = verified(source, target, "--format", "jsonl", "--engine", "spark")
    assert lines == local
    assert rules_by_topic(lines) == {name: list(fault.rules) for name, fault in FAULTS.items() if fault.rules}
