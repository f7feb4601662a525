# SPDX-License-Identifier: Apache-2.0
"""Summarizes the records of each batch, for checks that need no row per record."""

from typing import Final

import attrs

from raftlog.errors import DecodeError, MissingExtraError
from raftlog.records import limits
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.columns.record_areas import RecordAreas, error_of, unpack_record_areas
from raftlog.records.kernel_choice import kernel

OFFSETS_GO_BACK: Final = 1
OFFSETS_HAVE_GAPS: Final = 2
OFFSETS_GO_BEYOND: Final = 4
HAS_TIME_DELTA: Final = 8
MAX_TIMESTAMP_DIFFERS: Final = 16
HAS_HEADERS: Final = 32
HAS_KEY: Final = 64
LACKS_VALUE: Final = 128
"""Traits of a batch: found by comparing its records with each other or with the header, or present in at least one.

Offsets "go beyond" if they leave the header's range. A record lacks a value if it is null or empty.
"""

_COLUMNS: Final = 4
_IN_LOG: Final = memoryview(b"").cast("q")
"""Marks record areas that the kernel has to locate itself."""


@attrs.frozen
class RecordSummaries:
    """Four columns of 64-bit integers, with one row per batch.

    Attributes:
        first_offsets: the offset of each batch's first record.
        last_offsets: the offset of its last record.
        max_timestamps: the greatest timestamp of its records, in ms.
        traits: the batch's traits, combined as bits.
        all_traits: the traits that at least one batch has.
        errors: the errors of batches that cannot be read, by the index of the batch; the row of such a batch means
            nothing.
        trailing: numbers of bytes after the ends of compressed streams, with the indexes of the batches.

    A batch without records has 0, -1, -1 and 0.
    """

    first_offsets: memoryview
    last_offsets: memoryview
    max_timestamps: memoryview
    traits: memoryview
    all_traits: int
    errors: tuple[tuple[int, DecodeError | MissingExtraError], ...]
    trailing: tuple[tuple[int, int], ...] = ()


def summarize_records(
    run: BatchRun, max_size: int = limits.MAX_DECOMPRESSED_SIZE, *, may_be_compressed: bool = True
) -> RecordSummaries:
    """Read all records of a run, and return their summaries.

    Args:
        run: the batches.
        max_size: the most bytes that the records of one batch may decompress to.
        may_be_compressed: pass False if no batch is compressed, which saves work.
    """
    in_log = [RecordAreas(run, run.data, _IN_LOG, 0)]
    parts = []
    errors: list[tuple[int, DecodeError | MissingExtraError]] = []
    trailing: list[tuple[int, int]] = []
    first = all_traits = 0
    for areas in unpack_record_areas(run, max_size) if may_be_compressed else in_log:
        part, traits, problems = _summarize(areas, max_size)
        all_traits |= traits
        parts.append(part)
        errors += [(first + index, problem) for index, problem in sorted(problems.items())]
        trailing += [(first + index, rest) for index, rest in areas.trailing.items()]
        first += len(areas.run)
    first_offsets, last_offsets, max_timestamps, traits_column = (_joined(parts, column) for column in range(_COLUMNS))
    columns = first_offsets, last_offsets, max_timestamps, traits_column
    return RecordSummaries(*columns, all_traits, tuple(errors), tuple(trailing))


def _summarize(areas: RecordAreas, max_size: int) -> tuple[memoryview, int, dict[int, DecodeError | MissingExtraError]]:
    run = areas.run
    summaries = memoryview(kernel.room(8 * _COLUMNS * len(run))).cast("q")
    problems = dict(areas.failed)
    batch = all_traits = 0
    while True:
        batch, rule, traits = kernel.summarize(
            areas.data, areas.columns, run.data, run.positions, run.sizes, batch, summaries
        )
        all_traits |= traits
        if rule == 0:
            return summaries, all_traits, problems
        problems[batch] = error_of(run.batch(batch), kernel.RULE_IDS[rule], max_size)
        batch += 1


def _joined(parts: list[memoryview], column: int) -> memoryview:
    """Return one column of all parts."""
    columns = [part[column * len(part) // _COLUMNS : (column + 1) * len(part) // _COLUMNS] for part in parts]
    return columns[0] if len(columns) == 1 else memoryview(b"".join(columns)).cast("q")
