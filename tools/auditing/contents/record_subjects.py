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
    topic, subject = _SUBJECTS.get(read.type.name, _nothing)(read.message)
    return read.type_name, topic, subject


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
    "AccessControlEntryRecord": _access,
    "BrokerRegistrationChangeRecord": _field("brokerId", "broker "),
    "ClearElrRecord": _field("topicName"),
    "ClientQuotaRecord": _quota,
    "ConfigRecord": _config,
    "DelegationTokenRecord": _field("owner", "owner "),
    "FeatureLevelRecord": lambda message: (None, f"{message['name']} {message['featureLevel']}"),
    "FenceBrokerRecord": _field("id", "broker "),
    "PartitionChangeRecord": _partition,
    "PartitionRecord": _partition,
    "ProducerIdsRecord": _field("brokerId", "broker "),
    "RegisterBrokerRecord": _field("brokerId", "broker "),
    "RegisterControllerRecord": _field("controllerId", "controller "),
    "RemoveTopicRecord": _topic,
    "RemoveUserScramCredentialRecord": _field("name", "user "),
    "TopicRecord": _field("name"),
    "UnfenceBrokerRecord": _field("id", "broker "),
    "UnregisterBrokerRecord": _field("brokerId", "broker "),
    "UserScramCredentialRecord": _field("name", "user "),
}
"""By type. A record of another type is only counted. Values of configs are left out: some are secrets."""
