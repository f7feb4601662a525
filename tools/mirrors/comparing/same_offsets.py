# SPDX-License-Identifier: Apache-2.0
"""Compares logs that have the same records at the same offsets: mirrors of that kind, and replicas of one log.

No offset sync says which records are the same: each offset does. The offsets at which both logs have the same record
take the place of syncs, so that all else is compared, and told apart, as in mirrors with syncs. To find them, a window
in which each offset has a record is compared by its sum; others record by record.

Cluster mirroring (KIP-1279) copies batches with their offsets, aborted transactions and markers. At a fail-over the
target is cut at its last stable offset, and what is written there since has offsets that the source has for other
records: both logs differ from there on, and nothing before is lost.

Source: KIP-1279.
"""

import itertools
from collections.abc import Iterator
from typing import Final

import attrs
import numpy as np

from raftlog.tools.mirrors.comparing.differences import MirrorDifference, MirrorFault, OffsetRange
from raftlog.tools.mirrors.comparing.lifetimes import Sync
from raftlog.tools.mirrors.comparing.log_sums import sums_by_reading
from raftlog.tools.mirrors.comparing.log_view import SummedLog, SummedView
from raftlog.tools.mirrors.comparing.pair import PairCounts, PairResult, compare_pair
from raftlog.tools.mirrors.comparing.rows import UNKNOWN, Bools, DigestRows, Int64s, RowReader

MOST_RUNS: Final = 1 << 16
"""So many runs of equal records are told apart. What follows them is one difference."""
WINDOW_BITS: Final = 14
"""A window begins at each multiple of this power of two."""


def window_edges(log: RowReader) -> Int64s:
    """Return the offsets at which blocks of a log should end for ``compare_same_offsets``."""
    first = (log.start_offset >> WINDOW_BITS) + 1 << WINDOW_BITS
    return np.arange(first, log.end_offset, 1 << WINDOW_BITS)


def compare_same_offsets(source: RowReader | SummedLog, target: RowReader | SummedLog) -> PairResult:
    """Compare two logs of which each record has one offset in both.

    There are no anchors and no lifetimes in the result. If the logs have offsets in common, and the same record at none
    of them, that is one difference.

    Args:
        source: reads the source, or has read it.
        target: reads the target, or has read it.
    """
    ours, theirs = (
        each if isinstance(each, SummedLog) else SummedLog(each, sums_by_reading(each, window_edges(each)))
        for each in (source, target)
    )
    syncs = [Sync(offset, offset, -1, number) for number, offset in enumerate(_named(ours.all, theirs.all))]
    if syncs:
        found = compare_pair(ours, theirs, syncs, reads_committed=False, copies_aborted=True)
        return attrs.evolve(found, equal_anchors=0, lifetimes=0)
    return _nothing_same(ours.all, theirs.all)


def _nothing_same(source: SummedView, target: SummedView) -> PairResult:
    count = source.count(OffsetRange(source.start_offset, source.end_offset))
    common = _common(source, target)
    known = min(source.known_count(common), target.known_count(common))
    differences = (MirrorDifference(MirrorFault.CHANGED, common, common, known, is_exact=False),)
    is_lag = target.end_offset <= source.start_offset
    counts = PairCounts(lag=count) if is_lag else PairCounts(unverifiable=count)
    return PairResult(differences if known else (), counts, 0, 0, 0, 0, source.start_offset)


def _common(source: SummedView, target: SummedView) -> OffsetRange:
    return OffsetRange(max(source.start_offset, target.start_offset), min(source.end_offset, target.end_offset))


def _named(source: SummedView, target: SummedView) -> Iterator[int]:
    """Yield the first and the last offset of each run of records that are the same on both sides, ascending."""
    for first, last in itertools.islice(_runs(source, target), MOST_RUNS):
        yield first
        if last > first:
            yield last


def _runs(source: SummedView, target: SummedView) -> Iterator[tuple[int, int]]:
    """Yield the runs, each by its first and its last offset. Where either log has a record alone, a run ends."""
    run: tuple[int, int] | None = None
    for offsets, are_same in _compared(source, target):
        edges = np.flatnonzero(np.diff(are_same, prepend=False, append=False)).tolist()
        found = [
            (int(offsets[start]), int(offsets[end - 1])) for start, end in zip(edges[::2], edges[1::2], strict=True)
        ]
        if run is not None and are_same[0]:
            found[0] = run[0], found[0][1]
        elif run is not None:
            yield run
        run = found.pop() if are_same[-1] else None
        yield from found
    if run is not None:
        yield run


def _compared(source: SummedView, target: SummedView) -> Iterator[tuple[Int64s, Bools]]:
    """Yield offsets at which either log has a record, some at a time, and whether both have it.

    Of a window that is the same, its first and its last offset stand for all.
    """
    common = _common(source, target)
    if not common.offset_count:
        return
    first = (common.start >> WINDOW_BITS) + 1 << WINDOW_BITS
    inside = np.arange(first, common.end, 1 << WINDOW_BITS)
    bounds = np.concatenate([[common.start], inside, [common.end]])
    are_equal, counts = source.equal_windows(bounds, target, bounds)
    are_equal &= counts == np.diff(bounds)
    for is_equal, start, end in zip(are_equal.tolist(), bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if is_equal:
            yield np.array([start, end - 1]), np.ones(2, np.bool_)
        else:
            yield from _compared_rows(source, target, OffsetRange(start, end))


def _compared_rows(source: SummedView, target: SummedView, place: OffsetRange) -> Iterator[tuple[Int64s, Bools]]:
    start = place.start
    for ours in source.rows(place.start, place.end):
        if len(ours):
            end = int(ours.offsets[-1]) + 1
            yield _same(ours, DigestRows.joined(target.rows(start, end)))
            start = end
    rest = DigestRows.joined(target.rows(start, place.end))
    if len(rest):
        yield rest.offsets, np.zeros(len(rest), np.bool_)


def _same(ours: DigestRows, theirs: DigestRows) -> tuple[Int64s, Bools]:
    offsets = np.union1d(ours.offsets, theirs.offsets)
    _, mine, other = np.intersect1d(ours.offsets, theirs.offsets, assume_unique=True, return_indices=True)
    is_same = (ours.digests[mine] == theirs.digests[other]).all(axis=1)
    is_same &= (ours.flags[mine] | theirs.flags[other]) & UNKNOWN == 0
    are_same = np.zeros(len(offsets), np.bool_)
    are_same[np.searchsorted(offsets, ours.offsets[mine][is_same])] = True
    return offsets, are_same
