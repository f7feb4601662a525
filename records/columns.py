# SPDX-License-Identifier: Apache-2.0
"""A log as columns: the fast way to read one.

``read_columns`` takes a log a chunk at a time and gives, for each chunk, the headers of its batches and the fields of
its records as flat columns: memoryviews of integers. Keys and values stay where they are, as position and size in the
chunk's data, until somebody asks for them: as numpy arrays (without a copy), as an Arrow table, or as objects.

Every CRC is checked. Nothing is unpacked that is not asked for.
"""

import itertools
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, cast

import attrs

from raftlog.errors import CorruptBatchError, DecodeError, MissingExtraError, UnsupportedMagicError, fresh_copy
from raftlog.records import limits
from raftlog.records.batch_run import BatchRun
from raftlog.records.iterator import BufferSource, ByteSource, Corruption, TornTail, ZeroPadding, split_runs
from raftlog.records.kernel_choice import IS_COMPILED, kernel
from raftlog.records.legacy import LegacyBatch
from raftlog.records.record import RecordView
from raftlog.records.record_areas import RecordAreas, error_of, unpack_record_areas

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

RECORD_COLUMNS: Final = ("offset", "timestamp", "key", "value", "headers")
"""What may be asked for of records."""

_WANTED_BITS: Final = {name: 1 << index for index, name in enumerate(RECORD_COLUMNS)}
_INT_COLUMNS: Final = ("key_position", "key_size", "value_position", "value_size", "header_position", "header_count")
_KERNEL_COLUMNS: Final = ("offset", "timestamp", *_INT_COLUMNS)
_HEADER_FIELDS: Final = {
    "base_offset": (0, 8),
    "length": (8, 4),
    "partition_leader_epoch": (12, 4),
    "crc": (17, 4),
    "attributes": (21, 2),
    "last_offset_delta": (23, 4),
    "base_timestamp": (27, 8),
    "max_timestamp": (35, 8),
    "producer_id": (43, 8),
    "producer_epoch": (51, 2),
    "base_sequence": (53, 4),
    "record_count": (57, 4),
}
"""Position and size of each field of a batch header."""

BATCH_COLUMNS: Final = ("position", "size", *_HEADER_FIELDS)
"""What may be asked for of batches."""


@attrs.frozen
class BatchColumns:
    """The headers of some batches.

    Attributes:
        run: the batches.
    """

    run: BatchRun

    def __len__(self) -> int:
        return len(self.run)

    def column(self, name: str) -> memoryview:
        """Return one of ``BATCH_COLUMNS`` as 64-bit integers; ``position`` is in the file, ``crc`` is signed.

        Raises:
            KeyError: there is no such column.
        """
        column = _longs(len(self.run))
        if name == "position":
            for index, position in enumerate(self.run.positions):
                column[index] = self.run.position + position
        elif name == "size":
            for index, size in enumerate(self.run.sizes):
                column[index] = size
        else:
            kernel.header_field(self.run.data, self.run.positions, *_HEADER_FIELDS[name], column)
        return column

    def to_numpy(self, name: str) -> "np.ndarray[Any, np.dtype[np.int64]]":
        """Return a column as a numpy array.

        Raises:
            KeyError: there is no such column.
            MissingExtraError: numpy is not installed.
        """
        array: np.ndarray[Any, np.dtype[np.int64]] = _numpy().frombuffer(self.column(name), dtype="int64")
        return array

    def to_arrow(self, names: Collection[str] = BATCH_COLUMNS) -> "pa.RecordBatch":
        """Return columns as an Arrow record batch of int64.

        Raises:
            KeyError: there is no such column.
            MissingExtraError: pyarrow is not installed.
        """
        arrow = _arrow()
        arrays = [
            arrow.Array.from_buffers(arrow.int64(), len(self), [None, arrow.py_buffer(self.column(name))])
            for name in names
        ]
        return arrow.record_batch(arrays, names=list(names))


@attrs.define
class RecordColumns:
    """The records of some batches.

    Attributes:
        data: what positions are of: the log itself, or decompressed record areas.
        count: how many records there are.
        columns: those that were asked for, by name: ``offset`` and ``timestamp`` (ms) as 64-bit integers; as 32-bit
            ones ``key_position``, ``key_size`` (-1 is null), ``value_position``, ``value_size``, ``header_position``
            and ``header_count``.
        ends: for each batch, the row after its last record.
        capacity, longs, ints: the columns as the kernel has them, one after the other, each ``capacity`` long.
    """

    data: memoryview
    count: int
    columns: dict[str, memoryview]
    ends: memoryview
    capacity: int
    longs: memoryview
    ints: memoryview
    _bytes: bytes | None = attrs.field(default=None, init=False, repr=False)

    def to_numpy(self, name: str) -> "np.ndarray[Any, Any]":
        """Return a column as a numpy array, without a copy.

        Raises:
            KeyError: the column was not asked for.
            MissingExtraError: numpy is not installed.
        """
        column = self.columns[name]
        array: np.ndarray[Any, Any] = _numpy().frombuffer(column, dtype="int64" if column.itemsize == 8 else "int32")
        return array

    def objects(self, first: int = 0, last: int | None = None) -> list[RecordView]:
        """Return an object for each record from a row (inclusive) to another (exclusive).

        Raises:
            KeyError: a column was not asked for.
        """
        return list(self.iterate(first, last))

    def iterate(self, first: int = 0, last: int | None = None) -> Iterator[RecordView]:
        """Return an iterator over what ``objects`` returns, which makes each object when its turn comes.

        Raises:
            KeyError: a column was not asked for.
        """
        if len(self.columns) < len(_KERNEL_COLUMNS):
            raise KeyError("some columns of records were not asked for")
        if self._bytes is None:
            self._bytes = _whole_bytes(self.data)
        first, last, _ = slice(first, last).indices(self.count)
        rows = kernel.Records(self._bytes, self.capacity, self.longs, self.ints, first, last)
        return cast("Iterator[RecordView]", rows)

    def keys(self) -> "list[bytes | None]":
        """Return all keys."""
        return self._fields("key")

    def values(self) -> "list[bytes | None]":
        """Return all values."""
        return self._fields("value")

    def _fields(self, name: str) -> "list[bytes | None]":
        data = _whole_bytes(self.data)
        rows = zip(self.columns[f"{name}_position"], self.columns[f"{name}_size"], strict=True)
        return [None if size < 0 else data[position : position + size] for position, size in rows]

    def headers(self) -> "list[tuple[tuple[bytes, bytes | None], ...]]":
        """Return the headers of all records."""
        data = _whole_bytes(self.data)
        rows = zip(self.columns["header_position"], self.columns["header_count"], strict=True)
        return [kernel.read_headers(data, position, count) if count else () for position, count in rows]

    def to_arrow(self) -> "pa.RecordBatch":
        """Return the columns that were asked for as an Arrow record batch.

        Its schema has, in this order and as far as they were asked for: offset int64, timestamp timestamp[ms, UTC], key
        binary, value binary, headers list<struct<key: binary, value: binary>>.

        Raises:
            MissingExtraError: pyarrow is not installed.
        """
        arrow = _arrow()
        arrays: dict[str, pa.Array] = {}
        for name, kind in (("offset", arrow.int64()), ("timestamp", arrow.timestamp("ms", "UTC"))):
            if name in self.columns:
                buffer = arrow.py_buffer(self.columns[name])
                arrays[name] = arrow.Array.from_buffers(kind, self.count, [None, buffer])
        for name in ("key", "value"):
            if f"{name}_size" in self.columns:
                arrays[name] = self.binary(name)
        if "header_count" in self.columns:
            item = arrow.struct([("key", arrow.binary()), ("value", arrow.binary())])
            headers = [[{"key": key, "value": value} for key, value in each] for each in self.headers()]
            arrays["headers"] = arrow.array(headers, arrow.list_(item))
        return arrow.record_batch(list(arrays.values()), names=list(arrays))

    def binary(self, name: str) -> "pa.Array":
        """Return ``key`` or ``value`` as an Arrow array of binary.

        Raises:
            KeyError: the column was not asked for.
            MissingExtraError: pyarrow is not installed.
        """
        return binary_array(self.data, self.columns[f"{name}_position"], self.columns[f"{name}_size"])


def binary_array(data: memoryview, positions: memoryview, sizes: memoryview) -> "pa.Array":
    """Copy pieces of some bytes into an Arrow array of binary.

    Args:
        data: the bytes.
        positions: of each piece: 32-bit integers that were checked.
        sizes: of each piece, likewise; -1 is null.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    arrow = _arrow()
    count = len(sizes)
    out = memoryview(kernel.room(kernel.total_size(sizes)))
    data_offsets = _ints(count + 1)
    validity = memoryview(bytearray((count + 7) // 8))
    nulls = kernel.gather(data, positions, sizes, data_offsets, validity, out)
    buffers = [arrow.py_buffer(validity) if nulls else None, arrow.py_buffer(data_offsets), arrow.py_buffer(out)]
    return arrow.Array.from_buffers(arrow.binary(), count, buffers, nulls)


@attrs.frozen
class Chunk:
    """Some batches of magic 2 that stand end to end, and their records.

    Attributes:
        batches: their headers.
        records: their records, or None if no columns of records were asked for.
        errors: what could not be read, each with the index of its batch, which then has no rows.
    """

    batches: BatchColumns
    records: RecordColumns | None = None
    errors: tuple[tuple[int, DecodeError | MissingExtraError], ...] = ()

    def objects(self, batch: int) -> list[RecordView]:
        """Return the records of one batch, by its index, as objects.

        Raises:
            KeyError: a column of records was not asked for.
        """
        if self.records is None:
            raise KeyError("no columns of records were asked for")
        first = self.records.ends[batch - 1] if batch else 0
        return self.records.objects(first, self.records.ends[batch])

    @property
    def position(self) -> int:
        """Byte position of the first batch in the file."""
        return self.batches.run.start

    @property
    def size_bytes(self) -> int:
        """All batches together, headers included."""
        return self.batches.run.end - self.batches.run.start


def read_columns(
    source: ByteSource | bytes | bytearray | memoryview,
    columns: Collection[str] = RECORD_COLUMNS,
    *,
    start: int = 0,
    stop: int | None = None,
    max_size: int = limits.MAX_DECOMPRESSED_SIZE,
) -> Iterator[Chunk | LegacyBatch | TornTail | ZeroPadding | Corruption]:
    """Yield a log as columns, a chunk at a time, in order.

    Args:
        source: a buffer, or a file (``raftlog.storage.segment_reader``).
        columns: which of ``RECORD_COLUMNS`` to unpack; none gives headers alone.
        start: byte position to start at, inclusive, as in ``split``.
        stop: byte position to end at, exclusive, as in ``split``.
        max_size: the most bytes that the records of one batch may decompress to.

    What is no batch of magic 2 comes as the pieces of ``raftlog.records.iterator``: legacy messages, a torn tail, zero
    padding, corruption.

    Raises:
        ValueError: a column is not one of ``RECORD_COLUMNS``.
    """
    wanted = _wanted(columns)
    if isinstance(source, bytes | bytearray | memoryview):
        source = BufferSource(source)
    for piece in split_runs(source, start=start, stop=stop):
        if not isinstance(piece, BatchRun):
            yield piece
        elif wanted:
            yield from _with_records(piece, wanted, max_size)
        else:
            yield Chunk(BatchColumns(piece))


def run_columns(
    run: BatchRun, columns: Collection[str] = RECORD_COLUMNS, *, max_size: int = limits.MAX_DECOMPRESSED_SIZE
) -> Iterator[Chunk]:
    """Yield the records of batches that were found already, as columns; those batches need not stand end to end.

    Args:
        run: the batches.
        columns: which of ``RECORD_COLUMNS`` to unpack, one at least.
        max_size: the most bytes that the records of one batch may decompress to.

    Raises:
        ValueError: a column is not one of ``RECORD_COLUMNS``.
    """
    return _with_records(run, _wanted(columns), max_size)


def read_records(source: ByteSource | bytes | bytearray | memoryview) -> Iterator[RecordView]:
    """Yield the records of a log's batches of magic 2, in order, as objects that cut keys and values out when asked.

    A torn tail and zero padding end the log without error.

    Raises:
        DecodeError: at the first thing that is damaged, or a legacy message; all that stands before it is given first.
        MissingExtraError: a codec's package is not installed.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        source = BufferSource(source)
    return itertools.chain.from_iterable(_objects(source))  # One generator fewer for each record to pass through.


def _objects(source: ByteSource) -> Iterator[Iterable[RecordView]]:
    for piece in split_runs(source):
        match piece:
            case BatchRun():
                yield from _objects_of_run(piece) if IS_COMPILED else _objects_interpreted(piece)
            case Corruption():
                raise CorruptBatchError(piece.reason, piece.rule, position=piece.position)
            case LegacyBatch():
                raise UnsupportedMagicError(f"magic {piece.magic}", "batch-magic", position=piece.position)


def _objects_of_run(run: BatchRun) -> Iterator[Iterable[RecordView]]:
    for chunk in _with_records(run, sum(_WANTED_BITS.values()), limits.MAX_DECOMPRESSED_SIZE):
        assert chunk.records is not None
        for batch, error in chunk.errors:
            yield chunk.records.iterate(0, chunk.records.ends[batch])
            raise fresh_copy(error)
        yield chunk.records.iterate()


def _objects_interpreted(run: BatchRun) -> Iterator[Iterable[RecordView]]:
    """Give the same records: where the kernel is interpreted, columns are a detour."""
    for batch in run.batches():
        yield list(batch.records(check_crc=False))  # None of a batch that is damaged; its CRC has been checked.


def _wanted(columns: Collection[str]) -> int:
    unknown = set(columns) - set(RECORD_COLUMNS)
    if unknown:
        raise ValueError(f"no such columns: {', '.join(sorted(unknown))}; there are {', '.join(RECORD_COLUMNS)}")
    return sum(_WANTED_BITS[name] for name in set(columns))


def _with_records(run: BatchRun, wanted: int, max_size: int) -> Iterator[Chunk]:
    for areas in unpack_record_areas(run, max_size):
        yield _walk(areas, wanted, max_size)


def _walk(areas: RecordAreas, wanted: int, max_size: int) -> Chunk:
    run, data, capacity = areas.run, areas.data, areas.capacity + 1  # The row that a bad batch starts to fill.
    longs = memoryview(kernel.room(8 * 2 * capacity)).cast("q")
    ints = memoryview(kernel.room(4 * 6 * capacity)).cast("i")
    ends = _longs(len(run))
    errors = dict(areas.failed)
    batch = row = 0
    while True:
        batch, rule = kernel.walk(data, areas.columns, batch, row, wanted, capacity, longs, ints, ends)
        if rule == 0:
            break
        errors[batch] = error_of(run.batch(batch), kernel.RULE_IDS[rule], max_size)
        row = ends[batch] = ends[batch - 1] if batch else 0
        batch += 1
    rows = ends[-1]
    columns = {}
    for index, name in enumerate(("offset", "timestamp")):
        if wanted & _WANTED_BITS[name]:
            columns[name] = longs[index * capacity : index * capacity + rows]
    for index, name in enumerate(_INT_COLUMNS):
        if wanted & (4 << index // 2):
            columns[name] = ints[index * capacity : index * capacity + rows]
    return Chunk(
        BatchColumns(run),
        RecordColumns(data, rows, columns, ends, capacity, longs, ints),
        tuple(sorted(errors.items())),
    )


def _longs(count: int) -> memoryview:
    return memoryview(bytearray(8 * count)).cast("q")


def _ints(count: int) -> memoryview:
    return memoryview(bytearray(4 * count)).cast("i")


def _whole_bytes(data: memoryview) -> bytes:
    whole = data.obj
    return whole if isinstance(whole, bytes) and len(whole) == len(data) else bytes(data)


def _numpy() -> Any:
    try:
        import numpy as np
    except ImportError as error:
        raise MissingExtraError("columns", "a numpy array") from error
    return np


def _arrow() -> Any:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingExtraError("columns", "an Arrow table") from error
    return pa
