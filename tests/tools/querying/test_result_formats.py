# SPDX-License-Identifier: Apache-2.0
"""Results are written row by row, whole, and as their readers read them."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.querying import result_formats
from raftlog.tools.querying.result_formats import csv_texts, jsonl_texts, table_texts, unique_names, write_parquet

SCHEMA = pa.schema([("n", pa.int64()), ("t", pa.string()), ("b", pa.binary())])
ROWS = st.lists(
    st.tuples(st.none() | st.integers(-99, 99), st.none() | st.text(), st.none() | st.binary()), max_size=20
)


def batches(rows: list[tuple[Any, ...]], size: int = 3) -> list[pa.RecordBatch]:
    table = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)
    return list(table.to_batches(max_chunksize=size))


@given(ROWS)
def test_csv_and_json_have_each_row(rows: list[tuple[int | None, str | None, bytes | None]]) -> None:
    """Python's readers find as many rows, and in them text that is what it was."""
    text = "".join(csv_texts(SCHEMA, batches(rows)))
    head, *cells = csv.reader(io.StringIO(text, newline=""))
    assert head == SCHEMA.names
    assert [(row[0], row[1]) for row in cells] == [("" if n is None else str(n), t or "") for n, t, _ in rows]
    lines = list(jsonl_texts(SCHEMA, batches(rows)))
    assert all(line.splitlines() == [line.removesuffix("\n")] for line in lines)
    assert [(row["n"], row["t"]) for row in map(json.loads, lines)] == [(n, t) for n, t, _ in rows]


@given(ROWS)
def test_parquet_has_each_row(rows: list[tuple[int | None, str | None, bytes | None]]) -> None:
    """Also none at all."""
    file = io.BytesIO()
    assert write_parquet(file, SCHEMA, batches(rows)) == len(rows)
    table = pq.read_table(io.BytesIO(file.getvalue()))
    assert [tuple(row.values()) for row in table.to_pylist()] == rows


def test_json_acts_on_no_terminal() -> None:
    """Characters of direction and control are escaped, in pairs if they need two, and read back."""
    odd = "a\x9b\u202eb\U000e0001\u2028"
    (line,) = jsonl_texts(SCHEMA, batches([(1, odd, None)]))
    assert line.isascii()
    assert json.loads(line)["t"] == odd


def test_csv_on_a_terminal_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere it is what it is."""
    rows = batches([(1, "a\x1b[31m", None)])
    assert list(csv_texts(SCHEMA, rows))[1] == "1,a\x1b[31m,\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert list(csv_texts(SCHEMA, rows))[1] == "1,a\\x1b[31m,\n"


@pytest.mark.parametrize(("count", "heads"), [(0, 1), (1, 1), (9, 1), (10, 1), (11, 2), (20, 2), (21, 3)])
def test_a_table_is_aligned_by_pages(count: int, heads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has the names of the columns, and the last line the number of all rows."""
    monkeypatch.setattr(result_formats, "_MOST_ROWS", 10)
    lines = list(table_texts(SCHEMA, batches([(each, "x", b"y") for each in range(count)])))
    assert sum(line.split() == SCHEMA.names for line in lines) == heads
    assert lines[-1] == f"({count} row{'' if count == 1 else 's'})\n"
    assert len(lines) == count + heads + 1


def test_a_page_of_long_cells_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page ends with the row that exceeds its size."""
    monkeypatch.setattr(result_formats, "_MOST_CHARACTERS", 100)
    lines = list(table_texts(SCHEMA, batches([(1, "x" * 99, None), (2, "x", None), (3, "x" * 200, None)])))
    assert [line.split()[0] for line in lines] == ["n", "1", "n", "2", "3", "(3"]


@pytest.mark.parametrize(("rows", "size"), [(4, 1 << 30), (1 << 30, 40)])
def test_row_groups_are_bounded(rows: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By rows and by bytes, and all rows are in one."""
    monkeypatch.setattr(result_formats, "_ROW_GROUP_ROWS", rows)
    monkeypatch.setattr(result_formats, "_ROW_GROUP_BYTES", size)
    file = io.BytesIO()
    write_parquet(file, SCHEMA, batches([(each, "x", b"y") for each in range(20)], size=2))
    metadata = pq.ParquetFile(io.BytesIO(file.getvalue())).metadata
    assert metadata.num_rows == 20
    assert 3 <= metadata.num_row_groups <= 10


def test_rows_are_written_as_they_come() -> None:
    """No format waits for the second batch before it writes the first; a table waits for a page."""
    taken = []

    def noted() -> Iterator[pa.RecordBatch]:
        for batch in batches([(each, "x", b"y") for each in range(9)]):
            taken.append(batch)
            yield batch

    for texts, wanted in ((csv_texts, 4), (jsonl_texts, 3)):
        taken.clear()
        made = texts(SCHEMA, noted())
        for _ in range(wanted):
            next(made)
        assert len(taken) == 1


@given(st.lists(st.sampled_from(["a", "A", "b", "a_1", "A_1"])))
def test_unique_names(names: list[str]) -> None:
    """In any case they differ, the first of each kind is as it was, and the order is the same."""
    found = unique_names(names)
    assert len({name.lower() for name in found}) == len(found) == len(names)
    assert all(new.startswith(old) for old, new in zip(names, found, strict=True))
    assert found[:1] == names[:1]


def test_a_file_for_the_whole_result(tmp_path: Path) -> None:
    """Parquet is compressed with zstd."""
    with (tmp_path / "x").open("wb") as file:
        write_parquet(file, SCHEMA, batches([(1, "x", b"y")]))
    assert pq.ParquetFile(tmp_path / "x").metadata.row_group(0).column(0).compression == "ZSTD"
