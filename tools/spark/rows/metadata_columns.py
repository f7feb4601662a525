# SPDX-License-Identifier: Apache-2.0
"""The typed columns of metadata records: the fields that most queries compare, join or add up.

They come from the record's JSON, so that they agree with the column ``json``, in which secrets are hidden already.
Fields of access control, quotas, credentials and delegation tokens are in ``json`` only.
"""

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

_INTS: Final = pa.list_(pa.int32())
_ENDPOINT: Final = pa.struct(
    [("name", pa.string()), ("host", pa.string()), ("port", pa.int32()), ("securityProtocol", pa.int32())]
)
_FEATURE: Final = pa.struct(
    [("name", pa.string()), ("minSupportedVersion", pa.int32()), ("maxSupportedVersion", pa.int32())]
)
METADATA_COLUMNS: Final = (
    ("topicName", pa.string()),
    ("topicId", pa.string()),
    ("partitionId", pa.int32()),
    ("leader", pa.int32()),
    ("partitionLeaderEpoch", pa.int32()),
    ("partitionEpoch", pa.int32()),
    ("replicas", _INTS),
    ("isr", _INTS),
    ("addingReplicas", _INTS),
    ("removingReplicas", _INTS),
    ("eligibleLeaderReplicas", _INTS),
    ("lastKnownElr", _INTS),
    ("directories", pa.list_(pa.string())),
    ("resourceType", pa.string()),
    ("resourceName", pa.string()),
    ("configName", pa.string()),
    ("configValue", pa.string()),
    ("featureName", pa.string()),
    ("featureLevel", pa.int32()),
    ("brokerId", pa.int32()),
    ("brokerEpoch", pa.int64()),
    ("controllerId", pa.int32()),
    ("incarnationId", pa.string()),
    ("rack", pa.string()),
    ("fenced", pa.bool_()),
    ("inControlledShutdown", pa.bool_()),
    ("endPoints", pa.list_(_ENDPOINT)),
    ("features", pa.list_(_FEATURE)),
    ("nextProducerId", pa.int64()),
)
"""Names and types of the columns."""

_RESOURCE_TYPES: Final = {2: "TOPIC", 4: "BROKER", 8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP"}
"""Source: ConfigResource.Type."""
_NO_LEADER_CHANGE: Final = -2
"""Source: LeaderAndIsr, NO_LEADER_CHANGE."""
_FENCING: Final[Mapping[int | None, bool]] = {1: True, -1: False}
"""The flag after a change of a registration; other numbers leave it. Source: BrokerRegistrationFencingChange."""
_CONTROLLED_SHUTDOWN: Final[Mapping[int | None, bool]] = {1: True}
"""Likewise; it ends with the next registration. Source: BrokerRegistrationInControlledShutdownChange."""
_OF_BROKER: Final = {
    name: name
    for name in (
        *("brokerId", "brokerEpoch", "incarnationId", "rack", "fenced", "inControlledShutdown"),
        *("endPoints", "features"),
    )
}
_OF_PARTITION: Final = {
    name: name
    for name in (
        *("topicId", "partitionId", "leader", "partitionEpoch", "replicas", "isr", "addingReplicas"),
        *("removingReplicas", "eligibleLeaderReplicas", "lastKnownElr", "directories"),
    )
} | {"partitionLeaderEpoch": "leaderEpoch"}
_FIELDS: Final[Mapping[str, Mapping[str, str]]] = {
    "REGISTER_BROKER_RECORD": _OF_BROKER,
    "UNREGISTER_BROKER_RECORD": _OF_BROKER,
    "BROKER_REGISTRATION_CHANGE_RECORD": _OF_BROKER,
    "FENCE_BROKER_RECORD": {"brokerId": "id", "brokerEpoch": "epoch"},
    "UNFENCE_BROKER_RECORD": {"brokerId": "id", "brokerEpoch": "epoch"},
    "TOPIC_RECORD": {"topicName": "name", "topicId": "topicId"},
    "CLEAR_ELR_RECORD": {"topicName": "topicName"},
    "REMOVE_TOPIC_RECORD": {"topicId": "topicId"},
    "PARTITION_RECORD": _OF_PARTITION,
    "PARTITION_CHANGE_RECORD": _OF_PARTITION,
    "CONFIG_RECORD": {
        "resourceType": "resourceType",
        "resourceName": "resourceName",
        "configName": "name",
        "configValue": "value",
    },
    "FEATURE_LEVEL_RECORD": {"featureName": "name", "featureLevel": "featureLevel"},
    "PRODUCER_IDS_RECORD": {
        "brokerId": "brokerId",
        "brokerEpoch": "brokerEpoch",
        "nextProducerId": "nextProducerId",
    },
    "REGISTER_CONTROLLER_RECORD": {name: name for name in ("controllerId", "incarnationId", "endPoints", "features")},
    "UNREGISTER_CONTROLLER_RECORD": {"controllerId": "controllerId"},
}
"""The columns of each type of record, with the field that each one shows."""


def metadata_row(type_name: str | None, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the typed columns that a record has, by their lower-case names.

    Args:
        type_name: of the record, as Kafka calls it.
        fields: of the record, read from its JSON.
    """
    row = {column.lower(): fields.get(name) for column, name in _FIELDS.get(type_name or "", {}).items()}
    match type_name:
        case "FENCE_BROKER_RECORD" | "UNFENCE_BROKER_RECORD":
            row["fenced"] = type_name == "FENCE_BROKER_RECORD"
        case "BROKER_REGISTRATION_CHANGE_RECORD":
            row["fenced"] = _FENCING.get(row["fenced"])
            row["incontrolledshutdown"] = _CONTROLLED_SHUTDOWN.get(row["incontrolledshutdown"])
        case "PARTITION_CHANGE_RECORD" if row["leader"] == _NO_LEADER_CHANGE:
            row["leader"] = None
        case "CONFIG_RECORD":
            number = fields["resourceType"]
            row["resourcetype"] = _RESOURCE_TYPES.get(number, f"UNKNOWN({number})")
            row["topicname"] = fields["resourceName"] if row["resourcetype"] == "TOPIC" else None
    return row
