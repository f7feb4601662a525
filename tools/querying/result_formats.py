# SPDX-License-Identifier: Apache-2.0
"""The formats of a result. Rows are written as they are made, so that a result need not fit in memory."""

import itertools
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from raftlog.errors import QueryError
from raftlog.tools.querying.result_values import NULL, json_members, text_of, values_of
from raftlog.tools.terminal.json_lines import encode, one_line
from raftlog.tools.terminal.standard_error import HIDDEN_RANGES, printable
from raftlog.tools.terminal.table_lines import table

Batches = Iterable[pa.RecordBatch]
Texts = Callable[[pa.Schema, Batches], Iterator[str]]

_MOST_ROWS: Final = 1000
_MOST_CHARACTERS: Final = 1024 * 1024
"""A table is aligned by so many rows and characters at a time, each with the names of the columns above them."""
_ROW_GROUP_ROWS: Final = 128 * 1024
_ROW_GROUP_BYTES: Final = 16 * 1024 * 1024
"""The greatest size of a row group of a Parquet file, by either measure."""
_PLAN: Final = ["explain_key", "explain_value"]
"""The columns of what ``EXPLAIN`` returns."""
_QUOTED: Final = re.compile('[",\r\n]|^$|^ | $')
_HIDDEN: Final = re.compile(
    "[" + "".join(f"{chr(first)}-{chr(last)}" for first, last in HIDDEN_RANGES if first > 0x20) + "]"
)


def unique_names(names: Sequence[str]) -> list[str]:
    """Return names for columns, with a number after one that an earlier column has, as DuckDB does in subqueries."""
    taken: set[str] = set()
    found = []
    for name in names:
        numbered = (f"{name}_{number}" for number in itertools.count(1))
        found.append(next(each for each in itertools.chain([name], numbered) if each.lower() not in taken))
        taken.add(found[-1].lower())
    return found


def table_texts(schema: pa.Schema, batches: Batches) -> Iterator[str]:
    """Yield a result as a table for people, and the number of its rows; a plan of ``EXPLAIN`` as its own lines."""
    if schema.names == _PLAN:
        yield from _plan_texts(batches)
        return
    numeric = frozenset(index for index, field in enumerate(schema) if _is_numeric(field.type))
    count = 0
    for page in _pages(batches):
        yield from (f"{line}\n" for line in table([schema.names, *page], numeric))
        count += len(page)
    if not count:
        yield from (f"{line}\n" for line in table([schema.names]))
    yield f"({count} row{'' if count == 1 else 's'})\n"


def _plan_texts(batches: Batches) -> Iterator[str]:
    for _, plan in itertools.chain.from_iterable(map(_rows, batches)):
        yield from (f"{printable(line)}\n" for line in text_of(plan).splitlines())


def csv_texts(schema: pa.Schema, batches: Batches) -> Iterator[str]:
    """Yield a result as CSV (RFC 4180, with line feeds): null is empty, and empty text is quoted.

    On a terminal, characters that it would act upon are escaped.
    """
    shown = printable if sys.stdout is not None and sys.stdout.isatty() else str
    yield ",".join(shown(_csv_cell(name)) for name in schema.names) + "\n"
    for batch in batches:
        for row in _rows(batch):
            yield ",".join("" if each is None else shown(_csv_cell(text_of(each))) for each in row) + "\n"


def jsonl_texts(schema: pa.Schema, batches: Batches) -> Iterator[str]:
    """Yield a result as JSON lines, one object per row."""
    for batch in batches:
        for row in _rows(batch):
            members: dict[str, Any] = {}
            for name, value in zip(schema.names, row, strict=True):
                members |= json_members(name, value)
            yield _HIDDEN.sub(_escape, one_line(encode(members)))


TEXTS: Final[dict[str, Texts]] = {"table": table_texts, "csv": csv_texts, "jsonl": jsonl_texts}
"""The formats of standard output, by name."""


def write_parquet(file: BinaryIO, schema: pa.Schema, batches: Batches) -> int:
    """Write a result as a Parquet file, compressed with zstd, and return the number of its rows.

    Raises:
        QueryError: Parquet has no form for the type of a column, such as INTERVAL.
    """
    count = 0
    try:
        opened = pq.ParquetWriter(file, schema, compression="zstd")
    except pa.ArrowNotImplementedError as error:
        raise QueryError(f"Parquet cannot hold a column: {error}; cast it, such as to VARCHAR") from None
    with opened as writer:
        for group in _groups(batches):
            writer.write_table(pa.Table.from_batches(group, schema))
            count += sum(map(len, group))
    return count


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    return zip(*map(values_of, batch.columns), strict=True)


def _pages(batches: Batches) -> Iterator[list[list[str]]]:
    """Yield rows of cells, a page at a time."""
    page: list[list[str]] = []
    size = 0
    for row in itertools.chain.from_iterable(map(_rows, batches)):
        page.append([NULL if each is None else text_of(each) for each in row])
        size += sum(map(len, page[-1]))
        if len(page) >= _MOST_ROWS or size >= _MOST_CHARACTERS:
            yield page
            page, size = [], 0
    if page:
        yield page


def _groups(batches: Batches) -> Iterator[list[pa.RecordBatch]]:
    group: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        group.append(batch)
        rows += len(batch)
        size += batch.nbytes
        if rows >= _ROW_GROUP_ROWS or size >= _ROW_GROUP_BYTES:
            yield group
            group, rows, size = [], 0, 0
    if group:
        yield group


def _csv_cell(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _escape(match: re.Match[str]) -> str:
    """Escape a character for JSON, as two halves if it needs two."""
    units = match[0].encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
