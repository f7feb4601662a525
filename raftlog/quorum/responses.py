# SPDX-License-Identifier: Apache-2.0
"""Handles what all responses have in common: a peer may know a later epoch or a leader, or report an error.

Source: KafkaRaftClient#maybeHandleCommonResponse, KafkaRaftClient#handleTopLevelError.
"""

import enum
from collections.abc import Sequence
from typing import Any

from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.requests import learn_leader
from raftlog.records.messages.raft.endpoints import NodeEndpoint
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.fetch_messages import FetchResponseNodeEndpoint
from raftlog.voters.voter_set import Endpoints

_UNFIT = frozenset({ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.INVALID_VOTER_KEY})
"""The peer is behind, or is another replica than the one that was asked: that stays so for a while."""
_LEADER_IS_OTHER = frozenset({ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER})


class ResponseOutcome(enum.Enum):
    """What is to be done with a response."""

    CONTINUE = "continue"
    """It answers the request: handle what it says."""
    DONE = "done"
    """It needs no more handling. The next request may be sent at once."""
    FAILED = "failed"
    """The request has failed: pause before the next one."""


def handle_common(
    replica: LocalReplica, error_code: int, epoch: int, leader_id: int, endpoints: Endpoints
) -> ResponseOutcome:
    """Handle what every response of a replica says about its error, its epoch and its leader.

    Args:
        replica: this replica.
        error_code: of the partition.
        epoch: that the peer knows.
        leader_id: that the peer knows, or -1.
        endpoints: where that leader listens; empty if the response does not say.

    Differs: INVALID_REQUEST is fatal in Kafka; here it is a failed request. A peer that is behind, or is another
    replica, is asked again at once by Kafka (DECISIONS.md 54).
    """
    leader = None if leader_id < 0 else leader_id
    is_failed = error_code in _UNFIT and replica.config.pause_after_refusal
    if epoch < replica.epoch or error_code == ErrorCode.UNKNOWN_LEADER_EPOCH:
        return ResponseOutcome.FAILED if is_failed else ResponseOutcome.DONE
    known = replica.known_leader(leader, endpoints)
    where = Endpoints() if known is None else known.endpoints
    if epoch > replica.epoch or error_code in _LEADER_IS_OTHER:
        learn_leader(replica, epoch, leader, where)
        return ResponseOutcome.DONE
    # Its id may be known, as from the election state. Then Kafka's client follows no leader that an error names.
    is_new = replica.leader_id is None or (error_code == ErrorCode.NONE and not replica.leader_endpoints)
    if known is not None and is_new:
        learn_leader(replica, epoch, leader, where)
        return ResponseOutcome.CONTINUE if error_code == ErrorCode.NONE else ResponseOutcome.DONE
    if error_code == ErrorCode.NONE:
        return ResponseOutcome.CONTINUE
    return ResponseOutcome.DONE if error_code in _UNFIT and not is_failed else ResponseOutcome.FAILED


def only_answer(replica: LocalReplica, topics: Sequence[Any]) -> Any | None:
    """Return the one partition of a response by topic names; None if it is not this replica's log."""
    if len(topics) != 1 or len(topics[0].partitions) != 1 or topics[0].topic_name != replica.identity.topic_name:
        return None
    answer = topics[0].partitions[0]
    return answer if answer.partition_index == 0 else None


def handle_answer(replica: LocalReplica, response: Any) -> tuple[ResponseOutcome, Any]:
    """Handle what every response by topic names says; return the outcome, and the one partition if it is CONTINUE.

    Args:
        replica: this replica.
        response: whose partitions name the leader and the epoch.
    """
    answer = only_answer(replica, response.topics)
    if response.error_code or answer is None:
        return ResponseOutcome.FAILED, None
    endpoints = endpoints_of(replica, response.node_endpoints, answer.leader_id)
    return handle_common(replica, answer.error_code, answer.leader_epoch, answer.leader_id, endpoints), answer


def endpoints_of(
    replica: LocalReplica, endpoints: Sequence[NodeEndpoint | FetchResponseNodeEndpoint], leader_id: int
) -> Endpoints:
    """Return where a response says that the leader listens: at the listener of this replica's requests."""
    for each in endpoints:
        if each.node_id == leader_id and 0 <= each.port <= 65535:
            return Endpoints.of({replica.identity.listener: (each.host, each.port)})
    return Endpoints()
