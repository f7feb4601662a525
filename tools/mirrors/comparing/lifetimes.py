# SPDX-License-Identifier: Apache-2.0
"""Offset syncs, and the lifetimes of the task that wrote them.

A task of MirrorMaker writes its syncs with one idempotent producer: another producer id is another lifetime. Within one
both offsets rise. Where both fall for good, or one of them, a topic was made anew, or cut, while the task went on: that
begins another part, too. A single sync that does not fit between its neighbours is bad, and nothing else.

Source: MirrorSourceTask, OffsetSyncWriter.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Self, overload

import attrs
import numpy as np

from raftlog.tools.mirrors.comparing.differences import MirrorDifference, MirrorFault, OffsetRange
from raftlog.tools.mirrors.comparing.rows import Bools, Int64s


@attrs.frozen
class Sync:
    """One offset sync of a partition.

    Attributes:
        upstream: offset of a record of the source.
        downstream: offset of the same record of the target.
        producer_id: of the task that wrote it.
        offset: of the sync, in its own topic.
        timestamp_ms: when it was written, in ms since the Unix epoch; -1 if that is not known.
    """

    upstream: int
    downstream: int
    producer_id: int
    offset: int
    timestamp_ms: int = -1

    @property
    def places(self) -> tuple[OffsetRange, OffsetRange]:
        """Where the record is, in the source and in the target."""
        return OffsetRange(self.upstream, self.upstream + 1), OffsetRange(self.downstream, self.downstream + 1)


@attrs.frozen(eq=False)
class Syncs(Sequence[Sync]):
    """Offset syncs of a partition: the attributes of ``Sync`` as columns, since there may be very many."""

    upstream: Int64s
    downstream: Int64s
    producer_ids: Int64s
    offsets: Int64s
    timestamps_ms: Int64s

    @classmethod
    def of(cls, syncs: Iterable[Sync]) -> "Syncs":
        """Return the columns of some syncs."""
        if isinstance(syncs, Syncs):
            return syncs
        return cls(*np.array([attrs.astuple(each) for each in syncs], np.int64).reshape(-1, len(attrs.fields(cls))).T)

    @classmethod
    def joined(cls, parts: Iterable["Syncs"]) -> "Syncs":
        """Return the syncs of several parts, in their order."""
        columns = zip(*(each.columns for each in [Syncs.of([]), *parts]), strict=True)
        return cls(*map(np.concatenate, columns))

    def __len__(self) -> int:
        return len(self.offsets)

    @overload
    def __getitem__(self, at: int) -> Sync: ...

    @overload
    def __getitem__(self, at: slice) -> Self: ...

    def __getitem__(self, at: int | slice) -> Sync | Self:
        if isinstance(at, slice):
            return self.where(at)
        return Sync(*(int(column[at]) for column in self.columns))

    def where(self, wanted: Bools | Int64s | slice) -> Self:
        """Return some of them: those for which a column says so, or which it lists."""
        return type(self)(*(column[wanted] for column in self.columns))

    def after(self, first: Sync | None) -> "Syncs":
        """Return them after another one, if there is one."""
        return self if first is None else Syncs.joined([Syncs.of([first]), self])

    @property
    def do_rise(self) -> Bools:
        """Of each but the first, whether both of its offsets are above those of the one before it."""
        rises = [column[1:] > column[:-1] for column in (self.upstream, self.downstream)]
        return np.asarray(rises[0] & rises[1])

    @property
    def columns(self) -> tuple[Int64s, ...]:
        """All of them, in the order of the attributes."""
        return self.upstream, self.downstream, self.producer_ids, self.offsets, self.timestamps_ms


@attrs.frozen
class Lifetime:
    """What one task has mirrored, while both offsets rose.

    Attributes:
        syncs: the sound ones, by ascending offsets; none only if its begin is known without.
        is_restart: whether another task went on here. Otherwise offsets have fallen while one task went on.
        begin: where it began, if that was before its first sync, which MirrorMaker may leave out.
    """

    syncs: Syncs
    is_restart: bool = True
    begin: Sync | None = None

    @property
    def first(self) -> Sync:
        """The first sync."""
        return self.syncs[0]

    @property
    def last(self) -> Sync:
        """The last sync."""
        return self.syncs[-1]

    @property
    def start(self) -> int:
        """The offset in the target from which on it has mirrored, as far as is known."""
        begin = [] if self.begin is None else [self.begin.downstream]
        return min([*begin, *map(int, self.syncs.downstream[:1])])


def edges_of(syncs: Sequence[Sync], mirrored_end: int = 0) -> tuple[Int64s, Int64s]:
    """Return the offsets at which blocks of a source, and of its target, should end for their comparison."""
    all_syncs = Syncs.of(syncs)
    return np.unique(np.append(all_syncs.upstream, mirrored_end)), np.unique(all_syncs.downstream)


def find_lifetimes(
    syncs: Syncs, source_end: int, target_end: int, holds: Callable[[Sync], bool]
) -> tuple[tuple[Lifetime, ...], tuple[MirrorDifference, ...]]:
    """Return the lifetimes of a partition's syncs, and the syncs that cannot be true.

    Args:
        syncs: of one partition, in the order of their topic.
        source_end: the end of the source, exclusive.
        target_end: the end of the target, exclusive.
        holds: whether the two records that a sync names are equal, for two that cannot both be true.
    """
    lifetimes: list[Lifetime] = []
    is_out = (syncs.upstream < 0) | (syncs.downstream < 0) | (syncs.upstream >= source_end)
    bad = [_bad(each, _out_of_bounds(each, source_end)) for each in syncs.where(is_out)]
    within = _without_past_ones(syncs.where(~is_out), target_end, bad)
    cuts = np.flatnonzero(np.diff(within.producer_ids)) + 1
    for first, last in itertools.pairwise([0, *cuts.tolist(), len(within)]):
        parts, outliers = _rising_parts(within[first:last], holds)
        bad += [_bad(each, "it does not rise with the syncs beside it") for each in outliers]
        lifetimes += [Lifetime(part, number == 0) for number, part in enumerate(parts)]
    return tuple(lifetimes), tuple(sorted(bad, key=lambda each: each.sync))


def _bad(sync: Sync, why: str) -> MirrorDifference:
    return MirrorDifference(MirrorFault.BAD_SYNC, *sync.places, sync=sync.offset, why=why)


def _out_of_bounds(sync: Sync, source_end: int) -> str:
    if sync.upstream < 0 or sync.downstream < 0:
        return "an offset is negative"
    return f"the source ends at offset {source_end} (exclusive)" if sync.upstream >= source_end else ""


def _without_past_ones(syncs: Syncs, target_end: int, bad: list[MirrorDifference]) -> Syncs:
    """Return the syncs but for those past the end of the target, which are bad unless they are of a former target."""
    is_past = syncs.downstream >= target_end
    is_kept = ~is_past
    cuts = np.flatnonzero(np.diff(is_past)) + 1
    for first, last in itertools.pairwise([0, *cuts.tolist(), len(syncs)]):
        if first == last or not is_past[first]:
            continue
        run, before = syncs[first:last], np.flatnonzero(is_kept[:first])[-1:]
        if last < len(syncs) and _is_of_former_target(run, syncs.where(before), syncs[last]):
            is_kept[first:last] = True
        else:
            bad += [_bad(each, f"the target ends at offset {target_end} (exclusive)") for each in run]
    return syncs.where(is_kept)


def _is_of_former_target(run: Syncs, before: Syncs, after: Sync) -> bool:
    """Whether adjacent syncs past the end of the target were true: it was cut, or made anew, before the next sync.

    Several that rise show it, and so does one after which offsets begin again before those that precede it.
    """
    does_rise = bool(run.after(before[0] if before else None).do_rise.all())
    return does_rise and (len(run) > 1 or any(after.downstream <= each.downstream for each in before))


def _rises(before: Sync, after: Sync) -> bool:
    return before.upstream < after.upstream and before.downstream < after.downstream


def _rising_parts(syncs: Syncs, holds: Callable[[Sync], bool]) -> tuple[list[Syncs], list[Sync]]:
    """Divide syncs where offsets fall for good; return the parts, and single syncs that fit into none of them."""
    if syncs.do_rise.all():
        return [syncs] if syncs else [], []
    parts, outliers = _parts_beside_falls(list(syncs), holds)
    return list(map(Syncs.of, parts)), outliers


def _parts_beside_falls(syncs: Sequence[Sync], holds: Callable[[Sync], bool]) -> tuple[list[list[Sync]], list[Sync]]:
    parts: list[list[Sync]] = []
    outliers = []
    for each, follower in itertools.zip_longest(syncs, syncs[1:]):
        if not parts or _rises(parts[-1][-1], each):
            parts = parts or [[]]
            parts[-1].append(each)
            continue
        part = parts[-1]
        is_outlier = follower is None or _rises(part[-1], follower)
        is_better = len(part) == 1 or _rises(part[-2], each)
        is_better = is_better and (follower is None or _rises(each, follower))
        beside = follower or (part[-2] if len(part) > 1 else each)
        is_truer = _doubt(each, beside, holds) < _doubt(part[-1], beside, holds)
        is_start = 0 in (each.upstream, each.downstream) and (follower is None or _rises(each, follower))
        if is_start and holds(each) and not holds(part[-1]):  # Of a topic that was made anew.
            parts.append([each])
        elif is_better and (is_truer or not is_outlier):
            outliers.append(part.pop())
            part.append(each)
        elif is_outlier:
            outliers.append(each)
        else:
            parts.append([each])
    return parts, outliers


def _doubt(sync: Sync, beside: Sync, holds: Callable[[Sync], bool]) -> tuple[bool, int]:
    """Return what makes a sync less likely than another: its records differ, or its offsets are far apart."""
    return not holds(sync), abs(sync.downstream - sync.upstream - beside.downstream + beside.upstream)
