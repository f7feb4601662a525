# SPDX-License-Identifier: Apache-2.0
"""The state of a log that decisions depend on, as one immutable value."""

from collections.abc import Iterable

import attrs

from raftlog.log.epochs import LeaderEpochs
from raftlog.offsets import OffsetAndEpoch

SnapshotIds = tuple[OffsetAndEpoch, ...]
"""The ids of the frozen snapshots of a log, each once, oldest first: by epoch, then by end offset."""


def snapshot_ids_of(snapshot_ids: Iterable[OffsetAndEpoch]) -> SnapshotIds:
    """Return snapshot ids as ``SnapshotIds``: sorted, without duplicates."""
    return tuple(sorted(set(snapshot_ids)))


def last_fetched_epoch(epochs: LeaderEpochs, snapshot_ids: SnapshotIds, start_offset: int) -> int:
    """Return the latest epoch of a log; without records, that of the snapshot that the log starts from, or 0.

    Source: KafkaRaftLog#lastFetchedEpoch.
    """
    latest = epochs.latest_epoch
    if latest is not None:
        return latest
    return max((each.epoch for each in snapshot_ids if each.offset == start_offset), default=0)


@attrs.frozen
class LogState:
    """A log at one moment. It does not change with the log, so it can be kept, compared and sent to another thread.

    Attributes:
        start_offset: inclusive.
        end_offset: exclusive.
        high_watermark: exclusive.
        epochs: where each epoch starts.
        snapshot_ids: of the frozen snapshots, oldest first.
    """

    start_offset: int
    end_offset: int
    high_watermark: int
    epochs: LeaderEpochs
    snapshot_ids: SnapshotIds

    @property
    def last_fetched_epoch(self) -> int:
        """The latest epoch; without records, that of the snapshot that the log starts from, or 0."""
        return last_fetched_epoch(self.epochs, self.snapshot_ids, self.start_offset)

    @property
    def earliest_snapshot_id(self) -> OffsetAndEpoch | None:
        """The id of the oldest snapshot, or None."""
        return self.snapshot_ids[0] if self.snapshot_ids else None

    @property
    def latest_snapshot_id(self) -> OffsetAndEpoch | None:
        """The id of the newest snapshot, or None."""
        return self.snapshot_ids[-1] if self.snapshot_ids else None
