# SPDX-License-Identifier: Apache-2.0
"""The configuration of raftlog's sessions, which is decided before any JVM starts."""

import os

import pytest

from raftlog.tools.spark import session as spark_session
from raftlog.tools.spark.settings import FAST_ARROW
from tests.checkout import ROOT

PAGE = ROOT / "docs" / "spark.md"


@pytest.mark.parametrize(
    ("master", "is_here"),
    [
        ("local", True),
        ("local[2,4]", True),
        ("local-cluster[2,1,1024]", True),
        ("spark://127.0.0.1:7077", True),
        ("spark://localhost:7077", True),
        ("spark://[::1]:7077", True),
        ("spark://10.0.0.1:7077", False),
        ("spark://master.example.org:7077", False),
        ("yarn", False),
        ("k8s://https://10.0.0.1:6443", False),
    ],
)
def test_only_what_stays_here_is_on_loopback(master: str, is_here: bool) -> None:
    """The driver listens on loopback if its workers are on this machine, and else where they can reach it."""
    assert ("spark.driver.host" in spark_session._defaults(master)) is is_here


def test_every_java_of_a_job_reads_arrow_fast() -> None:
    """Driver and executors get the same, and docs/spark.md documents the configuration."""
    ours = spark_session._defaults("local")

    assert ours["spark.executor.defaultJavaOptions"] in ours["spark.driver.defaultJavaOptions"]
    assert PAGE.read_text().count(FAST_ARROW) == 2
    assert ours["spark.buffer.size"] == str(1024 * 1024)  # the page says 1m


def test_variables_are_set_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are as they were afterwards, also after an error: changed ones, and those that were not there."""
    monkeypatch.setenv("SPARK_LOCAL_IP", "10.0.0.1")
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    before = dict(os.environ)

    def fail_in(variables: dict[str, str]) -> None:
        with spark_session._environment(variables):
            assert {name: os.environ[name] for name in variables} == variables
            raise KeyError

    with pytest.raises(KeyError):
        fail_in({"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": "x"})
    assert dict(os.environ) == before


def test_the_python_that_a_user_names_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """`PYSPARK_PYTHON` is set to the running Python only where the user has not set it."""
    monkeypatch.setattr(spark_session, "java_home", lambda: "java")
    monkeypatch.setenv("PYSPARK_PYTHON", "theirs")
    assert spark_session._environment_of("local")["PYSPARK_PYTHON"] == "theirs"
