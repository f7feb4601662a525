# SPDX-License-Identifier: Apache-2.0
"""Detects that the first segments of a log are missing although the log did not delete them.

If a newer snapshot covers their records, the log works without them, but the loss must be reported.
"""

from raftlog.log.epochs import LeaderEpochs
from raftlog.storage.recovery.recovery_point import StoredDurablePoint


def lost_start(stored: StoredDurablePoint, checkpoint: LeaderEpochs | None, base_offset: int) -> int | None:
    """Return the offset, inclusive, from which on records are missing below the first segment; None if none are.

    A log that deletes its start records that: ours in the recovery point, beforehand, and Kafka's in
    ``leader-epoch-checkpoint``. If both files can be read, both must say that the log starts lower.

    Args:
        stored: the stored durable point.
        checkpoint: the content of ``leader-epoch-checkpoint``; None if it cannot be read.
        base_offset: of the first segment.
    """
    starts = []
    if stored.recovery_point is not None:
        starts.append(stored.recovery_point.log_start_offset)
    if checkpoint is not None:
        earliest = checkpoint.earliest_entry
        starts.append(base_offset if earliest is None else earliest.start_offset)
    if not starts or max(starts) >= base_offset:
        return None
    return max(starts)
