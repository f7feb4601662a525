# SPDX-License-Identifier: Apache-2.0
"""Leads an epoch: enters it in the log, appends, commits what a majority has flushed, and resigns.

The leader's own records count only once they are flushed. Followers may fetch them before.

Source: KafkaRaftClient#onBecomeLeader, #pollLeader, #maybeAppendBatches; LeaderState.
"""

from raftlog.invariants import invariant
from raftlog.quorum.high_watermark import advanced_high_watermark
from raftlog.quorum.leadership import Leadership
from raftlog.quorum.leading.appending import end_committed
from raftlog.quorum.leading.upgrading import initial_upgrade
from raftlog.quorum.leading.voter_change import expire_change, note_committed_voters, note_written_voters
from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.roles.roles import Leader
from raftlog.quorum.roles.transitions import LeadershipResigned
from raftlog.quorum.seam.effects import AppendAsLeader, EnterEpoch, FlushLog
from raftlog.records.batches.accumulator import BatchAccumulator
from raftlog.records.messages.control import ControlValue, KRaftVersionRecord, LeaderChangeMessage, Voter
from raftlog.records.messages.voters import voters_record
from raftlog.voters.voter_set import ReplicaKey, VoterNode, VoterSet
from raftlog.voters.voter_set_change import voter_set_change_problems


def begin_leading(replica: LocalReplica) -> None:
    """Enter the epoch in the log. What follows must wait until the log has done so."""
    now_ms, config = replica.now_ms, replica.config
    replica.forget_high_watermark()
    replica.leadership = leadership = Leadership(
        replica.epoch, begin_deadline_ms=now_ms, check_quorum_deadline_ms=now_ms + config.check_quorum_timeout_ms
    )
    leadership.upgrade = initial_upgrade(replica)
    leadership.entering = replica.work_on_log(lambda number: EnterEpoch(number, replica.epoch))


def note_log_work(replica: LocalReplica, number: int) -> None:
    """Go on after work on the log was reported: begin the epoch, or count what is flushed."""
    leadership = replica.leadership
    if leadership is None:
        return
    if number == leadership.entering and isinstance(replica.role, Leader):
        leadership.entering = None
        _begin_epoch(replica, leadership, replica.role)
    if number == leadership.flushing:
        leadership.flushing = None
    advance_high_watermark(replica, leadership)


def _begin_epoch(replica: LocalReplica, leadership: Leadership, role: Leader) -> None:
    """Write the records that start an epoch.

    The first leader after a bootstrap copies kraft.version and voters from the bootstrap snapshot into the log, and a
    leader whose entry in the voter set is outdated corrects it.
    """
    start, committed, before = replica.log.end.offset, replica.committed_offset, leadership.epoch_start_offset
    invariant(before is None, "epoch {} started at {} already", leadership.epoch, before)
    leadership.epoch_start_offset = start
    invariant(committed <= start, "epoch {} starts at {}, committed up to {}", leadership.epoch, start, committed)
    known = replica.log.control_records
    in_force = known.last_voter_set if known.voter_sets else VoterSet()
    leadership.batches = BatchAccumulator(
        leadership.epoch, start, linger_ms=replica.config.append_linger_ms, voters_in_force=in_force
    )
    values: list[ControlValue] = [
        LeaderChangeMessage(role.id, tuple(map(Voter, role.voters)), tuple(map(Voter, role.granting_voters)))
    ]
    if known.kraft_version.is_reconfiguration_supported:
        updated = known.last_voter_set.update_voter(replica.voter_node) or known.last_voter_set
        if voter_set_change_problems(in_force, updated):
            updated = known.last_voter_set
        if known.last_voter_set_offset == -1 or updated != known.last_voter_set:
            values.append(KRaftVersionRecord(int(known.kraft_version)))
            values.append(voters_record(updated))
    last_offset = leadership.batches.append_control_records(values, replica.wall_ms)
    if len(values) > 1:
        note_written_voters(leadership, last_offset, leadership.batches.next_offset)


def lead(replica: LocalReplica, leadership: Leadership) -> None:
    """Do what is due: resign, or write what was collected.

    While a flush is under way, appends collect: they are written together after it. So the records that wait for a slow
    disk are bounded by those that the accumulator holds.
    """
    is_alone = replica.voters.is_only_voter(replica.identity.key)
    if is_alone:
        # A second voter, when there is one, gets all of the time.
        leadership.check_quorum_deadline_ms = replica.now_ms + replica.config.check_quorum_timeout_ms
    is_expired = not is_alone and leadership.check_quorum_deadline_ms <= replica.now_ms
    if leadership.is_resignation_due or is_expired or replica.shutdown is not None:
        replica.change_role(LeadershipResigned(preferred_candidates(replica, leadership)))
        replica.forget_high_watermark()
        return
    expire_change(replica, leadership)
    batches = leadership.batches
    if batches is not None and is_append_due(replica):
        _append(replica, leadership, batches)


def is_append_due(replica: LocalReplica) -> bool:
    """Whether what was collected is to be written now."""
    leadership = replica.leadership
    batches = None if leadership is None or leadership.flushing is not None else leadership.batches
    return batches is not None and batches.needs_drain(replica.now_ms)


def _append(replica: LocalReplica, leadership: Leadership, batches: BatchAccumulator) -> None:
    with batches.drain() as drained:
        data = b"".join(bytes(each.data) for each in drained)
        first, before, end = drained[0].base_offset, leadership.handed_end_offset, drained[-1].last_offset + 1
        invariant(before <= first, "handed to the log up to {}, now offsets {}..{}", before, first, end)
        leadership.handed_end_offset = end
        invariant(first < end, "handed to the log up to {}, after offset {}", end, first)
    replica.work_on_log(lambda number: AppendAsLeader(number, data, leadership.epoch))
    leadership.flushing = replica.work_on_log(FlushLog)


def preferred_candidates(replica: LocalReplica, leadership: Leadership) -> tuple[ReplicaKey, ...]:
    """Return the other voters: the one that is to be the next leader, and then those with the longest logs first."""
    others = [node for node in replica.voters.voters.values() if node.voter_key.id != replica.identity.key.id]

    def place(node: VoterNode) -> tuple[bool, int, ReplicaKey]:
        known = leadership.progress_of(node)
        end_offset = -1 if known is None else known.end_offset
        return node.voter_key != leadership.preferred_successor, -end_offset, node.voter_key

    return tuple(node.voter_key for node in sorted(others, key=place))


def advance_high_watermark(replica: LocalReplica, leadership: Leadership) -> None:
    """Commit what a majority of voters has flushed. The leader counts only if it is a voter."""
    start = leadership.epoch_start_offset
    if start is None:
        return
    ends = []
    for node in replica.voters.voters.values():
        known = leadership.progress_of(node)
        if node.is_voter(replica.identity.key):
            ends.append(replica.log.flushed_offset)
        elif known is not None:
            ends.append(known.end_offset)
    before = -1 if replica.high_watermark is None else replica.high_watermark
    reached = advanced_high_watermark(before, ends, replica.voters.majority_size, start)
    if reached > before:
        replica.raise_high_watermark(reached)
        end_committed(replica, leadership)
        note_committed_voters(replica, leadership)


def note_fetch_of_voter(replica: LocalReplica, leadership: Leadership, key: ReplicaKey) -> None:
    """Note that a voter is in touch. A majority of those in force, the leader included, lets it lead on.

    Args:
        replica: this replica.
        leadership: of this replica.
        key: of the voter, as the voter set names it.

    The leader counts once, whatever comes in its name. Source: LeaderState#updateCheckQuorumForFollowingVoter.
    """
    voters = replica.voters
    if key.id == replica.identity.key.id:
        return
    leadership.fetched_voters.add(key)
    needed = voters.majority_size - (1 if replica.is_voter else 0)
    if sum(map(voters.is_voter, leadership.fetched_voters)) >= needed:
        leadership.fetched_voters.clear()
        leadership.check_quorum_deadline_ms = replica.now_ms + replica.config.check_quorum_timeout_ms
