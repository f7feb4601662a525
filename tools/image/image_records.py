# SPDX-License-Identifier: Apache-2.0
"""Converts an image to the records that a snapshot of it has, in the versions that its ``metadata.version`` allows.

Source: MetadataImage#write and the images that it writes, ImageWriterOptions, MetadataVersion, as of 4.4.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from uuid import UUID

from raftlog.records.messages.metadata import metadata_record, write_metadata_record
from raftlog.records.messages.releases import METADATA_VERSIONS
from raftlog.tools.image.entries import Broker, Controller, Endpoint, FeatureRange, PartitionEntry
from raftlog.tools.image.tables import PRODUCER_IDS, Tables
from raftlog.tools.image.topics import MIGRATING

__all__ = ["image_records"]

_METADATA_VERSION: Final = "metadata.version"
_ELR_FEATURE: Final = "eligible.leader.replicas.version"
_BROKER_VERSIONS: Final = ((4, "4.3-IV0"), (3, "3.7-IV2"), (2, "3.4-IV0"), (1, "3.3-IV3"))
_PARTITION_VERSIONS: Final = ((2, "4.0-IV1"), (1, "3.7-IV2"))
"""Versions of records, and the level of ``metadata.version`` from which on they are written, the highest first."""


def image_records(tables: Tables) -> Iterator[bytes]:
    """Yield the values of the records of an image, in the order in which Kafka writes its parts.

    Things of one kind come in the order in which they came into the image; Kafka's order is that of its hash tables.

    Raises:
        UnsupportedVersionError: the image has something that its ``metadata.version`` has no field for, and that Kafka
            would not write either.
    """
    level = tables.features.get(_METADATA_VERSION, 0)
    for name, message, version in _messages(tables, level):
        yield write_metadata_record(metadata_record(name, dict(message), version=version))


def _messages(tables: Tables, level: int) -> Iterator[tuple[str, Mapping[str, Any], int]]:
    in_order = sorted(tables.features, key=lambda name: name != _METADATA_VERSION)
    for name in in_order:
        yield "FeatureLevelRecord", {"name": name, "featureLevel": tables.features[name]}, 0
    for broker_id, broker in tables.brokers.items():
        yield "RegisterBrokerRecord", _broker(broker_id, broker), _version(_BROKER_VERSIONS, level)
    for controller_id, controller in tables.controllers.items():
        yield "RegisterControllerRecord", _controller(controller_id, controller), 0
    has_elr = tables.features.get(_ELR_FEATURE, 0) > 0
    for topic_id, topic in tables.topics.items():
        yield "TopicRecord", {"name": topic.name, "topicId": topic_id}, 0
        for number, entry in tables.partitions[topic_id].items():
            message = _partition(topic_id, number, entry, has_elr=has_elr)
            yield "PartitionRecord", message, _version(_PARTITION_VERSIONS, level)
    yield from ((name, message, 0) for name, message in _settings(tables))


def _version(versions: Iterable[tuple[int, str]], level: int) -> int:
    return next((version for version, since in versions if level >= METADATA_VERSIONS[since]), 0)


def _broker(broker_id: int, broker: Broker) -> dict[str, Any]:
    return {
        "brokerId": broker_id,
        "isMigratingZkBroker": broker.is_migrating_zk_broker,
        "incarnationId": broker.incarnation_id,
        "brokerEpoch": broker.epoch,
        "endPoints": _endpoints(broker.listeners),
        "features": _features(broker.features),
        "rack": broker.rack,
        "fenced": broker.fenced,
        "inControlledShutdown": broker.in_controlled_shutdown,
        "logDirs": list(broker.directories),
        "cordonedLogDirs": None if broker.cordoned_directories is None else list(broker.cordoned_directories),
    }


def _controller(controller_id: int, controller: Controller) -> dict[str, Any]:
    return {
        "controllerId": controller_id,
        "incarnationId": controller.incarnation_id,
        "zkMigrationReady": controller.zk_migration_ready,
        "endPoints": _endpoints(controller.listeners),
        "features": _features(controller.features),
    }


def _endpoints(listeners: Iterable[Endpoint]) -> list[dict[str, Any]]:
    return [
        {"name": each.name, "host": each.host, "port": each.port, "securityProtocol": each.security_protocol}
        for each in listeners
    ]


def _features(features: Iterable[FeatureRange]) -> list[dict[str, Any]]:
    return [
        {"name": each.name, "minSupportedVersion": each.min_version, "maxSupportedVersion": each.max_version}
        for each in features
    ]


def _partition(topic_id: UUID, number: int, entry: PartitionEntry, *, has_elr: bool) -> dict[str, Any]:
    """Return the message of a partition; directories that no record told are left out, as they were."""
    is_told = any(each != MIGRATING for each in entry.directories)
    return {
        "partitionId": number,
        "topicId": topic_id,
        "replicas": list(entry.replicas),
        "isr": list(entry.isr),
        "removingReplicas": list(entry.removing_replicas),
        "addingReplicas": list(entry.adding_replicas),
        "leader": entry.leader,
        "leaderRecoveryState": entry.leader_recovery_state,
        "leaderEpoch": entry.leader_epoch,
        "partitionEpoch": entry.partition_epoch,
        "directories": list(entry.directories) if is_told else [],
        "eligibleLeaderReplicas": list(entry.eligible_leader_replicas) or None if has_elr else None,
        "lastKnownElr": list(entry.last_known_elr) or None if has_elr else None,
    }


def _settings(tables: Tables) -> Iterator[tuple[str, dict[str, Any]]]:
    for (kind, owner), configs in tables.configs.items():
        for name, value in configs.items():
            yield (
                "ConfigRecord",
                {"resourceType": kind, "resourceName": owner, "name": name, "value": value},
            )
    for entity, quotas in tables.quotas.items():
        parts = [{"entityType": kind, "entityName": name} for kind, name in sorted(entity, key=lambda part: part[0])]
        for quota, limit in quotas.items():
            yield "ClientQuotaRecord", {"entity": parts, "key": quota, "value": limit, "remove": False}
    if PRODUCER_IDS in tables.producer_ids:
        next_id = tables.producer_ids[PRODUCER_IDS]
        yield "ProducerIdsRecord", {"brokerId": -1, "brokerEpoch": -1, "nextProducerId": next_id}
    for acl_id, acl in tables.acls.items():
        yield (
            "AccessControlEntryRecord",
            {
                "id": acl_id,
                "resourceType": acl.resource_type,
                "resourceName": acl.resource_name,
                "patternType": acl.pattern_type,
                "principal": acl.principal,
                "host": acl.host,
                "operation": acl.operation,
                "permissionType": acl.permission_type,
            },
        )
    yield from _credentials(tables)


def _credentials(tables: Tables) -> Iterator[tuple[str, dict[str, Any]]]:
    for (user, mechanism), credential in tables.scram.items():
        yield (
            "UserScramCredentialRecord",
            {
                "name": user,
                "mechanism": mechanism,
                "salt": credential.salt,
                "storedKey": credential.stored_key,
                "serverKey": credential.server_key,
                "iterations": credential.iterations,
            },
        )
    for token_id, token in tables.delegation_tokens.items():
        yield (
            "DelegationTokenRecord",
            {
                "owner": token.owner,
                "requester": token.requester,
                "renewers": list(token.renewers),
                "issueTimestamp": token.issue_timestamp,
                "maxTimestamp": token.max_timestamp,
                "expirationTimestamp": token.expiration_timestamp,
                "tokenId": token_id,
            },
        )
