# SPDX-License-Identifier: Apache-2.0
"""docs/query.md: each question has the printed answer, each command works, and the page names all views."""

import io
import re
import shlex
import shutil
from pathlib import Path

import pytest

from raftlog.tools.querying.query import FORMATS, make_parser
from raftlog.tools.querying.views import SHOWS_SNAPSHOTS, VIEWS, schema_of
from tests.checkout import ROOT
from tests.golden_files import GOLDEN
from tests.tools.console import run
from tests.tools.made_logs import batch, write_log

PAGE = (ROOT / "docs/query.md").read_text()
QUORUM = sorted((GOLDEN / "dynamic-quorum/data").iterdir())
TOPICS = [GOLDEN / "data-topics/data"]
QUESTIONS = re.findall(r"^### (\d+)\. .*?\n\n```sql\n(.*?)```\n\n```text\n(.*?)```$", PAGE, re.MULTILINE | re.DOTALL)


def test_there_are_ten_questions() -> None:
    """They are numbered, and each has its answer."""
    assert [int(number) for number, _, _ in QUESTIONS] == list(range(1, 11))


@pytest.mark.parametrize(("number", "sql", "answer"), QUESTIONS, ids=[number for number, _, _ in QUESTIONS])
def test_a_question_has_its_answer(number: str, sql: str, answer: str) -> None:
    """On the files of a real quorum and of a real broker."""
    outcome = run("query", "-j1", sql, *(QUORUM if int(number) <= 7 else TOPICS))
    assert (outcome.exit_code, outcome.messages, outcome.text) == (0, "", answer)


def test_replicas_that_differ_are_found(tmp_path: Path) -> None:
    """The second question, of two replicas that have another batch at one offset."""
    for node, value in ((1, b"a"), (2, b"b")):
        write_log(tmp_path / f"n{node}/orders-0", batch(0), batch(1, (value,)), batch(2))
        (tmp_path / f"n{node}/meta.properties").write_text(f"version=1\ncluster.id=c\nnode.id={node}\n")
    (row,) = run("query", QUESTIONS[1][1], tmp_path, "--format", "jsonl").objects
    assert row == {"topic": "orders", "partition": 0, "baseOffset": 1, "versions": 2, "nodes": [1, 2]}


def test_missing_offsets_are_found(tmp_path: Path) -> None:
    """The third question, of a log that lacks two batches."""
    write_log(tmp_path / "orders-0", batch(0), batch(3), batch(4), batch(9))
    rows = run("query", QUESTIONS[2][1], tmp_path, "--format", "jsonl").objects
    assert [(row["missing_from"], row["missing_to"]) for row in rows] == [(1, 3), (5, 9)]


def test_the_commands_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each prints something, or leaves its file."""
    monkeypatch.chdir(tmp_path)
    for node in ("n1", "n2"):
        shutil.copytree(GOLDEN / "dynamic-quorum/data" / node, tmp_path / "backup" / node)
    monkeypatch.setattr("sys.stdin", io.StringIO())  # For the shell.
    commands = re.findall(r"^\$ raftlog (query .*)", PAGE, re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        words = [word.replace("/backup", "backup") for word in shlex.split(command, comments=True)]
        outcome = run(*words)
        assert (outcome.exit_code, outcome.messages) == (0, "")
        assert outcome.text or "--shell" in words or Path("records.parquet").exists()
    assert Path("records.parquet").exists()


def test_all_views_and_formats_are_described() -> None:
    """By their names in the first column of the tables; views with snapshots by the column that marks them."""
    described = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    assert described == [*VIEWS, *FORMATS]
    assert {view for view in VIEWS if "isSnapshot" in schema_of(view).names} == SHOWS_SNAPSHOTS
    options = {name for action in make_parser().actions() for name in action.option_strings}
    assert set(re.findall(r"`(--?[a-z-]+)`", PAGE)) <= options | {"--all"}
