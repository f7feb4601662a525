# SPDX-License-Identifier: Apache-2.0
"""Whether a log is still the one that a stream has read, and how much of several logs a micro-batch takes.

In a log that raft or Kafka wrote, two that have a record of the same offset and epoch have all before it in common, and
epochs never fall. So a place, which is an offset and the epoch of the record before it, tells whether what was read is
still what the log has.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from raftlog.offsets import OffsetAndEpoch

NO_EPOCH: Final = -1
"""Of a place before which no record is known."""


@attrs.frozen
class EpochWitness:
    """Something in a log that says which epoch some records are, or were, of: a batch, or a snapshot's name.

    Attributes:
        first_offset: of the first of these records.
        next_offset: after the last one.
        epoch: theirs; ``NO_EPOCH`` says nothing.
    """

    first_offset: int
    next_offset: int
    epoch: int

    @classmethod
    def of_snapshot(cls, snapshot_id: OffsetAndEpoch) -> "EpochWitness":
        """Return what a snapshot's name says of the last record in it."""
        return cls(snapshot_id.offset - 1, snapshot_id.offset, snapshot_id.epoch)

    def contradicts(self, place: OffsetAndEpoch) -> bool:
        """Whether a log that has these records has another epoch at a place."""
        if NO_EPOCH in {self.epoch, place.epoch}:
            return False
        if self.next_offset < place.offset:
            return self.epoch > place.epoch
        if self.first_offset >= place.offset:
            return self.epoch < place.epoch
        return self.epoch != place.epoch


def contradicting_epoch(place: OffsetAndEpoch, witnesses: Iterable[EpochWitness]) -> int | None:
    """Return the epoch of the first witness that contradicts a place; None if they all agree with it."""
    return next((each.epoch for each in witnesses if each.contradicts(place)), None)


def shares(waiting: Mapping[str, int], most: int) -> dict[str, int]:
    """Divide what a micro-batch may take among logs: those that have less leave what they do not need to the others.

    Each gets one at least, where there is one, so that none waits for ever: together they get more than ``most`` only
    if that is less than one each.

    Args:
        waiting: how many offsets each log has.
        most: how many all of them should get together.

    Differs: Spark's Kafka source divides in proportion to what waits, so that a log that has little waits for those
    that have much.
    """
    found: dict[str, int] = {}
    by_count = sorted((count, name) for name, count in waiting.items() if count > 0)
    for index, (count, name) in enumerate(by_count):
        found[name] = min(count, max(1, most // (len(by_count) - index)))
        most -= found[name]
    return found
