# SPDX-License-Identifier: Apache-2.0
"""Compares logs that have the same records at the same offsets: mirrors of that kind, and replicas of one log.

No offset sync says which records are the same: each offset does. The offsets at which both logs have the same record
take the place of syncs, so that all else is compared, and told apart, as in mirrors with syncs.

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
from raftlog.tools.mirrors.comparing.lockstep import row_count
from raftlog.tools.mirrors.comparing.pair import PairCounts, PairResult, compare_pair
from raftlog.tools.mirrors.comparing.rows import UNKNOWN, Bools, DigestRows, Int64s, RowReader

MOST_RUNS: Final = 1 << 16
"""So many runs of equal records are told apart. What follows them is one difference."""


def compare_same_offsets(source: RowReader, target: RowReader, *, keeps_places: bool = False) -> PairResult:
    """Compare two logs of which each record has one offset in both.

    There are no anchors and no lifetimes in the result. If the logs have offsets in common, and the same record at none
    of them, that is one difference.

    Args:
        source: reads the source.
        target: reads the target.
        keeps_places: whether to return which records are the same: all their offsets, at once.
    """
    syncs = [Sync(offset, offset, -1, number) for number, offset in enumerate(_named(source, target))]
    if syncs:
        found = compare_pair(source, target, syncs, reads_committed=False, keeps_places=keeps_places)
        return attrs.evolve(found, equal_anchors=0, lifetimes=0)
    count = row_count(source.read(source.start_offset, source.end_offset))
    common = OffsetRange(max(source.start_offset, target.start_offset), min(source.end_offset, target.end_offset))
    known = _known_count(source, common), _known_count(target, common)
    differences = (MirrorDifference(MirrorFault.CHANGED, common, common, min(known), is_exact=False),)
    is_lag = target.end_offset <= source.start_offset
    counts = PairCounts(lag=count) if is_lag else PairCounts(unverifiable=count)
    return PairResult(differences if min(known) else (), counts, 0, 0, 0, 0, source.start_offset)


def _known_count(log: RowReader, place: OffsetRange) -> int:
    if not place.offset_count:
        return 0
    return sum(int((each.flags & UNKNOWN == 0).sum()) for each in log.read(place.start, place.end))


def _named(source: RowReader, target: RowReader) -> Iterator[int]:
    """Yield the first and the last offset of each run of records that are the same on both sides, ascending."""
    for first, last in itertools.islice(_runs(source, target), MOST_RUNS):
        yield first
        if last > first:
            yield last


def _runs(source: RowReader, target: RowReader) -> Iterator[tuple[int, int]]:
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


def _compared(source: RowReader, target: RowReader) -> Iterator[tuple[Int64s, Bools]]:
    """Yield the offsets at which either log has a record, a moderate number at a time, and whether both have it."""
    start = max(source.start_offset, target.start_offset)
    for ours in source.read(start, min(source.end_offset, target.end_offset)):
        if len(ours):
            end = int(ours.offsets[-1]) + 1
            yield _same(ours, DigestRows.joined(target.read(start, end)))
            start = end


def _same(ours: DigestRows, theirs: DigestRows) -> tuple[Int64s, Bools]:
    offsets = np.union1d(ours.offsets, theirs.offsets)
    _, mine, other = np.intersect1d(ours.offsets, theirs.offsets, assume_unique=True, return_indices=True)
    is_same = (ours.digests[mine] == theirs.digests[other]).all(axis=1)
    is_same &= (ours.flags[mine] | theirs.flags[other]) & UNKNOWN == 0
    are_same = np.zeros(len(offsets), np.bool_)
    are_same[np.searchsorted(offsets, ours.offsets[mine][is_same])] = True
    return offsets, are_same
