# SPDX-License-Identifier: Apache-2.0
"""``raftlog audit``: tables that agree with ``verify``, and runs that resume an earlier one."""

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from raftlog.tools.auditing.evidence import FileEvidence, SurveyTask
from raftlog.tools.auditing.run.evidence_store import StoredSurvey
from raftlog.tools.auditing.survey.survey import survey as survey_file
from raftlog.tools.catalogue.audit_columns import TABLES, schema
from raftlog.tools.catalogue.audit_rules import CATALOGUE
from tests.golden_files import GOLDEN
from tests.hang_limit import HANG_S
from tests.tools.console import Outcome, run, start
from tests.tools.made_logs import batch, flip, write_log

pq = pytest.importorskip("pyarrow.parquet")

QUORUM = GOLDEN / "dynamic-quorum/data"
METADATA = "__cluster_metadata-0"


def audit(out: Path, *arguments: str | Path) -> Outcome:
    """Run ``raftlog audit`` in this process, which also does the reading."""
    return run("audit", "-j", "1", "--out", out, *arguments)


def rows(out: Path, table: str) -> list[dict[str, Any]]:
    """All rows of a table, of all runs."""
    found: list[dict[str, Any]] = pq.read_table(out / table).to_pylist()
    return found


def summary(out: Path) -> dict[str, Any]:
    """The summary of the last run."""
    found: dict[str, Any] = json.loads((out / "summary.json").read_text())
    return found


@pytest.fixture
def quorum(tmp_path: Path) -> Path:
    """A copy of a quorum's directories, one of them damaged."""
    data = Path(shutil.copytree(QUORUM, tmp_path / "data"))
    flip(min((data / "n2" / METADATA).glob("*.log")), 3000)
    return data


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Where results go."""
    return tmp_path / "out"


def test_the_tables_agree_with_verify(quorum: Path, out: Path) -> None:
    """Findings, counts, exit code and verdict are those of ``verify`` over the same directories."""
    outcome = audit(out, quorum)
    verified = run("verify", "-j", "1", "--all", "--format", "jsonl", quorum)
    expected = verified.of_kind("finding")

    found = rows(out, "findings")
    assert [(row["file"], row["rule"], row["position"], row["offset"], row["reason"]) for row in found] == [
        (each["file"], each["rule"], each["position"], each["offset"], each["reason"]) for each in expected
    ]
    (run_row,) = rows(out, "runs")
    (total,) = verified.of_kind("summary")
    assert outcome.exit_code == verified.exit_code == 2
    for name in ("files", "bytes", "explained_bytes", "damaged_bytes", "padding_bytes", "verdict"):
        assert run_row[name] == total[name] == summary(out)[name]
    assert run_row["run_id"] == summary(out)["run_id"]
    assert outcome.text.startswith("damaged: findings: 0 data-loss, 1 damaged")
    assert len(outcome.text.splitlines()) == 1


def test_columns(quorum: Path, out: Path) -> None:
    """Each table has the documented columns, also where it has no rows, and each row the run that it is of."""
    audit(out, quorum)
    audit(out, quorum / "n1" / "meta.properties")
    run_ids = {row["run_id"] for row in rows(out, "runs")}

    assert len(run_ids) == 2
    for table in TABLES:
        assert len(list((out / table).iterdir())) == 2
        for path in (out / table).iterdir():
            assert pq.read_schema(path).equals(schema(table))
        assert {row["run_id"] for row in rows(out, table)} <= run_ids


def test_timelines(out: Path) -> None:
    """The voter sets and the epochs of a quorum are there, with who led and what changed."""
    audit(out, QUORUM)
    voters, epochs = rows(out, "voter_timeline"), rows(out, "epochs")

    assert [[voter["id"] for voter in row["voters"]] for row in voters] == [
        [1, 2, 3],
        [1, 2, 3],
        [1, 2, 3, 4],
        [2, 3, 4],
    ]
    assert [(row["epoch"], row["leader_id"]) for row in epochs] == [(2, 2), (3, 1), (4, 3)]
    assert all(row["topic"] == "__cluster_metadata" and row["cluster_id"] for row in (*voters, *epochs))


def test_checks(quorum: Path, out: Path) -> None:
    """Each rule has a row: it fails if there is a finding, and passes if there was something to check."""
    audit(out, quorum)
    status = {row["rule"]: row["status"] for row in rows(out, "checks")}
    found = {row["rule"] for row in rows(out, "findings")}

    assert list(status) == list(CATALOGUE)
    assert {rule for rule, each in status.items() if each == "fail"} == found
    assert status["voters-overlap"] == status["replica-leader"] == "pass"
    assert status["decoder-raised"] == "skipped"


def test_checks_that_had_nothing_to_check(tmp_path: Path, out: Path) -> None:
    """A rule about what is not there is skipped, not passed."""
    write_log(tmp_path / "data/orders-0", batch())
    audit(out, tmp_path / "data")
    status = {row["rule"]: row["status"] for row in rows(out, "checks")}

    for rule in ("voters-overlap", "replica-leader", "snapshot-footer", "index-order", "cluster-foreign"):
        assert status[rule] == "skipped"
    for rule in ("batch-crc", "offset-order", "sequence-gap"):
        assert status[rule] == "pass"


def test_a_check_that_could_not_run_has_not_passed(tmp_path: Path, out: Path) -> None:
    """Where something could not be read, what was not found may be there all the same."""
    write_log(tmp_path / "data/orders-0", batch())
    (tmp_path / "data/orders-0/00000000000000000007.log").symlink_to(tmp_path / "nowhere")
    outcome = audit(out, tmp_path / "data")
    status = {row["status"] for row in rows(out, "checks")}

    assert outcome.exit_code == 1
    assert outcome.text.startswith("unreadable: ")
    assert status == {"fail", "error"}
    assert summary(out)["success"] is False


def test_unchanged_files_are_not_read_again(quorum: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second run surveys nothing and says the same; after a change it surveys that file; ``--fresh`` reads all."""
    surveyed = []

    def note(task: SurveyTask) -> FileEvidence:
        surveyed.append(Path(task.path))
        return survey_file(task)

    monkeypatch.setattr("raftlog.tools.auditing.run.local_engine.StoredSurvey.__call__", _noting(note))
    first = audit(out, quorum)
    count = len(surveyed)
    surveyed.clear()
    second = audit(out, quorum)
    assert surveyed == []
    assert summary(out)["reused_files"] == summary(out)["files"]

    changed = quorum / "n1" / METADATA / "quorum-state"
    changed.write_bytes(changed.read_bytes())
    audit(out, quorum)
    assert surveyed == [changed]
    surveyed.clear()
    audit(out, "--fresh", quorum)
    assert len(surveyed) == count

    assert (second.exit_code, second.text.split(";")[0]) == (first.exit_code, first.text.split(";")[0])
    one, two, *_ = (
        [row for row in rows(out, "findings") if row["run_id"] == run["run_id"]] for run in rows(out, "runs")
    )
    assert [row | {"run_id": ""} for row in one] == [row | {"run_id": ""} for row in two]


def _noting(survey: Callable[[SurveyTask], FileEvidence]) -> Callable[[StoredSurvey, SurveyTask], FileEvidence]:
    """A ``StoredSurvey`` of this survey."""

    def call(self: StoredSurvey, task: SurveyTask) -> FileEvidence:
        return self._stored(task) or survey(task)

    return call


def test_a_killed_run_is_resumed(tmp_path: Path, out: Path) -> None:
    """A process that is killed in the middle leaves no half of a run; the next one reads what that had not."""
    for number in range(300):
        write_log(tmp_path / f"data/orders-{number}", batch())
    fifo = tmp_path / "zzz/00000000000000000000.log"
    fifo.parent.mkdir()
    os.mkfifo(fifo)
    arguments = ["audit", "-j", "1", "--out", str(out), str(tmp_path / "data"), str(fifo)]
    # The named pipe comes last and blocks the run: by then 256 files at least were made to last.
    with start(*arguments) as process, _opened_by(process, fifo):
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert process.returncode == -signal.SIGKILL
    assert _evidence_count(out) >= 256
    assert not list((out / "runs").glob("*.parquet"))
    assert not (out / "summary.json").exists()

    assert audit(out, tmp_path / "data").exit_code in {0, 3}
    assert len(rows(out, "runs")) == 1
    assert summary(out)["reused_files"] >= 256
    assert not list(out.rglob(".*.parquet"))


@contextlib.contextmanager
def _opened_by(process: "subprocess.Popen[bytes]", fifo: Path) -> Iterator[None]:
    """Wait until a process has opened a named pipe to read it, which then blocks; or until the process has ended."""

    def open_for_the_dead() -> None:
        process.wait()
        os.close(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK))

    # Whoever opens a named pipe waits for the other end. Should the process end without opening it, the thread does.
    waiter = threading.Thread(target=open_for_the_dead)
    waiter.start()
    try:
        with fifo.open("wb"):
            yield
    finally:
        process.kill()
        waiter.join()


def _evidence_count(out: Path) -> int:
    with contextlib.closing(sqlite3.connect(f"file:{out / 'evidence.sqlite'}?mode=ro", uri=True)) as database:
        count: int = database.execute("SELECT count(*) FROM evidence").fetchone()[0]
        return count


def test_a_directory_that_is_not_ours(tmp_path: Path) -> None:
    """A directory that holds something else, a file, and one of another version are left alone, with one line."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "letter.txt").write_text("dear")
    newer = tmp_path / "newer"
    newer.mkdir()
    (newer / "raftlog-audit.json").write_text('{"format": 99}')
    (tmp_path / "file").write_text("x")
    for out, message in (
        (theirs, "exists, is not empty and is not the output of raftlog audit"),
        (newer, "is the output of another version of raftlog audit"),
        (tmp_path / "file", "open failed: File exists"),
    ):
        outcome = audit(out, QUORUM)
        assert outcome.exit_code == 1
        assert len(outcome.complaints) == 1
        assert message in outcome.complaints[0]
    assert [path.name for path in theirs.iterdir()] == ["letter.txt"]
    assert audit(tmp_path / "empty" / "new", QUORUM / "n1").exit_code == 0


def test_results_are_not_written_to_what_is_audited(quorum: Path) -> None:
    """An output directory inside of a source is refused, also by way of a link."""
    link = quorum.parent / "link"
    link.symlink_to(quorum)
    for out in (quorum / "out", link / "out", quorum):
        outcome = audit(out, quorum)
        assert (outcome.exit_code, len(outcome.complaints)) == (1, 1)
        assert "an audited directory is not written to" in outcome.complaints[0]
    assert sorted(path.name for path in quorum.iterdir()) == sorted(path.name for path in QUORUM.iterdir())


def test_two_first_runs_at_once(out: Path) -> None:
    """Of runs that make a directory at once, one gets it, and the others hear that it is in use."""
    from raftlog.errors import DirectoryLockedError
    from raftlog.tools.auditing.run.audit_output import AuditOutput

    def take(number: int) -> bool:
        barrier.wait()
        try:
            with AuditOutput(str(out / str(number // 4)), f"run {number}"):
                everyone.wait()
                return True
        except DirectoryLockedError:
            everyone.wait()
            return False

    barrier, everyone = threading.Barrier(40, timeout=HANG_S), threading.Barrier(40, timeout=HANG_S)
    with ThreadPoolExecutor(40) as threads:
        got = list(threads.map(take, range(40)))

    assert [sum(got[first : first + 4]) for first in range(0, 40, 4)] == [1] * 10


def test_two_runs_at_once(out: Path) -> None:
    """A second run on an output directory that is in use is refused."""
    from raftlog.tools.auditing.run.audit_output import AuditOutput

    with AuditOutput(str(out), "first"):
        outcome = audit(out, QUORUM / "n1")

    assert (outcome.exit_code, len(outcome.complaints)) == (1, 1)
    assert audit(out, QUORUM / "n1").exit_code == 0


def test_odd_names(tmp_path: Path, out: Path) -> None:
    """A name that is not valid Unicode is escaped in the tables, and found again in the store."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff\nb"))
    write_log(folder / "orders-0", batch(), b"torn")
    audit(out, folder)
    outcome = audit(out, folder)

    assert rf"{tmp_path}/a\udcff" + "\nb/orders-0/" in rows(out, "findings")[0]["file"]
    assert summary(out)["reused_files"] == 1
    assert outcome.exit_code == 3


def test_a_damaged_store(out: Path) -> None:
    """A store that is not a database is one clear line, with advice."""
    audit(out, QUORUM / "n1")
    (out / "evidence.sqlite").write_bytes(b"no database" * 1000)
    outcome = audit(out, QUORUM / "n1")

    assert outcome.exit_code == 1
    assert "without this file, everything is surveyed again" in outcome.complaints[0]
    (out / "evidence.sqlite").unlink()
    assert audit(out, QUORUM / "n1").exit_code == 0


def test_usage() -> None:
    """A command line without sources or output directory is one line that says so."""
    for arguments in ([], ["x"], ["--out", "x"]):
        outcome = run("audit", *arguments)
        assert (outcome.exit_code, len(outcome.complaints)) == (1, 1)
