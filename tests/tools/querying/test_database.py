# SPDX-License-Identifier: Apache-2.0
"""DuckDB's messages in one line with their place, results that are taken in part, and errors of scans."""

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import QueryError
from raftlog.tools.querying.database import Database, thread_count, told
from tests.tools.querying.queries import MEMORY


@pytest.fixture
def database(tmp_path: Path) -> Any:
    with Database({"t": pa.table({"a": [1, 2]})}, MEMORY, str(tmp_path)) as database:
        yield database


@given(st.text(" \n", max_size=30), st.integers(0, 200), st.integers(0, 200))
def test_the_place_is_that_in_the_query(before: str, left: int, right: int) -> None:
    """Wherever the wrong word is, also if DuckDB shows only a part of a long line."""
    with Database({}, MEMORY, "") as database:
        line = f"SELECT '{'x' * left}', nocol, '{'y' * right}'"
        sql = before + line
        with pytest.raises(QueryError) as refused:
            database.result(sql)
    number = before.count("\n") + 1
    column = len(before.rpartition("\n")[2]) + line.index("nocol") + 1
    assert str(refused.value).endswith(f"(line {number}, column {column})")


@pytest.mark.parametrize(
    ("message", "sql", "lines_before", "expected"),
    [
        ("Error: x", "", 0, "Error: x"),
        ("Error: x\ny\n\n z", "", 0, "Error: x y z"),
        ("Error: x\n\nLINE 1: SELECT a\n               ^", "SELECT a", 0, "Error: x (line 1, column 8)"),
        ("Error: x\n\nLINE 2: SELECT a\n               ^^", "SELECT a", 1, "Error: x (line 1, column 8)"),
        ("Error: x\n\nLINE 2: SELECT a\n               ^", "SELECT a", 0, "Error: x"),
        ("Error: x\n\nLINE 1: SELECT b\n               ^", "SELECT a", 0, "Error: x"),
        ("Error: x\n\nLINE 1: ...LECT a\n                ^", "SELECT a", 0, "Error: x (line 1, column 8)"),
        ("Error: x\n\nLINE 1: SELECT...\n        ^", "SELECT a", 0, "Error: x (line 1, column 1)"),
    ],
)
def test_messages(message: str, sql: str, lines_before: int, expected: str) -> None:
    """One line; a place only if the query has what the message shows."""
    assert told(message, sql, lines_before) == expected


@pytest.mark.parametrize(
    ("mebibytes", "processors", "expected"),
    [(256, 8, 1), (511, 8, 1), (1023, 8, 1), (1024, 8, 2), (2048, 8, 4), (2048, 3, 3), (4096, 8, 8), (4096, 1, 1)],
)
def test_each_thread_has_its_memory(
    mebibytes: int, processors: int, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """512 MiB, and at most one thread per processor; DuckDB has this many."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(processors)), raising=False)
    assert thread_count(mebibytes * 1024 * 1024) == expected
    with Database({}, mebibytes * 1024 * 1024, str(tmp_path)) as database:
        _, batches = database.result("SELECT current_setting('threads')::INTEGER AS n")
        assert next(batches).to_pylist() == [{"n": expected}]
        batches.close()


def test_advice_is_what_can_be_done(tmp_path: Path) -> None:
    """Where memory does not suffice, the message has no setting in it that a query may not change."""
    with Database({}, 8 * 1024 * 1024, str(tmp_path)) as database, pytest.raises(QueryError) as refused:
        list(database.result("SELECT string_agg(range, ',') FROM range(3000000)")[1])
    text = str(refused.value)
    assert text.startswith("Out of Memory Error: ")
    assert text.endswith("; a greater --memory-limit helps, or fewer columns or rows to sort, join or group")
    assert not {"SET ", "solutions", "http"} & {word for word in ("SET ", "solutions", "http") if word in text}


def test_a_result_may_be_left(database: Database) -> None:
    """Closing it cancels the query, and no thread remains; the next query runs."""
    before = threading.active_count()
    _, batches = database.result("SELECT md5(range::VARCHAR) FROM range(1000000000)")
    assert len(next(batches)) > 0
    batches.close()
    assert threading.active_count() == before
    schema, batches = database.result("SELECT sum(a) AS s FROM t")
    assert schema.names == ["s"]
    assert [batch.to_pylist() for batch in batches] == [[{"s": 3}]]


def running() -> list[threading.Thread]:
    """The threads in which queries run."""
    return [each for each in threading.enumerate() if each.name == "query" and each.is_alive()]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE (a.range * b.range) % 7 = 3",
        "SELECT a.range FROM range(1000000000) a, range(100) b WHERE (a.range * b.range) % 1000000007 = -3",
        "SELECT count(*) FROM range(999999999) WHERE regexp_matches(repeat('ab', range % 99), '((a|b)*c|x+y){1,50}$')",
        "SELECT md5(range::VARCHAR) FROM range(1000000000)",
    ],
    ids=["aggregate", "no rows", "regular expression", "rows"],
)
def test_an_interrupt_reaches_a_query_that_runs(sql: str, database: Database) -> None:
    """Ctrl-C while DuckDB works is raised at once in the thread that waits; the database can be used again."""

    def interrupt() -> None:
        while not running():
            os.sched_yield()
        os.kill(os.getpid(), signal.SIGINT)

    other = threading.Thread(target=interrupt)
    other.start()
    with pytest.raises(KeyboardInterrupt):
        for _ in database.result(sql)[1]:
            pass
    other.join()
    assert not running()
    assert sum(map(len, database.result("FROM t")[1])) == 2


class Interrupting(ds.Dataset):  # type: ignore[misc]
    """A view during whose preparation Ctrl-C is pressed."""

    def __init__(self) -> None:
        self.asked = 0

    @property
    def schema(self) -> pa.Schema:
        self.asked += 1
        os.kill(os.getpid(), signal.SIGINT)
        return pa.schema({"a": pa.int32()})


def test_an_interrupt_of_the_preparation_is_no_error(tmp_path: Path) -> None:
    """Ctrl-C while DuckDB asks a view for its columns is raised as what it is."""
    view = Interrupting()
    with pytest.raises(KeyboardInterrupt):
        Database({"t": view}, MEMORY, str(tmp_path))
    assert view.asked > 0


def test_an_error_after_rows_is_raised_where_they_are_taken(database: Database) -> None:
    """The rows before it may have been taken."""
    sql = "SELECT CASE WHEN range < 900000 THEN 1 ELSE error('stop') END AS x FROM range(1000000)"
    with pytest.raises(QueryError, match=r"^Invalid Input Error: stop$"):
        for _ in database.result(sql)[1]:
            pass


def test_settings_that_duckdb_refuses(tmp_path: Path) -> None:
    """An error of ours, in one line."""
    with pytest.raises(QueryError, match=r"^[^\n]+$"):
        Database({"t": object()}, MEMORY, str(tmp_path))


@pytest.mark.parametrize(
    "sql",
    [
        "FROM t",
        "EXPLAIN FROM t",
        "DESCRIBE t",
        "SHOW TABLES",
        "SUMMARIZE t",
        "VALUES (1)",
        "WITH x AS (FROM t) FROM x",
        "(SELECT 1);",
    ],
)
def test_statements_that_read(sql: str, database: Database) -> None:
    """All have rows."""
    assert sum(map(len, database.result(sql)[1])) > 0
