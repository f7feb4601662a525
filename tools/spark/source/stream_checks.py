# SPDX-License-Identifier: Apache-2.0
"""Checks that a log still has the records that a stream has read, and divides a micro-batch among logs.

If two logs written by raft or Kafka have a record of the same offset and epoch, all records before it are equal; and
epochs never decrease. So a place, which is an offset and the epoch of the record before it, identifies the history that
was read.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from raftlog.offsets import OffsetAndEpoch

NO_EPOCH: Final = -1
"""The epoch of a place if the record before it is unknown."""


@attrs.frozen
class EpochWitness:
    """Evidence for the epoch of some records that are or were in a log: a batch, or a snapshot's name.

    Attributes:
        first_offset: of the first of these records.
        next_offset: after the last of them.
        epoch: their epoch, or ``NO_EPOCH`` if unknown.
    """

    first_offset: int
    next_offset: int
    epoch: int

    @classmethod
    def of_snapshot(cls, snapshot_id: OffsetAndEpoch) -> "EpochWitness":
        """Return the epoch of a snapshot's last record, from the snapshot's name."""
        return cls(snapshot_id.offset - 1, snapshot_id.offset, snapshot_id.epoch)

    def contradicts(self, place: OffsetAndEpoch) -> bool:
        """Whether a log with these records must have another epoch at a place."""
        if NO_EPOCH in {self.epoch, place.epoch}:
            return False
        if self.next_offset < place.offset:
            return self.epoch > place.epoch
        if self.first_offset >= place.offset:
            return self.epoch < place.epoch
        return self.epoch != place.epoch


def contradicting_epoch(place: OffsetAndEpoch, witnesses: Iterable[EpochWitness]) -> int | None:
    """Return the epoch of the first witness that contradicts a place; None if none does."""
    return next((each.epoch for each in witnesses if each.contradicts(place)), None)


def shares(waiting: Mapping[str, int], most: int) -> dict[str, int]:
    """Divide the limit of a micro-batch among logs evenly; what short logs do not need goes to the longer ones.

    Each log with unread offsets gets at least one, so that none starves. The sum exceeds ``most`` only if that is less
    than one per log.

    Args:
        waiting: the number of unread offsets per log.
        most: the wanted limit for all logs together.

    Differs: Spark's Kafka source divides in proportion to unread offsets, so that a log with few waits for those with
    many.
    """
    found: dict[str, int] = {}
    by_count = sorted((count, name) for name, count in waiting.items() if count > 0)
    for index, (count, name) in enumerate(by_count):
        found[name] = min(count, max(1, most // (len(by_count) - index)))
        most -= found[name]
    return found
