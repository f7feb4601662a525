# SPDX-License-Identifier: Apache-2.0
"""Makes Arrow arrays from numbers and bytes, without a Python object per row."""

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from raftlog.records.batches.compression import CompressionType
from raftlog.records.columns.columns import RecordColumns, binary_array
from raftlog.records.messages.java_text import decode_utf8

if TYPE_CHECKING:
    import numpy as np

    Longs = np.ndarray[Any, np.dtype[np.int64]]
    Flags = np.ndarray[Any, np.dtype[np.bool_]]
    Numbers = np.ndarray[Any, Any]

_MICROSECONDS: Final = 1000
_MOST_MS: Final = (1 << 63) // _MICROSECONDS - 1
_MANY_HEADERS: Final = 64
"""If a record has more headers than this, all are read record by record."""
_CODEC_LABELS: Final = tuple(
    CompressionType(codec).label if codec in set(CompressionType) else f"unknown({codec})" for codec in range(8)
)


def constant(value: Any, kind: pa.DataType, count: int) -> pa.Array:
    """Return an array of one repeated value; it is cached, so that later calls are cheap."""
    return _constant(value, kind, 1 << max(10, count.bit_length())).slice(0, count)


@functools.lru_cache(maxsize=64)
def _constant(value: Any, kind: pa.DataType, count: int) -> pa.Array:
    return pa.nulls(count, kind) if value is None else pa.repeat(pa.scalar(value, kind), count)


def numbers(values: "Numbers", kind: pa.DataType) -> pa.Array:
    """Return integers as an array of another width, which the values must fit."""
    return pa.array(values.astype(kind.to_pandas_dtype(), copy=False))


def timestamps(milliseconds: "Longs", shown: "Flags | None" = None) -> pa.Array:
    """Return timestamps in ms as an array of microseconds; null if that exceeds 64 bits.

    Args:
        milliseconds: the timestamps.
        shown: flags of those that are not null; None for all.
    """
    kind = pa.timestamp("us", "UTC")
    count = len(milliseconds)
    buffer = pa.py_buffer((milliseconds * _MICROSECONDS).data)
    if count and (milliseconds.max() > _MOST_MS or milliseconds.min() < -_MOST_MS):
        fits = (milliseconds <= _MOST_MS) & (milliseconds >= -_MOST_MS)
        shown = fits if shown is None else fits & shown
    validity = None if shown is None else pa.array(shown).buffers()[1]
    return pa.Array.from_buffers(kind, count, [validity, buffer])


def timestamp_us(milliseconds: int | None) -> int | None:
    """Return one timestamp in ms as microseconds, or None, as ``timestamps`` does."""
    if milliseconds is None or not -_MOST_MS <= milliseconds <= _MOST_MS:
        return None
    return milliseconds * _MICROSECONDS


def codec_labels(attributes: "Longs") -> pa.Array:
    """Return the names of the codecs that the attributes of batches name."""
    return pa.array(_CODEC_LABELS).take(pa.array(attributes & 7))


def codec_label(attributes: int) -> str:
    """Return the name of one codec."""
    return _CODEC_LABELS[attributes & 7]


def headers(records: RecordColumns) -> pa.Array:
    """Return the headers of records as lists of structs; null for a record without headers.

    The records must have been read with the column ``headers``.

    Source: Spark's KafkaRecordToRowConverter, for the null.
    """
    import numpy as np

    counts = records.to_numpy("header_count").astype(np.int64)
    ends = np.concatenate([[0], counts.cumsum()])
    if len(counts) and counts.max() > _MANY_HEADERS:
        flat = [header for each in records.headers() for header in each]
        keys = pa.array([key for key, _ in flat], pa.binary())
        values = pa.array([value for _, value in flat], pa.binary())
    else:
        keys, values = _header_fields(records, counts, ends)
    items = pa.StructArray.from_arrays([_text(keys), values], ["key", "value"])
    return pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), items, mask=pa.array(counts == 0))


def _header_fields(records: RecordColumns, counts: "Longs", ends: "Longs") -> tuple[pa.Array, pa.Array]:
    """Read the first header of all records, then the second of those that have one, and so on."""
    import numpy as np

    data = np.frombuffer(records.data, dtype=np.uint8)
    places = np.zeros((4, ends[-1]), dtype=np.int32)
    rows = np.flatnonzero(counts)
    at = records.to_numpy("header_position")[rows].astype(np.int64)
    level = 0
    while len(rows):
        slots = ends[rows] + level
        for field in (0, 2):
            sizes, at = _varints(data, at)
            places[field, slots], places[field + 1, slots] = at, sizes
            at = at + np.maximum(sizes, 0)
        level += 1
        go_on = counts[rows] > level
        rows, at = rows[go_on], at[go_on]
    keys = binary_array(records.data, places[0].data, places[1].data)
    return keys, binary_array(records.data, places[2].data, places[3].data)


def _varints(data: "np.ndarray[Any, np.dtype[np.uint8]]", at: "Longs") -> "tuple[Longs, Longs]":
    """Read a signed varint at each position; the kernel has validated them."""
    import numpy as np

    raw = np.zeros(len(at), dtype=np.int64)
    at = at.copy()
    unfinished = np.arange(len(at))
    shift = 0
    while len(unfinished):
        byte = data[at[unfinished]].astype(np.int64)
        raw[unfinished] |= (byte & 0x7F) << shift
        at[unfinished] += 1
        unfinished = unfinished[byte > 0x7F]
        shift += 7
    return (raw >> 1) ^ -(raw & 1), at


def _text(keys: pa.Array) -> pa.Array:
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:  # Bytes that are not UTF-8 are shown as Java shows them.
        return pa.array([None if key is None else decode_utf8(key) for key in keys.to_pylist()], pa.string())


def batch_of_rows(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows that were made one by one as a record batch; columns that a row lacks are null.

    Args:
        rows: values by the lower-case name of their column.
        schema: the wanted columns.
    """
    arrays = [pa.array([row.get(field.name.lower()) for row in rows], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
