# SPDX-License-Identifier: Apache-2.0
"""Which records of a log a reader is given: by batch headers first, by the records themselves where that is not enough.

A header says first and last offset, the greatest timestamp, whether the records are control records, and whose
transaction they belong to. So most batches are decided whole, before anything is unpacked; only where a bound falls
into a batch are its rows looked at, one by one.
"""

import bisect
import functools
import itertools
from collections.abc import Collection
from typing import Final

import attrs

from raftlog.records.batches.batch import CONTROL_FLAG, TRANSACTIONAL_FLAG, RecordBatch
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.record import MARK_FLAGS
from raftlog.records.columns.transactions import AbortedIndex, Transactions
from raftlog.records.kernel_choice import kernel

_OUT_OF_ORDER: Final = 3
"""Bits of ``kernel.header_facts``: an offset that cannot be, or offsets that go back."""
_NONE: Final[frozenset[int]] = frozenset()


@attrs.frozen(slots=False)
class RecordSelection:
    """Which records are wanted; without arguments, a consumer's view of all of them.

    Attributes:
        from_offset: first offset, inclusive; None for no bound.
        to_offset: last offset, exclusive; None for no bound.
        since_ms: least timestamp, inclusive, in ms; None for no bound.
        data_only: whether control records are left out, as a consumer never sees them.
        read_committed: whether records of aborted transactions are left out, and all from the last stable offset on.
        transactions: what is known of the transactions; where records are read as committed, it must be given.

    Raises:
        ValueError: nothing is known of the transactions, and committed records are wanted.
    """

    from_offset: int | None = None
    to_offset: int | None = None
    since_ms: int | None = None
    data_only: bool = True
    read_committed: bool = False
    transactions: Transactions | None = None

    def __attrs_post_init__(self) -> None:
        if self.read_committed and self.transactions is None:
            raise ValueError("which records are committed is not known without the transactions")

    @functools.cached_property
    def end_offset(self) -> int | None:
        """Where reading stops, exclusive; None for the end of the log."""
        stable = self.transactions.last_stable_offset if self.read_committed and self.transactions else None
        ends = [end for end in (self.to_offset, stable) if end is not None]
        return min(ends, default=None)

    @functools.cached_property
    def aborted(self) -> AbortedIndex | None:
        """The aborted transactions; None if nothing is known of them."""
        return None if self.transactions is None else AbortedIndex(self.transactions.aborted)

    @functools.cached_property
    def bounds_records(self) -> bool:
        """Whether not all records of a batch need be wanted where one is."""
        return self.from_offset is not None or self.end_offset is not None or self.since_ms is not None

    @functools.cached_property
    def _dropped_flags(self) -> int:
        """The attributes that a batch has which may be left out for what it is."""
        drops_aborted = self.read_committed and self.aborted is not None and len(self.aborted) > 0
        return CONTROL_FLAG * self.data_only | TRANSACTIONAL_FLAG * drops_aborted

    def are_wanted(self, least_offset: int, greatest_offset: int, least_timestamp: int) -> bool:
        """Whether records are all within the bounds; what they are was decided with their batch."""
        return (
            (self.from_offset is None or least_offset >= self.from_offset)
            and (self.end_offset is None or greatest_offset < self.end_offset)
            and (self.since_ms is None or least_timestamp >= self.since_ms)
        )

    def ends_before(self, run: BatchRun) -> bool:
        """Whether reading stops before the first of some batches."""
        return self.end_offset is not None and run.batch(0).base_offset >= self.end_offset

    def select(self, run: BatchRun) -> "SelectedRun | None":
        """Say which of some batches are wanted; None if none of them holds an offset within the bounds."""
        all_attributes = kernel.all_attributes(run.data, run.positions)
        is_marked = all_attributes & MARK_FLAGS != 0
        is_inside = not self.bounds_records or self._is_inside(run)
        if is_inside and not all_attributes & self._dropped_flags:
            return SelectedRun(run, is_marked, _NONE, _NONE if self.since_ms is None else range(len(run)))
        unwanted: set[int] = set()
        cut: set[int] = set()
        first = last = None
        for index, batch in enumerate(run.batches()):
            if not is_inside and not self._overlaps(batch):
                unwanted.add(index)
                continue
            first, last = index if first is None else first, index
            if not self.wants_batch(batch):
                unwanted.add(index)
            elif self.since_ms is not None or self._is_cut(batch):
                cut.add(index)
        if first is None or last is None:
            return None
        return SelectedRun(
            run.part(first, last + 1),
            is_marked,
            frozenset(index - first for index in unwanted if first <= index <= last),
            frozenset(index - first for index in cut),
        )

    def wants_batch(self, batch: RecordBatch) -> bool:
        """Whether a batch within the bounds has records that may be wanted, by what its header says that they are."""
        if self.data_only and batch.is_control:
            return False
        if not self.read_committed or self.aborted is None or batch.is_control or not batch.is_transactional:
            return True
        return not self.aborted.holds(batch.producer_id, batch.base_offset)

    def _is_inside(self, run: BatchRun) -> bool:
        """Whether all batches are within the bounds, as the first and the last one say."""
        _, _, _, least_timestamp, _, _, disorder = kernel.header_facts(run.data, run.positions)
        if disorder & _OUT_OF_ORDER or (self.since_ms is not None and least_timestamp < self.since_ms):
            return False
        last = run.batch(len(run) - 1)
        is_from = self.from_offset is None or run.batch(0).base_offset >= self.from_offset
        return is_from and (self.end_offset is None or last.base_offset + last.last_offset_delta < self.end_offset)

    def _overlaps(self, batch: RecordBatch) -> bool:
        return (
            (self.from_offset is None or batch.base_offset + batch.last_offset_delta >= self.from_offset)
            and (self.end_offset is None or batch.base_offset < self.end_offset)
            and (self.since_ms is None or batch.max_timestamp >= self.since_ms)
        )

    def _is_cut(self, batch: RecordBatch) -> bool:
        is_below = self.from_offset is not None and batch.base_offset < self.from_offset
        last_offset: int = batch.base_offset + batch.last_offset_delta
        return is_below or (self.end_offset is not None and last_offset >= self.end_offset)


EVERYTHING: Final = RecordSelection(data_only=False)
"""What tools take that account for all that is stored."""


@attrs.frozen
class SelectedRun:
    """Some batches, and which of them have records that are wanted.

    Attributes:
        run: the batches, from the first that is within the bounds to the last.
        is_marked: whether one of them may be a control batch or part of a transaction.
        unwanted: the indexes of those without wanted records: nothing of them is unpacked.
        cut: the indexes of those that may have records within the bounds and others.
    """

    run: BatchRun
    is_marked: bool
    unwanted: Collection[int] = _NONE
    cut: Collection[int] = _NONE


@attrs.frozen
class Rows:
    """Rows of records as the kernel has them.

    Attributes:
        ends: for each batch, the row after its last one.
        capacity: how long each column is.
        longs: two columns, one after the other: offset and timestamp.
        ints: six more.
    """

    ends: memoryview
    capacity: int
    longs: memoryview
    ints: memoryview

    @property
    def count(self) -> int:
        """How many rows are filled."""
        return int(self.ends[-1])

    def kept(self, batches: Collection[int], selection: RecordSelection) -> "Rows":
        """Return the rows that are within the bounds.

        Args:
            batches: those whose rows are looked at, by index; all rows of others are kept.
            selection: what the bounds are.
        """
        dropped = [row for batch in sorted(batches) for row in self._dropped(batch, selection)]
        if not dropped:
            return self
        ends = memoryview(bytearray(8 * len(self.ends))).cast("q")
        for index, end in enumerate(self.ends):
            ends[index] = end - bisect.bisect_left(dropped, end)
        capacity = ends[-1]
        longs = memoryview(bytearray(8 * 2 * capacity)).cast("q")
        ints = memoryview(bytearray(4 * 6 * capacity)).cast("i")
        spans = [
            (first + 1, last) for first, last in itertools.pairwise([-1, *dropped, self.count]) if first + 1 < last
        ]
        for old, new, columns in ((self.longs, longs, 2), (self.ints, ints, 6)):
            at = 0
            for start in range(0, columns * self.capacity, self.capacity):
                for first, last in spans:
                    new[at : at + last - first] = old[start + first : start + last]
                    at += last - first
        return Rows(ends, capacity, longs, ints)

    def _dropped(self, batch: int, selection: RecordSelection) -> list[int]:
        """Return the rows of a batch that are out of bounds, ascending."""
        first, last = self.ends[batch - 1] if batch else 0, self.ends[batch]
        offsets, timestamps = self.longs[first:last], self.longs[self.capacity + first : self.capacity + last]
        if first == last or selection.are_wanted(min(offsets), max(offsets), min(timestamps)):
            return []
        pairs = enumerate(zip(offsets, timestamps, strict=True), first)
        return [row for row, (offset, timestamp) in pairs if not selection.are_wanted(offset, offset, timestamp)]
