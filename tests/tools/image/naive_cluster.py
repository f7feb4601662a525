# SPDX-License-Identifier: Apache-2.0
"""A slow model of the cluster that metadata records describe: it shares no code with ``raftlog.tools.image``.

It takes records as Kafka's dump tool prints them, and makes the state anew from all of them each time.
``described`` brings an image of ours into the same form, which Kafka's own image is written in too
(``tests/kafka/ImageDump.java``).
"""

import base64
from collections.abc import Sequence
from typing import Any

from raftlog.tools.image.tables import Tables
from raftlog.uuid_text import uuid_to_text

Object = dict[str, Any]
_NO_EFFECT = {"NO_OP_RECORD", "ZK_MIGRATION_STATE_RECORD"}
_ID = "AAAAAAAAAAAAAAAAAAAAA"
_SECTIONS = (
    *("names", "features", "topics", "configs", "brokers", "controllers"),
    *("acls", "scram", "quotas", "tokens", "producer_ids"),
)
_PARTITION = (
    *("replicas", "isr", "removing", "adding", "leader", "recovery", "leaderEpoch", "partitionEpoch"),
    *("directories", "elr", "lastKnownElr"),
)


class RefusedError(Exception):
    """Kafka's replay of this record would fail."""


def naive_state(records: Sequence[Object]) -> Object:
    """The state after all records; those that are refused have no effect."""
    state: Object = {name: {} for name in _SECTIONS}
    for record in _committed(records):
        try:
            _replay(state, record["type"], record["data"])
        except RefusedError:
            continue
    del state["names"]
    state["configs"] = {owner: values for owner, values in state["configs"].items() if values}
    state["quotas"] = {owner: values for owner, values in state["quotas"].items() if values}
    return state


def _committed(records: Sequence[Object]) -> list[Object]:
    """The records that have an effect: a transaction that is aborted or open has none; wrong bounds are ignored."""
    done: list[Object] = []
    held: list[Object] | None = None
    for record in records:
        match record["type"], held:
            case "BEGIN_TRANSACTION_RECORD", None:
                held = []
            case "END_TRANSACTION_RECORD", list():
                done, held = done + (held or []), None
            case "ABORT_TRANSACTION_RECORD", list():
                held = None
            case (("BEGIN_TRANSACTION_RECORD" | "END_TRANSACTION_RECORD" | "ABORT_TRANSACTION_RECORD"), _):
                pass
            case _:
                (done if held is None else held).append(record)
    return done


def _replay(state: Object, kind: str, data: Object) -> None:
    match kind:
        case "FEATURE_LEVEL_RECORD":
            state["features"].pop(data["name"], None)
            if data["featureLevel"] != 0 and data["name"] != "kraft.version":
                state["features"][data["name"]] = data["featureLevel"]
        case "CONFIG_RECORD":
            of_owner = state["configs"].setdefault(f"{data['resourceType']}:{data['resourceName']}", {})
            of_owner.pop(data["name"], None)
            if data["value"] is not None:
                of_owner[data["name"]] = data["value"]
        case "CLIENT_QUOTA_RECORD":
            owner = {each["entityType"]: each["entityName"] for each in data["entity"]}
            of_owner = state["quotas"].setdefault(quota_owner(owner), {})
            of_owner.pop(data["key"], None)
            if not data["remove"]:
                of_owner[data["key"]] = float(data["value"])
        case "PRODUCER_IDS_RECORD":
            state["producer_ids"] = {"next": data["nextProducerId"]}
        case _ if "BROKER" in kind or "CONTROLLER" in kind:
            _node(state, kind, data)
        case _ if any(word in kind for word in ("TOKEN", "SCRAM", "ACCESS")):
            _secret(state, kind, data)
        case _ if kind not in _NO_EFFECT:
            _topic(state, kind, data)


def _secret(state: Object, kind: str, data: Object) -> None:
    match kind:
        case "DELEGATION_TOKEN_RECORD":
            if not all(":" in each for each in (data["owner"], data["requester"], *data["renewers"])):
                raise RefusedError
            names = ["owner", "requester", "renewers", "issueTimestamp", "maxTimestamp", "expirationTimestamp"]
            state["tokens"][data["tokenId"]] = [data[name] for name in names]
        case "REMOVE_DELEGATION_TOKEN_RECORD":
            state["tokens"].pop(data["tokenId"], None)
        case "USER_SCRAM_CREDENTIAL_RECORD" | "REMOVE_USER_SCRAM_CREDENTIAL_RECORD":
            key = f"{data['name']}/{data['mechanism'] if data['mechanism'] in (1, 2) else 0}"
            state["scram"].pop(key, None)
            if not kind.startswith("REMOVE"):
                state["scram"][key] = [data[name] for name in ("salt", "storedKey", "serverKey", "iterations")]
        case "ACCESS_CONTROL_ENTRY_RECORD":
            names = ["resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType"]
            state["acls"][data["id"]] = [data[name] for name in names]
        case "REMOVE_ACCESS_CONTROL_ENTRY_RECORD":
            if state["acls"].pop(data["id"], None) is None:
                raise RefusedError
        case _:
            raise AssertionError(kind)


def quota_owner(owner: dict[str, str | None]) -> str:
    """The owner of quotas as one text."""
    return ",".join(f"{kind}={'<default>' if name is None else name}" for kind, name in sorted(owner.items()))


def _node(state: Object, kind: str, data: Object) -> None:
    brokers = state["brokers"]
    listeners = {
        each["name"]: [each["host"], each["port"], each["securityProtocol"]] for each in data.get("endPoints", [])
    }
    features = {
        each["name"]: [each["minSupportedVersion"], each["maxSupportedVersion"]] for each in data.get("features", [])
    }
    match kind:
        case "REGISTER_BROKER_RECORD" if "" in listeners:
            raise RefusedError
        case "REGISTER_BROKER_RECORD":
            brokers[str(data["brokerId"])] = {
                "epoch": data["brokerEpoch"],
                "incarnation": data["incarnationId"],
                "listeners": listeners,
                "features": features,
                "rack": data["rack"],
                "fenced": data["fenced"],
                "shutdown": bool(data.get("inControlledShutdown")),
                "zk": bool(data.get("isMigratingZkBroker")),
                "directories": sorted(data.get("logDirs") or []),
                "cordoned": None if data.get("cordonedLogDirs") is None else data["cordonedLogDirs"],
            }
        case "UNREGISTER_BROKER_RECORD":
            brokers.pop(str(data["brokerId"]), None)
        case "REGISTER_CONTROLLER_RECORD":
            state["controllers"][str(data["controllerId"])] = {
                "incarnation": data["incarnationId"],
                "zk": data["zkMigrationReady"],
                "listeners": listeners,
                "features": features,
            }
        case "UNREGISTER_CONTROLLER_RECORD":
            state["controllers"].pop(str(data["controllerId"]), None)
        case "FENCE_BROKER_RECORD" | "UNFENCE_BROKER_RECORD":
            broker = brokers.get(str(data["id"]))
            if broker is None or broker["epoch"] != data["epoch"]:
                raise RefusedError
            broker["fenced"] = kind.startswith("FENCE")
        case "BROKER_REGISTRATION_CHANGE_RECORD":
            broker = brokers.get(str(data["brokerId"]))
            fenced, shutdown = data.get("fenced", 0), data.get("inControlledShutdown", 0)
            if broker is None or broker["epoch"] != data["brokerEpoch"]:
                raise RefusedError
            if fenced not in (-1, 0, 1) or shutdown not in (0, 1):
                raise RefusedError
            broker["fenced"] = {-1: False, 0: broker["fenced"], 1: True}[fenced]
            broker["shutdown"] |= shutdown == 1
            broker["directories"] = sorted(data.get("logDirs") or []) or broker["directories"]
            if data.get("cordonedLogDirs") is not None:
                broker["cordoned"] = data["cordonedLogDirs"]
        case _:
            raise AssertionError(kind)


def _topic(state: Object, kind: str, data: Object) -> None:
    topics = state["topics"]
    of_topic = topics.get(data.get("topicId", ""))
    match kind:
        case "TOPIC_RECORD":
            topics.pop(data["topicId"], None)
            topics[data["topicId"]] = {"name": data["name"], "partitions": {}}
            state["names"][data["name"]] = data["topicId"]
        case "CLEAR_ELR_RECORD":
            name = data["topicName"]
            if name and name not in state["names"]:
                raise RefusedError
            for each in [topics[state["names"][name]]] if name else topics.values():
                for partition in each["partitions"].values():
                    if partition["elr"] or partition["lastKnownElr"]:
                        partition["partitionEpoch"] += 1
                        partition["elr"] = partition["lastKnownElr"] = []
        case _ if of_topic is None:
            raise RefusedError
        case "REMOVE_TOPIC_RECORD":
            del topics[data["topicId"]]
            state["names"].pop(of_topic["name"], None)
            state["configs"].pop(f"2:{of_topic['name']}", None)
        case "PARTITION_RECORD":
            of_topic["partitions"][str(data["partitionId"])] = _checked(
                {
                    "replicas": data["replicas"],
                    "isr": data["isr"],
                    "removing": data["removingReplicas"],
                    "adding": data["addingReplicas"],
                    "leader": data["leader"],
                    "recovery": data.get("leaderRecoveryState", 0),
                    "leaderEpoch": data["leaderEpoch"],
                    "partitionEpoch": data["partitionEpoch"],
                    "directories": data.get("directories") or [_ID + "A"] * len(data["replicas"]),
                    "elr": data.get("eligibleLeaderReplicas") or [],
                    "lastKnownElr": data.get("lastKnownElr") or [],
                }
            )
        case "PARTITION_CHANGE_RECORD":
            before = of_topic["partitions"].get(str(data["partitionId"]))
            if before is None:
                raise RefusedError
            of_topic["partitions"][str(data["partitionId"])] = _checked(_changed(before, data))
        case _:
            raise AssertionError(kind)


def _changed(before: Object, data: Object) -> Object:
    given = data.get("directories")
    if given and data.get("replicas") is not None and len(given) != len(data["replicas"]):
        raise RefusedError
    found = before | {"partitionEpoch": before["partitionEpoch"] + 1}
    fields = {
        "replicas": "replicas",
        "isr": "isr",
        "removingReplicas": "removing",
        "addingReplicas": "adding",
        "eligibleLeaderReplicas": "elr",
        "lastKnownElr": "lastKnownElr",
    }
    found |= {ours: data[theirs] for theirs, ours in fields.items() if data.get(theirs) is not None}
    if data.get("leader", -2) != -2:
        found |= {"leader": data["leader"], "leaderEpoch": before["leaderEpoch"] + 1}
    if data.get("leaderRecoveryState", -1) != -1:
        found["recovery"] = data["leaderRecoveryState"]
    if data.get("directories") is not None:
        found["directories"] = data["directories"]
    if all(each == _ID + "A" for each in found["directories"]):
        found["directories"] = [_ID + "A"] * len(found["replicas"])
    return found


def _checked(partition: Object) -> Object:
    if len(partition["directories"]) != len(partition["replicas"]) or partition["recovery"] not in (0, 1):
        raise RefusedError
    return partition


def described(tables: Tables) -> Object:
    """An image of ours in the form of ``naive_state``."""
    return {
        "features": dict(tables.features),
        "topics": {uuid_to_text(id_): _described_topic(tables, id_) for id_ in tables.topics},
        "configs": {f"{kind}:{name}": dict(values) for (kind, name), values in tables.configs.items()},
        "brokers": {
            str(number): {
                "epoch": each.epoch,
                "incarnation": uuid_to_text(each.incarnation_id),
                "listeners": {name: [*rest] for name, *rest in each.listeners},
                "features": {name: [*rest] for name, *rest in each.features},
                "rack": each.rack,
                "fenced": each.fenced,
                "shutdown": each.in_controlled_shutdown,
                "zk": each.is_migrating_zk_broker,
                "directories": sorted(map(uuid_to_text, each.directories)),
                "cordoned": None
                if each.cordoned_directories is None
                else [*map(uuid_to_text, each.cordoned_directories)],
            }
            for number, each in tables.brokers.items()
        },
        "controllers": {
            str(number): {
                "incarnation": uuid_to_text(each.incarnation_id),
                "zk": each.zk_migration_ready,
                "listeners": {name: [*rest] for name, *rest in each.listeners},
                "features": {name: [*rest] for name, *rest in each.features},
            }
            for number, each in tables.controllers.items()
        },
        "acls": {uuid_to_text(id_): [*each] for id_, each in tables.acls.items()},
        "scram": {
            f"{name}/{mechanism}": [*map(_base64, each[:3]), each.iterations]
            for (name, mechanism), each in tables.scram.items()
        },
        "quotas": {quota_owner(dict(owner)): dict(values) for owner, values in tables.quotas.items()},
        "tokens": {
            id_: [each.owner, each.requester, [*each.renewers], *each[3:]]
            for id_, each in tables.delegation_tokens.items()
        },
        "producer_ids": {"next": tables.producer_ids["next_producer_id"]} if tables.producer_ids else {},
    }


def _described_topic(tables: Tables, id_: Any) -> Object:
    partitions = {}
    for number, each in tables.partitions[id_].items():
        values = [[*value] if isinstance(value, tuple) else value for value in each]
        partitions[str(number)] = dict(zip(_PARTITION, values, strict=True))
        partitions[str(number)]["directories"] = [uuid_to_text(directory) for directory in each.directories]
    return {"name": tables.topics[id_].name, "partitions": partitions}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
