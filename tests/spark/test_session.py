# SPDX-License-Identifier: Apache-2.0
"""The session that jobs run in: borrowed or made, with what Spark needs and no more."""

import pytest
from pyspark.sql import SparkSession

from raftlog.tools.spark.session import session
from raftlog.tools.spark.settings import PUSHDOWN

pytestmark = pytest.mark.spark


def test_a_session_that_is_there_is_lent_and_left_running(spark: SparkSession) -> None:
    """The caller's session is used unchanged, whatever master was requested, and not stopped."""
    with session("local[1]") as lent:
        assert lent is spark
    assert spark.range(3).count() == 3


def test_a_session_of_ours_is_set_up(spark: SparkSession) -> None:
    """Times are in UTC, rows travel as Arrow, no page is served, and a source may take filters."""
    wanted = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        PUSHDOWN: "true",
    }
    assert {name: spark.conf.get(name) for name in wanted} == wanted
