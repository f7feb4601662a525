# SPDX-License-Identifier: Apache-2.0
"""The views of the audit have the rows of the verbs ``voters``, ``epochs`` and ``verify``."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from raftlog.tools.querying import audit_rows
from raftlog.tools.querying.audit_rows import findings_table, timeline_tables
from raftlog.tools.querying.views import AUDIT_VIEWS, camel_case, schema_of
from tests.golden_files import GOLDEN
from tests.tools.console import run
from tests.tools.querying.queries import given

QUORUMS = [GOLDEN / name / "data" for name in ("dynamic-quorum", "static-upgrade", "killed", "wire")]


def plain(value: Any) -> Any:
    """Return a value with the names of the verbs' JSON lines, and times in ms."""
    if isinstance(value, dict):
        return {name.lower().replace("_", ""): plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return int(value.timestamp() * 1000) if isinstance(value, datetime) else value


@pytest.mark.parametrize("quorum", QUORUMS, ids=lambda path: path.parent.name)
@pytest.mark.parametrize("view", ["voters", "epochs"])
def test_timelines_are_those_of_the_verbs(view: str, quorum: Path) -> None:
    """Row by row, member by member; a time that is not known is null, where the verbs have a negative one."""
    tables, _ = timeline_tables(given(quorum), "test")
    rows = [plain(row) for row in tables[view].to_pylist()]
    lines = [plain(line) for line in run(view, "-j1", "--format", "jsonl", quorum).objects]
    assert lines
    for row, line in zip(rows, lines, strict=True):
        del line["kind"]
        shown = {name: row[name] for name in line}
        for name in ("timestamp", "starttimestamp"):
            if line.get(name, 0) < 0:
                line[name] = None
        assert shown == line
        assert row["topic"] == "__cluster_metadata"
        assert row["clusterid"]


@pytest.mark.parametrize("place", [GOLDEN / "killed", GOLDEN / "damaged/data"], ids=lambda path: path.name)
def test_findings_are_those_of_verify(place: Path) -> None:
    """All of them, also the harmless ones."""
    rows = findings_table(given(place), "test").to_pylist()
    lines = run("verify", "-j1", "--all", "--format", "jsonl", place).of_kind("finding")
    assert lines
    found = [(row["rule"], row["severity"], row["position"], row["offset"], row["reason"]) for row in rows]
    key = json.dumps
    expected = [[line[name] for name in ("rule", "severity", "position", "offset", "reason")] for line in lines]
    assert sorted(map(list, found), key=key) == sorted(expected, key=key)
    assert {row["directory"] is None or Path(row["directory"]).is_dir() for row in rows} == {True}


@pytest.mark.parametrize("view", AUDIT_VIEWS)
def test_tables_without_rows_have_columns(view: str, tmp_path: Path) -> None:
    """As many as with rows; none is called as in a table, and none is about a run."""
    assert schema_of(view).names == [camel_case(name) for name in schema_of(view).names]
    assert "runId" not in schema_of(view).names
    empty = (
        findings_table(given(tmp_path), "test")
        if view == "findings"
        else timeline_tables(given(tmp_path), "test")[0][view]
    )
    assert empty.schema == schema_of(view)


def _noted(function: Callable[..., Any], name: str, made: list[str]) -> Callable[..., Any]:
    def noted(*arguments: Any) -> Any:
        made.append(name)
        return function(*arguments)

    return noted


def test_a_view_that_is_not_named_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """An audit reads all files: only a query with its name, in any case, makes one; a description needs none."""
    made: list[str] = []
    for name in ("findings_table", "timeline_tables"):
        monkeypatch.setattr(audit_rows, name, _noted(vars(audit_rows)[name], name.split("_")[0], made))
    node = GOLDEN / "dynamic-quorum/data/n1"
    for sql, expected in {
        "FROM batches LIMIT 1": [],
        "DESCRIBE findings": [],
        "SHOW TABLES": [],
        "FROM (DESCRIBE Epochs)": ["timeline"],
        "WITH f AS (FROM Findings) SELECT count(*) FROM f": ["findings"],
        'SELECT count(*) FROM "VOTERS"': ["timeline"],
        "SELECT (SELECT count(*) FROM main.findings), max(epoch) FROM epochs": ["findings", "timeline"],
    }.items():
        made.clear()
        assert run("query", "-j1", sql, node).exit_code == 0
        assert made == expected


def test_times_are_times() -> None:
    """In UTC."""
    tables, _ = timeline_tables(given(GOLDEN / "dynamic-quorum/data"), "test")
    first = tables["epochs"].to_pylist()[0]["startTimestamp"]
    assert first == datetime(2026, 11, 21, 10, 47, 38, 907000, tzinfo=UTC)
