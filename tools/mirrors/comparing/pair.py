# SPDX-License-Identifier: Apache-2.0
"""Compares a partition with its mirror, as the offset syncs pair their offsets.

Syncs divide both logs into windows. A window is equal if its records are, in order; what lies in adjacent windows that
are not is told apart record by record. Before the first sync and after the last one, records are compared from that
sync on. Where another task has gone on, the rest of what the former one has mirrored is compared first.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from raftlog.tools.mirrors.comparing.course import Course, CourseBounds, CourseResult
from raftlog.tools.mirrors.comparing.differences import MirrorDifference, MirrorFault, OffsetRange
from raftlog.tools.mirrors.comparing.lifetimes import Lifetime, Sync, find_lifetimes
from raftlog.tools.mirrors.comparing.lockstep import equal_count, equal_tail_count, offset_after, row_count, skipped
from raftlog.tools.mirrors.comparing.rows import DigestRows, Places, RowReader

_SAMPLE: Final = 20
"""So many syncs show whether a lifetime is of the same topic as the source is now."""


@attrs.frozen
class PairCounts:
    """What became of the records of the source, each of which counts once.

    Attributes:
        compared: that have, or should have, their place in the target.
        unverifiable: of which one side cannot be read, or is gone.
        lag: after the last one that was mirrored.
        aborted: of aborted transactions, which a lifetime that reads committed leaves out.
    """

    compared: int = 0
    unverifiable: int = 0
    lag: int = 0
    aborted: int = 0

    def __add__(self, other: "PairCounts") -> "PairCounts":
        ours, theirs = attrs.astuple(self), attrs.astuple(other)
        return PairCounts(*(left + right for left, right in zip(ours, theirs, strict=True)))


@attrs.frozen
class PairResult:
    """What was found of a pair.

    Attributes:
        differences: by place in the target.
        counts: of the records of the source.
        equal_anchors: how many syncs name the same record on both sides.
        unverifiable_anchors: how many name one that is not there any more, on one side.
        wrong_anchors: how many name two that are not the same, or none that can be.
        lifetimes: how many tasks, or parts of one, have mirrored.
        next_source: the offset of the first record of the source that is not mirrored; the source's end if all are.
        places: the offsets of the records that are the same on both sides, if they were asked for.
    """

    differences: tuple[MirrorDifference, ...]
    counts: PairCounts
    equal_anchors: int
    unverifiable_anchors: int
    wrong_anchors: int
    lifetimes: int
    next_source: int
    places: tuple[Places, ...] = ()


def compare_pair(
    source: RowReader,
    target: RowReader,
    syncs: Sequence[Sync],
    mirrored_end: int = 0,
    *,
    reads_committed: bool | None = None,
    keeps_places: bool = False,
) -> PairResult:
    """Compare a partition with its mirror.

    Args:
        source: reads the source.
        target: reads the target.
        syncs: of the partition, in the order of their topic.
        mirrored_end: an offset of the source below which all was mirrored, by what Connect has stored; 0 if it has
            nothing.
        reads_committed: whether the task leaves out records of aborted transactions. If that is not known, each
            lifetime is taken to do what leaves less to explain.
        keeps_places: whether to return which records are the same: all their offsets, at once.
    """
    return _PairComparison(source, target, syncs, mirrored_end, reads_committed, keeps_places=keeps_places).result()


class _PairComparison:
    def __init__(
        self,
        source: RowReader,
        target: RowReader,
        syncs: Sequence[Sync],
        mirrored_end: int,
        reads_committed: bool | None,
        *,
        keeps_places: bool,
    ) -> None:
        self._source, self._target, self._mirrored_end = source, target, mirrored_end
        self._reads_committed = reads_committed
        self._keeps_places = keeps_places
        self._places: list[Places] = []
        self._lifetimes, bad = find_lifetimes(syncs, source.end_offset, target.end_offset, self._holds)
        self._differences = list(bad)
        self._wrong = len(bad)
        self._equal = self._unverifiable = 0
        self._counts = PairCounts()
        self._is_compared = False  # Until a lifetime has a sync of which neither log has lost the record.
        self._frontier = source.start_offset
        """The offset after the last record of the source that a lifetime has mirrored."""

    def result(self) -> PairResult:
        valid = self._with_begins(self._of_these_topics())
        for number, lifetime in enumerate(valid):
            is_last = number == len(valid) - 1
            end = (
                self._target.end_offset if is_last else (valid[number + 1].begin or valid[number + 1].first).downstream
            )
            self._compare_lifetime(lifetime, end, is_first=number == 0, is_last=is_last)
        lost = sum(each.count for each in self._differences if each.kind is MirrorFault.LOST)
        self._differences = [each for each in self._differences if not self._was_shortened(each, lost)]
        rest = row_count(self._source.read(self._frontier, self._source.end_offset))
        self._counts += PairCounts(lag=rest) if self._is_compared else PairCounts(unverifiable=rest)
        return PairResult(
            tuple(sorted(self._differences, key=lambda each: (each.target, each.source, each.kind.value))),
            self._counts,
            self._equal,
            self._unverifiable,
            self._wrong,
            len(self._lifetimes),
            self._frontier,
            tuple(self._places),
        )

    def _with_begins(self, lifetimes: Sequence[Lifetime]) -> list[Lifetime]:
        """Return lifetimes, where those that have mirrored records before their first sync have a begin."""
        found = list(self._with_former(lifetimes[0])) if lifetimes else []
        for before, each in itertools.pairwise(lifetimes):
            found.append(attrs.evolve(each, begin=self._begin(before.last, each.first)))
        return found

    def _with_former(self, lifetime: Lifetime) -> Iterator[Lifetime]:
        """Yield the first lifetime, after one of which no sync is left if that explains all that is before it."""
        first = lifetime.first
        ours = row_count(self._read(self._source.start_offset, first.upstream))
        theirs = row_count(self._read_target(self._target.start_offset, first.downstream))
        if theirs > ours and self._source.start_offset == self._target.start_offset == 0 and self._holds(first):
            upstream = offset_after(self._read(0, first.upstream), 0, first.upstream)
            downstream = offset_after(self._read_target(0, first.downstream), 0, first.downstream)
            former = attrs.evolve(first, upstream=upstream, downstream=downstream)
            begin = self._begin(former, first)
            start = first.downstream if begin is None else begin.downstream
            source = self._read(former.upstream, self._source.end_offset)
            between = list(self._read_target(former.downstream, start))
            if 0 < row_count(between) == equal_count(source, between):
                yield Lifetime((), begin=former)
                lifetime = attrs.evolve(lifetime, begin=begin)
        yield lifetime

    def _begin(self, last: Sync, first: Sync) -> Sync | None:
        """Return where a lifetime began, if that was before its first sync; by the last sync before it."""
        equal = equal_count(self._read(last.upstream, self._source.end_offset), self._between(last, first))
        rest = row_count(self._between(last, first)) - equal
        before = row_count(self._read(self._source.start_offset, first.upstream))
        size = min(rest, before)
        if not size or not self._is_here(last):
            return None
        tail = equal_tail_count(
            skipped(self._read(self._source.start_offset, first.upstream), before - size),
            skipped(self._between(last, first), equal + rest - size),
        )
        if not tail:
            return None
        upstream = offset_after(self._read(self._source.start_offset, first.upstream), before - tail, first.upstream)
        downstream = offset_after(self._between(last, first), equal + rest - tail, first.downstream)
        return attrs.evolve(first, upstream=upstream, downstream=downstream)

    def _between(self, last: Sync, first: Sync) -> Iterator[DigestRows]:
        return self._read_target(last.downstream, first.downstream)

    def _read_target(self, start: int, end: int) -> Iterator[DigestRows]:
        for each in self._target.read(start, end):
            yield each.without_aborted()

    def _read(self, start: int, end: int) -> Iterator[DigestRows]:
        """Read the source as the task does, if that is known."""
        for each in self._source.read(start, end):
            yield each.without_aborted() if self._reads_committed else each

    def _was_shortened(self, each: MirrorDifference, lost: int) -> bool:
        """Whether a sync is past the target's end because records before it were taken out since."""
        is_past = each.kind is MirrorFault.BAD_SYNC and each.source.end <= self._source.end_offset
        return is_past and self._target.end_offset <= each.target.start < self._target.end_offset + lost

    # Topics that were made anew

    def _of_these_topics(self) -> list[Lifetime]:
        """Return what the logs as they are now can show: not what was mirrored from, or to, a former topic."""
        kept: list[Lifetime] = []
        for each in self._lifetimes:
            if kept and each.first.downstream <= kept[-1].last.downstream:
                kept = self._shrunk(kept, each)
            elif kept and each.first.upstream <= kept[-1].last.upstream and self._is_recreated(kept, each):
                before = kept[-1].last
                source = OffsetRange(each.first.upstream, before.upstream + 1)
                target = OffsetRange(kept[0].first.downstream, each.first.downstream)
                self._differences.append(
                    MirrorDifference(MirrorFault.SOURCE_RECREATED, source, target, target.offset_count)
                )
                self._unverifiable += sum(len(lifetime.syncs) for lifetime in kept)
                kept = []
            kept.append(each)
        return kept

    def _shrunk(self, kept: list[Lifetime], each: Lifetime) -> list[Lifetime]:
        """Return what is left of former lifetimes in a target that was cut, or made anew."""
        start, before = each.first.downstream, kept[-1].last
        source = OffsetRange(each.first.upstream, each.first.upstream + 1)
        target = OffsetRange(start, before.downstream + 1)
        self._differences.append(MirrorDifference(MirrorFault.TARGET_SHRUNK, source, target, target.offset_count))
        left = []
        for lifetime in kept:
            syncs = tuple(sync for sync in lifetime.syncs if sync.downstream < start)
            self._unverifiable += len(lifetime.syncs) - len(syncs)
            if syncs:
                left.append(attrs.evolve(lifetime, syncs=syncs))
        return left

    def _is_recreated(self, kept: Sequence[Lifetime], each: Lifetime) -> bool:
        """Whether a topic was made anew at the source: no former sync holds for it, but those of the lifetime do."""
        former = [sync for lifetime in kept for sync in lifetime.syncs if self._is_here(sync)]
        later = [sync for sync in each.syncs if self._is_here(sync)]
        if not former or not later:
            return bool(later) and not each.is_restart and not former
        step, later_step = -(-len(former) // _SAMPLE), -(-len(later) // _SAMPLE)
        return not any(map(self._holds, former[::step])) and any(map(self._holds, later[::later_step]))

    def _is_here(self, sync: Sync) -> bool:
        return sync.upstream >= self._source.start_offset and sync.downstream >= self._target.start_offset

    def _holds(self, sync: Sync) -> bool:
        source = self._source.read(sync.upstream, sync.upstream + 1)
        return equal_count(source, self._target.read(sync.downstream, sync.downstream + 1)) == 1

    # One lifetime

    def _compare_lifetime(self, lifetime: Lifetime, target_end: int, *, is_first: bool, is_last: bool) -> None:
        syncs = [each for each in lifetime.syncs if self._is_here(each)]
        self._unverifiable += len(lifetime.syncs) - len(syncs)
        named = [*([lifetime.begin] if lifetime.begin else []), *syncs]
        if not named:
            return
        self._is_compared = True
        bounds = CourseBounds(target_end, has_head=is_first, mirrored_end=self._mirrored_end if is_last else 0)
        course = Course(self._source, self._target, named, bounds, reads_committed=bool(self._reads_committed))
        result = course.result(keeps_places=self._keeps_places)
        if result.differences and self._source.has_aborted and self._reads_committed is None:
            other = Course(self._source, self._target, named, bounds, reads_committed=True)
            committed = other.result(keeps_places=self._keeps_places)
            if _faults(committed) < _faults(result):
                course, result = other, committed
        has_former = any(each.kind is MirrorFault.TARGET_SHRUNK for each in self._differences)
        self._differences += [
            each for each in result.differences if not (has_former and each.kind is MirrorFault.LATE_START)
        ]
        self._places += result.places
        self._wrong += result.wrong
        self._equal += len(syncs) - result.wrong
        self._count(course, result, is_first=is_first)

    def _count(self, course: Course, result: CourseResult, *, is_first: bool) -> None:
        """Count what a lifetime has mirrored, and tell what it has mirrored again, or has skipped."""
        start = result.source.start
        left_out = OffsetRange(self._frontier if is_first else max(start, self._frontier), result.source.end)
        if is_first:
            self._counts += PairCounts(unverifiable=result.before)
            self._frontier = start
        again = OffsetRange(start, min(self._frontier, result.source.end))
        copies = course.source_count(again)
        if copies:
            target = OffsetRange(result.target.start, course.target_offset_after(copies))
            self._differences.append(MirrorDifference(MirrorFault.COPIED_AGAIN, again, target, copies))
        skipped = OffsetRange(self._frontier, start)
        lost = course.source_count(skipped)
        if lost:
            target = OffsetRange(result.target.start, result.target.start)
            self._differences.append(MirrorDifference(MirrorFault.LOST, skipped, target, lost))
        aborted = course.left_out(left_out)
        self._counts += PairCounts(result.compared - copies + lost, result.unverifiable, aborted=aborted)
        self._frontier = max(self._frontier, result.source.end)


def _faults(result: CourseResult) -> int:
    """Return how much a result has to explain."""
    return sum(each.count for each in result.differences)
