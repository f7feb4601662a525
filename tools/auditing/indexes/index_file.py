# SPDX-License-Identifier: Apache-2.0
"""An index as columns, faults that its bytes alone show, and the batches that its entries refer to."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import attrs

from raftlog.records.files.index_entries import IndexFormat
from raftlog.tools.auditing.batches.batch_table import OFFSETS_CANNOT_BE, OFFSETS_GO_BACK, OFFSETS_HAVE_GAPS, BatchTable
from raftlog.tools.catalogue.findings import Finding

if TYPE_CHECKING:
    from raftlog.tools.auditing.batches.batch_table import Flags, Longs

_MOST_STEP_BACKS: Final = 64
_BREAKS: Final = OFFSETS_CANNOT_BE | OFFSETS_GO_BACK | OFFSETS_HAVE_GAPS


@attrs.frozen
class AuditedIndex:
    """An index of a segment.

    Attributes:
        path: path of the index.
        layout: its format.
        data: its whole contents.
        padding_rule: id of the rule that zeros after the last entry break.
    """

    path: str
    layout: IndexFormat[Any]
    data: bytes
    padding_rule: str = "index-padding"

    @property
    def entries_end(self) -> int:
        """Byte position after the last entry that is not all zeros."""
        size = self.layout.entry_size
        used = len(self.data[: self._whole_end].rstrip(b"\0"))
        return -(-used // size) * size

    @property
    def _whole_end(self) -> int:
        return len(self.data) // self.layout.entry_size * self.layout.entry_size

    def columns(self, types: str) -> "list[Longs]":
        """Return the fields of the entries before the padding, as 64-bit integers.

        Args:
            types: numpy's names for the types of the fields.
        """
        import numpy as np

        rows = np.frombuffer(self.data[: self.entries_end], dtype=types)
        return [rows[name].astype(np.int64) for name in rows.dtype.names or ()]

    def byte_findings(self) -> Iterator[Finding]:
        """Yield findings about the bytes after the entries."""
        end, whole = self.entries_end, self._whole_end
        if end < whole:
            yield Finding(self.path, self.padding_rule, f"{whole - end} zero bytes after the last entry", end)
        if whole < len(self.data):
            left_over = len(self.data) - whole
            yield Finding(self.path, "index-size", f"{left_over} bytes after the last entry", whole, left_over)

    def finding(self, rule: str, reason: str, number: int, offset: int | None = None) -> Finding:
        """Return a finding about an entry, by its number."""
        return Finding(self.path, rule, reason, number * self.layout.entry_size, offset=offset)


class OffsetsSought:
    """Finds the batches that hold given offsets, while the batches of a segment are read in order.

    Each attribute has one element per offset.

    Attributes:
        positions: position in the log of the batch that holds the offset; -1 until that batch is read.
        are_last: whether the offset is the last one of its batch. True for any offset of a batch that lost records to
            compaction, because any of them may have been its last record.
        max_timestamps: max timestamp of that batch, in ms.
        epochs: leader epoch of that batch; -1 until it is read.

    Args:
        offsets: the offsets to find.
    """

    def __init__(self, offsets: "Longs") -> None:
        import numpy as np

        self._offsets = offsets
        self._order = np.argsort(offsets, kind="stable")
        self._sorted = offsets[self._order]
        self.positions = np.full(len(offsets), -1, dtype=np.int64)
        self.are_last = np.zeros(len(offsets), dtype=bool)
        self.max_timestamps = np.full(len(offsets), -1, dtype=np.int64)
        self.epochs = np.full(len(offsets), -1, dtype=np.int64)

    def take(self, table: BatchTable) -> "tuple[Longs, Longs]":
        """Return the indexes of those offsets that are in these batches, and the row of each one's batch."""
        import numpy as np

        first = np.searchsorted(self._sorted, table.least_base_offset)
        end = np.searchsorted(self._sorted, table.last_offsets.max(), side="right")
        numbers = self._order[first:end]
        if first >= end:
            return numbers, numbers
        rows = np.minimum(np.searchsorted(table.last_offsets, self._offsets[numbers]), len(table) - 1)
        found = table.rows(rows)
        wanted = self._offsets[numbers]
        is_found = (found.base_offsets <= wanted) & (wanted <= found.last_offsets)
        if not is_found.all():
            numbers, rows, wanted = numbers[is_found], rows[is_found], wanted[is_found]
            found = table.rows(rows)
        self.positions[numbers] = found.positions
        self.max_timestamps[numbers] = found.max_timestamps
        self.epochs[numbers] = found.epochs
        lost_some = found.record_counts <= found.last_offset_deltas
        self.are_last[numbers] = (wanted == found.last_offsets) | lost_some
        return numbers, rows


class SegmentShape:
    """Tracks where the batches of a segment end, and where offsets are not consecutive between batches.

    Attributes:
        end_position: end of the last sound batch, in bytes.
        largest_batch_bytes: size of the largest batch.
        first_break: position of the first batch that does not start where the one before it ends, or None.
        step_backs: byte ranges of neighbouring batches whose offsets go back; only the first 64 of them.

    Args:
        base_offset: base offset of the segment, from its file name.
    """

    def __init__(self, base_offset: int) -> None:
        self.end_position = 0
        self.largest_batch_bytes = 0
        self.first_break: int | None = None
        self.step_backs: list[tuple[int, int]] = []
        self._last_offset = base_offset - 1
        self._last_position = 0

    @property
    def ends_with_break(self) -> bool:
        """Whether the last batch is the only one that does not start where the one before it ends."""
        return self.first_break is not None and self.first_break == self._last_position

    def take(self, table: BatchTable) -> None:
        """Track the next batches of the segment."""
        import numpy as np

        run = table.run
        if table.disorder & _BREAKS or run.batch(0).base_offset - self._last_offset != 1:
            self._note_breaks(table)
            self._last_offset = int(table.last_offsets[-1])
        else:
            self._last_offset = run.batch(len(run) - 1).last_offset
        self._last_position = run.position + run.positions[-1]
        self.end_position = run.end
        self.largest_batch_bytes = max(self.largest_batch_bytes, int(np.frombuffer(run.sizes, dtype=np.int32).max()))

    def _note_breaks(self, table: BatchTable) -> None:
        import numpy as np

        befores = np.concatenate(([self._last_offset], table.last_offsets[:-1]))
        breaks = np.flatnonzero(table.base_offsets - befores != 1)
        if len(breaks) and self.first_break is None:
            self.first_break = int(table.positions[breaks[0]])
        for row in breaks[table.base_offsets[breaks] <= befores[breaks]][:_MOST_STEP_BACKS].tolist():
            self._add_step_back(table, row)

    def _add_step_back(self, table: BatchTable, row: int) -> None:
        if len(self.step_backs) < _MOST_STEP_BACKS:
            start = self._last_position if row == 0 else int(table.positions[row - 1])
            self.step_backs.append((start, int(table.positions[row] + table.sizes[row])))

    def are_beside_step_back(self, positions: "Longs") -> "Flags":
        """Return, for each position, whether it is inside batches that are out of order, or directly after them."""
        import numpy as np

        beside = np.zeros(len(positions), dtype=bool)
        for start, end in self.step_backs:
            beside |= (positions >= start) & (positions <= end)
        return beside
