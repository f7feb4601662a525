# SPDX-License-Identifier: Apache-2.0
"""What keeps a replica's files from saying whether controllers start with them."""

from typing import NamedTuple

from raftlog.snapshot.paths import snapshot_name
from raftlog.tools.state.state_search import StateSource


class StateDamage(NamedTuple):
    """Why what was replayed is not all that a controller reads.

    Attributes:
        offset: up to which the files were read, exclusive.
        reason: what is wrong.
    """

    offset: int
    reason: str


def damage_of(copy: StateSource, end_offset: int) -> StateDamage | None:
    """Return what is wrong with the files of a state that ends at an offset, or None.

    The newest snapshot counts if its end is in the state, or the state is all that the replica has: Kafka begins with
    it, whatever older ones there are.

    Source: KafkaRaftLog#recoverSnapshots, KafkaRaftClient#initialize.
    """
    newest = max(copy.log.snapshots_by_id, default=None)
    is_whole = end_offset >= copy.end
    is_unusable = newest is not None and newest.offset > 0 and newest not in copy.snapshots
    if newest is not None and is_unusable and (is_whole or newest.offset <= end_offset):
        what = "which controllers begin with, is damaged, or contradicts the log"
        return StateDamage(end_offset, f"the newest snapshot, {snapshot_name(newest)}, {what}")
    damaged = copy.replica.damaged_from
    if damaged is not None and damaged <= end_offset:
        return StateDamage(damaged, f"the log is damaged at offset {damaged}, or records are missing there")
    return None
