# SPDX-License-Identifier: Apache-2.0
"""The work of a task: reads a split as Arrow record batches.

Nothing here imports Spark, so that it is tested without a session.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import attrs
import pyarrow as pa

from raftlog.errors import CorruptBatchError, DecodeError, MissingFileError, OptionError, StorageError, fresh_copy
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.iterator import Corruption, TornTail, ZeroPadding, split_runs
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.records.columns.columns import BatchColumns, run_columns
from raftlog.storage.reading.file_source import open_source
from raftlog.tools.auditing.batches.batch_table import BatchTable
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.spark.rows import arrays
from raftlog.tools.spark.rows.batch_rows import BatchRows, legacy_row
from raftlog.tools.spark.rows.decoded_rows import (
    AnyBatch,
    ControlRowMaker,
    CoordinatorRowMaker,
    MetadataRowMaker,
    Row,
    RowMaker,
    legacy_rows,
)
from raftlog.tools.spark.rows.dropped import Dropped
from raftlog.tools.spark.rows.exhaustion import is_exhaustion
from raftlog.tools.spark.rows.filters import Hints
from raftlog.tools.spark.rows.options import FAIL_FAST, PERMISSIVE, TOPIC_OF_VIEW
from raftlog.tools.spark.rows.parts import FilePart, Split
from raftlog.tools.spark.rows.record_rows import RecordRows, kernel_columns
from raftlog.tools.spark.rows.selection import selected_run, wanted_batches, wanted_rows
from raftlog.tools.spark.rows.views import CORRUPT
from raftlog.tools.terminal.standard_error import unicode_text

_FEW_ROWS: Final = 8192
"""Record batches with fewer rows are joined, since each has a cost in Spark."""
_MUCH: Final = 8 * 1024 * 1024
"""In bytes; record batches of this size are not joined, however few rows they have."""
_ROWS_AT_ONCE: Final = 4096
"""The size of a record batch from rows that are made one by one."""
REPLACED: Final = "it was replaced, or written in place, after the query was planned"
_IS_CONTROL: Final[dict[str, bool | None]] = {
    "records": False,
    "control": True,
    "metadata": False,
    **dict.fromkeys(TOPIC_OF_VIEW, False),
}
"""Whether a view reads control batches or data batches; views that are not listed read all."""


@attrs.frozen
class ReadRequest:
    """What to read of every part.

    Attributes:
        view: name of the view.
        schema: the wanted columns, in order.
        mode: what to do about damage.
        fails_on_loss: whether a file that was deleted or replaced, or has shrunk, after planning is an error.
        redact: whether secrets in metadata records are hidden.
        hints: what wanted rows have in common.
        most_rows: the number of rows of a split after which to stop, or None.
    """

    view: str
    schema: pa.Schema
    mode: str = FAIL_FAST
    fails_on_loss: bool = True
    redact: bool = True
    hints: Hints = attrs.field(factory=Hints)
    most_rows: int | None = None

    @property
    def names(self) -> list[str]:
        """The lower-case names of the columns."""
        return [field.name.lower() for field in self.schema]


def read_split(request: ReadRequest, split: Split) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a split, in order.

    Raises:
        DecodeError: there is damage, and the mode is ``FAIL_FAST``.
        StorageError: a file is missing, has shrunk or was replaced, and ``fails_on_loss`` is set; or it cannot be read,
            and the mode is ``FAIL_FAST``; or the process has no descriptor or no memory left.
        MissingExtraError: a codec's package is not installed.
        OptionError: there is a null in a column that the schema calls NOT NULL.
    """
    dropped = Dropped(request.mode)
    batches = (_without_nulls(batch, part) for part in split for batch in PartReader(request, part, dropped).batches())
    try:
        yield from gathered(batches if request.most_rows is None else _first_rows(batches, request.most_rows))
    finally:
        dropped.log()


class PartReader:
    """Reads one part of a file.

    Args:
        request: what to read.
        part: where to read it.
        dropped: counts what is left out.
    """

    def __init__(self, request: ReadRequest, part: FilePart, dropped: Dropped) -> None:
        self._request = request
        self._part = part
        self._dropped = dropped
        self._position = part.start
        self._next_offset: int | None = None
        self._read_run = self._reader()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the part; raises as ``read_split`` does."""
        if self._part.problem is not None:
            yield from self._complaint(self._part.problem)
            return
        try:
            with open_source(self._part.path) as source:
                is_planned = self._part.witness is None or self._part.witness.holds(source, self._part.start)
                stop = self._part.end if is_planned else self._part.start
                for piece in split_runs(source, start=self._part.start, stop=stop):
                    yield from self._of_piece(piece)
                size_bytes = source.size()
        except StorageError as error:
            is_gone = isinstance(error, MissingFileError) or isinstance(error.__cause__, FileNotFoundError)
            yield from self._loss(error) if is_gone else self._unreadable(error)
        else:
            replaced = StorageError(self._part.path, "read", REPLACED)
            yield from self._check_end(size_bytes) if is_planned else self._loss(replaced)

    def _of_piece(
        self, piece: BatchRun | LegacyBatch | TornTail | ZeroPadding | Corruption
    ) -> Iterator[pa.RecordBatch]:
        if isinstance(piece, BatchRun):
            self._position = piece.end
            yield from self._read_run(piece)
            self._next_offset = piece.batch(len(piece) - 1).next_offset
            return
        self._position = piece.position + piece.size_bytes
        if isinstance(piece, LegacyBatch):
            yield from self._legacy(piece)
            self._next_offset = piece.last_offset + 1
        elif isinstance(piece, Corruption) or not self._part.may_be_torn:
            yield from self._complaint(self._damage(piece))

    def _damage(self, piece: TornTail | ZeroPadding | Corruption) -> Finding:
        reason = "zero bytes up to its end" if isinstance(piece, ZeroPadding) else piece.reason
        return Finding(
            self._part.path,
            piece.rule,
            reason,
            piece.position,
            piece.size_bytes,
            self._next_offset if self._next_offset is not None else self._part.first_offset,
        )

    def _check_end(self, size_bytes: int) -> Iterator[pa.RecordBatch]:
        """Report damage or loss if the part was not read to its end. Pieces are adjacent, so nothing else is missed."""
        if self._position >= self._part.end or (self._part.may_be_torn and size_bytes >= self._part.end):
            return
        if self._part.end_offset is not None and (self._next_offset or 0) >= self._part.end_offset:
            return
        reason = f"it was read to position {self._position} of {self._part.end}"
        if size_bytes < self._part.end:
            yield from self._loss(StorageError(self._part.path, "read", f"{reason}: it has shrunk meanwhile"))
        else:
            yield from self._complaint(
                Finding(self._part.path, "batch-overrun", reason, self._position, self._part.end - self._position)
            )

    def _loss(self, error: StorageError) -> Iterator[pa.RecordBatch]:
        """Report a file that is gone, replaced or shrunk: ``failOnDataLoss`` decides whether that is an error."""
        if self._request.fails_on_loss:
            raise self._shown(error) from None
        if self._request.mode == PERMISSIVE:
            yield self._row_of(Finding(self._part.path, "file-gone", str(error.cause)))
        else:
            self._dropped.loss(self._part.path, error.cause)

    def _unreadable(self, error: StorageError) -> Iterator[pa.RecordBatch]:
        """Report a file that is there and cannot be read, as damage; but a worker in need is no fault of the file."""
        if self._request.mode == FAIL_FAST or is_exhaustion(error):
            raise self._shown(error) from None
        yield from self._complaint(Finding(self._part.path, "file-unreadable", str(error.cause)))

    def _shown(self, error: StorageError) -> StorageError:
        """Return the same error with the path as valid Unicode: Spark cannot transfer any other message."""
        return type(error)(self._part.file, error.operation, error.cause)

    def _complaint(self, finding: Finding) -> Iterator[pa.RecordBatch]:
        """Report damage as the mode requires: raise an error, yield a row about it, or count it."""
        if self._request.mode == FAIL_FAST:
            raise _error(finding)
        if self._request.mode == PERMISSIVE:
            yield self._row_of(finding)
        else:
            self._dropped.damage(finding)

    def _row_of(self, finding: Finding) -> pa.RecordBatch:
        return arrays.batch_of_rows([self._corrupt_row(finding)], self._request.schema)

    def _corrupt_row(self, finding: Finding) -> Row:
        damage = {
            "file": unicode_text(finding.path),
            "position": finding.position,
            "size": finding.size_bytes or None,
            "offset": finding.offset,
            "rule": finding.rule,
            "reason": finding.reason,
        }
        return {
            "topic": self._part.topic,
            "partition": self._part.partition,
            "file": unicode_text(finding.path),
            "position": finding.position,
            "crcok": False if finding.rule == "batch-crc" else None,
            CORRUPT: damage,
        }

    def _wanted(self, run: BatchRun) -> BatchRun | None:
        table = BatchTable(BatchColumns(run))
        are_control = _IS_CONTROL.get(self._request.view)
        return selected_run(run, table, wanted_batches(table, self._part, self._request.hints, are_control=are_control))

    # The views

    def _reader(self) -> Callable[[BatchRun], Iterator[pa.RecordBatch]]:
        match self._request.view:
            case "batches":
                return self._batch_rows
            case "control":
                return lambda run: self._decoded_rows(run, ControlRowMaker())
            case "metadata":
                maker = MetadataRowMaker(self._request.names, redact=self._request.redact)
                return lambda run: self._decoded_rows(run, maker)
            case "consumer_offsets" | "transaction_state" as view:
                coordinator = CoordinatorRowMaker(TOPIC_OF_VIEW[view])
                return lambda run: self._decoded_rows(run, coordinator)
        return self._record_rows

    def _record_rows(self, run: BatchRun) -> Iterator[pa.RecordBatch]:
        wanted = self._wanted(run)
        if wanted is None:
            return
        are_bounded = self._part.first_offset is not None or self._part.end_offset is not None
        for chunk in run_columns(wanted, kernel_columns(self._request.names, are_bounded=are_bounded)):
            for index, error in chunk.errors:
                if not isinstance(error, DecodeError):
                    raise fresh_copy(error)
                yield from self._complaint(self._bad_batch(chunk.batches.run.batch(index), error))
            rows = RecordRows(self._part, chunk)
            batch = self._batch(rows)
            within = wanted_rows(self._part, rows.offsets) if are_bounded else None
            if within is not None:
                batch = batch.filter(pa.array(within))
            if len(batch):
                yield batch

    def _batch_rows(self, run: BatchRun) -> Iterator[pa.RecordBatch]:
        wanted = self._wanted(run)
        if wanted is not None:
            yield self._batch(BatchRows(self._part, BatchTable(BatchColumns(wanted))))

    def _decoded_rows(self, run: BatchRun, maker: RowMaker[RecordBatch]) -> Iterator[pa.RecordBatch]:
        wanted = self._wanted(run)
        if wanted is not None:
            yield from self._rows_of_batches(wanted.batches(), maker)

    def _rows_of_batches(self, batches: Iterable[AnyBatch], maker: RowMaker[AnyBatch]) -> Iterator[pa.RecordBatch]:
        rows: list[Row] = []
        for batch in batches:
            for row in self._rows_of(batch, maker):
                if isinstance(row, Finding):
                    yield from self._complaint(row)
                elif self._is_within(row["offset"]):
                    rows.append(row)
            if len(rows) >= _ROWS_AT_ONCE:
                yield arrays.batch_of_rows(rows, self._request.schema)
                rows = []
        if rows:
            yield arrays.batch_of_rows(rows, self._request.schema)

    def _rows_of(self, batch: AnyBatch, maker: RowMaker[AnyBatch]) -> Iterator[Row | Finding]:
        try:
            yield from maker.rows(self._part, batch)
        except DecodeError as error:
            yield self._bad_batch(batch, error)

    def _legacy(self, batch: LegacyBatch) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a message of magic 0 or 1, if the view shows it."""
        if self._request.view == "batches":
            yield arrays.batch_of_rows([legacy_row(self._part, batch)], self._request.schema)
            return
        if self._request.view in TOPIC_OF_VIEW:  # Compaction may keep messages of releases before 0.11 for ever.
            yield from self._rows_of_batches([batch], CoordinatorRowMaker(TOPIC_OF_VIEW[self._request.view]))
            return
        if _IS_CONTROL.get(self._request.view) is True or self._request.view == "metadata":
            return
        try:
            rows = [row for row in legacy_rows(self._part, batch) if self._is_within(row["offset"])]
        except DecodeError as error:
            yield from self._complaint(self._bad_batch(batch, error))
        else:
            yield arrays.batch_of_rows(rows, self._request.schema)

    def _is_within(self, offset: int) -> bool:
        first, end = self._part.first_offset, self._part.end_offset
        return (first is None or offset >= first) and (end is None or offset < end)

    def _batch(self, rows: RecordRows | BatchRows) -> pa.RecordBatch:
        columns = [rows.column(field.name.lower(), field.type) for field in self._request.schema]
        return pa.RecordBatch.from_arrays(columns, schema=self._request.schema)

    def _bad_batch(self, batch: RecordBatch | LegacyBatch, error: DecodeError) -> Finding:
        return Finding(
            self._part.path,
            error.rule or "batch-crc",
            error.reason,
            batch.position,
            batch.size_bytes,
            batch.base_offset,
        )


def _error(finding: Finding) -> DecodeError:
    return CorruptBatchError(
        finding.reason,
        finding.rule,
        path=unicode_text(finding.path),
        position=finding.position,
        base_offset=finding.offset,
    )


def _without_nulls(batch: pa.RecordBatch, part: FilePart) -> pa.RecordBatch:
    """Return the batch if it has no nulls in NOT NULL columns; Spark would read them as zeros without a check."""
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if not field.nullable and column.null_count:
            raise OptionError("schema", f"column {field.name} is NOT NULL, and there are nulls in {part.file}")
    return batch


def _first_rows(batches: Iterable[pa.RecordBatch], count: int) -> Iterator[pa.RecordBatch]:
    """Yield the first rows, and read no batch after them."""
    for batch in batches if count else ():
        yield batch.slice(0, count)
        count -= len(batch)
        if count <= 0:
            return


def gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join small record batches with those that follow."""
    waiting: list[pa.RecordBatch] = []
    count = size = 0
    for batch in batches:
        waiting.append(batch)
        count += len(batch)
        size += batch.nbytes
        if count >= _FEW_ROWS or size >= _MUCH:
            yield from _joined(waiting)
            waiting, count, size = [], 0, 0
    if count:
        yield from _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    """Return batches as one; or as several, if a column of text or bytes has 2 GiB or more."""
    return batches if len(batches) == 1 else pa.Table.from_batches(batches).combine_chunks().to_batches()
