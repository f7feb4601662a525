# SPDX-License-Identifier: Apache-2.0
"""Reads segments and snapshots as columns: one by one, or many in parallel processes.

>>> with open_segment("orders-0/00000000000000000000.log") as segment:  # doctest: +SKIP
...     for chunk in segment.chunks(("offset", "value"), from_offset=1000):
...         if isinstance(chunk, Chunk) and chunk.records is not None:
...             print(chunk.records.to_arrow())
"""

import concurrent.futures
import multiprocessing
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from types import TracebackType
from typing import Generic, Self, TypeVar

from raftlog.file_paths import local_or_remote, name_of
from raftlog.records.batches.iterator import Corruption, TornTail, ZeroPadding
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.records.batches.record import RecordView
from raftlog.records.columns.columns import RECORD_COLUMNS, Chunk, read_records, select_columns
from raftlog.records.columns.record_selection import RecordSelection
from raftlog.records.files.file_names import FileKind, parse_file_name
from raftlog.storage.reading.file_source import open_source
from raftlog.storage.reading.index_seek import IndexSeek
from raftlog.storage.reading.log_transactions import log_transactions
from raftlog.storage.reading.start_method import start_method

Result = TypeVar("Result")
Piece = Chunk | LegacyBatch | TornTail | ZeroPadding | Corruption


class Segment:
    """A segment or a snapshot, local or remote, open for reading; a context manager.

    Attributes:
        path: the file.
        base_offset: the first offset that the segment may hold, by its name; None if the name is not a segment's.

    Raises:
        StorageError: the file cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self.path = path = local_or_remote(path)
        name = parse_file_name(name_of(path))
        self.base_offset = name.base_offset if name is not None and name.kind is FileKind.LOG else None
        self._source = open_source(path)

    def chunks(
        self,
        columns: Collection[str] = RECORD_COLUMNS,
        *,
        from_offset: int | None = None,
        to_offset: int | None = None,
        since_ms: int | None = None,
        data_only: bool = True,
        read_committed: bool = False,
    ) -> Iterator[Piece]:
        """Yield the segment as columns, a chunk at a time, in order: the records that a consumer sees.

        Records outside the bounds are left out, and so are batches that hold no offset within them; the indexes are
        used to find the first batch. A batch none of whose records is selected is in the headers of its chunk, without
        rows.

        Args:
            columns: which of ``RECORD_COLUMNS`` and ``MARK_COLUMNS`` to unpack; if empty, only headers are read.
            from_offset: first offset, inclusive: no record is below it.
            to_offset: last offset, exclusive: no record is at it or above.
            since_ms: least timestamp, inclusive, in ms: no record has an earlier one.
            data_only: whether control records are left out.
            read_committed: whether records of aborted transactions are left out, and all from the last stable offset of
                the log on. This reads the segments beside this one, or their indexes
                (``raftlog.storage.reading.log_transactions``); so does the column ``is_aborted``.

        Raises:
            ValueError: there is no such column.
            StorageError: the disk failed.
        """
        transactions = log_transactions(self.path) if read_committed or "is_aborted" in columns else None
        selection = RecordSelection(from_offset, to_offset, since_ms, data_only, read_committed, transactions)
        seek = IndexSeek(self.path, self.base_offset)
        first = from_offset or 0
        if since_ms is not None:
            first = max(first, seek.offset_before(self._source, since_ms))
        start = seek.position_before(self._source, first) if first else 0
        return select_columns(self._source, columns, selection, start=start)

    def records(
        self,
        *,
        from_offset: int | None = None,
        to_offset: int | None = None,
        data_only: bool = True,
        read_committed: bool = False,
    ) -> Iterator[RecordView]:
        """Yield the segment's records as objects; the arguments are those of ``chunks``.

        A torn tail and zero padding end the segment without error.

        Raises:
            DecodeError: at the first damage or legacy message; all records before it are yielded first.
            MissingExtraError: a codec's package is not installed.
            StorageError: the disk failed.
        """
        seek = IndexSeek(self.path, self.base_offset)
        return read_records(
            self._source,
            start=seek.position_before(self._source, from_offset) if from_offset else 0,
            from_offset=from_offset,
            to_offset=to_offset,
            data_only=data_only,
            read_committed=read_committed,
            transactions=log_transactions(self.path) if read_committed else None,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._source.close()


def open_segment(path: str) -> Segment:
    """Open a segment or a snapshot for reading.

    Raises:
        StorageError: the file cannot be opened.
    """
    return Segment(path)


def map_segments(
    function: Callable[[Segment], Result], paths: Sequence[str], *, processes: int | None = None
) -> Iterator[Result]:
    """Apply a function to many segments, in parallel processes, and yield its results in the order of the paths.

    Args:
        function: takes an open segment; it and its results must be picklable. Return little: sums, not columns.
        paths: of the segments.
        processes: how many, or None for one per processor. With 1, all work is done in this process. On Linux they are
            forks if this process has one thread. Otherwise they import the main module, which must guard its work
            with ``if __name__ == "__main__"``.

    Raises:
        StorageError: a file cannot be read.
        Exception: whatever the function raises.
    """
    count = min(len(paths), processes or os.cpu_count() or 1)
    if count <= 1:
        yield from map(_Applied(function), paths)
        return
    context = multiprocessing.get_context(start_method())
    with concurrent.futures.ProcessPoolExecutor(count, mp_context=context) as pool:
        yield from pool.map(_Applied(function), paths)


class _Applied(Generic[Result]):
    """Calls a function of an open segment with a path; an object, so that it can be pickled."""

    def __init__(self, function: Callable[[Segment], Result]) -> None:
        self._function = function

    def __call__(self, path: str) -> Result:
        with Segment(path) as segment:
            return self._function(segment)
