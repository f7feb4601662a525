# SPDX-License-Identifier: Apache-2.0
"""Which function handles which message: one table for requests, and one for responses.

Requests whose answer may have to wait (Fetch, and requests that change the voters) answer by themselves; the others
return their answer.

Source: KafkaRaftClient#handleRequest, #handleResponse.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from raftlog.quorum.describing.quorum_described import handle_describe_quorum_request
from raftlog.quorum.describing.versions_described import handle_api_versions_request
from raftlog.quorum.elections.announcements import (
    handle_begin_quorum_epoch_request,
    handle_begin_quorum_epoch_response,
    handle_end_quorum_epoch_request,
    handle_end_quorum_epoch_response,
)
from raftlog.quorum.elections.standing import handle_vote_response
from raftlog.quorum.elections.votes_asked import handle_vote_request
from raftlog.quorum.following.fetching import handle_fetch_response
from raftlog.quorum.following.fetching_snapshot import handle_fetch_snapshot_response
from raftlog.quorum.following.joining import handle_add_voter_response, handle_remove_voter_response
from raftlog.quorum.following.updating_voter import handle_update_voter_response
from raftlog.quorum.leading.adding_voters import handle_add_voter_request, handle_api_versions_response
from raftlog.quorum.leading.removing_voters import handle_remove_voter_request
from raftlog.quorum.leading.serving import handle_fetch_request
from raftlog.quorum.leading.serving_snapshots import handle_fetch_snapshot_request
from raftlog.quorum.leading.updating_voters import handle_update_voter_request
from raftlog.quorum.replica import LocalReplica, SentRequest
from raftlog.quorum.responses import ResponseOutcome
from raftlog.quorum.seam.identity import ReceivedRequest
from raftlog.records.messages.raft.api_versions_messages import ApiVersionsRequest, ApiVersionsResponse
from raftlog.records.messages.raft.election_messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    VoteRequest,
    VoteResponse,
)
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.fetch_messages import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
)
from raftlog.records.messages.raft.raft_messages import RaftRequest, RaftResponse, error_response
from raftlog.records.messages.raft.voter_messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    DescribeQuorumRequest,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)

RequestHandler = Callable[[LocalReplica, ReceivedRequest, Any], RaftResponse | None]
ResponseHandler = Callable[[LocalReplica, SentRequest, Any], ResponseOutcome]

_REQUESTS: Final[Mapping[type[RaftRequest], RequestHandler]] = MappingProxyType(
    {
        VoteRequest: handle_vote_request,
        BeginQuorumEpochRequest: handle_begin_quorum_epoch_request,
        EndQuorumEpochRequest: handle_end_quorum_epoch_request,
        FetchRequest: handle_fetch_request,
        AddRaftVoterRequest: handle_add_voter_request,
        RemoveRaftVoterRequest: handle_remove_voter_request,
        UpdateRaftVoterRequest: handle_update_voter_request,
        DescribeQuorumRequest: handle_describe_quorum_request,
        FetchSnapshotRequest: handle_fetch_snapshot_request,
        ApiVersionsRequest: handle_api_versions_request,
    }
)
"""By request: the function that handles it. It returns the answer, or None if it sees to the answer itself."""

_RESPONSES: Final[Mapping[type[RaftRequest], tuple[type[RaftResponse], ResponseHandler]]] = MappingProxyType(
    {
        VoteRequest: (VoteResponse, handle_vote_response),
        BeginQuorumEpochRequest: (BeginQuorumEpochResponse, handle_begin_quorum_epoch_response),
        EndQuorumEpochRequest: (EndQuorumEpochResponse, handle_end_quorum_epoch_response),
        FetchRequest: (FetchResponse, handle_fetch_response),
        AddRaftVoterRequest: (AddRaftVoterResponse, handle_add_voter_response),
        RemoveRaftVoterRequest: (RemoveRaftVoterResponse, handle_remove_voter_response),
        FetchSnapshotRequest: (FetchSnapshotResponse, handle_fetch_snapshot_response),
        UpdateRaftVoterRequest: (UpdateRaftVoterResponse, handle_update_voter_response),
        ApiVersionsRequest: (ApiVersionsResponse, handle_api_versions_response),
    }
)
"""By the request that was sent: the response to it, and the function that handles that."""


def refuse_request(replica: LocalReplica, received: ReceivedRequest, request: RaftRequest) -> None:
    """Refuse a request as if the connection were lost: the peer pauses, or asks another replica."""
    replica.outbox.refuse(received.token, error_response(request, ErrorCode.BROKER_NOT_AVAILABLE))


def handle_request(replica: LocalReplica, received: ReceivedRequest, request: RaftRequest) -> None:
    """Handle a request, and answer it now or later.

    If too many answers wait for a slow disk already, the request is refused with BROKER_NOT_AVAILABLE, as if the
    connection were lost: the peer tries again after a pause.

    Raises:
        TypeError: it is not a request of raft. Nothing has changed.
    """
    handler = _REQUESTS.get(type(request))
    if handler is None:
        raise TypeError(f"not a request of raft: {type(request).__name__}")
    if replica.outbox.is_full:
        refuse_request(replica, received, request)
        return
    response = handler(replica, received, request)
    if response is not None and replica.halt_reason is None:
        replica.outbox.respond(received.token, response)


def check_response_type(sent: SentRequest, response: RaftResponse) -> None:
    """Check that a response is of the kind that its request is answered with.

    Raises:
        ValueError: it is of another kind.
    """
    if _RESPONSES[type(sent.message)][0] is not type(response):
        raise ValueError(f"{type(response).__name__} to a {type(sent.message).__name__}")


def handle_response(replica: LocalReplica, sent: SentRequest, response: RaftResponse) -> ResponseOutcome:
    """Handle the response to a request that was sent, and that is still waited for."""
    return _RESPONSES[type(sent.message)][1](replica, sent, response)
