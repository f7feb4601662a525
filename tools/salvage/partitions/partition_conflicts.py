# SPDX-License-Identifier: Apache-2.0
"""Finds where copies of a partition differ, before anything is merged.

One leader writes all records of an epoch. So two copies that have equal bytes at one offset of it have the same before
that. And of two that differ somewhere in an epoch, nobody knows from where on they do: the first difference that is
seen may come after others, in a hole of one of them. A copy that differs from the base in an epoch therefore gives
nothing of it from the end of the last batch on that both have in common before the difference.

Compaction removes records, and changes attributes and compression. It never changes a record's key or value.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final, TypeAlias

import attrs

from raftlog.records.batches.batch import RecordBatch
from raftlog.tools.salvage.merging import Conflict
from raftlog.tools.salvage.partitions.partition_runs import Reader, Seen

_LAST_OFFSET: Final = (1 << 63) - 1

_Pair: TypeAlias = tuple[int, int]
"""Numbers of two copies, the one that is preferred first."""


@attrs.frozen
class Agreement:
    """How far copies agree.

    Attributes:
        limits: the offset from which on nothing of a copy is used, inclusive, by number; of those that have one.
        conflicts: by ascending offset, the first of each two copies.
        open_ranges: of conflicts with the base that nothing settles: offsets, inclusive and exclusive, of which no copy
            is right. Ascending.
    """

    limits: Mapping[int, int]
    conflicts: tuple[Conflict, ...]
    open_ranges: tuple[tuple[int, int], ...]


@attrs.frozen
class _Difference:
    start: int
    end: int
    epoch: int
    limit: int
    """Of the end of what both have in common, and of the start of the epoch in the copy that is not preferred."""
    first_limit: int
    """The same of the copy that is preferred."""


def find_agreement(
    read: Reader, ranks: Sequence[int], start_offset: int, *, compacted_below: int, is_settled: bool
) -> Agreement:
    """Compare copies, of each of which one batch is in memory at a time.

    Args:
        read: reads a copy.
        ranks: numbers of the copies: the base first.
        start_offset: batches that end at or below it are left out.
        compacted_below: below this offset two copies may have different records of one batch; 0 if nowhere.
        is_settled: whether the base is right where copies differ.

    Raises:
        StorageError: a file cannot be read.
    """
    if len(ranks) < 2:
        return Agreement({}, (), ())
    comparing = _Comparing(read, ranks, start_offset, compacted_below=compacted_below)
    comparing.compare()
    return comparing.judged(is_settled=is_settled)


class _Comparing:
    """The batches that come next, and what was seen so far of each two copies."""

    def __init__(self, read: Reader, ranks: Sequence[int], start_offset: int, *, compacted_below: int) -> None:
        self._ranks = ranks
        self._compacted_below = compacted_below
        self._readers = {number: _after(read(number), start_offset) for number in ranks}
        self._heads: dict[int, Seen] = {}
        self._epochs: dict[int, tuple[int, int]] = {}
        self._common: dict[_Pair, int] = {}
        self._differences: dict[_Pair, _Difference] = {}

    def compare(self) -> None:
        """Compare each two batches that overlap, once: when the one that ends first is passed."""
        for number in self._ranks:
            self._advance(number)
        while len(self._heads) > 1:
            ending = min(self._heads, key=lambda number: self._heads[number].end)
            end = self._heads[ending].end
            for other, head in self._heads.items():
                if other != ending and head.start < end:
                    self._compare_two(ending, other)
            self._advance(ending)

    def _advance(self, number: int) -> None:
        found = next(self._readers[number], None)
        if found is None:
            self._heads.pop(number, None)
            return
        self._heads[number] = found
        if self._epochs.get(number, (-1, 0))[0] != found.epoch:
            self._epochs[number] = found.epoch, found.start

    def _compare_two(self, one: int, other: int) -> None:
        pair = (one, other) if self._ranks.index(one) < self._ranks.index(other) else (other, one)
        first, second = (self._heads[number] for number in pair)
        if first.batch.buffer == second.batch.buffer:
            self._common[pair] = first.end
        elif first.start >= self._compacted_below or not _are_one_batch(first, second):
            self._differ(pair, first, second)

    def _differ(self, pair: _Pair, first: Seen, second: Seen) -> None:
        if pair in self._differences:
            return
        common = self._common.get(pair, 0)
        limits = [max(common, self._epochs[number][1]) for number in pair]
        start, end = min(first.start, second.start), max(first.end, second.end)
        self._differences[pair] = _Difference(start, end, first.epoch, limits[1], limits[0])

    def judged(self, *, is_settled: bool) -> Agreement:
        base = self._ranks[0]
        limits: dict[int, int] = {}
        conflicts: list[Conflict] = []
        open_ranges: list[tuple[int, int]] = []
        for each in self._of_base(base):
            limits |= {number: self._differences[base, number].limit for number in each}
            conflicts.append(self._conflict(base, each, is_settled=is_settled))
            if not is_settled:
                found = [self._differences[base, number] for number in each]
                open_ranges.append((min(one.start for one in found), max(one.end for one in found)))
        by_base = dict(limits)
        for one, other in combinations(self._ranks[1:], 2):
            difference = self._differences.get((one, other))
            if difference is None or any(by_base.get(n, _LAST_OFFSET) <= difference.start for n in (one, other)):
                continue
            conflicts.append(self._judge_others(one, other, difference, limits))
        conflicts.sort(key=lambda each: (each.offset, each.kept, each.left_out))
        return Agreement(limits, tuple(conflicts), tuple(sorted(open_ranges)))

    def _of_base(self, base: int) -> Iterator[list[int]]:
        """Yield those that differ from the base, each group from the same offset on."""
        groups: dict[int, list[int]] = {}
        for (one, other), difference in self._differences.items():
            if one == base:
                groups.setdefault(difference.start, []).append(other)
        yield from groups.values()

    def _conflict(self, base: int, left_out: Sequence[int], *, is_settled: bool) -> Conflict:
        difference = self._differences[base, left_out[0]]
        same = [
            number
            for number in self._ranks[1:]
            if self._common.get((base, number), 0) >= difference.end and (base, number) not in self._differences
        ]
        kept = tuple(sorted([base, *same]))
        return Conflict(difference.start, difference.epoch, kept, tuple(sorted(left_out)), is_settled)

    def _judge_others(self, one: int, other: int, difference: _Difference, limits: dict[int, int]) -> Conflict:
        """Settle a conflict of two copies that the base has no part in, if it has a later batch of one of them."""
        right = [each for each in (one, other) if self._is_of_base(each, difference)]
        cut = {one: difference.first_limit, other: difference.limit}
        if len(right) == 1:
            del cut[right[0]]
        for number, limit in cut.items():
            limits[number] = min(limit, limits.get(number, limit))
        kept = right[0] if len(right) == 1 else one
        left_out = other if kept == one else one
        return Conflict(difference.start, difference.epoch, (kept,), (left_out,), len(right) == 1)

    def _is_of_base(self, number: int, difference: _Difference) -> bool:
        pair = self._ranks[0], number
        return pair not in self._differences and self._common.get(pair, 0) >= difference.end


def _after(found: Iterator[Seen], start_offset: int) -> Iterator[Seen]:
    return (each for each in found if each.end > start_offset)


def _are_one_batch(one: Seen, other: Seen) -> bool:
    """Whether two batches can be what cleaners have left of one."""
    if (one.start, one.end, one.epoch) != (other.start, other.end, other.epoch):
        return False
    mine, others = _contents(one.batch), _contents(other.batch)
    return all(mine[offset] == others[offset] for offset in mine.keys() & others.keys())


def _contents(batch: RecordBatch) -> dict[int, tuple[object, ...]]:
    return {
        record.offset: (
            None if record.key is None else bytes(record.key),
            None if record.value is None else bytes(record.value),
        )
        for record in batch.records(check_crc=False)
    }
