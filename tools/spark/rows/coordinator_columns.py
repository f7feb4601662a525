# SPDX-License-Identifier: Apache-2.0
"""The typed columns of records of ``__consumer_offsets`` and ``__transaction_state``.

They come from the JSON of key and value, so that they agree with the columns ``keyJson`` and ``json``.
"""

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from raftlog.tools.payloads.transaction_text import TRANSACTION_STATES
from raftlog.tools.spark.rows.arrays import timestamp_us

_TIMESTAMP: Final = pa.timestamp("us", "UTC")
_ASSIGNED: Final = pa.struct([("topic", pa.string()), ("partitions", pa.list_(pa.int32()))])
_MEMBER: Final = pa.struct(
    [
        ("memberId", pa.string()),
        ("groupInstanceId", pa.string()),
        ("clientId", pa.string()),
        ("clientHost", pa.string()),
        ("rebalanceTimeout", pa.int32()),
        ("sessionTimeout", pa.int32()),
        ("assignedPartitions", pa.list_(_ASSIGNED)),
    ]
)
CONSUMER_OFFSETS_COLUMNS: Final = (
    ("groupId", pa.string()),
    ("committedTopic", pa.string()),
    ("committedPartition", pa.int32()),
    ("committedOffset", pa.int64()),
    ("committedLeaderEpoch", pa.int32()),
    ("committedMetadata", pa.string()),
    ("committedTopicId", pa.string()),
    ("commitTimestamp", _TIMESTAMP),
    ("expireTimestamp", _TIMESTAMP),
    ("protocolType", pa.string()),
    ("protocol", pa.string()),
    ("generation", pa.int32()),
    ("groupLeader", pa.string()),
    ("currentStateTimestamp", _TIMESTAMP),
    ("members", pa.list_(_MEMBER)),
    ("memberId", pa.string()),
    ("epoch", pa.int32()),
)
"""Names and types of the columns of the groups' coordinator."""
TRANSACTION_STATE_COLUMNS: Final = (
    ("transactionalId", pa.string()),
    ("producerId", pa.int64()),
    ("producerEpoch", pa.int32()),
    ("previousProducerId", pa.int64()),
    ("nextProducerId", pa.int64()),
    ("nextProducerEpoch", pa.int32()),
    ("state", pa.string()),
    ("transactionTimeoutMs", pa.int32()),
    ("transactionPartitions", pa.list_(pa.struct([("topic", pa.string()), ("partitionIds", pa.list_(pa.int32()))]))),
    ("transactionStartTimestamp", _TIMESTAMP),
    ("transactionLastUpdateTimestamp", _TIMESTAMP),
    ("clientTransactionVersion", pa.int32()),
)
"""Names and types of the columns of the transactions' coordinator."""

_NO_TIME: Final = -1
_COMMITS: Final = frozenset({"LEGACY_OFFSET_COMMIT", "OFFSET_COMMIT"})
_EPOCHS: Final = ("epoch", "assignmentEpoch", "memberEpoch")
"""The fields of the newer kinds of groups that say to which epoch a record belongs; no record has two."""

Fields = Mapping[str, Any]


def consumer_offsets_row(type_name: str, key: Fields, value: Fields) -> dict[str, Any]:
    """Return the typed columns that a record of ``__consumer_offsets`` has, by their lower-case names.

    Args:
        type_name: the type of its key.
        key: the fields of its key, read from their JSON.
        value: likewise; empty for a tombstone.
    """
    row: dict[str, Any] = {"groupid": key.get("group", key.get("groupId")), "memberid": key.get("memberId")}
    if type_name in _COMMITS:
        return row | {
            "committedtopic": key["topic"],
            "committedpartition": key["partition"],
            "committedoffset": value.get("offset"),
            "committedleaderepoch": value.get("leaderEpoch"),
            "committedmetadata": value.get("metadata"),
            "committedtopicid": value.get("topicId"),
            "committimestamp": _time(value.get("commitTimestamp")),
            "expiretimestamp": _time(value.get("expireTimestamp")),
        }
    if type_name == "GROUP_METADATA":
        members = value.get("members")
        return row | {
            "protocoltype": value.get("protocolType"),
            "protocol": value.get("protocol"),
            "generation": value.get("generation"),
            "groupleader": value.get("leader"),
            "currentstatetimestamp": _time(value.get("currentStateTimestamp")),
            "members": None if members is None else [_member(each) for each in members],
        }
    return row | {"epoch": next((value[name] for name in _EPOCHS if name in value), None)}


def transaction_state_row(_type_name: str, key: Fields, value: Fields) -> dict[str, Any]:
    """Return the typed columns of a record of ``__transaction_state``; arguments as above."""
    status = value.get("transactionStatus")
    same = ("producerId", "producerEpoch", "previousProducerId", "nextProducerId", "nextProducerEpoch")
    row = {name.lower(): value.get(name) for name in (*same, "transactionTimeoutMs", "clientTransactionVersion")}
    return row | {
        "transactionalid": key["transactionalId"],
        "state": None if status is None else TRANSACTION_STATES[status],
        "transactionpartitions": value.get("transactionPartitions"),
        "transactionstarttimestamp": _time(value.get("transactionStartTimestampMs")),
        "transactionlastupdatetimestamp": _time(value.get("transactionLastUpdateTimestampMs")),
    }


def _member(member: Fields) -> dict[str, Any]:
    assignment = member["assignment"]
    is_shown = isinstance(assignment, dict)  # Else it is base64: it does not parse, or is another protocol's.
    return {**member, "assignedPartitions": assignment["assignedPartitions"] if is_shown else None}


def _time(milliseconds: int | None) -> int | None:
    return None if milliseconds == _NO_TIME else timestamp_us(milliseconds)
