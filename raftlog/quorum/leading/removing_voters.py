# SPDX-License-Identifier: Apache-2.0
"""Removes a voter. A leader may remove itself: it leads on without counting itself, and resigns after the commit.

Not if it is one of two (DECISIONS.md 66): it could lose its leadership before the other one has the record.

Source: KafkaRaftClient#handleRemoveVoterRequest, RemoveVoterHandler; KIP-853.
"""

from raftlog.quorum.leadership import Leadership, PendingVoterChange
from raftlog.quorum.leading.caught_up import can_elect_without, is_majority_in_touch
from raftlog.quorum.leading.voter_change import Refusal, change_refusal, not_now, remove_voter_response, write_voters
from raftlog.quorum.leading.voter_requests import leader_error, requested_key
from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.requests import cluster_error
from raftlog.quorum.seam.identity import ReceivedRequest
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.voter_messages import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from raftlog.voters.voter_set import ReplicaKey


def handle_remove_voter_request(
    replica: LocalReplica, received: ReceivedRequest, request: RemoveRaftVoterRequest
) -> RemoveRaftVoterResponse | None:
    """Write the voter set without a voter, and answer once it is committed; or answer at once why not.

    Source: KafkaRaftClient#handleRemoveVoterRequest.
    """
    error = cluster_error(replica, request.cluster_id) or leader_error(replica, replica.epoch)
    leadership, key = replica.leadership, requested_key(request.voter_id, request.voter_directory_id)
    if error or leadership is None:
        return remove_voter_response(Refusal(error, error.name))
    if key is None:
        return remove_voter_response(Refusal(ErrorCode.INVALID_REQUEST, "an id is missing"))
    refusal = _remove(replica, leadership, received, key)
    return None if refusal is None else remove_voter_response(refusal)


def _remove(
    replica: LocalReplica, leadership: Leadership, received: ReceivedRequest, key: ReplicaKey
) -> Refusal | None:
    refusal = change_refusal(replica, leadership, received)
    if refusal is not None:
        return refusal
    after = replica.voters.remove_voter(key)
    if after is None:
        reason = f"{key} is not one of the voters {replica.voters}, or the only one"
        return Refusal(ErrorCode.VOTER_NOT_FOUND, reason)
    if not is_majority_in_touch(replica, leadership, after):
        return not_now(f"too few of the voters {after} have fetched of late")
    if key.id == replica.identity.key.id and not can_elect_without(replica, leadership):
        return not_now(
            f"too few other voters of {replica.voters} have fetched of late; resign, and ask the next leader"
        )
    written = write_voters(replica, leadership, after)
    if isinstance(written, Refusal):
        return written
    deadline_ms = replica.now_ms + replica.config.request_timeout_ms
    leadership.voter_change = PendingVoterChange(received, deadline_ms, offset=written)
    return None
