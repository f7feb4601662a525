# SPDX-License-Identifier: Apache-2.0
"""Runs queries in this process, as the verb does, and returns their rows."""

import argparse
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pytest

from raftlog.storage.reading.file_source import FileSource
from raftlog.tools.querying.database import Database
from raftlog.tools.querying.scans import Logs
from raftlog.tools.querying.views import LOG_VIEWS
from raftlog.tools.spark.rows import reading

MEMORY = 256 * 1024 * 1024

Rows = list[dict[str, Any]]


def ask(logs: Logs, sql: str, spill: Path) -> pa.Table:
    """Run a query over the views that are read from files."""
    with Database({name: logs.view(name) for name in LOG_VIEWS}, MEMORY, str(spill)) as database:
        schema, batches = database.result(sql)
        return pa.Table.from_batches(list(batches), schema)


def ask_plainly(tables: dict[str, pa.Table], sql: str, spill: Path) -> pa.Table:
    """Run the same query over tables in memory: DuckDB filters and projects by itself."""
    with Database(tables, MEMORY, str(spill)) as database:
        schema, batches = database.result(sql)
        return pa.Table.from_batches(list(batches), schema)


def given(*paths: Path, processes: int = 1) -> argparse.Namespace:
    """What a command line says."""
    return argparse.Namespace(paths=[str(path) for path in paths], processes=processes)


@attrs.define
class Work:
    """Counts what queries read and decode.

    Attributes:
        read_bytes: bytes that were read from segments and snapshots.
        read: the first and the end position of each read.
        columns: the columns that the kernel was asked for, per run of batches.
        decoded_bytes: the size of the Arrow columns made from files.
        part_bytes: the size of the parts of files whose batches were looked at.
    """

    read_bytes: int = 0
    read: list[tuple[int, int]] = attrs.field(factory=list)
    columns: list[frozenset[str]] = attrs.field(factory=list)
    decoded_bytes: int = 0
    part_bytes: int = 0

    @classmethod
    def counted(cls, monkeypatch: pytest.MonkeyPatch) -> "Work":
        """Start to count."""
        work = cls()
        run_columns, read_at, batches = vars(reading)["run_columns"], FileSource.read_at, reading.PartReader.batches

        def noted_columns(run: Any, columns: Any, *rest: Any) -> Any:
            work.columns.append(frozenset(columns))
            return run_columns(run, columns, *rest)

        def noted_read(source: FileSource, position: int, size: int, *rest: Any) -> Any:
            data = read_at(source, position, size, *rest)
            work.read_bytes += len(data)
            work.read.append((position, position + len(data)))
            return data

        def noted_batches(part: Any) -> Any:
            work.part_bytes += part._part.size_bytes
            for batch in batches(part):
                work.decoded_bytes += batch.nbytes
                yield batch

        monkeypatch.setattr(reading, "run_columns", noted_columns)
        monkeypatch.setattr(FileSource, "read_at", noted_read)
        monkeypatch.setattr(reading.PartReader, "batches", noted_batches)
        return work
