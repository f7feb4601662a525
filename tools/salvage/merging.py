# SPDX-License-Identifier: Apache-2.0
"""Merges what replicas have of one lineage, batch by batch, into stretches without a hole.

All logs are read once, side by side, in the order of their offsets; of each, one batch is held in memory.
"""

import bisect
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import attrs

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import split
from raftlog.storage.reading.file_source import FileSource
from raftlog.tools.auditing.evidence import BatchSeen
from raftlog.tools.salvage.runs import Run, opens_with_leader


@attrs.frozen
class Piece:
    """Whole batches in one file of a source, which are taken as they are.

    Attributes:
        source: number of the source.
        file: name of the segment.
        position, end_position: of the bytes, inclusive and exclusive.
        start_offset, end_offset: inclusive and exclusive.
        epoch: of the last batch.
    """

    source: int
    file: str
    position: int
    end_position: int
    start_offset: int
    end_offset: int
    epoch: int

    @property
    def size_bytes(self) -> int:
        """Of the batches."""
        return self.end_position - self.position


@attrs.frozen
class Stretch:
    """Batches that follow each other without a hole.

    Attributes:
        pieces: at least one.
    """

    pieces: tuple[Piece, ...]

    @property
    def start_offset(self) -> int:
        """Inclusive."""
        return self.pieces[0].start_offset

    @property
    def end_offset(self) -> int:
        """Exclusive."""
        return self.pieces[-1].end_offset

    @property
    def size_bytes(self) -> int:
        """Of all batches."""
        return sum(piece.size_bytes for piece in self.pieces)


@attrs.frozen
class Conflict:
    """Sound batches of one epoch at one offset, with different bytes.

    Attributes:
        offset: the first that is different.
        epoch: of the batches.
        kept: numbers of the sources on whose side the log may go on.
        left_out: numbers of the others, of which nothing from this offset on is used.
        is_settled: whether one of the batches is taken, which a majority has, or which alone can follow the one before;
            otherwise none is.
    """

    offset: int
    epoch: int
    kept: tuple[int, ...]
    left_out: tuple[int, ...]
    is_settled: bool


@attrs.frozen
class FoundBatch:
    """Where a batch of a source is.

    Attributes:
        source: number of the source.
        file: name of the segment.
        position: of its first byte.
        offset: its base offset.
    """

    source: int
    file: str
    position: int
    offset: int


@attrs.frozen
class Merged:
    """What replicas have of one lineage.

    Attributes:
        stretches: by ascending offset; between two of them is a hole.
        conflicts: by ascending offset.
        passed_over: batches that no leader can have written, in whose place another source has one without a fault.
        ends: the batches that were taken and have the last record before one of the offsets that were asked for.
    """

    stretches: tuple[Stretch, ...]
    conflicts: tuple[Conflict, ...]
    passed_over: tuple[FoundBatch, ...] = ()
    ends: tuple[BatchSeen, ...] = ()


Reader: TypeAlias = Callable[[int], Iterator[tuple[str, RecordBatch]]]
"""Yields the batches of a source that may be used, with the names of their files, by ascending offset."""
IsMajority: TypeAlias = Callable[[Sequence[int], int], bool]
"""Says whether some sources are those of a majority of the voters, before an offset."""
FlawOf: TypeAlias = Callable[[FoundBatch], int]
"""Says of a whole batch, whose place and epoch are vouched for, how it differs from what a leader writes: 0 if it does
not, ``ODD`` if it may be a tool's, ``IMPOSSIBLE`` if no leader can have written it."""
ODD: Final = 1
IMPOSSIBLE: Final = 2


def read_usable(directory: str, runs: Sequence[Run], end_offset: int) -> Iterator[tuple[str, RecordBatch]]:
    """Yield the batches of some runs of a log, up to an offset, with the names of their files.

    Args:
        directory: of the log.
        runs: by ascending offset.
        end_offset: exclusive: batches that end after it are left out.

    Raises:
        StorageError: a file cannot be read.
    """
    for run in runs:
        if run.start_offset >= end_offset:
            return
        with FileSource(f"{directory}/{run.file}") as source:
            for piece in split(source, start=run.position, stop=run.end_position):
                if isinstance(piece, RecordBatch) and piece.next_offset <= end_offset:
                    yield run.file, piece


def merge_by_sides(
    read: Reader,
    ranks: Sequence[int],
    is_majority: IsMajority,
    flaw_of: FlawOf = lambda _: 0,
    offsets: Sequence[int] = (),
) -> Iterator[Merged]:
    """Merge the batches of replicas, once for each side that the log may go on with.

    After a conflict that no majority settles, each side may be right. No two sides are merged: of each of these results
    the last batches are from other sources than those of the others, so that there are at most as many as sources.

    Args:
        read: reads a source, from its beginning, each time that it is called.
        ranks: numbers of the sources, the most up-to-date first, in an order that does not depend on their numbers.
        is_majority: decides conflicts.
        flaw_of: of two batches at one offset, an impossible one is not taken; nor, if no majority has it, an odd one.
        offsets: ascending; the results have what batches are before them.

    Raises:
        StorageError: a file cannot be read.
    """
    ways: list[tuple[int, ...]] = [()]
    while ways:
        merging = _Merging(read, ranks, is_majority, flaw_of, offsets, ways.pop())
        yield merging.merged()
        ways += merging.other_ways


class _Merging:
    """The batches that come next, and what was merged so far.

    Args:
        read, ranks, is_majority, flaw_of, offsets: as for ``merge_by_sides``.
        way: with which side, by number, the log goes on after each of the first conflicts that no majority settles;
            after later ones it goes on with the first.

    Attributes:
        other_ways: those that go on with another side after one of these later ones.
    """

    def __init__(
        self,
        read: Reader,
        ranks: Sequence[int],
        is_majority: IsMajority,
        flaw_of: FlawOf,
        offsets: Sequence[int],
        way: tuple[int, ...],
    ) -> None:
        self._ranks = ranks
        self._is_majority = is_majority
        self._flaw_of = flaw_of
        self._offsets = offsets
        self._way = way
        self._parted: tuple[int, ...] = ()
        self.other_ways: list[tuple[int, ...]] = []
        self._readers = {number: read(number) for number in ranks}
        self._next: dict[int, tuple[str, RecordBatch]] = {}
        self._stretches: list[Stretch] = []
        self._pieces: list[_Growing] = []
        self._conflicts: list[Conflict] = []
        self._passed_over: list[FoundBatch] = []
        self._ends: list[BatchSeen] = []

    def merged(self) -> Merged:
        for number in self._ranks:
            self._advance(number)
        while self._next:
            self._step()
        self._end_stretch()
        return Merged(tuple(self._stretches), tuple(self._conflicts), tuple(self._passed_over), tuple(self._ends))

    def _advance(self, number: int) -> None:
        found = next(self._readers[number], None)
        if found is None:
            self._next.pop(number, None)
        else:
            self._next[number] = found

    def _step(self) -> None:
        """Take the batch that comes next, from all sources that have it."""
        start = min(batch.base_offset for _, batch in self._next.values())
        end = max(batch.next_offset for _, batch in self._next.values() if batch.base_offset == start)
        here = [number for number in self._ranks if number in self._next and self._next[number][1].base_offset < end]
        here = self._following(start, here)
        sides = self._sides(here)
        if len(sides) > 1:
            if self._passes_over(sides, IMPOSSIBLE):
                return
            is_settled = any(self._is_majority(side, start) for side in sides)
            if not is_settled and self._passes_over(sides, ODD):
                return
            sides = [self._settle(start, sides)] if is_settled else self._part(start, sides)
        if sides:
            self._take(sides[0])
        for number in here:
            if number in self._next and self._next[number][1].base_offset < end:
                self._advance(number)

    def _sides(self, numbers: Sequence[int]) -> list[list[int]]:
        """Divide sources by the bytes of their next batch."""
        sides: list[list[int]] = []
        for number in numbers:
            batch = self._next[number][1]
            side = next((side for side in sides if self._next[side[0]][1].buffer == batch.buffer), None)
            if side is None:
                sides.append([number])
            else:
                side.append(number)
        return sides

    def _following(self, start: int, numbers: list[int]) -> list[int]:
        """Return sources whose next batch can follow the last one that was taken, and leave out the others.

        A LeaderChange begins an epoch, and nothing else does. If no batch can follow, a stretch ends there.
        """
        last = self._pieces[-1] if self._pieces else None
        if last is None or last.end_offset != start:
            return numbers
        here = [number for number in numbers if self._next[number][1].base_offset == start]
        apart = [number for number in here if not _can_follow(last.epoch, self._next[number][1])]
        if len(apart) == len(here):
            self._end_stretch()
        elif apart:
            self._leave_out(start, [number for number in here if number not in apart], [apart], is_settled=True)
            return [number for number in numbers if number not in apart]
        return numbers

    def _passes_over(self, sides: Sequence[Sequence[int]], least: int) -> bool:
        """Leave out the batches with such a flaw, if another one begins at the same offset."""
        flawed = [side for side in sides if any(self._flaw_of(self._place(number)) >= least for number in side)]
        sound = {self._next[side[0]][1].base_offset for side in sides if side not in flawed}
        left_out = [number for side in flawed for number in side if self._next[number][1].base_offset in sound]
        for number in left_out:
            self._passed_over.append(self._place(number))
            self._advance(number)
        return bool(left_out)

    def _place(self, number: int) -> FoundBatch:
        file, batch = self._next[number]
        return FoundBatch(number, file, batch.position, batch.base_offset)

    def _settle(self, start: int, sides: Sequence[Sequence[int]]) -> list[int]:
        """Leave out all but the batch of a majority, and return the sources that have it."""
        side = next(side for side in sides if self._is_majority(side, start))
        self._leave_out(start, side, sides, is_settled=True)
        return list(side)

    def _part(self, start: int, sides: Sequence[Sequence[int]]) -> list[list[int]]:
        """Go on after batches of which none is taken, without the sources of all but one side."""
        count = len(self._parted)
        if count < len(self._way):
            number = self._way[count]
        else:
            number = 0
            self.other_ways += [(*self._parted, other) for other in range(1, len(sides))]
        self._parted += (number,)
        self._leave_out(start, sides[number], sides, is_settled=False)
        self._end_stretch()
        return []

    def _leave_out(self, start: int, kept: Sequence[int], sides: Sequence[Sequence[int]], *, is_settled: bool) -> None:
        epoch = self._next[kept[0]][1].partition_leader_epoch
        others = sorted(number for side in sides if side is not kept for number in side)
        for number in others:
            del self._next[number]
        self._conflicts.append(Conflict(start, epoch, tuple(sorted(kept)), tuple(others), is_settled))

    def _take(self, numbers: Sequence[int]) -> None:
        """Take a batch, from the file that the last one came from if that has it."""
        last = self._pieces[-1] if self._pieces else None
        if last is not None and last.end_offset != self._next[numbers[0]][1].base_offset:
            self._end_stretch()
            last = None
        number = numbers[0] if last is None or last.source not in numbers else last.source
        file, batch = self._next[number]
        self._note_ends(batch)
        end_position, epoch = batch.position + batch.size_bytes, batch.partition_leader_epoch
        if last is not None and (last.source, last.file, last.end_position) == (number, file, batch.position):
            last.end_position, last.end_offset, last.epoch = end_position, batch.next_offset, epoch
            return
        self._pieces.append(
            _Growing(number, file, batch.position, end_position, batch.base_offset, batch.next_offset, epoch)
        )

    def _note_ends(self, batch: RecordBatch) -> None:
        """Note that a batch has the record before one of the offsets, or the record at that offset."""
        if self._ends and self._ends[-1].snapshot_offset == batch.base_offset:
            self._ends[-1] = attrs.evolve(self._ends[-1], next_timestamp=batch.max_timestamp)
        index = bisect.bisect_right(self._offsets, batch.base_offset)
        while index < len(self._offsets) and self._offsets[index] <= batch.next_offset:
            self._ends.append(
                BatchSeen(
                    self._offsets[index],
                    batch.base_offset,
                    batch.next_offset - 1,
                    batch.partition_leader_epoch,
                    batch.max_timestamp,
                    batch.position,
                )
            )
            index += 1

    def _end_stretch(self) -> None:
        if self._pieces:
            self._stretches.append(Stretch(tuple(Piece(*attrs.astuple(each)) for each in self._pieces)))
            self._pieces = []


def _can_follow(epoch: int, batch: RecordBatch) -> bool:
    """Whether a batch can be directly after one of an epoch."""
    is_later = batch.partition_leader_epoch > epoch
    return opens_with_leader(batch) if is_later else batch.partition_leader_epoch == epoch


@attrs.define
class _Growing:
    """A piece to which more batches may belong."""

    source: int
    file: str
    position: int
    end_position: int
    start_offset: int
    end_offset: int
    epoch: int
