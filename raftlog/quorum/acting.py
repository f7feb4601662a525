# SPDX-License-Identifier: Apache-2.0
"""Lets the role do what is due, and says when it must be done next.

Source: KafkaRaftClient#pollCurrentState.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import attrs

from raftlog.invariants import invariant
from raftlog.offsets import MAX_EPOCH
from raftlog.quorum.elections.announcements import announce_leadership, announce_resignation
from raftlog.quorum.elections.shutting_down import abandon_shutdown, complete_shutdown
from raftlog.quorum.elections.standing import begin_election, stand_for_election
from raftlog.quorum.following.fetching import fetch_from_bootstrap, fetch_from_leader, flush_as_voter
from raftlog.quorum.following.joining import join_voters, may_join
from raftlog.quorum.following.updating_voter import needs_update, update_voter
from raftlog.quorum.leading.appending import end_uncommitted
from raftlog.quorum.leading.leading_epoch import begin_leading, lead
from raftlog.quorum.leading.reading import advance_reads, end_reads
from raftlog.quorum.leading.serving import answer_expired, end_leading
from raftlog.quorum.listening.delivering import deliver, next_resumption_ms, snapshots_being_read
from raftlog.quorum.listening.leader_changes import tell_leader
from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.roles.roles import Candidate, Follower, Leader, Prospective, Resigned, Role, Unattached
from raftlog.quorum.roles.transitions import ElectionTimedOut, FetchTimedOut
from raftlog.quorum.snapshots.cleaning import clean, cleaning_deadline_ms, is_cleaning_due

_MAX_ROLES_PER_INPUT: Final = 8
"""How many roles an input can lead through: from follower to leader, for the only voter, are three."""


def act(replica: LocalReplica) -> None:
    """Let the role do what is due, and the roles that follow from it; then give the listeners what is new to them."""
    changes, is_changed = 0, True
    while is_changed and replica.halt_reason is None:
        before = replica.role
        keep_leadership(replica)
        if replica.shutdown is not None and complete_shutdown(replica):
            break
        if is_cleaning_due(replica):
            clean(replica, snapshots_being_read(replica))
        if replica.has_unflushed_records:
            flush_as_voter(replica)
        _ACTIONS[type(replica.role)](replica)
        after = replica.role
        is_changed = after is not before and (type(after) is not type(before) or after.epoch != before.epoch)
        changes += is_changed
        invariant(changes <= _MAX_ROLES_PER_INPUT, "{} changes of the role, now {}", changes, after)
    if replica.halt_reason is None:
        if replica.listeners:
            deliver(replica)
            tell_leader(replica)
        return
    if replica.leadership is not None:
        end_uncommitted(replica, replica.leadership)
        end_reads(replica, replica.leadership)
    abandon_shutdown(replica)


def deadline_ms(replica: LocalReplica) -> int | None:
    """Return when something is due next, in monotonic ms; None if there is nothing to wait for."""
    if replica.halt_reason is not None:
        return None
    now_ms, next_ms = replica.now_ms, None
    for due_ms in (
        _role_deadline_ms(replica),
        replica.connections.next_change_ms(now_ms),
        next_resumption_ms(replica) if replica.listeners else None,
        cleaning_deadline_ms(replica),
        replica.snapshots.pause_until_ms,
        replica.refusals.pause_until_ms,
        replica.refusals.stand_ms,
        None if replica.shutdown is None else replica.shutdown.deadline_ms,
    ):
        if due_ms is not None and due_ms > now_ms and (next_ms is None or due_ms < next_ms):
            next_ms = due_ms
    return next_ms


def _with_election_deadline(replica: LocalReplica, role: Unattached) -> Unattached:
    """Give a voter without an election deadline one: it has lost its leader before it knew that it is a voter."""
    if role.election_deadline_ms is None and replica.is_voter:
        deadline_ms = replica.surroundings().new_election_deadline_ms()
        replica.role = role = attrs.evolve(role, election_deadline_ms=deadline_ms)
    return role


def keep_leadership(replica: LocalReplica) -> None:
    """Begin to lead after an election was won, and end it after the role or the epoch has changed."""
    leadership, is_leader = replica.leadership, isinstance(replica.role, Leader)
    if leadership is not None and not (is_leader and leadership.epoch == replica.epoch):
        end_leading(replica)
    if is_leader and replica.leadership is None:
        begin_leading(replica)


def _fetch(replica: LocalReplica, role: Follower) -> None:
    """Fetch. A request about the voters that is due goes first: no Fetch is sent until the leader can be sent that.

    While the log is worked on, neither is sent: the leader may have been silent for too long, which is looked at after.
    """
    if role.update_deadline_ms <= replica.now_ms and replica.is_log_at_rest:
        is_joining = may_join(replica)
        if needs_update(replica, role) and not update_voter(replica, role):
            return
        if is_joining and not join_voters(replica, role):
            return
        if replica.is_voter or is_joining:
            deadline = replica.now_ms + replica.config.update_voter_period_ms
            replica.role = role = attrs.evolve(role, update_deadline_ms=deadline)
    if not replica.is_fetching_paused:
        fetch_from_leader(replica, role)


def _look_for_leader(replica: LocalReplica) -> None:
    """Begin an election, if the time has come, or ask bootstrap servers for a leader."""
    role = replica.role
    if replica.shutdown is not None or not isinstance(role, Unattached):
        return
    role = _with_election_deadline(replica, role)
    deadline_ms = role.election_deadline_ms
    if deadline_ms is not None and deadline_ms <= replica.now_ms and replica.may_begin_election:
        begin_election(replica, ElectionTimedOut())
    elif not replica.is_fetching_paused:
        fetch_from_bootstrap(replica)


def _follow(replica: LocalReplica) -> None:
    """Begin an election, if the leader was silent for too long, or fetch."""
    role = replica.role
    if replica.shutdown is not None or not isinstance(role, Follower):
        return
    if role.fetch_deadline_ms <= replica.now_ms and replica.may_begin_election:
        begin_election(replica, FetchTimedOut())
    else:
        _fetch(replica, role)


def _lead(replica: LocalReplica) -> None:
    """Answer, write, commit and announce what is due; resign if that is due."""
    leadership = replica.leadership
    if leadership is None:
        return
    answer_expired(replica, leadership)
    lead(replica, leadership)
    if isinstance(replica.role, Leader):
        advance_reads(replica, leadership)
        announce_leadership(replica, leadership)


def _resign(replica: LocalReplica) -> None:
    """Tell the voters that they need a new leader, and take part in its election after a while."""
    role = replica.role
    if not isinstance(role, Resigned):
        return
    announce_resignation(replica, role)
    if role.election_deadline_ms <= replica.now_ms and role.epoch < MAX_EPOCH and replica.shutdown is None:
        replica.change_role(ElectionTimedOut())


_ACTIONS: Final[Mapping[type[Role], Callable[[LocalReplica], None]]] = MappingProxyType(
    {
        Unattached: _look_for_leader,
        Prospective: stand_for_election,
        Candidate: stand_for_election,
        Follower: _follow,
        Leader: _lead,
        Resigned: _resign,
    }
)
"""By role: what it does by itself."""


def _role_deadline_ms(replica: LocalReplica) -> int | None:
    """Return when the role times out; None if it does not."""
    match replica.role:
        case Leader():
            return _leader_deadline_ms(replica)
        case Follower():
            return replica.role.fetch_deadline_ms if replica.may_begin_election else None
    return replica.role.election_deadline_ms


def _leader_deadline_ms(replica: LocalReplica) -> int | None:
    """Return when a leader has something to do: resign, announce itself, write, or answer a Fetch or a read."""
    leadership = replica.leadership
    if leadership is None:
        return None
    due = [leadership.begin_deadline_ms]
    due += [each for each in (leadership.parked_until_ms, leadership.reads.next_timeout_ms) if each is not None]
    if not replica.voters.is_only_voter(replica.identity.key):
        due.append(leadership.check_quorum_deadline_ms)
    if leadership.voter_change is not None:
        due.append(leadership.voter_change.deadline_ms)
    batches = leadership.batches
    left = None if batches is None else batches.time_until_drain_ms(replica.now_ms)
    if left is not None:
        due.append(replica.now_ms + left)
    return min((each for each in due if each > replica.now_ms), default=None)
