# SPDX-License-Identifier: Apache-2.0
"""Decides when old snapshots, and the records that they cover, may be deleted.

What exceeds the retention is the log's to say, one snapshot at a time. The log then starts at its second oldest
snapshot, so a log with one snapshot has nothing to clean, and neither is done as long as a reader needs what is older.

Source: KafkaRaftClient.RaftMetadataLogCleanerManager, KafkaRaftLog#maybeClean.
"""

from collections.abc import Collection

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.seam.log_view import LogView
from raftlog.quorum.seam.snapshot_effects import CleanLog


def is_cleaning_due(replica: LocalReplica) -> bool:
    """Whether it is time to clean, and there is something to clean."""
    work = replica.snapshots
    return work.clean_ms <= replica.now_ms and work.cleaning is None and len(replica.log.state.snapshot_ids) > 1


def clean(replica: LocalReplica, being_read: Collection[OffsetAndEpoch]) -> None:
    """Have the log cleaned. The time of day decides which records are old; it does not say when they are deleted.

    Args:
        replica: this replica, whose cleaning is due.
        being_read: the snapshots that listeners are reading.
    """
    work, ids = replica.snapshots, replica.log.state.snapshot_ids
    if work.pins.allow(ids[1], replica.now_ms) and all(ids[1] <= each for each in being_read):
        work.cleaning = replica.work_on_log(lambda number: CleanLog(number, replica.wall_ms))
    else:
        work.clean_ms = replica.now_ms + replica.config.cleaning_interval_ms


def note_cleaned(replica: LocalReplica, number: int, before: LogView) -> None:
    """Go on with the next snapshot if the oldest one was deleted, and is not the last but one; otherwise wait."""
    work, log = replica.snapshots, replica.log.state
    if number != work.cleaning:
        return
    work.cleaning = None
    if log.snapshot_ids[:1] == before.state.snapshot_ids[:1] or len(log.snapshot_ids) < 2:
        work.clean_ms = replica.now_ms + replica.config.cleaning_interval_ms


def cleaning_deadline_ms(replica: LocalReplica) -> int | None:
    """Return when the log is cleaned next, in monotonic ms; None if there is nothing to clean."""
    work, ids = replica.snapshots, replica.log.state.snapshot_ids
    return work.clean_ms if work.cleaning is None and len(ids) > 1 else None
