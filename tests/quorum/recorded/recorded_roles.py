# SPDX-License-Identifier: Apache-2.0
"""Which roles the recording allows a replica to have when it answers a request: told by what it has sent before.

A replica takes one message at a time, so that it sends in the order in which it does things. What a timer does is seen
only when the replica sends something then; so a role that it shows next, after an answer, may have begun before that.
"""

from collections.abc import Sequence
from typing import Any, Final

import attrs

from raftlog.quorum.roles.roles import Candidate, Follower, Leader, Prospective, Resigned, Role, Unattached
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.records.messages.raft.election_messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    VoteRequest,
    VoteResponse,
)
from raftlog.records.messages.raft.fetch_messages import FetchRequest, FetchResponse
from raftlog.voters.voter_set import ReplicaKey
from tests.quorum.messages import fetch_response
from tests.quorum.recorded.leader_replay import CONFIG, LeaderReplay, recorded_log
from tests.quorum.recorded.recording import WIRE, Frame, batches
from tests.quorum.single_replica import SingleReplica

LEADERS: Final = {1: 2, 3: 3, 4: 4}
"""The leaders of the recorded epochs. The election of epoch 2 had no winner."""

LOG_STARTS: Final = {4: 138}
"""By replica: where its log starts, because it has fetched a snapshot first."""

OWN: Final = {VoteRequest: Prospective, BeginQuorumEpochRequest: Leader, EndQuorumEpochRequest: Resigned}


@attrs.frozen
class Shown:
    """What a replica has shown of itself.

    Attributes:
        kind: its role.
        epoch: the latest one that it knows.
        leader: of the epoch, or -1.
        voted: for whom it has voted in the epoch, or None.
        log_end: exclusive.
        has_fetched: whether the leader has answered a Fetch.
    """

    kind: type[Role] = Unattached
    epoch: int = 0
    leader: int = -1
    voted: ReplicaKey | None = None
    log_end: int = 0
    has_fetched: bool = False

    def in_epoch(self, epoch: int, leader: int, own_id: int) -> "Shown":
        """Return what is known after a message with an epoch, and a leader or -1."""
        known = self if epoch <= self.epoch else Shown(epoch=epoch, log_end=self.log_end)
        if known.leader >= 0 or leader < 0 or leader == own_id:
            return known
        return attrs.evolve(known, kind=Follower, leader=leader)


def sender_of(message: Any) -> int:
    """Return the replica that has sent a request."""
    if isinstance(message, FetchRequest):
        return message.replica_state.replica_id
    asked = message.topics[0].partitions[0]
    sender: int = asked.replica_id if isinstance(message, VoteRequest) else asked.leader_id
    return sender


def shown_before(frames: Sequence[Frame], own_id: int, number: int) -> Shown:
    """Return what a replica has shown before a frame."""
    shown, asked = Shown(), {each.token: each for each in frames if each.is_request}
    for frame in frames:
        if frame.number >= number:
            break
        if frame.is_request and _is_from(frame, own_id):
            shown = _after_request(shown, frame, own_id)
        elif not frame.is_request and frame.receiver == own_id:
            shown = _after_answer(shown, frame, asked[frame.token].message, own_id)
        elif isinstance(frame.message, FetchResponse) and frame.receiver == shown.leader:
            is_mine = _is_from(asked[frame.token], own_id)
            is_success = frame.message.responses[0].partitions[0].error_code == 0
            shown = attrs.evolve(shown, has_fetched=shown.has_fetched or (is_mine and is_success))
    return shown


def _is_from(frame: Frame, replica_id: int) -> bool:
    kinds = (FetchRequest, VoteRequest, BeginQuorumEpochRequest, EndQuorumEpochRequest)
    return isinstance(frame.message, kinds) and sender_of(frame.message) == replica_id


def _after_request(shown: Shown, frame: Frame, own_id: int) -> Shown:
    """Return what is known after a request of the replica's own."""
    message: Any = frame.message
    asked = message.topics[0].partitions[0]
    if isinstance(message, FetchRequest):
        epoch = asked.current_leader_epoch
        leader = frame.receiver if LEADERS.get(epoch) == frame.receiver else -1
        shown = attrs.evolve(shown.in_epoch(epoch, leader, own_id), log_end=asked.fetch_offset)
        if shown.kind is Prospective:  # It has lost, and begins anew with the leader that it knew, if any.
            shown = attrs.evolve(shown, kind=Unattached if shown.leader < 0 else Follower, has_fetched=False)
        return shown
    if isinstance(message, VoteRequest):
        if asked.pre_vote:
            return attrs.evolve(shown, kind=Prospective)
        own_key = ReplicaKey(own_id, asked.replica_directory_id)
        return Shown(Candidate, asked.replica_epoch, voted=own_key, log_end=shown.log_end)
    return attrs.evolve(shown, kind=OWN[type(message)], epoch=asked.leader_epoch, leader=own_id)


def _after_answer(shown: Shown, frame: Frame, request: Any, own_id: int) -> Shown:
    """Return what is known after an answer of the replica."""
    message: Any = frame.message
    topics = getattr(message, "responses", None) or getattr(message, "topics", ())
    if not topics:
        return shown
    answer = topics[0].partitions[0]
    known = getattr(answer, "current_leader", answer)
    shown = shown.in_epoch(known.leader_epoch, known.leader_id, own_id)
    if isinstance(message, VoteResponse) and answer.vote_granted and not request.topics[0].partitions[0].pre_vote:
        asked = request.topics[0].partitions[0]
        shown = attrs.evolve(shown, voted=ReplicaKey(asked.replica_id, asked.replica_directory_id))
    return shown


def possible_states(frames: Sequence[Frame], own_id: int, answered: int) -> list[Shown]:
    """Return what a replica may have been when it answered: what it had shown, or the role that it has shown next."""
    before = shown_before(frames, own_id, answered)
    later = (each for each in frames if each.number > answered and each.is_request and _is_from(each, own_id))
    first = next(later, None)
    if first is None or not isinstance(first.message, VoteRequest) or before.kind is Prospective:
        return [before]
    after = _after_request(before, first, own_id)
    return [before] if after.epoch > before.epoch else [before, after]


def replica_as(own_id: int, shown: Shown) -> SingleReplica:
    """Return our core for a replica that has shown something."""
    start = LOG_STARTS.get(own_id, 0)
    if shown.kind in (Leader, Resigned):
        replayed = LeaderReplay(WIRE, own_id, shown.epoch, start)
        if shown.kind is Resigned:
            replayed.core.raft.resign(shown.epoch)
            replayed.core.settle()
        return replayed.core
    recorded = [each for each in batches(WIRE.whole_log) if start <= each.base_offset < shown.log_end]
    voted_id, directory = (-1, None) if shown.voted is None else (shown.voted.id, shown.voted.directory_id)
    stored = QuorumStateData(1, shown.leader, shown.epoch, voted_id, directory) if shown.epoch else None
    log = recorded_log(WIRE.log_of(own_id if start else 3), recorded, start if shown.log_end else 0)
    core = SingleReplica(WIRE.identity(own_id), CONFIG, log=log, stored=stored)
    if shown.has_fetched and isinstance(core.raft.role, Follower):
        answer = attrs.evolve(fetch_response(shown.epoch, shown.leader), node_endpoints=())
        core.respond(core.take_requests()[-1].number, answer)
    if shown.kind is Prospective:
        core.sleep(2 * max(CONFIG.election_timeout_ms, CONFIG.fetch_timeout_ms))
    assert isinstance(core.raft.role, shown.kind), (core.raft.role, shown)
    core.take_responses()
    return core
