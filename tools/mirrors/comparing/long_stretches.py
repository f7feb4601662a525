# SPDX-License-Identifier: Apache-2.0
"""Divides a long stretch of two logs where they are equal again, so that its differences are told place by place."""

from collections.abc import Callable, Iterator
from typing import Final

import attrs
import numpy as np

from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.comparing.edits import MOST_EDITS, find_edits
from raftlog.tools.mirrors.comparing.log_view import SummedView
from raftlog.tools.mirrors.comparing.rows import UNKNOWN, numbered

MOST_ROWS: Final = 1 << 20
"""So many records of each log are told apart at a time."""
_WINDOW: Final = 1 << 15
"""Where two logs part, so many records of each are looked at for a place from which on they are equal again."""
_RUN: Final = 256
"""So many records in a row that are equal are such a place. As many are told apart with what differs beside them."""
_MOST_PARTS: Final = 4096
_SKIPPED: Final = (0, _RUN, 4 * _RUN)
"""The first records of a log may have faults: so many are passed to see where two logs begin alike."""
MOST_TASKS: Final = 32
"""So many tasks explain what a log has before the first offset sync that compaction has left."""
_MOST_PLACES: Final = 8
"""So many of the first records of a log are looked for in the other one, and so many must be there in a row."""


@attrs.frozen
class StretchPart:
    """A part of a stretch.

    Attributes:
        source: its offsets in the source.
        target: its offsets in the target.
        count: how many records it has, if these are equal on both sides; else 0.
    """

    source: OffsetRange
    target: OffsetRange
    count: int = 0


@attrs.define
class _Walk:
    """A place in two logs, by rank, and the end of the stretch in both."""

    views: tuple[SummedView, SummedView]
    at: tuple[int, int]
    end: tuple[int, int]
    places: tuple[OffsetRange, OffsetRange]

    def left(self) -> tuple[int, int]:
        return self.end[0] - self.at[0], self.end[1] - self.at[1]

    def step(self, source: int, target: int, count: int = 0) -> StretchPart:
        """Go on by so many records of each log, and return what was passed."""
        before, self.at = self._offsets(), (self.at[0] + source, self.at[1] + target)
        after = self._offsets()
        return StretchPart(OffsetRange(before[0], after[0]), OffsetRange(before[1], after[1]), count)

    def _offsets(self) -> list[int]:
        logs = zip(self.views, self.at, self.end, self.places, strict=True)
        return [view.offset_at(at) if at < end else place.end for view, at, end, place in logs]

    def equal_count(self) -> int:
        """Return how many records are equal from here on."""
        return equal_count(self.views[0], self.at[0], self.views[1], self.at[1], min(self.left()))

    def resync(self) -> tuple[int, int] | None:
        """Return how many records of each log are to be passed until they are equal again; None if that is far."""
        here = self._offsets()
        ours, theirs = (
            view.first_rows(OffsetRange(offset, place.end), _WINDOW)
            for view, offset, place in zip(self.views, here, self.places, strict=True)
        )
        left, right = numbered(ours, theirs)
        edits = find_edits(left, right)
        if edits is None:
            return None
        if not edits:
            return len(left), len(right)
        for each, following in zip(edits, [*(edit.left_start for edit in edits[1:]), len(left)], strict=True):
            if following - each.left_end >= 2 * _RUN:
                return each.left_end + _RUN, each.right_end + _RUN
        return None


def equal_count(source: SummedView, rank: int, target: SummedView, target_rank: int, most: int) -> int:
    """Return how many records are equal, from a rank of each log on, of so many at most; an unknown one never is."""
    return _equal_count(lambda low, high: source.equals(rank + low, target, target_rank + low, high - low), most)


def equal_tail_count(source: SummedView, rank: int, target: SummedView, target_rank: int, most: int) -> int:
    """Return how many records before a rank of each log are equal, as ``equal_count`` does from the last one back."""
    return _equal_count(lambda low, high: source.equals(rank - high, target, target_rank - high, high - low), most)


def _equal_count(are_equal: Callable[[int, int], bool], most: int) -> int:
    """Return how many records are equal, if that can be asked of those between two distances from the first one."""
    low, step = 0, _RUN
    while low < most and are_equal(low, min(low + step, most)):
        low, step = min(low + step, most), 2 * step
    high = min(most, low + step)
    while low < high:
        middle = (low + high + 1) // 2
        if are_equal(low, middle):
            low = middle
        else:
            high = middle - 1
    return low


def divided_stretch(
    source: SummedView, target: SummedView, places: tuple[OffsetRange, OffsetRange], *, is_end_free: bool = False
) -> Iterator[StretchPart]:
    """Yield the parts of a stretch, by offset.

    Args:
        source: the source.
        target: the target.
        places: the offsets of both that it covers. What begins there should be the same.
        is_end_free: whether the source may have more at its end. Then the last part is never an equal one.
    """
    views = source, target
    ranks = [(view.rank(place.start), view.rank(place.end)) for view, place in zip(views, places, strict=True)]
    walk = _Walk(views, (ranks[0][0], ranks[1][0]), (ranks[0][1], ranks[1][1]), places)
    for _ in range(_MOST_PARTS):
        count = walk.equal_count()
        is_last = not any(walk.left()) or (count == walk.left()[1] and is_end_free)
        if not (count == walk.left()[0] == walk.left()[1] and not is_end_free):
            count = max(0, count - _RUN)
        if count:
            yield walk.step(count, count, count)
        if not any(walk.left()):
            return
        passed = None if is_last or max(_needed(walk, is_end_free=is_end_free)) <= MOST_ROWS else walk.resync()
        if passed is None:
            break
        yield walk.step(*passed)
    yield walk.step(*walk.left())


def _needed(walk: _Walk, *, is_end_free: bool) -> tuple[int, int]:
    """Return how many records of each log are to be told apart."""
    ours, theirs = walk.left()
    return (0 if is_end_free else ours), theirs


def common_start(
    source: SummedView, target: SummedView, places: tuple[OffsetRange, OffsetRange]
) -> tuple[int, int] | None:
    """Return where two stretches that end alike begin alike, as the first offsets that are; None if that is far.

    Args:
        source: the source, of which more records may be at the beginning.
        target: the target; it may have more only if the source has lost its first records.
        places: the offsets of both.
    """
    ours, theirs = source.count(places[0]), target.count(places[1])
    first, other = source.rank(places[0].start), target.rank(places[1].start)
    more = max(0, theirs - ours) if source.start_offset else 0
    for skipped in _SKIPPED:
        count = min(ours, theirs - more, skipped + _RUN) - skipped
        for shift in sorted(range(-MOST_EDITS, MOST_EDITS + 1), key=abs) if count > 0 else ():
            at = first + max(0, ours - theirs) + shift
            is_inside = first <= at <= first + ours - count - skipped
            if is_inside and source.equals(at + skipped, target, other + more + skipped, count):
                before = min(at - first, more)
                before = before if source.equals(at - before, target, other + more - before, before) else 0
                return source.offset_at(at - before), target.offset_at(other + more - before)
    return None


def copied_runs(
    source: SummedView, target: SummedView, start: tuple[int, int], end: int
) -> list[tuple[int, int]] | None:
    """Return where tasks have begun that have mirrored all of a part of the target, one after the other.

    Each goes on with a record that the ones before it have mirrored, or with the one after these. It is found by its
    contents, if these are not repeated.

    Args:
        source: the source.
        target: the target.
        start: the offsets of the first record, in both.
        end: the offset in the target at which the part ends, exclusive.

    Returns:
        The offsets of the first record of each, in both; None if that does not explain what is there.
    """
    (rank, at), target_end = (source.rank(start[0]), target.rank(start[1])), target.rank(end)
    runs, mirrored, all_ranks = [start], rank, source.rank(source.end_offset)
    while at < target_end and len(runs) <= MOST_TASKS:
        count = equal_count(source, rank, target, at, min(all_ranks - rank, target_end - at))
        mirrored, at = max(mirrored, rank + count), at + count
        if at == target_end:
            return runs
        here = target.offset_at(at)
        digests = list(target.first_rows(OffsetRange(here, end), 1).digests)
        mirrored_end = source.offset_after(OffsetRange(source.start_offset, source.end_offset), mirrored)
        (there,) = source.first_offsets(digests, mirrored_end) if count else (None,)
        if there is None:
            return None
        rank = source.rank(there)
        runs.append((there, here))
    return None


def starting_place(
    source: SummedView, target: SummedView, sync: tuple[int, int], ends: tuple[int, int]
) -> tuple[int, int] | None:
    """Return where a task went on that has mirrored a record which is gone, as the offsets of one that is there.

    That is one of the first records of the log which has lost the one of the sync. By its contents it is found in the
    other log, if these are not repeated, and those of the next records are there, too. One record is enough where none
    of both logs' records repeats another; else it takes several.

    Args:
        source: the source.
        target: the target.
        sync: the offsets of a record that the source, or the target, does not have any more.
        ends: where that record must be before, in both: the first sync of the task that is there, or where it has
            ended.
    """
    (at, place), (source_end, target_end) = sync, ends
    if at < source.start_offset:
        records = OffsetRange(source.start_offset, source_end)
        found = _first_record_in(source, at, records, target, place, target_end)
        if found is not None:
            return found
    if place >= target.start_offset:
        return None
    records = OffsetRange(target.start_offset, target_end)
    found = _first_record_in(target, place, records, source, at, source_end)
    return None if found is None else (found[1], found[0])


def _first_record_in(
    mine: SummedView, at: int, records: OffsetRange, other: SummedView, place: int, end: int
) -> tuple[int, int] | None:
    """Return the offset of one of the first records of a log, and that of the same one in another log.

    Args:
        mine: the log.
        at: an offset before its start.
        records: the offsets that the record may have.
        other: the other log.
        place: the offset in it of the record that was there.
        end: the offset in it before which the record must be.
    """
    firsts = mine.first_rows(records, _RUN)
    firsts = firsts.where(firsts.flags & UNKNOWN == 0)
    if not len(firsts):
        return None
    low, high = other.rank(place + 1), other.rank(end)
    last = int(firsts.offsets[:_MOST_PLACES][-1])
    after = min(high, low + last - at)  # Not each offset between has had a record.
    first = max(low, after - _WINDOW)
    if first >= after:
        return None
    rows = other.first_rows(OffsetRange(other.offset_at(first), other.end_offset), after - first)
    numbers, others = numbered(firsts, rows)
    needed = _MOST_PLACES if any(len(np.unique(each)) < len(each) for each in (numbers, others)) else 1
    for index, offset in enumerate(firsts.offsets[:_MOST_PLACES].tolist()):
        places = np.flatnonzero(others == numbers[index])
        if len(places) != 1 or np.count_nonzero(numbers == numbers[index]) > 1:
            continue
        rank, there = mine.rank(offset), first + int(places[0])
        count = min(_MOST_PLACES, mine.rank(records.end) - rank, high - there)
        if count >= needed and mine.equals(rank, other, there, count):
            return offset, int(rows.offsets[places[0]])
    return None
