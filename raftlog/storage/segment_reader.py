# SPDX-License-Identifier: Apache-2.0
"""Reading segments and snapshots as columns: one by one, or many in parallel processes.

>>> with open_segment("orders-0/00000000000000000000.log") as segment:  # doctest: +SKIP
...     for chunk in segment.chunks(("offset", "value"), from_offset=1000):
...         print(chunk.records.to_arrow())
"""

import concurrent.futures
import multiprocessing
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from types import TracebackType
from typing import Generic, Self, TypeVar

from raftlog.file_paths import local_or_remote, name_of
from raftlog.records.columns import RECORD_COLUMNS, Chunk, read_columns
from raftlog.records.file_names import FileKind, parse_file_name
from raftlog.records.iterator import Corruption, TornTail, ZeroPadding
from raftlog.records.legacy import LegacyBatch
from raftlog.storage.file_source import open_source
from raftlog.storage.index_seek import IndexSeek
from raftlog.storage.start_method import start_method

Result = TypeVar("Result")
Piece = Chunk | LegacyBatch | TornTail | ZeroPadding | Corruption


class Segment:
    """A segment or a snapshot, local or remote, open for reading; a context manager.

    Attributes:
        path: the file.
        base_offset: the first offset that the segment may hold, by its name; None for a snapshot or an odd name.

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
    ) -> Iterator[Piece]:
        """Yield the segment as columns, a chunk at a time, in order.

        Whole chunks are given: bounds leave out chunks of which the indexes and the batch headers say that they hold no
        wanted record. The chunks that are given may hold others too: columns are quickly filtered by who has them.

        Args:
            columns: which of ``RECORD_COLUMNS`` to unpack; none gives headers alone.
            from_offset: first offset, inclusive.
            to_offset: last offset, exclusive.
            since_ms: first timestamp (inclusive), in ms.

        Raises:
            ValueError: a column is not one of ``RECORD_COLUMNS``.
            StorageError: the disk failed.
        """
        seek = IndexSeek(self.path, self.base_offset)
        first = from_offset or 0
        if since_ms is not None:
            first = max(first, seek.offset_before(self._source, since_ms))
        start = seek.position_before(self._source, first) if first else 0
        for piece in read_columns(self._source, columns, start=start):
            if not isinstance(piece, Chunk):
                yield piece
                continue
            base_offset, last_offset, max_timestamp = _span(piece)
            if to_offset is not None and base_offset >= to_offset:
                return
            if last_offset >= first and (since_ms is None or max_timestamp >= since_ms):
                yield piece

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
        function: takes an open segment; it and what it returns must pickle. Return little: sums, not columns.
        paths: of the segments.
        processes: how many, or None for one a processor. 1 runs in this process. They are forks if this one has one
            thread, on Linux; else they import the main module, which has to guard its work against that.

    Raises:
        StorageError: a file cannot be read; and whatever the function raises.
    """
    count = min(len(paths), processes or os.cpu_count() or 1)
    if count <= 1:
        yield from map(_Applied(function), paths)
        return
    context = multiprocessing.get_context(start_method())
    with concurrent.futures.ProcessPoolExecutor(count, mp_context=context) as pool:
        yield from pool.map(_Applied(function), paths)


class _Applied(Generic[Result]):
    """A function of an open segment as one of a path; an object, so that it pickles."""

    def __init__(self, function: Callable[[Segment], Result]) -> None:
        self._function = function

    def __call__(self, path: str) -> Result:
        with Segment(path) as segment:
            return self._function(segment)


def _span(chunk: Chunk) -> tuple[int, int, int]:
    """Return a chunk's first and last offset, and its largest timestamp, by its headers."""
    batches = chunk.batches
    base_offsets, deltas = batches.column("base_offset"), batches.column("last_offset_delta")
    last = len(batches) - 1
    return base_offsets[0], base_offsets[last] + deltas[last], max(batches.column("max_timestamp"))
