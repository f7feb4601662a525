# SPDX-License-Identifier: Apache-2.0
"""The entries of a coordinator's state as things with a path, such as ``/groups/app``, and members: JSON values.

Groups of all protocols have the same members. Records of the newer protocols that have no members of their own here are
shown whole, as ``group_part``.
"""

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from raftlog.errors import DecodeError
from raftlog.records.messages.java_text import displayed
from raftlog.records.messages.schema import message_type
from raftlog.tools.coordinators.coordinator_state import CoordinatorEntry, EntryKey
from raftlog.tools.payloads.transaction_text import TRANSACTION_STATES
from raftlog.tools.state.things import Thing
from raftlog.uuid_text import ZERO_UUID, uuid_to_text

_NEWER: Final = re.compile("(Consumer|Share|Streams)Group(.*)")
_UPPER: Final = re.compile("(?<=[a-z0-9])(?=[A-Z])")
_DELIVERY_STATES: Final = {0: "available", 1: "acquired", 2: "acknowledged", 4: "archived"}
"""Source: RecordState."""
_CURRENT: Final = "CurrentMemberAssignment"
_TARGET: Final = "TargetAssignmentMember"


def coordinator_things(entries: Mapping[EntryKey, CoordinatorEntry]) -> Iterator[Thing]:
    """Yield the entries of a state as things, by path."""
    yield from sorted((coordinator_thing(*each) for each in entries.items()), key=path_order)


def coordinator_thing(key: EntryKey, entry: CoordinatorEntry) -> Thing:
    """Return an entry as a thing."""
    name, *fields = key
    texts = [_field_text(each) for each in fields]
    match name:
        case "OffsetCommit":
            return Thing("committed_offset", ("groups", texts[0], "offsets", *texts[1:]), _commit(entry.value))
        case "PendingOffset":
            path = ("groups", texts[1], "pending_offsets", *texts[2:], texts[0])
            return Thing("pending_offset", path, _commit(entry.value))
        case "GroupMetadata":
            return Thing("group", ("groups", texts[0]), _classic_group(entry.value))
        case "ShareSnapshot":
            return Thing("share_partition", ("share_partitions", *texts), _share_partition(entry.value))
        case "TransactionLog":
            return Thing("transaction", ("transactions", texts[0]), _transaction(entry.value))
        case _:
            return _newer(str(name), texts, entry)


def _field_text(field: Any) -> str:
    if isinstance(field, UUID):
        return uuid_to_text(field)
    return displayed(field) if isinstance(field, str) else str(field)


def path_order(thing: Thing) -> tuple[tuple[bool, int, str, str], ...]:
    """Return a sort key of a thing's path, in which numbers of any length are in their order, before other names."""
    return tuple(map(_order_of_name, thing.path))


def _order_of_name(name: str) -> tuple[bool, int, str, str]:
    if not (name.isascii() and name.isdecimal()):
        return True, 0, name, name
    digits = name.lstrip("0")
    return False, len(digits), digits, name


def _commit(value: Mapping[str, Any]) -> dict[str, Any]:
    topic_id = value.get("topicId", ZERO_UUID)
    return {
        "offset": value["offset"],
        "leader_epoch": _known(value.get("leaderEpoch", -1)),
        "metadata": displayed(value["metadata"]),
        "commit_timestamp": value["commitTimestamp"],
        "expire_timestamp": _known(value.get("expireTimestamp", -1)),
        "topic_id": None if topic_id == ZERO_UUID else uuid_to_text(topic_id),
    }


def _classic_group(value: Mapping[str, Any]) -> dict[str, Any]:
    protocol_type = displayed(value["protocolType"])
    return {
        "type": "classic",
        "epoch": value["generation"],
        "protocol_type": protocol_type,
        "protocol": _text(value["protocol"]),
        "leader": _text(value["leader"]),
        "state_timestamp": _known(value.get("currentStateTimestamp", -1)),
        "members": [_classic_member(each, protocol_type) for each in value["members"]],
    }


def _classic_member(member: Mapping[str, Any], protocol_type: str) -> dict[str, Any]:
    subscription = _embedded("ConsumerProtocolSubscription", member["subscription"], protocol_type)
    assignment = _embedded("ConsumerProtocolAssignment", member["assignment"], protocol_type)
    return {
        "member_id": displayed(member["memberId"]),
        "instance_id": _text(member.get("groupInstanceId")),
        "client_id": displayed(member["clientId"]),
        "client_host": displayed(member["clientHost"]),
        "rebalance_timeout_ms": _known(member.get("rebalanceTimeout", -1)),
        "session_timeout_ms": member["sessionTimeout"],
        "subscribed": None if subscription is None else [displayed(each) for each in subscription["topics"]],
        "assigned": None if assignment is None else _partitions(assignment["assignedPartitions"]),
    }


def _embedded(name: str, data: bytes, protocol_type: str) -> Mapping[str, Any] | None:
    """Return a message of the classic consumer protocol; None if it is none, or of another protocol."""
    with contextlib.suppress(DecodeError):
        if protocol_type == "consumer" and len(data) > 1:
            version = int.from_bytes(data[:2], "big", signed=True)
            message: Mapping[str, Any] = message_type(name).reader(version, nearest=True)(data, 2)[0]
            return message
    return None


def _transaction(value: Mapping[str, Any]) -> dict[str, Any]:
    status = value["transactionStatus"]
    topics = [
        {"topic": each["topic"], "partitions": each["partitionIds"]} for each in value["transactionPartitions"] or []
    ]
    return {
        "state": TRANSACTION_STATES[status] if 0 <= status < len(TRANSACTION_STATES) else str(status),
        "producer_id": value["producerId"],
        "producer_epoch": value["producerEpoch"],
        "previous_producer_id": _known(value.get("previousProducerId", -1)),
        "next_producer_id": _known(value.get("nextProducerId", -1)),
        "next_producer_epoch": _known(value.get("nextProducerEpoch", -1)),
        "timeout_ms": value["transactionTimeoutMs"],
        "partitions": _partitions(topics),
        "start_timestamp": _known(value["transactionStartTimestampMs"]),
        "last_update_timestamp": value["transactionLastUpdateTimestampMs"],
        "transaction_version": value.get("clientTransactionVersion", 0),
    }


def _share_partition(value: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "start_offset": _known(value["startOffset"]),
        "state_epoch": _known(value["stateEpoch"]),
        "leader_epoch": _known(value["leaderEpoch"]),
        "snapshot_epoch": value["snapshotEpoch"],
        "delivery_complete_count": _known(value["deliveryCompleteCount"]),
        "create_timestamp": _known(value["createTimestamp"]),
        "write_timestamp": _known(value["writeTimestamp"]),
        "batches": [_state_batch(each) for each in value["stateBatches"]],
    }


def _state_batch(batch: Mapping[str, Any]) -> dict[str, Any]:
    state = batch["deliveryState"]
    return {
        "first_offset": batch["firstOffset"],
        "last_offset": batch["lastOffset"],
        "delivery_state": _DELIVERY_STATES.get(state, str(state)),
        "delivery_count": batch["deliveryCount"],
    }


def _newer(name: str, texts: Sequence[str], entry: CoordinatorEntry) -> Thing:
    """Return the thing of a record of the newer group protocols."""
    match = _NEWER.fullmatch(name)
    protocol, record = (match[1].lower(), match[2]) if match else ("", name)
    group, *more = texts
    value = entry.value
    if record == "Metadata":
        return Thing("group", ("groups", group), _newer_group(protocol, value))
    if protocol != "streams" and record in _MAKERS:
        section, kind, make = _MAKERS[record]
        return Thing(kind, ("groups", group, section, *more), make(value))
    section = "_".join(_UPPER.split(record)).lower()
    shown = message_type(f"{name}Value").to_object(dict(value), version=entry.version)
    return Thing("group_part", ("groups", group, section, *more), {"record": name, "value": shown})


def _newer_group(protocol: str, value: Mapping[str, Any]) -> dict[str, Any]:
    names = ("protocol_type", "protocol", "leader", "state_timestamp")
    return {"type": protocol, "epoch": value["epoch"]} | dict.fromkeys(names) | {"members": None}


def _member(value: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "instance_id": _text(value.get("instanceId")),
        "rack_id": _text(value["rackId"]),
        "client_id": displayed(value["clientId"]),
        "client_host": displayed(value["clientHost"]),
        "subscribed": [displayed(each) for each in value["subscribedTopicNames"]],
        "subscribed_pattern": _text(value.get("subscribedTopicRegex")) or None,
    }


def _assignment(value: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "member_epoch": value.get("memberEpoch"),
        "previous_member_epoch": value.get("previousMemberEpoch"),
        "state": value.get("state"),
        "assigned": _partitions(value.get("assignedPartitions", value.get("topicPartitions", ()))),
        "pending_revocation": _partitions(value.get("partitionsPendingRevocation", ())),
    }


_MAKERS: Final[Mapping[str, tuple[str, str, Callable[[Mapping[str, Any]], dict[str, Any]]]]] = {
    "MemberMetadata": ("members", "group_member", _member),
    _TARGET: ("target_assignments", "assignment", _assignment),
    _CURRENT: ("current_assignments", "assignment", _assignment),
}
"""By record: the section of the path, the kind, and what makes the members."""


def _partitions(topics: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the partitions of some topics, as topic and number."""
    found = []
    for each in topics:
        topic = each["topicId"] if "topicId" in each else each["topic"]
        name = uuid_to_text(topic) if isinstance(topic, UUID) else displayed(topic)
        found += [f"{name}-{number}" for number in each["partitions"]]
    return found


def _known(number: int) -> int | None:
    return None if number == -1 else number


def _text(value: Any) -> str | None:
    return None if value is None else displayed(value)
