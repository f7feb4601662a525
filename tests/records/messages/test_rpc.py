# SPDX-License-Identifier: Apache-2.0
"""Requests and responses: Kafka's own bodies, and every frame of a recorded quorum."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import DecodeError, InvalidRecordError, TruncatedBatchError, UnsupportedVersionError
from raftlog.records.messages.rpc import (
    read_correlation_id,
    read_request,
    read_response,
    request_type,
    response_type,
    write_request,
    write_response,
)
from raftlog.records.messages.schema import message_type
from tests.records.outcome import outcome
from tests.records.rpc_vectors import BODIES, recorded_frames
from tests.records.schema_strategies import ALL_VERSIONS, messages

RPCS = [(kind, version) for kind, version in ALL_VERSIONS if kind.schema.kind == "rpc"]


@settings(deadline=None)
@given(st.data(), st.sampled_from(RPCS), st.integers(-5, 99), st.none() | st.text(max_size=3))
def test_frames_survive(
    data: st.DataObject, chosen: tuple[Any, int], correlation_id: int, client_id: str | None
) -> None:
    """A request or response reads as it was written, header included."""
    kind, version = chosen
    message = data.draw(messages(kind, version, plain=True))
    if kind.name.endswith("Request"):
        frame = write_request(kind.api_key, version, correlation_id, client_id, message)
        request = read_request(frame)
        assert (request.type, request.version, request.message) == (kind, version, message)
        assert (request.header["correlationId"], request.header["clientId"]) == (correlation_id, client_id)
    else:
        frame = write_response(kind.api_key, version, correlation_id, message)
        assert read_correlation_id(frame) == correlation_id
        assert read_response(frame, kind.api_key, version).message == message


@settings(deadline=None)
@given(st.binary(max_size=40))
def test_any_frame_reads_or_is_refused(frame: bytes) -> None:
    """Any bytes are a request or raise a DecodeError."""
    request = outcome(lambda: read_request(frame))
    if not isinstance(request, DecodeError):
        assert request.type is request_type(request.header["requestApiKey"])


@pytest.mark.parametrize(("name", "version", "body"), BODIES)
def test_kafkas_own_bodies(name: str, version: str, body: str) -> None:
    """Bodies that Kafka's classes wrote read with nothing left over, and are written as they were."""
    kind = message_type(name)
    message = kind.decode(bytes.fromhex(body), version=int(version))
    assert kind.write(message, version=int(version)).hex() == body


def test_every_frame_of_a_real_quorum() -> None:
    """All 3575 frames that controllers exchanged read with nothing left over, and are written as they were."""
    same = 0
    for way, api_key, version, data in recorded_frames():
        if way == "request":
            request = read_request(data)
            header = request.header
            written = write_request(api_key, version, header["correlationId"], header["clientId"], request.message)
        else:
            response = read_response(data, api_key, version)
            written = write_response(api_key, version, response.header["correlationId"], response.message)
        assert written == data
        same += 1
    assert same == 3575


def test_pre_vote_is_read_from_the_vector() -> None:
    """The fields of a vote are where the vector has them."""
    body = next(body for name, version, body in BODIES if (name, version) == ("VoteRequest", "2"))
    vote = message_type("VoteRequest").decode(bytes.fromhex(body), version=2)
    assert (vote["clusterId"], vote["voterId"], vote["topics"][0]["topicName"]) == ("cid", 2, "__cluster_metadata")
    partition = vote["topics"][0]["partitions"][0]
    assert (partition["replicaEpoch"], partition["lastOffset"], partition["preVote"]) == (5, 100, True)


def test_unknown_requests_are_refused() -> None:
    """An api key or version that is not known, a cut frame, and bytes left over are typed errors."""
    with pytest.raises(UnsupportedVersionError):
        response_type(0)
    with pytest.raises(UnsupportedVersionError):
        read_request(b"\0\x34\0\x09" + bytes(20))
    with pytest.raises(TruncatedBatchError):
        read_request(b"\0\x34\0")
    vote = write_request(52, 2, 1, None, {})
    with pytest.raises(InvalidRecordError, match="1 bytes are left"):
        read_request(vote + b"\0")
    with pytest.raises(InvalidRecordError, match="1 bytes are left"):
        read_response(write_response(52, 2, 1, {}) + b"\0", 52, 2)
    with pytest.raises(TruncatedBatchError):
        read_correlation_id(b"\0\0")


def test_records_are_shown_by_their_size() -> None:
    """As in Kafka's request log, a response shows how many bytes of batches it has."""
    fetch = message_type("FetchResponse")
    shown = fetch.to_object({"responses": [{"partitions": [{"records": b"abc"}, {"records": None}]}]}, version=17)
    some, none = shown["responses"][0]["partitions"]
    assert (some["recordsSizeInBytes"], none["records"]) == (3, None)
