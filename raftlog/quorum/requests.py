# SPDX-License-Identifier: Apache-2.0
"""Checks that the handlers of requests have in common, and what they learn about leaders.

Source: RaftUtil, KafkaRaftClient#validateVoterOnlyRequest, KafkaRaftClient#maybeTransition.
"""

import uuid
from collections.abc import Sequence
from typing import Any

from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.roles.roles import Candidate, Follower, KnownLeader, Leader, Resigned
from raftlog.quorum.roles.transitions import EpochLearned, LeaderLearned
from raftlog.quorum.seam.identity import ReceivedRequest
from raftlog.records.messages.raft.endpoints import Listener, NodeEndpoint
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.uuid_text import ZERO_UUID
from raftlog.voters.voter_set import Endpoints


def cluster_error(replica: LocalReplica, cluster_id: str | None) -> ErrorCode:
    """Return the error for a request of another cluster; a request without a cluster id is of this one."""
    is_ours = cluster_id in (None, replica.identity.cluster_id)
    return ErrorCode.NONE if is_ours else ErrorCode.INCONSISTENT_CLUSTER_ID


def only_partition(replica: LocalReplica, topics: Sequence[Any]) -> Any | None:
    """Return the one partition of a request by topic names; None if it is not exactly this replica's log."""
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    partition = topics[0].partitions[0]
    is_ours = topics[0].topic_name == replica.identity.topic_name and partition.partition_index == 0
    return partition if is_ours else None


def asked_partition(replica: LocalReplica, request: Any) -> tuple[ErrorCode, Any]:
    """Return the error for a request by topic names as a whole, and its one partition if there is none."""
    error = cluster_error(replica, request.cluster_id)
    partition = None if error else only_partition(replica, request.topics)
    return (error or ErrorCode.INVALID_REQUEST if partition is None else ErrorCode.NONE), partition


def voter_request_error(replica: LocalReplica, sender_id: int, epoch: int) -> ErrorCode:
    """Return the error for a request of a candidate or leader: a past epoch, or a sender without an id."""
    if epoch < replica.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.INVALID_REQUEST if sender_id < 0 else ErrorCode.NONE


def is_addressee(replica: LocalReplica, voter_id: int, directory_id: uuid.UUID) -> bool:
    """Whether a request is for this replica: it names it, with or without the directory id, or names no replica."""
    if voter_id < 0:
        return True
    key = replica.identity.key
    return voter_id == key.id and directory_id in (ZERO_UUID, key.directory_id)


def leader_and_epoch(replica: LocalReplica) -> tuple[int, int]:
    """Return the leader's id, or -1, and the epoch, for a response."""
    return (-1 if replica.leader_id is None else replica.leader_id), replica.epoch


def listeners_of(endpoints: Endpoints) -> tuple[Listener, ...]:
    """Return where a voter listens, for a message."""
    return tuple(Listener(name=name, host=at.host, port=at.port) for name, at in endpoints.listeners.items())


def node_endpoints(replica: LocalReplica, request: ReceivedRequest, from_version: int = 1) -> tuple[NodeEndpoint, ...]:
    """Return where the leader listens, for a response; empty if it is not known, or the version has no place for it."""
    found = replica.leader_address(request.listener) if request.version >= from_version else None
    if found is None:
        return ()
    leader, address = found
    return (NodeEndpoint(node_id=leader, host=address.host, port=address.port),)


def learn_leader(replica: LocalReplica, epoch: int, leader: int | None, endpoints: Endpoints) -> None:
    """Follow what a peer says about an epoch that is not a past one: enter it, and follow its leader if it is new.

    Args:
        replica: this replica.
        epoch: not below the current one.
        leader: the id of its leader, or None.
        endpoints: where the leader listens; empty if that is not known.

    If the epoch has another leader already, the replica halts. A leader with this replica's id, as which this replica
    does not know itself, had a disk that was replaced. It is unknown, and no vote is given in its epoch.

    Source: KafkaRaftClient#maybeTransition. Differs: DECISIONS.md 54.
    """
    if not _is_consistent(replica, epoch, leader):
        replica.halt(f"epoch {epoch} has two leaders: {replica.leader_id} and {leader}")
        return
    if leader == replica.identity.key.id and not (
        isinstance(replica.role, Leader | Resigned) and epoch == replica.epoch
    ):
        replica.disowned_epoch, leader = epoch, None
    known = KnownLeader(leader, endpoints) if leader is not None and endpoints else None
    if epoch > replica.epoch:
        replica.change_role(EpochLearned(epoch, leader) if known is None else LeaderLearned(epoch, known))
    elif known is not None and _is_news(replica, known):
        replica.change_role(LeaderLearned(epoch, known))


def _is_consistent(replica: LocalReplica, epoch: int, leader: int | None) -> bool:
    """Whether what a peer says about the leader of an epoch agrees with what this replica knows."""
    if leader is None or epoch != replica.epoch:
        return True
    is_candidate = isinstance(replica.role, Candidate) and leader == replica.identity.key.id
    return replica.leader_id in (None, leader) and not is_candidate


def _is_news(replica: LocalReplica, leader: KnownLeader) -> bool:
    """Whether a leader of the current epoch is a new one, or has more endpoints than were known."""
    if isinstance(replica.role, Leader | Resigned):
        return False
    if isinstance(replica.role, Follower):
        return len(leader.endpoints) > len(replica.role.leader.endpoints)
    return replica.leader_id is None or len(leader.endpoints) > len(replica.leader_endpoints)
