# SPDX-License-Identifier: Apache-2.0
"""Finds the batches of a log in which its snapshots end."""

import bisect
from collections.abc import Iterable, Iterator

import attrs
import numpy as np

from raftlog.tools.auditing.batches.batch_table import BatchTable
from raftlog.tools.auditing.evidence import BatchSeen


class SnapshotEnds:
    """Finds the batches with the last records that snapshots cover.

    Args:
        snapshot_offsets: end offsets of the snapshots, exclusive.
    """

    def __init__(self, snapshot_offsets: Iterable[int]) -> None:
        self._wanted = sorted(set(snapshot_offsets))
        self._found: dict[int, BatchSeen] = {}
        self._next: dict[int, int] = {}

    def take(self, table: BatchTable) -> None:
        """Search the next batches; if two have the record, the first is used."""
        if not len(table):
            return
        start = bisect.bisect_left(self._wanted, int(table.base_offsets.min()))
        end = bisect.bisect_right(self._wanted, int(table.last_offsets.max()) + 1)
        for wanted in self._wanted[start:end]:
            if wanted not in self._found and (batch := _batch_of(table, wanted)) is not None:
                self._found[wanted] = batch
            if wanted not in self._next:
                for index in (table.base_offsets == wanted).nonzero()[0][:1]:
                    self._next[wanted] = int(table.max_timestamps[index])

    def batches(self) -> Iterator[BatchSeen]:
        """Yield the found batches, by offset."""
        for wanted in self._wanted:
            if wanted in self._found:
                yield attrs.evolve(self._found[wanted], next_timestamp=self._next.get(wanted, -1))


def _batch_of(table: BatchTable, snapshot_offset: int) -> BatchSeen | None:
    holds_last = (table.base_offsets < snapshot_offset) & (table.last_offsets >= snapshot_offset - 1)
    index = int(np.argmax(holds_last))
    if not holds_last[index]:
        return None
    return BatchSeen(
        snapshot_offset,
        int(table.base_offsets[index]),
        int(table.last_offsets[index]),
        int(table.epochs[index]),
        int(table.max_timestamps[index]),
        int(table.positions[index]),
    )
