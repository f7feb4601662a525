# SPDX-License-Identifier: Apache-2.0
"""Tells the leader where this voter listens, and which levels of kraft.version it supports, if the leader may not know.

Source: KafkaRaftClient#shouldSendUpdateVoteRequest, #buildUpdateVoterRequest, #handleUpdateVoterResponse; KIP-853.
"""

import attrs

from raftlog.quorum.replica import LocalReplica, SentRequest
from raftlog.quorum.requests import listeners_of
from raftlog.quorum.responses import ResponseOutcome, handle_common
from raftlog.quorum.roles.roles import Follower
from raftlog.quorum.seam.effects import Destination
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.voter_messages import (
    UpdateRaftVoterRequest,
    UpdateRaftVoterRequestKRaftVersionFeature,
    UpdateRaftVoterResponse,
)
from raftlog.uuid_text import ZERO_UUID
from raftlog.voters.voter_set import Endpoints


def needs_update(replica: LocalReplica, role: Follower) -> bool:
    """Whether the voter set has an outdated entry for this voter, and the leader's address is known.

    With kraft.version 0 the leader keeps such entries in memory, so that each needs to be told once. A voter that
    cannot vote tells nothing, because a leader takes the request as a sign that the voter follows it.
    """
    if not replica.is_voter or not replica.may_stand:
        return False
    if role.leader.endpoints.address(replica.identity.listener) is None:
        return False
    if not replica.log.control_records.kraft_version.is_reconfiguration_supported:
        return not role.has_updated_leader
    return replica.voters.voter_node_needs_update(replica.voter_node)


def update_voter(replica: LocalReplica, role: Follower) -> bool:
    """Send the request if the leader can be sent one; return whether it was sent."""
    address = role.leader.endpoints.address(replica.identity.listener)
    if address is None or not replica.connections.is_ready(role.leader.id, replica.now_ms):
        return False
    replica.send(Destination(role.leader.id, address.host, address.port), update_voter_request(replica))
    return True


def update_voter_request(replica: LocalReplica) -> UpdateRaftVoterRequest:
    """Return the request."""
    identity, levels = replica.identity, replica.identity.supported_kraft_versions
    return UpdateRaftVoterRequest(
        cluster_id=identity.cluster_id,
        current_leader_epoch=replica.epoch,
        voter_id=identity.key.id,
        voter_directory_id=identity.key.directory_id or ZERO_UUID,
        listeners=listeners_of(identity.endpoints),
        kraft_version_feature=UpdateRaftVoterRequestKRaftVersionFeature(
            min_supported_version=levels.minimum, max_supported_version=levels.maximum
        ),
    )


def handle_update_voter_response(
    replica: LocalReplica, _: SentRequest, response: UpdateRaftVoterResponse
) -> ResponseOutcome:
    """Note that the leader knows; a leader that is too old to be told is not told again.

    Either is as good a sign of the leader as a response to a Fetch.
    """
    leader = response.current_leader
    endpoints = Endpoints()
    if leader.host and 0 <= leader.port <= 65535:
        endpoints = Endpoints.of({replica.identity.listener: (leader.host, leader.port)})
    is_too_old = response.error_code == ErrorCode.UNSUPPORTED_VERSION
    error = ErrorCode.NONE if is_too_old else response.error_code
    outcome = handle_common(replica, error, leader.leader_epoch, leader.leader_id, endpoints)
    role = replica.role
    if outcome is not ResponseOutcome.CONTINUE or not isinstance(role, Follower):
        return outcome
    deadline = replica.now_ms + replica.config.fetch_timeout_ms
    replica.role = attrs.evolve(role, has_updated_leader=True, fetch_deadline_ms=deadline)
    return ResponseOutcome.DONE
