# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the Python that plans queries, in words."""

import pytest
from pyspark.sql.types import StructType

from raftlog import __version__
from raftlog.tools.spark.planner_check import _probe, problem_of


def test_the_same_version_is_no_problem() -> None:
    """A Python that imports this version of raftlog plans queries."""
    assert problem_of("python3", __version__, "") is None


@pytest.mark.parametrize(
    ("version", "problem", "said"),
    [
        ("", "ModuleNotFoundError: No module named 'raftlog'", "cannot run raftlog (ModuleNotFoundError: No module"),
        ("0.0.0", "", f"has raftlog 0.0.0, but this one has {__version__}"),
    ],
)
def test_a_problem_names_the_python_and_a_remedy(version: str, problem: str, said: str) -> None:
    """The line has the path of the Python, what is wrong, and both ways out."""
    told = problem_of("/opt/python3", version, problem) or ""
    assert told.startswith("the Python that plans queries, /opt/python3, ")
    assert said in told
    assert "pip install 'raftlog[spark]'" in told
    assert "PYSPARK_PYTHON" in told
    assert "\n" not in told


def test_the_probe_tells_of_this_python() -> None:
    """Run here, it finds this version of raftlog, and no problem."""
    schema = _probe()({}).schema()
    assert isinstance(schema, StructType)
    told = schema.fields[0].metadata
    assert problem_of(told["python"], told["version"], told["problem"]) is None
