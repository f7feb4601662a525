# SPDX-License-Identifier: Apache-2.0
"""What a record is about: the topic, partition, config or node that it names, without any value of it."""

from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

from raftlog.errors import RaftLogError
from raftlog.records.batches.record import Record
from raftlog.records.messages.metadata import MetadataRecord, read_metadata_record
from raftlog.uuid_text import uuid_to_text

TopicNames = Mapping[UUID, str]
"""Names of topics by id, as far as they are known."""

_FRAME_OF_TOPIC: Final = b"\x01\x02"
_RESOURCES: Final = {2: "topic", 4: "broker", 16: "client metrics", 32: "group"}
_DATA: Final = "data record"


def topic_of(value: bytes | memoryview | None) -> tuple[UUID, str] | None:
    """Return the id and the name of the topic that a metadata record creates; None for any other record."""
    if value is None or bytes(value[:2]) != _FRAME_OF_TOPIC:
        return None
    record = _read(value)
    return None if record is None else (record.message["topicId"], record.message["name"])


def kind_and_subject(record: Record, *, is_metadata: bool) -> tuple[str, UUID | None, str]:
    """Return the kind of a record, and its subject: the id of a topic, if it has no name of it, and the rest.

    Args:
        record: of a raft log, without control records.
        is_metadata: whether the log is ``__cluster_metadata``.
    """
    read = _read(record.value) if is_metadata else None
    if read is None:
        return _DATA, None, ""
    return read.type_name, *subject_of(read.type_name, read.message)


def subject_of(kind: str, message: Mapping[str, Any]) -> tuple[UUID | None, str]:
    """Return the subject of a metadata record: the id of a topic, if it has no name of it, and the rest.

    Args:
        kind: its type, as Kafka's tools print it.
        message: its fields.
    """
    return _SUBJECTS.get(kind, _nothing)(message)


def subject_text(topic: UUID | None, rest: str, names: TopicNames) -> str:
    """Return a subject as text, with the name of its topic instead of the id if that is known."""
    return rest if topic is None else f"{names.get(topic) or uuid_to_text(topic)}{rest}"


def _read(value: bytes | memoryview | None) -> MetadataRecord | None:
    if value is None:
        return None
    try:
        return read_metadata_record(bytes(value))
    except RaftLogError:
        return None


_Subject = Callable[[Mapping[str, Any]], tuple[UUID | None, str]]


def _nothing(_: Mapping[str, Any]) -> tuple[None, str]:
    return None, ""


def _field(name: str, before: str = "") -> _Subject:
    return lambda message: (None, f"{before}{message[name]}")


def _topic(message: Mapping[str, Any]) -> tuple[UUID, str]:
    return message["topicId"], ""


def _partition(message: Mapping[str, Any]) -> tuple[UUID, str]:
    return message["topicId"], f"-{message['partitionId']}"


def _config(message: Mapping[str, Any]) -> tuple[None, str]:
    kind = _RESOURCES.get(message["resourceType"], f"resource of type {message['resourceType']}")
    owner = f"{kind} {message['resourceName']}" if message["resourceName"] else f"{kind}s by default"
    return None, f"{message['name']} of {owner}"


def _quota(message: Mapping[str, Any]) -> tuple[None, str]:
    owners = (f"{each['entityType']} {each['entityName'] or '(default)'}" for each in message["entity"])
    return None, f"{message['key']} of {', '.join(owners)}"


def _access(message: Mapping[str, Any]) -> tuple[None, str]:
    return None, f"{message['principal']} on {message['resourceName']}"


_SUBJECTS: Final[Mapping[str, _Subject]] = {
    "ACCESS_CONTROL_ENTRY_RECORD": _access,
    "BROKER_REGISTRATION_CHANGE_RECORD": _field("brokerId", "broker "),
    "CLEAR_ELR_RECORD": _field("topicName"),
    "CLIENT_QUOTA_RECORD": _quota,
    "CONFIG_RECORD": _config,
    "DELEGATION_TOKEN_RECORD": _field("owner", "owner "),
    "FEATURE_LEVEL_RECORD": lambda message: (None, f"{message['name']} {message['featureLevel']}"),
    "FENCE_BROKER_RECORD": _field("id", "broker "),
    "PARTITION_CHANGE_RECORD": _partition,
    "PARTITION_RECORD": _partition,
    "PRODUCER_IDS_RECORD": _field("brokerId", "broker "),
    "REGISTER_BROKER_RECORD": _field("brokerId", "broker "),
    "REGISTER_CONTROLLER_RECORD": _field("controllerId", "controller "),
    "REMOVE_TOPIC_RECORD": _topic,
    "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": _field("name", "user "),
    "TOPIC_RECORD": _field("name"),
    "UNFENCE_BROKER_RECORD": _field("id", "broker "),
    "UNREGISTER_BROKER_RECORD": _field("brokerId", "broker "),
    "USER_SCRAM_CREDENTIAL_RECORD": _field("name", "user "),
}
"""By type. A record of another type is only counted. Values of configs are left out: some are secrets."""
