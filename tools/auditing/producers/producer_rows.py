# SPDX-License-Identifier: Apache-2.0
"""Batches of producers as columns, sorted by producer: which are in order, and whose epochs and sequences do not fit.

What a hole in the offsets may explain is no fault: compaction made it, or something that is reported already. A batch
whose offset is out of order is passed over for the same reason. A single batch that is out of line is one fault, not
two, although it fits neither the batch before it nor the one behind.

Source: ProducerAppendInfo#checkSequence, #checkProducerEpoch.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, cast

import attrs

from raftlog.tools.auditing.batches.batch_table import BatchTable

if TYPE_CHECKING:
    from raftlog.tools.auditing.batches.batch_table import Flags, Longs

SEQUENCE_MASK: Final = (1 << 31) - 1
"""The last sequence; 0 comes after it."""
_HALF_OF_SEQUENCES: Final = 1 << 30
_PRODUCERS: Final = 1  # The column that rows are sorted by.


def next_sequence(sequence: int) -> int:
    """Return the sequence after another; after -1, which is none, comes 0."""
    return (sequence + 1) & SEQUENCE_MASK


def is_written_already(found: int, expected: int) -> bool:
    """Say whether a sequence is behind the one that is expected, rather than ahead of it."""
    return ((expected - found) & SEQUENCE_MASK) < _HALF_OF_SEQUENCES


class OffsetProgress:
    """Follows the offsets of a segment: which batches are in order, and where holes are."""

    def __init__(self) -> None:
        self._last_row = (-1, -1)
        self._reached = -1  # Before the last row: what comes next may show that it was ahead of its turn.
        self._holes = 0

    def take(self, table: BatchTable) -> "tuple[Flags, Longs]":
        """Return which batches are in order, and how many holes there are before each.

        A batch is out of order that starts before the end of an earlier one, or that is so far ahead that the next one
        goes back to where it should have been.
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
    """Batches sorted by producer and then by offset; a row may stand for what a producer did before the chunk.

    Attributes:
        rows: of each its row in the table, or -1.
        producers, epochs: whose it is, and the producer's epoch.
        sequences, last_sequences: of its first and last record, or -1.
        holes: how many holes in offsets there are before it.
        are_data: which have records of the producer.
        are_open: which are part of a transaction, or stand for a producer that has one open.
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
        """Return the batches of producers that are in order."""
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
        """All columns, in order."""
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
        """Return these rows with others, at most one a producer, before those of the same producers."""
        import numpy as np

        both = [np.concatenate(pair) for pair in zip(earlier.columns, self.columns, strict=True)]
        order = np.argsort(both[_PRODUCERS], kind="stable")  # Two sorted runs: they are merged.
        return ProducerRows(*[column[order] for column in both])

    @property
    def are_same(self) -> "Flags":
        """Of each row but the first, whether it is of the producer of the row before it."""
        return cast("Flags", self.producers[1:] == self.producers[:-1])

    @property
    def firsts(self) -> "Longs":
        """Indexes of the first rows of producers."""
        import numpy as np

        return np.flatnonzero(np.concatenate(([True], ~self.are_same)))


def bad_epochs(rows: ProducerRows) -> Iterator[tuple[int, int]]:
    """Yield the index of each row whose epoch does not fit between those around it, with the epoch that would."""
    import numpy as np

    same, epochs = rows.are_same, rows.epochs
    for before in np.flatnonzero(same & (epochs[1:] < epochs[:-1])).tolist():
        after = before + 1
        has_next = after + 1 < len(rows) and bool(same[after])
        is_first = before == 0 or not same[before - 1]
        # Of 5 6 5 the middle one is odd, and of 6 5 5 the first, unless it says what an earlier chunk has shown.
        is_ahead = has_next if is_first else bool(epochs[after] >= epochs[before - 1])
        is_back = has_next and epochs[after + 1] >= epochs[before]
        is_odd = is_ahead and not is_back and rows.rows[before] >= 0
        yield (before, int(epochs[after])) if is_odd else (after, int(epochs[before]))


def bad_sequences(rows: ProducerRows) -> Iterator[tuple[int, int]]:
    """Yield the index of each row whose first sequence is not the next one, with the one that would be."""
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
    """Say whether the row behind one would fit if that one had the sequence that was expected."""
    if rows.producers[odd] != rows.producers[odd + 1] or rows.epochs[odd] != rows.epochs[odd + 1]:
        return False
    count = int(rows.last_sequences[odd]) - int(rows.sequences[odd]) + 1
    return (expected + count) & SEQUENCE_MASK == int(rows.sequences[odd + 1])
