# SPDX-License-Identifier: Apache-2.0
"""Requests and responses as frames: a header, then a message. The transport adds the int32 length before a frame.

A response has neither its type nor its version. To read it, look up the request with its correlation id.

Source: ApiKeys, RequestHeader, ResponseHeader.
"""

import functools
import struct
from typing import Final

import attrs

from raftlog.errors import InvalidRecordError, TruncatedBatchError, UnsupportedVersionError
from raftlog.records.messages.primitives import RULE, Buffer
from raftlog.records.messages.schema import Message, MessageType, message_types

API_VERSIONS: Final = 18
_API: Final = struct.Struct(">hh")


@attrs.frozen
class Request:
    """A request frame.

    Attributes:
        type: the kind of message.
        version: the version of the message.
        header: the header's fields by name: correlationId, clientId and so on.
        message: the fields by name.
    """

    type: MessageType
    version: int
    header: Message
    message: Message


@attrs.frozen
class Response:
    """A response frame; see Request."""

    type: MessageType
    version: int
    header: Message
    message: Message


def request_type(api_key: int) -> MessageType:
    """Return the request type of an api key.

    Raises:
        UnsupportedVersionError: none is known.
    """
    return _type(api_key, "Request")


def response_type(api_key: int) -> MessageType:
    """Return the response type of an api key.

    Raises:
        UnsupportedVersionError: none is known.
    """
    return _type(api_key, "Response")


def read_request(frame: Buffer) -> Request:
    """Read a request, which must fill the frame.

    Raises:
        UnsupportedVersionError: the api key or the version is not known.
        InvalidRecordError: a field breaks the format, or bytes are left over.
        TruncatedBatchError: the frame ends inside a field.
    """
    if len(frame) < _API.size:
        raise TruncatedBatchError("a request ends inside its header", RULE, position=0)
    api_key, version = _API.unpack_from(frame)
    message_type = request_type(api_key)
    header, position = _header("RequestHeader").read(frame, version=_request_header_version(message_type, version))
    message, end = message_type.read(frame, position, version=version)
    _check_end(frame, end, message_type)
    return Request(message_type, version, header, message)


def write_request(api_key: int, version: int, correlation_id: int, client_id: str | None, message: Message) -> bytes:
    """Write a request as a frame.

    Raises:
        UnsupportedVersionError: the api key or version is not known, or lacks a field that is not at its default.
        InvalidRecordError: a field is unknown or takes another value.
    """
    message_type = request_type(api_key)
    header = {
        "requestApiKey": api_key,
        "requestApiVersion": version,
        "correlationId": correlation_id,
        "clientId": client_id,
    }
    head = _header("RequestHeader").write(header, version=_request_header_version(message_type, version))
    return head + message_type.write(message, version=version)


def read_correlation_id(frame: Buffer) -> int:
    """Read the correlation id at the start of a response, to find the request that it answers.

    Raises:
        TruncatedBatchError: the frame is shorter than that.
    """
    correlation_id: int = _header("ResponseHeader").read(frame, version=0)[0]["correlationId"]
    return correlation_id


def read_response(frame: Buffer, api_key: int, version: int) -> Response:
    """Read the response to a request of an api key and version; it must fill the frame.

    Raises:
        UnsupportedVersionError: the api key or the version is not known.
        InvalidRecordError: a field breaks the format, or bytes are left over.
        TruncatedBatchError: the frame ends inside a field.
    """
    message_type = response_type(api_key)
    header, position = _header("ResponseHeader").read(frame, version=_response_header_version(message_type, version))
    message, end = message_type.read(frame, position, version=version)
    _check_end(frame, end, message_type)
    return Response(message_type, version, header, message)


def write_response(api_key: int, version: int, correlation_id: int, message: Message) -> bytes:
    """Write a response as a frame.

    Raises:
        UnsupportedVersionError: the api key or version is not known, or lacks a field that is not at its default.
        InvalidRecordError: a field is unknown or takes another value.
    """
    message_type = response_type(api_key)
    header_version = _response_header_version(message_type, version)
    head = _header("ResponseHeader").write({"correlationId": correlation_id}, version=header_version)
    return head + message_type.write(message, version=version)


def _request_header_version(message_type: MessageType, version: int) -> int:
    return 2 if version in message_type.flexible else 1


def _response_header_version(message_type: MessageType, version: int) -> int:
    # A client that asks for versions does not know yet whether the server answers in a flexible version.
    return 1 if version in message_type.flexible and message_type.api_key != API_VERSIONS else 0


def _header(name: str) -> MessageType:
    return message_types("raft-rpcs")[name]


@functools.cache
def _types_by_key() -> dict[tuple[int | None, str], MessageType]:
    types = [each for each in message_types("raft-rpcs").values() if each.schema.kind == "rpc"]
    return {(each.api_key, "Request" if each.name.endswith("Request") else "Response"): each for each in types}


def _type(api_key: int, way: str) -> MessageType:
    try:
        return _types_by_key()[api_key, way]
    except KeyError:
        raise UnsupportedVersionError(f"no {way.lower()} has api key {api_key}", "message-version") from None


def _check_end(frame: Buffer, end: int, message_type: MessageType) -> None:
    if end != len(frame):
        raise InvalidRecordError(f"{len(frame) - end} bytes are left after {message_type.name}", RULE, position=end)
