# SPDX-License-Identifier: Apache-2.0
"""An audit on Spark continues after dead workers and readers, and resumes a stopped run."""

import os
import shutil
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from raftlog.errors import MissingExtraError, SparkJobError
from raftlog.tools.auditing.evidence import FileEvidence, SurveyTask
from raftlog.tools.auditing.survey.survey import survey
from raftlog.tools.spark import audit_job
from raftlog.tools.spark.audit import bins, survey_queue, worker_check
from tests.golden_files import GOLDEN
from tests.spark.audit_results import audit_locally, audit_on_spark, results
from tests.spark.conftest import QUICK_START
from tests.spark.own_process import run_python
from tests.tools.made_logs import flip

pytestmark = pytest.mark.spark

QUORUM = GOLDEN / "dynamic-quorum" / "data"
Survey = Callable[[SurveyTask], FileEvidence]
DIES_WHEN_JUDGED = f"""
    import os, signal, sys
    from raftlog.tools.spark.audit import audit_engine
    from raftlog.tools.spark.audit_job import main
    from raftlog.tools.spark.session import session

    audit_engine.outcomes_in = lambda *given: os.kill(os.getpid(), signal.SIGKILL)
    with session("local[2]", {QUICK_START}) as spark:
        main(sys.argv[1:], spark)
"""


@pytest.fixture
def quorum(tmp_path: Path) -> Path:
    """A copy of a quorum's directories, one of them damaged."""
    data = Path(shutil.copytree(QUORUM, tmp_path / "data"))
    flip(min((data / "n2" / "__cluster_metadata-0").glob("*.log")), 3000)
    return data


def victim(data: Path) -> str:
    """One of the files."""
    return str(min((data / "n3" / "__cluster_metadata-0").glob("*.log")))


def noting(notes: Path, then: Callable[[SurveyTask], None] = lambda task: None) -> Survey:
    """A survey that notes what it surveys, and does something more before. Made here, it travels as code."""
    directory = str(notes)
    notes.mkdir()

    def survey_and_note(task: SurveyTask) -> FileEvidence:
        with open(f"{directory}/{task.path.replace('/', '|')}", "a") as note:
            note.write(".")
        then(task)
        return survey(task)

    return survey_and_note


def noted(notes: Path) -> dict[str, int]:
    """The surveyed files, and how often."""
    found = {path.name.replace("|", "/"): path.stat().st_size for path in notes.iterdir()}
    shutil.rmtree(notes)
    return found


def without_counts(found: dict[str, Any]) -> dict[str, Any]:
    """The results of a run except for the number of files that it did not read."""
    return found | {name: [] for name in ("runs", "summary")}


def test_a_worker_that_dies(spark: SparkSession, quorum: Path, tmp_path: Path) -> None:
    """A worker that is killed in the middle of a task costs nothing but time: Spark has another one do the task."""
    path, mark = victim(quorum), str(tmp_path / "killed")

    def kill_worker_once(task: SurveyTask) -> None:
        if task.path == path and not os.path.exists(mark):
            with open(mark, "w"):
                os.kill(os.getppid(), signal.SIGKILL)

    notes = tmp_path / "notes"
    outcome = audit_on_spark(spark, tmp_path / "spark", quorum, survey=noting(notes, kill_worker_once))

    assert noted(notes)[path] == 2
    local = results(tmp_path / "local", audit_locally(tmp_path / "local", quorum))
    assert results(tmp_path / "spark", outcome) == local


def test_a_file_that_kills_its_reader(spark: SparkSession, quorum: Path, tmp_path: Path) -> None:
    """A file whose reader dies costs that file a finding, and no other file anything; the next run tries again."""
    path, notes = victim(quorum), tmp_path / "notes"

    def die(task: SurveyTask) -> None:
        if task.path == path:
            os.kill(os.getpid(), signal.SIGKILL)

    found = results(tmp_path / "spark", audit_on_spark(spark, tmp_path / "spark", quorum, survey=noting(notes, die)))
    said = [row["reason"] for row in found["findings"] if row["rule"] == "file-unreadable"]

    assert said == ["the process that surveyed it was killed by SIGKILL"]
    assert found["runs"][0]["unreadable"] == 1
    assert set(noted(notes).values()) == {1}
    again = audit_on_spark(spark, tmp_path / "spark", quorum, survey=noting(notes))
    assert noted(notes) == {path: 1}
    local = results(tmp_path / "local", audit_locally(tmp_path / "local", quorum))
    assert without_counts(results(tmp_path / "spark", again)) == without_counts(local)


def test_a_run_resumes_a_stopped_run(
    spark: SparkSession, quorum: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files surveyed by completed tasks are not surveyed again, and the results are those of one run."""
    monkeypatch.setattr(survey_queue, "_MOST_FILES", 10)
    path, notes = victim(quorum), tmp_path / "notes"

    def stop(task: SurveyTask) -> None:
        if task.path == path:
            raise MissingExtraError("codecs", "lz4")

    with pytest.raises(SparkJobError, match=r"surveying and judging: .*MissingExtraError.*lz4 needs a package"):
        audit_on_spark(spark, tmp_path / "spark", quorum, survey=noting(notes, stop))
    before = noted(notes)
    kept = set(pq.read_table(tmp_path / "spark" / "evidence")["path"].to_pylist())
    outcome = audit_on_spark(spark, tmp_path / "spark", quorum, survey=noting(notes))
    after = noted(notes)

    assert path in after
    assert kept <= before.keys()
    assert kept.isdisjoint(after)
    assert len(kept) >= 40
    assert not (tmp_path / "spark" / "spark-work").exists()
    local = results(tmp_path / "local", audit_locally(tmp_path / "local", quorum))
    assert without_counts(results(tmp_path / "spark", outcome)) == without_counts(local)


def test_a_driver_that_is_killed_while_it_judges(spark: SparkSession, quorum: Path, tmp_path: Path) -> None:
    """The next run surveys nothing again, and what the killed one has left of its judging does not count."""
    node, out, notes = quorum / "n2", tmp_path / "spark", tmp_path / "notes"
    killed = run_python(DIES_WHEN_JUDGED, tmp_path, str(node), "--messages", "--out", str(out))
    left = sorted(path.name for path in out.glob("spark-work/*/*"))
    outcome = audit_on_spark(spark, out, node, survey=noting(notes))

    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert left == ["bins", "outcomes", "plan.parquet"]
    assert noted(notes) == {}
    assert not (out / "spark-work").exists()
    local = results(tmp_path / "local", audit_locally(tmp_path / "local", node))
    assert without_counts(results(out, outcome)) == without_counts(local)


def test_only_what_has_changed_is_read(spark: SparkSession, quorum: Path, tmp_path: Path) -> None:
    """A second run surveys only changed files, and drops evidence of deleted files once that is most of it."""
    notes, out = tmp_path / "notes", tmp_path / "spark"
    first = audit_on_spark(spark, out, quorum, survey=noting(notes))
    everything = noted(notes)
    flip(Path(victim(quorum)), 2500)
    second = audit_on_spark(spark, out, quorum, survey=noting(notes))

    assert first.reused_files == 0
    assert noted(notes).keys() == {victim(quorum)}
    assert 0 < second.reused_files < second.account.files
    local = results(tmp_path / "local", audit_locally(tmp_path / "local", quorum))
    assert without_counts(results(out, second)) == without_counts(local)
    for node in ("n1", "n2", "n4"):
        shutil.rmtree(quorum / node)
    flip(Path(victim(quorum)), 4000)
    local = results(tmp_path / "local", audit_locally(tmp_path / "local", quorum))
    third = audit_on_spark(spark, out, quorum, survey=noting(notes))
    assert noted(notes).keys() == {victim(quorum)}
    assert without_counts(results(out, third)) == without_counts(local)
    assert spark.read.parquet(str(out / "evidence")).count() < len(everything) / 2
    fourth = audit_on_spark(spark, out, quorum, survey=noting(notes))
    assert noted(notes) == {}
    assert fourth.reused_files == fourth.account.files
    assert without_counts(results(out, fourth)) == without_counts(local)


def test_everything_is_read_again(spark: SparkSession, quorum: Path, tmp_path: Path) -> None:
    """On demand, nothing of earlier runs counts; what a killed task has left half written goes too."""
    notes, out = tmp_path / "notes", tmp_path / "spark"
    audit_on_spark(spark, out, quorum, survey=noting(notes))
    everything = noted(notes)
    (out / "evidence" / ".x-1.parquet.0.part").touch()
    audit_on_spark(spark, out, quorum, survey=noting(notes))
    left = list(out.glob("evidence/.*.part"))
    assert noted(notes) == {}
    again = audit_on_spark(spark, out, quorum, survey=noting(notes), is_fresh=True)

    assert left == []
    assert again.reused_files == 0
    assert noted(notes).keys() == everything.keys()
    assert {path.name.rpartition("-")[0] for path in out.glob("evidence/*.parquet")} == {again.run_id}


@pytest.mark.parametrize("names", [(), ("meta.properties",), ("meta.properties", "__cluster_metadata-0")])
def test_little_is_enough(names: Sequence[str], spark: SparkSession, quorum: Path, tmp_path: Path) -> None:
    """No file at all, and files of a log directory itself alone, are audited as on one machine, again and again."""
    few = tmp_path / "few"
    few.mkdir()
    for name in names:
        (few / name).symlink_to(quorum / "n1" / name)
    local = results(tmp_path / "local", audit_locally(tmp_path / "local", few))

    assert results(tmp_path / "spark", audit_on_spark(spark, tmp_path / "spark", few)) == local
    again = results(tmp_path / "spark", audit_on_spark(spark, tmp_path / "spark", few))
    assert without_counts(again) == without_counts(local)


def test_evidence_is_judged_where_it_belongs_now(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evidence of earlier runs moves with its file to another slice, also where it does not say which it was in."""
    monkeypatch.setattr(bins, "_SLICE_WEIGHT", 100 * bins.MEBIBYTE)
    data = Path(shutil.copytree(GOLDEN / "data-topics" / "data", tmp_path / "data"))
    notes, out = tmp_path / "notes", tmp_path / "spark"
    audit_on_spark(spark, out, data)
    slices = spark.read.parquet(str(out / "evidence")).select("slice").distinct().count()
    first = min(path.name for path in (data / "n1").iterdir() if path.is_dir())
    for path in data.glob(f"*/{first}"):
        shutil.rmtree(path)
    changed = max((data / "n1").glob("*/*.log"))
    flip(changed, 100)
    local = results(tmp_path / "local", audit_locally(tmp_path / "local", data))
    second = audit_on_spark(spark, out, data, survey=noting(notes))
    assert slices > 3
    assert noted(notes).keys() == {str(changed)}
    assert without_counts(results(out, second)) == without_counts(local)
    for path in (out / "evidence").glob("*.parquet"):
        pq.write_table(pq.read_table(path).drop_columns(["slice", "number"]), path)
    for path in (out / "evidence").glob(".*.crc"):
        path.unlink()
    third = audit_on_spark(spark, out, data, survey=noting(notes))
    assert noted(notes) == {}
    assert without_counts(results(out, third)) == without_counts(local)


def test_workers_with_another_raftlog(
    spark: SparkSession, quorum: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is read, one line says that the workers are not like the driver, and what to do."""
    monkeypatch.setattr(worker_check, "__version__", "0.0.0")

    with pytest.raises(SparkJobError, match=r"has raftlog \S+, but the driver has 0\.0\.0: run pip install") as raised:
        audit_on_spark(spark, tmp_path / "out", quorum)
    assert "\n" not in str(raised.value)


def test_the_job_in_a_notebook(
    spark: SparkSession, quorum: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The job works in the session that it is given, returns the exit code of the audit, and leaves the session."""
    code = audit_job.main([str(quorum), "--out", str(tmp_path / "out")], spark)

    assert code == 2
    assert capfdbinary.readouterr().out.startswith(b"damaged: findings: 0 data-loss, 1 damaged")
    assert spark.range(3).count() == 3


def test_an_output_directory_of_any_name(spark: SparkSession, quorum: Path, tmp_path: Path) -> None:
    """Spark writes to and reads from the named directory, however Spark would interpret its name elsewhere."""
    out = tmp_path / "a b%20c" / "{ü,#}[x]*?"
    out.parent.mkdir()
    first = audit_on_spark(spark, out, quorum / "n1")
    second = audit_on_spark(spark, out, quorum / "n1")

    assert second.reused_files == first.account.files
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a b%20c", "data"]
