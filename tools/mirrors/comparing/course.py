# SPDX-License-Identifier: Apache-2.0
"""Compares what one lifetime has mirrored: sections of both logs between its syncs, before them and after them."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

import attrs
import numpy as np

from raftlog.tools.mirrors.comparing.differences import MirrorDifference, MirrorFault, OffsetRange
from raftlog.tools.mirrors.comparing.displaced import with_displaced
from raftlog.tools.mirrors.comparing.edits import MOST_EDITS
from raftlog.tools.mirrors.comparing.lifetimes import Sync, Syncs
from raftlog.tools.mirrors.comparing.log_view import SummedView
from raftlog.tools.mirrors.comparing.long_stretches import MOST_ROWS, StretchPart, common_start, divided_stretch
from raftlog.tools.mirrors.comparing.place_runs import AdjacentOffsets, ListedOffsets, PlaceRun
from raftlog.tools.mirrors.comparing.stretches import (
    STRICT,
    Ends,
    MirrorStretch,
    StretchResult,
    tell_apart,
    tell_coarsely,
)

_MOST_BEFORE: Final = MOST_EDITS // 2
"""Of records of the target that may be from before the source's first one, so many are looked at."""


@attrs.frozen
class CourseBounds:
    """How far a lifetime reaches.

    Attributes:
        target_end: the offset in the target at which the next lifetime begins, or the log ends.
        has_head: whether what is before its first sync belongs to it.
        mirrored_end: the offset in the source below which all was mirrored, by what Connect has stored; 0 if unknown.
        has_former: whether the target may have records of a former topic before those of the lifetime.
        has_earlier: whether it has mirrored records that one of the logs does not have any more.
    """

    target_end: int
    has_head: bool = True
    mirrored_end: int = 0
    has_former: bool = False
    has_earlier: bool = False


@attrs.frozen
class CourseResult:
    """What was found of a lifetime.

    Attributes:
        differences: in no order.
        wrong: how many of its syncs do not name the same record on both sides.
        unverified: how many name one that cannot be read.
        source: the offsets of the source that it has mirrored, or should have.
        target: where in the target.
        before: how many records of the source come before those, from the log start on.
        compared: how many records of the source were compared, or found to be lost.
        unverifiable: how many could not be.
        places: the records that are the same on both sides.
    """

    differences: tuple[MirrorDifference, ...]
    wrong: int
    unverified: int
    source: OffsetRange
    target: OffsetRange
    before: int
    compared: int
    unverifiable: int
    places: tuple[PlaceRun, ...]


@attrs.define
class _Section:
    """A part of both logs.

    Attributes:
        source: its offsets in the source.
        target: its offsets in the target.
        sync: that it begins with; None before the first one.
        ends: what may be left over.
        is_equal: whether it has equal records in equal order.
        count: how many records of the source have their place in the target.
        left_over: how many others there are before the first sync.
    """

    source: OffsetRange
    target: OffsetRange
    sync: Sync | None
    ends: Ends = STRICT
    is_equal: bool = False
    count: int = 0
    left_over: int = 0


class Course:
    """What one lifetime has mirrored.

    Args:
        source: the source as the task reads it.
        target: the target.
        syncs: of the lifetime, all of which are within both logs; at least one.
        bounds: how far it reaches.
    """

    def __init__(self, source: SummedView, target: SummedView, syncs: Syncs, bounds: CourseBounds) -> None:
        self._source, self._target, self._bounds = source, target, bounds
        self._sections = [*self._head(syncs[0]), *self._windows(syncs), self._tail(syncs[-1])]
        head, after = self._sections[0], self._sections[1:2]
        if head.sync is None and head.left_over and not all(each.is_equal for each in after):
            head.is_equal = False  # The first sync may be wrong.

    def target_offset_after(self, count: int) -> int:
        """Return the offset after the first records of the lifetime in the target."""
        place = OffsetRange(self._sections[0].target.start, self._bounds.target_end)
        count = min(count, self._target.count(place))
        return self._target.offset_at(self._target.rank(place.start) + count - 1) + 1 if count else place.start

    # Sections

    def _head(self, first: Sync) -> Iterator[_Section]:
        """Yield the section before the first sync. It is aligned at its end; either log may begin earlier."""
        if not self._bounds.has_head:
            return
        source = OffsetRange(self._source.start_offset, first.upstream)
        target = OffsetRange(self._target.start_offset, first.downstream)
        ours, theirs = self._source.count(source), self._target.count(target)
        count = min(ours, theirs)
        ranks = self._source.rank(source.end) - count, self._target.rank(target.end) - count
        is_free = (self._source.start_offset > 0 and theirs > ours) or self._bounds.has_former
        is_earlier = self._target.start_offset > 0 or self._bounds.has_earlier or ours == theirs
        has_one_start = is_earlier and not self._bounds.has_former
        ends = Ends(is_source_start_free=True, is_target_start_free=is_free, has_one_start=has_one_start)
        is_equal = self._source.equals(ranks[0], self._target, ranks[1], count)
        is_equal = is_equal and (theirs <= ours or ends.is_target_start_free)
        yield _Section(source, target, None, ends, is_equal, count, ours - count)

    def _windows(self, syncs: Syncs) -> Iterator[_Section]:
        """Yield the sections between syncs; adjacent windows that are equal are one."""
        if len(syncs) < 2:
            return
        are_equal, counts = self._source.equal_windows(syncs.upstream, self._target, syncs.downstream)
        bounds = np.flatnonzero(~(are_equal[1:] & are_equal[:-1])) + 1
        for first, last in itertools.pairwise([0, *bounds.tolist(), len(are_equal)]):
            source = OffsetRange(*syncs.upstream[[first, last]].tolist())
            target = OffsetRange(*syncs.downstream[[first, last]].tolist())
            count = int(counts[first:last].sum())
            yield _Section(source, target, syncs[first], STRICT, bool(are_equal[first]), count)

    def _tail(self, last: Sync) -> _Section:
        """Return the section after the last sync, which has all that the target has, and then maybe more."""
        source = OffsetRange(last.upstream, self._source.end_offset)
        target = OffsetRange(last.downstream, self._bounds.target_end)
        mirrored_end = self._bounds.mirrored_end
        count = self._target.count(target)
        is_equal = max(count, self._source.count(OffsetRange(source.start, mirrored_end))) == count
        is_equal = is_equal and count <= self._source.count(source) and self._are_there(last)
        ranks = self._source.rank(source.start), self._target.rank(target.start)
        is_equal = is_equal and self._source.equals(ranks[0], self._target, ranks[1], count)
        return _Section(source, target, last, Ends(mirrored_end=mirrored_end), is_equal, count)

    def _are_there(self, sync: Sync) -> bool:
        """Whether a sync names a record on both sides."""
        upstream, downstream = np.array([sync.upstream], np.int64), np.array([sync.downstream], np.int64)
        return bool(self._source.have(upstream)[0] and self._target.have(downstream)[0])

    # What differs

    def result(self) -> CourseResult:
        """Tell apart what differs."""
        places: list[PlaceRun] = []
        differences: list[MirrorDifference] = []
        wrong = unverified = compared = unverifiable = 0
        end = self._source.offset_after(self._sections[-1].source, self._sections[-1].count)
        for is_equal, group in itertools.groupby(self._sections, key=lambda each: each.is_equal):
            if is_equal:
                for each in group:
                    compared += each.count
                    places.append(self._equal_places(each))
                continue
            for stretch in itertools.chain.from_iterable(map(self._stretches, _divided(list(group)))):
                if isinstance(stretch, PlaceRun):
                    places.append(stretch)
                    compared += stretch.count
                    continue
                found = stretch if isinstance(stretch, StretchResult) else self._told(stretch)
                differences += found.differences
                ours, theirs = found.places
                places.append(PlaceRun(ListedOffsets(ours), ListedOffsets(theirs), len(ours)))
                wrong += found.wrong
                unverified += found.unverified
                compared += found.compared
                unverifiable += found.unverifiable
                if isinstance(stretch, StretchResult):
                    continue
                if stretch.ends.is_source_start_free:
                    unread = self._source.count(stretch.source_place) - len(stretch.source)
                    self._sections[0].left_over = unread + found.left_over
                elif stretch.ends.is_source_end_free:
                    end = self._source.offset_after(stretch.source_place, len(stretch.source) - found.left_over)
        before = self._sections[0].left_over
        log_start = self._sections[0].source.start
        start = self._source.offset_after(OffsetRange(log_start, end), before)
        passed = OffsetRange(log_start, start)
        known = self._source.known_count(passed) if before and self._target.start_offset == 0 else 0
        if known:
            differences.append(MirrorDifference(MirrorFault.LATE_START, passed, OffsetRange(0, 0), known))
        target = OffsetRange(self._sections[0].target.start, self._bounds.target_end)
        differences = list(map(self._as_copied, with_displaced(differences, self._source, self._target)))
        counts = before, compared, unverifiable
        source = OffsetRange(start, end)
        return CourseResult(tuple(differences), wrong, unverified, source, target, *counts, tuple(places))

    def _as_copied(self, each: MirrorDifference) -> MirrorDifference:
        """Return a difference; as harmless, if before the first sync a task may have mirrored again, as it does."""
        head = self._sections[0]
        is_before = head.sync is None and each.target.start < head.target.end
        if not (is_before and each.is_exact and each.kind in {MirrorFault.DUPLICATE, MirrorFault.FOREIGN}):
            return each
        first, other, count = self._source.rank(each.source.start), self._target.rank(each.target.start), each.count
        is_there = first + count <= self._source.rank(self._source.end_offset)
        if not (is_there and self._source.equals(first, self._target, other, count)):
            return each
        ends = self._source.offset_at(first + count - 1) + 1, self._target.offset_at(other + count - 1) + 1
        places = OffsetRange(each.source.start, ends[0]), OffsetRange(each.target.start, ends[1])
        return MirrorDifference(MirrorFault.COPIED_AGAIN, *places, count)

    def _equal_places(self, section: _Section) -> PlaceRun:
        """Return the places of the records of a section that is equal."""
        if section.sync is not None:
            return self._equal_run(section.source.start, section.target.start, section.count)
        # It is aligned at its end.
        ours = self._source.rank(section.source.end) - section.count
        theirs = self._target.rank(section.target.end) - section.count
        return self._run_from(ours, theirs, section.count)

    def _equal_run(self, upstream: int, downstream: int, count: int) -> PlaceRun:
        """Return the places of so many records that are equal from two offsets on."""
        return self._run_from(self._source.rank(upstream), self._target.rank(downstream), count)

    def _run_from(self, ours: int, theirs: int, count: int) -> PlaceRun:
        source = AdjacentOffsets(self._source, ours, count)
        return PlaceRun(source, AdjacentOffsets(self._target, theirs, count), count)

    def _stretches(self, sections: Sequence[_Section]) -> Iterator[MirrorStretch | PlaceRun | StretchResult]:
        """Yield what differs of adjacent sections; if they are long, in parts, with the equal ones between."""
        first, last = sections[0], sections[-1]
        ends = first.ends if first.sync is None else last.ends
        source = OffsetRange(first.source.start, last.source.end)
        target = OffsetRange(first.target.start, last.target.end)
        syncs = [each.sync for each in sections if each.sync is not None]
        counts = 0 if ends.is_source_end_free else self._source.count(source), self._target.count(target)
        start: tuple[int, int] | None = source.start, target.start
        if ends.is_source_start_free and max(counts) > MOST_ROWS:
            start = common_start(self._source, self._target, (source, target))
        if start is None or max(counts) <= MOST_ROWS:
            yield self._stretch(source, target, syncs, ends)
            return
        if ends.is_source_start_free:
            first.left_over = self._source.count(OffsetRange(source.start, start[0]))
            source, target, ends = OffsetRange(start[0], source.end), OffsetRange(start[1], target.end), STRICT
        parts = list(divided_stretch(self._source, self._target, (source, target), is_end_free=ends != STRICT))
        before = self._shift(parts[0])
        for each in parts:
            inside = [sync for sync in syncs if each.source.start <= sync.upstream < each.source.end]
            if each.count:
                yield self._equal_run(each.source.start, each.target.start, each.count)
                yield self._mispaired(inside, self._shift(each), before)
            else:
                part = self._stretch(each.source, each.target, inside, ends if each is parts[-1] else STRICT)
                yield attrs.evolve(part, shift=self._shift(each) - before)

    def _shift(self, part: StretchPart) -> int:
        return self._target.rank(part.target.start) - self._source.rank(part.source.start)

    def _mispaired(self, syncs: Sequence[Sync], shift: int, before: int) -> StretchResult:
        """Return which syncs do not name the same records of a part that is equal.

        Args:
            syncs: of the part.
            shift: how much greater the ranks are in the target.
            before: how much greater they are where the stretch begins.
        """
        columns = Syncs.of(syncs)
        upstream, downstream = columns.upstream, columns.downstream
        ranks = self._source.ranks(upstream) + shift
        are_there = self._source.have(upstream), self._target.have(downstream)
        are_right = are_there[0] & are_there[1] & (self._target.ranks(downstream) == ranks)
        wrong = [syncs[at] for at in np.flatnonzero(~are_right & (are_there[0] | are_there[1])).tolist()]
        places = {each: int(rank) for each, rank in zip(syncs, ranks, strict=True)}
        told = [
            each
            for each in wrong
            if shift == before or self._target.offset_at(places[each]) - each.downstream != shift - before
        ]
        differences = (MirrorDifference(MirrorFault.WRONG_ANCHOR, *each.places, sync=each.offset) for each in told)
        return StretchResult(tuple(differences), len(wrong), 0, 0, 0)

    def _told(self, stretch: MirrorStretch) -> StretchResult:
        """Return what differs in a stretch, of which there may be more than was read."""
        found = tell_apart(stretch)
        more = self._target.count(stretch.target_place) - len(stretch.target)
        if stretch.ends.is_source_end_free:
            return found if more <= 0 else tell_coarsely(stretch, more)
        rest = self._source.count(stretch.source_place) - len(stretch.source)
        if rest <= 0:
            return found
        if stretch.ends.is_source_start_free:  # What was not read is left over.
            kind = MirrorFault.FOREIGN if more > rest else MirrorFault.CHANGED
            whole = MirrorDifference(kind, stretch.source_place, stretch.target_place, is_exact=False)
            return attrs.evolve(found, differences=(*found.differences, whole))
        return attrs.evolve(tell_coarsely(stretch, more), unverifiable=len(stretch.source) + rest)

    def _stretch(self, source: OffsetRange, target: OffsetRange, syncs: Sequence[Sync], ends: Ends) -> MirrorStretch:
        ours, theirs = source, target
        if ends.is_source_start_free:  # The last records matter.
            count, other = self._source.count(source), self._target.count(target)
            ours = OffsetRange(self._source.offset_after(source, max(0, count - MOST_ROWS)), source.end)
            most = min(count, MOST_ROWS) + _MOST_BEFORE if ends.is_target_start_free else MOST_ROWS
            theirs = OffsetRange(self._target.offset_after(target, max(0, other - most)), target.end)
        right = self._target.first_rows(theirs, MOST_ROWS)
        most = MOST_ROWS
        if ends.is_source_end_free:  # The source may go on for long, and none of that is wanted.
            due = self._source.count(OffsetRange(source.start, ends.mirrored_end))
            most = min(most, max(due, len(right) + MOST_EDITS))
        return MirrorStretch(self._source.first_rows(ours, most), right, source, target, syncs, ends)


def _divided(sections: Sequence[_Section]) -> Iterator[Sequence[_Section]]:
    """Divide what begins before the first sync and ends after the last one: one end alone may be free."""
    if len(sections) > 1 and sections[0].sync is None and sections[-1].ends.is_source_end_free:
        yield sections[:1]
        sections = sections[1:]
    yield sections
