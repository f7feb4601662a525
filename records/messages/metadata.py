# SPDX-License-Identifier: Apache-2.0
"""The records of ``__cluster_metadata``: a frame around a message.

::

    uvarint   frame version, 1
    uvarint   api key
    uvarint   version
    ...       the message, in that version

The key of such a record is null. The reason of each error is the text that dump-log prints after
``Error at N, skipping. ``.

Source: AbstractApiMessageSerde, MetadataRecordSerde, MetadataRecordType.
"""

import functools
import re
from collections.abc import Mapping
from typing import Any, Final

import attrs

from raftlog.errors import DecodeError, InvalidRecordError, UnsupportedVersionError
from raftlog.records.messages.primitives import Buffer, read_unsigned, write_unsigned
from raftlog.records.messages.schema import NEWEST, Message, MessageType, message_types
from raftlog.records.messages.schema_json import JsonReader

FRAME_VERSION: Final = 1
_RULE = "message-frame"
_MAX_INT16 = 0x7FFF
_USUAL_FRAME_SIZE = 3
_MAX_ONE_BYTE = 0x7F
_INNER_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


@attrs.frozen
class MetadataRecord:
    """One record of the metadata log.

    Attributes:
        type: the kind of message.
        version: the version that the record states. If it is above the highest known one, the message was read by that
            one.
        message: the fields by name.
    """

    type: MessageType
    version: int
    message: Message

    @property
    def type_name(self) -> str:
        """The name as Kafka's tools print it, such as ``TOPIC_RECORD``."""
        return _type_name(self.type.name)

    @property
    def api_key(self) -> int:
        """The number of the type."""
        return self.type.api_key or 0

    def to_json(self) -> str:
        """Render the record as ``dump-log --cluster-metadata-decoder`` prints it."""
        return _json_head(self.type, self.version) + self.type.to_json(self.message, version=self.version) + "}"

    def to_object(self) -> dict[str, Any]:
        """Return what ``to_json`` renders, as JSON values."""
        data = self.type.to_object(self.message, version=self.version)
        return {"type": self.type_name, "version": self.version, "data": data}


def read_metadata_record(value: Buffer | None, *, level: str = NEWEST) -> MetadataRecord:
    """Read the value of a metadata record, as the readers of a Kafka release do.

    A version above the highest known one is read by that one's layout; an element of a nested struct is then an error.

    Raises:
        InvalidRecordError: the frame or the message breaks the format, or bytes are left over.
        UnsupportedVersionError: the level does not know the type.
    """
    data = b"" if value is None else value
    position = _read_frame_version(data)
    api_key, position = _read_int16(data, position, "type")
    version, position = _read_int16(data, position, "version")
    message_type = _types_by_key(level).get(api_key)
    if message_type is None:
        problem = f"org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id {api_key}"
        raise UnsupportedVersionError(problem, _RULE)
    try:
        message, end = message_type.reader(version, level, nearest=True)(data, position)
    except DecodeError as error:
        problem = f"Failed to deserialize record with type {api_key}"
        raise InvalidRecordError(problem, error.rule, position=error.position) from error
    if end != len(data):
        problem = f"Found {len(data) - end} byte(s) of garbage after {api_key}"
        raise InvalidRecordError(problem, "message-field", position=end)
    return MetadataRecord(message_type, version, message)


@attrs.frozen
class MetadataJson:
    """Renders records of one type and version fast, straight from their bytes.

    Attributes:
        type_name: the name as Kafka's tools print it.
        version: the version that the record states.
        head: the text of ``to_json`` up to the message; after the message a brace follows.
    """

    type_name: str
    version: int
    head: str
    _read: JsonReader

    def message_json(self, value: bytes) -> str | None:
        """Render the message of a record, or return None if ``read_metadata_record`` must read the record."""
        found = self._read(value, _USUAL_FRAME_SIZE)
        return found[0] if found is not None and found[1] == len(value) else None


def metadata_json(value: bytes, level: str = NEWEST) -> MetadataJson | None:
    """Return a fast renderer for records with this one's frame, or None if there is none for it.

    Its result equals that of ``read_metadata_record`` and ``MetadataRecord.to_json``.
    """
    return _metadata_json(value[:_USUAL_FRAME_SIZE], level)


@functools.lru_cache(maxsize=512)
def _metadata_json(frame: bytes, level: str) -> MetadataJson | None:
    if len(frame) < _USUAL_FRAME_SIZE or frame[0] != FRAME_VERSION or max(frame) > _MAX_ONE_BYTE:
        return None
    _, api_key, version = frame
    kind = _types_by_key(level).get(api_key)
    if kind is None or version not in kind.schema.versions_at(level):
        return None
    return MetadataJson(_type_name(kind.name), version, _json_head(kind, version), kind.json_reader(version, level))


def _json_head(kind: MessageType, version: int) -> str:
    return f'{{"type":"{_type_name(kind.name)}","version":{version},"data":'


def write_metadata_record(record: MetadataRecord) -> bytes:
    """Write the value of a metadata record.

    Raises:
        UnsupportedVersionError: the version is not known, or lacks a field that is not at its default.
        InvalidRecordError: a field is unknown or takes another value.
    """
    out = bytearray()
    for number in (FRAME_VERSION, record.api_key, record.version):
        write_unsigned(out, number)
    return bytes(out) + record.type.write(record.message, version=record.version)


def metadata_record(name: str, message: Message, *, version: int | None = None) -> MetadataRecord:
    """Make a record by the name of its schema, such as ``TopicRecord``, in the given or else the highest version.

    Raises:
        LookupError: no metadata record is called that.
    """
    message_type = _types()[name]
    return MetadataRecord(message_type, message_type.versions.highest if version is None else version, message)


def _read_frame_version(data: Buffer) -> int:
    frame_version, position = _read_int16(data, 0, "frame version")
    if frame_version == FRAME_VERSION:
        return position
    if frame_version == 0:
        problem = (
            "Could not deserialize metadata record with frame version 0. Note that upgrades from the preview release "
            "of KRaft in 2.8 to newer versions are not supported."
        )
    else:
        problem = (
            f"Could not deserialize metadata record due to unknown frame version {frame_version}"
            f"(only frame version {FRAME_VERSION} is supported)"
        )
    raise InvalidRecordError(problem, _RULE, position=0)


def _read_int16(data: Buffer, position: int, what: str) -> tuple[int, int]:
    try:
        value, end = read_unsigned(data, position)
    except DecodeError as error:
        raise InvalidRecordError(f"Error while reading {what}", _RULE, position=position) from error
    if value > _MAX_INT16:
        raise InvalidRecordError(f"Value for {what} was too large.", _RULE, position=position)
    # Java casts a negative value to a short, which keeps the low 16 bits.
    return (value + 0x8000 & 0xFFFF) - 0x8000, end


def _types() -> Mapping[str, MessageType]:
    return message_types("metadata-records")


@functools.cache
def _types_by_key(level: str) -> dict[int | None, MessageType]:
    return {each.api_key: each for each in _types().values() if each.is_known(level)}


@functools.cache
def _type_name(name: str) -> str:
    return _INNER_CAPITAL.sub("_", name).upper()
