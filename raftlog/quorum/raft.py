# SPDX-License-Identifier: Apache-2.0
"""The consensus core of one replica, without I/O: messages, times and results come in, effects go out.

It only dispatches; the modules beside it do the work. After each input it lets the role do what is due, and then
``take_effects`` returns what is to be carried out.

Source: KafkaRaftClient.
"""

import attrs

from raftlog.offsets import MAX_EPOCH
from raftlog.quorum.acting import act, deadline_ms, keep_leadership
from raftlog.quorum.connections import Connections
from raftlog.quorum.describing.queues import QueueStatus, queues_of
from raftlog.quorum.describing.raft_status import RaftStatus, raft_status
from raftlog.quorum.dispatch import check_response_type, handle_request, handle_response, refuse_request
from raftlog.quorum.elections.standing import advance_election, begin_election
from raftlog.quorum.following.fetching import learn_high_watermark
from raftlog.quorum.following.fetching_snapshot import may_be_refused, note_snapshot_work, refuse_fetched_snapshot
from raftlog.quorum.inputs.application import ApplicationInputs
from raftlog.quorum.inputs.refused_work import note_refused_work, note_taken_work
from raftlog.quorum.leading.holding_voters import has_more_to_serve
from raftlog.quorum.leading.leading_epoch import note_log_work
from raftlog.quorum.leading.serving import answer_parked, answer_read
from raftlog.quorum.leading.serving_snapshots import answer_snapshot_read
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.responses import ResponseOutcome
from raftlog.quorum.roles.draws import Draws
from raftlog.quorum.roles.roles import Candidate, Role
from raftlog.quorum.roles.starting import starting_role
from raftlog.quorum.roles.transitions import ElectionTimedOut, Surroundings
from raftlog.quorum.seam.effects import Effect
from raftlog.quorum.seam.identity import ReceivedRequest, ReplicaIdentity
from raftlog.quorum.seam.log_view import LogView
from raftlog.quorum.seam.outbox import Outbox
from raftlog.quorum.seam.snapshot_effects import SnapshotChunk
from raftlog.quorum.snapshot_work import SnapshotWork
from raftlog.quorum.snapshots.cleaning import note_cleaned
from raftlog.quorum.snapshots.creating import (
    abandon_snapshot,
    create_snapshot,
    freeze_snapshot,
    note_frozen,
    note_refused,
)
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.records.messages.raft.api_versions_messages import ApiVersionsRequest, ApiVersionsResponse
from raftlog.records.messages.raft.election_messages import VoteRequest, VoteResponse
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.raft_messages import RaftRequest, RaftResponse
from raftlog.records.messages.raft.voter_messages import UpdateRaftVoterRequest


@attrs.frozen(kw_only=True)
class StartingPoint:
    """What a replica finds on its disk.

    Attributes:
        log: a view of its log.
        stored: its election state; None if it has never taken part in an election.
        may_vote: False if it may have forgotten a vote.
        has_been_voter: whether it was a voter before, under this directory id, as ``RaftStatus`` said. A replica that
            finds itself in a voter set of its log or snapshot knows that anyway.
    """

    log: LogView
    stored: QuorumStateData | None = None
    may_vote: bool = True
    has_been_voter: bool = False


class Raft(ApplicationInputs):
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
            has_been_voter=found.has_been_voter,
            snapshots=SnapshotWork(monotonic_ms + config.cleaning_interval_ms),
            high_watermark=found.log.state.high_watermark or None,
        )
        self._replica.store_election_state()
        if isinstance(role, Candidate):
            advance_election(self._replica)
        elif may_stand and voters.is_only_voter(identity.key) and role.epoch < MAX_EPOCH:
            begin_election(self._replica, ElectionTimedOut())
        act(self._replica)

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
    def status(self) -> RaftStatus:
        """The replica as it is now: a value that does not change with it."""
        return raft_status(self._replica)

    @property
    def queues(self) -> tuple[QueueStatus, ...]:
        """What waits in the replica, each with its limit, as ``status`` has it."""
        return queues_of(self._replica)

    @property
    def snapshot_refusal(self) -> str | None:
        """Why the last snapshot that was fetched was refused, so that it is fetched again; None if none was."""
        return self._replica.snapshots.refusal_reason

    @property
    def deadline_ms(self) -> int | None:
        """When ``tick`` must be called at the latest, in monotonic ms; None if there is nothing to wait for."""
        return deadline_ms(self._replica)

    def take_effects(self) -> list[Effect]:
        """Return the effects to be carried out, and forget them."""
        return self._replica.outbox.take()

    # Inputs

    def tick(self, monotonic_ms: int, wall_ms: int) -> None:
        """Let time pass. Call it with the present time before any other input, and at ``deadline_ms`` at the latest.

        It alone moves the core's clock: a message is taken to have come at the time of the last call, so with outdated
        times a leader seems to have been silent. A call may come early, late or twice; a clock that goes back stands
        still.
        """
        self._replica.now_ms = max(self._replica.now_ms, monotonic_ms)
        self._replica.wall_ms = wall_ms
        act(self._replica)

    def receive_request(self, request: RaftRequest, received: ReceivedRequest) -> None:
        """Handle a request. Its answer is an effect, possibly a later one. After a shutdown every request is refused.

        Raises:
            TypeError: it is not a request of raft.
        """
        shutdown = self._replica.shutdown
        if self._replica.halt_reason is None:
            handle_request(self._replica, received, request)
            act(self._replica)
        elif shutdown is not None and shutdown.is_complete:
            refuse_request(self._replica, received, request)

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
        check_response_type(sent, response)
        destination_id = sent.destination.id
        if not replica.connections.is_expected(destination_id, number):
            del replica.sent[number]
            return
        outcome = handle_response(replica, sent, response)
        replica.sent.pop(number, None)
        is_success = outcome is not ResponseOutcome.FAILED
        replica.connections.answered(destination_id, number, replica.now_ms, is_success=is_success)
        act(self._replica)

    def request_failed(self, number: int, *, is_version_unsupported: bool = False) -> None:
        """Note that a request could not be sent, or that no response will come.

        Args:
            number: of the effect.
            is_version_unsupported: whether the peer supports no version in which the request could be sent.
        """
        sent = self._replica.sent.get(number)
        if sent is not None and is_version_unsupported and isinstance(sent.message, VoteRequest):
            self.receive_response(number, VoteResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, topics=()))
        elif sent is not None and isinstance(sent.message, ApiVersionsRequest):
            self.receive_response(number, ApiVersionsResponse(error_code=ErrorCode.BROKER_NOT_AVAILABLE, api_keys=()))
        elif self._replica.sent.pop(number, None) is not None and sent is not None:
            # Kafka's network answers for the peer, here with an epoch below all others, which is no reason to pause.
            replica, is_update = self._replica, isinstance(sent.message, UpdateRaftVoterRequest)
            replica.connections.answered(sent.destination.id, number, replica.now_ms, is_success=is_update)
            act(self._replica)

    def stored(self, number: int) -> None:
        """Note that an election state is durable.

        Raises:
            ValueError: it is not the number of the oldest state that is not stored yet. Nothing has changed.
        """
        if self._replica.halt_reason is None:
            self._replica.outbox.stored(number)
            act(self._replica)

    def log_changed(self, number: int, log: LogView) -> None:
        """Note that work on the log is done.

        Args:
            number: of the effect.
            log: the log as it is now.

        Raises:
            ValueError: it is not the number of the oldest work that is not done yet, or the view is older than the last
                one (DECISIONS.md 61). Nothing has changed.
        """
        replica = self._replica
        if replica.halt_reason is not None:
            return
        replica.check_log_report(number, log)
        replica.log_work.popleft()
        before, replica.log = replica.log, log
        note_snapshot_work(replica, number)
        note_cleaned(replica, number, before)
        learn_high_watermark(replica)
        keep_leadership(replica)
        note_taken_work(replica, number, before)
        if replica.leadership is not None:
            known = replica.high_watermark
            note_log_work(replica, number)
            if replica.high_watermark != known or has_more_to_serve(replica.leadership, before, log):
                answer_parked(replica, replica.leadership)
        act(self._replica)

    def log_refused(self, number: int, log: LogView, reason: str, *, is_full: bool) -> None:
        """Note that the log has refused work, and has the same records as before: the replica stays up.

        A leader resigns, and the appends that were refused end FAILED. A follower fetches again after a pause. With a
        full disk, this replica votes, but begins no election for a while. Pauses double, up to a limit.

        For work on a fetched snapshot, call ``snapshot_refused``. If it is not known what the log has, if a flush has
        failed, or if the log could not restart at a snapshot, call ``effect_failed``.

        Args:
            number: of the effect.
            log: the log as it is now.
            reason: why.
            is_full: whether the disk had no room.

        Raises:
            ValueError: as for ``log_changed``. Nothing has changed.
        """
        if self._replica.halt_reason is None:
            note_refused_work(self._replica, number, log, reason, is_full=is_full)
            act(self._replica)

    def log_read(self, number: int, records: bytes | memoryview) -> None:
        """Note batches that were read; the last one may be cut off. A read that is no longer needed is ignored."""
        if self._replica.halt_reason is None:
            answer_read(self._replica, number, records)  # Nothing else becomes due by it.

    # Snapshots

    def create_snapshot(self, end_offset: int) -> int | None:
        """Begin a snapshot of the application's state after the records below an offset, in any role.

        One is written at a time. The application writes it while the core goes on, and then calls ``freeze_snapshot``
        or ``abandon_snapshot``. The log refuses it unless a batch ends at the offset.

        Args:
            end_offset: exclusive.

        Returns:
            The number of the snapshot; None if there is one already, if the log starts at the offset or above, or if
            this replica has halted.

        Raises:
            SnapshotError: another one is being written.
            InvalidSnapshotIdError: the offset is not known to be committed, or is below the latest snapshot's.

            Nothing has changed then.

        Source: RaftClient#createSnapshot.
        """
        return None if self._replica.halt_reason is not None else create_snapshot(self._replica, end_offset)

    def freeze_snapshot(self, number: int) -> None:
        """Have a snapshot, which the application has written, verified and made durable.

        Raises:
            ValueError: it is not the number of the snapshot that is being written. Nothing has changed.
        """
        if self._replica.halt_reason is None:
            freeze_snapshot(self._replica, number)

    def abandon_snapshot(self, number: int) -> None:
        """Have what was written of a snapshot removed.

        Raises:
            ValueError: it is not the number of the snapshot that is being written. Nothing has changed.
        """
        if self._replica.halt_reason is None:
            abandon_snapshot(self._replica, number)

    def snapshot_frozen(self, number: int) -> None:
        """Note that the application's snapshot is durable.

        Raises:
            ValueError: it is not the number of the snapshot that is being frozen. Nothing has changed.
        """
        if self._replica.halt_reason is None:
            note_frozen(self._replica, number)
            act(self._replica)

    def snapshot_refused(self, number: int, reason: str) -> None:
        """Note that the log has refused a snapshot, and has removed what was written of it.

        For the application's snapshot: it must not be taken at that offset. For one that was fetched: its bytes are
        bad, or the disk has no room for it; it is fetched again after a pause. If the disk itself has failed, call
        ``effect_failed``.

        Args:
            number: of the effect that was refused.
            reason: what is wrong.

        Raises:
            ValueError: it is neither the number of the application's snapshot, nor that of the next work on a fetched
                snapshot. Nothing has changed.
        """
        replica = self._replica
        if replica.halt_reason is not None:
            return
        if may_be_refused(replica, number):
            refuse_fetched_snapshot(replica, reason)
        else:
            note_refused(replica, number)
        act(replica)

    def snapshot_read(self, number: int, chunk: SnapshotChunk | None) -> None:
        """Note what was read of a snapshot. A read that is no longer needed is ignored.

        Args:
            number: of the effect.
            chunk: what was read; None if there is no such snapshot any more.
        """
        if self._replica.halt_reason is None:
            answer_snapshot_read(self._replica, number, chunk)
            act(self._replica)

    def effect_failed(self, number: int, reason: str) -> None:
        """Note that an effect on the disk has failed: the disk may hold anything, so this replica stops for good.

        Raises:
            ValueError: the number was never given, to an effect or to anything else. Nothing has changed. Nothing more
                is checked: the number of an append stops the replica too, and so does that of an effect that is done,
                since not all of them are reported.
        """
        self._replica.outbox.check_handed_out(number)
        truncation = self._replica.truncation
        cause = f"{truncation[1]}: " if truncation is not None and truncation[0] == number else ""
        self._replica.halt(f"effect {number}: {cause}{reason}")
        act(self._replica)

    def stop(self, reason: str) -> None:
        """Stop for good, because the process ends: appends end, and input is ignored. Nothing is announced."""
        self._replica.halt(reason)
        act(self._replica)
