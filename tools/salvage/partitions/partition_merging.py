# SPDX-License-Identifier: Apache-2.0
"""Merges what copies of a partition have of one lineage, into stretches without a hole.

The base's batches are taken where it has them sound, and those of another copy in its holes. All logs are read side by
side, in the order of their offsets; of each, one batch is held in memory.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import attrs

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import split
from raftlog.storage.reading.file_source import FileSource
from raftlog.tools.salvage.merging import Conflict, Piece
from raftlog.tools.salvage.partitions.partition_runs import TopicRun


@attrs.frozen
class TopicStretch:
    """Batches without a hole of damage between them.

    Attributes:
        pieces: at least one.
        start_offset: inclusive; what is known to be empty before the first batch counts.
        open_transactions: producer ids of those that have begun in the log so far and not ended.
        batch_count: of all batches.
    """

    pieces: tuple[Piece, ...]
    start_offset: int
    open_transactions: tuple[int, ...] = ()
    batch_count: int = 0

    @property
    def end_offset(self) -> int:
        """Exclusive."""
        return self.pieces[-1].end_offset

    @property
    def size_bytes(self) -> int:
        """Of all batches."""
        return sum(piece.size_bytes for piece in self.pieces)


@attrs.frozen
class TopicMerged:
    """What copies have of one lineage.

    Attributes:
        stretches: by ascending offset; between two of them is a hole.
        conflicts: batches of one epoch and offset with different bytes, by ascending offset.
        cleaned_apart: the first offset at which the copies were cleaned at different times; None if at none.
    """

    stretches: tuple[TopicStretch, ...]
    conflicts: tuple[Conflict, ...]
    cleaned_apart: int | None


@attrs.frozen
class Seen:
    """A batch of a copy.

    Attributes:
        file: name of its segment.
        batch: the batch.
        covers_from: the offset from which on it is known that there is nothing but the batch, inclusive.
    """

    file: str
    batch: RecordBatch
    covers_from: int

    @property
    def start(self) -> int:
        """Its base offset."""
        start: int = self.batch.base_offset
        return start

    @property
    def end(self) -> int:
        """The offset after its last one."""
        return self.batch.next_offset


Reader: TypeAlias = Callable[[int], Iterator[Seen]]
"""Yields the batches of a copy that may be used, by ascending offset."""


def read_covered(directory: str, runs: Sequence[TopicRun], end_offset: int) -> Iterator[Seen]:
    """Yield the batches of some runs of a log, up to an offset.

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
        covers_from = run.covers_from
        with FileSource(f"{directory}/{run.file}") as source:
            for piece in split(source, start=run.position, stop=run.end_position):
                if isinstance(piece, RecordBatch) and piece.next_offset <= end_offset:
                    yield Seen(run.file, piece, covers_from)
                    covers_from = piece.next_offset


def merge_copies(
    read: Reader, ranks: Sequence[int], start_offset: int, *, is_compacted: bool, is_settled: bool
) -> TopicMerged:
    """Merge the batches of copies.

    Args:
        read: reads a copy.
        ranks: numbers of the copies: the base, and then the others, in an order that does not depend on their numbers.
        start_offset: batches that end at or below it are left out.
        is_compacted: whether copies may have been cleaned at different times; their batches may then differ.
        is_settled: whether the base is right where batches of one epoch differ; otherwise none of them is taken.

    Raises:
        StorageError: a file cannot be read.
    """
    return _Merging(read, ranks, start_offset, is_compacted=is_compacted, is_settled=is_settled).merged()


class _Merging:
    """The batches that come next, and what was merged so far."""

    def __init__(
        self, read: Reader, ranks: Sequence[int], start_offset: int, *, is_compacted: bool, is_settled: bool
    ) -> None:
        self._ranks = ranks
        self._is_compacted = is_compacted
        self._is_settled = is_settled
        self._readers = {number: read(number) for number in ranks}
        self._next: dict[int, Seen] = {}
        self._position = start_offset
        self._found = _Growing()
        self._conflicts: list[Conflict] = []
        self._cleaned_apart: int | None = None

    def merged(self) -> TopicMerged:
        for number in self._ranks:
            self._advance(number)
        while self._next:
            self._step()
        return TopicMerged(self._found.finished(), tuple(self._conflicts), self._cleaned_apart)

    def _advance(self, number: int) -> None:
        """Go on to the next batch of a copy that does not end at or below the position."""
        for found in self._readers[number]:
            if found.end > self._position:
                self._next[number] = found
                return
        self._next.pop(number, None)

    def _step(self) -> None:
        """Take the batch that comes next, or pass a hole."""
        able = [number for number in self._ranks if number in self._next and self._covers(self._next[number])]
        if not able:
            self._found.end()
            self._pass(min(self._beginning(each) for each in self._next.values()))
            return
        taken = able[0]
        seen = self._next[taken]
        here = [number for number in self._ranks if number in self._next and self._next[number].start < seen.end]
        different = [number for number in here if self._next[number].batch.buffer != seen.batch.buffer]
        if different and self._is_compacted:
            self._cleaned_apart = seen.start if self._cleaned_apart is None else self._cleaned_apart
        elif different:
            self._part(taken, seen, different)
            if not (self._is_settled and taken == self._ranks[0]):
                self._found.end()
                self._pass(seen.end)
                return
        self._found.take(taken, seen, self._position)
        self._pass(seen.end)

    def _covers(self, seen: Seen) -> bool:
        """Whether a batch is what comes next. The first one of all may begin before the position."""
        return seen.covers_from <= self._position <= seen.start or (
            seen.start <= self._position and self._found.is_empty
        )

    def _beginning(self, seen: Seen) -> int:
        """Return where the log can go on with a batch: if it began before the position, only after the batch."""
        return seen.end if seen.start < self._position else seen.covers_from

    def _pass(self, position: int) -> None:
        self._position = position
        for number in list(self._next):
            if self._next[number].end <= position:
                self._advance(number)

    def _part(self, taken: int, seen: Seen, different: Sequence[int]) -> None:
        """Go on without the copies that have other bytes than the one that is preferred."""
        for number in different:
            del self._next[number]
        same = sorted(number for number in self._ranks if number in self._next and self._next[number].end == seen.end)
        is_settled = self._is_settled and taken == self._ranks[0]
        epoch = seen.batch.partition_leader_epoch
        self._conflicts.append(Conflict(seen.start, epoch, tuple(same), tuple(sorted(different)), is_settled))


class _Growing:
    """The stretches so far."""

    def __init__(self) -> None:
        self._stretches: list[TopicStretch] = []
        self._pieces: list[Piece] = []
        self._start = 0
        self._batches = 0
        self._open: dict[int, None] = {}

    @property
    def is_empty(self) -> bool:
        return not (self._stretches or self._pieces)

    def take(self, number: int, seen: Seen, position: int) -> None:
        batch, last = seen.batch, self._pieces[-1] if self._pieces else None
        end, epoch = batch.position + batch.size_bytes, batch.partition_leader_epoch
        if not self._pieces:
            self._start = min(position, seen.start)
        if last is not None and (last.source, last.file, last.end_position) == (number, seen.file, batch.position):
            self._pieces[-1] = attrs.evolve(last, end_position=end, end_offset=seen.end, epoch=epoch)
        else:
            self._pieces.append(Piece(number, seen.file, batch.position, end, seen.start, seen.end, epoch))
        self._batches += 1
        if batch.is_transactional:
            if batch.is_control:
                self._open.pop(batch.producer_id, None)
            else:
                self._open[batch.producer_id] = None

    def end(self) -> None:
        if self._pieces:
            producers = tuple(sorted(self._open))
            self._stretches.append(TopicStretch(tuple(self._pieces), self._start, producers, self._batches))
            self._pieces, self._batches = [], 0

    def finished(self) -> tuple[TopicStretch, ...]:
        self.end()
        return tuple(self._stretches)
