# SPDX-License-Identifier: Apache-2.0
"""Checks that the requests to change voters have in common. Source: KafkaRaftClient#validateLeaderOnlyRequest."""

import uuid
from collections.abc import Sequence

from raftlog.quorum.replica import LocalReplica
from raftlog.records.messages.raft.endpoints import Listener
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.uuid_text import ZERO_UUID
from raftlog.voters.voter_set import Endpoints, ReplicaKey


def leader_error(replica: LocalReplica, epoch: int) -> ErrorCode:
    """Return the error for a request to the leader of an epoch, if this replica does not lead it."""
    if epoch < replica.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > replica.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE if replica.leadership is not None else ErrorCode.NOT_LEADER_OR_FOLLOWER


def requested_key(voter_id: int, directory_id: uuid.UUID) -> ReplicaKey | None:
    """Return the voter that a request names; None if an id is missing."""
    return None if voter_id < 0 or directory_id == ZERO_UUID else ReplicaKey(voter_id, directory_id)


def requested_voter(
    replica: LocalReplica, voter_id: int, directory_id: uuid.UUID, listeners: Sequence[Listener]
) -> tuple[ReplicaKey, Endpoints] | None:
    """Return the voter that a request names, and where it listens.

    None if an id is missing, a listener is not valid or there twice, or the listener that replicas use is not there.
    """
    key = requested_key(voter_id, directory_id)
    by_name = {each.name.upper(): (each.host, each.port) for each in listeners}
    if key is None or len(by_name) < len(listeners):
        return None
    try:
        endpoints = Endpoints.of(by_name)
    except ValueError:
        return None
    return None if endpoints.address(replica.identity.listener) is None else (key, endpoints)
