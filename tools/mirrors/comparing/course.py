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
from raftlog.tools.mirrors.comparing.lifetimes import Sync
from raftlog.tools.mirrors.comparing.lockstep import equal_count, first_rows, offset_after, row_count, skipped
from raftlog.tools.mirrors.comparing.rows import ABORTED, UNKNOWN, DigestRows, Places, RowReader
from raftlog.tools.mirrors.comparing.stretches import STRICT, Ends, MirrorStretch, tell_apart
from raftlog.tools.mirrors.comparing.window_sums import sum_windows

MOST_ROWS: Final = 1 << 20
"""So many records of each log are told apart at a time."""
_MOST_BEFORE: Final = MOST_EDITS // 2
"""Of records of the target that may be from before the source's first one, so many are looked at."""


@attrs.frozen
class CourseBounds:
    """How far a lifetime reaches.

    Attributes:
        target_end: the offset in the target at which the next lifetime begins, or the log ends.
        has_head: whether what is before its first sync belongs to it.
        mirrored_end: the offset in the source below which all was mirrored, by what Connect has stored; 0 if unknown.
    """

    target_end: int
    has_head: bool = True
    mirrored_end: int = 0


@attrs.frozen
class CourseResult:
    """What was found of a lifetime.

    Attributes:
        differences: in no order.
        wrong: how many of its syncs do not name the same record on both sides.
        source: the offsets of the source that it has mirrored, or should have.
        target: where in the target.
        before: how many records of the source come before those, from the log start on.
        compared: how many records of the source were compared, or found to be lost.
        unverifiable: how many could not be.
        places: the offsets of the records that are the same on both sides, if they were asked for.
    """

    differences: tuple[MirrorDifference, ...]
    wrong: int
    source: OffsetRange
    target: OffsetRange
    before: int
    compared: int
    unverifiable: int
    places: tuple[Places, ...] = ()


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
        source: reads the source.
        target: reads the target.
        syncs: of the lifetime, all of which are within both logs; at least one.
        bounds: how far it reaches.
        reads_committed: whether the task leaves out records of aborted transactions.
    """

    def __init__(
        self,
        source: RowReader,
        target: RowReader,
        syncs: Sequence[Sync],
        bounds: CourseBounds,
        *,
        reads_committed: bool = False,
    ) -> None:
        self._source, self._target, self._bounds = source, target, bounds
        self._reads_committed = reads_committed
        self._sections = [*self._head(syncs[0]), *self._windows(syncs), self._tail(syncs[-1])]
        head, after = self._sections[0], self._sections[1:2]
        if head.sync is None and head.left_over and not all(each.is_equal for each in after):
            head.is_equal = False  # The first sync may be wrong.

    # Rows

    def _source_rows(self, place: OffsetRange) -> Iterator[DigestRows]:
        for each in self._source.read(place.start, place.end):
            yield each.without_aborted() if self._reads_committed else each

    def _target_rows(self, place: OffsetRange) -> Iterator[DigestRows]:
        for each in self._target.read(place.start, place.end):
            yield each.without_aborted()  # A worker with exactly-once support has mirrored them again.

    def source_count(self, place: OffsetRange) -> int:
        """Return how many records of the source, as the task reads it, are in a range."""
        return row_count(self._source_rows(place)) if place.offset_count else 0

    def _known_count(self, place: OffsetRange) -> int:
        """Return how many records of a range of the source can be read."""
        return sum(int((each.flags & UNKNOWN == 0).sum()) for each in self._source_rows(place))

    def left_out(self, place: OffsetRange) -> int:
        """Return how many records of a range of the source the task leaves out."""
        if not self._reads_committed or not place.offset_count:
            return 0
        return sum(int((each.flags & ABORTED != 0).sum()) for each in self._source.read(place.start, place.end))

    def target_offset_after(self, count: int) -> int:
        """Return the offset after the first records of the lifetime in the target."""
        place = OffsetRange(self._sections[0].target.start, self._bounds.target_end)
        last = DigestRows.joined(
            each.rows(len(each) - 1, len(each)) for each in first_rows(self._target_rows(place), count)
        )
        return int(last.offsets[-1]) + 1 if len(last) else place.start

    # Sections

    def _head(self, first: Sync) -> Iterator[_Section]:
        """Yield the section before the first sync. It is aligned at its end; either log may begin earlier."""
        if not self._bounds.has_head:
            return
        source = OffsetRange(self._source.start_offset, first.upstream)
        target = OffsetRange(self._target.start_offset, first.downstream)
        ours, theirs = self.source_count(source), row_count(self._target_rows(target))
        count = min(ours, theirs)
        equal = equal_count(
            skipped(self._source_rows(source), ours - count), skipped(self._target_rows(target), theirs - count)
        )
        ends = Ends(is_source_start_free=True, is_target_start_free=self._source.start_offset > 0)
        is_equal = equal == count and (theirs <= ours or ends.is_target_start_free)
        yield _Section(source, target, None, ends, is_equal, count, ours - count)

    def _windows(self, syncs: Sequence[Sync]) -> Iterator[_Section]:
        """Yield the sections between syncs; adjacent windows that are equal are one."""
        upstream = np.array([each.upstream for each in syncs], np.int64)
        downstream = np.array([each.downstream for each in syncs], np.int64)
        if len(syncs) < 2:
            return
        ours = sum_windows(self._source_rows(OffsetRange(*upstream[[0, -1]].tolist())), upstream)
        theirs = sum_windows(self._target_rows(OffsetRange(*downstream[[0, -1]].tolist())), downstream)
        are_equal = ours.equals(theirs) & (ours.firsts == upstream[:-1]) & (theirs.firsts == downstream[:-1])
        bounds = np.flatnonzero(~(are_equal[1:] & are_equal[:-1])) + 1
        for first, last in itertools.pairwise([0, *bounds.tolist(), len(are_equal)]):
            source = OffsetRange(syncs[first].upstream, syncs[last].upstream)
            target = OffsetRange(syncs[first].downstream, syncs[last].downstream)
            count = int(ours.counts[first:last].sum())
            yield _Section(source, target, syncs[first], STRICT, bool(are_equal[first]), count)

    def _tail(self, last: Sync) -> _Section:
        """Return the section after the last sync, which has all that the target has, and then maybe more."""
        source = OffsetRange(last.upstream, self._source.end_offset)
        target = OffsetRange(last.downstream, self._bounds.target_end)
        mirrored_end = self._bounds.mirrored_end
        count = row_count(self._target_rows(target))
        equal = equal_count(self._source_rows(source), self._target_rows(target))
        due = self.source_count(OffsetRange(source.start, mirrored_end))
        named = self._offset_after(source, 0), offset_after(self._target_rows(target), 0, target.end)
        is_equal = equal == count >= due and named == (last.upstream, last.downstream)
        return _Section(source, target, last, Ends(mirrored_end=mirrored_end), is_equal, count)

    # What differs

    def result(self, *, keeps_places: bool = False) -> CourseResult:
        """Tell apart what differs.

        Args:
            keeps_places: whether to return which records are the same: all their offsets, at once.
        """
        places: list[Places] = []
        differences: list[MirrorDifference] = []
        wrong = compared = unverifiable = 0
        before = next((each.left_over for each in self._sections if each.sync is None), 0)
        end = self._offset_after(self._sections[-1].source, self._sections[-1].count)
        for is_equal, group in itertools.groupby(self._sections, key=lambda each: each.is_equal):
            if is_equal:
                for each in group:
                    compared += each.count
                    if keeps_places:
                        places.append(self._equal_places(each))
                continue
            for sections in _divided(list(group)):
                stretch = self._stretch(sections)
                found = tell_apart(stretch)
                differences += found.differences
                places.append(found.places)
                wrong += found.wrong
                compared += found.compared
                unverifiable += found.unverifiable
                if stretch.ends.is_source_start_free:
                    before += found.left_over - sections[0].left_over
                elif stretch.ends.is_source_end_free:
                    end = self._offset_after(stretch.source_place, len(stretch.source) - found.left_over)
        log_start = self._sections[0].source.start
        start = self._offset_after(OffsetRange(log_start, end), before)
        known = self._known_count(OffsetRange(log_start, start)) if before and self._target.start_offset == 0 else 0
        if known:
            late = MirrorDifference(MirrorFault.LATE_START, OffsetRange(log_start, start), OffsetRange(0, 0), known)
            differences.append(late)
        target = OffsetRange(self._sections[0].target.start, self._bounds.target_end)
        differences = list(with_displaced(differences, self._source_rows, self._target_rows))
        kept = tuple(places) if keeps_places else ()
        return CourseResult(
            tuple(differences), wrong, OffsetRange(start, end), target, before, compared, unverifiable, kept
        )

    def _equal_places(self, section: _Section) -> Places:
        """Return the offsets of the records of a section that is equal."""
        ours = [np.zeros(0, np.int64), *(each.offsets for each in self._source_rows(section.source))]
        theirs = [np.zeros(0, np.int64), *(each.offsets for each in self._target_rows(section.target))]
        upstream, downstream = np.concatenate(ours), np.concatenate(theirs)
        if section.sync is None:  # It is aligned at its end.
            return upstream[len(upstream) - section.count :], downstream[len(downstream) - section.count :]
        return upstream[: section.count], downstream[: section.count]

    def _offset_after(self, place: OffsetRange, count: int) -> int:
        """Return the offset of the first record of the source in a range that comes after so many others."""
        return offset_after(self._source_rows(place), count, place.end)

    def _stretch(self, sections: Sequence[_Section]) -> MirrorStretch:
        first, last = sections[0], sections[-1]
        ends = first.ends if first.sync is None else last.ends
        source = OffsetRange(first.source.start, last.source.end)
        target = OffsetRange(first.target.start, last.target.end)
        ours, theirs = self._source_rows(source), self._target_rows(target)
        if ends.is_source_start_free:
            count = self.source_count(source)
            other = row_count(self._target_rows(target))
            ours = skipped(ours, count - MOST_ROWS)
            most = min(count, MOST_ROWS) + _MOST_BEFORE if ends.is_target_start_free else MOST_ROWS
            theirs = skipped(theirs, other - most)
        right = DigestRows.joined(first_rows(theirs, MOST_ROWS))
        most = MOST_ROWS
        if ends.is_source_end_free:  # The source may go on for long, and none of that is wanted.
            due = self.source_count(OffsetRange(source.start, ends.mirrored_end))
            most = min(most, max(due, len(right) + MOST_EDITS))
        syncs = [each.sync for each in sections if each.sync is not None]
        return MirrorStretch(DigestRows.joined(first_rows(ours, most)), right, source, target, syncs, ends)


def _divided(sections: Sequence[_Section]) -> Iterator[Sequence[_Section]]:
    """Divide what begins before the first sync and ends after the last one: one end alone may be free."""
    if len(sections) > 1 and sections[0].sync is None and sections[-1].ends.is_source_end_free:
        yield sections[:1]
        sections = sections[1:]
    yield sections
