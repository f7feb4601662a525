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
import numpy as np

from raftlog.tools.mirrors.comparing.course import Course, CourseBounds, CourseResult
from raftlog.tools.mirrors.comparing.differences import MirrorDifference, MirrorFault, OffsetRange
from raftlog.tools.mirrors.comparing.lifetimes import Lifetime, Sync, Syncs, find_lifetimes
from raftlog.tools.mirrors.comparing.log_view import SummedLog, SummedView
from raftlog.tools.mirrors.comparing.long_stretches import copied_runs, equal_count, equal_tail_count, starting_place
from raftlog.tools.mirrors.comparing.place_runs import PlaceRun
from raftlog.tools.mirrors.comparing.rows import Bools, Int64s

_SAMPLE: Final = 20
"""So many syncs show whether a lifetime is of the same topic as the source is now."""


@attrs.frozen
class MadeAnew:
    """When the topics of a pair were made, if there were others of their names before.

    Attributes:
        source_ms: of the source, in ms since the Unix epoch; None if it was not made anew, as far as is known.
        target_ms: likewise, of the target.
    """

    source_ms: int | None = None
    target_ms: int | None = None


_NEVER: Final = MadeAnew()


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

    @property
    def total(self) -> int:
        """All records of the source."""
        return sum(attrs.astuple(self))

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
        unverifiable_anchors: how many name one that one side does not have any more, or that cannot be read.
        wrong_anchors: how many name two that are not the same, or none that can be.
        lifetimes: how many tasks, or parts of one, have mirrored.
        next_source: the offset of the first record of the source that is not mirrored; the source's end if all are.
        places: the records that are the same on both sides.
    """

    differences: tuple[MirrorDifference, ...]
    counts: PairCounts
    equal_anchors: int
    unverifiable_anchors: int
    wrong_anchors: int
    lifetimes: int
    next_source: int
    places: tuple[PlaceRun, ...] = attrs.field(default=(), eq=False)

    @property
    def anchors(self) -> int:
        """How many syncs there are, of those that are about these topics or former ones."""
        return self.equal_anchors + self.unverifiable_anchors + self.wrong_anchors


def compare_pair(
    source: SummedLog,
    target: SummedLog,
    syncs: Sequence[Sync],
    mirrored_end: int = 0,
    *,
    reads_committed: bool | None = None,
    made_anew: MadeAnew = _NEVER,
    has_older: bool = False,
) -> PairResult:
    """Compare a partition with its mirror.

    Aborted records of the target do not count: a worker with exactly-once support has mirrored them again.

    Args:
        source: the source; blocks should end at ``edges_of``.
        target: the target, likewise.
        syncs: of the partition, in the order of their topic.
        mirrored_end: an offset of the source below which all was mirrored, by what Connect has stored; 0 if it has
            nothing.
        reads_committed: whether the task leaves out records of aborted transactions. If that is not known, each
            lifetime is taken to do what leaves less to explain.
        made_anew: when the topics were made. Syncs that are older, and that do not hold, are of former topics.
        has_older: whether the source was made anew, and the target begins with an older record: one of the former
            topic, of which no sync may be left.
    """
    comparison = _PairComparison(source, target.committed, syncs, mirrored_end, reads_committed, made_anew)
    return comparison.result(has_older=has_older)


class _PairComparison:
    def __init__(
        self,
        source: SummedLog,
        target: SummedView,
        syncs: Sequence[Sync],
        mirrored_end: int,
        reads_committed: bool | None,
        made_anew: MadeAnew,
    ) -> None:
        self._source, self._committed, self._target = source.all, source.committed, target
        self._as_read = self._committed if reads_committed else self._source
        self._mirrored_end, self._reads_committed = mirrored_end, reads_committed
        self._places: list[PlaceRun] = []
        self._equal = self._unverifiable = 0
        self._differences: list[MirrorDifference] = []
        left = self._without_former(Syncs.of(syncs), made_anew)
        self._lifetimes, bad = find_lifetimes(left, self._source.end_offset, self._target.end_offset, self._holds)
        self._differences += bad
        self._wrong = len(bad)
        self._counts = PairCounts()
        self._has_earlier = False  # Whether records of former lifetimes are gone.
        self._is_compared = False  # Until a lifetime has a sync of which neither log has lost the record.
        self._frontier = self._source.start_offset  # After the last record that a lifetime has mirrored.

    def result(self, *, has_older: bool) -> PairResult:
        valid = self._with_begins(self._of_these_topics())
        self._differences += self._passed_over(Syncs.joined(each.syncs for each in valid))
        valid = self._from_first_here(valid)
        if has_older and valid and not any(each.kind is MirrorFault.SOURCE_RECREATED for each in self._differences):
            self._differences += self._before_source(valid[0])
        for number, lifetime in enumerate(valid):
            is_last = number == len(valid) - 1
            end = self._target.end_offset if is_last else valid[number + 1].start
            self._compare_lifetime(lifetime, end, is_first=number == 0, is_last=is_last)
        lost = sum(each.count for each in self._differences if each.kind is MirrorFault.LOST)
        self._differences = [each for each in self._differences if not self._was_shortened(each, lost)]
        rest = self._source.count(OffsetRange(self._frontier, self._source.end_offset))
        is_lag = self._is_compared or any(each.kind is MirrorFault.SOURCE_RECREATED for each in self._differences)
        self._counts += PairCounts(lag=rest) if is_lag else PairCounts(unverifiable=rest)
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
        """Return lifetimes, where those that have mirrored records before their first sync that is here have a begin.

        The record of an earlier sync may be gone, since retention has removed it on one side.
        """
        found: list[Lifetime] = []
        for number, each in enumerate(lifetimes):
            end = min([self._target.end_offset, *(later.first.downstream for later in lifetimes[number + 1 :][:1])])
            here = self._named(each)
            ends = (here[0].upstream, here[0].downstream) if here else (self._source.end_offset, end)
            gone = each.syncs.where(~self._are_here(each.syncs))
            before = self._named(found[-1]) if found else []
            if gone and (before or not here):
                each = attrs.evolve(each, begin=self._starting_place(gone[-1], ends))
            elif before:
                each = attrs.evolve(each, begin=self._begin(self._as_read, before[-1], here[0]))
            elif not found and not gone:
                *former, each = self._with_former(each)
                found += former
            found.append(each)
        return found

    def _named(self, lifetime: Lifetime) -> Syncs:
        """Return where a lifetime begins, if that is known, and its syncs whose records are there on both sides."""
        return lifetime.syncs.where(self._are_here(lifetime.syncs)).after(lifetime.begin)

    def _from_first_here(self, lifetimes: Sequence[Lifetime]) -> list[Lifetime]:
        """Return lifetimes from the first one on of which neither log has lost all records."""
        left = list(itertools.dropwhile(lambda each: not self._named(each), lifetimes))
        self._has_earlier = len(left) < len(lifetimes)
        self._unverifiable += sum(len(each.syncs) for each in lifetimes[: len(lifetimes) - len(left)])
        return left

    def _starting_place(self, gone: Sync, ends: tuple[int, int]) -> Sync | None:
        """Return where a task went on after a sync of which a record is gone."""
        view = self._committed if self._reads_committed is None else self._as_read
        found = starting_place(view, self._target, (gone.upstream, gone.downstream), ends)
        return None if found is None else attrs.evolve(gone, upstream=found[0], downstream=found[1])

    def _with_former(self, lifetime: Lifetime) -> Iterator[Lifetime]:
        """Yield the first lifetime, after those of which no sync is left if they explain all that is before it."""
        first = lifetime.first
        views = [self._as_read, *[self._committed] * (self._reads_committed is None and self._committed.is_committed)]
        for view in views if self._holds(first) else ():
            former = self._former_start(view, first)
            if former is None:
                continue
            begin = self._begin(view, former, first)
            place, end = (former.upstream, former.downstream), first if begin is None else begin
            found = copied_runs(view, self._target, place, end.downstream)
            if found is not None:
                for upstream, downstream in found:
                    yield Lifetime(Syncs.of([]), begin=attrs.evolve(former, upstream=upstream, downstream=downstream))
                lifetime = attrs.evolve(lifetime, begin=begin)
                break
        yield lifetime

    def _former_start(self, source: SummedView, first: Sync) -> Sync | None:
        """Return where a former task began, as far as both logs have it; None if the first sync needs none."""
        target = self._target
        ours, theirs = source.rank(first.upstream), target.rank(first.downstream)
        count = min(ours, theirs)
        is_whole = source.start_offset == target.start_offset == 0
        is_needed = theirs > ours and source.start_offset == 0
        if not is_needed and (is_whole or source.equals(ours - count, target, theirs - count, count)):
            return None
        if is_whole:
            places = source.offset_after(OffsetRange(0, first.upstream), 0), target.offset_at(0)
            return attrs.evolve(first, upstream=places[0], downstream=places[1])
        for mine, other, end in ((source, target, first.downstream), (target, source, source.end_offset)):
            if not mine.start_offset:  # It may have no record at all: all are of aborted transactions.
                continue
            here = mine.offset_at(0)
            digests = mine.first_rows(OffsetRange(here, mine.end_offset), 1).digests
            (there,) = other.first_offsets(list(digests), end)
            if there is not None:
                upstream, downstream = (here, there) if mine is source else (there, here)
                return attrs.evolve(first, upstream=upstream, downstream=downstream)
        return None

    def _begin(self, source: SummedView, last: Sync, first: Sync) -> Sync | None:
        """Return where a lifetime began, if that was before its first sync; by the last sync before it."""
        target = self._target
        at, other, end = source.rank(last.upstream), target.rank(last.downstream), target.rank(first.downstream)
        most = min(source.rank(source.end_offset) - at, end - other)
        rest = end - other - equal_count(source, at, target, other, most)
        own_end = source.rank(first.upstream)
        tail = equal_tail_count(source, own_end, target, end, min(rest, own_end))
        if not tail:
            return None
        return attrs.evolve(first, upstream=source.offset_at(own_end - tail), downstream=target.offset_at(end - tail))

    def _was_shortened(self, each: MirrorDifference, lost: int) -> bool:
        """Whether a sync is past the target's end because records before it were taken out since."""
        is_past = each.kind is MirrorFault.BAD_SYNC and each.source.end <= self._source.end_offset
        return is_past and self._target.end_offset <= each.target.start < self._target.end_offset + lost

    # Topics that were made anew

    def _without_former(self, syncs: Syncs, made_anew: MadeAnew) -> Syncs:
        """Return the syncs that are not of former topics, and tell of the others."""
        kinds = MirrorFault.SOURCE_RECREATED, MirrorFault.TARGET_SHRUNK
        for kind, since_ms in zip(kinds, attrs.astuple(made_anew), strict=True):
            older = np.flatnonzero((syncs.timestamps_ms >= 0) & (syncs.timestamps_ms < (since_ms or 0)))
            gone = older[self._false_ones(syncs.where(older))]
            former = syncs.where(gone)
            if former:
                source = OffsetRange(int(former.upstream.min()), int(former.upstream.max()) + 1)
                target = OffsetRange(int(former.downstream.min()), int(former.downstream.max()) + 1)
                self._differences.append(MirrorDifference(kind, source, target, target.offset_count))
                self._unverifiable += len(former)
                syncs = syncs.where(np.delete(np.arange(len(syncs)), gone))
        return syncs

    def _false_ones(self, syncs: Syncs) -> Int64s:
        """Return the indices of the syncs that do not hold, of some in the order of their topic.

        Sums show at once where records are equal from one sync to the next. Each other one costs a read of both logs:
        if none of a sample holds, they are of a former topic, but for the last ones, which a clock made look older.
        """
        are_true = np.zeros(len(syncs), bool)
        if len(syncs) > 1:
            are_equal, _ = self._source.equal_windows(syncs.upstream, self._target, syncs.downstream)
            are_true[:-1] = are_equal & syncs.do_rise
        doubted = np.flatnonzero(~are_true)
        step = -(-len(doubted) // _SAMPLE) or 1
        if any(map(self._holds, syncs.where(doubted[::step]))):
            return doubted[[not self._holds(each) for each in syncs.where(doubted)]]
        while len(doubted) and self._holds(syncs[doubted[-1]]):
            doubted = doubted[:-1]
        return doubted

    def _before_source(self, first: Lifetime) -> Iterator[MirrorDifference]:
        """Yield what a target has of a former source, by how many more records than the source it has before a sync."""
        sync = next((each for each in first.syncs if not self._is_here(each) or self._holds(each)), None)
        if sync is None or (first.begin is not None and self._is_here(sync)):
            return
        source, target = self._source, self._target
        count = target.rank(sync.downstream) - source.rank(sync.upstream) - min(sync.upstream, source.start_offset)
        if count > 0:
            former = OffsetRange(target.start_offset, target.offset_after(OffsetRange(0, sync.downstream), count))
            nowhere = OffsetRange(source.start_offset, source.start_offset)
            yield MirrorDifference(MirrorFault.SOURCE_RECREATED, nowhere, former, count)

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
            syncs = lifetime.syncs.where(lifetime.syncs.downstream < start)
            self._unverifiable += len(lifetime.syncs) - len(syncs)
            if syncs:
                left.append(attrs.evolve(lifetime, syncs=syncs))
        return left

    def _is_recreated(self, kept: Sequence[Lifetime], each: Lifetime) -> bool:
        """Whether a topic was made anew at the source: no former sync holds for it, but those of the lifetime do."""
        before = Syncs.joined(lifetime.syncs for lifetime in kept)
        former, later = (syncs.where(self._are_here(syncs)) for syncs in (before, each.syncs))
        if not former or not later:
            return bool(later) and not each.is_restart and not former
        step, later_step = -(-len(former) // _SAMPLE), -(-len(later) // _SAMPLE)
        return not any(map(self._is_near, former[::step])) and any(map(self._holds, later[::later_step]))

    def _is_near(self, sync: Sync) -> bool:
        """Whether the records of a sync, or those beside them, are equal: one that has changed shows nothing."""
        ranks = self._source.rank(sync.upstream), self._target.rank(sync.downstream)
        ends = self._source.rank(self._source.end_offset), self._target.rank(self._target.end_offset)
        beside = [(ranks[0] + step, ranks[1] + step) for step in (-1, 0, 1)]
        inside = [each for each in beside if min(each) >= 0 and each[0] < ends[0] and each[1] < ends[1]]
        return any(self._source.equals(rank, self._target, other, 1) for rank, other in inside)

    def _are_here(self, syncs: Syncs) -> Bools:
        """Of each sync, whether neither log has lost its record to retention."""
        is_here = syncs.upstream >= self._source.start_offset
        return np.asarray(is_here & (syncs.downstream >= self._target.start_offset))

    def _is_here(self, sync: Sync) -> bool:
        return bool(self._are_here(Syncs.of([sync]))[0])

    def _holds(self, sync: Sync) -> bool:
        if sync.upstream >= self._source.end_offset or sync.downstream >= self._target.end_offset:
            return False
        bounds = (np.array([at, at + 1], np.int64) for at in (sync.upstream, sync.downstream))
        are_equal, _ = self._source.equal_windows(next(bounds), self._target, next(bounds))
        return bool(are_equal[0])

    # One lifetime

    def _compare_lifetime(self, lifetime: Lifetime, target_end: int, *, is_first: bool, is_last: bool) -> None:
        syncs = lifetime.syncs.where(self._are_here(lifetime.syncs))
        self._unverifiable += len(lifetime.syncs) - len(syncs)
        named = self._named(lifetime)
        if not named:
            return
        self._is_compared = True
        has_former = any(each.kind is MirrorFault.SOURCE_RECREATED for each in self._differences)
        mirrored_end = self._mirrored_end if is_last else 0
        has_earlier = len(syncs) < len(lifetime.syncs)
        has_former |= is_first and self._has_earlier and not has_earlier
        has_earlier |= self._has_earlier
        bounds = CourseBounds(target_end, is_first, mirrored_end, has_former, has_earlier)
        view = self._as_read
        course = Course(view, self._target, named, bounds)
        result = course.result()
        if result.differences and self._committed.is_committed and self._reads_committed is None:
            other = Course(self._committed, self._target, named, bounds)
            committed = other.result()
            if _faults(committed) < _faults(result):
                view, course, result = self._committed, other, committed
        begins_anew = any(each.kind is MirrorFault.TARGET_SHRUNK for each in self._differences)
        for each in result.differences:
            if each.kind is not MirrorFault.LATE_START:
                self._differences.append(each)
            elif not begins_anew:  # What was mirrored before shows that the mirror began earlier.
                self._differences.append(attrs.evolve(each, kind=MirrorFault.LOST) if has_earlier else each)
        self._places += result.places
        self._wrong += result.wrong
        self._unverifiable += result.unverified
        self._equal += len(syncs) - result.wrong - result.unverified
        self._count(view, course, result, is_first=is_first, is_restart=lifetime.is_restart)

    def _passed_over(self, syncs: Syncs) -> Iterator[MirrorDifference]:
        """Yield what tasks have passed over, of records that the source does not have any more.

        Both syncs beside it are known, and the first one is below the log start. Control records are passed over, too:
        no more of them than records are mirrored, as each is of a transaction that has one. If tasks read committed,
        aborted records may explain more.
        """
        mirrored = np.diff(syncs.downstream)
        passed = np.diff(syncs.upstream) - mirrored
        is_told = (syncs.upstream[:-1] < self._source.start_offset) & (passed > mirrored)
        for after, count in zip(syncs[1:].where(is_told), passed[is_told].tolist(), strict=True):
            source = OffsetRange(after.upstream - count, after.upstream)
            target = OffsetRange(after.downstream, after.downstream)
            yield MirrorDifference(MirrorFault.PASSED_OVER, source, target, count)

    def _count(
        self, view: SummedView, course: Course, result: CourseResult, *, is_first: bool, is_restart: bool
    ) -> None:
        """Count what a lifetime has mirrored, and tell what it has mirrored again, or has skipped."""
        start = result.source.start
        left_out = OffsetRange(self._frontier, result.source.end)
        if is_first:
            self._counts += PairCounts(unverifiable=result.before)
            self._frontier = start
        again = OffsetRange(start, min(self._frontier, result.source.end))
        copies, counted = view.known_count(again), view.count(again)
        if copies:
            target = OffsetRange(result.target.start, course.target_offset_after(copies))
            copied = MirrorDifference(MirrorFault.COPIED_AGAIN, again, target, copies, by_one_task=not is_restart)
            self._differences.append(copied)
        skipped = OffsetRange(self._frontier, start)
        due = self._committed if self._reads_committed is None else view  # Aborted ones may have been left out.
        lost = due.known_count(skipped)
        restarted = list(self._at_restart(due, skipped, result.target.start))
        self._differences += restarted
        aborted = self._source.count(left_out) - view.count(left_out) + view.count(skipped) - due.count(skipped)
        counted_known = min(copies, result.compared)
        compared = result.compared - counted_known + lost
        unverifiable = result.unverifiable - (counted - counted_known) + due.count(skipped) - lost
        self._counts += PairCounts(compared, unverifiable, aborted=aborted)
        self._frontier = max(self._frontier, result.source.end)

    def _at_restart(self, view: SummedView, skipped: OffsetRange, start: int) -> Iterator[MirrorDifference]:
        """Yield what a restart has skipped. What the target has instead has changed, and was not written by others.

        Args:
            view: the source as the task reads it.
            skipped: its offsets of which no task has mirrored a record.
            start: the offset in the target at which the task has gone on.
        """
        lost = view.known_count(skipped)
        ends = [each for each in self._differences if each.kind is MirrorFault.WRITTEN_TO and each.target.end == start]
        for written in (each for each in ends if lost and each.is_exact):
            count = min(lost, written.count)
            source = OffsetRange(skipped.start, view.offset_after(skipped, count))
            target = OffsetRange(written.target.start, self._target.offset_after(written.target, count))
            self._differences = [
                each
                for each in self._differences
                if each is not written
                and not (each.kind is MirrorFault.WRONG_ANCHOR and target.start <= each.target.start < target.end)
            ]
            yield MirrorDifference(MirrorFault.CHANGED, source, target, count)
            if count < written.count:
                place = OffsetRange(source.end, source.end)
                yield attrs.evolve(
                    written, source=place, target=OffsetRange(target.end, start), count=written.count - count
                )
            skipped, lost = OffsetRange(source.end, skipped.end), lost - count
        if lost:
            yield MirrorDifference(MirrorFault.LOST, skipped, OffsetRange(start, start), lost)


def _faults(result: CourseResult) -> int:
    """Return how much a result has to explain."""
    return sum(each.count for each in result.differences)
