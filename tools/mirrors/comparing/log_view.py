# SPDX-License-Identifier: Apache-2.0
"""Answers what the comparison asks of a log, by the sums of its blocks; only parts of single blocks are read again.

A rank is the number of records before a place, from the log start on.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import Final, Protocol

import numpy as np

from raftlog.errors import DivergedLogError
from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.comparing.log_sums import LogSums
from raftlog.tools.mirrors.comparing.order_sums import LANES, PRIME, powers, sum_runs
from raftlog.tools.mirrors.comparing.rows import (
    UNKNOWN,
    Bools,
    DigestRows,
    Int64s,
    RowReader,
    UInt64s,
    first_offsets,
)

LONG_GAP: Final = 1 << 16
"""So many offsets without a record are one step, and not read through."""
_KEPT_BLOCKS: Final = 4


class DigestSearch(Protocol):
    """Finds digests in a log."""

    def __call__(self, digests: Sequence[UInt64s], end: int, *, committed: bool) -> list[int | None]:
        """Return what ``SummedView.first_offsets`` does."""
        ...


class SummedView:
    """The data records of a log: all of them, or without those of aborted transactions. Or its control records.

    Args:
        log: reads them.
        sums: of its blocks.
        committed: whether to leave out records of aborted transactions.
        markers: whether to take the control records, and nothing else.
        search: finds digests in the log, if that is quicker than to read it.

    Attributes:
        is_committed: whether some are left out.
        start_offset: the first offset of the log.
        end_offset: the offset after the last one.

    Raises (by all methods):
        DivergedLogError: the log has other records than when it was summed.
        StorageError: a segment cannot be read.
    """

    def __init__(
        self,
        log: RowReader,
        sums: LogSums,
        *,
        committed: bool = False,
        markers: bool = False,
        search: "DigestSearch | None" = None,
    ) -> None:
        self._log, self.is_committed = log, committed and sums.committed is not None
        self._search = search
        blocks = sums.committed_or_all if committed else sums.markers if markers else sums.all
        self._blocks, self._is_of_markers = blocks, markers
        self._before = np.concatenate([[0], np.cumsum(blocks.counts)])
        self._unknown = np.concatenate([[0], np.cumsum(blocks.unknown)])
        parts = blocks.sums * powers(self._before[:-1]) % PRIME
        totals = np.cumsum(parts, axis=0, dtype=np.uint64) % PRIME
        self._sums = np.concatenate([np.zeros((1, LANES), np.uint64), totals])
        self._block = functools.lru_cache(_KEPT_BLOCKS)(self._read_block)
        self.start_offset, self.end_offset = log.start_offset, log.end_offset

    # Places

    def rank(self, offset: int) -> int:
        """Return how many records are before an offset."""
        return int(self.ranks(np.array([offset], np.int64))[0])

    def count(self, place: OffsetRange) -> int:
        """Return how many records are in a range; 0 if its end is not after its start."""
        return self.rank(place.end) - self.rank(place.start) if place.offset_count else 0

    def offset_at(self, rank: int) -> int:
        """Return the offset of the record after so many others; there must be one."""
        block = int(np.searchsorted(self._before, rank, side="right")) - 1
        index = rank - int(self._before[block])
        if index == 0 or self._is_dense(block):
            return int(self._blocks.starts[block]) + index
        return int(self._block(block).offsets[index])

    def offset_after(self, place: OffsetRange, count: int) -> int:
        """Return the offset of the record after the first ones of a range; the range's end if there is none."""
        rank = self.rank(place.start) + count
        return self.offset_at(rank) if rank < self.rank(place.end) else place.end

    def have(self, offsets: Int64s) -> Bools:
        """Return at which offsets there is a record."""
        blocks = self._blocks.ends.searchsorted(offsets, side="right")
        starts = np.append(self._blocks.starts, np.iinfo(np.int64).max)[blocks]
        found = (starts == offsets) & (blocks < len(self._blocks))  # Blocks begin with a record.
        for at in np.flatnonzero(starts < offsets).tolist():
            block = int(blocks[at])
            found[at] = self._is_dense(block) or offsets[at] in self._block(block).offsets
        return np.asarray(found)

    def long_gaps(self, least: int) -> Iterator[OffsetRange]:
        """Yield the ranges of at least so many offsets that have nothing that can be read, by offset."""
        blocks = self._blocks
        is_gap = (blocks.unknown == blocks.counts) & (blocks.counts == blocks.ends - blocks.starts)
        starts, ends = blocks.starts[is_gap], blocks.ends[is_gap]
        firsts, lasts = np.append(-1, ends)[:-1] != starts, np.append(starts, -1)[1:] != ends
        for start, end in zip(starts[firsts].tolist(), ends[lasts].tolist(), strict=True):
            if end - start >= least:
                yield OffsetRange(start, end)

    # Contents

    def rows(self, start: int, end: int) -> Iterator[DigestRows]:
        """Yield the records from an offset (inclusive) to another (exclusive), in order, some at a time."""
        for each in self._log.read(start, end):
            if self._is_of_markers:
                yield each.markers()
            else:
                yield each.without_aborted() if self.is_committed else each.without_markers()

    def first_rows(self, place: OffsetRange, most: int) -> DigestRows:
        """Return the first records of a range, all at once."""
        found, count = [], 0
        for each in self.rows(place.start, place.end):
            found.append(each.rows(0, min(len(each), most - count)))
            count += len(found[-1])
            if count >= most:
                break
        return DigestRows.joined(found)

    def first_offsets(self, digests: Sequence[UInt64s], end: int) -> list[int | None]:
        """Return, for each digest, the offset of the first record that has it; None if none before an offset has."""
        if self._search is not None:
            return self._search(digests, end, committed=self.is_committed)
        return first_offsets(self._rows_beside_gaps(end), digests)

    def _rows_beside_gaps(self, end: int) -> Iterator[DigestRows]:
        """Yield all records before an offset (exclusive), without reading through long gaps."""
        start = self.start_offset
        for gap in self.long_gaps(LONG_GAP):
            yield from self.rows(start, min(gap.start, end))
            start = gap.end
        yield from self.rows(start, end)

    def equals(self, rank: int, other: "SummedView", other_rank: int, count: int) -> bool:
        """Whether so many records from a rank on equal those of another log, in order, and none is unknown."""
        ours, theirs = np.array([rank, rank + count], np.int64), np.array([other_rank, other_rank + count], np.int64)
        return bool(_are_equal(self.known_sums(ours), other.known_sums(theirs))[0])

    def equal_windows(self, bounds: Int64s, other: "SummedView", other_bounds: Int64s) -> tuple[Bools, Int64s]:
        """Compare windows with those of another log.

        Args:
            bounds: the offset at which each window starts, and at which the last one ends, exclusive.
            other: the other log.
            other_bounds: likewise, in the other log.

        Returns:
            Which windows begin with a record on both sides and have equal records in equal order, none of which is
            unknown; and how many records each has in this log.
        """
        ours, theirs = self.ranks(bounds), other.ranks(other_bounds)
        counts = np.diff(ours)
        is_whole = self.have(bounds[:-1]) & other.have(other_bounds[:-1]) & (counts == np.diff(theirs))
        return is_whole & _are_equal(self.known_sums(ours), other.known_sums(theirs)), counts

    # SummedBlocks

    def ranks(self, offsets: Int64s) -> Int64s:
        """Return how many records are before each of some offsets."""
        blocks = self._blocks.ends.searchsorted(offsets, side="right")
        ranks = self._before[blocks]
        starts = np.append(self._blocks.starts, np.iinfo(np.int64).max)[blocks]
        for at in np.flatnonzero(offsets > starts).tolist():
            block, offset = int(blocks[at]), int(offsets[at])
            is_dense = self._is_dense(block)
            ranks[at] += offset - starts[at] if is_dense else self._block(block).offsets.searchsorted(offset)
        return np.asarray(ranks)

    def known_sums(self, ranks: Int64s) -> tuple[UInt64s, Bools]:
        """Return the sums of the records from each rank to the next one, and of which of them all are known."""
        sums, unknown = self.sums(ranks)
        return sums, unknown == 0

    def sums(self, ranks: Int64s) -> tuple[UInt64s, Int64s]:
        """Return the sums of the known records from each rank to the next one, and how many others are there."""
        sums, unknown = self._before_ranks(ranks)
        found = (sums[1:] + PRIME - sums[:-1]) % PRIME * powers(-ranks[:-1]) % PRIME
        return found, np.diff(unknown)

    def known_count(self, place: OffsetRange) -> int:
        """Return how many records in a range can be read; 0 if its end is not after its start."""
        if not place.offset_count:
            return 0
        ranks = self.ranks(np.array([place.start, place.end], np.int64))
        _, unknown = self._before_ranks(ranks)
        return int(np.diff(ranks)[0] - np.diff(unknown)[0])

    def _before_ranks(self, ranks: Int64s) -> tuple[UInt64s, Int64s]:
        """Return the sum of the records before each rank, and how many of these are unknown."""
        blocks = np.searchsorted(self._before, ranks, side="right") - 1
        sums, unknown = self._sums[blocks], self._unknown[blocks]
        for at in np.flatnonzero(ranks > self._before[blocks]).tolist():
            block, count = int(blocks[at]), int(ranks[at] - self._before[blocks[at]])
            if self._blocks.unknown[block] == self._blocks.counts[block]:
                unknown[at] += count
                continue
            rows = self._block(block).rows(0, count)
            is_unknown = rows.flags & UNKNOWN != 0
            unknown[at] += int(is_unknown.sum())
            part = sum_runs(rows.digests * ~is_unknown[:, None], np.zeros(1, np.int64))[0]
            sums[at] = (sums[at] + part * powers(self._before[block : block + 1])[0]) % PRIME
        return sums, unknown

    def _is_dense(self, block: int) -> bool:
        return bool(self._blocks.ends[block] - self._blocks.starts[block] == self._blocks.counts[block])

    def _read_block(self, block: int) -> DigestRows:
        start, end = int(self._blocks.starts[block]), int(self._blocks.ends[block])
        found = DigestRows.joined(self.rows(start, end))
        if len(found) != self._blocks.counts[block]:
            raise DivergedLogError(f"the records from offset {start} to {end} (exclusive) have changed meanwhile")
        return found


def _are_equal(ours: tuple[UInt64s, Bools], theirs: tuple[UInt64s, Bools]) -> Bools:
    return np.asarray((ours[0] == theirs[0]).all(axis=1) & ours[1] & theirs[1])


class SummedLog:
    """A log that was read once, and summed.

    Args:
        log: reads its records again.
        sums: of its blocks.
        search: finds digests in the log, if that is quicker than to read it.

    Attributes:
        log: what it was read by.
        all: all its data records.
        committed: those that are not of aborted transactions.
        markers: its control records, if they have rows.
    """

    def __init__(self, log: RowReader, sums: LogSums, search: DigestSearch | None = None) -> None:
        self.log = log
        self.all = SummedView(log, sums, search=search)
        self.committed = SummedView(log, sums, committed=True, search=search)
        self.markers = SummedView(log, sums, markers=True)
