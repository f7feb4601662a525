# SPDX-License-Identifier: Apache-2.0
"""Control records, which hold a log's own metadata, as typed values.

A key is an int16 version and an int16 type. A value is always read by its version 0 layout, whatever version it states;
the stated version is kept. Bytes after the value are ignored, as Kafka does, but reported.

Source: ControlRecordType, ControlRecordUtils, EndTransactionMarker, ControlRecord.
"""

import enum
import struct
import uuid
from collections.abc import Callable
from typing import Any, Final

import attrs

from raftlog.errors import DecodeError, InvalidRecordError
from raftlog.records.messages.primitives import Buffer
from raftlog.records.messages.schema import UNKNOWN_TAGS, Message, MessageType, UnknownTags, message_type
from raftlog.uuid_text import ZERO_UUID

_LAYOUT = 0
_KEY: Final = struct.Struct(">hh")
_VERSION: Final = struct.Struct(">h")


class ControlRecordType(enum.IntEnum):
    """The types of control records."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


@attrs.frozen
class Voter:
    """A voter in a LeaderChangeMessage. Its directory id needs version 1, which nothing writes."""

    id: int
    directory_id: uuid.UUID | None = None
    unknown_tags: UnknownTags = ()


@attrs.frozen
class LeaderChangeMessage:
    """The first record of every epoch: its leader, the voters at that time, and those that voted for the leader."""

    leader_id: int
    voters: tuple[Voter, ...] = ()
    granting_voters: tuple[Voter, ...] = ()
    version: int = 0
    unknown_tags: UnknownTags = ()


@attrs.frozen
class SnapshotHeaderRecord:
    """The first record of a snapshot. The timestamp is in ms."""

    last_contained_log_timestamp: int
    version: int = 0
    unknown_tags: UnknownTags = ()


@attrs.frozen
class SnapshotFooterRecord:
    """The last record of a snapshot."""

    version: int = 0
    unknown_tags: UnknownTags = ()


@attrs.frozen
class KRaftVersionRecord:
    """The finalized level of ``kraft.version`` from this offset on."""

    kraft_version: int
    version: int = 0
    unknown_tags: UnknownTags = ()


@attrs.frozen
class VotersRecordEndpoint:
    """Where a voter listens."""

    name: str
    host: str
    port: int
    unknown_tags: UnknownTags = ()


@attrs.frozen
class VotersRecordVoter:
    """A voter in a VotersRecord. A zero directory id on the wire is None."""

    id: int
    directory_id: uuid.UUID | None
    endpoints: tuple[VotersRecordEndpoint, ...]
    min_supported_version: int
    max_supported_version: int
    feature_unknown_tags: UnknownTags = ()
    unknown_tags: UnknownTags = ()


@attrs.frozen
class VotersRecord:
    """The voters from this offset on."""

    voters: tuple[VotersRecordVoter, ...] = ()
    version: int = 0
    unknown_tags: UnknownTags = ()


@attrs.frozen
class EndTxnMarker:
    """The end of a transaction; never in a metadata log."""

    committed: bool
    coordinator_epoch: int
    version: int = 0


ControlValue = (
    LeaderChangeMessage | SnapshotHeaderRecord | SnapshotFooterRecord | KRaftVersionRecord | VotersRecord | EndTxnMarker
)


@attrs.frozen
class ControlRecord:
    """A control record as read.

    Attributes:
        type: the type; a plain int if the type is not known.
        value: the typed value, or None if the type is not known.
        raw_key: the key's bytes.
        raw_value: the value's bytes; None is null, which only a record of an unknown type can have.
        trailing: the bytes after the value, which Kafka ignores.
    """

    type: ControlRecordType | int
    value: ControlValue | None
    raw_key: bytes
    raw_value: bytes | None
    trailing: bytes = b""

    @property
    def key_version(self) -> int:
        """The version in the key; every Kafka so far writes 0."""
        version: int = _VERSION.unpack_from(self.raw_key)[0]
        return version


def control_key(type_: ControlRecordType) -> bytes:
    """Write the key of a control record."""
    return _KEY.pack(0, type_)


def read_control_key(key: Buffer | None) -> ControlRecordType | int:
    """Read the type in a control record's key: a ControlRecordType, or a plain int if it is not known.

    Raises:
        InvalidRecordError: the key is null, shorter than 4 bytes, or has a negative version.
    """
    if key is None or len(key) < _KEY.size:
        size = "null" if key is None else f"{len(key)} bytes"
        raise InvalidRecordError(f"a control record key is {size}, not at least {_KEY.size} bytes", "control-key")
    version, type_id = _KEY.unpack_from(key)
    if version < 0:
        raise InvalidRecordError(f"a control record key has version {version}", "control-key")
    return ControlRecordType(type_id) if type_id in _KNOWN_TYPES else int(type_id)


def read_control_record(key: Buffer | None, value: Buffer | None) -> ControlRecord:
    """Read a control record. A record of an unknown type is returned with its raw bytes only.

    Raises:
        InvalidRecordError: the key is not a control record key, or the value does not have the layout of its type.
    """
    type_ = read_control_key(key)
    raw_key = bytes(key or b"")
    raw_value = None if value is None else bytes(value)
    if not isinstance(type_, ControlRecordType):
        return ControlRecord(type_, None, raw_key, raw_value)
    if raw_value is None:
        raise InvalidRecordError(f"a control record of type {type_.name} has no value", "control-value")
    try:
        typed, end = _read_value(type_, raw_value)
    except DecodeError as error:
        reason = f"a control record of type {type_.name} does not read: {error.reason}"
        raise InvalidRecordError(reason, "control-value", position=error.position) from error
    return ControlRecord(type_, typed, raw_key, raw_value, raw_value[end:])


def write_control_record(value: ControlValue) -> tuple[bytes, bytes]:
    """Write the key and the value of a control record, by the version 0 layout that every Kafka reads.

    Raises:
        UnsupportedVersionError: a voter of a LeaderChangeMessage has a directory id, which that layout lacks.
        InvalidRecordError: a field does not fit its type.
    """
    return control_key(control_type(value)), write_control_value(value)


def write_control_value(value: ControlValue) -> bytes:
    """Write the value of a control record alone; raises as ``write_control_record`` does."""
    if isinstance(value, EndTxnMarker):
        marker = {"coordinatorEpoch": value.coordinator_epoch}
        return _VERSION.pack(value.version) + message_type("EndTxnMarker").write(marker, version=_LAYOUT)
    return _message_type(value).write(_to_message(value), version=_LAYOUT)


def control_type(value: ControlValue) -> ControlRecordType:
    """Return the type of the record that holds a value."""
    if isinstance(value, EndTxnMarker):
        return ControlRecordType.COMMIT if value.committed else ControlRecordType.ABORT
    return _TYPES[type(value)]


def control_json(value: ControlValue) -> str:
    """Render a value as dump-log prints it: by the version that it states, although it was read by version 0."""
    if isinstance(value, EndTxnMarker):
        return message_type("EndTxnMarker").to_json({"coordinatorEpoch": value.coordinator_epoch}, version=_LAYOUT)
    return _message_type(value).to_json(_to_message(value), version=value.version)


_TYPES: Final[dict[type, ControlRecordType]] = {
    LeaderChangeMessage: ControlRecordType.LEADER_CHANGE,
    SnapshotHeaderRecord: ControlRecordType.SNAPSHOT_HEADER,
    SnapshotFooterRecord: ControlRecordType.SNAPSHOT_FOOTER,
    KRaftVersionRecord: ControlRecordType.KRAFT_VERSION,
    VotersRecord: ControlRecordType.KRAFT_VOTERS,
}
_KINDS: Final = {type_: kind for kind, type_ in _TYPES.items()}
_KNOWN_TYPES: Final = frozenset(ControlRecordType)


def _message_type(value: ControlValue) -> MessageType:
    return message_type(type(value).__name__)


def _read_value(type_: ControlRecordType, data: bytes) -> tuple[ControlValue, int]:
    if type_ in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        return _read_marker(type_, data)
    kind = _KINDS[type_]
    message, end = message_type(kind.__name__).read(data, version=_LAYOUT)
    return _FROM_MESSAGE[kind](message), end


def _read_marker(type_: ControlRecordType, data: bytes) -> tuple[EndTxnMarker, int]:
    if len(data) < _VERSION.size:
        raise InvalidRecordError("an end marker has no version", "control-value")
    version = _VERSION.unpack_from(data)[0]
    if version < 0:
        raise InvalidRecordError(f"an end marker has version {version}", "control-value")
    marker, end = message_type("EndTxnMarker").read(data, _VERSION.size, version=_LAYOUT)
    return EndTxnMarker(type_ is ControlRecordType.COMMIT, marker["coordinatorEpoch"], version), end


# Typed values and messages


def _leader_change(message: Message) -> LeaderChangeMessage:
    return LeaderChangeMessage(
        message["leaderId"],
        tuple(map(_voter, message["voters"])),
        tuple(map(_voter, message["grantingVoters"])),
        message["version"],
        _unknown_tags(message),
    )


def _voter(message: Message) -> Voter:
    return Voter(message["voterId"], _directory_id(message), _unknown_tags(message))


def _snapshot_header(message: Message) -> SnapshotHeaderRecord:
    return SnapshotHeaderRecord(message["lastContainedLogTimestamp"], message["version"], _unknown_tags(message))


def _snapshot_footer(message: Message) -> SnapshotFooterRecord:
    return SnapshotFooterRecord(message["version"], _unknown_tags(message))


def _kraft_version(message: Message) -> KRaftVersionRecord:
    return KRaftVersionRecord(message["kRaftVersion"], message["version"], _unknown_tags(message))


def _voters_record(message: Message) -> VotersRecord:
    voters = tuple(map(_voters_record_voter, message["voters"]))
    return VotersRecord(voters, message["version"], _unknown_tags(message))


def _voters_record_voter(message: Message) -> VotersRecordVoter:
    feature = message["kRaftVersionFeature"]
    return VotersRecordVoter(
        message["voterId"],
        _directory_id(message),
        tuple(map(_endpoint, message["endpoints"])),
        feature["minSupportedVersion"],
        feature["maxSupportedVersion"],
        _unknown_tags(feature),
        _unknown_tags(message),
    )


def _endpoint(message: Message) -> VotersRecordEndpoint:
    return VotersRecordEndpoint(message["name"], message["host"], message["port"], _unknown_tags(message))


_FROM_MESSAGE: Final[dict[type, Callable[[Message], ControlValue]]] = {
    LeaderChangeMessage: _leader_change,
    SnapshotHeaderRecord: _snapshot_header,
    SnapshotFooterRecord: _snapshot_footer,
    KRaftVersionRecord: _kraft_version,
    VotersRecord: _voters_record,
}


def _directory_id(message: Message) -> uuid.UUID | None:
    directory_id: uuid.UUID = message["voterDirectoryId"]
    return None if directory_id == ZERO_UUID else directory_id


def _unknown_tags(message: Message) -> UnknownTags:
    return tuple(sorted(message.get(UNKNOWN_TAGS, {}).items()))


def _to_message(value: Any) -> Message:
    fields = {"version": value.version} if hasattr(value, "version") else {}
    return fields | _to_fields(value) | {UNKNOWN_TAGS: dict(value.unknown_tags)}


def _to_fields(value: ControlValue | Voter | VotersRecordVoter | VotersRecordEndpoint) -> Message:
    match value:
        case LeaderChangeMessage():
            return {
                "leaderId": value.leader_id,
                "voters": [_to_message(voter) for voter in value.voters],
                "grantingVoters": [_to_message(voter) for voter in value.granting_voters],
            }
        case Voter():
            return {"voterId": value.id, "voterDirectoryId": value.directory_id or ZERO_UUID}
        case SnapshotHeaderRecord():
            return {"lastContainedLogTimestamp": value.last_contained_log_timestamp}
        case KRaftVersionRecord():
            return {"kRaftVersion": value.kraft_version}
        case VotersRecord():
            return {"voters": [_to_message(voter) for voter in value.voters]}
        case VotersRecordVoter():
            return _voter_fields(value)
        case VotersRecordEndpoint():
            return {"name": value.name, "host": value.host, "port": value.port}
    return {}


def _voter_fields(voter: VotersRecordVoter) -> Message:
    return {
        "voterId": voter.id,
        "voterDirectoryId": voter.directory_id or ZERO_UUID,
        "endpoints": [_to_message(endpoint) for endpoint in voter.endpoints],
        "kRaftVersionFeature": {
            "minSupportedVersion": voter.min_supported_version,
            "maxSupportedVersion": voter.max_supported_version,
            UNKNOWN_TAGS: dict(voter.feature_unknown_tags),
        },
    }
