# SPDX-License-Identifier: Apache-2.0
"""Transactions of a log: which were aborted, which are open, and where a reader of committed records must stop.

A transaction is the records of one producer from its first transactional batch up to a marker: a control batch of the
same producer with a COMMIT or ABORT record. A log has the marker only after the records, so a reader must look ahead:
at headers and markers, or at the indexes that brokers write beside a segment
(``raftlog.storage.reading.log_transactions``).

Source: ProducerStateManager, UnifiedLog#collectAbortedTransactions, CompletedFetch#fetchRecords.
"""

import bisect
import contextlib
from collections.abc import Iterable
from typing import Final, NamedTuple

import attrs

from raftlog.errors import DecodeError, MissingExtraError
from raftlog.records.batches.batch import TRANSACTIONAL_FLAG, RecordBatch
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.iterator import ByteSource, split_runs
from raftlog.records.kernel_choice import kernel

_ATTRIBUTES: Final = (21, 2)
"""Position and size of the field in a batch header."""


class AbortedRange(NamedTuple):
    """An aborted transaction: its producer, and the offsets of its first record and of its marker (inclusive)."""

    producer_id: int
    first_offset: int
    last_offset: int


@attrs.frozen
class Transactions:
    """The known transactions of a log.

    Attributes:
        aborted: the aborted ones, in the order of their markers' offsets.
        stable_end: the offset at which the first open transaction starts; None if none is open.
        end_offset: the end, exclusive, of the range that was searched; nothing is known of transactions after it. None
            if no more than that range will be read.
    """

    aborted: tuple[AbortedRange, ...] = ()
    stable_end: int | None = None
    end_offset: int | None = None

    def between(self, first: int | None, end: int | None) -> tuple[AbortedRange, ...]:
        """Return the aborted ones that may have records from offset ``first`` (inclusive) to ``end`` (exclusive)."""
        return tuple(
            each
            for each in self.aborted
            if (first is None or each.last_offset >= first) and (end is None or each.first_offset < end)
        )

    @property
    def last_stable_offset(self) -> int | None:
        """Where a reader of committed records stops, exclusive: each transaction below has ended. None for no limit.

        Source: UnifiedLog#lastStableOffset.
        """
        return self.end_offset if self.stable_end is None else self.stable_end


class AbortedIndex:
    """Finds out quickly whether a record belongs to one of many aborted transactions."""

    def __init__(self, aborted: Iterable[AbortedRange]) -> None:
        by_producer: dict[int, list[AbortedRange]] = {}
        for each in aborted:
            by_producer.setdefault(each.producer_id, []).append(each)
        self._ends: dict[int, list[int]] = {}
        self._starts: dict[int, list[int]] = {}
        for producer_id, ranges in by_producer.items():
            ranges.sort(key=_last_offset)
            self._ends[producer_id] = [each.last_offset for each in ranges]
            starts = [each.first_offset for each in ranges]
            for index in range(len(starts) - 2, -1, -1):  # Ranges may overlap: the least start of all later ones.
                starts[index] = min(starts[index], starts[index + 1])
            self._starts[producer_id] = starts

    def __len__(self) -> int:
        return sum(map(len, self._ends.values()))

    def holds(self, producer_id: int, offset: int) -> bool:
        """Whether a producer's transactional record at an offset was aborted."""
        ends = self._ends.get(producer_id)
        if ends is None:
            return False
        index = bisect.bisect_left(ends, offset)
        return index < len(ends) and self._starts[producer_id][index] <= offset


class TransactionSearch:
    """Follows the transactions of a log from batch to batch."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        self._aborted: set[AbortedRange] = set()
        self._end_offset = 0

    def add_aborted(self, aborted: Iterable[AbortedRange]) -> None:
        """Add aborted transactions from another source."""
        self._aborted.update(aborted)

    def add_open(self, producer_id: int, first_offset: int) -> None:
        """Add a transaction that is open at the start of the next batch."""
        self._open[producer_id] = first_offset

    def reach(self, offset: int) -> None:
        """Record that the known transactions are complete at least up to an offset, exclusive."""
        self._end_offset = max(self._end_offset, offset)

    def take(self, run: BatchRun) -> None:
        """Follow the transactions through some batches. Ignores damage, which readers of the records report."""
        last = run.batch(len(run) - 1)
        self.reach(last.base_offset + last.last_offset_delta + 1)
        if not kernel.all_attributes(run.data, run.positions) & TRANSACTIONAL_FLAG:
            return
        attributes = memoryview(bytearray(8 * len(run))).cast("q")
        kernel.header_field(run.data, run.positions, *_ATTRIBUTES, attributes)
        for index, flags in enumerate(attributes):
            if flags & TRANSACTIONAL_FLAG:
                self._take_batch(run.batch(index))

    def _take_batch(self, batch: RecordBatch) -> None:
        producer_id: int = batch.producer_id
        if not batch.is_control:
            self._open.setdefault(producer_id, batch.base_offset)
            return
        from raftlog.records.messages.control import (  # Slow to import, and needed only for markers.
            ControlRecordType,
            read_control_key,
        )

        with contextlib.suppress(DecodeError, MissingExtraError):
            for record in batch.records(check_crc=False):
                kind = read_control_key(record.key)
                if kind in {ControlRecordType.ABORT, ControlRecordType.COMMIT}:
                    # A transaction that began before the log start still has its later records in the log.
                    first_offset = self._open.pop(producer_id, record.offset)
                    if kind == ControlRecordType.ABORT and first_offset < record.offset:
                        self._aborted.add(AbortedRange(producer_id, first_offset, record.offset))

    def result(self, start_offset: int = 0) -> Transactions:
        """Return the transactions of a log that starts at an offset, without those that were aborted below it."""
        aborted = sorted(self._aborted, key=_last_offset)
        kept = tuple(each for each in aborted if each.last_offset >= start_offset)
        self._aborted.intersection_update(kept)
        return Transactions(kept, min(self._open.values(), default=None), self._end_offset)


def find_transactions(source: ByteSource) -> Transactions:
    """Find the transactions of a log, or of a part of one, from its batches.

    A transaction that began before the part is taken to start at its producer's first record in the part. A transaction
    whose marker is after the part counts as open: nothing from its first record on counts as committed. No records but
    markers are unpacked.
    """
    search = TransactionSearch()
    for piece in split_runs(source):
        if isinstance(piece, BatchRun):
            search.take(piece)
    return search.result()


def _last_offset(each: AbortedRange) -> int:
    return each.last_offset
