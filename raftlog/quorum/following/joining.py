# SPDX-License-Identifier: Apache-2.0
"""Lets an observer join the voters by itself, if it is configured to.

A replica whose disk was replaced has another directory id, so that the voter set still has its old entry: that is
removed first. A replica that has been a voter under its present directory id does not join again: it was removed, and
an operator who removes a voter wants it to stay removed (DECISIONS.md 58).

Source: KafkaRaftClient#pollFollowerAsObserver, #handleAddVoterResponse, #handleRemoveVoterResponse; KAFKA-19078.
"""

from typing import Final

import attrs

from raftlog.quorum.replica import LocalReplica, SentRequest
from raftlog.quorum.requests import listeners_of
from raftlog.quorum.responses import ResponseOutcome
from raftlog.quorum.roles.roles import Follower
from raftlog.quorum.seam.effects import Destination
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.voter_messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from raftlog.uuid_text import ZERO_UUID
from raftlog.voters.voter_set import ReplicaKey

_ADDED_OR_LATER: Final = frozenset({ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.DUPLICATE_VOTER})
_REMOVED_OR_LATER: Final = frozenset({ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.VOTER_NOT_FOUND})


def may_join(replica: LocalReplica) -> bool:
    """Whether this observer is to ask the leader to make it a voter.

    Differs: a replica that was removed, may have forgotten a vote, or has lost records, does not ask.
    """
    return (
        replica.config.auto_join
        and replica.identity.can_become_voter
        and replica.log.control_records.kraft_version.is_reconfiguration_supported
        and not replica.is_voter
        and not replica.has_been_voter
        and replica.may_stand
    )


def join_voters(replica: LocalReplica, role: Follower) -> bool:
    """Ask the leader, if it can be sent a request, to remove the old entry or to add this replica.

    Returns:
        whether a request was sent.
    """
    address = role.leader.endpoints.address(replica.identity.listener)
    if address is None or not replica.connections.is_ready(role.leader.id, replica.now_ms):
        return False
    entry = replica.voters.voters.get(replica.identity.key.id)
    message = add_voter_request(replica) if entry is None else remove_voter_request(replica, entry.voter_key)
    replica.send(Destination(role.leader.id, address.host, address.port), message)
    return True


def add_voter_request(replica: LocalReplica) -> AddRaftVoterRequest:
    """Return the request to add this replica; the answer need not wait until the new set is committed.

    Source: KafkaRaftClient#buildAddVoterRequest.
    """
    identity = replica.identity
    return AddRaftVoterRequest(
        cluster_id=identity.cluster_id,
        timeout_ms=replica.config.request_timeout_ms,
        voter_id=identity.key.id,
        voter_directory_id=identity.key.directory_id or ZERO_UUID,
        listeners=listeners_of(identity.endpoints),
        ack_when_committed=False,
    )


def remove_voter_request(replica: LocalReplica, voter: ReplicaKey) -> RemoveRaftVoterRequest:
    """Return the request to remove a voter.

    Source: KafkaRaftClient#buildRemoveVoterRequest.
    """
    return RemoveRaftVoterRequest(
        cluster_id=replica.identity.cluster_id,
        voter_id=voter.id,
        voter_directory_id=voter.directory_id or ZERO_UUID,
    )


def handle_add_voter_response(replica: LocalReplica, _: SentRequest, response: AddRaftVoterResponse) -> ResponseOutcome:
    """Wait for another period: this replica is a voter soon, or the leader cannot add one now."""
    return _wait(replica, is_expected=response.error_code in _ADDED_OR_LATER)


def handle_remove_voter_response(
    replica: LocalReplica, _: SentRequest, response: RemoveRaftVoterResponse
) -> ResponseOutcome:
    """Wait for another period: the old entry is removed soon, or the leader cannot remove one now."""
    return _wait(replica, is_expected=response.error_code in _REMOVED_OR_LATER)


def _wait(replica: LocalReplica, *, is_expected: bool) -> ResponseOutcome:
    role = replica.role
    if not is_expected or not isinstance(role, Follower):
        return ResponseOutcome.FAILED
    replica.role = attrs.evolve(role, update_deadline_ms=replica.now_ms + replica.config.update_voter_period_ms)
    return ResponseOutcome.DONE
