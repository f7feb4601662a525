# SPDX-License-Identifier: Apache-2.0
"""The data engineer's page says what the code does: views, options, filters and what errors say."""

import re
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Final

import attrs
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from raftlog.errors import (
    CorruptBatchError,
    DivergedLogError,
    DivergedStreamError,
    MissingExtraError,
    NoJavaError,
    SparkJobError,
    StorageError,
)
from raftlog.offsets import OffsetAndEpoch
from raftlog.tools.audit_command import parser_of
from raftlog.tools.auditing.evidence import Place
from raftlog.tools.dump.explain import run as explain
from raftlog.tools.spark.java_runtime import LEAST_JAVA
from raftlog.tools.spark.planner_check import problem_of
from raftlog.tools.spark.rows import filters, options
from raftlog.tools.spark.rows.options import OPTIONS, VIEWS, SourceOptions
from raftlog.tools.spark.rows.reading import REPLACED
from raftlog.tools.spark.rows.views import CORRUPT, view_schema
from raftlog.tools.spark.source.planning import Committed, Partition, check_something_is_committed
from raftlog.tools.spark.source.stream import RaftLogStreamReader
from raftlog.tools.spark.source.stream_positions import list_logs
from raftlog.tools.spark.spark_failure import INSTALL
from tests.checkout import ROOT
from tests.golden_files import GOLDEN
from tests.tools.made_logs import batch, write_log
from tests.tools.spark import source_reads

PAGE: Final = (ROOT / "docs/spark.md").read_text("utf-8")
ORDERS: Final = GOLDEN / "mirror/data/n1/orders-0"


def section(heading: str) -> str:
    """Return the text under a heading, up to the next one of its level."""
    marks, _, _ = heading.partition(" ")
    [found] = re.findall(rf"^{re.escape(heading)}\n(.*?)(?=^#{{2,{len(marks)}}} |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


def columns_after(text: str) -> list[tuple[str, str]]:
    """Return names and types of the first table in a text."""
    [table] = re.findall(r"^\| column \|.*?\n\n", text + "\n\n", re.MULTILINE | re.DOTALL)[:1]
    return re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", table, re.MULTILINE)


@pytest.mark.parametrize("view", VIEWS)
def test_the_tables_of_views_have_their_columns(view: str) -> None:
    """Each view's table has its columns and Spark's types of them, in their order."""
    asked = SourceOptions.parse({"path": "x", "view": view, "includeHeaders": "true"})
    fields = from_arrow_schema(view_schema(asked)).fields
    _, text = section("### Views").split(f"\n**`{view}`**", 1) if view != "records" else PAGE.split("**`records`**", 1)
    assert columns_after(text) == [(field.name, field.dataType.simpleString()) for field in fields]


def test_the_column_of_damage_is_described() -> None:
    """The last table of the views is of the column that mode PERMISSIVE adds, last."""
    fields = from_arrow_schema(view_schema(SourceOptions.parse({"path": "x", "mode": "PERMISSIVE"}))).fields
    text = section("### Views").split("In mode `PERMISSIVE`", 1)[1]
    assert columns_after(text) == [(CORRUPT, fields[-1].dataType.simpleString())]


def test_the_table_of_options_has_all_of_them_with_their_defaults() -> None:
    """Each option has its row; the default in the row has the same effect as leaving out the option."""
    rows = re.findall(r"^\| `([\w.]+)` \| (?:`([^`]+)` )?\|", section("### Options"), re.MULTILINE)
    assert sorted(name for name, _ in rows) == sorted(OPTIONS)
    silent = SourceOptions.parse({"path": "x"})
    for name, default in rows:
        if default:
            given = SourceOptions.parse({"path": "x", name: default})
            bounds = {side: attrs.evolve(getattr(given, side), option="") for side in ("starting", "ending")}
            assert attrs.evolve(given, **bounds) == silent, name


def test_the_options_of_brokers_are_named() -> None:
    """The page lists exactly the options that are ignored."""
    sentence = section("### Options").split("Other options that begin with", 1)[1].partition(".\n")[0]
    named = {name.lower() for name in re.findall(r"`([\w.]+)`", sentence)} - {"kafka."}
    assert named == set(options._OF_BROKERS)


def test_the_columns_of_filters_are_named() -> None:
    """The columns whose filters are hints are named."""
    named = {name.lower() for name in re.findall(r"`(\w+)`", section("### Filters"))}
    assert named >= filters._OFFSET_COLUMNS | filters._TIMESTAMP_COLUMNS | {"topic", "partition", "iscontrol"}


def test_links_lead_somewhere() -> None:
    """Each link within the page, or to another one, has a heading or a file at its end."""
    for place, anchor in re.findall(r"\]\(([\w./-]*)#?([\w-]*)\)", PAGE):
        page = (ROOT / "docs" / place).read_text("utf-8") if place else PAGE
        headings = {
            re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in re.findall(r"^#+ (.*)", page, re.M)
        }
        assert not anchor or anchor in headings, (place, anchor)


def raised_by(work: Callable[[], object]) -> str:
    """Return the message of the error that some work raises."""
    with pytest.raises(Exception) as caught:
        work()
    return str(caught.value)


def messages(folder: Path) -> list[str]:
    """Return what each mistake gives, in so far as it takes no Spark."""
    late = write_log(folder / "late" / "orders-0", batch(40), name="00000000000000000040.log").parent
    twice = f'["{write_log(folder / "n1" / "orders-0", batch())}", "{write_log(folder / "n2" / "orders-0", batch())}"]'
    orders = SourceOptions.parse({"path": str(ORDERS)})
    others = SourceOptions.parse({"path": str(ORDERS.with_name("orders-1"))})
    reason = Committed(OffsetAndEpoch(0, -1), "nothing is proven to be committed: no file here names the voters")
    nothing = Partition(Place("n1", "__cluster_metadata", 0), (), (), {}, committed=reason)
    other_topic = {"orders-0": {"offset": 0, "epoch": -1, "topicId": "NXQbvU1bTgKz8QHlh0TGwA"}}
    return [
        str(NoJavaError(LEAST_JAVA, "there is none")),
        str(MissingExtraError("spark", "--engine spark")),
        str(SparkJobError("looking at the workers", "…")),
        str(SparkJobError("registering the source", problem_of("python3", "", "no such module") or "")),
        str(SparkJobError("starting on spark://nowhere:7077", "…")),
        str(SparkJobError("reading logs", "…")),
        str(SparkJobError("listing", "standard input cannot be read by Spark workers")),
        str(CorruptBatchError("no", "batch-crc", path="00000000000000000000.log", position=4711, base_offset=193)),
        str(DivergedLogError("the records from offset 40 to 50 (exclusive) have changed meanwhile")),
        str(DivergedStreamError("orders-0", 1234, 7, 1200, 6)),
        str(StorageError("evidence", "read", "evidence of 3 files is missing; --fresh surveys all files again")),
        str(StorageError("a.log", "read", "it was read to position 1 of 2: it has shrunk meanwhile")),
        str(StorageError("a.log", "read", REPLACED)),
        raised_by(lambda: source_reads.splits(ORDERS, veiw="records")),
        raised_by(lambda: source_reads.splits("-")),
        raised_by(lambda: source_reads.splits(folder / "nowhere")),
        raised_by(lambda: source_reads.splits(ORDERS / "partition.metadata")),
        raised_by(lambda: source_reads.splits(late, startingOffsets='{"orders": {"0": 10}}')),
        raised_by(lambda: list_logs(SourceOptions.parse({"paths": twice}))),
        raised_by(lambda: list_logs(SourceOptions.parse({"path": str(ORDERS), "committedOnly": "true"}))),
        raised_by(lambda: check_something_is_committed(nothing)),
        raised_by(lambda: list_logs(others).check({"orders-0": OffsetAndEpoch(1, 0)})),
        raised_by(lambda: RaftLogStreamReader(orders, view_schema(orders)).latestOffset(other_topic)),
        raised_by(lambda: RaftLogStreamReader(orders, view_schema(orders)).latestOffset({"logOffset": 3})),
        f"the Python of a worker, python3, cannot run raftlog (no such module): {INSTALL}",
    ]


OF_SPARK: Final = frozenset(
    {
        "[DATA_SOURCE_NOT_FOUND] … raftlog",
        "[DATA_SOURCE_PUSHDOWN_DISABLED]",
        "[UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY]",
        "[PACKAGE_NOT_INSTALLED] grpcio …",
        "ModuleNotFoundError: No module named 'raftlog'",
    }
)
"""What Spark says in its own words."""


def test_the_messages_are_those_that_the_code_gives(tmp_path: Path) -> None:
    """Each message of ours among the troubles is one that a mistake gives, and each of these is explained."""
    quoted = re.findall(r"^\| `(.*?)`(?: in a query)? \|", section("## When it does not work"), re.MULTILINE)
    patterns = [
        re.compile(".*".join(map(re.escape, re.split(" ?… ?", each))), re.DOTALL)
        for each in quoted
        if each not in OF_SPARK
    ]
    given = messages(tmp_path)
    for pattern in patterns:
        assert any(pattern.search(message) for message in given), pattern.pattern
    for message in given:
        assert any(pattern.search(message) for pattern in patterns), message


def test_the_commands_are_ones() -> None:
    """Every audit of the page is a command line that the parser takes, the job's for spark-submit among them."""
    lines = re.findall(r"^\$ (raftlog audit|spark-submit(?= --)) (.*)", PAGE, re.MULTILINE)
    assert len(lines) == 3
    for program, words in lines:
        arguments = words.split("print(job.__file__)')\"")[-1]
        assert parser_of(program).parse_args(shlex.split(arguments)).paths == ["/mnt/kafka-*"]


def test_the_command_that_explains_damage_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    """The page's command for damage, with a file and a position, shows the batch there."""
    assert "raftlog explain FILE --position" in PAGE
    assert explain([str(next(ORDERS.glob("*.log"))), "--position", "0"]) == 0
    assert capsys.readouterr().out


def test_the_runtimes_are_those_that_are_promised() -> None:
    """The table has a run on each Python of the package, and on the oldest line of Spark that pip accepts."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    pythons = {found for each in project["classifiers"] for found in re.findall(r":: Python :: (3\.\d+)$", each)}
    [oldest] = [each for each in project["optional-dependencies"]["spark"] if each.startswith("pyspark")]
    rows = re.findall(r"^\| (\d+\.\d+)\.\d+ \| (\d+\.\d+)\.\d+ \|", section("## Tested runtimes"), re.MULTILINE)
    assert {python for _, python in rows} == pythons
    assert min(rows, key=lambda row: int(row[0].split(".")[1]))[0] == oldest.removeprefix("pyspark>=")
