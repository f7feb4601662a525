# SPDX-License-Identifier: Apache-2.0
"""Sums over blocks of a log's records, made where the log is read, from which its comparison asks.

A block is some adjacent records. Blocks end wherever it suits the reader, and at the offsets that it is told to be
edges: what is asked about places between edges needs no record to be read again.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import attrs
import numpy as np

from raftlog.tools.mirrors.comparing.order_sums import LANES, PRIME, powers, sum_runs
from raftlog.tools.mirrors.comparing.rows import DigestRows, Int64s, UInt64s

_SPAN_BITS: Final = 20
"""A block has offsets with the same bits above these, so that what is read of a block again is bounded."""

Ranges = tuple[Int64s, Int64s]
"""Ranges of offsets, ascending: their first ones (inclusive), and their ends (exclusive)."""
NO_RANGES: Final[Ranges] = (np.zeros(0, np.int64), np.zeros(0, np.int64))


@attrs.frozen(eq=False)
class SummedBlocks:
    """Adjacent blocks of a log, ascending. Offsets between two blocks have no record, and are known to have none.

    Attributes:
        starts: the offset of each block's first record, inclusive.
        ends: the offset after its last one.
        counts: how many records it has, unknown ones included.
        unknown: how many of these cannot be read.
        sums: of the digests of its records at their places; unknown ones add nothing.
    """

    starts: Int64s
    ends: Int64s
    counts: Int64s
    unknown: Int64s
    sums: UInt64s

    def __len__(self) -> int:
        return len(self.starts)

    @classmethod
    def joined(cls, parts: Sequence["SummedBlocks"]) -> "SummedBlocks":
        """Return the blocks of several parts, by offset."""
        columns = [np.concatenate(each) for each in zip(*map(_columns, [_NOTHING, *parts]), strict=True)]
        order = np.argsort(columns[0], kind="stable")
        starts, ends, counts, unknown, sums = (each[order] for each in columns)
        return cls(starts, ends, counts, unknown, sums)


def _columns(blocks: SummedBlocks) -> tuple[Int64s, Int64s, Int64s, Int64s, UInt64s]:
    return blocks.starts, blocks.ends, blocks.counts, blocks.unknown, blocks.sums


_NO_OFFSETS: Final = np.zeros(0, np.int64)
_NOTHING: Final = SummedBlocks(_NO_OFFSETS, _NO_OFFSETS, _NO_OFFSETS, _NO_OFFSETS, np.zeros((0, LANES), np.uint64))


@attrs.frozen(eq=False)
class LogSums:
    """The blocks of a whole log.

    Attributes:
        all: of all its records.
        committed: without those of aborted transactions; None if there are none of these.
        markers: of control records, if these have rows.
    """

    all: SummedBlocks
    committed: SummedBlocks | None = None
    markers: SummedBlocks = _NOTHING

    @property
    def committed_or_all(self) -> SummedBlocks:
        """The blocks without aborted records, whether or not there are any of these."""
        return self.all if self.committed is None else self.committed


@attrs.frozen(eq=False)
class PartSums:
    """The blocks of some adjacent pieces of a log, each as long as it was read at a time.

    Attributes:
        sums: of their records.
        covered: the offsets of each piece, from its first record or control record to its last one.
    """

    sums: LogSums
    covered: Ranges


def sum_rows(rows: DigestRows, unknown: Ranges, edges: Int64s) -> SummedBlocks:
    """Return the blocks of some adjacent records.

    Args:
        rows: the known ones.
        unknown: offsets between these whose records cannot be read.
        edges: ascending offsets at which blocks end.
    """
    if not len(unknown[0]):
        if not len(rows):
            return _NOTHING
        firsts = _firsts(rows.offsets, edges)
        ends = np.append(firsts[1:], len(rows))
        sums = sum_runs(rows.digests, firsts)
        return SummedBlocks(
            rows.offsets[firsts], rows.offsets[ends - 1] + 1, ends - firsts, np.zeros_like(firsts), sums
        )
    lasts = unknown[1] - 1
    is_long = edges.searchsorted(unknown[0], side="right") != edges.searchsorted(lasts, side="right")
    is_long |= unknown[0] >> _SPAN_BITS != lasts >> _SPAN_BITS
    starts, ends = (each[~is_long] for each in unknown)
    long = unknown_blocks((unknown[0][is_long], unknown[1][is_long]), edges)
    return SummedBlocks.joined([_sum_with_unknown(rows, (starts, ends), edges), long])


def _sum_with_unknown(rows: DigestRows, unknown: Ranges, edges: Int64s) -> SummedBlocks:
    """Return the blocks of some records and of ranges of unknown ones, none of which is in more than one block."""
    offsets = np.concatenate([rows.offsets, unknown[0]])
    order = np.argsort(offsets, kind="stable")
    sizes = np.concatenate([np.ones(len(rows), np.int64), unknown[1] - unknown[0]])[order]
    is_known = order < len(rows)
    if not len(offsets):
        return _NOTHING
    offsets = offsets[order]
    firsts = _firsts(offsets, edges)
    lasts = np.append(firsts[1:], len(offsets)) - 1
    counts = np.add.reduceat(sizes, firsts)
    known = np.add.reduceat(is_known.astype(np.int64), firsts)
    begins = np.insert(~is_known[:-1], 0, True)
    begins[firsts] = True
    runs = np.flatnonzero(is_known & begins)  # Known records beside each other, each run at its place in its block.
    places = np.cumsum(sizes) - sizes
    blocks = firsts.searchsorted(runs, side="right") - 1
    parts = sum_runs(rows.digests, (np.cumsum(is_known) - is_known)[runs])
    sums = np.zeros((len(firsts), LANES), np.uint64)
    np.add.at(sums, blocks, parts * powers(places[runs] - places[firsts[blocks]]) % PRIME)
    return SummedBlocks(offsets[firsts], (offsets + sizes)[lasts], counts, counts - known, sums % PRIME)


def _firsts(offsets: Int64s, edges: Int64s) -> Int64s:
    """Return the indices of ascending offsets at which blocks begin: at edges, and where higher bits change."""
    inside = edges[edges.searchsorted(offsets[0], side="right") : edges.searchsorted(offsets[-1], side="right")]
    cuts = np.append(0, offsets.searchsorted(inside))
    if offsets[0] >> _SPAN_BITS != offsets[-1] >> _SPAN_BITS:
        cuts = np.append(cuts, np.flatnonzero(np.diff(offsets >> _SPAN_BITS)) + 1)
    elif (cuts[1:] > cuts[:-1]).all():
        return cuts
    return np.unique(cuts)  # Two edges may have no record between them.


def unknown_blocks(ranges: Ranges, edges: Int64s) -> SummedBlocks:
    """Return blocks of unknown records, cut at edges."""
    cuts = edges.searchsorted(ranges[0], side="right"), edges.searchsorted(ranges[1])
    inside = [edges[first:last] for first, last in zip(*cuts, strict=True)]
    starts = [np.append(start, within) for start, within in zip(ranges[0], inside, strict=True)]
    ends = [np.append(within, end) for end, within in zip(ranges[1], inside, strict=True)]
    if not starts:
        return _NOTHING
    first, last = np.concatenate(starts), np.concatenate(ends)
    return SummedBlocks(first, last, last - first, last - first, np.zeros((len(first), LANES), np.uint64))


def uncovered(covered: Ranges, start: int, end: int) -> Ranges:
    """Return the offsets from one (inclusive) to another (exclusive) that are in no piece."""
    before, after = np.append(start, covered[1]), np.append(covered[0], end)
    is_gap = before < after
    return before[is_gap], after[is_gap]


def joined_sums(parts: Sequence[PartSums], start: int, end: int, edges: Int64s) -> LogSums | None:
    """Return the sums of a log of those of its parts; None if offsets fall from one to the next.

    Args:
        parts: in the order of the log.
        start: its first offset.
        end: its end, exclusive.
        edges: ascending offsets at which blocks end.
    """
    covered = joined_ranges([each.covered for each in parts])
    if bool((covered[0][1:] < covered[1][:-1]).any()):
        return None
    gaps = unknown_blocks(uncovered(covered, start, end), edges)
    committed = None
    if any(each.sums.committed is not None for each in parts):
        committed = SummedBlocks.joined([*(each.sums.committed_or_all for each in parts), gaps])
    markers = SummedBlocks.joined([each.sums.markers for each in parts])
    return LogSums(SummedBlocks.joined([*(each.sums.all for each in parts), gaps]), committed, markers)


def joined_ranges(parts: Iterable[Ranges]) -> Ranges:
    """Return the ranges of several parts, in their order."""
    starts, ends = zip(NO_RANGES, *parts, strict=True)
    return np.concatenate(starts), np.concatenate(ends)
