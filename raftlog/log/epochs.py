# SPDX-License-Identifier: Apache-2.0
"""Where each leader epoch of a log starts: what a leader and a follower compare to find where their logs part."""

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from raftlog.errors import InvariantViolation
from raftlog.offsets import EpochEntry, OffsetAndEpoch


class LeaderEpochCache:
    """The epochs of a log, each with its first offset: both grow from entry to entry.

    It is kept in memory. What changes it says whether there was a change, so that the owner knows when to write the
    checkpoint file anew.

    Attributes:
        latest_epoch: the greatest epoch, or None.

    Args:
        entries: as a checkpoint file has them, oldest first.

    Raises:
        ValueError: an epoch or offset is negative, or does not grow.

    Source: LeaderEpochFileCache.
    """

    def __init__(self, entries: Iterable[EpochEntry] = ()) -> None:
        entries = tuple(entries)
        self._epochs = [entry.epoch for entry in entries]
        self._start_offsets = [entry.start_offset for entry in entries]
        self.latest_epoch: int | None = self._epochs[-1] if self._epochs else None
        if not self._grows():
            raise ValueError(f"epochs and their start offsets do not grow from 0 on: {entries[:20]}")

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Let an epoch start at an offset, unless it is the latest and has started at or below it.

        What contradicts that goes: entries at the end with an epoch, or a start, that is not below.

        Args:
            epoch: of a batch, or of a leader that has yet to write.
            start_offset: base offset of the batch, or the log end.

        Returns:
            Whether anything changed.

        Raises:
            ValueError: the epoch or the offset is negative.

        Source: LeaderEpochFileCache#assign.
        """
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"not an epoch and its start offset: {epoch}, {start_offset}")
        if self._epochs and self._epochs[-1] == epoch and self._start_offsets[-1] <= start_offset:
            return False
        self._keep_first(min(bisect_left(self._epochs, epoch), bisect_left(self._start_offsets, start_offset)))
        self._epochs.append(epoch)
        self._start_offsets.append(start_offset)
        self.latest_epoch = epoch
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> OffsetAndEpoch | None:
        """Return where an epoch ends in this log: the next one's start, or the log end for the latest.

        Args:
            epoch: that somebody asks for.
            log_end_offset: of this log, exclusive.

        Returns:
            The end offset, exclusive, with the greatest epoch here that is not above ``epoch``; below all epochs, the
            first one's start with ``epoch`` itself. None where the epoch is above all, negative, or there are none.

        Source: LeaderEpochFileCache#endOffsetFor.
        """
        above = bisect_right(self._epochs, epoch)
        if epoch >= 0 and above < len(self._epochs):
            return OffsetAndEpoch(self._start_offsets[above], self._epochs[above - 1] if above else epoch)
        return OffsetAndEpoch(log_end_offset, epoch) if epoch == self.latest_epoch else None

    def epoch_for_offset(self, offset: int) -> int | None:
        """Return the epoch that an offset was written in, or None below the first epoch's start.

        Source: LeaderEpochFileCache#epochForOffset.
        """
        above = bisect_right(self._start_offsets, offset)
        return self._epochs[above - 1] if above else None

    @property
    def earliest_entry(self) -> EpochEntry | None:
        """The first epoch with its start, or None."""
        return EpochEntry(self._epochs[0], self._start_offsets[0]) if self._epochs else None

    def previous_epoch(self, epoch: int | None = None) -> int | None:
        """Return the greatest epoch below one, or below the latest if none is given; None if there is none.

        Source: LeaderEpochFileCache#previousEpoch.
        """
        index = len(self._epochs) - 1 if epoch is None else bisect_left(self._epochs, epoch)
        return self._epochs[index - 1] if index > 0 else None

    def next_epoch(self, epoch: int) -> int | None:
        """Return the least epoch above one, or None.

        Source: LeaderEpochFileCache#nextEpoch.
        """
        index = bisect_right(self._epochs, epoch)
        return self._epochs[index] if index < len(self._epochs) else None

    def truncate_from_end(self, end_offset: int) -> bool:
        """Forget the epochs that start at or above an offset: the log ends there now.

        Returns:
            Whether anything changed.

        Source: LeaderEpochFileCache#truncateFromEndAsyncFlush.
        """
        return self._keep_first(bisect_left(self._start_offsets, end_offset))

    def truncate_from_start(self, start_offset: int) -> bool:
        """Forget what lies below an offset: the log starts there now, and so does the epoch of that offset.

        Returns:
            Whether anything changed.

        Source: LeaderEpochFileCache#truncateFromStartAsyncFlush.
        """
        last = bisect_right(self._start_offsets, start_offset) - 1
        if last < 0 or (last == 0 and self._start_offsets[0] == start_offset):
            return False
        del self._epochs[:last], self._start_offsets[:last]
        self._start_offsets[0] = start_offset
        return True

    def clear(self) -> bool:
        """Forget all epochs; return whether there were any."""
        return self._keep_first(0)

    def entries(self) -> tuple[EpochEntry, ...]:
        """Return all epochs with their starts, oldest first, as a checkpoint file has them."""
        return tuple(map(EpochEntry, self._epochs, self._start_offsets))

    def __len__(self) -> int:
        return len(self._epochs)

    def check_invariants(self) -> None:
        """Check what must hold after every operation: epochs and their starts grow from 0 on.

        Raises:
            InvariantViolation: they do not.
        """
        latest_epoch = self._epochs[-1] if self._epochs else None
        if len(self._epochs) != len(self._start_offsets) or self.latest_epoch != latest_epoch or not self._grows():
            raise InvariantViolation(f"epochs and their start offsets do not grow: {self.entries()[:20]}")

    def _keep_first(self, count: int) -> bool:
        is_change = count < len(self._epochs)
        del self._epochs[count:], self._start_offsets[count:]
        self.latest_epoch = self._epochs[-1] if self._epochs else None
        return is_change

    def _grows(self) -> bool:
        return all(
            min(column, default=0) >= 0 and all(one < other for one, other in itertools.pairwise(column))
            for column in (self._epochs, self._start_offsets)
        )
