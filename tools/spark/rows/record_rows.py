# SPDX-License-Identifier: Apache-2.0
"""The columns of views ``records`` and ``records_ext``, made from the columns of the kernel."""

import functools
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa

from raftlog.invariants import present
from raftlog.records.batches.batch import LOG_APPEND_TIME_FLAG
from raftlog.records.columns.columns import Chunk, RecordColumns
from raftlog.tools.auditing.batches.batch_table import BatchTable
from raftlog.tools.spark.rows import arrays
from raftlog.tools.spark.rows.parts import FilePart

if TYPE_CHECKING:
    from raftlog.tools.spark.rows.arrays import Longs, Numbers

_NUMBER_OF_SEQUENCES: Final = 1 << 31


class RecordRows:
    """The records of a chunk as rows.

    Args:
        part: the part that the chunk was read from.
        chunk: the records, with the kernel columns that the wanted columns need.
    """

    def __init__(self, part: FilePart, chunk: Chunk) -> None:
        self.part = part
        self.records: RecordColumns = present(chunk.records, "the unpacked records")
        self._chunk = chunk

    def __len__(self) -> int:
        return self.records.count

    @functools.cached_property
    def table(self) -> BatchTable:
        """The headers of the batches."""
        return BatchTable(self._chunk.batches)

    @functools.cached_property
    def offsets(self) -> "Longs":
        """The offsets of the records."""
        return self.records.to_numpy("offset")

    @functools.cached_property
    def _counts(self) -> "Longs":
        """The number of records per batch."""
        import numpy as np

        return cast("Longs", np.diff(np.frombuffer(self.records.ends, dtype=np.int64), prepend=0))

    def of_batch(self, values: "Numbers") -> "Numbers":
        """Repeat a value per batch for each of its records."""
        import numpy as np

        return np.repeat(values, self._counts)

    def column(self, name: str, kind: pa.DataType) -> pa.Array:
        """Return a column of the view by its lower-case name."""
        return _COLUMNS[name](self, kind)

    def same(self, value: Any, kind: pa.DataType) -> pa.Array:
        """Return a column with one value in every row."""
        return arrays.constant(value, kind, len(self))


Column = Callable[[RecordRows, pa.DataType], pa.Array]


def kernel_columns(names: Collection[str], *, are_bounded: bool) -> set[str]:
    """Return the kernel columns that some columns of a view need.

    Args:
        names: the lower-case names of the columns.
        are_bounded: whether rows will be selected by their offsets.
    """
    needed = {"offset", "timestamp", "key", "value", "headers"}.intersection(names)
    return needed | {"offset"} if are_bounded or "sequence" in names else needed


def _timestamp_types(rows: RecordRows, kind: pa.DataType) -> pa.Array:
    if not rows.table.all_attributes & LOG_APPEND_TIME_FLAG:
        return rows.same(0, kind)
    return arrays.numbers(rows.of_batch((rows.table.attributes & LOG_APPEND_TIME_FLAG) >> 3), kind)


def _sequences(rows: RecordRows, kind: pa.DataType) -> pa.Array:
    """Return the sequence of each record, with wraparound; -1 if the batch has none."""
    import numpy as np

    first = rows.of_batch(rows.table.base_sequences)
    deltas = rows.offsets - rows.of_batch(rows.table.base_offsets)
    return arrays.numbers(np.where(first < 0, -1, (first + deltas) % _NUMBER_OF_SEQUENCES), kind)


def _header_field(field: Callable[[BatchTable], "Numbers"]) -> Column:
    return lambda rows, kind: arrays.numbers(rows.of_batch(field(rows.table)), kind)


_COLUMNS: Final[dict[str, Column]] = {
    "key": lambda rows, kind: rows.records.binary("key"),
    "value": lambda rows, kind: rows.records.binary("value"),
    "headers": lambda rows, kind: arrays.headers(rows.records),
    "topic": lambda rows, kind: rows.same(rows.part.topic, kind),
    "partition": lambda rows, kind: rows.same(rows.part.partition, kind),
    "offset": lambda rows, kind: pa.array(rows.offsets),
    "timestamp": lambda rows, kind: arrays.timestamps(rows.records.to_numpy("timestamp")),
    "timestamptype": _timestamp_types,
    "leaderepoch": _header_field(lambda table: table.epochs),
    "batchbaseoffset": _header_field(lambda table: table.base_offsets),
    "sequence": _sequences,
    "producerid": _header_field(lambda table: table.producer_ids),
    "producerepoch": _header_field(lambda table: table.producer_epochs),
    "istransactional": _header_field(lambda table: table.are_transactional),
    "iscontrol": _header_field(lambda table: table.are_control),
    "codec": lambda rows, kind: arrays.codec_labels(rows.of_batch(rows.table.attributes)),
    "position": _header_field(lambda table: table.positions),
    "file": lambda rows, kind: rows.same(rows.part.file, kind),
    "crcok": lambda rows, kind: rows.same(True, kind),
    "issnapshot": lambda rows, kind: rows.same(rows.part.is_snapshot, kind),
    "_corrupt": lambda rows, kind: pa.nulls(len(rows), kind),
}
