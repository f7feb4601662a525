# SPDX-License-Identifier: Apache-2.0
"""Runs queries over the paths of a command line, each on the files as they are then, and reports what they left out."""

import argparse
import contextlib
import re
from collections.abc import Iterator
from typing import Any, Final, NoReturn

import pyarrow as pa
import pyarrow.dataset as ds

from raftlog.errors import QueryError, fresh_copy
from raftlog.file_paths import local_or_remote
from raftlog.storage.reading.file_source import STANDARD_INPUT
from raftlog.tools.catalogue.audit_rules import UNREADABLE_RULES
from raftlog.tools.catalogue.findings import Finding, Tally
from raftlog.tools.own_file import new_file
from raftlog.tools.querying.database import Database
from raftlog.tools.querying.result_formats import TEXTS, Batches, unique_names, write_parquet
from raftlog.tools.querying.scans import Logs
from raftlog.tools.querying.views import AUDIT_VIEWS, LOG_VIEWS, schema_of
from raftlog.tools.spark.source.planning import absolute_path
from raftlog.tools.terminal.standard_error import say
from raftlog.tools.terminal.verb_output import write_text

_ASKS_FOR_COLUMNS: Final = re.compile(r"\s*(DESCRIBE|DESC|SHOW)\b", re.IGNORECASE)


class Session:
    """Queries over the same paths.

    Args:
        given: has the paths, the format, the memory limit, the number of processes, and whether secrets are shown.
        directory: an empty directory for what exceeds the memory limit.
        program: says what was left out.
    """

    def __init__(self, given: argparse.Namespace, directory: str, program: str) -> None:
        self._given = given
        self._given.paths = list(map(_absolute, given.paths))
        self._directory = directory
        self.program = program

    def show(self, sql: str) -> int:
        """Print the result of a query on standard output, and return the exit code.

        Raises:
            RaftLogError: the query cannot be run, or a path not be read. Rows may have been printed.
        """
        tally = Tally()
        with self._result(sql, tally) as (schema, batches):
            write_text(TEXTS[self._given.format](schema, batches))
        return tally.exit_code

    def write(self, sql: str, out: str) -> int:
        """Write the result of a query to a new Parquet file, and return the exit code.

        Raises:
            RaftLogError: as ``show``; or the file exists or cannot be written. Then there is none.
        """
        tally = Tally()
        with new_file(out) as file, self._result(sql, tally) as (schema, batches):
            write_parquet(file, schema, batches)
        return tally.exit_code

    @contextlib.contextmanager
    def _result(self, sql: str, tally: Tally) -> Iterator[tuple[pa.Schema, Batches]]:
        """Run a query; at the end, what it left out is reported and added to the tally."""
        logs = Logs(self._given.paths, redact=not self._given.no_redact)
        for problem in logs.problems:
            self._report(problem, tally)
        if logs.is_empty:
            say("the paths have no log or snapshot", self.program)
            tally.errors += 1
        views = {name: logs.view(name) for name in LOG_VIEWS} | self._audit_views(sql, tally)
        with contextlib.closing(logs), Database(views, self._given.memory_limit, self._directory) as database:
            try:
                schema, batches = database.result(sql)
                with contextlib.closing(batches):
                    names = unique_names(schema.names)
                    named = pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)])
                    yield named, (batch.rename_columns(names) for batch in batches)
            except QueryError:
                if logs.failure is not None:
                    raise fresh_copy(logs.failure) from None
                raise
        self._report_damage(logs, tally)

    def _audit_views(self, sql: str, tally: Tally) -> dict[str, Any]:
        """Return the views of the audit. Only those are made whose names occur in the query: they read all files."""
        made: dict[str, Any] = {name: _NotNamed(name) for name in AUDIT_VIEWS}
        if _ASKS_FOR_COLUMNS.match(sql):
            return made
        words = {word.lower() for word in re.findall(r"\w+", sql)}
        if words.isdisjoint(AUDIT_VIEWS):
            return made
        from raftlog.tools.querying.audit_rows import findings_table, timeline_tables  # Slow to import.

        if "findings" in words:
            made["findings"] = findings_table(self._given, self.program)
        if not words.isdisjoint({"voters", "epochs"}):
            tables, found = timeline_tables(self._given, self.program)
            tally.by_severity += found.by_severity
            tally.errors += found.errors
            made |= tables
        return made

    def _report(self, finding: Finding, tally: Tally, more: str = "") -> None:
        say(f"{finding}{more}", self.program)
        tally.add(finding)
        tally.errors += finding.rule in UNREADABLE_RULES

    def _report_damage(self, logs: Logs, tally: Tally) -> None:
        damage = logs.damage
        for path, finding in damage.findings.items():
            more = ", and more: the view findings has all" if path in damage.with_more else ""
            self._report(finding, tally, f"; it is left out{more}")
        for path, reason in damage.losses.items():
            say(f"{path}: {reason}; its rows are left out", self.program)
            tally.errors += 1


def _absolute(path: str) -> str:
    """Return a path as all views have it, so that they can be joined by ``file`` and ``directory``."""
    return path if path == STANDARD_INPUT else absolute_path(local_or_remote(path))


class _NotNamed(ds.Dataset):  # type: ignore[misc]
    """A view of the audit that a query does not name: it has columns, and cannot be read."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def schema(self) -> pa.Schema:
        """All columns."""
        return schema_of(self._name)

    def scanner(self, **_: Any) -> NoReturn:
        """Refuse to be read, rather than seem empty.

        Raises:
            QueryError: always.
        """
        raise QueryError(f"write the name of the view {self._name} plainly")
