# SPDX-License-Identifier: Apache-2.0
"""The columns of view ``batches``, from batch headers alone; no batch is decompressed."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from raftlog.records.batches.batch import DELETE_HORIZON_FLAG, LOG_APPEND_TIME_FLAG, NO_PRODUCER_ID
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.records.columns.columns import BatchColumns
from raftlog.tools.auditing.batches.batch_table import BatchTable
from raftlog.tools.spark.rows import arrays
from raftlog.tools.spark.rows.parts import FilePart

if TYPE_CHECKING:
    from raftlog.tools.spark.rows.arrays import Numbers

_UNSIGNED: Final = 0xFFFFFFFF


class BatchRows:
    """Some batches as rows of the view ``batches``.

    Args:
        part: the part of a file that contains them.
        table: their headers.
    """

    def __init__(self, part: FilePart, table: BatchTable) -> None:
        self.part = part
        self.table = table

    def __len__(self) -> int:
        return len(self.table)

    def column(self, name: str, kind: pa.DataType) -> pa.Array:
        """Return a column of the view by its lower-case name."""
        return _COLUMNS[name](self, kind)

    def same(self, value: Any, kind: pa.DataType) -> pa.Array:
        """Return a column with one value in every row."""
        return arrays.constant(value, kind, len(self))


Column = Callable[[BatchRows, pa.DataType], pa.Array]


def legacy_row(part: FilePart, batch: LegacyBatch) -> dict[str, Any]:
    """Return a message of magic 0 or 1 as a row; each is a batch of its own."""
    return {
        "topic": part.topic,
        "partition": part.partition,
        "baseoffset": batch.base_offset,
        "lastoffset": batch.last_offset,
        "maxtimestamp": arrays.timestamp_us(batch.max_timestamp),
        "timestamptype": int(batch.timestamp_type),
        "leaderepoch": -1,
        "producerid": NO_PRODUCER_ID,
        "producerepoch": -1,
        "basesequence": -1,
        "istransactional": False,
        "iscontrol": False,
        "codec": arrays.codec_label(batch.attributes),
        "magic": batch.magic,
        "crc": batch.crc,
        "size": batch.size_bytes,
        "position": batch.position,
        "file": part.file,
        "crcok": True,
    }


def _number(field: Callable[[BatchTable], "Numbers"]) -> Column:
    return lambda rows, kind: arrays.numbers(field(rows.table), kind)


def _base_timestamps(rows: BatchRows, kind: pa.DataType) -> pa.Array:
    """Return base timestamps; null for batches that have a delete horizon in that field."""
    if not rows.table.all_attributes & DELETE_HORIZON_FLAG:
        return arrays.timestamps(rows.table.base_timestamps)
    return arrays.timestamps(rows.table.base_timestamps, (rows.table.attributes & DELETE_HORIZON_FLAG) == 0)


def _delete_horizons(rows: BatchRows, kind: pa.DataType) -> pa.Array:
    if not rows.table.all_attributes & DELETE_HORIZON_FLAG:
        return rows.same(None, kind)
    return arrays.timestamps(rows.table.base_timestamps, (rows.table.attributes & DELETE_HORIZON_FLAG) != 0)


def _crcs(rows: BatchRows, kind: pa.DataType) -> pa.Array:
    return arrays.numbers(BatchColumns(rows.table.run).to_numpy("crc") & _UNSIGNED, kind)


_COLUMNS: Final[dict[str, Column]] = {
    "topic": lambda rows, kind: rows.same(rows.part.topic, kind),
    "partition": lambda rows, kind: rows.same(rows.part.partition, kind),
    "baseoffset": _number(lambda table: table.base_offsets),
    "lastoffset": _number(lambda table: table.last_offsets),
    "recordcount": _number(lambda table: table.record_counts),
    "leaderepoch": _number(lambda table: table.epochs),
    "basetimestamp": _base_timestamps,
    "maxtimestamp": lambda rows, kind: arrays.timestamps(rows.table.max_timestamps),
    "timestamptype": _number(lambda table: (table.attributes & LOG_APPEND_TIME_FLAG) >> 3),
    "producerid": _number(lambda table: table.producer_ids),
    "producerepoch": _number(lambda table: table.producer_epochs),
    "basesequence": _number(lambda table: table.base_sequences),
    "istransactional": _number(lambda table: table.are_transactional),
    "iscontrol": _number(lambda table: table.are_control),
    "codec": lambda rows, kind: arrays.codec_labels(rows.table.attributes),
    "deletehorizon": _delete_horizons,
    "magic": lambda rows, kind: rows.same(2, kind),
    "crc": _crcs,
    "size": _number(lambda table: table.sizes),
    "position": _number(lambda table: table.positions),
    "file": lambda rows, kind: rows.same(rows.part.file, kind),
    "crcok": lambda rows, kind: rows.same(True, kind),
    "_corrupt": lambda rows, kind: pa.nulls(len(rows), kind),
}
