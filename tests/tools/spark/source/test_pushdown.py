# SPDX-License-Identifier: Apache-2.0
"""What later versions of Spark push down, called as they will call it: columns and limits."""

import inspect
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSourceReader, EqualTo
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import ArrayType, IntegerType, StructField, StructType

from raftlog.tools.spark.rows.options import VIEWS
from raftlog.tools.spark.rows.views import pruned_schema, view_schema
from raftlog.tools.spark.source.source import RaftLogDataSource, RaftLogFilteringReader, RaftLogReader
from tests.golden_files import GOLDEN
from tests.tools.made_logs import batch, flip, write_log
from tests.tools.spark.source_reads import rows, source_options

NODE = GOLDEN / "mirror/data/n1"


def _reader(path: Path, **given: object) -> RaftLogFilteringReader:
    options = source_options(path, pushdown="true", **given)
    return RaftLogFilteringReader(options, view_schema(options))


def _rows(reader: RaftLogReader, schema: StructType | None = None) -> list[dict[str, Any]]:
    """Read in another process, so to speak; what is read has the schema that was promised."""
    sent: RaftLogReader = cloudpickle.loads(cloudpickle.dumps(reader))  # type: ignore[no-untyped-call]
    batches = [found for partition in sent.partitions() for found in sent.read(partition)]
    assert schema is None or {from_arrow_schema(each.schema).json() for each in batches} <= {schema.json()}
    return [row for each in batches for row in each.to_pylist()]


@pytest.mark.parametrize("view", VIEWS)
def test_each_column_alone_has_its_values(view: str) -> None:
    """A query of one column reads that one, with the values that it has among all."""
    whole = rows(NODE, view=view)
    schema = from_arrow_schema(view_schema(source_options(NODE, view=view)))
    for field in schema.fields:
        reader = _reader(NODE, view=view)
        pruned = reader.pruneColumns(StructType([field]))
        assert pruned.fields == [field]
        assert _rows(reader, pruned) == [{field.name: row[field.name]} for row in whole]


def test_the_order_is_that_of_the_view(tmp_path: Path) -> None:
    """Columns that a query names in another order or case stay in the view's."""
    schema = view_schema(source_options(NODE))
    assert pruned_schema(schema, ["OFFSET", "key"]).names == ["key", "offset"]


@pytest.mark.parametrize("view", VIEWS)
def test_rows_are_counted_without_columns(view: str) -> None:
    """A count needs no column: one that is not unpacked has as many rows."""
    reader = _reader(NODE, view=view)
    [column] = reader.pruneColumns(StructType([])).fields
    assert column.name == "partition"
    assert len(_rows(reader)) == len(rows(NODE, view=view))
    reader = _reader(NODE, view=view, columns="topic")
    assert reader.pruneColumns(StructType([])).names == ["topic"]


def test_structs_are_read_as_a_whole() -> None:
    """A query of one field of a struct gets all: the column has the view's type."""
    reader = _reader(NODE, view="control")
    whole = from_arrow_schema(view_schema(source_options(NODE, view="control")))
    part = StructType([StructField("voters", ArrayType(StructType([StructField("id", IntegerType())])))])
    assert reader.pruneColumns(part).fields == [whole["voters"]]


@pytest.mark.parametrize("limit", [0, 1, 3, 4, 5, 100])
@pytest.mark.parametrize("view", ["records", "batches"])
def test_a_limit_holds_for_each_task(tmp_path: Path, view: str, limit: int) -> None:
    """A task has its first rows, as many as wanted or as there are."""
    for number in range(2):
        write_log(tmp_path / f"orders-{number}", *(batch(offset) for offset in range(4)))
    reader = _reader(tmp_path, view=view, maxRecordsPerPartition=100)
    assert reader.pushLimit(limit) is True
    whole = rows(tmp_path, view=view)
    assert _rows(reader) == [*whole[:4][:limit], *whole[4:][:limit]]


def test_nothing_after_the_limit_is_read(tmp_path: Path) -> None:
    """A limit ends the reading of a file: damage far behind it fails no query."""
    path = write_log(tmp_path / "orders-0", batch(0), *(batch(1 + number, [b"v" * 1024 * 1024]) for number in range(9)))
    flip(path, path.stat().st_size - 1)
    reader = _reader(tmp_path)
    assert reader.pushLimit(1)
    assert [row["offset"] for row in _rows(reader)] == [0]


def test_a_limit_after_filters_is_refused() -> None:
    """Spark applies filters to what a task returns, so that the first rows need not be those that match."""
    reader = _reader(NODE)
    reader.pushFilters([EqualTo(("offset",), 3)])
    assert reader.pushLimit(1) is False
    assert len(_rows(reader)) > 1
    assert _reader(NODE).pushLimit(-1) is False


def test_a_released_spark_calls_none_of_them() -> None:
    """Without pushdown there is nothing that a Spark could refuse; today's has only filters."""
    plain = RaftLogDataSource({"path": str(NODE)}).reader(from_arrow_schema(view_schema(source_options(NODE))))
    for name in ("pruneColumns", "pushLimit"):
        assert not hasattr(plain, name) or getattr(type(plain), name) is getattr(DataSourceReader, name, None)
    assert list(inspect.signature(RaftLogFilteringReader.pruneColumns).parameters) == ["self", "requiredSchema"]
    assert list(inspect.signature(RaftLogFilteringReader.pushLimit).parameters) == ["self", "limit"]
