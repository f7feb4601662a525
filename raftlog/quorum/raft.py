# SPDX-License-Identifier: Apache-2.0
"""The consensus core of one replica, without I/O: messages, times and results come in, effects go out.

It only dispatches; the modules beside it do the work. After each input it lets the role do what is due, and then
``take_effects`` returns what is to be carried out.

Source: KafkaRaftClient.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import attrs

from raftlog.invariants import invariant
from raftlog.quorum.connections import Connections
from raftlog.quorum.elections.announcements import (
    announce_leadership,
    announce_resignation,
    handle_begin_quorum_epoch_request,
    handle_begin_quorum_epoch_response,
    handle_end_quorum_epoch_request,
    handle_end_quorum_epoch_response,
)
from raftlog.quorum.elections.standing import (
    advance_election,
    begin_election,
    handle_vote_response,
    stand_for_election,
)
from raftlog.quorum.elections.votes_asked import handle_vote_request
from raftlog.quorum.following.fetching import (
    fetch_from_bootstrap,
    fetch_from_leader,
    handle_fetch_response,
    learn_high_watermark,
)
from raftlog.quorum.following.updating_voter import handle_update_voter_response, needs_update, update_voter
from raftlog.quorum.leadership import PendingAppend
from raftlog.quorum.leading.appending import append, end_uncommitted
from raftlog.quorum.leading.leading_epoch import begin_leading, lead, note_log_work
from raftlog.quorum.leading.serving import (
    answer_expired,
    answer_parked,
    answer_read,
    end_leading,
    handle_fetch_request,
)
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.replica import LocalReplica, SentRequest
from raftlog.quorum.responses import ResponseOutcome
from raftlog.quorum.roles.draws import Draws
from raftlog.quorum.roles.roles import Candidate, Follower, Leader, Prospective, Resigned, Role, Unattached
from raftlog.quorum.roles.starting import starting_role
from raftlog.quorum.roles.transitions import MAX_EPOCH, ElectionTimedOut, FetchTimedOut, Surroundings
from raftlog.quorum.seam.effects import Effect
from raftlog.quorum.seam.identity import ReceivedRequest, ReplicaIdentity
from raftlog.quorum.seam.log_view import LogView
from raftlog.quorum.seam.outbox import Outbox
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.records.messages.raft.election_messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    VoteRequest,
    VoteResponse,
)
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.fetch_messages import FetchRequest, FetchResponse
from raftlog.records.messages.raft.raft_messages import RaftRequest, RaftResponse
from raftlog.records.messages.raft.voter_messages import UpdateRaftVoterRequest, UpdateRaftVoterResponse

_MAX_ROLES_PER_INPUT: Final = 8
"""How many roles an input can lead through: from follower to leader, for the only voter, are three."""


@attrs.frozen(kw_only=True)
class StartingPoint:
    """What a replica finds on its disk.

    Attributes:
        log: a view of its log.
        stored: its election state; None if it has never taken part in an election.
        may_vote: False if it may have forgotten a vote.
    """

    log: LogView
    stored: QuorumStateData | None = None
    may_vote: bool = True


class Raft:
    """One replica of a quorum. It takes no locks: use it from one thread at a time.

    Args:
        identity: who the replica is.
        config: the timeouts.
        draws: its random choices.
        found: what it finds on its disk.
        monotonic_ms: a clock that never goes back.
        wall_ms: time of day, in ms since the Unix epoch.

    Source: KafkaRaftClient.
    """

    def __init__(
        self,
        identity: ReplicaIdentity,
        config: QuorumConfig,
        draws: Draws,
        found: StartingPoint,
        *,
        monotonic_ms: int,
        wall_ms: int,
    ) -> None:
        may_stand = found.may_vote and not found.log.is_quarantined
        voters = found.log.control_records.last_voter_set
        around = Surroundings(identity.key, voters, config, draws, monotonic_ms)
        role = starting_role(found.stored, found.log.end.epoch, around, may_stand=may_stand)
        self._replica = LocalReplica(
            identity=identity,
            config=config,
            draws=draws,
            role=role,
            log=found.log,
            stored=found.stored,
            may_vote=found.may_vote,
            outbox=Outbox(),
            connections=Connections(config.request_timeout_ms, config.retry_backoff_ms),
            now_ms=monotonic_ms,
            wall_ms=wall_ms,
            high_watermark=found.log.state.high_watermark or None,
        )
        self._replica.store_election_state()
        if isinstance(role, Candidate):
            advance_election(self._replica)
        elif may_stand and voters.is_only_voter(identity.key) and role.epoch < MAX_EPOCH:
            begin_election(self._replica, ElectionTimedOut())
        self._act()

    @property
    def role(self) -> Role:
        """The current role."""
        return self._replica.role

    @property
    def high_watermark(self) -> int | None:
        """The end, exclusive, of the records known to be committed; None if that is not known."""
        return self._replica.high_watermark

    @property
    def halt_reason(self) -> str | None:
        """Why this replica has stopped for good, or None. A halted replica ignores all input."""
        return self._replica.halt_reason

    @property
    def deadline_ms(self) -> int | None:
        """When ``tick`` must be called at the latest, in monotonic ms; None if there is nothing to wait for."""
        replica = self._replica
        if replica.halt_reason is not None:
            return None
        due = (_role_deadline_ms(replica), replica.connections.next_change_ms(replica.now_ms))
        return min((each for each in due if each is not None and each > replica.now_ms), default=None)

    def take_effects(self) -> list[Effect]:
        """Return the effects to be carried out, and forget them."""
        return self._replica.outbox.take()

    # Inputs

    def tick(self, monotonic_ms: int, wall_ms: int) -> None:
        """Let time pass. A call may come early, late or twice; a clock that goes back stands still."""
        self._replica.now_ms = max(self._replica.now_ms, monotonic_ms)
        self._replica.wall_ms = wall_ms
        self._act()

    def receive_request(self, request: RaftRequest, received: ReceivedRequest) -> None:
        """Handle a request. Its answer is an effect, possibly a later one.

        Raises:
            TypeError: it is not a request of raft.
        """
        replica = self._replica
        if replica.halt_reason is not None:
            return
        if isinstance(request, FetchRequest):
            handle_fetch_request(replica, received, request)
        else:
            response = _answer(replica, received, request)
            if replica.halt_reason is None:
                replica.outbox.respond(received.token, response)
        self._act()

    def receive_response(self, number: int, response: RaftResponse) -> None:
        """Handle the response to a request, named by the number of its effect.

        A response that is no longer expected is ignored: the role has changed, the request has timed out, or the
        response is a duplicate.

        Raises:
            ValueError: the response is not of the request's kind. Nothing has changed.
        """
        replica = self._replica
        sent = replica.sent.get(number)
        if replica.halt_reason is not None or sent is None:
            return
        if _RESPONSE_TYPES[type(sent.message)] is not type(response):
            raise ValueError(f"{type(response).__name__} to a {type(sent.message).__name__}")
        destination_id = sent.destination.id
        if not replica.connections.is_expected(destination_id, number):
            del replica.sent[number]
            return
        outcome = _handle_response(replica, sent, response)
        replica.sent.pop(number, None)
        is_success = outcome is not ResponseOutcome.FAILED
        replica.connections.answered(destination_id, number, replica.now_ms, is_success=is_success)
        self._act()

    def append(self, values: Sequence[bytes], *, epoch: int, required_base_offset: int | None = None) -> PendingAppend:
        """Append records as the leader. What becomes of them is told once, by an ``EndAppend`` with the same number.

        Records of several calls are written and flushed together: at the latest after ``append_linger_ms``, or when the
        flush before them is done.

        Args:
            values: of the records, which have no keys. All of them go into one batch.
            epoch: in which the caller believes this replica to be the leader.
            required_base_offset: refuse the append unless the first record gets this offset.

        Returns:
            the number of the append, and the offset of its last record.

        Raises:
            NotLeaderError: this replica does not lead that epoch, or has not begun it in the log yet, or has halted.
            UnknownEpochError: the epoch is a later one.
            NonContiguousAppendError: the first record would not get the required offset.
            BatchTooLargeError: the records do not fit in one batch.
            BufferExhaustedError: too many records wait for the disk. Try again after the next effects.
            ValueError: there are no records, or a value is empty.

            Nothing has changed then.

        Source: RaftClient#prepareAppend.
        """
        appended = append(self._replica, values, epoch, required_base_offset)
        self._act()
        return appended

    def request_failed(self, number: int, *, is_version_unsupported: bool = False) -> None:
        """Note that a request could not be sent, or that no response will come.

        Args:
            number: of the effect.
            is_version_unsupported: whether the peer supports no version in which the request could be sent.
        """
        sent = self._replica.sent.get(number)
        if sent is not None and is_version_unsupported and isinstance(sent.message, VoteRequest):
            self.receive_response(number, VoteResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, topics=()))
        elif self._replica.sent.pop(number, None) is not None and sent is not None:
            replica = self._replica
            replica.connections.answered(sent.destination.id, number, replica.now_ms, is_success=False)
            self._act()

    def stored(self, number: int) -> None:
        """Note that an election state is durable.

        Raises:
            ValueError: it is not the number of the oldest state that is not stored yet. Nothing has changed.
        """
        if self._replica.halt_reason is None:
            self._replica.outbox.stored(number)
            self._act()

    def log_changed(self, number: int, log: LogView) -> None:
        """Note that work on the log is done.

        Args:
            number: of the effect.
            log: the log as it is now.

        Raises:
            ValueError: it is not the number of the oldest work that is not done yet. Nothing has changed.
        """
        replica = self._replica
        if replica.halt_reason is not None:
            return
        if not replica.log_work or replica.log_work[0] != number:
            raise ValueError(f"effect {number} is not the work on the log to be done next: {list(replica.log_work)}")
        replica.log_work.popleft()
        before, replica.log = replica.log, log
        learn_high_watermark(replica)
        _keep_leadership(replica)
        end_offset = log.state.end_offset
        if replica.leadership is not None:
            known = replica.high_watermark
            note_log_work(replica, number)
            if replica.high_watermark != known or end_offset > before.state.end_offset:
                answer_parked(replica, replica.leadership)
        self._act()

    def log_read(self, number: int, records: bytes | memoryview) -> None:
        """Note what was read of the log. A read that is no longer needed is ignored."""
        if self._replica.halt_reason is None:
            answer_read(self._replica, number, records)
            self._act()

    def effect_failed(self, number: int, reason: str) -> None:
        """Note that an effect on the disk has failed: the disk may hold anything, so this replica stops for good."""
        self._replica.halt(f"effect {number}: {reason}")
        self._act()

    def _act(self) -> None:
        """Let the role do what is due, and the roles that follow from it."""
        replica, changes, is_changed = self._replica, 0, True
        while is_changed and replica.halt_reason is None:
            before = replica.role
            _keep_leadership(replica)
            _act_in_role(replica)
            is_changed = type(replica.role) is not type(before) or replica.epoch != before.epoch
            changes += is_changed
            invariant(changes <= _MAX_ROLES_PER_INPUT, "{} changes of the role, now {}", changes, replica.role)
        if replica.halt_reason is not None and replica.leadership is not None:
            end_uncommitted(replica, replica.leadership)


_RESPONSE_TYPES: Final[Mapping[type[RaftRequest], type[RaftResponse]]] = MappingProxyType(
    {
        VoteRequest: VoteResponse,
        BeginQuorumEpochRequest: BeginQuorumEpochResponse,
        EndQuorumEpochRequest: EndQuorumEpochResponse,
        FetchRequest: FetchResponse,
        UpdateRaftVoterRequest: UpdateRaftVoterResponse,
    }
)


def _answer(replica: LocalReplica, received: ReceivedRequest, request: RaftRequest) -> RaftResponse:
    match request:
        case VoteRequest():
            return handle_vote_request(replica, received, request)
        case BeginQuorumEpochRequest():
            return handle_begin_quorum_epoch_request(replica, received, request)
        case EndQuorumEpochRequest():
            return handle_end_quorum_epoch_request(replica, received, request)
    raise TypeError(f"not a request of raft: {type(request).__name__}")


def _handle_response(replica: LocalReplica, sent: SentRequest, response: RaftResponse) -> ResponseOutcome:
    match response:
        case VoteResponse():
            return handle_vote_response(replica, sent, response)
        case BeginQuorumEpochResponse():
            return handle_begin_quorum_epoch_response(replica, sent, response)
        case EndQuorumEpochResponse():
            return handle_end_quorum_epoch_response(replica, sent, response)
        case FetchResponse():
            return handle_fetch_response(replica, sent, response)
        case UpdateRaftVoterResponse():
            return handle_update_voter_response(replica, sent, response)
    raise TypeError(f"not a response of raft: {type(response).__name__}")


def _act_in_role(replica: LocalReplica) -> None:
    """Do what a role does by itself: time out, ask for votes, fetch, announce a resignation."""
    role, may_begin = replica.role, replica.may_begin_election
    match role:
        case Unattached():
            if may_begin and role.election_deadline_ms is not None and role.election_deadline_ms <= replica.now_ms:
                begin_election(replica, ElectionTimedOut())
            else:
                fetch_from_bootstrap(replica)
        case Prospective() | Candidate():
            stand_for_election(replica)
        case Follower():
            if may_begin and role.fetch_deadline_ms <= replica.now_ms:
                begin_election(replica, FetchTimedOut())
            else:
                _follow(replica, role)
        case Leader() if replica.leadership is not None:
            answer_expired(replica, replica.leadership)
            lead(replica, replica.leadership)
            if isinstance(replica.role, Leader):
                announce_leadership(replica, replica.leadership)
        case Resigned():
            announce_resignation(replica, role)
            if role.election_deadline_ms <= replica.now_ms and role.epoch < MAX_EPOCH:
                replica.change_role(ElectionTimedOut())


def _keep_leadership(replica: LocalReplica) -> None:
    """Begin to lead after an election was won, and end it after the role or the epoch has changed."""
    leadership, is_leader = replica.leadership, isinstance(replica.role, Leader)
    if leadership is not None and not (is_leader and leadership.epoch == replica.epoch):
        end_leading(replica)
    if is_leader and replica.leadership is None:
        begin_leading(replica)


def _follow(replica: LocalReplica, role: Follower) -> None:
    """Fetch. If the leader may have to be told of a changed address, tell it first, once it can be sent a request."""
    if role.update_deadline_ms <= replica.now_ms:
        if needs_update(replica, role) and not update_voter(replica, role):
            return
        deadline = replica.now_ms + replica.config.update_voter_period_ms
        replica.role = role = attrs.evolve(role, update_deadline_ms=deadline)
    fetch_from_leader(replica, role)


def _role_deadline_ms(replica: LocalReplica) -> int | None:
    """Return when the role times out; None if it does not."""
    match replica.role:
        case Leader():
            return _leader_deadline_ms(replica)
        case Follower():
            return replica.role.fetch_deadline_ms if replica.may_begin_election else None
    return replica.role.election_deadline_ms


def _leader_deadline_ms(replica: LocalReplica) -> int | None:
    """Return when a leader has something to do: resign, announce itself, write, or answer a Fetch."""
    leadership = replica.leadership
    if leadership is None:
        return None
    due = [leadership.begin_deadline_ms, *(each.deadline_ms for each in leadership.parked.values())]
    if not replica.voters.is_only_voter(replica.identity.key):
        due.append(leadership.check_quorum_deadline_ms)
    batches = leadership.batches
    left = None if batches is None else batches.time_until_drain_ms(replica.wall_ms)
    if left is not None:
        due.append(replica.now_ms + left)
    return min((each for each in due if each > replica.now_ms), default=None)
