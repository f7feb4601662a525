# SPDX-License-Identifier: Apache-2.0
"""Reads logs once, each as parts that may be read anywhere, and sums what their comparison asks for."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol

import attrs
import numpy as np

from raftlog.invariants import present
from raftlog.records.batches.iterator import Corruption, TornTail
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.mirrors.comparing.differences import OffsetRange, united
from raftlog.tools.mirrors.comparing.log_sums import (
    NO_RANGES,
    LogSums,
    PartSums,
    Ranges,
    SummedBlocks,
    joined_ranges,
    joined_sums,
    sum_rows,
    uncovered,
)
from raftlog.tools.mirrors.comparing.log_view import DigestSearch, SummedLog
from raftlog.tools.mirrors.comparing.rows import Int64s
from raftlog.tools.mirrors.reading.log_rows import LogPiece, LogRows, SegmentPlace, damage_of

_AT_ONCE: Final = 2
"""So many logs are read at a time."""


@attrs.frozen(eq=False)
class SumsRequest:
    """Which log to sum, and for which questions.

    Attributes:
        log: reads it.
        edges: ascending offsets about which will be asked.
        wants_holes: whether to list the offsets without a record.
    """

    log: LogRows
    edges: Int64s
    wants_holes: bool = False


@attrs.frozen(eq=False)
class LogReading:
    """A log that was read once.

    Attributes:
        summed: answers questions about its records.
        holes: the offsets that neither a record nor a control batch has, joined, if they were asked for.
        damage: what cannot be read.
    """

    summed: SummedLog
    holes: tuple[OffsetRange, ...]
    damage: tuple[Finding, ...]


class LogSummer(Protocol):
    """Sums logs: on this machine, or elsewhere."""

    def summed(self, requests: Iterable[SumsRequest]) -> Iterator[LogReading]:
        """Yield what is asked for, in order.

        Raises:
            StorageError: a segment cannot be read.
            MissingExtraError: a codec's package is not installed.
            SparkJobError: Spark failed.
        """
        ...


@attrs.frozen
class LogPart:
    """Adjacent batches of a segment.

    Attributes:
        segment: the one.
        position: the byte position of the first one.
        stop: the byte position after the last one; None for the end of the file.
    """

    segment: SegmentPlace
    position: int = 0
    stop: int | None = None


@attrs.frozen(eq=False)
class PartReading:
    """A part of a log that was read.

    Attributes:
        sums: of its records.
        gaps: the offsets between these that neither a record nor a control batch has, if they were asked for.
        damage: what cannot be read.
        places: the offset and byte position of some of its batches.
        is_clean: whether it has nothing but batches.
    """

    sums: PartSums
    gaps: tuple[Ranges, ...]
    damage: tuple[Finding, ...]
    places: tuple[tuple[int, int], ...]
    is_clean: bool


def read_part(request: SumsRequest, part: LogPart, start: int) -> PartReading:
    """Read a part of a log.

    Args:
        request: which log.
        part: which part of it.
        start: the first wanted offset.

    Raises:
        StorageError: the segment cannot be read.
        MissingExtraError: a codec's package is not installed.
    """
    log, edges = request.log, request.edges
    found: list[SummedBlocks] = []
    committed: list[SummedBlocks] = []
    markers: list[SummedBlocks] = []
    gaps: list[Ranges] = []
    covered: list[OffsetRange] = []
    damage: list[Finding] = []
    is_clean = True
    for piece in log.pieces(part.segment, start, part.position, part.stop):
        if isinstance(piece, LogPiece):
            covered.append(piece.covered)
            unknown = piece.gaps
            found.append(sum_rows(piece.rows, unknown, edges))
            markers.append(sum_rows(piece.markers, NO_RANGES, edges))
            committed.append(sum_rows(piece.rows.without_aborted(), unknown, edges) if log.has_aborted else found[-1])
            if request.wants_holes:
                gaps.append(unknown)
        elif isinstance(piece, Finding):
            damage.append(piece)
        else:
            is_clean = False
            if isinstance(piece, Corruption | TornTail):
                damage.append(damage_of(part.segment.path, piece))
    places = np.array([(each.start, each.end) for each in covered], np.int64).reshape(-1, 2).T
    aborted = SummedBlocks.joined(committed) if log.has_aborted else None
    sums = LogSums(SummedBlocks.joined(found), aborted, SummedBlocks.joined(markers))
    positions = tuple(log.places[part.segment.path])
    return PartReading(PartSums(sums, (places[0], places[1])), tuple(gaps), tuple(damage), positions, is_clean)


def joined_reading(
    request: SumsRequest, parts: Sequence[tuple[LogPart, PartReading]], search: DigestSearch | None = None
) -> LogReading | None:
    """Return what was read of a log, of its parts in their order; None if offsets fall from one part to the next.

    Args:
        request: which log.
        parts: all parts of it.
        search: finds digests in it, if that is quicker than to read it.
    """
    log = request.log
    sums = joined_sums([each.sums for _, each in parts], log.start_offset, log.end_offset, request.edges)
    if sums is None:
        return None
    for part, reading in parts:
        known = log.places.setdefault(part.segment.path, [])
        known += [place for place in reading.places if not known or place > known[-1]]
    holes: tuple[OffsetRange, ...] = ()
    if request.wants_holes:
        covered = joined_ranges(each.sums.covered for _, each in parts)
        outside = uncovered(covered, log.start_offset, log.end_offset)
        starts, ends = joined_ranges([outside, *(gaps for _, each in parts for gaps in each.gaps)])
        holes = tuple(united(map(OffsetRange, starts.tolist(), ends.tolist())))
    damage = {(each.path, each.position): each for _, reading in parts for each in reading.damage}
    return LogReading(SummedLog(log, sums, search), holes, tuple(damage.values()))


def read_log(request: SumsRequest) -> LogReading:
    """Read a whole log here.

    Raises:
        StorageError: a segment cannot be read.
        MissingExtraError: a codec's package is not installed.
    """
    start = request.log.start_offset
    parts = []
    for segment in request.log.segments_here():
        part = LogPart(segment)
        reading = read_part(request, part, start)
        parts.append((part, reading))
        start = max([start, *reading.sums.covered[1][-1:].tolist()])
    return present(joined_reading(request, parts), "parts whose offsets rise")


class LocalSummer:
    """Sums logs in this process: a source and its target at the same time, as the kernel lets another thread run."""

    def summed(self, requests: Iterable[SumsRequest]) -> Iterator[LogReading]:
        """See ``LogSummer``."""
        threads = ThreadPoolExecutor(_AT_ONCE, "reads-logs")
        remaining = iter(requests)
        try:
            while some := [threads.submit(read_log, each) for each in itertools.islice(remaining, _AT_ONCE)]:
                for each in some:
                    yield each.result()
        finally:
            threads.shutdown(wait=False, cancel_futures=True)  # An interrupt does not wait for what is being read.
