# SPDX-License-Identifier: Apache-2.0
"""Selects the batches of a part that may have wanted rows, by their headers, before any is decompressed."""

from typing import TYPE_CHECKING, Any

from raftlog.records.batches.batch_run import BatchRun
from raftlog.tools.auditing.batches.batch_table import BatchTable
from raftlog.tools.spark.rows.filters import Hints
from raftlog.tools.spark.rows.parts import FilePart

if TYPE_CHECKING:
    import numpy as np

    Flags = np.ndarray[Any, np.dtype[np.bool_]]
    Longs = np.ndarray[Any, np.dtype[np.int64]]


def selected_run(run: BatchRun, table: BatchTable, wanted: "Flags | None") -> BatchRun | None:
    """Return the wanted batches of a run, or None if there are none.

    Args:
        run: some batches.
        table: their headers.
        wanted: a flag per batch; None for all.
    """
    import numpy as np

    if wanted is None or wanted.all():
        return run
    if not wanted.any():
        return None
    positions = np.frombuffer(run.positions, dtype=np.int64)[wanted]
    sizes = np.frombuffer(run.sizes, dtype=np.int32)[wanted]
    return BatchRun(run.data, run.position, memoryview(positions.tobytes()).cast("q"), _ints(sizes.tobytes()))


def wanted_batches(
    table: BatchTable, part: FilePart, hints: Hints, *, are_control: bool | None = None
) -> "Flags | None":
    """Return flags of the batches that may have a wanted row; None if all may.

    Args:
        table: their headers.
        part: the part of a file that contains them.
        hints: what wanted rows have in common.
        are_control: True for control batches only, False for data batches only, None for both.
    """
    parts = [*_by_kind(table, are_control, hints.is_control)]
    first = _greatest(part.first_offset, hints.first_offset)
    if first is not None:
        parts.append(table.last_offsets >= first)
    if part.end_offset is not None:
        parts.append(table.base_offsets < part.end_offset)
    if hints.last_offset is not None:
        parts.append(table.base_offsets <= hints.last_offset)
    if hints.since_ms is not None:
        parts.append(table.max_timestamps >= hints.since_ms)
    if part.aborted and (aborted := are_aborted(table, part)) is not None:
        parts.append(~aborted)
    if not parts:
        return None
    wanted = parts[0]
    for each in parts[1:]:
        wanted = wanted & each
    return wanted


def are_aborted(table: BatchTable, part: FilePart) -> "Flags | None":
    """Return flags of the batches that belong to aborted transactions; None if no batch can."""
    import numpy as np

    may_be = table.are_transactional & ~table.are_control
    if not may_be.any():
        return None
    first, last = int(table.base_offsets.min()), int(table.base_offsets.max())
    aborted = np.zeros(len(table), dtype=bool)
    for each in part.aborted:
        if each.first_offset <= last and each.last_offset >= first:
            aborted |= (
                (table.producer_ids == each.producer_id)
                & (table.base_offsets >= each.first_offset)
                & (table.base_offsets <= each.last_offset)
            )
    return aborted & may_be


def wanted_rows(part: FilePart, offsets: "Longs") -> "Flags | None":
    """Return flags of the records within the offset bounds of a part; None if all are."""
    if len(offsets) == 0:
        return None
    rows = None
    if part.first_offset is not None and offsets.min() < part.first_offset:
        rows = offsets >= part.first_offset
    if part.end_offset is not None and offsets.max() >= part.end_offset:
        below = offsets < part.end_offset
        rows = below if rows is None else rows & below
    return rows


def _by_kind(table: BatchTable, *wanted: bool | None) -> "list[Flags]":
    return [table.are_control if each else ~table.are_control for each in wanted if each is not None]


def _greatest(left: int | None, right: int | None) -> int | None:
    return left if right is None else right if left is None else max(left, right)


def _ints(data: bytes) -> memoryview:
    return memoryview(data).cast("i")
