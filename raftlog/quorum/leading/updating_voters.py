# SPDX-License-Identifier: Apache-2.0
"""Takes over what a voter reports of itself: where it listens, and which levels of kraft.version it supports.

The answer does not wait until the new entry is committed. With kraft.version 0 the leader only keeps it in memory, for
an upgrade.

Kafka 4.3.1 does not ask the voter for its versions, as later versions do (DECISIONS.md 57).

Source: KafkaRaftClient#handleUpdateVoterRequest, UpdateVoterHandler; KIP-853.
"""

from raftlog.quorum.leadership import Leadership
from raftlog.quorum.leading.leading_epoch import note_fetch_of_voter
from raftlog.quorum.leading.upgrading import update_voter_in_memory, updated_voters_problem
from raftlog.quorum.leading.voter_change import (
    Refusal,
    leader_refusal,
    not_now,
    pending_refusal,
    voters_refusal,
    write_voters,
)
from raftlog.quorum.leading.voter_requests import leader_error, requested_voter
from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.requests import cluster_error, leader_and_epoch
from raftlog.quorum.seam.identity import ReceivedRequest
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.voter_messages import (
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
    UpdateRaftVoterResponseCurrentLeader,
)
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import SupportedVersionRange, VoterNode


def handle_update_voter_request(
    replica: LocalReplica, received: ReceivedRequest, request: UpdateRaftVoterRequest
) -> UpdateRaftVoterResponse:
    """Write the voter's new entry, if it may be changed now.

    Source: KafkaRaftClient#handleUpdateVoterRequest.
    """
    error = cluster_error(replica, request.cluster_id)
    if not error:
        error = leader_error(replica, request.current_leader_epoch)
    node = None if error else _reported_node(replica, request)
    if not error and node is None:
        error = ErrorCode.INVALID_REQUEST
    leadership = replica.leadership
    if node is not None and leadership is not None:
        refusal = _update(replica, leadership, received, node)
        error = ErrorCode.NONE if refusal is None else refusal.error
    return _response(replica, received, error)


def _reported_node(replica: LocalReplica, request: UpdateRaftVoterRequest) -> VoterNode | None:
    """Return the voter as it describes itself; None if the description is not valid."""
    voter = requested_voter(replica, request.voter_id, request.voter_directory_id, request.listeners)
    levels = request.kraft_version_feature
    if voter is None or not 0 <= levels.min_supported_version <= levels.max_supported_version:
        return None
    key, endpoints = voter
    supported = SupportedVersionRange(levels.min_supported_version, levels.max_supported_version)
    return VoterNode(key, endpoints, supported)


def _update(
    replica: LocalReplica, leadership: Leadership, received: ReceivedRequest, node: VoterNode
) -> Refusal | None:
    """Change a voter's entry, and count that as a sign of the voter; or return why not.

    Source: UpdateVoterHandler#handleUpdateVoterRequest.
    """
    refusal = pending_refusal(leadership)
    if refusal is None:
        refusal = leader_refusal(replica, leadership)
    if refusal is None and replica.log.control_records.kraft_version.is_reconfiguration_supported:
        refusal = _write_entry(replica, leadership, received, node)
    elif refusal is None:
        refusal = _keep_entry(leadership, node)
    if refusal is None:
        note_fetch_of_voter(replica, leadership, node.voter_key)
    return refusal


def _write_entry(
    replica: LocalReplica, leadership: Leadership, received: ReceivedRequest, node: VoterNode
) -> Refusal | None:
    """Write the entry to the log."""
    refusal = voters_refusal(replica, leadership, received)
    if refusal is not None:
        return refusal
    level = replica.log.control_records.kraft_version
    if not node.supported_kraft_versions.contains(level):
        return Refusal(ErrorCode.INVALID_REQUEST, f"voter {node.voter_key} does not support kraft.version {level:d}")
    after = replica.voters.update_voter(node)
    if after is None:
        return Refusal(ErrorCode.VOTER_NOT_FOUND, f"{node.voter_key} is not one of the voters {replica.voters}")
    written = write_voters(replica, leadership, after)
    return written if isinstance(written, Refusal) else None


def _keep_entry(leadership: Leadership, node: VoterNode) -> Refusal | None:
    """Keep the entry of a static voter in memory, for an upgrade of kraft.version.

    The log has no place for it: at kraft.version 0 a voter set is configured, and has no record. So each leader is told
    anew, and nothing of this survives its epoch. Unlike a set that is written, it changes no majority: neither a commit
    nor another change is waited for.

    Source: UpdateVoterHandler#storeUpdatedVoters.
    """
    if leadership.upgrade.voters is None:
        return not_now("an upgrade of kraft.version is being written")
    if not node.supported_kraft_versions.contains(KRaftVersion.KRAFT_VERSION_0):
        return Refusal(ErrorCode.INVALID_REQUEST, f"voter {node.voter_key} does not support kraft.version 0")
    problem = updated_voters_problem(leadership, node)
    if problem is not None:
        return Refusal(ErrorCode.INVALID_REQUEST, problem)
    if not update_voter_in_memory(leadership, node):
        return Refusal(ErrorCode.VOTER_NOT_FOUND, f"{node.voter_key} is not one of the voters")
    return None


def _response(replica: LocalReplica, received: ReceivedRequest, error: ErrorCode) -> UpdateRaftVoterResponse:
    leader, epoch = leader_and_epoch(replica)
    found = replica.leader_address(received.listener)
    current = UpdateRaftVoterResponseCurrentLeader(
        leader_id=leader,
        leader_epoch=epoch,
        host="" if found is None else found[1].host,
        port=0 if found is None else found[1].port,
    )
    return UpdateRaftVoterResponse(throttle_time_ms=0, error_code=error, current_leader=current)
