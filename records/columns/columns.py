# SPDX-License-Identifier: Apache-2.0
"""Reads a log as columns, which is the fastest way.

``read_columns`` reads a log one chunk at a time. For each chunk it yields the headers of its batches and the fields of
its records as flat columns: memoryviews of integers. Keys and values are not copied: their columns are position and
size in the chunk's data. Convert columns on demand to numpy arrays (without a copy), to an Arrow table, or to objects.

Every CRC is checked. Only requested columns are unpacked.

By default the records are those that a consumer sees (DECISIONS.md, 46): no control records, and with
``read_committed`` no records of aborted transactions either. The batches are all stored batches, control batches
included; those whose records are left out have no rows.
"""

import itertools
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from raftlog.errors import CorruptBatchError, UnsupportedMagicError, fresh_copy
from raftlog.invariants import invariant, present
from raftlog.records import limits
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.iterator import BufferSource, ByteSource, Corruption, TornTail, ZeroPadding, split_runs
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.records.batches.record import RecordView
from raftlog.records.columns.column_values import (
    BATCH_COLUMNS,
    INT_COLUMNS,
    RECORD_COLUMNS,
    BatchColumns,
    Chunk,
    RecordColumns,
    binary_array,
)
from raftlog.records.columns.record_areas import RecordAreas, error_of, unpack_record_areas
from raftlog.records.columns.record_digests import RecordDigests, record_digests
from raftlog.records.columns.record_marks import MARK_COLUMNS, are_marked, mark_column
from raftlog.records.columns.record_selection import EVERYTHING, RecordSelection, Rows, SelectedRun
from raftlog.records.columns.transactions import Transactions, find_transactions
from raftlog.records.kernel_choice import IS_COMPILED, kernel

__all__ = [
    "BATCH_COLUMNS",
    "MARK_COLUMNS",
    "RECORD_COLUMNS",
    "BatchColumns",
    "Chunk",
    "RecordColumns",
    "RecordDigests",
    "binary_array",
    "columns_of_areas",
    "read_columns",
    "read_records",
    "record_digests",
    "run_columns",
    "select_columns",
]

_WANTED_BITS: Final = {name: 1 << index for index, name in enumerate(RECORD_COLUMNS)}
_BOUNDED_BITS: Final = _WANTED_BITS["offset"] | _WANTED_BITS["timestamp"]


def read_columns(
    source: ByteSource | bytes | bytearray | memoryview,
    columns: Collection[str] = RECORD_COLUMNS,
    *,
    start: int = 0,
    stop: int | None = None,
    max_size: int = limits.MAX_DECOMPRESSED_SIZE,
    from_offset: int | None = None,
    to_offset: int | None = None,
    since_ms: int | None = None,
    data_only: bool = True,
    read_committed: bool = False,
    transactions: Transactions | None = None,
) -> Iterator[Chunk | LegacyBatch | TornTail | ZeroPadding | Corruption]:
    """Yield a log as columns, one chunk at a time, in order.

    Args:
        source: a buffer, or a file (``raftlog.storage.reading.segment_reader``).
        columns: which of ``RECORD_COLUMNS`` and ``MARK_COLUMNS`` to unpack; with none, chunks have only batch headers.
        start: byte position to start at, inclusive, as in ``split``.
        stop: byte position to end at, exclusive, as in ``split``.
        max_size: the most bytes that the records of one batch may decompress to.
        from_offset: first offset, inclusive.
        to_offset: last offset, exclusive; reading stops there.
        since_ms: earliest timestamp, inclusive, in ms.
        data_only: whether to leave out control records; their batches have no rows then.
        read_committed: whether to leave out records of aborted transactions, and all records from the last stable
            offset on.
        transactions: the known transactions, for ``read_committed`` and ``is_aborted``; None to search the whole source
            for them first (``raftlog.records.columns.transactions.find_transactions``).

    Batches whose headers place them out of bounds at either end are not yielded; out-of-bounds rows of other batches
    are dropped. A batch in between without selected records has no rows. Anything else than batches of magic 2 is
    yielded as the pieces of ``raftlog.records.batches.iterator``, whatever the bounds: legacy messages, a torn tail,
    zero padding, corruption.

    Raises:
        ValueError: a column is neither in ``RECORD_COLUMNS`` nor in ``MARK_COLUMNS``.
    """
    _wanted(columns)
    source = _byte_source(source)
    if transactions is None and (read_committed or "is_aborted" in columns):
        transactions = find_transactions(source)
    selection = RecordSelection(from_offset, to_offset, since_ms, data_only, read_committed, transactions)
    yield from select_columns(source, columns, selection, start=start, stop=stop, max_size=max_size)


def select_columns(
    source: ByteSource,
    columns: Collection[str],
    selection: RecordSelection,
    *,
    start: int = 0,
    stop: int | None = None,
    max_size: int = limits.MAX_DECOMPRESSED_SIZE,
) -> Iterator[Chunk | LegacyBatch | TornTail | ZeroPadding | Corruption]:
    """Yield what ``read_columns`` does, for an existing selection.

    Raises:
        ValueError: as for ``read_columns``.
    """
    wanted = _wanted(columns)
    for piece in split_runs(source, start=start, stop=stop):
        if not isinstance(piece, BatchRun):
            yield piece
            continue
        if selection.ends_before(piece):
            return
        if not columns and not selection.bounds_records:
            yield Chunk(BatchColumns(piece))
        elif (selected := selection.select(piece)) is not None:
            if columns:
                yield from _with_records(selected, wanted, max_size, columns, selection)
            else:
                yield Chunk(BatchColumns(selected.run))


def run_columns(
    run: BatchRun, columns: Collection[str] = RECORD_COLUMNS, *, max_size: int = limits.MAX_DECOMPRESSED_SIZE
) -> Iterator[Chunk]:
    """Yield all records of given batches, as columns. The batches need not be adjacent.

    Control records are included.

    Args:
        run: the batches.
        columns: which of ``RECORD_COLUMNS`` and ``MARK_COLUMNS`` to unpack, but not ``is_aborted``; with none, the
            records are checked and counted only.
        max_size: the most bytes that the records of one batch may decompress to.

    Raises:
        ValueError: there is no such column.
    """
    wanted = _wanted(columns)
    if "is_aborted" in columns:
        raise ValueError("some batches of a log do not say which of them were aborted")
    return _with_records(SelectedRun(run, are_marked(run)), wanted, max_size, columns, EVERYTHING)


def columns_of_areas(areas: RecordAreas, columns: Collection[str] = RECORD_COLUMNS) -> Chunk:
    """Return all records of some batches as columns, from their record areas; control records are included.

    Args:
        areas: from ``unpack_record_areas``.
        columns: which of ``RECORD_COLUMNS`` to unpack; with none, the records are checked and counted only.

    Raises:
        ValueError: there is no such column.
    """
    wanted = _wanted(columns)
    return _walk(areas, wanted, limits.MAX_DECOMPRESSED_SIZE, are_marked(areas.run), (), EVERYTHING)


def read_records(
    source: ByteSource | bytes | bytearray | memoryview,
    *,
    start: int = 0,
    from_offset: int | None = None,
    to_offset: int | None = None,
    data_only: bool = True,
    read_committed: bool = False,
    transactions: Transactions | None = None,
) -> Iterator[RecordView]:
    """Yield the records of a log's batches of magic 2, in order, as objects that copy keys and values on demand.

    A torn tail and zero padding end the log without error. The arguments are those of ``read_columns``.

    Raises:
        DecodeError: at the first damage or legacy message, after all records before it. Damage inside a batch's records
            is detected only if some of them are selected.
        MissingExtraError: a codec's package is not installed.
    """
    source = _byte_source(source)
    if transactions is None and read_committed:
        transactions = find_transactions(source)
    selection = RecordSelection(from_offset, to_offset, None, data_only, read_committed, transactions)
    # Saves each record one generator to pass through.
    return itertools.chain.from_iterable(_objects(source, start, selection))


def _byte_source(source: ByteSource | bytes | bytearray | memoryview) -> ByteSource:
    return BufferSource(source) if isinstance(source, bytes | bytearray | memoryview) else source


def _objects(source: ByteSource, start: int, selection: RecordSelection) -> Iterator[Iterable[RecordView]]:
    for piece in split_runs(source, start=start):
        match piece:
            case BatchRun():
                if selection.ends_before(piece):
                    return
                if (selected := selection.select(piece)) is not None:
                    yield from (_objects_of_run if IS_COMPILED else _objects_interpreted)(selected, selection)
            case Corruption():
                raise CorruptBatchError(piece.reason, piece.rule, position=piece.position)
            case LegacyBatch():
                raise UnsupportedMagicError(f"magic {piece.magic}", "batch-magic", position=piece.position)


def _objects_of_run(selected: SelectedRun, selection: RecordSelection) -> Iterator[Iterable[RecordView]]:
    wanted = _wanted(RECORD_COLUMNS)
    for chunk in _with_records(selected, wanted, limits.MAX_DECOMPRESSED_SIZE, RECORD_COLUMNS, selection):
        records = present(chunk.records, "what was unpacked")
        for batch, error in chunk.errors:
            yield records.iterate(0, records.ends[batch])
            raise fresh_copy(error)
        yield records.iterate()


def _objects_interpreted(selected: SelectedRun, selection: RecordSelection) -> Iterator[Iterable[RecordView]]:
    """Yield the same records without columns, which is faster if the kernel is interpreted."""
    for index, batch in enumerate(selected.run.batches()):
        if index in selected.unwanted:
            continue
        records = list(batch.records(check_crc=False))  # All or none of them. The CRC has been checked.
        if index in selected.cut:
            records = [each for each in records if selection.are_wanted(each.offset, each.offset, each.timestamp)]
        yield records


def _wanted(columns: Collection[str]) -> int:
    unknown = set(columns).difference(RECORD_COLUMNS, MARK_COLUMNS)
    if unknown:
        there_are = ", ".join((*RECORD_COLUMNS, *MARK_COLUMNS))
        raise ValueError(f"no such columns: {', '.join(sorted(unknown))}; there are {there_are}")
    return sum(_WANTED_BITS[name] for name in set(columns).intersection(RECORD_COLUMNS))


def _with_records(
    selected: SelectedRun, wanted: int, max_size: int, columns: Collection[str], selection: RecordSelection
) -> Iterator[Chunk]:
    first = 0
    for areas in unpack_record_areas(selected.run, max_size, selected.unwanted):
        last = first + len(areas.run)
        cut = [index - first for index in selected.cut if first <= index < last]
        chunk = _walk(areas, wanted, max_size, selected.is_marked, cut, selection)
        for name in MARK_COLUMNS:
            if name in columns:
                records = present(chunk.records, "what was unpacked")
                records.columns[name] = mark_column(name, areas.run, records.ends, selection.aborted)
        yield chunk
        first = last


def _walk(
    areas: RecordAreas, wanted: int, max_size: int, is_marked: bool, cut: Collection[int], selection: RecordSelection
) -> Chunk:
    run, data, capacity = areas.run, areas.data, areas.capacity + 1  # A bad batch may start one row more.
    longs = memoryview(kernel.room(8 * 2 * capacity)).cast("q")
    ints = memoryview(kernel.room(4 * 6 * capacity)).cast("i")
    ends = memoryview(bytearray(8 * len(run))).cast("q")
    errors = dict(areas.failed)
    unpacked = wanted | _BOUNDED_BITS if cut else wanted
    batch = row = 0
    while True:
        before = batch
        batch, rule = kernel.walk(data, areas.columns, batch, row, unpacked, capacity, longs, ints, ends)
        is_inside = before <= batch <= len(run)
        invariant(is_inside, "position {}: batch {} of {}, previous {}", run.start, batch, len(run), before)
        if rule == 0:
            break
        errors[batch] = error_of(run.batch(batch), kernel.RULE_IDS[rule], max_size)
        row = ends[batch] = ends[batch - 1] if batch else 0
        batch += 1
    if cut:
        rows = Rows(ends, capacity, longs, ints).kept(cut, selection)
        ends, capacity, longs, ints = rows.ends, rows.capacity, rows.longs, rows.ints
    count = ends[-1]
    invariant(0 <= count <= capacity, "position {}: {} records, capacity {}", run.start, count, capacity)
    columns = {}
    for index, name in enumerate(("offset", "timestamp")):
        if wanted & _WANTED_BITS[name]:
            columns[name] = longs[index * capacity : index * capacity + count]
    for index, name in enumerate(INT_COLUMNS):
        if wanted & (4 << index // 2):
            columns[name] = ints[index * capacity : index * capacity + count]
    records = RecordColumns(data, count, columns, ends, capacity, longs, ints, run, is_marked)
    return Chunk(BatchColumns(run), records, tuple(sorted(errors.items())))
