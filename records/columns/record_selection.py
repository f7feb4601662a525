# SPDX-License-Identifier: Apache-2.0
"""Selects the records of a log to read: by batch headers if possible, by the records themselves if necessary.

A header has the first and last offset, the max timestamp, whether the records are control records, and whose
transaction they belong to. So most batches are selected or dropped as a whole, before anything is unpacked. Only if a
bound lies inside a batch are its rows checked one by one.
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
"""Bits of ``kernel.header_facts``: an impossible offset, or offsets that go back."""
_NONE: Final[frozenset[int]] = frozenset()


@attrs.frozen(slots=False)
class RecordSelection:
    """Which records to read; without arguments, all that a consumer sees.

    Attributes:
        from_offset: first offset, inclusive; None for no bound.
        to_offset: last offset, exclusive; None for no bound.
        since_ms: earliest timestamp, inclusive, in ms; None for no bound.
        data_only: whether to leave out control records, which a consumer never sees.
        read_committed: whether to leave out records of aborted transactions, and all records from the last stable
            offset on.
        transactions: the known transactions; required for ``read_committed``.

    Raises:
        ValueError: ``read_committed`` is set without ``transactions``.
    """

    from_offset: int | None = None
    to_offset: int | None = None
    since_ms: int | None = None
    data_only: bool = True
    read_committed: bool = False
    transactions: Transactions | None = None

    def __attrs_post_init__(self) -> None:
        if self.read_committed and self.transactions is None:
            raise ValueError("read_committed needs the transactions")

    @functools.cached_property
    def end_offset(self) -> int | None:
        """The offset at which reading stops, exclusive; None for the end of the log."""
        stable = self.transactions.last_stable_offset if self.read_committed and self.transactions else None
        ends = [end for end in (self.to_offset, stable) if end is not None]
        return min(ends, default=None)

    @functools.cached_property
    def aborted(self) -> AbortedIndex | None:
        """The aborted transactions; None if transactions are not known."""
        return None if self.transactions is None else AbortedIndex(self.transactions.aborted)

    @functools.cached_property
    def bounds_records(self) -> bool:
        """Whether a batch may be selected only in part."""
        return self.from_offset is not None or self.end_offset is not None or self.since_ms is not None

    @functools.cached_property
    def _dropped_flags(self) -> int:
        """The attributes of batches that may be left out for their kind."""
        drops_aborted = self.read_committed and self.aborted is not None and len(self.aborted) > 0
        return CONTROL_FLAG * self.data_only | TRANSACTIONAL_FLAG * drops_aborted

    def are_wanted(self, least_offset: int, greatest_offset: int, least_timestamp: int) -> bool:
        """Whether all records are within the bounds; their kind was judged with their batch."""
        return (
            (self.from_offset is None or least_offset >= self.from_offset)
            and (self.end_offset is None or greatest_offset < self.end_offset)
            and (self.since_ms is None or least_timestamp >= self.since_ms)
        )

    def ends_before(self, run: BatchRun) -> bool:
        """Whether reading stops before the first batch of a run."""
        return self.end_offset is not None and run.batch(0).base_offset >= self.end_offset

    def select(self, run: BatchRun) -> "SelectedRun | None":
        """Select from the batches of a run; None if none of them has an offset within the bounds."""
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
        """Whether a batch within the bounds may have selected records, by their kind according to its header."""
        if self.data_only and batch.is_control:
            return False
        if not self.read_committed or self.aborted is None or batch.is_control or not batch.is_transactional:
            return True
        return not self.aborted.holds(batch.producer_id, batch.base_offset)

    def _is_inside(self, run: BatchRun) -> bool:
        """Whether all batches are within the bounds, judged by the first and the last one."""
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
"""Selects every stored record, for tools that account for all of them."""


@attrs.frozen
class SelectedRun:
    """Batches, and which of them have selected records.

    Attributes:
        run: the batches, from the first to the last one within the bounds.
        is_marked: whether one of them may be a control batch or part of a transaction.
        unwanted: the indexes of batches without selected records, which are not unpacked.
        cut: the indexes of batches that may have records both within and out of the bounds.
    """

    run: BatchRun
    is_marked: bool
    unwanted: Collection[int] = _NONE
    cut: Collection[int] = _NONE


@attrs.frozen
class Rows:
    """Rows of records in the kernel's form.

    Attributes:
        ends: for each batch, the row after its last one.
        capacity: how long each column is.
        longs: two columns, one after the other: offset and timestamp.
        ints: six more columns, of 32-bit integers.
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
            batches: the indexes of batches whose rows are checked; all rows of other batches are kept.
            selection: has the bounds.
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
