# SPDX-License-Identifier: Apache-2.0
"""The records of the coordinators' topics: ``__consumer_offsets``, ``__transaction_state``, ``__share_group_state``.

::

    key      int16 type, then the key's message of that type (its version 0)
    value    int16 version, then the value's message of that type; a null value is a tombstone

Share groups were early access in 4.0, with layouts that no other release reads; they are used only at level 4.0.

The reason of each error is the text that dump-log prints after ``Error at offset N, skipping. ``.

Source: CoordinatorRecordSerde, and the GroupCoordinator-, ShareCoordinator- and TransactionCoordinatorRecordSerde.
"""

import functools
import struct
from typing import Any, Final

import attrs

from raftlog.errors import DecodeError, InvalidRecordError, TruncatedBatchError
from raftlog.records.messages.java_text import displayed, json_bytes
from raftlog.records.messages.message_json import Renderer, compile_renderer
from raftlog.records.messages.primitives import Buffer, Reader
from raftlog.records.messages.schema import NEWEST, Message, MessageType, message_type, message_types
from raftlog.records.messages.schema_text import knows

CONSUMER_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
SHARE_GROUP_STATE: Final = "__share_group_state"

_INT16: Final = struct.Struct(">h")
_KEY_LAYOUT = 0
_FRAME_RULE = "message-frame"
_EARLY_SHARE_LEVEL = "4.0"


@attrs.frozen
class CoordinatorRecord:
    """One record of a coordinator's topic.

    Attributes:
        type: the number of the type.
        key_type: the kind of message in the key.
        key: the key's fields by name.
        value_type: the kind of message that is the value, if there is one.
        version: the version that the value states; None for a tombstone.
        value: the value's fields by name; None for a tombstone.
        key_trailing: the bytes after the key's message, which Kafka ignores.
        value_trailing: the bytes after the value's message, which Kafka ignores.
    """

    type: int
    key_type: MessageType
    key: Message
    value_type: MessageType
    version: int | None
    value: Message | None
    key_trailing: bytes = b""
    value_trailing: bytes = b""

    def key_json(self) -> str:
        """Render the key as dump-log prints it."""
        return f'{{"type":"{self.type}","data":{self.key_type.to_json(self.key, version=_KEY_LAYOUT)}}}'

    def value_json(self) -> str | None:
        """Render the value as dump-log prints it; None for a tombstone.

        For a classic consumer group, subscriptions and assignments are expanded if they parse.
        """
        if self.value is None or self.version is None:
            return None
        if self.value_type.name == "GroupMetadataValue" and displayed(self.value["protocolType"]) == "consumer":
            data = _consumer_group_renderer(self.value_type.versions.nearest(self.version))(self.value)
        else:
            data = self.value_type.to_json(self.value, version=self.version)
        return f'{{"version":"{self.version}","data":{data}}}'


@attrs.frozen
class UnknownCoordinatorRecord:
    """The raw bytes of a record of an unknown type.

    Attributes:
        type: the number of the type.
        key: the key's bytes, including the type.
        value: the value's bytes, or None.
    """

    type: int
    key: bytes
    value: bytes | None


def read_coordinator_record(
    topic: str, key: Buffer | None, value: Buffer | None, *, level: str = NEWEST
) -> CoordinatorRecord | UnknownCoordinatorRecord:
    """Read a record of one of the coordinators' topics, as the readers of a Kafka release do.

    Raises:
        InvalidRecordError: the key is null, the key or value breaks the format, or the value's version is not known.
            (Releases before 4.0 accept every version: they read it by the nearest layout.)
    """
    if key is None:
        raise InvalidRecordError("a coordinator's record has no key", _FRAME_RULE)
    type_id = _read_int16(key, "key")
    types = _types_by_key(topic, level).get(type_id)
    if types is None:
        return UnknownCoordinatorRecord(type_id, bytes(key), None if value is None else bytes(value))
    key_type, value_type = types
    key_message, key_end = _read_message(key_type.reader(_KEY_LAYOUT, level), key, type_id, "key")
    key_trailing = bytes(key[key_end:])
    if value is None:
        return CoordinatorRecord(type_id, key_type, key_message, value_type, None, None, key_trailing)
    version = _read_int16(value, "value")
    reader = _value_reader(value_type, type_id, version, level)
    message, end = _read_message(reader, value, version, "value")
    return CoordinatorRecord(
        type_id, key_type, key_message, value_type, version, message, key_trailing, bytes(value[end:])
    )


def write_coordinator_record(record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
    """Write the key and the value (None for a tombstone) of a record.

    Raises:
        UnsupportedVersionError: the value's version is not known, or lacks a field that is not at its default.
        InvalidRecordError: a field is unknown or takes another value.
    """
    key = _INT16.pack(record.type) + record.key_type.write(record.key, version=_KEY_LAYOUT)
    if record.value is None or record.version is None:
        return key, None
    return key, _INT16.pack(record.version) + record.value_type.write(record.value, version=record.version)


def _read_int16(data: Buffer, what: str) -> int:
    if len(data) < _INT16.size:
        raise InvalidRecordError(f"Could not read version from {what}'s buffer.", _FRAME_RULE, position=0)
    number: int = _INT16.unpack_from(data)[0]
    return number


def _value_reader(value_type: MessageType, type_id: int, version: int, level: str) -> Reader:
    if knows(level, "4.0") and version not in value_type.versions:
        problem = f"Found an unknown record version {version} for {type_id} type"
        raise InvalidRecordError(problem, "message-version")
    return value_type.reader(version, level, nearest=True)


def _read_message(read: Reader, data: Buffer, version: int, what: str) -> tuple[Message, int]:
    try:
        return read(data, _INT16.size)
    except DecodeError as error:
        cause = "null" if isinstance(error, TruncatedBatchError) else error.reason
        problem = f"Could not read record with version {version} from {what}'s buffer due to: {cause}."
        raise InvalidRecordError(problem, error.rule, position=error.position) from error


@functools.cache
def _types_by_key(topic: str, level: str) -> dict[int, tuple[MessageType, MessageType]]:
    """Return the messages of key and value by type; the schema text lists each pair together."""
    known = dict(message_types("coordinator-records"))
    if level == _EARLY_SHARE_LEVEL:
        known |= message_types("early-share-records")
    keys = [each for each in known.values() if each.schema.topic == topic and each.name.endswith("Key")]
    if not keys:
        raise LookupError(f"no coordinator's topic is called {topic}")
    pairs = {key.api_key or 0: (key, known[key.name.removesuffix("Key") + "Value"]) for key in keys}
    if topic == CONSUMER_OFFSETS and not knows(level, "4.1"):
        pairs[0] = pairs[0][0], known["OffsetCommitValue"]  # until then both kinds of commit had one value
    return {type_id: pair for type_id, pair in pairs.items() if pair[0].is_known(level)}


# The classic consumer protocol, embedded in group metadata


@functools.cache
def _consumer_group_renderer(version: int) -> Renderer:
    special: dict[str, Renderer] = {
        "subscription": functools.partial(_expanded, "ConsumerProtocolSubscription"),
        "assignment": functools.partial(_expanded, "ConsumerProtocolAssignment"),
    }
    return compile_renderer(message_type("GroupMetadataValue").schema, version, special)


def _expanded(name: str, data: Any) -> str:
    embedded = message_type(name)
    try:
        version = _read_int16(data, name)
        message, _ = embedded.reader(version, nearest=True)(data, _INT16.size)
    except DecodeError:
        return json_bytes(data)
    return embedded.to_json(message, version=version)
