# SPDX-License-Identifier: Apache-2.0
"""Tells the leader where this voter listens, and which levels of kraft.version it supports, if the leader may not know.

Source: KafkaRaftClient#shouldSendUpdateVoteRequest, #buildUpdateVoterRequest, #handleUpdateVoterResponse; KIP-853.
"""

import attrs

from raftlog.quorum.replica import LocalReplica, SentRequest
from raftlog.quorum.responses import ResponseOutcome, handle_common
from raftlog.quorum.roles.roles import Follower
from raftlog.quorum.seam.effects import Destination
from raftlog.records.messages.raft.endpoints import Listener
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.voter_messages import (
    UpdateRaftVoterRequest,
    UpdateRaftVoterRequestKRaftVersionFeature,
    UpdateRaftVoterResponse,
)
from raftlog.uuid_text import ZERO_UUID
from raftlog.voters.voter_set import Endpoints, VoterNode


def update_voter(replica: LocalReplica, role: Follower) -> bool:
    """Send the request if it is due and the leader can be sent one; return whether it was sent."""
    address = role.leader.endpoints.address(replica.identity.listener)
    if not needs_update(replica, role) or address is None:
        return False
    if not replica.connections.is_ready(role.leader.id, replica.now_ms):
        return False
    replica.send(Destination(role.leader.id, address.host, address.port), update_voter_request(replica))
    return True


def needs_update(replica: LocalReplica, role: Follower) -> bool:
    """Whether the voter set has an outdated entry for this voter.

    With kraft.version 0 the leader keeps such entries in memory, so that every leader needs to be told once.
    """
    if not replica.is_voter:
        return False
    if not replica.log.control_records.kraft_version.is_reconfiguration_supported:
        return not role.has_updated_leader
    identity = replica.identity
    node = VoterNode(identity.key, identity.endpoints, identity.supported_kraft_versions)
    return replica.voters.voter_node_needs_update(node)


def update_voter_request(replica: LocalReplica) -> UpdateRaftVoterRequest:
    """Return the request."""
    identity, levels = replica.identity, replica.identity.supported_kraft_versions
    return UpdateRaftVoterRequest(
        cluster_id=identity.cluster_id,
        current_leader_epoch=replica.epoch,
        voter_id=identity.key.id,
        voter_directory_id=identity.key.directory_id or ZERO_UUID,
        listeners=tuple(
            Listener(name=name, host=address.host, port=address.port)
            for name, address in identity.endpoints.listeners.items()
        ),
        kraft_version_feature=UpdateRaftVoterRequestKRaftVersionFeature(
            min_supported_version=levels.minimum, max_supported_version=levels.maximum
        ),
    )


def handle_update_voter_response(
    replica: LocalReplica, sent: SentRequest, response: UpdateRaftVoterResponse
) -> ResponseOutcome:
    """Note that the leader knows; a leader that is too old to be told is not told again."""
    leader = response.current_leader
    endpoints = Endpoints()
    if leader.host and 0 <= leader.port <= 65535:
        endpoints = Endpoints.of({replica.identity.listener: (leader.host, leader.port)})
    is_known = response.error_code in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION)
    if is_known and isinstance(replica.role, Follower) and sent.epoch == replica.epoch:
        replica.role = attrs.evolve(replica.role, has_updated_leader=True)
    if leader.leader_epoch < 0 and is_known:
        return ResponseOutcome.DONE
    outcome = handle_common(replica, response.error_code, leader.leader_epoch, leader.leader_id, endpoints)
    return ResponseOutcome.DONE if is_known or outcome is ResponseOutcome.CONTINUE else outcome
