# SPDX-License-Identifier: Apache-2.0
"""The entries of an image as things with a path, such as ``/topics/orders/0``, and members that are JSON values.

Secrets are never among the members: keys of SCRAM credentials, ids of delegation tokens (from which a controller's
secret makes their HMACs) and values of configs that hold passwords or keys.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from raftlog.tools.image.entries import (
    Acl,
    Broker,
    Controller,
    DelegationToken,
    Endpoint,
    FeatureRange,
    PartitionEntry,
    ScramCredential,
    Topic,
)
from raftlog.tools.image.settings import SCRAM_MECHANISMS
from raftlog.tools.image.tables import Key, QuotaEntity, Resource, Tables
from raftlog.tools.payloads.redaction import REDACTED, has_secret_word
from raftlog.uuid_text import uuid_to_text

Path = tuple[str, ...]
"""Names from the root to a thing."""

DEFAULT_NAME: Final = "<default>"
"""Stands for the owner of configs and quotas that hold for all that have none of their own."""
_RESOURCES: Final = {2: "topic", 4: "broker", 8: "broker_logger", 16: "client_metrics", 32: "group"}
_ACL_RESOURCES: Final = (
    *("UNKNOWN", "ANY", "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"),
)
_PATTERNS: Final = ("UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED")
_OPERATIONS: Final = (
    *("UNKNOWN", "ANY", "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION"),
    *("DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS"),
    "TWO_PHASE_COMMIT",
)
_PERMISSIONS: Final = ("UNKNOWN", "ANY", "DENY", "ALLOW")
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_DIGEST_SIZE: Final = 16


class Thing(NamedTuple):
    """One thing of the cluster.

    Attributes:
        kind: what it is, such as ``partition``.
        path: its names; the first is the section.
        members: JSON values by name.
    """

    kind: str
    path: Path
    members: dict[str, Any]


def path_text(path: Path) -> str:
    """Return a path as text. ``/`` and ``%`` inside a name are written as in URLs, and an empty name as ``%``."""
    return "".join("/" + (name.replace("%", "%25").replace("/", "%2F") or "%") for name in path)


def parse_path(text: str) -> Path:
    """Return the path of a text; ``/`` alone is the root."""
    names = [name for name in text.split("/") if name]
    return tuple("" if name == "%" else name.replace("%2F", "/").replace("%25", "%") for name in names)


def is_under(path: Path, root: Path) -> bool:
    """Whether a path is another one, or below it."""
    return path[: len(root)] == root


def things(tables: Tables, root: Path = ()) -> Iterator[Thing]:
    """Yield the things of an image at a path and below it, in the order in which they are shown."""
    for key, entry in _entries(tables, root):
        thing = thing_of(key, entry, tables)
        if is_under(thing.path, root):
            yield thing


def _entries(tables: Tables, root: Path) -> Iterator[tuple[Key, Any]]:
    """Yield the entries of the tables that may have something at a path or below it, in order."""
    kinds, names = root[:1] or tuple(_TABLES), root[1:2]
    for table in (table for kind, table in _TABLES.items() if kind in kinds):
        match table:
            case "topics":
                for topic_id, topic in sorted(tables.topics.items(), key=lambda each: (each[1].name, each[0])):
                    if not names or topic.name in names:
                        yield ("topics", topic_id), topic
                        for number, entry in sorted(tables.partitions[topic_id].items()):
                            yield ("partitions", topic_id, number), entry
            case "configs" | "quotas":
                path = _resource_path if table == "configs" else _quota_path
                for owner, values in sorted(getattr(tables, table).items(), key=lambda each: path(each[0])):
                    for name, value in sorted(values.items()):
                        yield (table, owner, name), value
            case _:
                for key, entry in sorted(getattr(tables, table).items()):
                    yield (table, key), entry


def thing_of(key: Key, entry: Any, tables: Tables) -> Thing:
    """Return an entry as a thing.

    Args:
        key: its identity: the name of its table, and its keys there.
        entry: as it is or was.
        tables: have the names of topics.
    """
    table, *keys = key
    return _MAKERS[str(table)](keys, entry, tables)


def changed_members(before: Thing, after: Thing) -> list[str]:
    """Return the names of the members that differ between two forms of a thing."""
    return [name for name, value in after.members.items() if before.members[name] != value]


def _feature(keys: Sequence[Any], level: int, _: Tables) -> Thing:
    return Thing("feature", ("features", keys[0]), {"level": level})


def _broker(keys: Sequence[Any], broker: Broker, _: Tables) -> Thing:
    members = broker._asdict() | {
        "incarnation_id": uuid_to_text(broker.incarnation_id),
        "listeners": _listeners(broker.listeners),
        "features": _features(broker.features),
        "directories": _ids(broker.directories),
        "cordoned_directories": None if broker.cordoned_directories is None else _ids(broker.cordoned_directories),
    }
    return Thing("broker", ("brokers", str(keys[0])), members)


def _controller(keys: Sequence[Any], controller: Controller, _: Tables) -> Thing:
    members = controller._asdict() | {
        "incarnation_id": uuid_to_text(controller.incarnation_id),
        "listeners": _listeners(controller.listeners),
        "features": _features(controller.features),
    }
    return Thing("controller", ("controllers", str(keys[0])), members)


def _topic(keys: Sequence[Any], topic: Topic, _: Tables) -> Thing:
    return Thing("topic", ("topics", topic.name), {"topic_id": uuid_to_text(keys[0])})


def _partition(keys: Sequence[Any], entry: PartitionEntry, tables: Tables) -> Thing:
    members = {name: list(each) if isinstance(each, tuple) else each for name, each in entry._asdict().items()}
    members["directories"] = _ids(entry.directories)
    topic = tables.topics.get(keys[0])
    name = uuid_to_text(keys[0]) if topic is None else topic.name
    return Thing("partition", ("topics", name, str(keys[1])), members)


def _config(keys: Sequence[Any], value: str, _: Tables) -> Thing:
    shown = REDACTED if has_secret_word(keys[1]) else value
    return Thing("config", ("configs", *_resource_path(keys[0]), keys[1]), {"value": shown})


def _acl(keys: Sequence[Any], acl: Acl, _: Tables) -> Thing:
    members = {
        "principal": acl.principal,
        "permission": _name(_PERMISSIONS, acl.permission_type),
        "operation": _name(_OPERATIONS, acl.operation),
        "resource_type": _name(_ACL_RESOURCES, acl.resource_type),
        "resource_name": acl.resource_name,
        "pattern_type": _name(_PATTERNS, acl.pattern_type),
        "host": acl.host,
    }
    return Thing("acl", ("acls", uuid_to_text(keys[0])), members)


def _scram(keys: Sequence[Any], credential: ScramCredential, _: Tables) -> Thing:
    name, mechanism = keys[0]
    secrets = dict.fromkeys(("salt", "stored_key", "server_key"), REDACTED)
    path = ("scram_credentials", name, SCRAM_MECHANISMS[mechanism])
    return Thing("scram_credential", path, {"iterations": credential.iterations} | secrets)


def _quota(keys: Sequence[Any], value: float, _: Tables) -> Thing:
    return Thing("client_quota", ("client_quotas", *_quota_path(keys[0]), keys[1]), {"value": value})


def _token(keys: Sequence[Any], token: DelegationToken, _: Tables) -> Thing:
    digest = hashlib.sha256(keys[0].encode()).hexdigest()[:_DIGEST_SIZE]
    members = token._asdict() | {"renewers": list(token.renewers)}
    return Thing("delegation_token", ("delegation_tokens", digest), members)


def _producer_ids(keys: Sequence[Any], next_id: int, _: Tables) -> Thing:
    return Thing("producer_ids", ("producer_ids",), {str(keys[0]): next_id})


_TABLES: Final = {
    "features": "features",
    "controllers": "controllers",
    "brokers": "brokers",
    "topics": "topics",
    "configs": "configs",
    "client_quotas": "quotas",
    "acls": "acls",
    "scram_credentials": "scram",
    "delegation_tokens": "delegation_tokens",
    "producer_ids": "producer_ids",
}
"""By the first name of a path, in the order in which things are shown."""

_MAKERS: Final[Mapping[str, Callable[[Sequence[Any], Any, Tables], Thing]]] = {
    "features": _feature,
    "brokers": _broker,
    "controllers": _controller,
    "topics": _topic,
    "partitions": _partition,
    "configs": _config,
    "acls": _acl,
    "scram": _scram,
    "quotas": _quota,
    "delegation_tokens": _token,
    "producer_ids": _producer_ids,
}
"""By table."""


def _resource_path(owner: Resource) -> Path:
    kind, name = owner
    return _RESOURCES.get(kind, f"type-{kind}"), name or DEFAULT_NAME


def _quota_path(owner: QuotaEntity) -> Path:
    names = sorted((kind, DEFAULT_NAME if name is None else name) for kind, name in owner)
    return (",".join(f"{kind}={name}" for kind, name in names),)


def _listeners(listeners: Iterable[Endpoint]) -> list[dict[str, Any]]:
    return [each._asdict() | {"security_protocol": _name(_PROTOCOLS, each.security_protocol)} for each in listeners]


def _features(features: Iterable[FeatureRange]) -> list[dict[str, Any]]:
    return [each._asdict() for each in features]


def _ids(ids: Iterable[UUID]) -> list[str]:
    return [uuid_to_text(each) for each in ids]


def _name(names: Sequence[str], number: int) -> str:
    return names[number] if 0 <= number < len(names) else str(number)
