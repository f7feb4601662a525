# SPDX-License-Identifier: Apache-2.0
"""The state that metadata records describe together, key by key: what a snapshot says, and what a log makes of it.

Source: MetadataDelta, ClusterDelta, TopicsDelta, PartitionRegistration#merge, ConfigurationsDelta, ClientQuotasDelta.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

import attrs

from raftlog.records.messages.metadata import MetadataRecord

Message = Mapping[str, Any]
Key = tuple[str, Hashable]
"""The type of the records that state a thing, as Kafka's tools print it, and its identity among these."""

_BROKER: Final = "REGISTER_BROKER_RECORD"
_CONFIG: Final = "CONFIG_RECORD"
_PARTITION: Final = "PARTITION_RECORD"
_TOPIC: Final = "TOPIC_RECORD"
_UNORDERED: Final = frozenset({"endPoints", "features", "logDirs", "cordonedLogDirs", "renewers"})
_MAY_BE_NULL: Final = frozenset({"eligibleLeaderReplicas", "lastKnownElr", "cordonedLogDirs"})
_NO_LEADER_CHANGE: Final = -2
_NO_STATE_CHANGE: Final = -1
_REPLACED_FIELDS: Final = (
    "isr",
    "replicas",
    "removingReplicas",
    "addingReplicas",
    "directories",
    "eligibleLeaderReplicas",
    "lastKnownElr",
)
"""Fields of a partition that a change leaves as they are if they are null in it."""


class StateDifference(NamedTuple):
    """A difference between two states.

    Attributes:
        key: of what differs.
        field: the first field that does; None if one of both lacks the key.
    """

    key: Key
    field: str | None


class UnknownStateError(Exception):
    """A record has an effect on the state that this module does not know."""


@attrs.define
class MetadataImage:
    """The state after some records.

    Attributes:
        stated: by key, the fields of what is there.
    """

    stated: dict[Key, dict[str, Any]] = attrs.field(factory=dict)
    _partitions: dict[UUID, set[int]] = attrs.field(factory=dict)

    def replay(self, record: MetadataRecord) -> None:
        """Apply the next record.

        Raises:
            UnknownStateError: it aborts others, or its type is not known.
        """
        name, message = record.type_name, record.message
        if name in _STATING:
            key, is_gone = _STATING[name]
            if is_gone(message):
                self.stated.pop((name, key(message)), None)
            else:
                self.stated[name, key(message)] = _normal(name, message)
                if name == _PARTITION:
                    self._partitions.setdefault(message["topicId"], set()).add(message["partitionId"])
        elif name in _REMOVING:
            of, key = _REMOVING[name]
            self.stated.pop((of, key(message)), None)
        elif name in _CHANGING:
            _CHANGING[name](self, message)
        elif name not in _WITHOUT_EFFECT:
            raise UnknownStateError(name)

    def topics(self) -> Iterator[tuple[UUID, str]]:
        """Yield the ids of topics with their names."""
        for (kind, identity), message in self.stated.items():
            if kind == _TOPIC and isinstance(identity, UUID):
                yield identity, message["name"]

    def differences(self, other: "MetadataImage") -> Iterator[StateDifference]:
        """Yield what differs from another state."""
        for key, mine in self.stated.items():
            theirs = other.stated.get(key)
            field = None if theirs is None else _first_difference(mine, theirs)
            if theirs is None or field is not None:
                yield StateDifference(key, field)
        for key in other.stated:
            if key not in self.stated:
                yield StateDifference(key, None)

    def remove_topic(self, message: Message) -> None:
        """Remove a topic with its partitions and configs."""
        topic_id = message["topicId"]
        topic = self.stated.pop((_TOPIC, topic_id), None)
        for number in self._partitions.pop(topic_id, ()):
            self.stated.pop((_PARTITION, (topic_id, number)), None)
        if topic is not None:
            gone = [key for key in self.stated if key[0] == _CONFIG and _is_of_topic(key[1], topic["name"])]
            for key in gone:
                del self.stated[key]

    def change_partition(self, message: Message) -> None:
        """Change a partition. A change of one that is not there changes nothing."""
        known = self.stated.get((_PARTITION, _partition(message)))
        if known is None:
            return
        known.update({name: message[name] for name in _REPLACED_FIELDS if message[name] is not None})
        if message["leader"] != _NO_LEADER_CHANGE:
            known["leader"] = message["leader"]
            known["leaderEpoch"] += 1
        if message["leaderRecoveryState"] != _NO_STATE_CHANGE:
            known["leaderRecoveryState"] = message["leaderRecoveryState"]
        known["partitionEpoch"] += 1

    def change_broker(self, message: Message) -> None:
        """Change the registration of a broker."""
        known = self.stated.get((_BROKER, message["brokerId"]))
        if known is None:
            return
        if message["fenced"]:
            known["fenced"] = message["fenced"] > 0
        if message["inControlledShutdown"]:
            known["inControlledShutdown"] = True
        if message["logDirs"]:
            known["logDirs"] = _sorted(message["logDirs"])
        if message["cordonedLogDirs"] is not None:
            known["cordonedLogDirs"] = _sorted(message["cordonedLogDirs"])

    def fence(self, message: Message, *, is_fenced: bool) -> None:
        """Fence or unfence a broker, as old releases say it."""
        known = self.stated.get((_BROKER, message["id"]))
        if known is not None:
            known["fenced"] = is_fenced

    def clear_elr(self, message: Message) -> None:
        """Clear the eligible leader replicas of a topic, or of all."""
        for topic_id, name in list(self.topics()):
            if message["topicName"] in {"", name}:
                for number in self._partitions.get(topic_id, ()):
                    known = self.stated[_PARTITION, (topic_id, number)]
                    if known["eligibleLeaderReplicas"] or known["lastKnownElr"]:
                        known["partitionEpoch"] += 1
                        known["eligibleLeaderReplicas"] = known["lastKnownElr"] = []


def _first_difference(mine: Message, theirs: Message) -> str | None:
    for name, value in mine.items():
        if value != theirs[name] and not (name == "directories" and not (value and theirs[name])):
            return name  # Partitions without directories are of an earlier metadata.version.
    return None


def _normal(name: str, message: Message) -> dict[str, Any]:
    """Return the fields of a record that belong to the state."""
    if name == "PRODUCER_IDS_RECORD":
        return {"nextProducerId": message["nextProducerId"]}
    found = {key: value for key, value in message.items() if isinstance(key, str)}
    for key in found.keys() & _MAY_BE_NULL:
        found[key] = found[key] or []
    for key in found.keys() & _UNORDERED:
        found[key] = _sorted(found[key])
    return found


def _sorted(values: Any) -> list[Any]:
    return sorted(values, key=str)


def _partition(message: Message) -> tuple[UUID, int]:
    return message["topicId"], message["partitionId"]


def _is_of_topic(config: Hashable, name: str) -> bool:
    return isinstance(config, tuple) and config[:2] == (_TOPIC_RESOURCE, name)


_TOPIC_RESOURCE: Final = 2


def _fields(*names: str) -> Callable[[Message], Hashable]:
    if len(names) == 1:
        return lambda message: message[names[0]]
    return lambda message: tuple(message[name] for name in names)


def _quota(message: Message) -> Hashable:
    return frozenset((each["entityType"], each["entityName"]) for each in message["entity"]), message["key"]


def _never(_: Message) -> bool:
    return False


_STATING: Final[Mapping[str, tuple[Callable[[Message], Hashable], Callable[[Message], bool]]]] = {
    "ACCESS_CONTROL_ENTRY_RECORD": (_fields("id"), _never),
    "CLIENT_QUOTA_RECORD": (_quota, lambda message: bool(message["remove"])),
    _CONFIG: (_fields("resourceType", "resourceName", "name"), lambda message: message["value"] is None),
    "DELEGATION_TOKEN_RECORD": (_fields("tokenId"), _never),
    "FEATURE_LEVEL_RECORD": (_fields("name"), lambda message: not message["featureLevel"]),
    _PARTITION: (_partition, _never),
    "PRODUCER_IDS_RECORD": (_fields(), _never),
    _BROKER: (_fields("brokerId"), _never),
    "REGISTER_CONTROLLER_RECORD": (_fields("controllerId"), _never),
    _TOPIC: (_fields("topicId"), _never),
    "USER_SCRAM_CREDENTIAL_RECORD": (_fields("name", "mechanism"), _never),
}
"""Types that state a thing completely, with its identity, and whether they say that it is gone."""
_REMOVING: Final[Mapping[str, tuple[str, Callable[[Message], Hashable]]]] = {
    "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": ("ACCESS_CONTROL_ENTRY_RECORD", _fields("id")),
    "REMOVE_DELEGATION_TOKEN_RECORD": ("DELEGATION_TOKEN_RECORD", _fields("tokenId")),
    "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": ("USER_SCRAM_CREDENTIAL_RECORD", _fields("name", "mechanism")),
    "UNREGISTER_BROKER_RECORD": (_BROKER, _fields("brokerId")),
    "UNREGISTER_CONTROLLER_RECORD": ("REGISTER_CONTROLLER_RECORD", _fields("controllerId")),
}
_CHANGING: Final[Mapping[str, Callable[[MetadataImage, Message], None]]] = {
    "BROKER_REGISTRATION_CHANGE_RECORD": lambda image, message: image.change_broker(message),
    "CLEAR_ELR_RECORD": lambda image, message: image.clear_elr(message),
    "FENCE_BROKER_RECORD": lambda image, message: image.fence(message, is_fenced=True),
    "PARTITION_CHANGE_RECORD": lambda image, message: image.change_partition(message),
    "REMOVE_TOPIC_RECORD": lambda image, message: image.remove_topic(message),
    "UNFENCE_BROKER_RECORD": lambda image, message: image.fence(message, is_fenced=False),
}
_WITHOUT_EFFECT: Final = frozenset(
    {"BEGIN_TRANSACTION_RECORD", "END_TRANSACTION_RECORD", "NO_OP_RECORD", "ZK_MIGRATION_STATE_RECORD"}
)
