# SPDX-License-Identifier: Apache-2.0
"""Spark's errors of two hundred lines are reduced to one, with advice if there is any."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkRuntimeError

from raftlog import __version__
from raftlog.errors import SparkJobError
from raftlog.tools.spark.audit.worker_check import problem_of
from raftlog.tools.spark.spark_failure import failures_of, reason_of

JOB_ABORTED = """\
Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times, most recent failure: Lost task 0.3
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
    process()
{error}

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:595)
Caused by: something else
"""


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ("ValueError: no", "ValueError: no"),
        (
            "raftlog.errors.MissingExtraError: lz4 needs a package",
            "raftlog.errors.MissingExtraError: lz4 needs a package",
        ),
        ("MemoryError", "MemoryError"),
    ],
)
def test_the_error_of_python_on_a_worker(error: str, reason: str) -> None:
    """The reason is the error of the worker's Python."""
    assert reason_of(JOB_ABORTED.format(error=error)) == reason


def test_a_missing_package() -> None:
    """A Python without the package gives a line that says how to install it."""
    reason = reason_of(JOB_ABORTED.format(error="ModuleNotFoundError: No module named 'raftlog'"))

    assert reason.startswith(
        "the Python of the workers lacks packages (ModuleNotFoundError: No module named 'raftlog')"
    )
    assert "pip install 'raftlog[spark]'" in reason
    assert "PYSPARK_PYTHON" in reason


def test_the_error_of_java() -> None:
    """The reason is the error of Java's, not the name of what was called."""
    text = (
        "An error occurred while calling None.org.A.\n: org.apache.spark.SparkException: Could not parse\n\tat a.B(C)"
    )

    assert reason_of(text) == "SparkException: Could not parse"


@given(st.text())
def test_any_text(text: str) -> None:
    """Whatever Spark says, the reason is a line of it, and there is one."""
    reason = reason_of(text)

    assert reason
    assert len(reason.splitlines()) == 1


def test_errors_of_spark_are_ours() -> None:
    """Errors of Spark become a SparkJobError, which names the work; other errors are unchanged."""
    with pytest.raises(SparkJobError, match="Spark failed at surveying: no"), failures_of("surveying"):
        raise PySparkRuntimeError("no")
    with pytest.raises(ZeroDivisionError), failures_of("surveying"):
        raise ZeroDivisionError


def test_versions() -> None:
    """A worker must have the driver's version."""
    python = "/usr/bin/python3"
    assert problem_of(python, __version__, "") is None
    assert problem_of(python, "0.0.0", "") == (
        f"the Python of a worker, {python}, has raftlog 0.0.0, but the driver has {__version__}"
    )
    assert problem_of(python, "", "No module named 'raftlog'") == (
        f"the Python of a worker, {python}, cannot run the audit (No module named 'raftlog')"
    )
