# SPDX-License-Identifier: Apache-2.0
"""Whether the first segments of a log are gone though nobody has deleted them.

A newer snapshot stands for their records, so the log works without them; but that is not how they went.
"""

from raftlog.log.epochs import LeaderEpochs
from raftlog.storage.recovery.recovery_point import StoredDurablePoint


def lost_start(stored: StoredDurablePoint, checkpoint: LeaderEpochs | None, base_offset: int) -> int | None:
    """Return the offset, inclusive, from which on records are missing below the first segment; None where none are.

    Who deletes the start of a log for a snapshot notes it: we do in the recovery point, before, and Kafka in
    ``leader-epoch-checkpoint``. Where both can be read, both must still say that the log starts below.

    Args:
        stored: what is known of the durable point.
        checkpoint: what ``leader-epoch-checkpoint`` says; None where it cannot be read.
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
