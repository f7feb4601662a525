# SPDX-License-Identifier: Apache-2.0
"""What keeps a replica's files from saying whether controllers start with them."""

from typing import NamedTuple

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.messages.control import KRaftVersionRecord
from raftlog.snapshot.paths import snapshot_name
from raftlog.tools.auditing.history.quorum_statements import log_statements, snapshot_statements
from raftlog.tools.state.state_search import StateSource
from raftlog.voters.kraft_version import KRaftVersion


class StateDamage(NamedTuple):
    """Why what was replayed is not all that a controller reads.

    Attributes:
        offset: up to which the files were read, exclusive.
        reason: what is wrong.
    """

    offset: int
    reason: str


def unknown_level(copy: StateSource, base: OffsetAndEpoch | None, end_offset: int) -> StateDamage | None:
    """Return the first level of kraft.version of a snapshot, and of the log from its end to an offset, that is unknown.

    Source: KRaftControlRecordStateMachine, KRaftVersion#fromFeatureLevel.
    """
    start = 0 if base is None else base.offset
    of_snapshot = [each.version for each in snapshot_statements(copy.log) if each.snapshot_id == base and each.version]
    of_log = [each for each in log_statements(copy.log) if start <= each.seen.offset < end_offset]
    places = [(start, "the snapshot", each.value) for each in of_snapshot]
    places += [(each.seen.offset, "the log", each.value) for each in of_log]
    for offset, where, value in places:
        if isinstance(value, KRaftVersionRecord) and value.kraft_version not in list(KRaftVersion):
            level = f"kraft.version {value.kraft_version}"
            return StateDamage(offset, f"{where} has {level} at offset {offset}, which is not known")
    return None


def damage_of(copy: StateSource, base: OffsetAndEpoch | None, end_offset: int) -> StateDamage | None:
    """Return what is wrong with the files of a state that begins with a snapshot and ends at an offset, or None.

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
    return unknown_level(copy, base, end_offset)
