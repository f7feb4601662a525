# SPDX-License-Identifier: Apache-2.0
"""The choice of engine: Spark only if one was named, and if it pays."""

import argparse
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.audit_command import parser_of
from raftlog.tools.audit_verbs.engine_choice import LEAST_SPARK_SIZE, choose_engine, spark_at_hand
from tests.golden_files import GOLDEN
from tests.tools.console import run


@given(spark=st.none() | st.just("Spark is at local[2]"), size=st.integers(0, 2**45), is_piped=st.booleans())
def test_the_choice(spark: str | None, size: int, is_piped: bool) -> None:
    """Spark is chosen if there is one, for much, and not for standard input; there is always a reason."""
    choice = choose_engine(spark, ["-"] if is_piped else ["data"], size)

    assert choice.is_spark == (spark is not None and size >= LEAST_SPARK_SIZE and not is_piped)
    assert choice.reason


def test_ways_to_name_a_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user, spark-submit or the variable of Spark Connect."""
    monkeypatch.delitem(sys.modules, "pyspark.sql", raising=False)

    assert spark_at_hand("local[2]", {}) == "Spark is at local[2]"
    assert spark_at_hand(None, {"PYSPARK_GATEWAY_PORT": "1"}) == "this was started by spark-submit"
    assert spark_at_hand(None, {"SPARK_REMOTE": "sc://there"}) == "Spark Connect is at sc://there"
    assert spark_at_hand(None, {}) is None


def test_auto_reports_its_choice(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard error has the engine and the reason, and standard output what it always has."""
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    source = GOLDEN / "dynamic-quorum" / "data" / "n1"
    outcome = run("audit", "-j", "1", "--engine", "auto", "--master", "local[2]", "--out", f"{tmp_path}/out", source)

    assert "the engine is local: this machine reads 0.0 GiB before Spark has started" in outcome.messages
    assert outcome.exit_code == 0


def test_options() -> None:
    """The default engine is that of this machine."""
    given_options = parser_of("raftlog audit").parse_args(["data", "--out", "out"])

    assert isinstance(given_options, argparse.Namespace)
    assert (given_options.engine, given_options.master) == ("local", None)
