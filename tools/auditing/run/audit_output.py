# SPDX-License-Identifier: Apache-2.0
"""The output directory of ``raftlog audit``, and of other verbs that leave tables in the same way.

::

    raftlog-audit.json          marks the directory as an audit's output
    lock                        held by the current run
    evidence.sqlite             the evidence, for the next run on one machine
    evidence/*.parquet          the evidence, for the next run on Spark
    spark-work/                 work in progress of a run on Spark; removed at its end
    findings/<run id>.parquet   a table: one folder per table, one file per run
    runs/<run id>.parquet       written last: it makes the run complete
    summary.json                of the last complete run
    report.html                 of the last complete run

Results are written under names that begin with a dot, and renamed when they are complete. The next run removes what a
killed run has left behind. The same files are objects where ``--out`` is a URI, except for the lock.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import attrs

from raftlog.errors import LogDirectoryError, StorageError
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.tools.auditing.object_paths import OutputPath
from raftlog.tools.catalogue.audit_columns import COLUMNS, Row, schema_of

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_FORMAT: Final = 1
_LOCK: Final = "lock"
STORE: Final = "evidence.sqlite"
EVIDENCE: Final = "evidence"
WORK: Final = "spark-work"
SUMMARY: Final = "summary.json"
REPORT: Final = "report.html"
_ROW_GROUP_COUNT: Final = 8192
"""Number of rows that are held in memory before they are written."""


@attrs.frozen
class OutputKind:
    """Of which verb an output is.

    Attributes:
        verb: its name.
        columns: of its tables, as ``schema_of`` takes them; the first one is the table that completes a run.
    """

    verb: str
    columns: Mapping[str, Mapping[str, str]]

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of its tables."""
        return tuple(self.columns)

    @property
    def marker(self) -> str:
        """The name of the file that marks an output."""
        return f"raftlog-{self.verb}.json"

    @property
    def marked(self) -> str:
        """The content of that file."""
        return json.dumps({"kind": f"raftlog_{self.verb.replace('-', '_')}", "format": _FORMAT}) + "\n"


OF_AUDIT: Final = OutputKind("audit", COLUMNS)


class AuditOutput:
    """An output directory, locked until the block ends; a context manager.

    Args:
        path: of the directory; it is created if it does not exist.
        run_id: of the run that writes to it.
        kind: of which verb it is.

    Raises:
        LogDirectoryError: it exists and is not an output of the verb; or another run has locked it.
        StorageError: it cannot be created or read.
    """

    def __init__(self, path: str, run_id: str, kind: OutputKind = OF_AUDIT) -> None:
        self._directory = Path(path)
        self._run_id = run_id
        self._kind = kind
        self._tables: dict[str, _TableFile] = {}
        _claim(self._directory, run_id, kind)
        self._lock = LocalFileSystem().lock(str(self._directory / _LOCK))
        try:
            self._clear()
            self._tables = {name: _TableFile(self._directory / name, name, run_id, kind) for name in kind.tables}
        except OSError as error:
            self._lock.close()
            raise StorageError(path, "write", error.strerror or str(error)) from error

    @property
    def store_path(self) -> str:
        """Path of the evidence for runs on one machine."""
        return str(self._directory / STORE)

    @property
    def evidence_folder(self) -> OutputPath:
        """Folder of the evidence for runs on Spark, in which several machines write."""
        return self._directory.absolute() / EVIDENCE

    @property
    def work_folder(self) -> OutputPath:
        """Folder by which driver and workers pass work and outcomes to each other."""
        return self._directory.absolute() / WORK

    def add(self, table: str, row: Row) -> None:
        """Add a row to a table; ``run_id`` is filled in.

        Raises:
            StorageError: the disk failed.
            MissingExtraError: pyarrow is not installed.
        """
        try:
            self._tables[table].add(row)
        except OSError as error:
            raise StorageError(str(self._directory), "write", error.strerror or str(error)) from error

    def complete(self, summary: dict[str, Any], report: str) -> None:
        """Rename all files to their final names: the run is complete when this returns, and not before.

        Raises:
            StorageError: the disk failed. The run is not complete, unless only summary or report were not renamed.
        """
        try:
            for table in reversed(self._kind.tables):
                self._tables[table].complete()
            for name, text in ((REPORT, report), (SUMMARY, json.dumps(summary, indent=2) + "\n")):
                part = self._directory / f".{name}"
                part.write_text(text, "utf-8")
                part.replace(self._directory / name)
        except OSError as error:
            raise StorageError(str(self._directory), "write", error.strerror or str(error)) from error

    def _clear(self) -> None:
        """Remove what incomplete runs have left behind."""
        complete = {path.name for path in (self._directory / self._kind.tables[0]).glob("*.parquet")}
        for table in self._kind.tables:
            for path in (self._directory / table).glob("*.parquet"):
                if path.name not in complete:
                    path.unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for table in self._tables.values():
            table.discard()
        self._lock.close()


class _TableFile:
    """The rows of a run in one table."""

    def __init__(self, folder: Path, table: str, run_id: str, kind: OutputKind) -> None:
        folder.mkdir(exist_ok=True)
        self._columns = kind.columns[table]
        self._run_id = run_id
        self._path = folder / f"{run_id}.parquet"
        self._part = folder / f".{run_id}.parquet"
        self._rows: list[Row] = []
        self._writer: pq.ParquetWriter | None = None

    def add(self, row: Row) -> None:
        self._rows.append({"run_id": self._run_id} | row)
        if len(self._rows) == _ROW_GROUP_COUNT:
            self._flush()

    def complete(self) -> None:
        """Write the remaining rows, and rename the file to its final name."""
        writer = self._flush()
        writer.close()
        self._part.replace(self._path)

    def discard(self) -> None:
        """Close the file, and remove it if it is not complete."""
        if self._writer is not None:
            self._writer.close()
        self._part.unlink(missing_ok=True)

    def _flush(self) -> "pq.ParquetWriter":
        columns = schema_of(self._columns)
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._writer is None:
            # Opened with the first rows: pyarrow starts threads, and processes that read files should be forked before.
            self._writer = pq.ParquetWriter(self._part, columns, compression="zstd")
        if self._rows:
            self._writer.write_table(pa.Table.from_pylist(self._rows, columns))
        self._rows = []
        return self._writer


def _claim(directory: Path, run_id: str, kind: OutputKind) -> None:
    """Create the directory, or check that it is an output of a verb; several runs may do so at the same time."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        marker, part = directory / kind.marker, f".{kind.marker}."
        is_foreign = any(not path.name.startswith(part) for path in directory.iterdir())
        if not marker.exists():  # Checked after the listing: another run may create it first, and then the other files.
            if is_foreign:
                raise LogDirectoryError(
                    f"{directory} exists, is not empty and is not the output of raftlog {kind.verb}"
                )
            written = directory / f"{part}{run_id}"
            written.write_text(kind.marked)
            written.replace(marker)
    except OSError as error:
        raise StorageError(str(directory), "open", error.strerror or str(error)) from error
    if not _is_ours(marker):
        raise LogDirectoryError(f"{directory} is the output of another version of raftlog {kind.verb}")


def _is_ours(marker: Path) -> bool:
    try:
        return is_of_this_format(marker.read_bytes())
    except OSError as error:
        raise StorageError(str(marker), "read", error.strerror or str(error)) from error


def is_of_this_format(marker: bytes) -> bool:
    """Whether the content of the marker is that of this version of the output."""
    try:
        return bool(json.loads(marker).get("format") == _FORMAT)
    except (ValueError, AttributeError):
        return False
