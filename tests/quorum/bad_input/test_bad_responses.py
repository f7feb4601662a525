# SPDX-License-Identifier: Apache-2.0
"""Every kind of bad response to every RPC: it is ignored, or is a failed request, and no exception comes of it."""

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import pytest

from raftlog.quorum import dispatch
from raftlog.quorum.roles.roles import Follower
from raftlog.records.messages.raft.api_versions_messages import ApiVersionsRequest
from raftlog.records.messages.raft.election_messages import BeginQuorumEpochRequest, EndQuorumEpochRequest, VoteRequest
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.fetch_messages import FetchRequest, FetchResponseSnapshotId, FetchSnapshotRequest
from raftlog.records.messages.raft.raft_messages import RaftRequest, RaftResponse
from raftlog.records.messages.raft.voter_messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
    UpdateRaftVoterResponseCurrentLeader,
)
from tests.quorum.bad_input.replicas import EPOCH, REPLICAS, UNKNOWN
from tests.quorum.bad_input.test_bad_requests import OTHER, changed
from tests.quorum.following.followers import DATA, SNAPSHOT
from tests.quorum.messages import (
    api_versions_response,
    begin_quorum_epoch_request,
    begin_quorum_epoch_response,
    end_quorum_epoch_response,
    fetch_response,
    fetch_snapshot_response,
    records_at,
    vote_response,
)
from tests.quorum.single_replica import SingleReplica
from tests.quorum.whole_state import state_without, state_without_numbers


class Bad(enum.Enum):
    """What is wrong with a response."""

    TOPIC = "for another topic"
    PARTITION = "for another partition"
    OLD_EPOCH = "of an epoch that is over"
    OFFSET = "with an impossible offset"
    ERROR = "with an error that the RPC does not have"
    UNASKED = "to no request"
    DUPLICATE = "that came before"
    OTHER_EPOCH = "to a request of an earlier epoch"
    SHUTDOWN = "after the replica has shut down"


WHOLE: Final = frozenset({Bad.UNASKED, Bad.DUPLICATE, Bad.OTHER_EPOCH, Bad.SHUTDOWN})
"""What is ignored: nothing at all has changed. Of other bad responses the sender pauses, or asks again."""

SENDING: Final = ("connections", "sent", "outbox")
"""The attributes of a replica that say what it is about to send."""

_LEADER: Final = UpdateRaftVoterResponseCurrentLeader(leader_id=2, leader_epoch=EPOCH, host="localhost", port=9992)

RIGHT: Final[Mapping[type[RaftRequest], tuple[str, RaftResponse]]] = MappingProxyType(
    {
        VoteRequest: ("prospective", vote_response(is_granted=True, epoch=EPOCH)),
        BeginQuorumEpochRequest: ("leader", begin_quorum_epoch_response(EPOCH, 1)),
        EndQuorumEpochRequest: ("resigned", end_quorum_epoch_response(EPOCH, 1)),
        FetchRequest: ("follower", fetch_response(EPOCH, 2, records=records_at(6, EPOCH, 1), high_watermark=7)),
        FetchSnapshotRequest: (
            "fetching_snapshot",
            fetch_snapshot_response(EPOCH, 2, SNAPSHOT, 100, DATA[100:], len(DATA)),
        ),
        AddRaftVoterRequest: ("joining", AddRaftVoterResponse(throttle_time_ms=0, error_code=0, error_message=None)),
        RemoveRaftVoterRequest: (
            "leaving",
            RemoveRaftVoterResponse(throttle_time_ms=0, error_code=0, error_message=None),
        ),
        UpdateRaftVoterRequest: (
            "updating",
            UpdateRaftVoterResponse(throttle_time_ms=0, error_code=0, current_leader=_LEADER),
        ),
        ApiVersionsRequest: ("leader_that_adds", api_versions_response()),
    }
)
"""By RPC: a response that is taken, and the replica that has asked for it."""

NOT_THERE: Final = "the response has no field for that"


def _of_topics(name: str, index: str, epoch: str) -> dict[Bad, tuple[str, object] | str]:
    return {
        Bad.TOPIC: (name, UNKNOWN.directory_id if name == "topic_id" else OTHER),
        Bad.PARTITION: (index, 1),
        Bad.OLD_EPOCH: (epoch, EPOCH - 1),
        Bad.OFFSET: NOT_THERE,
        Bad.ERROR: ("error_code", ErrorCode.DUPLICATE_VOTER),
    }


_NO_LOG: Final[dict[Bad, tuple[str, object] | str]] = dict.fromkeys(
    (Bad.TOPIC, Bad.PARTITION, Bad.OLD_EPOCH, Bad.OFFSET), NOT_THERE
)
_CHANGE: Final[dict[Bad, tuple[str, object] | str]] = {
    **_NO_LOG,
    Bad.ERROR: ("error_code", ErrorCode.SNAPSHOT_NOT_FOUND),
}

FIELDS: Final[Mapping[type[RaftRequest], Mapping[Bad, tuple[str, object] | str]]] = MappingProxyType(
    {
        VoteRequest: _of_topics("topic_name", "partition_index", "leader_epoch"),
        BeginQuorumEpochRequest: _of_topics("topic_name", "partition_index", "leader_epoch"),
        EndQuorumEpochRequest: _of_topics("topic_name", "partition_index", "leader_epoch"),
        FetchRequest: {
            **_of_topics("topic_id", "partition_index", "leader_epoch"),
            Bad.OFFSET: ("snapshot_id", FetchResponseSnapshotId(end_offset=20, epoch=-1)),
        },
        FetchSnapshotRequest: {**_of_topics("name", "index", "leader_epoch"), Bad.OFFSET: ("position", 99)},
        AddRaftVoterRequest: _CHANGE,
        RemoveRaftVoterRequest: _CHANGE,
        UpdateRaftVoterRequest: {
            **_CHANGE,
            Bad.OLD_EPOCH: ("leader_epoch", EPOCH - 1),
        },
        ApiVersionsRequest: {**_NO_LOG, Bad.ERROR: "any error ends the change"},
    }
)
"""By RPC: the field that makes a response bad, and its value; or why there is no such response."""

BAD: Final = [
    pytest.param(kind, bad, id=f"{kind.__name__.removesuffix('Request')} {bad.value}")
    for kind, fields in FIELDS.items()
    for bad, field in fields.items()
    if not isinstance(field, str)
]


def asking(kind: type[RaftRequest]) -> tuple[SingleReplica, int, RaftResponse]:
    """Return a replica that has sent a request of a kind, the number of that, and the right response."""
    name, response = RIGHT[kind]
    core = REPLICAS[name]()
    sent = [each.number for each in core.take_requests() if isinstance(each.message, kind)]
    return core, sent[0], response


def test_the_table_has_every_bad_response_of_every_rpc() -> None:
    """The rows are the RPCs that the core sends; each has all kinds of bad responses."""
    assert set(FIELDS) == set(RIGHT) == set(dispatch._RESPONSES)
    for kind, fields in FIELDS.items():
        assert set(fields) == set(Bad) - WHOLE, kind


@pytest.mark.parametrize("kind", list(RIGHT))
def test_the_right_response_is_taken(kind: type[RaftRequest]) -> None:
    """So it is what is wrong with the others that they are not taken for."""
    core, number, response = asking(kind)
    before = state_without_numbers(core.raft)
    core.respond(number, response)
    assert state_without_numbers(core.raft) != before
    assert core.raft.halt_reason is None


@pytest.mark.parametrize(("kind", "bad"), BAD)
def test_a_bad_response_is_not_taken(kind: type[RaftRequest], bad: Bad) -> None:
    """It tells this replica nothing; it asks again, at once or after a pause."""
    field = FIELDS[kind][bad]
    assert not isinstance(field, str)
    core, number, response = asking(kind)
    wrong = changed(response, *field)
    assert wrong != response
    before = state_without(core.raft, *SENDING)
    core.respond(number, wrong)
    assert state_without(core.raft, *SENDING) == before
    assert core.raft.halt_reason is None


@pytest.mark.parametrize("kind", list(RIGHT))
@pytest.mark.parametrize("number", [-1, 0, 2**40])
def test_a_response_to_no_request_is_ignored(kind: type[RaftRequest], number: int) -> None:
    """Nothing at all has changed."""
    core, _, response = asking(kind)
    before = state_without_numbers(core.raft)
    core.respond(number, response)
    assert state_without_numbers(core.raft) == before


@pytest.mark.parametrize("kind", list(RIGHT))
def test_a_second_response_is_ignored(kind: type[RaftRequest]) -> None:
    """Whatever the first one has changed, the second changes nothing more."""
    core, number, response = asking(kind)
    core.respond(number, response)
    before = state_without_numbers(core.raft)
    core.respond(number, response)
    assert state_without_numbers(core.raft) == before


@pytest.mark.parametrize("kind", list(RIGHT))
def test_a_response_to_a_request_of_an_earlier_epoch_is_ignored(kind: type[RaftRequest]) -> None:
    """This replica has followed another leader since."""
    core, number, response = asking(kind)
    core.request("", begin_quorum_epoch_request(3, EPOCH + 2), version=1)
    assert isinstance(core.raft.role, Follower)
    before = state_without_numbers(core.raft)
    core.respond(number, response)
    assert state_without_numbers(core.raft) == before


@pytest.mark.parametrize("kind", list(RIGHT))
def test_a_response_after_the_shutdown_is_ignored(kind: type[RaftRequest]) -> None:
    """Nothing at all has changed."""
    core, number, response = asking(kind)
    core.raft.shutdown(0)
    core.settle()
    assert core.raft.halt_reason is not None
    before = state_without_numbers(core.raft)
    core.respond(number, response)
    assert state_without_numbers(core.raft) == before


@pytest.mark.parametrize("kind", list(RIGHT))
def test_a_response_of_another_kind_is_misuse(kind: type[RaftRequest]) -> None:
    """The driver has mixed up two requests; nothing has changed."""
    core, number, response = asking(kind)
    others = [each for _, each in RIGHT.values() if type(each) is not type(response)]
    before = state_without_numbers(core.raft)
    for other in others:
        with pytest.raises(ValueError, match=f"{type(other).__name__} to a "):
            core.raft.receive_response(number, other)
        assert state_without_numbers(core.raft) == before
