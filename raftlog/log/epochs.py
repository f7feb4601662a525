# SPDX-License-Identifier: Apache-2.0
"""Where each leader epoch of a log starts: leader and follower compare this to find where their logs diverge."""

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from operator import attrgetter
from typing import Final, Self

import attrs

from raftlog.offsets import EpochEntry, OffsetAndEpoch

_EPOCH: Final = attrgetter("epoch")
_START_OFFSET: Final = attrgetter("start_offset")


def _in_order(entries: Iterable[EpochEntry]) -> tuple[EpochEntry, ...]:
    return tuple(entries)


def _check_growing(_: object, __: object, entries: tuple[EpochEntry, ...]) -> None:
    for column in ([each.epoch for each in entries], [each.start_offset for each in entries]):
        if column and (column[0] < 0 or any(one >= other for one, other in itertools.pairwise(column))):
            raise ValueError(f"epochs or start offsets are negative or not strictly increasing: {entries[:20]}")


@attrs.frozen
class LeaderEpochs:
    """The epochs of a log, each with its first offset. Both increase strictly from entry to entry.

    An immutable value: each change returns a new object, or this very object if nothing changes. So a log can share it,
    and can compare with ``is`` to learn whether its checkpoint file must be written again.

    Attributes:
        entries: oldest first, as in the checkpoint file.
        latest_epoch: the greatest epoch, or None.

    Raises:
        ValueError: an epoch or offset is negative, or not above the one before it.

    Source: LeaderEpochFileCache.
    """

    entries: tuple[EpochEntry, ...] = attrs.field(default=(), converter=_in_order, validator=_check_growing)
    latest_epoch: int | None = attrs.field(
        init=False,
        eq=False,
        repr=False,
        default=attrs.Factory(lambda self: self.entries[-1].epoch if self.entries else None, takes_self=True),
    )

    def with_epoch(self, epoch: int, start_offset: int) -> Self:
        """Return the epochs after one more has started; as ``with_epochs``."""
        return self.with_epochs((EpochEntry(epoch, start_offset),))

    def with_epochs(self, entries: Iterable[EpochEntry]) -> Self:
        """Return the epochs after some more have started, in that order.

        An entry changes nothing if it has the latest epoch, and that started at or below the entry's offset. Otherwise
        it is appended, after the entries that contradict it are dropped: those whose epoch or start offset is not
        lower.

        Args:
            entries: epochs with their first offsets, of batches, or of a leader that has not written yet.

        Raises:
            ValueError: an epoch or an offset is negative.

        Source: LeaderEpochFileCache#assign.
        """
        known: list[EpochEntry] | None = None
        latest = self.entries[-1] if self.entries else None
        for entry in entries:
            if entry.epoch < 0 or entry.start_offset < 0:
                raise ValueError(f"not an epoch and its start offset: {entry.epoch}, {entry.start_offset}")
            if latest is not None and latest.epoch == entry.epoch and latest.start_offset <= entry.start_offset:
                continue
            known = list(self.entries) if known is None else known
            by_epoch = bisect_left(known, entry.epoch, key=_EPOCH)
            del known[min(by_epoch, bisect_left(known, entry.start_offset, key=_START_OFFSET)) :]
            known.append(entry)
            latest = entry
        return self if known is None else attrs.evolve(self, entries=known)

    def truncated_from_end(self, end_offset: int) -> Self:
        """Return the epochs of the log after its end moved to an offset: those that start below it.

        Source: LeaderEpochFileCache#truncateFromEndAsyncFlush.
        """
        count = bisect_left(self.entries, end_offset, key=_START_OFFSET)
        return self if count == len(self.entries) else attrs.evolve(self, entries=self.entries[:count])

    def truncated_from_start(self, start_offset: int) -> Self:
        """Return the epochs of the log after its start moved to an offset; the epoch in force there starts there then.

        Source: LeaderEpochFileCache#truncateFromStartAsyncFlush.
        """
        last = bisect_right(self.entries, start_offset, key=_START_OFFSET) - 1
        if last < 0 or (last == 0 and self.entries[0].start_offset == start_offset):
            return self
        first = EpochEntry(self.entries[last].epoch, start_offset)
        return attrs.evolve(self, entries=(first, *self.entries[last + 1 :]))

    def end_offset_for(self, epoch: int, log_end_offset: int) -> OffsetAndEpoch | None:
        """Return where an epoch ends in this log: the next one's start, or the log end for the latest.

        Args:
            epoch: the epoch asked for.
            log_end_offset: of this log, exclusive.

        Returns:
            The end offset, exclusive, with the greatest epoch here that is not above ``epoch``. If ``epoch`` is below
            all epochs, the first one's start with ``epoch`` itself. None if ``epoch`` is above all or negative, or if
            there are no epochs.

        Source: LeaderEpochFileCache#endOffsetFor.
        """
        above = bisect_right(self.entries, epoch, key=_EPOCH)
        if epoch >= 0 and above < len(self.entries):
            return OffsetAndEpoch(self.entries[above].start_offset, self.entries[above - 1].epoch if above else epoch)
        return OffsetAndEpoch(log_end_offset, epoch) if epoch == self.latest_epoch else None

    def epoch_for_offset(self, offset: int) -> int | None:
        """Return the epoch that an offset was written in, or None below the first epoch's start.

        Source: LeaderEpochFileCache#epochForOffset.
        """
        above = bisect_right(self.entries, offset, key=_START_OFFSET)
        return self.entries[above - 1].epoch if above else None

    @property
    def earliest_entry(self) -> EpochEntry | None:
        """The first epoch with its start, or None."""
        return self.entries[0] if self.entries else None

    def previous_epoch(self, epoch: int | None = None) -> int | None:
        """Return the greatest epoch below one, or below the latest if none is given; None if there is none.

        Source: LeaderEpochFileCache#previousEpoch.
        """
        index = len(self.entries) - 1 if epoch is None else bisect_left(self.entries, epoch, key=_EPOCH)
        return self.entries[index - 1].epoch if index > 0 else None

    def next_epoch(self, epoch: int) -> int | None:
        """Return the least epoch above one, or None.

        Source: LeaderEpochFileCache#nextEpoch.
        """
        index = bisect_right(self.entries, epoch, key=_EPOCH)
        return self.entries[index].epoch if index < len(self.entries) else None

    def __len__(self) -> int:
        return len(self.entries)
