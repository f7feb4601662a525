# SPDX-License-Identifier: Apache-2.0
"""A bug of raftlog's, planted at every depth of an audit: it costs what it was met in, which one line says."""

from pathlib import Path

import pytest

from tests.golden_files import GOLDEN
from tests.tools.console import Outcome, run
from tests.tools.made_logs import batch, flip, write_log

QUORUM = GOLDEN / "dynamic-quorum/data"
AUDITING = "raftlog.tools.auditing"
REPORT = "raftlog.tools.report"


def fail(*_: object) -> None:
    """Fail as a bug does."""
    raise KeyError("planted")


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A log directory, in it a partition with a flipped byte in the middle."""
    write_log(tmp_path / "node", b"version=1\ncluster.id=A\nnode.id=1\n", name="meta.properties")
    flip(write_log(tmp_path / "node" / "orders-0", batch(), batch(1), batch(2)), len(batch()) + 30)
    return tmp_path / "node"


def assert_reported(outcome: Outcome, *, in_output: bool) -> None:
    """There is no traceback, and the fault is reported by a line on the right stream."""
    told = outcome.text.splitlines() if in_output else outcome.complaints
    assert any("KeyError at test_own_faults.py" in line and "'planted'" in line for line in told)
    assert "Traceback" not in outcome.messages


@pytest.mark.parametrize("function", ["log_directories", "by_cluster"])
def test_where_files_are_put_together(function: str, damaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If replicas cannot be determined, the findings inside each file are reported all the same."""
    monkeypatch.setattr(f"{AUDITING}.judgement.judgement.{function}", fail)
    outcome = run("verify", "-j", "1", damaged)

    assert_reported(outcome, in_output=True)
    assert "[batch-crc]" in outcome.text
    assert outcome.exit_code == 2


def test_a_log_in_a_report(damaged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that the report cannot draw is a finding of the run, and of the page."""
    monkeypatch.setattr(f"{REPORT}.gathering.epoch_timeline", fail)
    outcome = run("verify", "-j", "1", damaged, "--report", tmp_path / "out.html")

    assert_reported(outcome, in_output=True)
    page = (tmp_path / "out.html").read_text()
    assert "audit-failed" in page
    assert "batch-crc" in page


@pytest.mark.parametrize("function", ["listed", "byte_maps", "severities", "findings", "facts"])
def test_a_section_of_a_report(function: str, damaged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A section that cannot be made says so in its place, and the command too."""
    monkeypatch.setattr(f"{REPORT}.page.{function}", fail)
    page = tmp_path / "out.html"
    outcome = run("verify", "-j", "1", "--fail-on", "data-loss", damaged, "--report", page)

    assert "KeyError at test_own_faults.py" in outcome.messages
    assert "Traceback" not in outcome.messages
    assert outcome.exit_code == 1
    assert "This is a fault of raftlog" in page.read_text()


@pytest.mark.parametrize("function", ["voter_timeline", "rows_of_timelines"])
def test_timelines_of_an_audit(function: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An audit leaves its tables without the timelines that cannot be made, and counts the fault."""
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(f"{AUDITING}.run.audit_tables.{function}", fail)
    outcome = run("audit", "-j", "1", QUORUM, "--out", tmp_path / "out")

    assert "1 files or directories could not be read or judged" in outcome.text
    assert "audit-failed" in (tmp_path / "out" / "report.html").read_text()
    assert outcome.messages == ""
    assert outcome.exit_code == 1


@pytest.mark.parametrize("function", ["quorum.quorum_view", "quorum_files.by_history"])
def test_a_quorum(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that cannot be shown is one line."""
    monkeypatch.setattr(f"raftlog.tools.audit_verbs.{function}", fail)
    outcome = run("quorum", "-j", "1", QUORUM)

    assert_reported(outcome, in_output=False)
    assert (outcome.text, outcome.exit_code) == ("", 1)


def test_any_verb(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else fails in a command, it ends with one line."""
    monkeypatch.setattr("raftlog.tools.dump.explain.run", fail)
    outcome = run("explain", "batch-crc")

    assert_reported(outcome, in_output=False)
    assert (outcome.text, outcome.exit_code, len(outcome.complaints)) == ("", 1, 1)
