# SPDX-License-Identifier: Apache-2.0
"""The audit as a job on a cluster of several processes."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from raftlog.tools.auditing.run.full_audit import AuditOutcome
from raftlog.tools.auditing.run.run import Account
from raftlog.tools.spark.spark_failure import INSTALL
from raftlog.tools.terminal.exit_codes import EXIT_ERROR
from tests.golden_files import GOLDEN
from tests.spark.audit_results import audit_locally, results
from tests.spark.own_process import python_without_raftlog, run_python
from tests.spark.standalone_cluster import Cluster, standalone_cluster

pytestmark = pytest.mark.spark

JOB = """
    import sys
    from raftlog.tools.spark.audit_job import main

    sys.exit(main(sys.argv[1:]))
"""
JOB_AND_QUERY = """
    import sys
    from raftlog.tools.spark.audit_job import main
    from raftlog.tools.spark.session import register, session

    log, out, master = sys.argv[1:]
    with session(master) as spark:
        code = main([log, "--out", out], spark)
        register(spark)
        try:
            spark.read.format("raftlog").load(log).collect()
        except Exception as error:
            print(error)
    sys.exit(code)
"""
JOB_THAT_LOSES_AN_EXECUTOR = """
    import os, signal, subprocess, sys
    from raftlog.tools.auditing.run.full_audit import audit_into
    from raftlog.tools.auditing.survey.survey import survey
    from raftlog.tools.report.page import Report
    from raftlog.tools.spark.audit import audit_engine, survey_queue
    from raftlog.tools.spark.session import session

    master, source, out, last, notes = sys.argv[1:]
    survey_queue._MOST_FILES = 5

    def survey_and_die(task):
        with open(notes, "a") as file:
            file.write(task.path + "\\n")
        if task.path == last and not os.path.exists(notes + "-dead"):
            os.mkdir(notes + "-dead")
            process = os.getpid()
            for parent in ("worker", "daemon", "executor"):
                process = int(subprocess.check_output(["ps", "-o", "ppid=", "-p", str(process)]))
            os.kill(process, signal.SIGKILL)
        return survey(task)

    with session(master) as spark:
        engine = audit_engine.SparkEngine(spark, [source], reads_messages=True, survey=survey_and_die)
        print(audit_into(out, [source], engine, Report([source])).run_id)
"""
DATA = GOLDEN / "dynamic-quorum" / "data"


@pytest.fixture(scope="module")
def cluster(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Lend a cluster of two workers."""
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as lent:
        yield lent


def test_on_a_cluster(cluster: Cluster, tmp_path: Path) -> None:
    """Workers that are processes of their own leave the results that one machine leaves."""
    out = tmp_path / "spark"
    arguments = (str(DATA), "--messages", "--out", str(out), "--master", cluster.url)
    done = run_python(JOB, tmp_path, *arguments, **cluster.environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("clean: ")

    run_id = json.loads((out / "summary.json").read_text())["run_id"]
    local = results(tmp_path / "local", audit_locally(tmp_path / "local", DATA))
    assert results(out, AuditOutcome(run_id, Account(), 0)) == local


def test_an_executor_that_dies_late(cluster: Cluster, tmp_path: Path) -> None:
    """Files that a dead executor had surveyed are not surveyed again, except those in progress."""
    last = max((DATA / "n4" / "__cluster_metadata-0").iterdir())
    notes, out = tmp_path / "notes", tmp_path / "spark"
    arguments = (cluster.url, str(DATA), str(out), str(last), str(notes))
    done = run_python(JOB_THAT_LOSES_AN_EXECUTOR, tmp_path, *arguments, **cluster.environment)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "notes-dead").exists()

    times = Counter(notes.read_text().splitlines())
    assert {path for path, count in times.items() if count > 1} <= set(list(times)[-10:])
    assert len(times) > 50
    local = results(tmp_path / "local", audit_locally(tmp_path / "local", DATA))
    assert results(out, AuditOutcome(done.stdout.strip(), Account(), 0)) == local


def test_workers_without_raftlog(cluster: Cluster, tmp_path: Path) -> None:
    """A Python on the workers that lacks raftlog is one line that says what to do, of the audit and of a query."""
    python = python_without_raftlog(tmp_path / "python")
    environment = cluster.environment | {"PYSPARK_PYTHON": str(python)}
    done = run_python(JOB_AND_QUERY, tmp_path, str(DATA), str(tmp_path / "out"), cluster.url, **environment)

    reason = f"the Python of a worker, {python.parent}/bin/python, cannot run %s (No module named 'raftlog'): {INSTALL}"
    assert done.stderr == f"audit_job: Spark failed at looking at the workers: {reason % 'the audit'}\n"
    assert done.returncode == EXIT_ERROR
    assert f"ImportError: {reason % 'raftlog'}" in done.stdout.splitlines()
    assert not (tmp_path / "out" / "summary.json").exists()
