# SPDX-License-Identifier: Apache-2.0
"""Adds a voter: first asks the replica which levels of kraft.version it supports, then writes the new voter set.

Source: KafkaRaftClient#handleAddVoterRequest, AddVoterHandler; KIP-853.
"""

from typing import Final

from raftlog.quorum.leadership import Joiner, Leadership, PendingVoterChange
from raftlog.quorum.leading.caught_up import is_caught_up, is_majority_in_touch
from raftlog.quorum.leading.voter_change import (
    Refusal,
    add_voter_response,
    answer_change,
    change_refusal,
    end_change,
    not_now,
    write_voters,
)
from raftlog.quorum.leading.voter_requests import leader_error, requested_voter
from raftlog.quorum.replica import LocalReplica, SentRequest
from raftlog.quorum.requests import cluster_error
from raftlog.quorum.responses import ResponseOutcome
from raftlog.quorum.seam.effects import Destination
from raftlog.quorum.seam.identity import ReceivedRequest
from raftlog.records.messages.raft.api_versions_messages import ApiVersionsRequest, ApiVersionsResponse
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.voter_messages import AddRaftVoterRequest, AddRaftVoterResponse
from raftlog.voters.voter_set import SupportedVersionRange, VoterNode

KRAFT_VERSION_FEATURE: Final = "kraft.version"
"""The name of the feature in an ApiVersionsResponse."""

_QUESTION: Final = ApiVersionsRequest(client_software_name="raftlog", client_software_version="unknown")


def handle_add_voter_request(
    replica: LocalReplica, received: ReceivedRequest, request: AddRaftVoterRequest
) -> AddRaftVoterResponse | None:
    """Ask the new voter for its versions, and answer later; or answer at once why not.

    Source: KafkaRaftClient#handleAddVoterRequest.
    """
    error = cluster_error(replica, request.cluster_id) or leader_error(replica, replica.epoch)
    leadership = replica.leadership
    if error or leadership is None:
        return add_voter_response(Refusal(error, error.name))
    voter = requested_voter(replica, request.voter_id, request.voter_directory_id, request.listeners)
    if voter is None:
        reason = f"an id is missing, or listener {replica.identity.listener}"
        return add_voter_response(Refusal(ErrorCode.INVALID_REQUEST, reason))
    refusal = _ask(replica, leadership, received, Joiner(*voter, request.ack_when_committed))
    return None if refusal is None else add_voter_response(refusal)


def _ask(replica: LocalReplica, leadership: Leadership, received: ReceivedRequest, joiner: Joiner) -> Refusal | None:
    refusal = change_refusal(replica, leadership, received)
    if refusal is not None:
        return refusal
    key, address = joiner.key, joiner.endpoints.address(replica.identity.listener)
    if key.id in replica.voters.voter_ids:
        return Refusal(ErrorCode.DUPLICATE_VOTER, f"{key.id} is the id of one of the voters {replica.voters}")
    if address is None or not replica.connections.is_ready(key.id, replica.now_ms):
        return not_now(f"{key} is not ready for a request")
    replica.send(Destination(key.id, address.host, address.port), _QUESTION)
    deadline_ms = replica.now_ms + replica.config.request_timeout_ms
    leadership.voter_change = PendingVoterChange(received, deadline_ms, joiner)
    return None


def handle_api_versions_response(
    replica: LocalReplica, sent: SentRequest, response: ApiVersionsResponse
) -> ResponseOutcome:
    """Write the voter set with the new voter, if it supports the kraft.version in force and has caught up.

    Source: AddVoterHandler#handleApiVersionsResponse.
    """
    leadership = replica.leadership
    change = None if leadership is None else leadership.voter_change
    joiner = None if change is None else change.joiner
    if leadership is None or change is None or joiner is None or change.offset is not None:
        return ResponseOutcome.DONE
    if sent.destination.id != joiner.key.id:
        return ResponseOutcome.DONE  # It answers an earlier change, which has expired.
    if response.error_code:
        end_change(replica, leadership, not_now(f"{joiner.key} answers with error {response.error_code}"))
        return ResponseOutcome.FAILED
    written = _add(replica, leadership, joiner, response)
    if isinstance(written, Refusal):
        end_change(replica, leadership, written)
        return ResponseOutcome.DONE
    if not joiner.ack_when_committed:
        answer_change(replica, change)
    leadership.voter_change = change._replace(offset=written, is_answered=not joiner.ack_when_committed)
    return ResponseOutcome.DONE


def _add(replica: LocalReplica, leadership: Leadership, joiner: Joiner, response: ApiVersionsResponse) -> int | Refusal:
    """Write the voter set with the new voter, and return the offset of its record."""
    supported, level = _kraft_versions(response), replica.log.control_records.kraft_version
    if supported is None or not supported.contains(level):
        reason = f"{joiner.key} supports kraft.version {supported}, and not {level:d}"
        return Refusal(ErrorCode.INVALID_REQUEST, reason)
    if not is_caught_up(replica, leadership, joiner.key):
        return not_now(f"{joiner.key} has not caught up with the log, or not for long enough")
    after = replica.voters.add_voter(VoterNode(joiner.key, joiner.endpoints, supported))
    if after is None or not is_majority_in_touch(replica, leadership, after):
        return not_now(f"too few of the voters {after} have fetched of late")
    return write_voters(replica, leadership, after)


def _kraft_versions(response: ApiVersionsResponse) -> SupportedVersionRange | None:
    """Return the levels of kraft.version that a replica supports; None if it names none, or no valid ones."""
    for each in response.supported_features:
        if each.name == KRAFT_VERSION_FEATURE and 0 <= each.min_version <= each.max_version:
            return SupportedVersionRange(each.min_version, each.max_version)
    return None
