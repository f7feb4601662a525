# SPDX-License-Identifier: Apache-2.0
"""Every kind of bad request to every RPC: the error that the RPC defines, no change of the state, and no exception.

A cell of the table is a request and its error, or the reason why there is no such request, or why it is a valid one. A
new RPC, or a new kind of bad input, without its cells fails the first test.
"""

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs
import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum import dispatch
from raftlog.records.messages.raft.api_versions_messages import ApiVersionsRequest
from raftlog.records.messages.raft.election_messages import BeginQuorumEpochRequest, EndQuorumEpochRequest, VoteRequest
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.fetch_messages import FetchRequest, FetchSnapshotRequest
from raftlog.records.messages.raft.raft_messages import RaftRequest
from raftlog.records.messages.raft.voter_messages import (
    AddRaftVoterRequest,
    DescribeQuorumRequest,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
)
from raftlog.records.messages.schema import message_types
from raftlog.voters.voter_set import ReplicaKey
from tests.quorum.bad_input.replicas import EPOCH, REMOVED, REPLICAS, TAKEN, UNKNOWN, VOTER
from tests.quorum.messages import (
    add_voter_request,
    begin_quorum_epoch_request,
    describe_quorum_request,
    end_quorum_epoch_request,
    fetch_request,
    fetch_snapshot_request,
    remove_voter_request,
    update_voter_request,
    vote_request,
)
from tests.quorum.single_replica import SingleReplica, replica_key
from tests.quorum.whole_state import state_without_numbers

OTHER: Final = "other"
JOINER: Final = replica_key(4)


class Bad(enum.Enum):
    """What is wrong with a request."""

    CLUSTER = "of another cluster"
    UNKNOWN_VOTER = "from, or about, a replica that never was a voter"
    REMOVED_VOTER = "from, or about, a voter that was removed"
    TOPIC = "for another topic"
    PARTITION = "for another partition"
    OLD_EPOCH = "of an epoch that is over"
    FUTURE_EPOCH = "of an epoch that has not begun"
    OFFSET = "with an impossible offset"
    DUPLICATE = "that came before"
    SHUTDOWN = "after the replica has shut down"
    UNCOMMITTED = "to change the voters while a change is not committed"
    PRESENT = "to add a voter that is there"
    LAST = "to remove the last voter"


@attrs.frozen
class Refused:
    """A request that is refused.

    Attributes:
        message: the request.
        error: in the answer.
        to: the replica in ``REPLICAS``; by default the one that would take the right request.
    """

    message: RaftRequest
    error: ErrorCode
    to: str | None = None


@attrs.frozen
class Valid:
    """A request that only looks bad: it is answered without an error, and may change the state."""

    message: RaftRequest
    why: str


@attrs.frozen
class Nothing:
    """There is no such request: the RPC has no field for it."""

    why: str = "the RPC has no field for that"


Cell = Refused | Valid | Nothing
NO_CHANGE: Final = Nothing("it does not change the voters")
END: Final = OffsetAndEpoch(10, EPOCH)
"""Where the leader's log ends."""

RIGHT: Final[Mapping[type[RaftRequest], tuple[str, RaftRequest]]] = MappingProxyType(
    {
        VoteRequest: ("unattached", vote_request(VOTER, EPOCH, OffsetAndEpoch(6, 2))),
        BeginQuorumEpochRequest: ("unattached", begin_quorum_epoch_request(2, EPOCH)),
        EndQuorumEpochRequest: ("follower", end_quorum_epoch_request(2, EPOCH, (replica_key(1),))),
        FetchRequest: ("leader", fetch_request(VOTER, EPOCH, END, max_wait_ms=0)),
        FetchSnapshotRequest: ("leader", fetch_snapshot_request(VOTER, EPOCH, TAKEN)),
        DescribeQuorumRequest: ("leader", describe_quorum_request()),
        AddRaftVoterRequest: ("leader", add_voter_request(JOINER)),
        RemoveRaftVoterRequest: ("leader", remove_voter_request(VOTER)),
        UpdateRaftVoterRequest: ("leader", update_voter_request(VOTER, EPOCH, port=1)),
        ApiVersionsRequest: ("follower", ApiVersionsRequest()),
    }
)
"""By RPC: a request that is taken, and the replica that takes it."""


def changed(message: Any, name: str, value: object) -> Any:
    """Return a request with another value in every field of a name, however deep it is."""
    if isinstance(message, tuple):
        return tuple(changed(each, name, value) for each in message)
    if not attrs.has(type(message)) or isinstance(message, ReplicaKey):
        return message
    values = {each.name: getattr(message, each.name) for each in attrs.fields(type(message))}
    return attrs.evolve(
        message,
        **{key: value if key == name else changed(each, name, value) for key, each in values.items() if each != ()},
    )


def _right(kind: type[RaftRequest]) -> RaftRequest:
    return RIGHT[kind][1]


def _refused(kind: type[RaftRequest], name: str, value: object, error: ErrorCode) -> Refused:
    wrong = changed(_right(kind), name, value)
    assert wrong != _right(kind)
    return Refused(wrong, error)


def _of_any(kind: type[RaftRequest]) -> dict[Bad, Cell]:
    """Return the cells that are alike for all RPCs."""
    cells: dict[Bad, Cell] = {Bad.SHUTDOWN: Refused(_right(kind), ErrorCode.BROKER_NOT_AVAILABLE, "stopped")}
    if hasattr(_right(kind), "cluster_id"):
        cells[Bad.CLUSTER] = _refused(kind, "cluster_id", OTHER, ErrorCode.INCONSISTENT_CLUSTER_ID)
    else:
        cells[Bad.CLUSTER] = Nothing()
    return cells


def _without(*kinds: Bad, why: Nothing | None = None) -> Mapping[Bad, Cell]:
    return dict.fromkeys(kinds, why or Nothing())


_NO_VOTERS: Final = _without(Bad.UNCOMMITTED, Bad.PRESENT, Bad.LAST, why=NO_CHANGE)
_NO_LOG: Final = _without(Bad.TOPIC, Bad.PARTITION, Bad.OFFSET)
_NO_EPOCH: Final = _without(Bad.OLD_EPOCH, Bad.FUTURE_EPOCH)
_MOVED: Final = update_voter_request(VOTER, EPOCH, port=1)
_OBSERVER: Final = "observers fetch, and do not count"
_AS_UNKNOWN: Final = "as an unknown one"
_BUSY: Final = "leader_with_uncommitted_voters"
_SAME_AGAIN: Final = "it is answered as the first one was, and changes nothing more: see the test of duplicates"

TABLE: Final[Mapping[type[RaftRequest], Mapping[Bad, Cell]]] = MappingProxyType(
    {
        VoteRequest: {
            **_of_any(VoteRequest),
            **_NO_VOTERS,
            Bad.UNKNOWN_VOTER: Valid(
                vote_request(UNKNOWN, EPOCH, OffsetAndEpoch(6, 2)),
                "it may have been added, as far as this replica knows",
            ),
            Bad.REMOVED_VOTER: Valid(vote_request(REMOVED, EPOCH, OffsetAndEpoch(6, 2)), _AS_UNKNOWN),
            Bad.TOPIC: _refused(VoteRequest, "topic_name", OTHER, ErrorCode.INVALID_REQUEST),
            Bad.PARTITION: _refused(VoteRequest, "partition_index", 1, ErrorCode.INVALID_REQUEST),
            Bad.OLD_EPOCH: Refused(vote_request(VOTER, 2, OffsetAndEpoch(3, 1)), ErrorCode.FENCED_LEADER_EPOCH),
            Bad.FUTURE_EPOCH: Valid(vote_request(VOTER, EPOCH + 1, OffsetAndEpoch(6, 2)), "candidates begin epochs"),
            Bad.OFFSET: _refused(VoteRequest, "last_offset", -1, ErrorCode.INVALID_REQUEST),
            Bad.DUPLICATE: Valid(_right(VoteRequest), _SAME_AGAIN),
        },
        BeginQuorumEpochRequest: {
            **_of_any(BeginQuorumEpochRequest),
            **_NO_VOTERS,
            Bad.UNKNOWN_VOTER: Valid(begin_quorum_epoch_request(9, EPOCH), "others may have elected it"),
            Bad.REMOVED_VOTER: Valid(begin_quorum_epoch_request(3, EPOCH), _AS_UNKNOWN),
            Bad.TOPIC: _refused(BeginQuorumEpochRequest, "topic_name", OTHER, ErrorCode.INVALID_REQUEST),
            Bad.PARTITION: _refused(BeginQuorumEpochRequest, "partition_index", 1, ErrorCode.INVALID_REQUEST),
            Bad.OLD_EPOCH: _refused(BeginQuorumEpochRequest, "leader_epoch", EPOCH - 1, ErrorCode.FENCED_LEADER_EPOCH),
            Bad.FUTURE_EPOCH: Valid(begin_quorum_epoch_request(2, EPOCH + 1), "leaders announce epochs"),
            Bad.OFFSET: Nothing(),
            Bad.DUPLICATE: Valid(_right(BeginQuorumEpochRequest), _SAME_AGAIN),
        },
        EndQuorumEpochRequest: {
            **_of_any(EndQuorumEpochRequest),
            **_NO_VOTERS,
            Bad.UNKNOWN_VOTER: Nothing("a second leader of an epoch stops the replica (DECISIONS.md, 54)"),
            Bad.REMOVED_VOTER: Nothing("as for an unknown one"),
            Bad.TOPIC: _refused(EndQuorumEpochRequest, "topic_name", OTHER, ErrorCode.INVALID_REQUEST),
            Bad.PARTITION: _refused(EndQuorumEpochRequest, "partition_index", 1, ErrorCode.INVALID_REQUEST),
            Bad.OLD_EPOCH: _refused(EndQuorumEpochRequest, "leader_epoch", EPOCH - 1, ErrorCode.FENCED_LEADER_EPOCH),
            Bad.FUTURE_EPOCH: Valid(end_quorum_epoch_request(2, EPOCH + 1), "the epoch has begun without this replica"),
            Bad.OFFSET: Nothing(),
            Bad.DUPLICATE: Valid(_right(EndQuorumEpochRequest), _SAME_AGAIN),
        },
        FetchRequest: {
            **_of_any(FetchRequest),
            **_NO_VOTERS,
            Bad.UNKNOWN_VOTER: Valid(
                fetch_request(UNKNOWN, EPOCH, END, max_wait_ms=0), "observers fetch, and do not count"
            ),
            Bad.REMOVED_VOTER: Valid(fetch_request(REMOVED, EPOCH, END, max_wait_ms=0), "it is an observer now"),
            Bad.TOPIC: _refused(FetchRequest, "topic_id", UNKNOWN.directory_id, ErrorCode.INVALID_REQUEST),
            Bad.PARTITION: _refused(FetchRequest, "partition", 1, ErrorCode.INVALID_REQUEST),
            Bad.OLD_EPOCH: Refused(fetch_request(VOTER, 2, OffsetAndEpoch(6, 2)), ErrorCode.FENCED_LEADER_EPOCH),
            Bad.FUTURE_EPOCH: _refused(FetchRequest, "current_leader_epoch", EPOCH + 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
            Bad.OFFSET: _refused(FetchRequest, "fetch_offset", -1, ErrorCode.INVALID_REQUEST),
            Bad.DUPLICATE: Valid(_right(FetchRequest), _SAME_AGAIN),
        },
        FetchSnapshotRequest: {
            **_of_any(FetchSnapshotRequest),
            **_NO_VOTERS,
            Bad.UNKNOWN_VOTER: Valid(
                fetch_snapshot_request(UNKNOWN, EPOCH, TAKEN), "observers fetch, and do not count"
            ),
            Bad.REMOVED_VOTER: Valid(fetch_snapshot_request(REMOVED, EPOCH, TAKEN), "it is an observer now"),
            Bad.TOPIC: _refused(FetchSnapshotRequest, "name", OTHER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            Bad.PARTITION: _refused(FetchSnapshotRequest, "partition", 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            Bad.OLD_EPOCH: _refused(FetchSnapshotRequest, "current_leader_epoch", 2, ErrorCode.FENCED_LEADER_EPOCH),
            Bad.FUTURE_EPOCH: _refused(FetchSnapshotRequest, "current_leader_epoch", 4, ErrorCode.UNKNOWN_LEADER_EPOCH),
            Bad.OFFSET: _refused(FetchSnapshotRequest, "position", -1, ErrorCode.POSITION_OUT_OF_RANGE),
            Bad.DUPLICATE: Valid(_right(FetchSnapshotRequest), _SAME_AGAIN),
        },
        DescribeQuorumRequest: {
            **_of_any(DescribeQuorumRequest),
            **_NO_VOTERS,
            **dict.fromkeys(
                (Bad.UNKNOWN_VOTER, Bad.REMOVED_VOTER, Bad.OLD_EPOCH, Bad.FUTURE_EPOCH, Bad.OFFSET), Nothing()
            ),
            Bad.TOPIC: _refused(DescribeQuorumRequest, "topic_name", OTHER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            Bad.PARTITION: _refused(DescribeQuorumRequest, "partition_index", 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            Bad.DUPLICATE: Valid(_right(DescribeQuorumRequest), _SAME_AGAIN),
        },
        AddRaftVoterRequest: {
            **_of_any(AddRaftVoterRequest),
            **_NO_LOG,
            **_NO_EPOCH,
            Bad.UNKNOWN_VOTER: Nothing("adding one is what it is for"),
            Bad.REMOVED_VOTER: Nothing("it may be added again"),
            Bad.DUPLICATE: Refused(add_voter_request(JOINER), ErrorCode.REQUEST_TIMED_OUT, "leader_that_adds"),
            Bad.UNCOMMITTED: Refused(add_voter_request(JOINER), ErrorCode.REQUEST_TIMED_OUT, _BUSY),
            Bad.PRESENT: Refused(add_voter_request(VOTER), ErrorCode.DUPLICATE_VOTER),
            Bad.LAST: Nothing("it removes none"),
        },
        RemoveRaftVoterRequest: {
            **_of_any(RemoveRaftVoterRequest),
            **_NO_LOG,
            **_NO_EPOCH,
            Bad.UNKNOWN_VOTER: Refused(remove_voter_request(UNKNOWN), ErrorCode.VOTER_NOT_FOUND),
            Bad.REMOVED_VOTER: Refused(remove_voter_request(REMOVED), ErrorCode.VOTER_NOT_FOUND),
            Bad.DUPLICATE: Refused(remove_voter_request(REMOVED), ErrorCode.REQUEST_TIMED_OUT, _BUSY),
            Bad.UNCOMMITTED: Refused(remove_voter_request(VOTER), ErrorCode.REQUEST_TIMED_OUT, _BUSY),
            Bad.PRESENT: Nothing("it adds none"),
            Bad.LAST: Refused(remove_voter_request(replica_key(1)), ErrorCode.VOTER_NOT_FOUND, "leader_alone"),
        },
        UpdateRaftVoterRequest: {
            **_of_any(UpdateRaftVoterRequest),
            **_NO_LOG,
            Bad.UNKNOWN_VOTER: Refused(update_voter_request(UNKNOWN, EPOCH), ErrorCode.VOTER_NOT_FOUND),
            Bad.REMOVED_VOTER: Refused(update_voter_request(REMOVED, EPOCH), ErrorCode.VOTER_NOT_FOUND),
            Bad.OLD_EPOCH: Refused(update_voter_request(VOTER, 2), ErrorCode.FENCED_LEADER_EPOCH),
            Bad.FUTURE_EPOCH: _refused(
                UpdateRaftVoterRequest, "current_leader_epoch", 4, ErrorCode.UNKNOWN_LEADER_EPOCH
            ),
            Bad.DUPLICATE: Refused(_MOVED, ErrorCode.REQUEST_TIMED_OUT, _BUSY),
            Bad.UNCOMMITTED: Refused(_MOVED, ErrorCode.REQUEST_TIMED_OUT, _BUSY),
            Bad.PRESENT: Nothing("it adds none"),
            Bad.LAST: Nothing("it removes none"),
        },
        ApiVersionsRequest: {
            **_of_any(ApiVersionsRequest),
            **_NO_VOTERS,
            **_NO_LOG,
            **_NO_EPOCH,
            **_without(Bad.UNKNOWN_VOTER, Bad.REMOVED_VOTER),
            Bad.CLUSTER: Valid(ApiVersionsRequest(cluster_id=OTHER), "what a replica supports is of no cluster"),
            Bad.DUPLICATE: Valid(_right(ApiVersionsRequest), _SAME_AGAIN),
        },
    }
)

CELLS: Final = [
    pytest.param(kind, bad, id=f"{kind.__name__} {bad.value}") for kind, cells in TABLE.items() for bad in cells
]


def error_of(message: Any) -> int:
    """Return the error of an answer: of the whole, or else of its part for one log."""
    topics = getattr(message, "responses", None) or getattr(message, "topics", ())
    whole: int = getattr(message, "error_code", 0)
    return whole or (topics[0].partitions[0].error_code if topics else 0)


def asked(core: SingleReplica, message: RaftRequest) -> list[Any]:
    """Deliver a request in its latest version, and return the answers."""
    core.request("", message, message_types("raft-rpcs")[type(message).__name__].versions.highest)
    return [each.message for each in core.take_responses()]


def test_the_table_has_a_cell_for_every_bad_input_to_every_rpc() -> None:
    """The rows are the RPCs that the core answers; each has all kinds of bad input."""
    assert set(TABLE) == set(RIGHT) == set(dispatch._REQUESTS)
    for kind, cells in TABLE.items():
        assert set(cells) == set(Bad), kind


@pytest.mark.parametrize("kind", list(RIGHT))
def test_the_right_request_is_taken(kind: type[RaftRequest]) -> None:
    """So it is what is wrong with the others that they are refused for."""
    name, message = RIGHT[kind]
    core = REPLICAS[name]()
    before = state_without_numbers(core.raft)
    answers = asked(core, message)
    assert list(map(error_of, answers)) in ([], [ErrorCode.NONE])
    assert kind in (DescribeQuorumRequest, ApiVersionsRequest) or state_without_numbers(core.raft) != before


@pytest.mark.parametrize(("kind", "bad"), CELLS)
def test_a_bad_request(kind: type[RaftRequest], bad: Bad) -> None:
    """It is refused with its error, and changes nothing; one that only looks bad is answered without an error."""
    cell = TABLE[kind][bad]
    if isinstance(cell, Nothing):
        assert cell.why
        return
    core = REPLICAS[(isinstance(cell, Refused) and cell.to) or RIGHT[kind][0]]()
    core.take_responses()
    before = state_without_numbers(core.raft)
    (answer,) = asked(core, cell.message)
    if isinstance(cell, Valid):
        assert (error_of(answer), core.raft.halt_reason) == (ErrorCode.NONE, None)
        return
    assert ErrorCode(error_of(answer)) == cell.error
    assert state_without_numbers(core.raft) == before


AGAIN: Final = [kind for kind in RIGHT if isinstance(TABLE[kind][Bad.DUPLICATE], Valid)]


@pytest.mark.parametrize("kind", AGAIN)
def test_a_duplicate_is_answered_as_the_first_request(kind: type[RaftRequest]) -> None:
    """It changes nothing more."""
    name, message = RIGHT[kind]
    core = REPLICAS[name]()
    first = asked(core, message)
    before = state_without_numbers(core.raft)
    assert asked(core, message) == first
    assert state_without_numbers(core.raft) == before
