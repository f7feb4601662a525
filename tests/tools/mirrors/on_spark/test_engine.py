# SPDX-License-Identifier: Apache-2.0
"""The choice of engine for ``raftlog verify-mirror``, without a Spark that runs."""

import sys

import pytest

from raftlog.tools.audit_verbs import engine_choice
from tests.tools.console import run
from tests.tools.mirrors.changed_mirror import MIRROR

ARGUMENTS = ("verify-mirror", "--source", MIRROR / "n1", "--target", MIRROR / "n2")


def test_the_local_engine_is_the_default() -> None:
    """It prints what ``--engine local`` prints."""
    assert run(*ARGUMENTS) == run(*ARGUMENTS, "--engine", "local")


@pytest.mark.parametrize(
    ("spark", "why"),
    [
        (None, "no Spark is configured (see --master)"),
        ("Spark is at local[2]", "this machine reads 0.0 GiB before Spark has started"),
    ],
    ids=["no Spark", "a small mirror"],
)
def test_auto_says_what_it_has_chosen(spark: str | None, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On standard error; standard output is that of the local engine."""
    monkeypatch.setattr(engine_choice, "spark_at_hand", lambda _: spark)
    outcome = run(*ARGUMENTS, "--engine", "auto")
    assert outcome.messages == f"raftlog verify-mirror: the engine is local: {why}\n"
    assert outcome.output == run(*ARGUMENTS).output


def test_spark_that_is_missing_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pyspark, what to install is said, and nothing is read."""
    monkeypatch.setitem(sys.modules, "raftlog.tools.spark.session", None)
    outcome = run(*ARGUMENTS, "--engine", "spark")
    assert (outcome.exit_code, outcome.output) == (1, b"")
    (line,) = outcome.complaints
    assert line.startswith("raftlog verify-mirror: --engine spark needs a package that is not installed: pip install")
