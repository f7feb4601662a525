# SPDX-License-Identifier: Apache-2.0
"""Decodes records of MirrorMaker 2's topics, and of those in which its Connect workers keep their state."""

from typing import Any, Final

import attrs

from raftlog.errors import DecodeError, InvalidRecordError
from raftlog.records.messages.mirrors.connect_records import ConfigType, read_connect_config, read_source_offset
from raftlog.records.messages.mirrors.mirror_records import MirrorRecordType, is_mirror_key, read_mirror_messages
from raftlog.tools.payloads.config_redaction import redacted_config
from raftlog.tools.payloads.config_secrets import may_be_config_secret
from raftlog.tools.payloads.mirror_topics import MirrorTopic
from raftlog.tools.payloads.payloads import AnyRecord, Payload, PlainDecoder
from raftlog.tools.terminal.json_lines import encode, one_line

CONNECT_OFFSET: Final = "CONNECT_OFFSET"
CONNECT_CONFIG: Final = "CONNECT_CONFIG"
TYPE_NAMES: Final = frozenset({*(each.name for each in MirrorRecordType), CONNECT_OFFSET, CONNECT_CONFIG})
"""The names of the types of these records."""

_VERSION: Final = 0
_TYPES: Final[dict[MirrorTopic, MirrorRecordType]] = {
    "offset-syncs": MirrorRecordType.OFFSET_SYNC,
    "checkpoints": MirrorRecordType.CHECKPOINT,
    "heartbeats": MirrorRecordType.HEARTBEAT,
}
_SYNC_SIZE: Final = 16
"""The size of an offset sync's value; that of a heartbeat is 10, and that of a checkpoint 20 or more."""


@attrs.frozen
class MirrorDecoder:
    """Decodes records of a topic.

    Attributes:
        topic: what its records are; None to tell each by its bytes.
        redact: whether to hide secrets.
        is_named: whether the user has said so; else the topic's name has, and a topic of heartbeats may be that of an
            application: a record whose key is none of a heartbeat is then shown as it is, and no problem.
    """

    topic: MirrorTopic | None
    redact: bool = False
    is_named: bool = True

    def decode(self, record: AnyRecord) -> Payload:
        """Decode a record's key and value."""
        topic = self.topic
        try:
            topic = topic or topic_by_bytes(record.key, record.value)
            if topic == "connect-configs":
                return self._config(record)
            if topic == "connect-offsets":
                return _source_offset(record)
            return self._mirror_record(record, _TYPES[topic])
        except DecodeError as error:
            is_secret = may_be_config_secret(record.value, is_config=topic == "connect-configs")
            return Payload(
                key_text=f"Error at offset {record.offset}, skipping. {error.reason}",
                has_secret=is_secret,
                is_redacted=is_secret and self.redact,
                problem=error,
            )

    def _mirror_record(self, record: AnyRecord, kind: MirrorRecordType) -> Payload:
        if kind is MirrorRecordType.HEARTBEAT and not self.is_named and not _is_heartbeat_key(record.key):
            return PlainDecoder(self.redact).decode(record)
        key, value = read_mirror_messages(kind, record.key, record.value)
        version = _VERSION if kind.has_version and value is not None else None
        key_json = kind.key_type.to_json(key, version=_VERSION)
        value_json = None if value is None else kind.value_type.to_json(value, version=_VERSION)
        return _payload(kind.name, version, key_json, value_json)

    def _config(self, record: AnyRecord) -> Payload:
        config = read_connect_config(record.key, record.value)
        shown, has_secret = redacted_config(config)
        value = shown if self.redact else config.value
        payload = _payload(CONNECT_CONFIG, None, _json(config.key), None if value is None else _json(value))
        return payload._replace(has_secret=has_secret, is_redacted=has_secret and self.redact)


def _source_offset(record: AnyRecord) -> Payload:
    read = read_source_offset(record.key, record.value)
    value_json = None if read.offset is None else _json(read.offset)
    return _payload(CONNECT_OFFSET, None, _json([read.connector, read.partition]), value_json)


def _payload(type_name: str, version: int | None, key_json: str, value_json: str | None) -> Payload:
    version_text = "" if version is None else f'"version":"{version}",'
    return Payload(
        key_text=f'{{"type":"{type_name}","data":{key_json}}}',
        value_text="<DELETE>" if value_json is None else f'{{{version_text}"data":{value_json}}}',
        type_name=type_name,
        version=version,
        key_json=key_json,
        value_json=value_json,
    )


def _json(value: Any) -> str:
    """Return compact JSON in which every character can be written."""
    return one_line(encode({"": value}))[len('{"":') : -len("}\n")]


def _is_heartbeat_key(key: bytes | None) -> bool:
    return key is not None and is_mirror_key(MirrorRecordType.HEARTBEAT, key)


def topic_by_bytes(key: bytes | None, value: bytes | None) -> MirrorTopic:
    """Return what a record is by its bytes. The formats exclude each other, but for one case.

    A key that is an offset sync's may be a heartbeat's too, if the alias of the target has two letters: then the size
    of the value decides.

    Raises:
        InvalidRecordError: the key is that of none.
    """
    if key is not None:
        if key[:1] == b"[":
            return "connect-offsets"
        if _is_config_key(key):
            return "connect-configs"
        kinds: list[MirrorTopic] = [topic for topic, kind in _TYPES.items() if is_mirror_key(kind, key)]
        if kinds:
            return kinds[0] if value is not None and len(value) == _SYNC_SIZE else kinds[-1]
    raise InvalidRecordError("no key of a record of MirrorMaker", "message-frame")


def _is_config_key(key: bytes) -> bool:
    try:
        return ConfigType.of_key(key.decode()) is not ConfigType.UNKNOWN
    except UnicodeDecodeError:
        return False
