# SPDX-License-Identifier: Apache-2.0
"""Checks that a log still has the history that a stream has read, and limits how much a micro-batch takes.

Two logs written by raft or Kafka that have a record of the same offset and epoch have all preceding records in common,
and epochs never decrease. So a position, which is an offset and the epoch of the record before it, shows whether the
log still has the records that were read.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from raftlog.offsets import OffsetAndEpoch

NO_EPOCH: Final = -1
"""The epoch of a position before which no record is known."""


@attrs.frozen
class EpochWitness:
    """A batch or a snapshot's name: it shows the epoch that some records have or had.

    Attributes:
        first_offset: offset of the first of these records.
        next_offset: the offset after the last one.
        epoch: their epoch; ``NO_EPOCH`` if unknown.
    """

    first_offset: int
    next_offset: int
    epoch: int

    @classmethod
    def of_snapshot(cls, snapshot_id: OffsetAndEpoch) -> "EpochWitness":
        """Return a witness for the last record in a snapshot, by the snapshot's name."""
        return cls(snapshot_id.offset - 1, snapshot_id.offset, snapshot_id.epoch)

    def contradicts(self, place: OffsetAndEpoch) -> bool:
        """Whether a log with these records has another epoch at a position."""
        if NO_EPOCH in {self.epoch, place.epoch}:
            return False
        if self.next_offset < place.offset:
            return self.epoch > place.epoch
        if self.first_offset >= place.offset:
            return self.epoch < place.epoch
        return self.epoch != place.epoch


def contradicting_epoch(place: OffsetAndEpoch, witnesses: Iterable[EpochWitness]) -> int | None:
    """Return the epoch of the first witness that contradicts a position; None if all agree with it."""
    return next((each.epoch for each in witnesses if each.contradicts(place)), None)


def shares(waiting: Mapping[str, int], most: int) -> dict[str, int]:
    """Divide the offsets of a micro-batch among logs; what a log with less does not need goes to the others.

    Each log with any gets at least one, so that none waits for ever. The total exceeds ``most`` only if ``most`` is
    less than one per log.

    Args:
        waiting: number of waiting offsets per log.
        most: limit on the total.

    Differs: Spark's Kafka source divides in proportion to the waiting offsets, so that a log with few waits for logs
    with many.
    """
    found: dict[str, int] = {}
    by_count = sorted((count, name) for name, count in waiting.items() if count > 0)
    for index, (count, name) in enumerate(by_count):
        found[name] = min(count, max(1, most // (len(by_count) - index)))
        most -= found[name]
    return found
