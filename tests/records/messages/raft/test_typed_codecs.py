# SPDX-License-Identifier: Apache-2.0
"""Generated readers and writers of typed messages: usual messages take this way, and all others are left alone.

That the result is the one of the generic way is shown in ``test_raft_messages``, for whatever way is taken.
"""

import functools
import uuid
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.records.messages.raft.election_messages import (
    EndQuorumEpochRequest,
    VoteRequest,
    VoteRequestPartitionData,
    VoteRequestTopicData,
)
from raftlog.records.messages.raft.endpoints import LeaderEndpoint
from raftlog.records.messages.raft.fetch_messages import FetchRequest, FetchResponse
from raftlog.records.messages.raft.raft_messages import RAFT_MESSAGES, from_message, read_rpc, write_rpc
from raftlog.records.messages.raft.typed_codecs import (
    MAX_USUAL_ITEMS,
    TypedReader,
    TypedWriter,
    compile_typed_reader,
    compile_typed_writer,
)
from raftlog.records.messages.schema import MessageType, message_type
from tests.records.schema_strategies import ALL_VERSIONS, messages

RAFT_VERSIONS = [(kind, version) for kind, version in ALL_VERSIONS if kind.name in RAFT_MESSAGES]


def codecs(kind: type, version: int) -> tuple[TypedReader, TypedWriter]:
    """Return the generated reader and writer of a version."""
    return codecs_by_name(kind.__name__, version)


@functools.cache
def codecs_by_name(name: str, version: int) -> tuple[TypedReader, TypedWriter]:
    """Return the generated reader and writer of a version."""
    kind, schema = RAFT_MESSAGES[name], message_type(name).schema
    return compile_typed_reader(kind, schema, version), compile_typed_writer(kind, schema, version)


@pytest.mark.parametrize(("kind", "version"), RAFT_VERSIONS, ids=lambda each: getattr(each, "name", None))
@settings(deadline=None, max_examples=10)
@given(data=st.data())
def test_usual_messages_are_read_and_written_at_once(kind: MessageType, version: int, data: st.DataObject) -> None:
    """Every valid message of a few items, with short texts and no unknown tagged fields."""
    message = data.draw(messages(kind, version, plain=True))
    value = from_message(RAFT_MESSAGES[kind.name], message)
    written = kind.write(message, version=version)
    read, write = codecs(type(value), version)
    assert write(value) == written
    assert [read(each) for each in (written, bytearray(written), memoryview(written))] == [value] * 3


def end_quorum_epoch(items: int, host_size: int) -> EndQuorumEpochRequest:
    """Return a message with so many endpoints, one of them with a host of some size in bytes."""
    one = LeaderEndpoint(name="L", host="é" * (host_size // 2) + "h" * (host_size % 2), port=1)
    return EndQuorumEpochRequest(topics=(), leader_endpoints=(one,) * items)


@pytest.mark.parametrize(
    ("items", "host_size", "is_written", "is_read"),
    [
        (0, 0, True, True),
        (MAX_USUAL_ITEMS, 126, True, True),
        (MAX_USUAL_ITEMS + 1, 126, False, False),
        (1, 127, False, True),
        (1, 32767, False, True),
    ],
)
def test_what_is_rare_is_left_to_the_generic_way(items: int, host_size: int, is_written: bool, is_read: bool) -> None:
    """Many items and long texts: the result is the same, by another way."""
    value = end_quorum_epoch(items, host_size)
    read, write = codecs(EndQuorumEpochRequest, 1)
    written = write_rpc(value, 1)
    assert write(value) == (written if is_written else None)
    assert read(written) == (value if is_read else None)
    assert read_rpc(EndQuorumEpochRequest, written, 1) == value


FETCH = FetchRequest(cluster_id="cluster", max_wait_ms=5, min_bytes=0, topics=())
PARTITION = VoteRequestPartitionData(
    partition_index=0,
    replica_epoch=1,
    replica_id=2,
    replica_directory_id=uuid.UUID(int=3),
    voter_directory_id=uuid.UUID(int=4),
    last_offset_epoch=0,
    last_offset=0,
    pre_vote=True,
)


@pytest.mark.parametrize(
    "wrong",
    [
        {"unknown_tags": ((100, b""),)},
        {"cluster_id": b"cluster"},
        {"cluster_id": "\udc80"},
        {"max_wait_ms": 1.5},
        {"max_wait_ms": 2**31},
        {"max_wait_ms": None},
        {"topics": []},
        {"topics": None},
        {"topics": (PARTITION,)},
        {"topics": ("topic",)},
    ],
    ids=str,
)
def test_wrong_values_are_left_to_the_generic_way(wrong: dict[str, Any]) -> None:
    """It writes those that are valid nevertheless, and has the text of each error."""
    _, write = codecs(FetchRequest, 18)
    assert write(FETCH) is not None
    assert write(attrs.evolve(FETCH, **wrong)) is None


@pytest.mark.parametrize("other", [FetchResponse(throttle_time_ms=0, responses=()), VoteRequest(topics=()), None])
def test_messages_of_another_kind_are_left_to_the_generic_way(other: object) -> None:
    """A writer writes values of its own class."""
    _, write = codecs(FetchRequest, 18)
    assert write(other) is None


class HasBytes:
    """Has what a uuid has, and is none."""

    bytes = b"\0" * 16


@pytest.mark.parametrize("wrong", [{"pre_vote": 1}, {"replica_directory_id": HasBytes()}])
def test_values_that_would_be_packed_but_are_wrong(wrong: dict[str, Any]) -> None:
    """A bool and a uuid are what they are, although the bytes of others would fit."""
    _, write = codecs(VoteRequest, 2)
    assert write(vote_request(PARTITION)) is not None
    assert write(vote_request(attrs.evolve(PARTITION, **wrong))) is None


def vote_request(partition: VoteRequestPartitionData) -> VoteRequest:
    """Return a request with one partition."""
    return VoteRequest(topics=(VoteRequestTopicData(topic_name="t", partitions=(partition,)),))


@settings(deadline=None)
@given(data=st.data(), chosen=st.sampled_from(RAFT_VERSIONS))
def test_bytes_that_are_cut_off_or_left_over_are_no_usual_message(
    data: st.DataObject, chosen: tuple[MessageType, int]
) -> None:
    """No prefix of a message is read as one, and neither is a message with a byte more."""
    kind, version = chosen
    written = kind.write(data.draw(messages(kind, version, plain=True)), version=version)
    read, _ = codecs(RAFT_MESSAGES[kind.name], version)
    assert [read(written[:size]) for size in range(len(written))] == [None] * len(written)
    assert read(written + b"\0") is None
