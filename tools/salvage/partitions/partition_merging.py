# SPDX-License-Identifier: Apache-2.0
"""Merges what copies of a partition have of one lineage, into stretches without a hole.

All of the base's batches are taken, and those of another copy in its holes. A gap between two files of the base is
filled, too: nothing says whether compaction has left it, or a file is missing. All logs are read side by side, in the
order of their offsets; of each, one batch is held in memory.
"""

from collections.abc import Sequence

import attrs

from raftlog.tools.salvage.merging import Conflict, Piece
from raftlog.tools.salvage.partitions.partition_conflicts import Agreement, find_agreement
from raftlog.tools.salvage.partitions.partition_runs import Reader, Seen


@attrs.frozen
class TopicStretch:
    """Batches without a hole of damage between them.

    Attributes:
        pieces: at least one, or none in an empty log.
        start_offset: inclusive; what is known to be empty before the first batch counts.
        open_transactions: producer ids of those that have begun in the log so far and not ended.
        batch_count: of all batches.
        first_epoch: of the first batch.
    """

    pieces: tuple[Piece, ...]
    start_offset: int
    open_transactions: tuple[int, ...] = ()
    batch_count: int = 0
    first_epoch: int = -1

    @property
    def end_offset(self) -> int:
        """Exclusive."""
        return self.pieces[-1].end_offset if self.pieces else self.start_offset

    @property
    def epoch(self) -> int:
        """Of the last batch; -1 without one."""
        return self.pieces[-1].epoch if self.pieces else -1

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
        open_gaps: inside stretches, offsets at which no copy has anything, and files end and begin: compaction has left
            them, or files are missing. Inclusive and exclusive, ascending.
    """

    stretches: tuple[TopicStretch, ...]
    conflicts: tuple[Conflict, ...]
    cleaned_apart: int | None
    open_gaps: tuple[tuple[int, int], ...] = ()


def merge_copies(
    read: Reader, ranks: Sequence[int], start_offset: int, *, compacted_below: int, is_settled: bool
) -> TopicMerged:
    """Merge the batches of copies.

    Args:
        read: reads a copy.
        ranks: numbers of the copies: the base, and then the others, in an order that does not depend on their numbers.
        start_offset: batches that end at or below it are left out.
        compacted_below: batches below this offset may have been cleaned at different times, and then differ; 0 if none.
        is_settled: whether the base is right where copies differ; otherwise none of them is taken there.

    Raises:
        StorageError: a file cannot be read.
    """
    agreement = find_agreement(read, ranks, start_offset, compacted_below=compacted_below, is_settled=is_settled)
    return _Merging(read, ranks, start_offset, agreement).merged()


class _Merging:
    """The batches that come next, and what was merged so far."""

    def __init__(self, read: Reader, ranks: Sequence[int], start_offset: int, agreement: Agreement) -> None:
        self._ranks = ranks
        self._base = ranks[0]
        self._agreement = agreement
        self._readers = {number: read(number) for number in ranks}
        self._next: dict[int, Seen] = {}
        self._position = start_offset
        self._found = _Growing()
        self._cleaned_apart: int | None = None
        self._open_gaps: list[tuple[int, int]] = []

    def merged(self) -> TopicMerged:
        for number in self._ranks:
            self._advance(number)
        while self._next:
            self._step()
        return TopicMerged(
            self._found.finished(), self._agreement.conflicts, self._cleaned_apart, tuple(self._open_gaps)
        )

    def _advance(self, number: int) -> None:
        """Go on to the next batch of a copy that does not end at or below the position, and may be used."""
        limit = self._agreement.limits.get(number)
        for found in self._readers[number]:
            if limit is not None and found.start >= limit:
                break
            if found.end > self._position:
                self._next[number] = found
                return
        self._next.pop(number, None)

    def _step(self) -> None:
        """Take the batch that comes next, or pass a hole."""
        able = [number for number in self._ranks if number in self._next and self._covers(self._next[number])]
        taken = self._choice(able)
        if taken is None:
            self._pass_gap(able)
            return
        seen = self._next[taken]
        if any(start < seen.end and seen.start < end for start, end in self._agreement.open_ranges):
            self._found.end()
        else:
            self._note_cleaning(taken, seen)
            self._found.take(taken, seen, self._position)
        self._pass(seen.end)

    def _choice(self, able: Sequence[int]) -> int | None:
        """Return the copy whose batch is taken: the base, or one that has a batch before the base's next one."""
        if self._base in able:
            return self._base
        own = self._next.get(self._base)
        free = [number for number in able if own is None or self._next[number].end <= own.start]
        return min(free, key=lambda number: self._next[number].start, default=None)

    def _note_cleaning(self, taken: int, seen: Seen) -> None:
        """Note where copies were cleaned at different times: batches of one place differ, or a gap is filled."""
        if self._cleaned_apart is not None:
            return
        here = [each for number, each in self._next.items() if number != taken and each.start < seen.end]
        own = None if taken == self._base else self._next.get(self._base)
        fills_gap = own is not None and own.perhaps_from <= seen.start
        if fills_gap or any(each.batch.buffer != seen.batch.buffer for each in here):
            self._cleaned_apart = seen.start

    def _covers(self, seen: Seen) -> bool:
        """Whether a batch is what comes next. The first one of all may begin before the position."""
        return seen.covers_from <= self._position <= seen.start or (
            seen.start <= self._position and self._found.is_empty
        )

    def _pass_gap(self, able: Sequence[int]) -> None:
        """Go on where the next batch can be, after a hole, or after a gap that may have been there before the damage.

        Args:
            able: copies that say that nothing is there up to the base's next batch, as they have none before it.
        """
        position = min(self._beginning(each) for number, each in self._next.items() if number not in able)
        if not able:
            if self._found.is_growing and any(each.perhaps_from <= self._position for each in self._next.values()):
                self._open_gaps.append((self._position, position))
            else:
                self._found.end()
        self._pass(position)

    def _beginning(self, seen: Seen) -> int:
        """Return where the log can go on with a batch: if it began before the position, only after the batch."""
        return seen.end if seen.start < self._position else seen.covers_from

    def _pass(self, position: int) -> None:
        self._position = position
        for number in list(self._next):
            if self._next[number].end <= position:
                self._advance(number)


class _Growing:
    """The stretches so far."""

    def __init__(self) -> None:
        self._stretches: list[TopicStretch] = []
        self._pieces: list[Piece] = []
        self._start = 0
        self._batches = 0
        self._first_epoch = -1
        self._open: dict[int, None] = {}

    @property
    def is_empty(self) -> bool:
        return not (self._stretches or self._pieces)

    @property
    def is_growing(self) -> bool:
        return bool(self._pieces)

    def take(self, number: int, seen: Seen, position: int) -> None:
        batch, last = seen.batch, self._pieces[-1] if self._pieces else None
        end, epoch = batch.position + batch.size_bytes, batch.partition_leader_epoch
        if not self._pieces:
            self._start, self._first_epoch = min(position, seen.start), epoch
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
            pieces = tuple(self._pieces)
            self._stretches.append(TopicStretch(pieces, self._start, producers, self._batches, self._first_epoch))
            self._pieces, self._batches = [], 0

    def finished(self) -> tuple[TopicStretch, ...]:
        self.end()
        return tuple(self._stretches)
