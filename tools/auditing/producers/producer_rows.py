# SPDX-License-Identifier: Apache-2.0
"""Batches of producers as columns, sorted by producer, to find epochs and sequences that do not fit.

A gap that a hole in the offsets can explain is not a fault: compaction made the hole, or another rule reports it. For
the same reason a batch whose offset is out of order is ignored. If a single batch fits neither the one before it nor
the one after it, that is one fault, not two.

Source: ProducerAppendInfo#checkSequence, #checkProducerEpoch.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, cast

import attrs

from raftlog.tools.auditing.batches.batch_table import BatchTable

if TYPE_CHECKING:
    from raftlog.tools.auditing.batches.batch_table import Flags, Longs

SEQUENCE_MASK: Final = (1 << 31) - 1
"""The greatest sequence; 0 follows it."""
_HALF_OF_SEQUENCES: Final = 1 << 30
_PRODUCERS: Final = 1  # The column that rows are sorted by.


def next_sequence(sequence: int) -> int:
    """Return the sequence after another; 0 follows -1, which means none."""
    return (sequence + 1) & SEQUENCE_MASK


def is_written_already(found: int, expected: int) -> bool:
    """Return whether a sequence is lower than the expected one, so that it was written before; sequences wrap."""
    return ((expected - found) & SEQUENCE_MASK) < _HALF_OF_SEQUENCES


class OffsetProgress:
    """Tracks the offsets of a segment: which batches are in order, and where there are holes."""

    def __init__(self) -> None:
        self._last_row = (-1, -1)
        self._reached = -1  # Without the last row: the next table may show that the row was too far ahead.
        self._holes = 0

    def take(self, table: BatchTable) -> "tuple[Flags, Longs]":
        """Return which batches are in order, and how many holes precede each.

        A batch is out of order if it starts before the end of an earlier one. It is also out of order if it is too far
        ahead: the next batch then starts before it, but after the end of the one before it.
        """
        import numpy as np

        starts = np.concatenate(([self._last_row[0]], table.base_offsets))
        ends = np.concatenate(([self._last_row[1]], table.last_offsets))
        out = ends < starts
        before = np.concatenate(([self._reached], ends[:-1]))
        out[:-1] |= (starts[:-1] > starts[1:]) & (starts[1:] > before[:-1])
        reached = np.maximum(np.maximum.accumulate(np.where(out, -1, ends)), self._reached)
        in_order = ~out[1:] & (starts[1:] > reached[:-1])
        holes = np.cumsum(starts[1:] - reached[:-1] != 1) + self._holes
        self._last_row = int(starts[-1]), int(ends[-1])
        self._reached = int(reached[-2])
        self._holes = int(holes[-1])
        return in_order, holes


@attrs.frozen
class ProducerRows:
    """Batches sorted by producer and then by offset; a row may stand for a producer's last state before the chunk.

    Attributes:
        rows: row of the batch in the table; -1 for a state before the chunk.
        producers, epochs: producer id and producer epoch.
        sequences, last_sequences: sequences of the first and last record, or -1.
        holes: number of holes in the offsets before the batch.
        are_data: whether the batch is a data batch, or the state includes one.
        are_open: whether the batch is part of a transaction, or the state has an open one.
    """

    rows: "Longs"
    producers: "Longs"
    epochs: "Longs"
    sequences: "Longs"
    last_sequences: "Longs"
    holes: "Longs"
    are_data: "Flags"
    are_open: "Flags"

    @classmethod
    def of(cls, table: BatchTable, in_order: "Flags", holes: "Longs") -> "ProducerRows":
        """Return the batches of a table that have a producer and are in order."""
        import numpy as np

        rows = np.flatnonzero(in_order & (table.producer_ids >= 0))
        rows = rows[np.argsort(table.producer_ids[rows], kind="stable")]
        sequences = table.base_sequences[rows]
        last_sequences = (sequences + table.last_offset_deltas[rows]) & SEQUENCE_MASK
        are_data = ~table.are_control[rows]
        return cls(
            rows,
            table.producer_ids[rows],
            table.producer_epochs[rows],
            sequences,
            np.where(sequences < 0, -1, last_sequences),
            holes[rows],
            are_data,
            are_data & table.are_transactional[rows],
        )

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, chosen: Any) -> "ProducerRows":
        """Return some of the rows, by their indexes or flags."""
        return ProducerRows(*[column[chosen] for column in self.columns])

    @property
    def columns(self) -> tuple[Any, ...]:
        """All columns, in the order of the attributes."""
        return (
            self.rows,
            self.producers,
            self.epochs,
            self.sequences,
            self.last_sequences,
            self.holes,
            self.are_data,
            self.are_open,
        )

    def with_earlier(self, earlier: "ProducerRows") -> "ProducerRows":
        """Return these rows and earlier ones, with each earlier row before the producer's other rows.

        Args:
            earlier: at most one row per producer, sorted by producer.
        """
        import numpy as np

        both = [np.concatenate(pair) for pair in zip(earlier.columns, self.columns, strict=True)]
        order = np.argsort(both[_PRODUCERS], kind="stable")  # A stable sort merges two sorted runs in linear time.
        return ProducerRows(*[column[order] for column in both])

    @property
    def are_same(self) -> "Flags":
        """For each row but the first, whether it has the same producer as the row before it."""
        return cast("Flags", self.producers[1:] == self.producers[:-1])

    @property
    def firsts(self) -> "Longs":
        """The index of each producer's first row."""
        import numpy as np

        return np.flatnonzero(np.concatenate(([True], ~self.are_same)))


def bad_epochs(rows: ProducerRows) -> Iterator[tuple[int, int]]:
    """Yield the index of each row whose epoch does not fit its neighbours, with the epoch of the row beside it."""
    import numpy as np

    same, epochs = rows.are_same, rows.epochs
    for before in np.flatnonzero(same & (epochs[1:] < epochs[:-1])).tolist():
        after = before + 1
        has_next = after + 1 < len(rows) and bool(same[after])
        is_first = before == 0 or not same[before - 1]
        # Of 5 6 5 the middle one is wrong; of 6 5 5 the first is, unless it stands for the state before the chunk.
        is_ahead = has_next if is_first else bool(epochs[after] >= epochs[before - 1])
        is_back = has_next and epochs[after + 1] >= epochs[before]
        is_odd = is_ahead and not is_back and rows.rows[before] >= 0
        yield (before, int(epochs[after])) if is_odd else (after, int(epochs[before]))


def bad_sequences(rows: ProducerRows) -> Iterator[tuple[int, int]]:
    """Yield the index of each row whose first sequence is not the expected one, with the expected one."""
    import numpy as np

    epochs, sequences, last = rows.epochs, rows.sequences, rows.last_sequences
    is_newer = epochs[1:] > epochs[:-1]
    expected = np.where(is_newer, 0, (last[:-1] + 1) & SEQUENCE_MASK)
    wrong = rows.are_same & (sequences[1:] >= 0) & (last[:-1] >= 0) & (sequences[1:] != expected)
    is_behind = ~is_newer & (((expected - sequences[1:]) & SEQUENCE_MASK) < _HALF_OF_SEQUENCES)
    reported = -2
    for before in np.flatnonzero(wrong & (is_behind | (rows.holes[1:] == rows.holes[:-1]))).tolist():
        if reported != before - 1 or not _continues_after(rows, before, int(expected[reported])):
            reported = before
            yield before + 1, int(expected[before])


def _continues_after(rows: ProducerRows, odd: int, expected: int) -> bool:
    """Return whether the row after a wrong one would fit if the wrong one had its expected sequence."""
    if rows.producers[odd] != rows.producers[odd + 1] or rows.epochs[odd] != rows.epochs[odd + 1]:
        return False
    count = int(rows.last_sequences[odd]) - int(rows.sequences[odd]) + 1
    return (expected + count) & SEQUENCE_MASK == int(rows.sequences[odd + 1])
