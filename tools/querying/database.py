# SPDX-License-Identifier: Apache-2.0
"""A DuckDB without access to anything but the views that it is given, whose queries can be interrupted.

DuckDB works in a thread of its own, because it does not always notice a signal, or takes it for an error. Queries
cannot read or write files, load extensions, change settings or see variables of Python. The one exception is the
temporary directory, which is new and empty, and is removed at the end.
"""

import contextlib
import os
import queue
import re
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Final, Self

import duckdb
import pyarrow as pa

from raftlog.errors import QueryError, fresh_copy
from raftlog.invariants import instance_of

_ROWS_AT_ONCE: Final = 256
"""The size of a result's record batches: values may have a megabyte each."""
_WAITING: Final = 4
"""How many record batches of a result are made before one is taken."""
_PAUSE_S: Final = 0.05
_LOCKS: Final = (
    "SET TimeZone='UTC'",
    "SET python_enable_replacements=false",  # Else a name in SQL may be that of a variable of ours.
    "SET enable_external_access=false",
    "SET lock_configuration=true",
)
_PLACE: Final = re.compile(r"^LINE (\d+): (.*)\n( *)\^+", re.MULTILINE)
_CUT: Final = "..."
"""How DuckDB marks that it left out the beginning or the end of a line."""
_CHECK: Final = "EXPLAIN\n"
"""With this before it, a query is checked and not run; it is a line of its own."""
_BARE_OFFSET: Final = re.compile(r"(?<![\w.\"'])offset\b(?![\"'])", re.IGNORECASE)
_OF_MEMORY: Final = re.compile(r"\s*Possible solutions:.*", re.DOTALL)
"""What DuckDB advises when its memory does not suffice: settings that queries cannot change."""
_MORE_MEMORY: Final = "; a greater --memory-limit helps, or fewer columns or rows to sort, join or group"
MEMORY_OF_THREAD: Final = 512 * 1024 * 1024
"""In bytes: with two threads and less for each, DuckDB failed to sort records that one thread sorted, as measured."""
_ADVICE: Final = '; OFFSET is a word of SQL: write the column as "offset" or records.offset'


class Database:
    """One DuckDB in memory.

    Args:
        views: what queries may read, by name: data sets or tables of Arrow.
        memory_limit: in bytes, for DuckDB's own memory; what exceeds it goes to the temporary directory. It decides how
            many threads there are.
        temporary_directory: an empty directory.

    Raises:
        QueryError: DuckDB refuses a setting.
    """

    def __init__(self, views: Mapping[str, Any], memory_limit: int, temporary_directory: str) -> None:
        settings: dict[str, Any] = {
            "memory_limit": f"{memory_limit}B",
            "temp_directory": temporary_directory,
            "threads": thread_count(memory_limit),
        }
        self._views = dict(views)
        try:
            with ThreadPoolExecutor(1) as threads:
                self._connection = threads.submit(_connection, settings, views).result()
        except duckdb.Error as error:
            raise QueryError(told(str(error))) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def result(self, sql: str) -> tuple[pa.Schema, Generator[pa.RecordBatch, None, None]]:
        """Run a query, and return its columns and its rows, which are made as they are taken.

        Close the rows if they are not taken to the end. If Ctrl-C interrupts the wait for rows, the query is cancelled.

        Raises:
            QueryError: the text is not one statement that returns rows, or DuckDB cannot run it; so may taking rows.
        """
        batches = self._batches(sql)
        schema = next(batches)
        return instance_of(schema, pa.Schema), batches

    def _check(self, sql: str) -> None:
        """Check a statement, and find its errors while DuckDB still says where they are."""
        if not sql.isascii() and sql.encode("utf-8", "replace").decode() != sql:
            raise QueryError("the SQL is not valid UTF-8")
        try:
            statements = self._connection.extract_statements(sql)
        except duckdb.Error as error:
            raise QueryError(told(str(error), sql)) from None
        if len(statements) != 1:
            raise QueryError(f"there are {len(statements)} statements: give one")
        kind = statements[0].type
        if kind not in {duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN}:
            raise QueryError(f"{kind.name} is refused: a query only reads (SELECT, DESCRIBE, SUMMARIZE, SHOW, EXPLAIN)")
        if kind == duckdb.StatementType.SELECT:
            try:
                self._connection.execute(f"{_CHECK}{sql}")
            except duckdb.Error as error:
                raise QueryError(told(str(error), sql, lines_before=_CHECK.count("\n"))) from None

    def _batches(self, sql: str) -> Generator[Any, None, None]:
        """Yield the schema of a result, then its record batches."""
        made: queue.Queue[Any] = queue.Queue(_WAITING)
        stopped = threading.Event()

        def put(value: Any) -> None:
            while not stopped.is_set():
                try:
                    made.put(value, timeout=_PAUSE_S)
                except queue.Full:
                    continue
                return

        thread = threading.Thread(target=self._run, args=(sql, put, stopped), name="query")
        try:
            thread.start()  # An interrupt may come in here, before the thread has begun: then it sees that it is late.
            while (value := _taken(made)) is not None:
                if isinstance(value, BaseException):
                    raise fresh_copy(value)
                yield value
        finally:
            stopped.set()
            self._stop(thread)

    def _stop(self, thread: threading.Thread) -> None:
        """Cancel the query of a thread, and wait for its end; more interrupts meanwhile change nothing."""
        while thread.is_alive():
            with contextlib.suppress(KeyboardInterrupt):
                self._connection.interrupt()
                thread.join(_PAUSE_S)

    def _run(self, sql: str, put: Callable[[Any], None], stopped: threading.Event) -> None:
        if stopped.is_set():
            return
        try:
            self._check(sql)
            reader = self._connection.sql(sql).to_arrow_reader(_ROWS_AT_ONCE)
            put(reader.schema)
            for batch in reader:
                put(batch)
                if stopped.is_set():
                    return
        except (duckdb.Error, pa.ArrowException, OSError) as error:  # Arrow's streams turn some into OSError.
            put(QueryError(told(str(error))))  # The place is not in the user's lines, but in DuckDB's.
        except BaseException as error:
            put(error)
        else:
            put(None)


def thread_count(memory_limit: int) -> int:
    """Return how many threads a memory limit (bytes) allows for, at most one per processor."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(available, memory_limit // MEMORY_OF_THREAD))


def _connection(settings: dict[str, Any], views: Mapping[str, Any]) -> duckdb.DuckDBPyConnection:
    """Make a database and its views.

    In the main thread, DuckDB would make errors of its own of Ctrl-C: it asks views for their columns here.
    """
    connection = duckdb.connect(":memory:", config=settings)
    for name, view in views.items():
        connection.register(name, view)
    for statement in _LOCKS:
        connection.execute(statement)
    return connection


def _taken(made: queue.Queue[Any]) -> Any:
    """Wait for the next value; with pauses, since Ctrl-C may be delivered to a thread that does not wake this one."""
    while True:
        with contextlib.suppress(queue.Empty):
            return made.get(timeout=_PAUSE_S)


def told(message: str, sql: str = "", lines_before: int = 0) -> str:
    """Return a message of DuckDB in one line, with the line and the column (from 1) in the SQL that it is about.

    Args:
        message: what DuckDB says, with the line in question and a mark below it if it knows the place.
        sql: the query.
        lines_before: how many lines precede the query in what DuckDB was given.
    """
    if message.startswith("Out of Memory Error"):
        message = _OF_MEMORY.sub(_MORE_MEMORY, message)
    found = _PLACE.search(message)
    if found is None:
        return " ".join(message.split())
    place = _place(sql.split("\n"), int(found[1]) - lines_before, found[2], len(found[3]) - len(f"LINE {found[1]}: "))
    advice = _ADVICE if message.startswith("Parser Error") and _BARE_OFFSET.search(sql) else ""
    return " ".join(message[: found.start()].split()) + advice + place


def _place(lines: Sequence[str], number: int, shown: str, mark: int) -> str:
    """Return the place of a mark under a line, or nothing if the query does not have what the line shows."""
    if not 0 < number <= len(lines):
        return ""
    is_cut = shown.startswith(_CUT)
    rest = shown.removeprefix(_CUT).removesuffix(_CUT)
    start = lines[number - 1].find(rest)
    if start < 0 or (start and not is_cut):
        return ""
    return f" (line {number}, column {start + mark - is_cut * len(_CUT) + 1})"
