# SPDX-License-Identifier: Apache-2.0
"""Marks of records as columns: control record, part of a transaction, part of an aborted transaction.

The first two are attributes of the record's batch. The last follows from the marker after the batch.
"""

from typing import Final, cast

from raftlog.records.batches.batch import CONTROL_FLAG, TRANSACTIONAL_FLAG
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.record import MARK_FLAGS
from raftlog.records.columns.transactions import AbortedIndex
from raftlog.records.kernel_choice import kernel

MARK_COLUMNS: Final = ("is_control", "is_transactional", "is_aborted")
"""The columns of records that can be requested besides ``RECORD_COLUMNS``: booleans."""


def are_marked(run: BatchRun) -> bool:
    """Whether any of the batches has one of ``MARK_FLAGS``."""
    return bool(kernel.all_attributes(run.data, run.positions) & MARK_FLAGS)


def batch_flags(run: BatchRun) -> memoryview:
    """Return the attributes of some batches as 64-bit integers."""
    attributes = memoryview(bytearray(8 * len(run))).cast("q")
    kernel.header_field(run.data, run.positions, 21, 2, attributes)
    return attributes


def mark_column(name: str, run: BatchRun, ends: memoryview, aborted: AbortedIndex | None) -> memoryview:
    """Return one of ``MARK_COLUMNS``: a one-byte boolean per record.

    Args:
        name: the name of the column.
        run: the batches of the records.
        ends: for each batch, the row after its last record.
        aborted: the aborted transactions; needed for ``is_aborted``.
    """
    if not are_marked(run):
        return _truth_values(bytes(ends[-1]))
    flags = batch_flags(run)
    column, start = bytearray(), 0
    for index, end in enumerate(ends):
        if name == "is_control":
            mark = flags[index] & CONTROL_FLAG != 0
        elif name == "is_transactional":
            mark = flags[index] & TRANSACTIONAL_FLAG != 0
        else:
            mark = flags[index] & MARK_FLAGS == TRANSACTIONAL_FLAG and _is_aborted(run, index, aborted)
        column += (b"\1" if mark else b"\0") * (end - start)
        start = end
    return _truth_values(column)


def _truth_values(data: bytes | bytearray) -> memoryview:
    return cast(memoryview, memoryview(data).cast("?"))  # Typed like the other columns, which are of integers.


def _is_aborted(run: BatchRun, index: int, aborted: AbortedIndex | None) -> bool:
    batch = run.batch(index)
    return aborted is not None and aborted.holds(batch.producer_id, batch.base_offset)
