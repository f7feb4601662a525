# SPDX-License-Identifier: Apache-2.0
"""Compares logs that have the same records at the same offsets: mirrors of that kind, and replicas of one log.

No offset sync says which records are the same: each offset does. So a log is compared offset by offset, control records
too. A window of offsets whose sums are equal on both sides is the same: digests cover offsets, so that this holds for
windows with offsets that have no record, too. The others are read side by side.

Cluster mirroring (KIP-1279) copies batches with their offsets, aborted transactions and markers. At a fail-over the
target is cut at its last stable offset, and what is written there since has offsets that the source has for other
records: both logs part there, and nothing before is lost. What tells that from damage at the end of a log is where the
records are from: leader epoch, producer and timestamp. If two of these agree, both logs got the record from one write.

Source: KIP-1279.
"""

import bisect
import itertools
from collections.abc import Iterator, Sequence
from typing import Final

import attrs
import numpy as np

from raftlog.tools.mirrors.comparing.differences import MirrorDifference, MirrorFault, OffsetRange
from raftlog.tools.mirrors.comparing.log_view import LONG_GAP, SummedLog, SummedView
from raftlog.tools.mirrors.comparing.pair import PairCounts, PairResult
from raftlog.tools.mirrors.comparing.place_runs import AdjacentOffsets, PlaceRun
from raftlog.tools.mirrors.comparing.rows import MARKER, UNKNOWN, Bools, DigestRows, Int64s, RowReader

MOST_TOLD: Final = 1_000
"""So many ranges of each kind are told; those that follow are one difference."""
MOST_RUNS: Final = 1 << 16
"""So many runs of records that are the same are kept; what follows counts as the same for groups."""
WINDOW_BITS: Final = 14
"""A window begins at each multiple of this power of two, or of a greater one if there would be too many."""
_MOST_WINDOW_BITS: Final = 20
_ENOUGH: Final = 2
"""So many of leader epoch, producer and timestamp agree if two records were one write."""
_SAME, _APART = 0, -1
_KINDS: Final = {1: MirrorFault.CHANGED, 2: MirrorFault.HOLE, 3: MirrorFault.FOREIGN}
_CHANGED, _HOLE, _FOREIGN = _KINDS


def window_edges(source: RowReader, target: RowReader) -> Int64s:
    """Return the offsets at which blocks of both logs should end for ``compare_same_offsets``."""
    place = _common(source, target)
    bits = max(WINDOW_BITS, (place.offset_count >> _MOST_WINDOW_BITS).bit_length())
    inside = np.arange((place.start >> bits) + 1 << bits, place.end, 1 << bits, dtype=np.int64)
    return np.concatenate([[place.start], inside, [place.end]]) if place.offset_count else np.zeros(0, np.int64)


def compare_same_offsets(source: SummedLog, target: SummedLog, *, follows_same: bool = False) -> PairResult:
    """Compare two logs of which each record has one offset in both.

    There are no anchors and no lifetimes in the result. A difference that is not exact stands for all of its kind that
    are in its ranges.

    Args:
        source: the source, whose rows cover offsets, and have markers and origins; blocks end at ``window_edges``.
        target: likewise, the target.
        follows_same: whether these are the ends of two logs that have the same records before. Then they may part at
            the first record, too.
    """
    return _Comparison(source, target, follows_same=follows_same).result()


def _common(source: RowReader | SummedView, target: RowReader | SummedView) -> OffsetRange:
    return OffsetRange(max(source.start_offset, target.start_offset), min(source.end_offset, target.end_offset))


def _common_ranges(left: Sequence[OffsetRange], right: Sequence[OffsetRange]) -> Iterator[OffsetRange]:
    """Yield the offsets that are in a range on both sides; the ranges of a side ascend."""
    at = other = 0
    while at < len(left) and other < len(right):
        ours, theirs = left[at], right[other]
        found = OffsetRange(max(ours.start, theirs.start), min(ours.end, theirs.end))
        if found.offset_count:
            yield found
        at, other = (at + 1, other) if ours.end <= theirs.end else (at, other + 1)


@attrs.define(eq=False)
class _Found:
    """What is found from the first offset on."""

    told: dict[int, list[OffsetRange]] = attrs.field(factory=lambda: {kind: [] for kind in _KINDS})
    rest: dict[int, tuple[OffsetRange, int]] = attrs.field(factory=dict)
    runs: list[tuple[int, int, int]] = attrs.field(factory=list)
    compared: int = 0

    def add(self, kind: int, start: int, end: int) -> None:
        """Note offsets that differ, after all others of their kind."""
        told = self.told[kind]
        if kind in self.rest:
            place, count = self.rest[kind]
            self.rest[kind] = OffsetRange(place.start, end), count + end - start
        elif told and told[-1].end == start:
            told[-1] = OffsetRange(told[-1].start, end)
        elif len(told) < MOST_TOLD:
            told.append(OffsetRange(start, end))
        else:
            self.rest[kind] = OffsetRange(start, end), end - start

    def add_run(self, rank: int, other_rank: int, count: int) -> None:
        """Note records that are the same, by the ranks of the first one on both sides."""
        if self.runs:
            first, other_first, before = self.runs[-1]
            is_next = rank - first == other_rank - other_first == before
            if is_next or len(self.runs) == MOST_RUNS:
                self.runs[-1] = first, other_first, rank + count - first
                return
        if count:
            self.runs.append((rank, other_rank, count))

    def differences(self) -> Iterator[MirrorDifference]:
        for code, kind in _KINDS.items():
            for each in self.told[code]:
                yield MirrorDifference(kind, each, each, each.offset_count)
            if code in self.rest:
                place, count = self.rest[code]
                yield MirrorDifference(kind, place, place, count, is_exact=False)


class _Comparison:
    def __init__(self, source: SummedLog, target: SummedLog, *, follows_same: bool) -> None:
        self._source, self._target, self._follows_same = source, target, follows_same
        self._common = _common(source.all, target.all)
        self._bounds = window_edges(source.log, target.log)
        if not len(self._bounds):
            self._bounds = np.array([self._common.start], np.int64)
        self._ranks = source.all.ranks(self._bounds), target.all.ranks(self._bounds)
        counts = np.diff(self._ranks[0])
        self._are_same, unknown, has_markers = self._compared_windows(counts)
        self._known = counts - unknown
        self._has_records = self._are_same & ((self._known > 0) | has_markers)
        gaps = (list(each.all.long_gaps(LONG_GAP)) for each in (source, target))
        self._gaps = [each for each in _common_ranges(*gaps) if each.offset_count >= LONG_GAP]

    def _compared_windows(self, counts: Int64s) -> tuple[Bools, Int64s, Bools]:
        """Return which windows are the same; how many unknown records the source has in each; which have markers."""
        (ours, unknown), (theirs, other_unknown) = (
            log.all.sums(ranks) for log, ranks in zip((self._source, self._target), self._ranks, strict=True)
        )
        are_same = (ours == theirs).all(axis=1) & (unknown == other_unknown) & (counts == np.diff(self._ranks[1]))
        marks, other_marks = self._source.markers.ranks(self._bounds), self._target.markers.ranks(self._bounds)
        are_same &= (self._source.markers.sums(marks)[0] == self._target.markers.sums(other_marks)[0]).all(axis=1)
        return are_same & (np.diff(marks) == np.diff(other_marks)), unknown, np.diff(marks) > 0

    def result(self) -> PairResult:
        source, target = self._source.all, self._target.all
        fork = self._fork()
        found = self._found(fork)
        mirrored_end = min(fork, max(source.start_offset, target.end_offset), source.end_offset)
        before = source.count(OffsetRange(source.start_offset, mirrored_end))
        lag = OffsetRange(mirrored_end, source.end_offset)
        differences = [*found.differences(), *self._passed_over(), *self._written(fork)]
        return PairResult(
            tuple(sorted(differences, key=lambda each: (each.target, each.source, each.kind.value))),
            PairCounts(found.compared, before - found.compared, source.count(lag)),
            0,
            0,
            0,
            0,
            source.offset_after(lag, 0) if lag.offset_count else source.end_offset,
            tuple(
                PlaceRun(AdjacentOffsets(source, rank, count), AdjacentOffsets(target, other, count), count)
                for rank, other, count in found.runs
            ),
        )

    def _passed_over(self) -> Iterator[MirrorDifference]:
        """Yield the offsets that neither log has any more, of a target that has had records before them."""
        gap = OffsetRange(self._target.all.end_offset, self._source.all.start_offset)
        if gap.offset_count and gap.start > 0:
            place = OffsetRange(gap.start, gap.start)
            yield MirrorDifference(MirrorFault.PASSED_OVER, gap, place, gap.offset_count)

    def _written(self, fork: int) -> Iterator[MirrorDifference]:
        """Yield what the target has from where both logs part, or after the source's end."""
        target = self._target.all
        start = min(fork, self._source.all.end_offset)
        own = OffsetRange(max(start, target.start_offset), target.end_offset)
        count = target.count(own)
        gone = max(0, target.start_offset - start)
        if count or gone:
            place = OffsetRange(start if gone else target.offset_after(own, 0), target.end_offset)
            yield MirrorDifference(MirrorFault.WRITTEN_TO, OffsetRange(start, start), place, count + gone)

    # Where both logs part

    def _fork(self) -> int:
        """Return the offset from which on the target has records of its own; the end of the target if it has none."""
        last = self._last_same()
        if last is not None:
            for pairs in self._pairs(OffsetRange(last + 1, self._common.end)):
                is_parted = pairs.are_both & (pairs.agreeing < _ENOUGH)
                if is_parted.any():
                    return int(pairs.offsets[is_parted.argmax()])
        return self._target.all.end_offset

    def _last_same(self) -> int | None:
        """Return the last offset at which both logs have the same record; None if there is none, nor was before."""
        for window in range(len(self._are_same) - 1, -1, -1):
            place = OffsetRange(int(self._bounds[window]), int(self._bounds[window + 1]))
            if self._has_records[window]:
                return place.end - 1
            if self._are_same[window]:
                continue
            last = None
            for pairs in self._pairs(place):
                same = pairs.offsets[pairs.are_both & (pairs.codes == _SAME)]
                last = int(same[-1]) if len(same) else last
            if last is not None:
                return last
        return self._common.start - 1 if self._follows_same else None

    # Offset by offset

    def _found(self, fork: int) -> _Found:
        """Return what is found before both logs part."""
        found = _Found()
        edges = np.flatnonzero(np.diff(self._are_same, prepend=False, append=False))
        cuts = np.unique(np.concatenate([[0], edges, [len(self._are_same)]])).tolist()
        for first, last in itertools.pairwise(cuts):
            place = OffsetRange(int(self._bounds[first]), min(fork, int(self._bounds[last])))
            if not place.offset_count:
                break
            ranks = (int(self._ranks[0][first]), int(self._ranks[1][first]))
            if self._are_same[first]:
                found.compared += int(self._known[first:last].sum())
                found.add_run(*ranks, int(self._ranks[0][last]) - ranks[0])
                continue
            for part, is_gap in self._parts(place):
                ranks = self._source.all.rank(part.start), self._target.all.rank(part.start)
                if is_gap:
                    found.add_run(*ranks, part.offset_count)
                    continue
                for ours, theirs in _beside(self._source.log, self._target.log, part):
                    ranks = _Pairs(ours, theirs).tell(found, ranks)
        return found

    def _pairs(self, place: OffsetRange) -> Iterator["_Pairs"]:
        """Yield the rows of both logs in a range, some at a time, without long gaps that both have."""
        for part, is_gap in self._parts(place):
            if not is_gap:
                for ours, theirs in _beside(self._source.log, self._target.log, part):
                    yield _Pairs(ours, theirs)

    def _parts(self, place: OffsetRange) -> Iterator[tuple[OffsetRange, bool]]:
        """Yield a range in parts, each with whether it is in a long gap that both logs have."""
        at = place.start
        for gap in self._gaps[bisect.bisect_right(self._gaps, place.start, key=lambda each: each.end) :]:
            if gap.start >= place.end:
                break
            if at < gap.start:
                yield OffsetRange(at, gap.start), False
            at = min(gap.end, place.end)
            yield OffsetRange(max(gap.start, place.start), at), True
        if at < place.end:
            yield OffsetRange(at, place.end), False


class _Pairs:
    """The offsets at which either of two logs has a row, and how they compare there.

    Attributes:
        offsets: all of them, ascending.
        are_both: at which both have a record that can be read.
        codes: ``_SAME``, ``_APART`` if only one side has a place for a data record, and neither a record; or a kind.
    """

    def __init__(self, ours: DigestRows, theirs: DigestRows) -> None:
        self.offsets = np.union1d(ours.offsets, theirs.offsets)
        self._ours, self._theirs = ours, theirs
        mine, is_mine, self._is_data = self._side(ours)
        other, is_other, self._is_other_data = self._side(theirs)
        self.are_both = is_mine & is_other
        self._rows = mine[self.are_both], other[self.are_both]
        self.codes = np.where(self._is_data == self._is_other_data, _SAME, _APART)
        self.codes[is_mine & ~is_other] = _HOLE
        self.codes[is_other & ~is_mine] = _FOREIGN
        is_same = (ours.digests[self._rows[0]] == theirs.digests[self._rows[1]]).all(axis=1)
        is_same &= (ours.flags[self._rows[0]] ^ theirs.flags[self._rows[1]]) & MARKER == 0
        self.codes[self.are_both] = np.where(is_same, _SAME, _CHANGED)

    def _side(self, rows: DigestRows) -> tuple[Int64s, Bools, Bools]:
        """Return the row of each offset, whether it can be read, and whether it is, or may be, of a data record."""
        places = self.offsets.searchsorted(rows.offsets)
        indices = np.zeros(len(self.offsets), np.int64)
        indices[places] = np.arange(len(rows))
        is_known, is_data = np.zeros(len(self.offsets), np.bool_), np.zeros(len(self.offsets), np.bool_)
        is_known[places] = rows.flags & UNKNOWN == 0
        is_data[places] = rows.flags & MARKER == 0
        return indices, is_known, is_data

    @property
    def agreeing(self) -> Int64s:
        """How many of leader epoch, producer and timestamp agree; 0 where not both sides have a record."""
        found = np.zeros(len(self.offsets), np.int64)
        ours, theirs = self._ours.origins[self._rows[0]], self._theirs.origins[self._rows[1]]
        found[self.are_both] = (ours == theirs).sum(axis=1)
        return found

    def tell(self, found: _Found, ranks: Sequence[int]) -> tuple[int, int]:
        """Add to what is found, and return the ranks of what follows.

        Args:
            found: what is before.
            ranks: of the first offset, on both sides.
        """
        found.compared += int((self.are_both & self._is_data).sum())
        before = [
            np.concatenate([[rank], rank + np.cumsum(is_data)])
            for rank, is_data in zip(ranks, (self._is_data, self._is_other_data), strict=True)
        ]
        is_new = (np.diff(self.codes) != 0) | (np.diff(self.offsets) != 1)
        cuts = np.concatenate([[0], np.flatnonzero(is_new) + 1, [len(self.offsets)]]).tolist()
        for first, last in itertools.pairwise(cuts):
            code = int(self.codes[first])
            if code == _SAME:
                count = int(before[0][last] - before[0][first])
                found.add_run(int(before[0][first]), int(before[1][first]), count)
            elif code in _KINDS:
                found.add(code, int(self.offsets[first]), int(self.offsets[last - 1]) + 1)
        return int(before[0][-1]), int(before[1][-1])


def _beside(source: RowReader, target: RowReader, place: OffsetRange) -> Iterator[tuple[DigestRows, DigestRows]]:
    """Yield the rows of two logs in a range, some offsets of both at a time."""
    logs = [_Ahead(each.read(place.start, place.end), place.end) for each in (source, target)]
    at = place.start
    while at < place.end:
        at = min(each.end for each in logs)
        ours, theirs = (each.before(at) for each in logs)
        if len(ours) or len(theirs):
            yield ours, theirs


class _Ahead:
    """Rows that are read ahead.

    Attributes:
        end: the offset before which all rows are here.
    """

    def __init__(self, rows: Iterator[DigestRows], end: int) -> None:
        self._all, self._rows, self._end = rows, DigestRows.none(), end
        self.end = 0
        self._read()

    def _read(self) -> None:
        self._rows = next((each for each in self._all if len(each)), DigestRows.none())
        self.end = int(self._rows.offsets[-1]) + 1 if len(self._rows) else self._end

    def before(self, offset: int) -> DigestRows:
        """Return the rows before an offset that were not returned before."""
        cut = int(self._rows.offsets.searchsorted(offset))
        found, self._rows = self._rows.rows(0, cut), self._rows.rows(cut, len(self._rows))
        if self.end <= offset < self._end:
            self._read()
        return found
