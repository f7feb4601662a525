# SPDX-License-Identifier: Apache-2.0
"""Tells the records of a stretch of two logs apart, where something differs."""

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import attrs

from raftlog.tools.mirrors.comparing.alignment import Alignment, align
from raftlog.tools.mirrors.comparing.differences import MirrorDifference, MirrorFault, OffsetRange
from raftlog.tools.mirrors.comparing.edits import equal_prefix
from raftlog.tools.mirrors.comparing.lifetimes import Sync
from raftlog.tools.mirrors.comparing.rows import NOWHERE, UNKNOWN, DigestRows, Int64s, Places, numbered

_NEVER: Final = 1 << 62


@attrs.frozen
class Ends:
    """What may be left over where a stretch begins or ends.

    Attributes:
        is_source_start_free: whether the source may have records before the first one that was mirrored.
        is_target_start_free: whether the target may have records of which the source has lost the same ones, before.
        has_one_start: whether at a free start only one of both logs may have more: all that both have was mirrored.
        mirrored_end: the source may have records at its end that were not mirrored, from this offset on. Not both.
    """

    is_source_start_free: bool = False
    is_target_start_free: bool = False
    has_one_start: bool = False
    mirrored_end: int = _NEVER

    @property
    def is_source_end_free(self) -> bool:
        """Whether the source may have records after the last one that was mirrored."""
        return self.mirrored_end != _NEVER


STRICT: Final = Ends()
"""Nothing may be left over."""


@attrs.frozen
class StretchResult:
    """What was found in a stretch.

    Attributes:
        differences: by place.
        wrong: how many syncs do not name the same record on both sides.
        compared: how many records of the source were compared with one of the target, or found to be lost.
        unverifiable: how many were not, as one of the two cannot be read.
        left_over: how many are left over at the free start or end.
        places: the offsets in the source, and in the target, of the records that are the same.
        unverified: how many syncs name a record that cannot be read.
    """

    differences: tuple[MirrorDifference, ...]
    wrong: int
    compared: int
    unverifiable: int
    left_over: int
    places: Places = NOWHERE
    unverified: int = 0


@attrs.frozen(eq=False)
class MirrorStretch:
    """A stretch of two logs.

    Attributes:
        source: its rows of the source.
        target: its rows of the target.
        source_place: the offsets of the source that it covers.
        target_place: the offsets of the target.
        syncs: that name a place within, by ascending offsets.
        ends: what may be left over.
        shift: how many more records the target has before it, since the last sync that holds.
    """

    source: DigestRows
    target: DigestRows
    source_place: OffsetRange
    target_place: OffsetRange
    syncs: Sequence[Sync] = ()
    ends: Ends = STRICT
    shift: int = 0

    def source_offset(self, at: int) -> int:
        """Return the offset of a record of the source by its index; after the last one, where the stretch ends."""
        return int(self.source.offsets[at]) if at < len(self.source) else self.source_place.end

    def target_offset(self, at: int) -> int:
        """Return the offset of a record of the target by its index; after the last one, where the stretch ends."""
        return int(self.target.offsets[at]) if at < len(self.target) else self.target_place.end

    def named(self, sync: Sync) -> tuple[int, int]:
        """Return the indices of what a sync names; -1 for an offset that has no record."""
        return _index_of(self.source, sync.upstream), _index_of(self.target, sync.downstream)


def tell_apart(stretch: MirrorStretch) -> StretchResult:
    """Return what differs in a stretch."""
    left, right = numbered(stretch.source, stretch.target)
    named = [places for each in stretch.syncs if min(places := stretch.named(each)) >= 0]
    ends = stretch.ends
    found = align(
        left,
        right,
        named,
        is_start_free=ends.is_source_start_free,
        is_end_free=ends.is_source_end_free,
        due=int(stretch.source.offsets.searchsorted(ends.mirrored_end)),
    )
    if found is None:
        return tell_coarsely(stretch)
    fixed = frozenset(at for at, other in named if found.partners[at] == other)
    told = _Telling(stretch, left, right, found, fixed)
    differences = list(_joined(sorted(told.differences(), key=lambda each: (each.source, each.target))))
    wrong = [each for each in stretch.syncs if not _is_true(stretch.named(each), found)]
    differences += [
        MirrorDifference(MirrorFault.WRONG_ANCHOR, *each.places, sync=each.offset)
        for each in wrong
        if not any(_explains(other, each) for other in differences) and not _was_moved(stretch, each, found)
    ]
    unknown = _unverifiable(stretch, found, told.start, told.first_left_over)
    return StretchResult(
        tuple(sorted(differences, key=lambda each: (each.source, each.target))),
        len(wrong),
        told.first_left_over - told.start - unknown,
        unknown,
        len(left) - told.first_left_over + told.start,
        _kept_places(stretch, found),
        sum(_is_unknown(stretch, each) for each in frozenset(stretch.syncs).difference(wrong)),
    )


def _joined(differences: Iterable[MirrorDifference]) -> Iterator[MirrorDifference]:
    """Yield differences by place, where adjacent losses are one: if records repeat, one loss may look like two."""
    last = None
    for each in differences:
        if last is not None and last.kind is each.kind is MirrorFault.LOST and _are_adjacent(last, each):
            source = OffsetRange(last.source.start, each.source.end)
            is_open = last.is_open or each.is_open
            last = attrs.evolve(each, source=source, count=last.count + each.count, is_open=is_open)
            continue
        if last is not None:
            yield last
        last = each
    if last is not None:
        yield last


def _are_adjacent(before: MirrorDifference, after: MirrorDifference) -> bool:
    return before.source.end == after.source.start and before.target.end == after.target.start


def _kept_places(stretch: MirrorStretch, found: Alignment) -> Places:
    is_kept = found.partners >= 0
    return stretch.source.offsets[is_kept], stretch.target.offsets[found.partners[is_kept]]


def tell_coarsely(stretch: MirrorStretch, more: int = 0) -> StretchResult:
    """Return one difference, as there are too many to tell.

    Args:
        stretch: where they are.
        more: how many more records the target has there.
    """
    size, other = len(stretch.source), len(stretch.target)
    if stretch.ends.is_source_end_free:
        start = equal_prefix(*numbered(stretch.source, stretch.target))
        source = OffsetRange(*[stretch.source_offset(start)] * 2)
        target = OffsetRange(stretch.target_offset(start), stretch.target_place.end)
        whole = MirrorDifference(MirrorFault.WRITTEN_TO, source, target, other - start + more, is_exact=False)
        return StretchResult((whole,), 0, start, 0, size - start)
    if size != other and not stretch.ends.is_source_start_free:
        kind, count = MirrorFault.LOST if size > other else MirrorFault.FOREIGN, abs(size - other)
    else:
        kind, count = MirrorFault.CHANGED, 1
    whole = MirrorDifference(kind, stretch.source_place, stretch.target_place, count, is_exact=False)
    return StretchResult((whole,), 0, 0, size, 0)


def _index_of(rows: DigestRows, offset: int) -> int:
    at = int(rows.offsets.searchsorted(offset))
    return at if at < len(rows) and rows.offsets[at] == offset else -1


def _is_true(named: tuple[int, int], found: Alignment) -> bool:
    """Whether a sync names one record, or none on either side: that cannot be verified."""
    at, other = named
    return at == other == -1 or (at >= 0 and found.partners[at] == other >= 0)


def _is_unknown(stretch: MirrorStretch, sync: Sync) -> bool:
    """Whether a record of a sync cannot be read, or is not there."""
    at, other = stretch.named(sync)
    flags = [
        rows.flags[each] if each >= 0 else UNKNOWN for rows, each in ((stretch.source, at), (stretch.target, other))
    ]
    return any(each & UNKNOWN for each in flags)


def _explains(difference: MirrorDifference, sync: Sync) -> bool:
    """Whether a difference is why the two records of a sync are not the same: one was changed, moved, or is lost."""
    is_source = difference.source.start <= sync.upstream < difference.source.end
    is_target = difference.target.start <= sync.downstream < difference.target.end
    if difference.kind is MirrorFault.CHANGED:
        return is_source and is_target
    if difference.kind is MirrorFault.LOST:
        return is_source
    return difference.kind is MirrorFault.REORDERED and (is_source or is_target)


def _was_moved(stretch: MirrorStretch, sync: Sync, found: Alignment) -> bool:
    """Whether a sync names the offset that its record had before others were put into the target, or taken out."""
    at, _ = stretch.named(sync)
    if at < 0 or found.partners[at] < 0:
        return False
    other = int(found.partners[at])
    moved = other - at + found.start + stretch.shift
    return moved != 0 and stretch.target_offset(other) - sync.downstream == moved


def _unverifiable(stretch: MirrorStretch, found: Alignment, start: int, end: int) -> int:
    """Return how many records of the source are unknown, or have an unknown one of the target in their place."""
    is_unknown = stretch.source.flags & UNKNOWN != 0
    is_kept = found.partners >= 0
    is_unknown[is_kept] |= stretch.target.flags[found.partners[is_kept]] & UNKNOWN != 0
    return int(is_unknown[start:end].sum())


class _Telling:
    """Names what the edits of an alignment mean.

    Attributes:
        start: index of the first record of the source that is not left over at the free start.
        first_left_over: index of the first record of the source that is left over at the free end.
    """

    def __init__(
        self, stretch: MirrorStretch, left: Int64s, right: Int64s, found: Alignment, fixed: Collection[int]
    ) -> None:
        self._stretch, self._left, self._right, self._found, self._fixed = stretch, left, right, found, fixed
        self.start, self.first_left_over = found.start, found.end

    def differences(self) -> list[MirrorDifference]:
        """Return them all, in no order."""
        gone = [self._known(self._left, each.left_start, each.left_end) for each in self._found.edits]
        come = [self._known(self._right, each.right_start, each.right_end) for each in self._found.edits]
        is_end_free = self._stretch.ends.is_source_end_free
        if is_end_free:
            if not self._found.edits or self._found.edits[-1].right_end < len(self._right):
                gone.append([])
                come.append([])
            end = int(self._stretch.source.offsets.searchsorted(self._stretch.ends.mirrored_end))
            self.first_left_over = max(self._found.end, end)
            gone[-1] += self._known(self._left, self._found.end, self.first_left_over)
        if come and self._found.edits[:1] and self._found.edits[0].right_start == 0:
            self._pair_at_start(gone, come)
        moved = self._moved(itertools.chain.from_iterable(gone), itertools.chain.from_iterable(come))
        told = [self._difference(MirrorFault.REORDERED, at, other) for at, other in moved.items()]
        is_moved = frozenset(moved.values())
        for number, (ours, theirs) in enumerate(zip(gone, come, strict=True)):
            left = [at for at in ours if at not in moved]
            right = [at for at in theirs if at not in is_moved]
            if is_end_free and number == len(gone) - 1 and len(right) > len(left):
                told.append(self._written_to(right[len(left)], len(right) - len(left)))
                right = right[: len(left)]
            told += self._replaced(left, right)
        return told

    def _pair_at_start(self, gone: list[list[int]], come: list[list[int]]) -> None:
        """Take what one log alone may have at a free start from what is told."""
        ends = self._stretch.ends
        more = max(0, len(come[0]) - len(gone[0]))
        if ends.is_target_start_free:
            come[0] = come[0][more:]
        if ends.has_one_start:
            self.start = max(0, self._found.start - more)
            gone[0] = self._known(self._left, self.start, self._found.start) + gone[0]

    @staticmethod
    def _known(numbers: Int64s, first: int, last: int) -> list[int]:
        return [at for at in range(first, last) if numbers[at] >= 0]

    def _moved(self, gone: Iterable[int], come: Iterable[int]) -> dict[int, int]:
        """Return which records have another place in the target, by index: of the source, then of the target."""
        places: dict[int, list[int]] = defaultdict(list)
        for other in reversed(list(come)):
            places[int(self._right[other])].append(other)
        return {at: places[int(self._left[at])].pop() for at in gone if places[int(self._left[at])]}

    def _written_to(self, first: int, count: int) -> MirrorDifference:
        """Return that the target has other records at its end."""
        source = OffsetRange(*[self._stretch.source_offset(self.first_left_over)] * 2)
        target = OffsetRange(self._stretch.target_offset(first), self._stretch.target_place.end)
        return MirrorDifference(MirrorFault.WRITTEN_TO, source, target, count)

    def _replaced(self, gone: Sequence[int], come: Sequence[int]) -> Iterator[MirrorDifference]:
        """Yield what is told of records that go and come at one place: one by one they are changed."""
        for at, other in zip(gone, come, strict=False):
            yield self._difference(MirrorFault.CHANGED, at, other)
        for first, last in _blocks(gone[len(come) :]):
            yield self._lost(first, last)
        for first, last in _blocks(come[len(gone) :]):
            yield self._too_many(first, last)

    def _difference(self, kind: MirrorFault, at: int, other: int) -> MirrorDifference:
        source, target = self._stretch.source_offset(at), self._stretch.target_offset(other)
        return MirrorDifference(kind, OffsetRange(source, source + 1), OffsetRange(target, target + 1))

    # Runs of equal records

    def _lost(self, first: int, last: int) -> MirrorDifference:
        """Return the loss of the records from one index (inclusive) to another (exclusive), or of equal ones beside."""
        start, end = first, last
        while start > 0 and start - 1 not in self._fixed and self._is_kept(start - 1):
            if self._left[start - 1] != self._left[start - 1 + last - first]:
                break
            start -= 1
        while end < self._found.end and end not in self._fixed and self._is_kept(end):
            if self._left[end] != self._left[end - last + first]:
                break
            end += 1
        source = OffsetRange(self._stretch.source_offset(start), self._stretch.source_offset(end - 1) + 1)
        target = OffsetRange(*(self._stretch.target_offset(self._place_of(at)) for at in (start, end)))
        is_open = (start, end) != (first, last)
        return MirrorDifference(MirrorFault.LOST, source, target, last - first, is_open=is_open)

    def _is_kept(self, at: int) -> bool:
        return bool(self._found.partners[at] >= 0) and bool(self._left[at] >= 0)

    def _place_of(self, at: int) -> int:
        """Return the index in the target of the first kept record from an index in the source on."""
        later = self._found.partners[at : self._found.end]
        kept = later[later >= 0]
        return int(kept[0]) if len(kept) else len(self._right)

    def _too_many(self, first: int, last: int) -> MirrorDifference:
        """Return that the target has more: from one index (inclusive) to another (exclusive), or equal ones beside."""
        partners = self._found.partners
        sources = {int(other): at for at, other in enumerate(partners.tolist()) if other >= 0}
        start, end = first, last
        size = last - first
        while start - 1 in sources and sources[start - 1] not in self._fixed and self._right[start - 1] >= 0:
            if self._right[start - 1] != self._right[start - 1 + size]:
                break
            start -= 1
        while end in sources and sources[end] not in self._fixed and self._right[end] >= 0:
            if self._right[end] != self._right[end - size]:
                break
            end += 1
        before = max((at for other, at in sources.items() if other < start), default=self._found.start - 1)
        after = min((at for other, at in sources.items() if other >= end), default=self._found.end)
        source = OffsetRange(self._stretch.source_offset(before + 1), self._stretch.source_offset(after))
        target = OffsetRange(self._stretch.target_offset(start), self._stretch.target_offset(end - 1) + 1)
        is_copy = bool((self._left == self._right[first]).any())
        return MirrorDifference(MirrorFault.DUPLICATE if is_copy else MirrorFault.FOREIGN, source, target, size)


def _blocks(indices: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield adjacent indices as first (inclusive) and last (exclusive)."""
    start = 0
    for at in range(1, len(indices) + 1):
        if at == len(indices) or indices[at] != indices[at - 1] + 1:
            yield indices[start], indices[at - 1] + 1
            start = at
