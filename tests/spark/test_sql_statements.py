# SPDX-License-Identifier: Apache-2.0
"""The statements and calls of the page's table: those that work, and what the others say."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

from tests.checkout import ROOT
from tests.golden_files import GOLDEN

pytestmark = pytest.mark.spark

PAGE: Final = (ROOT / "docs/spark.md").read_text("utf-8")
[SECTION] = re.findall(r"^## Tables, and writing\n(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)
LINES: Final = re.findall(r"^\| (?!statement|---)(.*) \|$", SECTION, re.MULTILINE)
ROWS: Final = [re.fullmatch(r"(`+) ?(.*?) ?\1 \| (.*)", line) for line in LINES]
CASES: Final = [(row[2], row[3]) for row in ROWS if row is not None]
ORDERS: Final = GOLDEN / "mirror/data/n1/orders-0"


@pytest.fixture(scope="module")
def known(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Provide the names that the calls use; what they have created in the session is dropped at the end."""
    yield {"spark": spark, "rows": spark.range(3), "folder": tmp_path_factory.mktemp("statements")}
    spark.sql("DROP TABLE IF EXISTS named")
    for view in ("logs", "global_temp.logs", "spaced"):
        spark.sql(f"DROP VIEW IF EXISTS {view}")


def run_row(statement: str, known: dict[str, Any]) -> object:
    """Run a call of Python, or statements of SQL, on a real log."""
    placed = statement.replace("/var/lib/kafka", str(ORDERS)).replace("/srv", str(known["folder"]))
    spark: SparkSession = known["spark"]
    if re.match(r"spark\.|rows\.", placed):
        return eval(placed, dict(known))
    return [spark.sql(each).collect() for each in placed.split(";")]


def test_the_table_has_both_kinds() -> None:
    """There are statements that work, and ones that do not."""
    assert None not in ROWS
    works = [outcome for _, outcome in CASES if outcome.startswith("works")]
    assert len(works) >= 4
    assert len(CASES) - len(works) >= 8


@pytest.mark.parametrize(("statement", "outcome"), CASES, ids=[statement for statement, _ in CASES])
def test_statements_do_what_the_page_says(known: dict[str, Any], statement: str, outcome: str) -> None:
    """Each works, or gives the message that is quoted."""
    if outcome.startswith("works"):
        run_row(statement, known)
        return
    [message] = re.findall(r"`(.+?)`", outcome)
    with pytest.raises(Exception, match=re.escape(message)):
        run_row(statement, known)


def test_a_path_with_spaces(known: dict[str, Any], tmp_path: Path) -> None:
    """Views take any path."""
    (tmp_path / "a b").symlink_to(ORDERS.parent)
    spark: SparkSession = known["spark"]
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW spaced USING raftlog OPTIONS (path '{tmp_path}/a b', subscribe 'orders')"
    )
    assert spark.table("spaced").count() > 0
