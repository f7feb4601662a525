# SPDX-License-Identifier: Apache-2.0
"""Audits on both engines, and their results without ids and times, so that tests can compare them."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from raftlog.tools.auditing.evidence import FileEvidence, SurveyTask
from raftlog.tools.auditing.run.full_audit import AuditOutcome, audit_into
from raftlog.tools.auditing.run.local_engine import LocalEngine
from raftlog.tools.auditing.survey.survey import survey as survey_file
from raftlog.tools.catalogue.audit_columns import TABLES
from raftlog.tools.report.page import Report
from raftlog.tools.spark.audit.audit_engine import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OF_THE_RUN = ("run_id", "started", "finished")


def audit_locally(out: Path, *sources: Path | str) -> AuditOutcome:
    """Audit in this process, including messages in metadata records."""
    paths = list(map(str, sources))
    return audit_into(str(out), paths, LocalEngine(paths, 1, reads_messages=True), Report(paths))


def audit_on_spark(
    spark: "SparkSession",
    out: Path,
    *sources: Path | str,
    survey: Callable[[SurveyTask], FileEvidence] = survey_file,
    is_fresh: bool = False,
) -> AuditOutcome:
    """Audit on Spark, including messages in metadata records."""
    paths = list(map(str, sources))
    engine = SparkEngine(spark, paths, is_fresh, reads_messages=True, survey=survey)
    return audit_into(str(out), paths, engine, Report(paths))


def results(out: Path, outcome: AuditOutcome) -> dict[str, Any]:
    """The results of a run: rows in their order, summary and page, without run id and times."""

    def without(row: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in row.items() if name not in _OF_THE_RUN}

    found: dict[str, Any] = {
        table: list(map(without, pq.read_table(out / table / f"{outcome.run_id}.parquet").to_pylist()))
        for table in TABLES
    }
    found["summary"] = without(json.loads((out / "summary.json").read_text()))
    page = (out / "report.html").read_text().replace(outcome.run_id, "")
    found["page"] = re.sub(r"<dt>Finished</dt><dd>[^<]*</dd>", "", page)
    return found


def assert_equal_on_spark(spark: "SparkSession", directory: Path, sources: Sequence[Path | str]) -> dict[str, Any]:
    """Audit the same paths on both engines, check that the results are equal, and return them."""
    local, on_spark = directory / "local", directory / "spark"
    here = results(local, audit_locally(local, *sources))
    there = results(on_spark, audit_on_spark(spark, on_spark, *sources))
    for name in here:
        assert there[name] == here[name], name
    return here
