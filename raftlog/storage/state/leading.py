# SPDX-License-Identifier: Apache-2.0
"""Begins an epoch as its leader: the election state is durable before the log enters the epoch.

In the other order, a crash in between would leave a log of an epoch that ``quorum-state`` does not know. Such a replica
may have forgotten a vote, and would no longer be allowed to vote (DECISIONS.md 18).

Source: KafkaRaftClient#onBecomeLeader, which stores the election state before it calls initializeLeaderEpoch.
"""

from raftlog.disk_work import DiskResult, DiskWork
from raftlog.errors import IllegalTransitionError
from raftlog.file_system import FileSystem
from raftlog.log.replicated_log import ReplicatedLog
from raftlog.quorum.election_states import was_elected
from raftlog.records.batches.accumulator import BatchAccumulator
from raftlog.records.files.quorum_state import UNKNOWN_ID, QuorumStateData
from raftlog.snapshot.paths import BOOTSTRAP_SNAPSHOT_ID
from raftlog.storage.state.quorum_state_store import QuorumStateStore


def open_quorum_state(file_system: FileSystem, directory: str, log: ReplicatedLog) -> QuorumStateStore:
    """Open the election state of the replica that has a log.

    Args:
        file_system: where the directory is.
        directory: of the log.
        log: the open log. If it is not empty, or is damaged, the replica has taken part in elections.

    Raises:
        StorageError: as for ``QuorumStateStore.open``.
    """
    has_records = log.end_offset.offset > 0 or log.latest_snapshot_id not in (None, BOOTSTRAP_SNAPSHOT_ID)
    has_log = has_records or log.quarantine is not None
    return QuorumStateStore.open(file_system, directory, has_log=has_log, last_epoch=log.last_fetched_epoch)


def lead_epoch(
    log: ReplicatedLog, quorum_state: QuorumStateStore, state: QuorumStateData, *, is_forced: bool = False
) -> BatchAccumulator:
    """Begin an epoch as its leader, and return an accumulator for the leader's records, from the log end on.

    The first record must be a LeaderChange. The accumulator has default settings; for others, make a
    ``BatchAccumulator`` of the same epoch and base offset.

    Args:
        log: the replica's log.
        quorum_state: of the same replica.
        state: with the epoch, and this replica as its leader. The replica was elected, or is the only voter.
        is_forced: lead even if a vote may be forgotten, because an operator decides so. This does not allow it to vote.

    Raises:
        ValueError: the state names no leader.
        IllegalTransitionError: the replica may have forgotten a vote, and has no recorded vote for itself in this
            epoch. Nothing was changed.
        QuarantinedLogError, FencedEpochError, UnknownEpochError: as for ``ReplicatedLog.initialize_leader_epoch``.
        FencedEpochError, IllegalTransitionError: as for ``QuorumStateStore.write``.
        WorkUnderWayError: the log, or the election state, has other work under way.
        OutOfSpaceError, StorageError: the disk failed. The election state may be written, and the epoch not: then the
            replica leads an epoch in which there is no record.
    """
    return prepare_to_lead(log, quorum_state, state, is_forced=is_forced).complete().value


def prepare_to_lead(
    log: ReplicatedLog, quorum_state: QuorumStateStore, state: QuorumStateData, *, is_forced: bool = False
) -> DiskWork[DiskResult[BatchAccumulator]]:
    """Prepare ``lead_epoch``; until it is finished, appends and writes of another election state are refused.

    If the log is in the epoch already, as after an earlier ``lead_epoch``, appends continue.

    Raises:
        ValueError, QuarantinedLogError, FencedEpochError, UnknownEpochError, IllegalTransitionError, WorkUnderWayError:
            as for ``lead_epoch``. Nothing was changed.
    """
    if state.leader_id == UNKNOWN_ID:
        raise ValueError(f"epoch {state.leader_epoch} without a leader")
    if not (quorum_state.may_vote or was_elected(state, quorum_state.state) or is_forced):
        raise IllegalTransitionError(
            f"cannot lead epoch {state.leader_epoch}: this replica may have forgotten a vote, and no vote for itself in"
            " this epoch is recorded"
        )
    entering = log.prepare_leader_epoch(state.leader_epoch)
    try:
        voting = quorum_state.prepare_write(state)
    except BaseException as error:
        entering.cancel(error)
        raise

    def begin(entered: DiskResult[None]) -> DiskResult[BatchAccumulator]:
        batches = BatchAccumulator(state.leader_epoch, log.end_offset.offset)
        return DiskResult(batches, entered.epoch, entered.generation)

    return entering.follow(voting).then(begin)
