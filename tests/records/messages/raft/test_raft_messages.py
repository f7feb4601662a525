# SPDX-License-Identifier: Apache-2.0
"""Typed messages of raft: their bytes are those of generic messages, and their classes are those of the schema."""

import tracemalloc
import typing
import uuid
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import DecodeError, InvalidRecordError, UnsupportedVersionError
from raftlog.records.messages.control import KRaftVersionRecord
from raftlog.records.messages.raft.election_messages import (
    EndQuorumEpochRequest,
    EndQuorumEpochRequestPartitionData,
    EndQuorumEpochRequestReplicaInfo,
    EndQuorumEpochRequestTopicData,
    VoteRequest,
    VoteRequestPartitionData,
    VoteRequestTopicData,
    VoteResponse,
)
from raftlog.records.messages.raft.endpoints import Listener, NodeEndpoint, SnapshotId
from raftlog.records.messages.raft.fetch_messages import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    FetchSnapshotResponsePartitionSnapshot,
    FetchSnapshotResponseTopicSnapshot,
)
from raftlog.records.messages.raft.raft_messages import (
    RAFT_MESSAGES,
    RaftMessage,
    RaftRequest,
    error_response,
    from_message,
    highest_version,
    read_rpc,
    to_message,
    write_rpc,
)
from raftlog.records.messages.raft.typed_structs import attribute_name
from raftlog.records.messages.raft.voter_messages import (
    AddRaftVoterRequest,
    UpdateRaftVoterResponse,
    UpdateRaftVoterResponseCurrentLeader,
)
from raftlog.records.messages.rpc import read_request, read_response, write_request, write_response
from raftlog.records.messages.schema import UNKNOWN_TAGS, Message, MessageType, message_type
from tests.records.class_mismatches import CLASSES
from tests.records.outcome import outcome
from tests.records.rpc_vectors import BODIES, recorded_frames
from tests.records.schema_strategies import ALL_VERSIONS, messages

RAFT_VERSIONS = [(kind, version) for kind, version in ALL_VERSIONS if kind.name in RAFT_MESSAGES]
versions = st.sampled_from(RAFT_VERSIONS)

RAFT_BODIES = [body for body in BODIES if body[0] in RAFT_MESSAGES]

D1 = uuid.UUID(bytes=bytes(range(0x01, 0x11)))
D2 = uuid.UUID(bytes=bytes(range(0x10, 0x20)))


def assert_holds(value: Any, item: Any) -> None:
    """Say that a typed value is what a generic one is, attribute by attribute, without the code under test."""
    if isinstance(item, dict):
        assert {*attrs.fields_dict(type(value))} == {*map(attribute_name, item.keys() - {UNKNOWN_TAGS}), "unknown_tags"}
        assert dict(value.unknown_tags) == item.get(UNKNOWN_TAGS, {})
        for name in item.keys() - {UNKNOWN_TAGS}:
            assert_holds(getattr(value, attribute_name(name)), item[name])
    elif isinstance(item, list):
        assert isinstance(value, tuple)
        for nested, part in zip(value, item, strict=True):
            assert_holds(nested, part)
    else:
        assert (type(value), value) == (type(item), item)


def result(error_or_value: Any) -> Any:
    """Return a value as it is, and an error as what it says."""
    if isinstance(error_or_value, DecodeError):
        return type(error_or_value), str(error_or_value)
    return error_or_value


def typed_read(kind: MessageType, data: bytes, version: int) -> Any:
    """Read by the class of a message; return the message or the error."""
    return outcome(lambda: read_rpc(RAFT_MESSAGES[kind.name], data, version))


@pytest.mark.parametrize(("kind", "version"), RAFT_VERSIONS, ids=lambda each: getattr(each, "name", None))
@settings(deadline=None, max_examples=10)
@given(data=st.data())
def test_bytes_of_generic_messages_survive(kind: MessageType, version: int, data: st.DataObject) -> None:
    """The generic writer's bytes, in any version, are read as the same values, and written as the same bytes."""
    message = data.draw(messages(kind, version))
    written = kind.write(message, version=version)
    value = read_rpc(RAFT_MESSAGES[kind.name], memoryview(written), version)
    assert_holds(value, message)
    assert write_rpc(value, version) == written


@settings(deadline=None)
@given(st.data(), versions)
def test_values_survive_conversion_and_the_wire(data: st.DataObject, chosen: tuple[MessageType, int]) -> None:
    """A typed value is equal to itself after it was a generic message, and after it was bytes."""
    kind, version = chosen
    message = data.draw(messages(kind, version))
    value = from_message(RAFT_MESSAGES[kind.name], message)
    assert to_message(value) == message
    assert from_message(type(value), to_message(value)) == value
    assert read_rpc(type(value), write_rpc(value, version), version) == value


@pytest.mark.parametrize("name", RAFT_MESSAGES)
def test_the_highest_version_is_the_last_that_can_be_written(name: str) -> None:
    """A message can be written in its highest version, and not in the next one."""
    message = from_message(RAFT_MESSAGES[name], {})
    version = highest_version(message)
    assert read_rpc(type(message), write_rpc(message, version), version) == message
    with pytest.raises(UnsupportedVersionError):
        write_rpc(message, version + 1)


@settings(deadline=None)
@given(st.data(), versions)
def test_other_versions_refuse_what_the_generic_writer_refuses(
    data: st.DataObject, chosen: tuple[MessageType, int]
) -> None:
    """A value of one version is written in another to the bytes of a generic one, or fails with the same error."""
    kind, version = chosen
    message = data.draw(messages(kind, version))
    other = data.draw(st.integers(kind.versions.lowest - 1, kind.versions.highest + 1))
    value = from_message(RAFT_MESSAGES[kind.name], message)
    generic = result(outcome(lambda: kind.write(message, version=other)))
    assert result(outcome(lambda: write_rpc(value, other))) == generic


@settings(deadline=None)
@given(st.data(), versions)
def test_mutated_bytes_are_read_as_the_generic_reader_does(
    data: st.DataObject, chosen: tuple[MessageType, int]
) -> None:
    """Bytes with some of them replaced are a value that survives being written, or raise the generic reader's error."""
    kind, version = chosen
    written = kind.write(data.draw(messages(kind, version)), version=version)
    at = data.draw(st.integers(0, len(written)))
    mutated = written[:at] + data.draw(st.binary(max_size=6)) + written[at + data.draw(st.integers(0, 3)) :]
    generic = outcome(lambda: kind.decode(mutated, version=version))
    value = typed_read(kind, mutated, version)
    if isinstance(generic, DecodeError):
        assert result(value) == result(generic)
    else:
        assert_holds(value, generic)
        assert read_rpc(type(value), write_rpc(value, version), version) == value


@settings(deadline=None)
@given(versions, st.binary(max_size=40))
def test_any_bytes_read_or_are_refused(chosen: tuple[MessageType, int], data: bytes) -> None:
    """Any bytes are a message or raise a DecodeError, the generic reader's."""
    kind, version = chosen
    value = typed_read(kind, data, version)
    if isinstance(value, DecodeError):
        assert result(value) == result(outcome(lambda: kind.decode(data, version=version)))
    else:
        assert isinstance(value, RAFT_MESSAGES[kind.name])


@settings(deadline=None)
@given(st.data(), versions)
def test_equal_values_have_equal_hashes_and_a_repr_that_makes_them(
    data: st.DataObject, chosen: tuple[MessageType, int]
) -> None:
    """Values of equal bytes are equal and hash alike, other values are not equal, and a repr is an expression."""
    kind, version = chosen
    strategy = messages(kind, version)
    first, second = data.draw(strategy), data.draw(strategy)
    value, same, other = (from_message(RAFT_MESSAGES[kind.name], each) for each in (first, dict(first), second))
    assert (value, hash(value)) == (same, hash(same))
    assert (value == other) is (first == second)
    assert eval(repr(value), {**CLASSES, "UUID": uuid.UUID}) == value


@pytest.mark.parametrize(("name", "version", "body"), RAFT_BODIES)
def test_kafkas_own_bodies(name: str, version: str, body: str) -> None:
    """Bodies that Kafka's classes wrote are read as typed values, and are written as they were."""
    value = read_rpc(RAFT_MESSAGES[name], bytes.fromhex(body), int(version))
    assert_holds(value, message_type(name).decode(bytes.fromhex(body), version=int(version)))
    assert write_rpc(value, int(version)).hex() == body


def test_every_frame_of_a_real_quorum() -> None:
    """All frames of raft that controllers exchanged hold typed values, which are written as they were."""
    seen = set()
    for way, api_key, version, data in recorded_frames():
        frame = read_request(data) if way == "request" else read_response(data, api_key, version)
        value = from_message(RAFT_MESSAGES[frame.type.name], frame.message)
        correlation_id, message = frame.header["correlationId"], to_message(value)
        if way == "request":
            written = write_request(api_key, version, correlation_id, frame.header["clientId"], message)
        else:
            written = write_response(api_key, version, correlation_id, message)
        assert written == data
        seen.add(frame.type.name)
    # In that quorum no voter had news of itself for the leader.
    assert seen == RAFT_MESSAGES.keys() - {"UpdateRaftVoterRequest", "UpdateRaftVoterResponse"}


VALUES: dict[tuple[str, str], RaftMessage] = {
    ("VoteRequest", "2"): VoteRequest(
        cluster_id="cid",
        voter_id=2,
        topics=(
            VoteRequestTopicData(
                topic_name="__cluster_metadata",
                partitions=(
                    VoteRequestPartitionData(
                        partition_index=0,
                        replica_epoch=5,
                        replica_id=1,
                        replica_directory_id=D1,
                        voter_directory_id=D2,
                        last_offset_epoch=4,
                        last_offset=100,
                        pre_vote=True,
                    ),
                ),
            ),
        ),
    ),
    ("EndQuorumEpochRequest", "0"): EndQuorumEpochRequest(
        cluster_id="cid",
        topics=(
            EndQuorumEpochRequestTopicData(
                topic_name="__cluster_metadata",
                partitions=(
                    EndQuorumEpochRequestPartitionData(
                        partition_index=0, leader_id=1, leader_epoch=5, preferred_successors=(2,)
                    ),
                ),
            ),
        ),
    ),
    ("AddRaftVoterRequest", "1"): AddRaftVoterRequest(
        cluster_id="cid",
        timeout_ms=2000,
        voter_id=2,
        voter_directory_id=D2,
        listeners=(Listener(name="CONTROLLER", host="localhost", port=9093),),
        ack_when_committed=False,
    ),
    ("UpdateRaftVoterResponse", "0"): UpdateRaftVoterResponse(
        throttle_time_ms=0,
        error_code=0,
        current_leader=UpdateRaftVoterResponseCurrentLeader(leader_id=1, leader_epoch=5, host="localhost", port=9093),
    ),
}


@pytest.mark.parametrize("key", VALUES)
def test_values_are_those_of_the_vector(key: tuple[str, str]) -> None:
    """A value that is written out here is what Kafka's bytes hold, and gives these bytes."""
    body = next(bytes.fromhex(body) for name, version, body in BODIES if (name, version) == key)
    assert read_rpc(type(VALUES[key]), body, int(key[1])) == VALUES[key]
    assert write_rpc(VALUES[key], int(key[1])) == body


# Errors


def test_a_default_is_what_a_message_leaves_out() -> None:
    """A generic message without fields is the value that has each field at the schema's default."""
    assert from_message(VoteRequest, {}) == VoteRequest(topics=())
    snapshot = from_message(FetchSnapshotResponse, {"topics": [{"partitions": [{}]}]}).topics[0].partitions[0]
    assert (snapshot.snapshot_id, snapshot.unaligned_records) == (SnapshotId(end_offset=0, epoch=0), b"")


def test_a_version_that_lacks_a_field_refuses_it() -> None:
    """A pre-vote in version 1 is an UnsupportedVersionError; a directory id in version 0 is dropped, as in Kafka."""
    vote = VALUES["VoteRequest", "2"]
    with pytest.raises(UnsupportedVersionError, match="non-default preVote at version 1 of VoteRequest"):
        write_rpc(vote, 1)
    info = EndQuorumEpochRequestReplicaInfo(candidate_id=1, candidate_directory_id=D1)
    partition = EndQuorumEpochRequestPartitionData(
        partition_index=0, leader_id=1, leader_epoch=5, preferred_candidates=(info,)
    )
    topics = (EndQuorumEpochRequestTopicData(topic_name="t", partitions=(partition,)),)
    read = read_rpc(EndQuorumEpochRequest, write_rpc(EndQuorumEpochRequest(topics=topics), 0), 0)
    assert read.topics[0].partitions[0].preferred_candidates == ()
    for version in (-1, 3):
        with pytest.raises(UnsupportedVersionError):
            write_rpc(vote, version)
        with pytest.raises(UnsupportedVersionError):
            read_rpc(VoteRequest, b"", version)


WRONG_VALUES: dict[str, tuple[Any, str]] = {
    "null for an array": (VoteResponse(error_code=0, topics=None), "topics takes array"),  # type: ignore[arg-type]
    "a text for an array": (VoteResponse(error_code=0, topics="t"), "topics takes array"),  # type: ignore[arg-type]
    "a dict for a struct": (VoteResponse(error_code=0, topics=({},)), "TopicData is wanted"),  # type: ignore[arg-type]
    "null for a struct": (VoteResponse(error_code=0, topics=(None,)), "TopicData takes a dict"),  # type: ignore[arg-type]
    "another struct": (
        VoteResponse(error_code=0, topics=VALUES["VoteRequest", "2"].topics),  # type: ignore[union-attr, arg-type]
        "VoteResponseTopicData is wanted, not VoteRequestTopicData",
    ),
    "too large a number": (VoteResponse(error_code=1 << 15, topics=()), "errorCode takes int16"),
    "a number for a text": (
        FetchSnapshotRequest(topics=(), cluster_id=7),  # type: ignore[arg-type]
        "clusterId takes string",
    ),
    "tags that are no pairs": (VoteResponse(error_code=0, topics=(), unknown_tags=(7,)), "pairs"),  # type: ignore[arg-type]
    "a tag twice": (VoteResponse(error_code=0, topics=(), unknown_tags=((7, b""), (7, b"x"))), "a tag twice"),
    "a tag without bytes": (VoteResponse(error_code=0, topics=(), unknown_tags=((7, None),)), "tags are"),  # type: ignore[arg-type]
    "a known tag among the unknown": (
        VoteResponse(
            error_code=0,
            topics=(),
            node_endpoints=(NodeEndpoint(node_id=1, host="h", port=1),),
            unknown_tags=((0, b""),),
        ),
        "tag 0 is both",
    ),
}


@pytest.mark.parametrize("case", WRONG_VALUES)
def test_a_value_that_a_field_does_not_take_is_refused(case: str) -> None:
    """A typed value with something else in place of a field's value is an InvalidRecordError when it is written."""
    value, problem = WRONG_VALUES[case]
    with pytest.raises(InvalidRecordError, match=problem):
        write_rpc(value, 1)


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({"topicz": []}, r"VoteResponse has no field \['topicz'\]"),
        ({"topics": [{"name": "t"}]}, r"VoteResponseTopicData has no field \['name'\]"),
        ({"topics": {}}, "topics takes array"),
        ({"topics": ["t"]}, "VoteResponseTopicData is made of a dict"),
        ({UNKNOWN_TAGS: [7]}, "unknownTaggedFields are a dict"),
    ],
)
def test_a_message_of_other_fields_is_refused(message: Message, problem: str) -> None:
    """A generic message with a field that the schema lacks, or a part of another kind, is an InvalidRecordError."""
    with pytest.raises(InvalidRecordError, match=problem):
        from_message(VoteResponse, message)


def test_other_messages_are_refused() -> None:
    """A part of a message, and a record, are a LookupError both ways."""
    others: list[tuple[Any, Any]] = [
        (Listener, Listener(name="", host="", port=0)),
        (KRaftVersionRecord, KRaftVersionRecord(1)),
    ]
    for kind, value in others:
        with pytest.raises(LookupError, match="is not a message of raft"):
            write_rpc(value, 0)
        with pytest.raises(LookupError, match="is not a message of raft"):
            highest_version(value)
        with pytest.raises(LookupError, match="is not a message of raft"):
            from_message(kind, {})
        with pytest.raises(LookupError, match="is not a message of raft"):
            read_rpc(kind, b"", 0)


def test_a_count_that_the_bytes_do_not_hold_takes_no_memory() -> None:
    """An array that claims two billion items in ten bytes is refused before room is made for them."""
    data = b"\x00\x00" + b"\xff\xff\xff\xff\x07" + bytes(3)
    read_rpc(VoteResponse, b"\x00\x00\x01\x00", 2)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidRecordError, match="Tried to allocate a collection of size 2147483646"):
            read_rpc(VoteResponse, data, 2)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_a_view_of_records_is_as_good_as_bytes() -> None:
    """A response whose records are a read-only memoryview equals one with bytes, hashes alike and is written alike."""

    def response(records: bytes | memoryview) -> FetchSnapshotResponse:
        partition = FetchSnapshotResponsePartitionSnapshot(
            index=0,
            error_code=0,
            snapshot_id=SnapshotId(end_offset=10, epoch=1),
            size=100,
            position=0,
            unaligned_records=records,
        )
        topics = (FetchSnapshotResponseTopicSnapshot(name="__cluster_metadata", partitions=(partition,)),)
        return FetchSnapshotResponse(throttle_time_ms=0, error_code=0, topics=topics)

    of_bytes, of_view = response(b"batch"), response(memoryview(b"a batch")[2:])
    assert (of_bytes, hash(of_bytes)) == (of_view, hash(of_view))
    assert write_rpc(of_bytes, 1) == write_rpc(of_view, 1)
    assert read_rpc(FetchSnapshotResponse, write_rpc(of_view, 1), 1) == of_bytes


@pytest.mark.parametrize("kind", typing.get_args(RaftRequest))
def test_every_request_can_be_refused(kind: type[RaftRequest]) -> None:
    """The response has the error and, but for that, the defaults of the schema. It can be written in every version."""
    request = from_message(kind, {})
    response = error_response(request, 8)
    assert type(response).__name__ == kind.__name__.replace("Request", "Response")
    assert response.error_code == 8
    schema = message_type(type(response).__name__)
    for version in range(schema.versions.lowest, schema.versions.highest + 1):
        assert read_rpc(type(response), write_rpc(response, version), version).error_code in (0, 8)
