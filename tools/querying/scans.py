# SPDX-License-Identifier: Apache-2.0
"""Reads views from the files of logs, as DuckDB asks for them: some columns, and the rows that match a filter."""

import contextlib
import functools
import threading
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from typing import Any, Final

import attrs
import pyarrow as pa
import pyarrow.dataset as ds

from raftlog.errors import DecodeError, MissingFileError, StorageError, fresh_copy
from raftlog.file_paths import join_path
from raftlog.records.files.file_names import FileKind
from raftlog.records.files.property_files import read_meta_properties
from raftlog.storage.reading.directory_listing import DirectoryListing, EntryKind
from raftlog.storage.reading.file_source import STANDARD_INPUT, read_file
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.input.inputs import LARGEST_SMALL_FILE_BYTES
from raftlog.tools.querying.bounds import Filter
from raftlog.tools.querying.hidden_values import with_hidden_secrets
from raftlog.tools.querying.views import LOG_VIEWS, SHOWS_SNAPSHOTS, schema_of
from raftlog.tools.spark.rows import arrays
from raftlog.tools.spark.rows.dropped import Dropped
from raftlog.tools.spark.rows.filters import Hints
from raftlog.tools.spark.rows.options import DROP_MALFORMED, SourceOptions
from raftlog.tools.spark.rows.parts import FilePart
from raftlog.tools.spark.rows.reading import PartReader, ReadRequest, gathered
from raftlog.tools.spark.source.planning import Listing, Partition, list_partitions, plan
from raftlog.tools.terminal.standard_error import unicode_text

_UNDIVIDED: Final = 1 << 62
"""No file is divided: one query reads all of its parts, one after another."""
_OF_PLACE: Final = {"directory": pa.string(), "nodeId": pa.int32()}
"""The columns that the Spark source lacks."""


class Damage(Dropped):
    """Keeps what scans leave out: the first damage of each file, and files that are gone.

    Attributes:
        findings: the first finding of each file.
        with_more: the files with further findings.
        losses: for each file that is gone or has shrunk, what happened.
    """

    def __init__(self) -> None:
        super().__init__(DROP_MALFORMED)
        self.findings: dict[str, Finding] = {}
        self.with_more: set[str] = set()
        self.losses: dict[str, str] = {}

    def damage(self, finding: Finding) -> None:
        """Keep a finding if it is the first one of its file. A query may read a file, and find this, more than once."""
        if self.findings.setdefault(finding.path, finding) != finding:
            self.with_more.add(finding.path)

    def loss(self, path: str, reason: str) -> None:
        """Keep why a file has no rows, or none from some place on."""
        self.losses.setdefault(path, reason)


class Logs:
    """The logs under some paths, as they were when this was made.

    Attributes:
        damage: what all scans have left out so far.
        failure: the first error of a scan; DuckDB passes on only its text.

    Args:
        paths: as for ``find_tasks``.
        redact: whether secrets of metadata records are hidden, in the view ``metadata`` and as values of records.

    Raises:
        StorageError: a path does not exist, cannot be read, or is neither a file nor a directory.
        OptionError: a path is a file without batches.
    """

    def __init__(self, paths: Iterable[str], *, redact: bool = True) -> None:
        paths = tuple(paths)
        self._redact = redact
        _check_can_be_read_again(paths)
        self._options = SourceOptions(
            paths=paths,
            view="control",
            mode=DROP_MALFORMED,
            fails_on_loss=False,
            include_deleted=True,
            snapshots="all",
            split_size=_UNDIVIDED,
        )
        self._listing = list_partitions(self._options)
        self._node_id = functools.cache(_node_id)
        self._turn = threading.Lock()
        self._scans: list[Generator[pa.RecordBatch, None, None]] = []
        self.damage = Damage()
        self.failure: BaseException | None = None

    @property
    def problems(self) -> tuple[Finding, ...]:
        """Findings about directories that could not be listed."""
        return self._listing.problems

    @property
    def is_empty(self) -> bool:
        """Whether there is no log and no snapshot."""
        return not self._listing.partitions

    def view(self, name: str) -> "ScannedView":
        """Return a view, for DuckDB to scan."""
        return ScannedView(name, self)

    def scan(self, view: str, columns: Collection[str], expression: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a view that match a filter.

        Scans of one query take turns, since neither readers nor codecs are made for threads.

        Args:
            view: its name.
            columns: the names of the wanted columns, in order.
            expression: Arrow's form of the filter; None for all rows.
        """
        batches = self._batches(view, list(columns), expression)
        self._scans.append(batches)
        while (batch := self._next(batches)) is not None:
            yield batch

    def close(self) -> None:
        """Close the files of all scans, also of those that were not read to their end."""
        for scan in self._scans:
            scan.close()
        self._scans.clear()

    def _next(self, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
        with self._turn:
            try:
                return next(batches, None)
            except BaseException as error:
                self.failure = self.failure or fresh_copy(error)
                raise

    def _batches(self, view: str, columns: list[str], expression: Any) -> Generator[pa.RecordBatch, None, None]:
        whole = schema_of(view)
        wanted = Filter(expression, whole)
        needed = wanted.columns().union(columns)
        read = pa.schema([field for field in whole if field.name in needed and field.name not in _OF_PLACE])
        request = ReadRequest(
            LOG_VIEWS[view],
            read if read.names else pa.schema([whole.field("topic")]),
            mode=DROP_MALFORMED,
            fails_on_loss=False,
            redact=self._redact,
        )
        is_control = False if view == "records" else None
        ranges = [attrs.evolve(hints, is_control=is_control) for hints in wanted.ranges()]
        found = (
            _placed(batch, place, needed)
            for place in self._places(view, wanted)
            for part, hints in self._parts(place, ranges)
            if wanted.allows_values(**place.values(), file=part.file, isSnapshot=part.is_snapshot)
            for batch in self._read(attrs.evolve(request, hints=hints), part)
        )
        for batch in gathered(found):
            table = pa.Table.from_batches([batch])
            kept = table if expression is None else table.filter(expression)
            yield from kept.select(columns).to_batches()

    def _read(self, request: ReadRequest, part: FilePart) -> Iterator[pa.RecordBatch]:
        batches = PartReader(request, part, self.damage).batches()
        return (with_hidden_secrets(batch, part) for batch in batches) if self._redact else batches

    def _places(self, view: str, wanted: Filter) -> Iterator["_LogPlace"]:
        for partition in self._listing.partitions:
            shown = _shown(view, partition)
            directory = partition.place.log_directory
            place = _LogPlace(shown, unicode_text(directory), self._node_id(directory))
            if (shown.segments or shown.snapshots) and wanted.allows_values(**place.values()):
                yield place

    def _parts(self, place: "_LogPlace", ranges: Sequence[Hints]) -> Iterator[tuple[FilePart, Hints]]:
        """Yield the parts of files to read, each with what the wanted rows in it have in common."""
        of_files: dict[str, list[tuple[FilePart, Hints]]] = {}
        for hints in ranges:
            for split in plan(self._options, Listing((place.partition,), ()), hints):
                for part in split:
                    of_files.setdefault(part.path, []).append((part, hints))
        for parts in of_files.values():
            yield from disjoint_parts(parts)


@attrs.frozen
class _LogPlace:
    """A log in one directory.

    Attributes:
        partition: its files.
        directory: its log directory, as valid Unicode.
        node_id: of the node, as the directory says; or None.
    """

    partition: Partition
    directory: str
    node_id: int | None

    def values(self) -> dict[str, Any]:
        """Return the columns that are the same in all of its rows."""
        return {
            "directory": self.directory,
            "nodeId": self.node_id,
            "topic": self.partition.topic,
            "partition": self.partition.number,
        }


def disjoint_parts(parts: Iterable[tuple[FilePart, Hints]]) -> Iterator[tuple[FilePart, Hints]]:
    """Join the parts of one file that overlap or touch, so that no batch is read twice.

    Args:
        parts: each with what the wanted rows in it have in common, which is the same but for its range of offsets.
    """
    waiting: tuple[FilePart, Hints] | None = None
    for part, hints in sorted(parts, key=lambda each: each[0].start):
        if waiting is None or part.start > waiting[0].end:
            if waiting is not None:
                yield waiting
            waiting = part, hints
            continue
        before, joined = waiting
        if part.end > before.end:
            before = attrs.evolve(before, end=part.end, may_be_torn=part.may_be_torn)
        waiting = before, _hull(joined, hints)
    if waiting is not None:
        yield waiting


def _hull(left: Hints, right: Hints) -> Hints:
    """Return what rows have in common that are of one of two ranges of offsets."""
    firsts = [each.first_offset for each in (left, right) if each.first_offset is not None]
    lasts = [each.last_offset for each in (left, right) if each.last_offset is not None]
    return attrs.evolve(
        left,
        first_offset=min(firsts) if len(firsts) == 2 else None,
        last_offset=max(lasts) if len(lasts) == 2 else None,
    )


def _placed(batch: pa.RecordBatch, place: _LogPlace, needed: Collection[str]) -> pa.RecordBatch:
    """Return rows with the columns about their log that are needed, after all others."""
    for name, kind in _OF_PLACE.items():
        if name in needed:
            batch = batch.append_column(name, arrays.constant(place.values()[name], kind, len(batch)))
    return batch


class ScannedView(ds.Dataset):  # type: ignore[misc]
    """A view as a data set of Arrow, which is what DuckDB tells the columns and the filter of each scan."""

    def __init__(self, name: str, logs: Logs) -> None:
        self._name = name
        self._logs = logs

    @property
    def schema(self) -> pa.Schema:
        """All columns."""
        return schema_of(self._name)

    def scanner(self, columns: list[str] | None = None, filter: Any = None, **_: Any) -> "_Scanner":  # noqa: A002
        """Return a scan of some columns, with the rows that match a filter."""
        names = schema_of(self._name).names if columns is None else columns
        kept = pa.schema([schema_of(self._name).field(name) for name in names])
        return _Scanner(kept, self._logs.scan(self._name, names, filter))


@attrs.frozen
class _Scanner:
    """One scan, as DuckDB asks for it."""

    projected_schema: pa.Schema
    batches: Iterator[pa.RecordBatch]

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.batches)


def _shown(view: str, partition: Partition) -> Partition:
    """Return a log with the files that a view shows: snapshots where they are marked, or if the user named them."""
    if view in SHOWS_SNAPSHOTS:
        tasks = (*partition.segments, *partition.snapshots)
        is_metadata = any(task.is_raft or task.was_named or task.snapshot_id for task in tasks)
        return partition if view == "control" or is_metadata else attrs.evolve(partition, segments=())
    return attrs.evolve(partition, snapshots=tuple(task for task in partition.snapshots if task.was_named))


def _check_can_be_read_again(paths: Iterable[str]) -> None:
    """Refuse pipes, devices and sockets, since a query may read a file more than once. Patterns are left."""
    listing = DirectoryListing()
    for path in paths:
        with contextlib.suppress(MissingFileError):
            if path == STANDARD_INPUT or listing.status(path).kind is EntryKind.OTHER:
                raise StorageError(path, "read", "a query reads files and directories, not a pipe, device or socket")


def _node_id(directory: str) -> int | None:
    try:
        path = join_path(directory, FileKind.META_PROPERTIES.value)
        return read_meta_properties(read_file(path, LARGEST_SMALL_FILE_BYTES)).node_id
    except (DecodeError, StorageError):
        return None
