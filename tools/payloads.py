# SPDX-License-Identifier: Apache-2.0
"""What a decoder makes of a record's key and value: Kafka's words for it, and JSON."""

import importlib
import json
from collections.abc import Callable
from typing import Any, Final, Protocol

import attrs

from raftlog.errors import DecodeError
from raftlog.records.control import (
    ControlRecord,
    ControlRecordType,
    EndTxnMarker,
    control_json,
    read_control_key,
    read_control_record,
)
from raftlog.records.coordinator import (
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
    CoordinatorRecord,
    UnknownCoordinatorRecord,
    read_coordinator_record,
)
from raftlog.records.java_text import decode_utf8
from raftlog.records.legacy import LegacyRecord
from raftlog.records.metadata import MetadataRecord, read_metadata_record
from raftlog.records.record import RecordView
from raftlog.tools.dialect import Dialect
from raftlog.tools.redaction import may_be_secret, redacted
from raftlog.tools.transaction_text import transaction_key_text, transaction_value_text

AnyRecord = RecordView | LegacyRecord

_TOPICS: Final = {
    "offsets": CONSUMER_OFFSETS,
    "transaction-log": TRANSACTION_STATE,
    "share-group-state": SHARE_GROUP_STATE,
}
DECODER_OF_TOPIC: Final = {topic: name for name, topic in _TOPICS.items()} | {"__cluster_metadata": "cluster-metadata"}
"""Which decoder fits the records of a topic."""


@attrs.frozen
class Payload:
    """A decoded key and value.

    Attributes:
        key_text, value_text: what follows ``key:`` and ``payload:`` in Kafka's words; None if the word is missing too.
        type_name: name of the control or message type, in capitals, or None for plain bytes.
        version: of the message, or None.
        key_json, value_json: the decoded messages as JSON, or None where the bytes are to be shown.
        control: the control record, if it is one.
        has_secret: whether the message holds a secret.
        is_redacted: whether the value must not be shown as bytes.
        problem: what could not be decoded.
    """

    key_text: str | None = None
    value_text: str | None = None
    type_name: str | None = None
    version: int | None = None
    key_json: str | None = None
    value_json: str | None = None
    control: ControlRecord | None = None
    has_secret: bool = False
    is_redacted: bool = False
    problem: DecodeError | None = None


class PayloadDecoder(Protocol):
    """Makes a payload of a data record; what it cannot decode is the payload's ``problem``, not an exception."""

    def decode(self, record: AnyRecord) -> Payload:
        """Decode a record's key and value."""
        ...


@attrs.frozen
class PlainDecoder:
    """Shows keys and values as text.

    Attributes:
        redact: whether to hide a value that is a metadata record with a secret: its topic may not be known.
    """

    redact: bool = False

    def decode(self, record: AnyRecord) -> Payload:
        """Decode a record's key and value."""
        is_secret = record.key is None and may_be_secret(record.value)
        return Payload(
            key_text=None if record.key is None else decode_utf8(record.key),
            value_text=None if record.value is None else decode_utf8(record.value),
            has_secret=is_secret,
            is_redacted=is_secret and self.redact,
        )


@attrs.frozen
class UserDecoder:
    """Shows keys and values as what functions of the user's make of them: as their text, and as JSON.

    Attributes:
        key_decoder, value_decoder: from bytes to anything that has a text, or None for bytes to be shown as they are.
        redact: whether to hide a value that is a metadata record with a secret.
    """

    key_decoder: Callable[[bytes], object] | None
    value_decoder: Callable[[bytes], object] | None
    redact: bool = False

    def decode(self, record: AnyRecord) -> Payload:
        """Decode a record's key and value."""
        payload = PlainDecoder(self.redact).decode(record)
        value_decoder = None if payload.is_redacted else self.value_decoder
        for part, decoder, data in (("key", self.key_decoder, record.key), ("value", value_decoder, record.value)):
            if decoder is None or data is None:
                continue
            try:
                text, json_text = _text_and_json(decoder, data)
            except Exception as error:
                reason = f"the {part} decoder raised {type(error).__name__}: {error}"
                payload = attrs.evolve(payload, problem=DecodeError(reason, "decoder-raised"))
            else:
                decoded: dict[str, Any] = {f"{part}_text": text, f"{part}_json": json_text}
                payload = attrs.evolve(payload, **decoded)
        return payload


def _text_and_json(decoder: Callable[[bytes], object], data: bytes) -> tuple[str, str]:
    decoded = decoder(data)
    text = str(decoded)
    text.encode()  # What a decoder makes of bytes has to be text that can be written.
    return text, json.dumps(decoded, default=str, allow_nan=False)


@attrs.frozen
class MetadataDecoder:
    """Decodes records of ``__cluster_metadata``.

    Attributes:
        level: the Kafka release whose readers to follow.
        redact: whether to hide secrets.
    """

    level: str
    redact: bool = False

    def decode(self, record: AnyRecord) -> Payload:
        """Decode a record's value; its key is never shown."""
        try:
            decoded = read_metadata_record(record.value, level=self.level)
        except DecodeError as error:
            text = f"Error at {record.offset}, skipping. {error.reason}"
            return Payload(value_text=text, is_redacted=self.redact and may_be_secret(record.value), problem=error)
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


@attrs.frozen
class CoordinatorDecoder:
    """Decodes records of ``__consumer_offsets``, ``__transaction_state`` or ``__share_group_state``.

    Attributes:
        topic: which of them.
        dialect: the Kafka release whose words to use.
        level: the Kafka release whose readers to follow.
    """

    topic: str
    dialect: Dialect
    level: str

    def decode(self, record: AnyRecord) -> Payload:
        """Decode a record's key and value."""
        try:
            decoded = read_coordinator_record(self.topic, record.key, record.value, level=self.level)
        except DecodeError as error:
            return Payload(key_text=f"Error at offset {record.offset}, skipping. {error.reason}", problem=error)
        if isinstance(decoded, UnknownCoordinatorRecord):
            text = f"Unknown record type {decoded.type} at offset {record.offset}, skipping."
            if self._prints_transaction_text:
                text = f"unknown::version={decoded.type}"
            return Payload(key_text=text, problem=DecodeError(f"unknown record type {decoded.type}", "message-frame"))
        return self._payload(decoded)

    @property
    def _prints_transaction_text(self) -> bool:
        return self.topic == TRANSACTION_STATE and self.dialect < Dialect.V4_1

    def _payload(self, decoded: CoordinatorRecord) -> Payload:
        key_text, value_text = decoded.key_json(), decoded.value_json() or "<DELETE>"
        key_json = decoded.key_type.to_json(decoded.key, version=0)
        if self._prints_transaction_text:
            key_text, value_text = transaction_key_text(decoded), transaction_value_text(decoded)
        if self.topic == SHARE_GROUP_STATE and self.dialect < Dialect.V4_1:
            value_text = value_text.replace('{"version":', '{"type":', 1)
        return Payload(
            key_text=key_text,
            value_text=value_text,
            type_name=_coordinator_type(decoded),
            version=decoded.version,
            key_json=key_json,
            value_json=_data_of(decoded),
        )


def _data_of(decoded: CoordinatorRecord) -> str:
    """The value's message alone, out of the frame that Kafka prints it in."""
    text = decoded.value_json()
    return "null" if text is None else text.split(',"data":', 1)[1][:-1]


def _coordinator_type(decoded: CoordinatorRecord) -> str:
    name = decoded.key_type.name.removesuffix("Key")
    return "".join(f"_{character}" if character.isupper() else character for character in name).lstrip("_").upper()


def control_payload(record: AnyRecord) -> Payload:
    """Decode a control record; one that does not decode is a payload with a problem."""
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
    """Name the type in a control record's key, if there is one."""
    try:
        type_ = read_control_key(key)
    except DecodeError:
        return None
    return type_.name if isinstance(type_, ControlRecordType) else f"UNKNOWN({type_})"


def _version_problem(control: ControlRecord) -> DecodeError | None:
    assert control.value is not None
    if control.key_version == 0 and control.value.version == 0:
        return None
    versions = f"key version {control.key_version} and value version {control.value.version}"
    return DecodeError(f"a control record has {versions}; it was read as version 0", "control-version")


_CONTROL_LABELS: Final = {
    ControlRecordType.LEADER_CHANGE: "LeaderChange:",
    ControlRecordType.SNAPSHOT_HEADER: "SnapshotHeader",
    ControlRecordType.SNAPSHOT_FOOTER: "SnapshotFooter",
    ControlRecordType.KRAFT_VERSION: "KRaftVersion",
    ControlRecordType.KRAFT_VOTERS: "KRaftVoters",
}


def control_text(payload: Payload, dialect: Dialect) -> str:
    """Describe a control record in Kafka's words; one that does not decode has none."""
    if payload.type_name == ControlRecordType.LEADER_CHANGE.name and dialect < Dialect.V4_1:
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


def load_decoder(name: str) -> Callable[[bytes], object]:
    """Import a decoder by ``module:name``: a function from bytes to anything that has a text.

    Raises:
        ValueError: there is no such function.
    """
    module, _, attribute = name.partition(":")
    try:
        decoder = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # A module may raise anything when it is imported.
        raise ValueError(f"{name}: {type(error).__name__}: {error}") from error
    if not callable(decoder):
        raise ValueError(f"{name} is not a function")
    return decoder  # type: ignore[no-any-return]


def decoder_for(name: str | None, dialect: Dialect, level: str, *, redact: bool) -> PayloadDecoder:
    """Return the decoder of a name, or one that shows bytes as text."""
    if name is None:
        return PlainDecoder(redact=redact)
    if name == "cluster-metadata":
        return MetadataDecoder(level, redact)
    return CoordinatorDecoder(_TOPICS[name], dialect, level)
