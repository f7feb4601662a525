# SPDX-License-Identifier: Apache-2.0
"""A log's batch headers and record fields as columns: memoryviews, numpy arrays, Arrow arrays or objects."""

import bisect
import itertools
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, Final, cast

import attrs

from raftlog.errors import DecodeError, MissingExtraError
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.record import MARK_FLAGS, RecordView
from raftlog.records.columns.record_marks import MARK_COLUMNS, batch_flags
from raftlog.records.kernel_choice import kernel

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

RECORD_COLUMNS: Final = ("offset", "timestamp", "key", "value", "headers")
"""The columns of records that can be requested."""

INT_COLUMNS: Final = ("key_position", "key_size", "value_position", "value_size", "header_position", "header_count")
"""The kernel's columns of records besides offset and timestamp, as 32-bit integers."""

_KERNEL_COLUMNS: Final = ("offset", "timestamp", *INT_COLUMNS)
_ALL_KERNEL_COLUMNS: Final = frozenset(_KERNEL_COLUMNS)
_DTYPES: Final = {8: "int64", 4: "int32", 1: "bool"}
"""The numpy dtype of a column, by the size of an item in bytes."""
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
"""The columns of batches that can be requested."""


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
        array: np.ndarray[Any, np.dtype[np.int64]] = numpy_module().frombuffer(self.column(name), dtype="int64")
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
        data: the bytes that positions refer to: the log itself, or decompressed record areas.
        count: how many records there are.
        columns: the requested columns by name. ``offset`` and ``timestamp`` (ms) are 64-bit integers. ``key_position``,
            ``key_size`` (-1 is null), ``value_position``, ``value_size``, ``header_position`` and ``header_count`` are
            32-bit integers. ``MARK_COLUMNS`` are one-byte booleans.
        ends: for each batch, the row after its last record.
        capacity, longs, ints: the kernel's own columns, one after the other, each ``capacity`` long.
        run: the batches.
        is_marked: whether one of them may be a control batch or part of a transaction.
    """

    data: memoryview
    count: int
    columns: dict[str, memoryview]
    ends: memoryview
    capacity: int
    longs: memoryview
    ints: memoryview
    run: BatchRun
    is_marked: bool
    _bytes: bytes | None = attrs.field(default=None, init=False, repr=False)
    _flags: memoryview | None = attrs.field(default=None, init=False, repr=False)

    def to_numpy(self, name: str) -> "np.ndarray[Any, Any]":
        """Return a column as a numpy array, without a copy.

        Raises:
            KeyError: the column was not requested.
                        MissingExtraError: numpy is not installed.
        """
        column = self.columns[name]
        array: np.ndarray[Any, Any] = numpy_module().frombuffer(column, dtype=_DTYPES[column.itemsize])
        return array

    def objects(self, first: int = 0, last: int | None = None) -> list[RecordView]:
        """Return one object per record, from row ``first`` (inclusive) to row ``last`` (exclusive).

        Raises:
            KeyError: a column was not asked for.
        """
        return list(self.iterate(first, last))

    def iterate(self, first: int = 0, last: int | None = None) -> Iterator[RecordView]:
        """Return an iterator over what ``objects`` returns, which creates each object on demand.

        Raises:
            KeyError: a column was not asked for.
        """
        if len(self.columns) < len(_KERNEL_COLUMNS) or not self.columns.keys() >= _ALL_KERNEL_COLUMNS:
            raise KeyError("some columns of records were not asked for")
        first, last, _ = slice(first, last).indices(self.count)
        if not self.is_marked:
            return self._rows(first, last, 0)
        if self._flags is None:
            self._flags = batch_flags(self.run)
        return itertools.chain.from_iterable(self._marked_rows(self._flags, first, last))

    def _rows(self, first: int, last: int, flags: int) -> Iterator[RecordView]:
        if self._bytes is None:
            self._bytes = _whole_bytes(self.data)
        rows = kernel.Records(self._bytes, self.capacity, self.longs, self.ints, first, last, flags)
        return cast("Iterator[RecordView]", rows)

    def _marked_rows(self, flags: memoryview, first: int, last: int) -> Iterator[Iterator[RecordView]]:
        """Yield the rows of adjacent batches with the same marks, together."""
        marks = 0
        start = end = first
        for batch in range(bisect.bisect_right(self.ends, first), len(self.ends)):
            if end < self.ends[batch] and flags[batch] & MARK_FLAGS != marks:
                if start < end:
                    yield self._rows(start, end, marks)
                start, marks = end, flags[batch] & MARK_FLAGS
            end = min(self.ends[batch], last)
            if end == last:
                break
        if start < end:
            yield self._rows(start, end, marks)

    def keys(self) -> "list[bytes | None]":
        """Return all keys."""
        return self._fields("key")

    def values(self) -> "list[bytes | None]":
        """Return all values."""
        return self._fields("value")

    def _fields(self, name: str) -> "list[bytes | None]":
        data = _whole_bytes(self.data)
        found: list[bytes | None] = kernel.pieces(data, self.columns[f"{name}_position"], self.columns[f"{name}_size"])
        return found

    def headers(self) -> "list[tuple[tuple[bytes, bytes | None], ...]]":
        """Return the headers of all records."""
        data = _whole_bytes(self.data)
        rows = zip(self.columns["header_position"], self.columns["header_count"], strict=True)
        return [kernel.read_headers(data, position, count) if count else () for position, count in rows]

    def to_arrow(self) -> "pa.RecordBatch":
        """Return the requested columns as an Arrow record batch.

        Its schema has, in this order and if requested: offset int64, timestamp timestamp[ms, UTC], key binary, value
        binary, headers list<struct<key: binary, value: binary>>, and marks as bool.

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
        arrays |= {name: arrow.array(self.to_numpy(name)) for name in MARK_COLUMNS if name in self.columns}
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
        positions: where each piece starts, as 32-bit integers that the caller has checked.
        sizes: how many bytes each piece has, in the same form; -1 is null.

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
    """Adjacent batches of magic 2, and their records.

    Attributes:
        batches: their headers, as stored.
        records: their selected records, or None if no columns of records were requested.
        errors: the errors of batches whose records cannot be read, by the index of the batch; such a batch has no rows.
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
        """Size of all batches together, headers included."""
        return self.batches.run.end - self.batches.run.start


def _longs(count: int) -> memoryview:
    return memoryview(bytearray(8 * count)).cast("q")


def _ints(count: int) -> memoryview:
    return memoryview(bytearray(4 * count)).cast("i")


def _whole_bytes(data: memoryview) -> bytes:
    whole = data.obj
    return whole if isinstance(whole, bytes) and len(whole) == len(data) else bytes(data)


def numpy_module() -> Any:
    """Import numpy.

    Raises:
        MissingExtraError: it is not installed.
    """
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
