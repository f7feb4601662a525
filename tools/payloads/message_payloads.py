# SPDX-License-Identifier: Apache-2.0
"""Decodes records whose bytes are messages: metadata, coordinators' and control records.

It is separate from ``payloads`` because schemas are slow to import, and most dumps need none.
"""

from collections.abc import Iterable
from typing import Final

import attrs

from raftlog.errors import DecodeError, InvariantViolation
from raftlog.records.messages.control import (
    ControlRecord,
    ControlRecordType,
    EndTxnMarker,
    control_json,
    read_control_key,
    read_control_record,
)
from raftlog.records.messages.coordinator import (
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
    CoordinatorRecord,
    UnknownCoordinatorRecord,
    read_coordinator_record,
)
from raftlog.records.messages.metadata import MetadataJson, MetadataRecord, metadata_json, read_metadata_record
from raftlog.records.messages.releases import DIALECTS, Release
from raftlog.records.messages.schema import NEWEST, message_types
from raftlog.tools.payloads.config_secrets import may_be_config_secret
from raftlog.tools.payloads.mirror_payloads import TYPE_NAMES as MIRROR_TYPE_NAMES
from raftlog.tools.payloads.payloads import TOPIC_OF_DECODER, AnyRecord, Payload, PayloadDecoder
from raftlog.tools.payloads.redaction import may_be_secret, may_show_secret, redacted
from raftlog.tools.payloads.transaction_text import TRANSACTION_STATES, transaction_key_text, transaction_value_text


@attrs.frozen
class MetadataDecoder:
    """Decodes records of ``__cluster_metadata``.

    Attributes:
        level: the Kafka release whose readers to follow.
        redact: whether to hide secrets.
    """

    level: str
    redact: bool = False

    def value_texts(self, values: Iterable[bytes | None]) -> list[bytes]:
        """Return the text of each usual value without secrets, and empty bytes for any other."""
        return [self._value_text(value) for value in values]

    def _value_text(self, value: bytes | None) -> bytes:
        usual = self._usual(value)
        if usual is None:
            return b""
        kind, data = usual
        return f"{kind.head}{data}}}".encode()

    def _usual(self, value: bytes | None) -> tuple[MetadataJson, str] | None:
        """Return a record as JSON, if it has no secret and the fast reader can read it."""
        if value is None:
            return None
        kind = metadata_json(value, self.level)
        if kind is None:
            return None
        data = kind.message_json(value)
        if data is None or may_show_secret(kind.type_name, data):
            return None
        return kind, data

    def decode(self, record: AnyRecord) -> Payload:
        """Decode a record's value; its key is never shown."""
        usual = self._usual(record.value)
        if usual is not None:
            kind, data = usual
            return Payload(
                value_text=f"{kind.head}{data}}}", type_name=kind.type_name, version=kind.version, value_json=data
            )
        return self._decode_slowly(record)

    def _decode_slowly(self, record: AnyRecord) -> Payload:
        try:
            decoded = read_metadata_record(record.value, level=self.level)
        except DecodeError as error:
            text = f"Error at {record.offset}, skipping. {error.reason}"
            problem = self._named_problem(record.value, error)
            is_secret = may_be_secret(record.value) or may_be_config_secret(record.value)
            return Payload(value_text=text, is_redacted=self.redact and is_secret, problem=problem)
        message, has_secret = redacted(decoded)
        if has_secret and self.redact:
            decoded = MetadataRecord(decoded.type, decoded.version, message)
        data = decoded.type.to_json(decoded.message, version=decoded.version)
        return Payload(
            value_text=f'{{"type":"{decoded.type_name}","version":{decoded.version},"data":{data}}}',
            type_name=decoded.type_name,
            version=decoded.version,
            value_json=data,
            has_secret=has_secret,
            is_redacted=has_secret and self.redact,
        )

    def _named_problem(self, value: bytes | None, error: DecodeError) -> DecodeError:
        """Return an error that names a record of a later release, of which the level knows the number alone."""
        try:
            later = read_metadata_record(value)
        except DecodeError:
            return error
        reason = f"{later.type_name}, which Kafka {self.level} does not know: {error.reason}"
        return DecodeError(reason, error.rule, position=error.position)


@attrs.frozen
class CoordinatorDecoder:
    """Decodes records of ``__consumer_offsets``, ``__transaction_state`` or ``__share_group_state``.

    Attributes:
        topic: one of these topics.
        dialect: the Kafka release whose format to follow.
        level: the Kafka release whose readers to follow.
        redact: whether to hide secrets in records that are none of such a topic.
    """

    topic: str
    dialect: Release
    level: str
    redact: bool = False

    def decode(self, record: AnyRecord) -> Payload:
        """Decode a record's key and value."""
        try:
            decoded = read_coordinator_record(self.topic, record.key, record.value, level=self.level)
        except DecodeError as error:
            return self._unread(record, f"Error at offset {record.offset}, skipping. {error.reason}", error)
        if isinstance(decoded, UnknownCoordinatorRecord):
            text = f"Unknown record type {decoded.type} at offset {record.offset}, skipping."
            if self._prints_transaction_text:
                text = f"unknown::version={decoded.type}"
            return self._unread(record, text, DecodeError(f"unknown record type {decoded.type}", "message-frame"))
        return self.payload_of(decoded)

    def _unread(self, record: AnyRecord, text: str, problem: DecodeError) -> Payload:
        """Return the payload of a record that cannot be read, and so may come from any topic."""
        is_secret = (record.key is None and may_be_secret(record.value)) or may_be_config_secret(record.value)
        return Payload(key_text=text, has_secret=is_secret, is_redacted=is_secret and self.redact, problem=problem)

    @property
    def _prints_transaction_text(self) -> bool:
        return self.topic == TRANSACTION_STATE and self.dialect < DIALECTS["4.1"]

    def payload_of(self, decoded: CoordinatorRecord) -> Payload:
        """Return the payload of a record that has been read."""
        key_text, value_text = decoded.key_json(), decoded.value_json() or "<DELETE>"
        key_json = decoded.key_type.to_json(decoded.key, version=0)
        if self._prints_transaction_text:
            key_text, value_text = transaction_key_text(decoded), transaction_value_text(decoded)
        if self.topic == SHARE_GROUP_STATE and self.dialect < DIALECTS["4.1"]:
            value_text = value_text.replace('{"version":', '{"type":', 1)
        return Payload(
            key_text=key_text,
            value_text=value_text,
            type_name=_coordinator_type(decoded.key_type.name),
            version=decoded.version,
            key_json=key_json,
            value_json=_data_of(decoded),
            problem=_state_problem(decoded),
        )


def _state_problem(decoded: CoordinatorRecord) -> DecodeError | None:
    """Return an error for a transaction in a state that no Kafka release knows, else None."""
    status = (decoded.value or {}).get("transactionStatus")
    if status is None or 0 <= status < len(TRANSACTION_STATES):
        return None
    return DecodeError(f"unknown transaction state {status}", "message-field")


def _data_of(decoded: CoordinatorRecord) -> str:
    """Return the value's message, without the frame in which Kafka prints it."""
    text = decoded.value_json()
    return "null" if text is None else text.split(',"data":', 1)[1][:-1]


def _coordinator_type(key_name: str) -> str:
    name = key_name.removesuffix("Key")
    return "".join(f"_{character}" if character.isupper() else character for character in name).lstrip("_").upper()


def type_names() -> frozenset[str]:
    """Return the names of all known types of payloads."""
    kinds = message_types("coordinator-records").keys() | message_types("early-share-records").keys()
    return frozenset(
        MIRROR_TYPE_NAMES
        | {each.name for each in ControlRecordType}
        | {MetadataRecord(kind, 0, {}).type_name for kind in message_types("metadata-records").values()}
        | {_coordinator_type(name) for name in kinds if name.endswith("Key")}
    )


def control_payload(record: AnyRecord) -> Payload:
    """Decode a control record; if that fails, the payload has a problem."""
    type_name = _control_type(record.key)
    try:
        control = read_control_record(record.key, record.value)
    except DecodeError as error:
        return Payload(type_name=type_name, problem=error)
    if control.value is None:
        problem = DecodeError(f"unknown control record type {control.type}", "control-type")
        return Payload(control=control, type_name=type_name, problem=problem)
    return Payload(
        control=control,
        type_name=type_name,
        version=control.value.version,
        value_json=control_json(control.value),
        problem=_version_problem(control),
    )


def _control_type(key: bytes | None) -> str | None:
    """Return the name of the type in a control record's key, if there is one."""
    try:
        type_ = read_control_key(key)
    except DecodeError:
        return None
    return type_.name if isinstance(type_, ControlRecordType) else f"UNKNOWN({type_})"


def _version_problem(control: ControlRecord) -> DecodeError | None:
    value = control.value
    if value is None:
        raise InvariantViolation("a control record without a value has no version")
    if control.key_version == 0 and value.version == 0:
        return None
    versions = f"key version {control.key_version} and value version {value.version}"
    return DecodeError(f"a control record has {versions}; it was read as version 0", "control-version")


_CONTROL_LABELS: Final = {
    ControlRecordType.LEADER_CHANGE: "LeaderChange:",
    ControlRecordType.SNAPSHOT_HEADER: "SnapshotHeader",
    ControlRecordType.SNAPSHOT_FOOTER: "SnapshotFooter",
    ControlRecordType.KRAFT_VERSION: "KRaftVersion",
    ControlRecordType.KRAFT_VOTERS: "KRaftVoters",
}


def control_text(payload: Payload, dialect: Release) -> str:
    """Describe a control record in Kafka's words; empty for one that does not decode."""
    if payload.type_name == ControlRecordType.LEADER_CHANGE.name and dialect < DIALECTS["4.1"]:
        return " controlType: LEADER_CHANGE(2)"  # Up to 4.0 the value is not read at all.
    control = payload.control
    if control is None:
        return ""
    if control.value is None:
        return f" controlType: {payload.type_name}"
    if isinstance(control.value, EndTxnMarker):
        kind = "COMMIT" if control.value.committed else "ABORT"
        return f" endTxnMarker: {kind} coordinatorEpoch: {control.value.coordinator_epoch}"
    return f" {_CONTROL_LABELS[ControlRecordType(control.type)]} {payload.value_json}"


def message_decoder(name: str, dialect: Release, level: str | None, *, redact: bool) -> PayloadDecoder:
    """Return the decoder of one of ``TOPIC_OF_DECODER``; a level of None is the newest."""
    if name == "cluster-metadata":
        return MetadataDecoder(level or NEWEST, redact)
    return CoordinatorDecoder(TOPIC_OF_DECODER[name], dialect, level or NEWEST, redact)
