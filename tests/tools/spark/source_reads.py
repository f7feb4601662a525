# SPDX-License-Identifier: Apache-2.0
"""Reads the source without Spark, as a query would; and reads logs plainly, to compare."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from raftlog.errors import DecodeError
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.tools.spark.rows.filters import Hints
from raftlog.tools.spark.rows.options import SourceOptions
from raftlog.tools.spark.rows.parts import Split
from raftlog.tools.spark.rows.reading import ReadRequest, read_split
from raftlog.tools.spark.rows.views import view_schema
from raftlog.tools.spark.source.planning import list_partitions, plan

Rows = list[dict[str, Any]]


def splits(path: Path | str, hints: Hints | None = None, **given: object) -> list[Split]:
    """Plan a query."""
    options = source_options(path, **given)
    return plan(options, list_partitions(options), hints)


def rows(path: Path | str, hints: Hints | None = None, **given: object) -> Rows:
    """Plan a query, and read all of its splits."""
    return rows_of(splits(path, hints, **given), path, hints, **given)


def rows_of(
    planned: list[Split],
    path: Path | str,
    hints: Hints | None = None,
    schema: pa.Schema | None = None,
    **given: object,
) -> Rows:
    """Read splits that were planned before: the columns of a schema, or all of the view's."""
    options = source_options(path, **given)
    columns = view_schema(options) if schema is None else schema
    request = ReadRequest(options.view, columns, options.mode, options.fails_on_loss, options.redact, hints or Hints())
    found: Rows = []
    for each in planned:
        for batch in read_split(request, each):
            assert batch.schema.equals(request.schema)
            batch.validate(full=True)
            found += batch.to_pylist()
    return found


def source_options(path: Path | str, **given: object) -> SourceOptions:
    """Parse options; an underscore means a dot."""
    texts = {name.replace("_", "."): str(value) for name, value in given.items()}
    return SourceOptions.parse({"path": str(path)} | texts)


def plain_records(data: bytes) -> Iterator[tuple[int, int, bytes | None, bytes | None]]:
    """Yield offset, timestamp in ms, key and value of the data records of a log, as far as its batches read."""
    for piece in split(BufferSource(data)):
        if isinstance(piece, LegacyBatch) or (isinstance(piece, RecordBatch) and not piece.is_control):
            try:
                records: list[Any] = list(piece.records())
            except DecodeError:  # Such a batch has no rows.
                continue
            for record in records:
                yield record.offset, record.timestamp, record.key, record.value
