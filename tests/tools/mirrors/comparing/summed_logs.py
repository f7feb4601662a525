# SPDX-License-Identifier: Apache-2.0
"""Sums of logs in memory, so that they are compared as files are."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from raftlog.tools.mirrors.comparing.lifetimes import Sync, edges_of
from raftlog.tools.mirrors.comparing.log_sums import NO_RANGES, LogSums, Ranges, SummedBlocks, sum_rows
from raftlog.tools.mirrors.comparing.log_view import SummedLog
from raftlog.tools.mirrors.comparing.pair import PairResult, compare_pair
from raftlog.tools.mirrors.comparing.rows import UNKNOWN, DigestRows, Int64s, RowReader


class MadeLog(RowReader, Protocol):
    """A log that says whether a record may be of an aborted transaction."""

    @property
    def has_aborted(self) -> bool:
        """See the class."""
        ...


def compare_logs(
    source: MadeLog, target: MadeLog, syncs: Sequence[Sync], mirrored_end: int = 0, **options: Any
) -> PairResult:
    """Compare two logs as ``compare_pair`` does, with blocks that end where it asks."""
    upstream, downstream = edges_of(syncs, mirrored_end)
    ours = SummedLog(source, sums_by_reading(source, upstream))
    theirs = SummedLog(target, sums_by_reading(target, downstream))
    return compare_pair(ours, theirs, syncs, mirrored_end, **options)


def sums_by_reading(log: MadeLog, edges: Int64s) -> LogSums:
    """Return the sums of a log that says of each unknown record where it is."""
    found: list[SummedBlocks] = []
    committed: list[SummedBlocks] = []
    markers: list[SummedBlocks] = []
    for known, unknown in _split(log.read(log.start_offset, log.end_offset)):
        found.append(sum_rows(known.without_markers(), unknown, edges))
        markers.append(sum_rows(known.markers(), NO_RANGES, edges))
        if log.has_aborted:
            committed.append(sum_rows(known.without_aborted(), unknown, edges))
    aborted = SummedBlocks.joined(committed) if log.has_aborted else None
    return LogSums(SummedBlocks.joined(found), aborted, SummedBlocks.joined(markers))


def _split(rows: Iterable[DigestRows]) -> Iterator[tuple[DigestRows, Ranges]]:
    """Yield the known rows, and the places of the others."""
    for each in rows:
        is_unknown = each.flags & UNKNOWN != 0
        unknown = each.offsets[is_unknown]
        yield each.where(~is_unknown), (unknown, unknown + 1)
