# SPDX-License-Identifier: Apache-2.0
"""The tables of ``raftlog verify-mirror --out``: what is printed, as rows, with the documented columns."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import attrs
import pyarrow.parquet as pq
import pytest

from raftlog.tools.catalogue.audit_columns import schema_of
from raftlog.tools.mirrors.reporting.mirror_columns import COLUMNS
from tests.checkout import ROOT
from tests.tools.console import run
from tests.tools.mirrors.changed_mirror import MIRROR, copied, move_syncs
from tests.tools.mirrors.reporting.faulty_mirrors import faulty_mirror
from tests.tools.mirrors.verb_runs import refused

SOUND = ("--source", str(MIRROR / "n1"), "--target", str(MIRROR / "n2"))


def rows(out: Path, table: str) -> list[dict[str, Any]]:
    """All rows of a table, of all runs."""
    found = [pq.read_table(path).to_pylist() for path in sorted((out / table).glob("*.parquet"))]
    return [row for of_run in found for row in of_run]


def test_the_tables_are_what_is_printed(tmp_path: Path) -> None:
    """Each line for programs has its row: pairs, findings with both places, moves, and the counts of the run."""
    arguments, out = faulty_mirror(tmp_path), tmp_path / "out"
    outcome = run("verify-mirror", *arguments, "--out", out, "--format", "jsonl")
    assert outcome.exit_code == 2
    pairs = outcome.of_kind("pair")
    names = ("compared", "unverifiable", "lag", "aborted", "anchors_equal", "anchors_wrong", "next_source_offset")
    assert [[row[name] for name in names] for row in rows(out, "pairs")] == [
        [line[name] for name in names] for line in pairs
    ]
    assert [row["source_directory"] for row in rows(out, "pairs")] == [
        line["source_replica"]["directory"] for line in pairs
    ]
    found, places = rows(out, "findings"), ("start_offset", "end_offset")
    of_pairs = [row for row in found if row["source_topic"]]
    assert [
        (row["rule"], row["severity"], *(row[f"{side}_{name}"] for side in ("source", "target") for name in places))
        for row in of_pairs
    ] == [
        (line["rule"], line["severity"], *(line[side][name] for side in ("source", "target") for name in places))
        for line in outcome.of_kind("finding")
    ]
    assert [row["subject"] for row in found if row["subject"]] == ["A -> B", "A -> B"]
    assert [row["rule"] for row in found if row["file"]] == ["batch-crc"]
    moves = outcome.of_kind("move")
    assert [(row["from_alias"], row["group"], row["position"], row["read_again"]) for row in rows(out, "moves")] == [
        (line["from"], line["group"], line["position"], line["read_again"])
        for line in sorted(moves, key=lambda line: (line["source"]["topic"], line["source"]["partition"], line["from"]))
    ]
    (of_run,) = rows(out, "runs")
    (total,) = outcome.of_kind("total")
    assert (of_run["pairs"], of_run["compared"], of_run["verdict"]) == (5, total["compared"], "data-loss")
    assert of_run["damaged"] == total["findings"]["damaged"]


def test_columns(tmp_path: Path) -> None:
    """Each table has the documented columns, also where it has no rows; a second run is added to the first."""
    out, copy = tmp_path / "out", shutil.copytree(SOUND[1], tmp_path / "copy")
    for arguments in (SOUND, ("--source", SOUND[1], "--target", copy, "--policy", "same-offsets")):
        assert run("verify-mirror", *arguments, "--out", out).exit_code == 0
    run_ids = {row["run_id"] for row in rows(out, "runs")}
    assert len(run_ids) == 2
    for table in COLUMNS:
        paths = list((out / table).iterdir())
        assert len(paths) == 2
        assert all(pq.read_schema(path).equals(schema_of(COLUMNS[table])) for path in paths)
        assert {row["run_id"] for row in rows(out, table)} <= run_ids
    syncs = rows(out, "syncs")
    assert (len(syncs), [row["sync_offset"] for row in syncs]) == (52, list(range(52)))
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["success"], summary["policy"], summary["compared"]) == (True, "same-offsets", 651)
    assert summary["run_id"] in (out / "report.html").read_text()


def test_the_columns_are_documented() -> None:
    """The page on mirrors lists each table with its columns, in order."""
    text = (ROOT / "docs/mirrors.md").read_text()
    listed = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", text, re.MULTILINE))
    for table, columns in COLUMNS.items():
        assert re.findall(r"\w+", re.sub(r"\([^)]*\)", "", listed[table])) == list(columns)[1:]


@pytest.mark.parametrize("name", ["out", "source"])
def test_results_are_not_written_elsewhere(name: str, tmp_path: Path) -> None:
    """Neither to a directory that has something else, nor below one that is compared."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").touch()
    arguments = SOUND if name == "out" else ("--source", str(tmp_path / "out"), "--target", SOUND[3])
    line = refused(*arguments, "--out", tmp_path / "out" if name == "out" else tmp_path / "out/results")
    assert str(tmp_path / "out") in line


def test_a_sync_at_the_end_of_int64_is_a_row(tmp_path: Path) -> None:
    """A sync may name any offset: the end of its place is no number of a column, and is told as the greatest one."""
    source, target = copied(tmp_path)
    greatest = (1 << 63) - 1
    move_syncs(source, "tx.orders", lambda sync: attrs.evolve(sync, upstream_offset=greatest))
    outcome = run("verify-mirror", "--source", source, "--target", target, "--out", tmp_path / "out")
    assert outcome.exit_code == 2
    ends = [row["source_end_offset"] for row in rows(tmp_path / "out", "findings") if row["rule"] == "mirror.sync"]
    assert ends
    assert set(ends) == {greatest}
