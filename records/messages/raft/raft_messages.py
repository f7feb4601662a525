# SPDX-License-Identifier: Apache-2.0
"""Reads and writes requests and responses of raft as frozen typed values, and converts generic messages.

A class has the name of its message, and one attribute per field of any version, with Kafka's name in snake_case. All
arguments are keywords. An attribute has a default if the schema states one, or if the bytes may lack the field because
a version does not have it or because it is tagged. The class of a nested struct has the message's name before its own,
or only its own name if several messages share it.

>>> vote = VoteResponse(error_code=3, topics=())
>>> write_rpc(vote, 2).hex()
'00030100'
>>> read_rpc(VoteResponse, bytes.fromhex("00030100"), 2) == vote
True

For frames, with their headers, see ``rpc``: its messages are those that ``to_message`` returns and ``from_message``
accepts.

Source: the classes that Kafka generates, such as VoteRequestData.
"""

import functools
import typing
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeVar, cast

from raftlog.records.messages.primitives import Buffer
from raftlog.records.messages.raft.api_versions_messages import ApiVersionsRequest, ApiVersionsResponse
from raftlog.records.messages.raft.election_messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    VoteRequest,
    VoteResponse,
)
from raftlog.records.messages.raft.fetch_messages import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
)
from raftlog.records.messages.raft.typed_codecs import (
    TypedReader,
    TypedWriter,
    compile_typed_reader,
    compile_typed_writer,
)
from raftlog.records.messages.raft.typed_structs import StructConversion, struct_conversion
from raftlog.records.messages.raft.voter_messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from raftlog.records.messages.schema import Message, MessageType, message_types

RaftRequest = (
    VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | FetchRequest
    | FetchSnapshotRequest
    | AddRaftVoterRequest
    | RemoveRaftVoterRequest
    | UpdateRaftVoterRequest
    | DescribeQuorumRequest
    | ApiVersionsRequest
)
RaftResponse = (
    VoteResponse
    | BeginQuorumEpochResponse
    | EndQuorumEpochResponse
    | FetchResponse
    | FetchSnapshotResponse
    | AddRaftVoterResponse
    | RemoveRaftVoterResponse
    | UpdateRaftVoterResponse
    | DescribeQuorumResponse
    | ApiVersionsResponse
)
RaftMessage = RaftRequest | RaftResponse

RAFT_MESSAGES: Final[Mapping[str, type[RaftMessage]]] = MappingProxyType(
    {each.__name__: each for each in typing.get_args(RaftMessage)}
)
"""The classes, by the names of their messages, such as ``read_request(frame).type.name``."""

_M = TypeVar("_M", bound=RaftMessage)

_WRITERS: Final[dict[tuple[type, int], TypedWriter]] = {}
_READERS: Final[dict[tuple[type, int], TypedReader]] = {}
"""By class and version, compiled on first use."""


def to_message(value: RaftMessage) -> Message:
    """Convert a typed message to a generic one, with every field of the schema.

    Raises:
        InvalidRecordError: an attribute has a value of the wrong kind. The writer checks numbers and texts.
        LookupError: the value is not a whole message of raft.
    """
    message: Message = _conversion(_name(type(value))).to_message(value)
    return message


def from_message(kind: type[_M], message: Message) -> _M:
    """Convert a generic message to a typed one; missing fields get the schema's defaults.

    Raises:
        InvalidRecordError: the message has a field that the schema lacks, or a part of the wrong kind.
        LookupError: the class is not a message of raft.
    """
    value: _M = _conversion(_name(kind)).from_message(message)
    return value


def error_response(request: RaftRequest, error_code: int) -> RaftResponse:
    """Return the response that refuses a whole request with an error, and says nothing else.

    Raises:
        LookupError: the request is not a message of raft.
    """
    kind = RAFT_MESSAGES[_name(type(request)).removesuffix("Request") + "Response"]
    return cast("RaftResponse", from_message(kind, {"errorCode": error_code}))


def highest_version(message: RaftMessage) -> int:
    """Return the highest version of a message, which is the one to send a request in to a peer that is raftlog too.

    To another peer, send the highest version that both support: its ApiVersionsResponse lists the peer's. A response
    is sent in the version of its request.

    >>> highest_version(VoteResponse(error_code=3, topics=()))
    2

    Raises:
        LookupError: the value is not a message of raft.
    """
    return _message_type(_name(type(message))).versions.highest


def write_rpc(value: RaftMessage, version: int) -> bytes:
    """Encode a message in a version.

    Raises:
        UnsupportedVersionError: the version is not known, or lacks a field that is not at its default.
        InvalidRecordError: an attribute has a value that its field does not accept.
        LookupError: the value is not a message of raft.
    """
    written = _writer(type(value), version)(value)
    return _message_type(type(value).__name__).write(to_message(value), version=version) if written is None else written


def read_rpc(kind: type[_M], buffer: Buffer, version: int) -> _M:
    """Read a message of a version, which must fill the bytes.

    Raises:
        UnsupportedVersionError: the version is not known.
        InvalidRecordError: a field breaks the format, or bytes are left over.
        TruncatedBatchError: the bytes end inside the message.
        LookupError: the class is no message of raft.
    """
    value: _M | None = _reader(kind, version)(buffer)
    return from_message(kind, _message_type(_name(kind)).decode(buffer, version=version)) if value is None else value


def _name(kind: type) -> str:
    if RAFT_MESSAGES.get(kind.__name__) is not kind:
        raise LookupError(f"{kind.__name__} is not a message of raft")
    return kind.__name__


def _message_type(name: str) -> MessageType:
    return message_types("raft-rpcs")[name]


def _writer(kind: type, version: int) -> TypedWriter:
    found = _WRITERS.get((kind, version))
    if found is None:
        of = _message_type(_name(kind))
        if version not in of.versions:
            return _unusual
        found = _WRITERS[kind, version] = compile_typed_writer(kind, of.schema, version)
    return found


def _reader(kind: type, version: int) -> TypedReader:
    found = _READERS.get((kind, version))
    if found is None:
        of = _message_type(_name(kind))
        if version not in of.versions:
            return _unusual
        found = _READERS[kind, version] = compile_typed_reader(kind, of.schema, version)
    return found


def _unusual(_: object) -> None:
    """Read or write nothing: the version is not known."""


@functools.cache
def _conversion(name: str) -> StructConversion:
    return struct_conversion(RAFT_MESSAGES[name], _message_type(name).schema.struct)
