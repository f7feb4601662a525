# SPDX-License-Identifier: Apache-2.0
"""Sums logs on Spark: tasks read parts of segments, and the driver gets sums of blocks, never contents.

The driver's memory holds the blocks of some logs: one for each 2 MiB or so of a log, and one for each offset sync.
A task's memory holds 2 MiB of a log, unpacked, and the blocks of its parts.
"""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import attrs

from raftlog.invariants import present
from raftlog.tools.mirrors.comparing.rows import UInt64s, first_offsets
from raftlog.tools.mirrors.on_spark.log_parts import PlannedPart, packed, parts_of, whole_segment
from raftlog.tools.mirrors.reading.log_reading import (
    LogReading,
    PartReading,
    SumsRequest,
    joined_reading,
    read_log,
    read_part,
)
from raftlog.tools.mirrors.reading.log_rows import LogPiece
from raftlog.tools.spark.pickled_tasks import run_on_workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Result = TypeVar("_Result")
_MEBIBYTE: Final = 1024 * 1024
_PART_SIZE: Final = 64 * _MEBIBYTE
_JOB_SIZE: Final = 64 * 1024 * _MEBIBYTE
"""Logs of about this size are read by one job, which bounds what the driver has of them."""
_EDGE_SIZE: Final = 16 * 1024
"""An edge counts as so many bytes: each makes a block."""


@attrs.frozen
class SparkSummer:
    """Sums logs on Spark, with the same results as ``LocalSummer``.

    Driver and workers must see the logs under the same paths.

    Attributes:
        spark: the session to work in.
        part_size: the approximate size of a part, in bytes; it has at least one batch.
        task_size: the approximate size of the parts of a task.
    """

    spark: "SparkSession"
    part_size: int = _PART_SIZE
    task_size: int = _PART_SIZE

    def summed(self, requests: Iterable[SumsRequest]) -> Iterator[LogReading]:
        """See ``LogSummer``."""
        logs: list[_DividedLog] = []
        size = 0
        for request in requests:
            logs.append(_DividedLog(request, parts_of(request, self.part_size)))
            size += logs[-1].size_bytes + len(request.edges) * _EDGE_SIZE
            if size >= _JOB_SIZE:
                yield from self._readings(logs)
                logs, size = [], 0
        yield from self._readings(logs)

    def _readings(self, logs: Sequence["_DividedLog"]) -> Iterator[LogReading]:
        """Read some logs with one job; and once more, whole, the segments whose damage is where they are divided."""
        found = iter(self._read([(log, part) for log in logs for part in log.parts]))
        readings = [list(itertools.islice(found, len(log.parts))) for log in logs]
        damaged = [
            (number, segment)
            for number, (log, reading) in enumerate(zip(logs, readings, strict=True))
            for segment in _cut_in_damage(log.parts, reading)
        ]
        whole = [(logs[number], whole_segment(logs[number].parts[segment])) for number, segment in damaged]
        again = list(zip(damaged, whole, self._read(whole), strict=True))
        for (number, segment), (log, part), reading in reversed(again):
            log.parts[segment], readings[number][segment] = [part], [reading]
        for log, reading in zip(logs, readings, strict=True):
            pairs = [(each.part, result) for each, result in zip(log.parts, reading, strict=True)]
            search = functools.partial(self.first_offsets, log) if len(log.parts) > 1 else None
            # Offsets that fall from one part to the next are left out, which only one reader of all can do.
            yield joined_reading(log.request, pairs, search) or read_log(log.request)

    def first_offsets(
        self, log: "_DividedLog", digests: Sequence[UInt64s], end: int, *, committed: bool
    ) -> list[int | None]:
        """Return what ``DigestSearch`` does, of a log."""
        wanted = _Wanted(digests, end, committed)
        inputs = [_PartToRead.of(log, part, wanted) for part in log.parts if part.first_offset < end]
        found = self._on_workers(_search_part, inputs, "looking for copies")
        return [min((each for each in column if each is not None), default=None) for column in zip(*found, strict=True)]

    def _read(self, parts: Iterable[tuple["_DividedLog", PlannedPart]]) -> list[PartReading]:
        return self._on_workers(_read_part, [_PartToRead.of(*each) for each in parts], "reading logs")

    def _on_workers(
        self, work: Callable[["_PartToRead"], _Result], parts: Sequence["_PartToRead"], what: str
    ) -> list[_Result]:
        tasks = packed([each.planned.size_bytes for each in parts], self.task_size)
        return run_on_workers(self.spark, work, [parts[each.start : each.stop] for each in tasks], what)


@attrs.define(eq=False)
class _DividedLog:
    request: SumsRequest
    parts: list[PlannedPart]

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.parts)


@attrs.frozen(eq=False)
class _Wanted:
    """Digests that are looked for.

    Attributes:
        digests: all of them.
        end: the offset before which they are looked for.
        committed: whether to pass over records of aborted transactions.
    """

    digests: Sequence[UInt64s]
    end: int
    committed: bool


@attrs.frozen(eq=False)
class _PartToRead:
    """What a task reads.

    Attributes:
        request: for the part alone.
        planned: the part.
        wanted: what is looked for in it; None if it is to be summed.
    """

    request: SumsRequest
    planned: PlannedPart
    wanted: _Wanted | None = None

    @classmethod
    def of(cls, log: _DividedLog, part: PlannedPart, wanted: _Wanted | None = None) -> "_PartToRead":
        """Return it for a part of a log."""
        return cls(part.request(log.request), part, wanted)


def _read_part(given: _PartToRead) -> PartReading:
    return read_part(given.request, given.planned.part, given.request.log.start_offset)


def _search_part(given: _PartToRead) -> list[int | None]:
    log, part, wanted = given.request.log, given.planned.part, present(given.wanted, "digests")
    pieces = log.pieces(part.segment, log.start_offset, part.position, part.stop)
    rows = (piece.rows.between(0, wanted.end) for piece in pieces if isinstance(piece, LogPiece))
    return first_offsets((each.without_aborted() if wanted.committed else each for each in rows), wanted.digests)


def _cut_in_damage(parts: Sequence[PlannedPart], readings: Sequence[PartReading]) -> Iterator[slice]:
    """Yield where the parts of a segment are of which one before the last has other bytes than batches."""
    numbered = itertools.groupby(range(len(parts)), key=lambda number: parts[number].part.segment.path)
    for numbers in (list(group) for _, group in numbered):
        if not all(readings[number].is_clean for number in numbers[:-1]):
            yield slice(numbers[0], numbers[-1] + 1)
