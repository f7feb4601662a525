# SPDX-License-Identifier: Apache-2.0
"""Finds the record areas that the kernel reads: in the log itself, or decompressed into one shared buffer."""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

import attrs

from raftlog.errors import DecodeError, InvariantViolation, MissingExtraError, without_frames
from raftlog.records import limits
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.kernel_choice import kernel

_ARENA_SIZE: Final = 2 * 1024 * 1024
"""Decompressed areas share a buffer up to this size; a larger buffer would not fit in the processor's cache."""

_MOST_THAT_POSITIONS_REACH: Final = 2**31 - 1 - _ARENA_SIZE
"""The largest decompressed batch that is appended to a shared buffer."""


@attrs.frozen
class RecordAreas:
    """Locates the uncompressed records of some batches.

    Attributes:
        run: the batches.
        data: the bytes that contain their records.
        columns: the result of ``kernel.record_areas``; positions are in ``data``.
        capacity: an upper bound on the number of records, by the counts in headers and by the bytes.
        failed: the errors of batches that do not decompress, by the index of the batch; such a batch has no records.
        trailing: numbers of bytes after the ends of compressed streams, by the index of the batch.
    """

    run: BatchRun
    data: memoryview
    columns: memoryview
    capacity: int
    failed: Mapping[int, DecodeError | MissingExtraError] = attrs.field(factory=dict)
    trailing: Mapping[int, int] = attrs.field(factory=dict)


def unpack_record_areas(
    run: BatchRun, max_size: int = limits.MAX_DECOMPRESSED_SIZE, unwanted: Collection[int] = ()
) -> Iterator[RecordAreas]:
    """Yield the record areas of a run, in order: all in one, unless a batch is compressed.

    Args:
        run: the batches.
        max_size: the most bytes that the records of one batch may decompress to.
        unwanted: the indexes of batches to skip; they have no records then.
    """
    columns = _longs(6 * len(run))
    compressed, capacity = kernel.record_areas(run.data, run.positions, run.sizes, columns)
    if not compressed:
        _pass_over(unwanted, columns, len(run))
        yield RecordAreas(run, run.data, columns, capacity)
        return
    max_size = min(max_size, _MOST_THAT_POSITIONS_REACH)
    first = 0
    while first < len(run):
        arena = bytearray()
        spans: list[tuple[int, int]] = []
        failed: dict[int, DecodeError | MissingExtraError] = {}
        trailing: dict[int, int] = {}
        last = first
        while last < len(run) and (last == first or len(arena) < _ARENA_SIZE):
            start = len(arena)
            try:
                if last not in unwanted:
                    area, rest = run.batch(last).record_area_and_rest(max_size)
                    arena += area
                    if rest:
                        trailing[last - first] = rest
            except (DecodeError, MissingExtraError) as error:
                failed[last - first] = without_frames(error)
            spans.append((start, len(arena)))
            last += 1
        part = run.part(first, last)
        empty = failed.keys() | {index - first for index in unwanted if first <= index < last}
        yield RecordAreas(part, memoryview(arena), *_areas_in_arena(part, spans, empty), failed, trailing)
        first = last


def error_of(batch: RecordBatch, rule: str, max_size: int = limits.MAX_DECOMPRESSED_SIZE) -> DecodeError:
    """Return the error for a damaged batch, from the reader that reads one record at a time.

    Args:
        batch: one that the kernel refuses.
        rule: the rule that it breaks.
        max_size: as for ``unpack_record_areas``.
    """
    try:
        for _ in batch.records(max_size=min(max_size, _MOST_THAT_POSITIONS_REACH)):
            pass
    except DecodeError as error:
        if error.rule == rule:
            return without_frames(error)
    raise InvariantViolation(f"the kernel and the reader do not refuse a batch alike: {batch}, {rule}")


def _areas_in_arena(run: BatchRun, spans: list[tuple[int, int]], empty: Collection[int]) -> tuple[memoryview, int]:
    """Return the kernel's columns for decompressed batches; a batch that failed or is not wanted has no records."""
    count = len(run)
    columns = _longs(6 * count)
    kernel.record_areas(run.data, run.positions, run.sizes, columns)
    capacity = 0
    for index, (start, end) in enumerate(spans):
        columns[index], columns[count + index] = start, end
        if index in empty:
            columns[2 * count + index] = 0
        capacity += max(0, min(columns[2 * count + index], (end - start) // limits.MIN_RECORD_SIZE))
    return columns, capacity


def _pass_over(unwanted: Collection[int], columns: memoryview, count: int) -> None:
    """Change the columns of ``kernel.record_areas``, so that some batches have no records."""
    for index in unwanted:
        columns[count + index] = columns[index]
        columns[2 * count + index] = 0


def _longs(count: int) -> memoryview:
    return memoryview(kernel.room(8 * count)).cast("q")
