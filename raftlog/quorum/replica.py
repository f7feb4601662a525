# SPDX-License-Identifier: Apache-2.0
"""The state of the consensus core, which its modules share: the role, views of the log, requests and effects.

Only ``change_role`` moves to another role. It stores what must not be forgotten, and gives up the requests of the old
role.

Source: QuorumState, KafkaRaftClient.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

import attrs

from raftlog.invariants import invariant
from raftlog.log.decisions import proven_end_offset
from raftlog.offsets import MAX_EPOCH
from raftlog.quorum.connections import Connections
from raftlog.quorum.leadership import Leadership
from raftlog.quorum.listener_context import ListenerContext
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.refusals.log_refusals import LogRefusals
from raftlog.quorum.roles.draws import Draws
from raftlog.quorum.roles.roles import (
    Follower,
    KnownLeader,
    Leader,
    Prospective,
    Resigned,
    Role,
    election_state,
    leader_id,
)
from raftlog.quorum.roles.transitions import RoleEvent, Surroundings, VoteGiven, next_role
from raftlog.quorum.seam.effects import Destination, LogWork, RaiseHighWatermark
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.quorum.seam.log_view import ControlRecordView, LogView
from raftlog.quorum.seam.outbox import Outbox
from raftlog.quorum.seam.snapshot_effects import AbandonFetchedSnapshot
from raftlog.quorum.snapshot_work import SnapshotWork
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.records.messages.raft.raft_messages import RaftRequest
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import Endpoints, HostPort, VoterNode, VoterSet

_NEVER: Final = 2**63
"""An offset that is not reached."""


@attrs.frozen
class SentRequest:
    """A request that awaits its response.

    Attributes:
        number: of its effect.
        destination: where it was sent.
        message: the request.
        epoch: of the sender at that time.
    """

    number: int
    destination: Destination
    message: RaftRequest
    epoch: int


@attrs.frozen
class Shutdown:
    """A shutdown that was asked for.

    Attributes:
        number: that ``Raft.shutdown`` returned.
        deadline_ms: when the replica stops, whatever its quorum needs.
        is_complete: whether it has stopped.
        is_abandoned: whether the replica had halted, or has halted since, for another reason.
    """

    number: int
    deadline_ms: int
    is_complete: bool = False
    is_abandoned: bool = False

    def completed(self) -> "Shutdown":
        """Return this shutdown as a complete one."""
        return attrs.evolve(self, is_complete=True)

    def abandoned(self) -> "Shutdown":
        """Return this shutdown as one that has ended because the replica has halted."""
        return attrs.evolve(self, is_abandoned=True)


@attrs.define(eq=False)
class LocalReplica:
    """One replica. Use it from one thread at a time: it takes no locks.

    Attributes:
        identity: who this replica is.
        config: the timeouts.
        draws: the random choices.
        role: the current one.
        log: the last view of the log.
        stored: the election state that was handed out last, or was found on disk; None for a fresh replica.
        may_vote: False if this replica may have forgotten a vote: it then neither votes nor stands for election.
        outbox: the effects.
        connections: which replicas may be sent a request.
        now_ms: monotonic time.
        wall_ms: time of day, in ms since the Unix epoch.
        snapshots: which snapshots must stay, and what is being made of them.
        high_watermark: exclusive; None while it is not known, as for a leader that has committed nothing yet.
        committed_offset: the highest high watermark that this replica has known, exclusive.
        log_work: the numbers of effects on the log that have not been reported yet, in their order.
        sent: the requests that await a response, by the number of their effect.
        fetched_high_watermark: the leader's, from the last Fetch in this role; -1 if it is not known.
        truncation: the number of the last truncation's effect, and why it was asked for; None if there was none.
        leadership: what this replica knows as a leader; None if it is none.
        refusals: what the log has refused since it last took records.
        listeners: by number, those that are still reading after they were unregistered included.
        has_been_voter: whether this replica, with its directory id, is known to have been a committed voter.
        shutdown: the one that was asked for, or None.
        disowned_epoch: the last epoch that this replica was said to lead, and does not know of; -1 if there is none.
        halt_reason: why this replica has stopped for good, or None.
    """

    identity: ReplicaIdentity
    config: QuorumConfig
    draws: Draws
    role: Role
    log: LogView
    stored: QuorumStateData | None
    may_vote: bool
    outbox: Outbox
    connections: Connections
    now_ms: int
    wall_ms: int
    snapshots: SnapshotWork
    high_watermark: int | None = None
    has_been_voter: bool = False
    committed_offset: int = attrs.field(init=False)
    log_work: deque[int] = attrs.field(factory=deque, init=False)
    sent: dict[int, SentRequest] = attrs.field(factory=dict, init=False)
    fetched_high_watermark: int = attrs.field(default=-1, init=False)
    truncation: tuple[int, str] | None = attrs.field(default=None, init=False)
    leadership: Leadership | None = attrs.field(default=None, init=False)
    refusals: LogRefusals = attrs.field(factory=LogRefusals, init=False)
    listeners: dict[int, ListenerContext] = attrs.field(factory=dict, init=False)
    _membership_of: ControlRecordView | None = attrs.field(default=None, init=False)
    _next_voters_offset: int = attrs.field(default=-1, init=False)
    shutdown: Shutdown | None = attrs.field(default=None, init=False)
    disowned_epoch: int = attrs.field(default=-1, init=False)
    halt_reason: str | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.committed_offset = self.high_watermark or 0
        self._note_membership()

    @property
    def epoch(self) -> int:
        """The latest epoch known."""
        return self.role.epoch

    @property
    def voters(self) -> VoterSet:
        """The voter set in force at the log end, committed or not."""
        return self.log.control_records.last_voter_set

    @property
    def least_end_offset(self) -> int:
        """The end, exclusive, of what is known to be committed: no truncation may leave the log shorter."""
        return max(self.committed_offset, proven_end_offset(self.log.state))

    @property
    def is_voter(self) -> bool:
        """Whether this replica is a voter."""
        return self.voters.is_voter(self.identity.key)

    @property
    def voter_node(self) -> VoterNode:
        """This replica's entry in a voter set."""
        identity = self.identity
        return VoterNode(identity.key, identity.endpoints, identity.supported_kraft_versions)

    @property
    def kraft_version(self) -> KRaftVersion:
        """The level in force at the log end, or that of an upgrade that this replica, as leader, is writing.

        Source: KafkaRaftClient#kraftVersion.
        """
        requested = None if self.leadership is None else self.leadership.upgrade.requested
        return self.log.control_records.kraft_version if requested is None else requested

    @property
    def fetching_id(self) -> int:
        """The id in requests for records and snapshots: -1, which no leader counts, if this replica cannot vote.

        Else a leader would take it for one of those that elect the next one.
        """
        return self.identity.key.id if self.may_stand else -1

    @property
    def may_stand(self) -> bool:
        """Whether this replica may stand for election, or vote: it has forgotten no vote, and lost no record."""
        return self.may_vote and not self.log.is_quarantined

    @property
    def may_begin_election(self) -> bool:
        """Whether this replica may ask for votes now: it is a voter, there are epochs left, and its log is at rest.

        Not while it shuts down, and not for a while after the disk was full.
        """
        is_possible = self.may_stand and self.is_voter and self.epoch < MAX_EPOCH
        is_ready = self.is_log_at_rest and not self.has_unflushed_records and self.refusals.stand_ms <= self.now_ms
        return is_possible and is_ready and self.shutdown is None

    @property
    def leader_id(self) -> int | None:
        """The id of the leader, which may be this replica, or None."""
        return leader_id(self.role)

    @property
    def leader_endpoints(self) -> Endpoints:
        """Where the leader listens; empty if that is not known."""
        match self.role:
            case Leader() | Resigned():
                return self.identity.endpoints
            case Follower():
                return self.role.leader.endpoints
            case Prospective() if self.role.leader is not None:
                return self.role.leader.endpoints
        return Endpoints()

    def leader_address(self, listener: str) -> tuple[int, HostPort] | None:
        """Return id and address of the leader at a listener; None if either is not known."""
        leader, address = self.leader_id, self.leader_endpoints.address(listener)
        return None if leader is None or address is None else (leader, address)

    def known_leader(self, leader: int | None, endpoints: Endpoints) -> KnownLeader | None:
        """Return a leader that was named, with the given endpoints, or else those in the voter set."""
        if leader is None:
            return None
        found = endpoints or self.voters.listeners(leader)
        return KnownLeader(leader, found) if found else None

    def surroundings(self) -> Surroundings:
        """Return what the next transition depends on."""
        return Surroundings(self.identity.key, self.voters, self.config, self.draws, self.now_ms)

    def change_role(self, event: RoleEvent) -> None:
        """Move to the role that follows from an event, and have the new election state stored if it has changed.

        A replica that asks for pre-votes, or resigns, promises nothing new: what is stored stays as it is.

        Raises:
            IllegalTransitionError: the event must not happen in this role. Nothing has changed.
        """
        role = next_role(self.role, event, self.surroundings())
        self.abandon_snapshot_fetch()
        self.role = role
        if isinstance(event, VoteGiven) or not isinstance(self.role, Prospective | Resigned):
            self.store_election_state()
        if not isinstance(event, VoteGiven):
            self.connections.reset()
            self.sent.clear()
            self.fetched_high_watermark = -1
            self.refusals.appending = None

    def store_election_state(self) -> None:
        """Have the election state of the role stored, unless it was the last one to be stored."""
        voter_ids = tuple(sorted(self.voters.voter_ids))
        state = election_state(self.role, self.log.control_records.kraft_version, voter_ids)
        if state != self.stored:
            self.stored = state
            self.outbox.store(state)

    def send(self, destination: Destination, message: RaftRequest) -> None:
        """Send a request to a replica that is ready for it."""
        number = self.outbox.request(destination, message)
        self.connections.sent(destination.id, number, self.now_ms)
        for each in list(self.sent.values()):
            if not self.connections.is_expected(each.destination.id, each.number):
                del self.sent[each.number]  # It was given up: an answer would be ignored.
        self.sent[number] = SentRequest(number, destination, message, self.epoch)

    @property
    def is_log_at_rest(self) -> bool:
        """Whether the view of the log is up to date, because no work on the log is under way."""
        return not self.log_work

    @property
    def has_unflushed_records(self) -> bool:
        """Whether the log may lose records in a crash."""
        return self.log.flushed_offset < self.log.state.end_offset

    @property
    def is_fetching_paused(self) -> bool:
        """Whether nothing is to be fetched for now, because a snapshot was refused, or records were."""
        return self.now_ms < self.snapshots.pause_until_ms or self.now_ms < self.refusals.pause_until_ms

    def check_log_report(self, number: int, log: LogView) -> None:
        """Check that a report on the log is the one that is due, with a view of the log as it is now.

        Raises:
            ValueError: it is late, or too early.
        """
        if not self.log_work or self.log_work[0] != number:
            raise ValueError(f"effect {number} is not the work on the log to be done next: {list(self.log_work)}")
        if log.is_older_than(self.log):
            raise ValueError(f"effect {number} is reported with a view that is older than the last one: {log}")

    def work_on_log(self, make: Callable[[int], LogWork]) -> int:
        """Have something done to the log, and return the effect's number; the driver reports it with a new view."""
        number = self.outbox.on_log(make).number
        self.log_work.append(number)
        return number

    def abandon_snapshot_fetch(self) -> None:
        """Have what was fetched of a snapshot removed, if one is being fetched."""
        if isinstance(self.role, Follower) and self.role.fetching_snapshot is not None:
            self.role = attrs.evolve(self.role, fetching_snapshot=None)
            self.work_on_log(AbandonFetchedSnapshot)

    def raise_high_watermark(self, offset: int) -> None:
        """Raise the high watermark to an offset, exclusive, but not above the log end; a lower one is ignored."""
        end, before = self.log.state.end_offset, self.high_watermark
        known = min(offset, end)
        if before is not None and known <= before:
            return
        invariant(before is None or before <= end, "high watermark was {}, log end {}", before, end)
        self.high_watermark = known
        invariant(known <= end, "high watermark {}, log end {}", known, end)
        if known > self.committed_offset:
            self.committed_offset = known
            self._note_membership()
            self.outbox.on_log(lambda number: RaiseHighWatermark(number, known))

    def _note_membership(self) -> None:
        """Remember that this replica is a committed voter, before a snapshot replaces the records that say so."""
        records, committed = self.log.control_records, self.committed_offset
        is_known = records is self._membership_of and committed <= self._next_voters_offset
        if self.has_been_voter or is_known:
            return
        self.has_been_voter = any(
            self.identity.key in each.value.voter_keys for each in records.voter_sets if each.offset < committed
        )
        self._membership_of = records
        later = (each.offset for each in records.voter_sets if each.offset >= committed)
        self._next_voters_offset = min(later, default=_NEVER)

    def forget_high_watermark(self) -> None:
        """Forget the high watermark, as Kafka does at a new leadership and after a resignation."""
        known, committed, end = self.high_watermark or 0, self.committed_offset, self.log.state.end_offset
        invariant(known <= committed, "high watermark {}, but committed up to {}", known, committed)
        self.high_watermark = None
        invariant(committed <= end, "committed up to {}, log end {}", committed, end)

    def voter_destination(self, voter_id: int) -> Destination | None:
        """Return where a voter is sent requests; None if it has no address at the listener of the replicas."""
        address = self.voters.listeners(voter_id).address(self.identity.listener)
        return None if address is None else Destination(voter_id, address.host, address.port)

    def halt(self, reason: str) -> None:
        """Stop for good: nothing is answered, sent or stored any more. Only the first reason is kept."""
        self.halt_reason = self.halt_reason or reason
        self.outbox.discard_messages()
