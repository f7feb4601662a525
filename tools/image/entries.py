# SPDX-License-Identifier: Apache-2.0
"""The entries of an image: one immutable value per thing of the cluster. A change replaces the entry.

They are named tuples, since an image may have a million of them: these take a quarter of the memory of dicts.

Source: TopicImage, PartitionRegistration, BrokerRegistration, ControllerRegistration, StandardAcl, ScramCredentialData,
DelegationTokenData.
"""

from typing import NamedTuple
from uuid import UUID

__all__ = [
    "Acl",
    "Broker",
    "Controller",
    "DelegationToken",
    "Endpoint",
    "FeatureRange",
    "PartitionEntry",
    "ScramCredential",
    "Topic",
]


class Topic(NamedTuple):
    """A topic. Its partitions are entries of their own."""

    name: str
    topic_id: UUID


class PartitionEntry(NamedTuple):
    """A partition's registration.

    Attributes:
        replicas, isr, removing_replicas, adding_replicas: ids of brokers, in the order of the records.
        leader: id of a broker; -1 if the partition has no leader.
        leader_recovery_state: 0 recovered, 1 recovering after an unclean election.
        leader_epoch, partition_epoch: as the records say, or count.
        directories: of each replica, in their order; the zero uuid if none of the records told them, and
            ``AAAAAAAAAAAAAAAAAAAAAQ`` if none is assigned yet.
        eligible_leader_replicas, last_known_elr: ids of brokers.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    leader: int
    leader_recovery_state: int
    leader_epoch: int
    partition_epoch: int
    directories: tuple[UUID, ...]
    eligible_leader_replicas: tuple[int, ...]
    last_known_elr: tuple[int, ...]


class Endpoint(NamedTuple):
    """An address of a node; the protocol is Kafka's number of it."""

    name: str
    host: str
    port: int
    security_protocol: int


class FeatureRange(NamedTuple):
    """The levels of a feature that a node supports, both inclusive."""

    name: str
    min_version: int
    max_version: int


class Broker(NamedTuple):
    """A broker's registration.

    Attributes:
        epoch: the offset of the record that registered it, if a controller wrote that.
        incarnation_id: of the run of the broker.
        listeners, features: by ascending name.
        rack: None if it has none.
        fenced: whether it serves no clients.
        in_controlled_shutdown: whether it is handing over its partitions.
        is_migrating_zk_broker: as releases before 4.0 wrote it.
        directories: ids of its log directories, ascending.
        cordoned_directories: those of them that take no new replicas; None if the broker did not tell.
    """

    epoch: int
    incarnation_id: UUID
    listeners: tuple[Endpoint, ...]
    features: tuple[FeatureRange, ...]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    is_migrating_zk_broker: bool
    directories: tuple[UUID, ...]
    cordoned_directories: tuple[UUID, ...] | None


class Controller(NamedTuple):
    """A controller's registration; listeners and features by ascending name."""

    incarnation_id: UUID
    zk_migration_ready: bool
    listeners: tuple[Endpoint, ...]
    features: tuple[FeatureRange, ...]


class Acl(NamedTuple):
    """A rule of who may do what. The types, the pattern and the operation are Kafka's numbers."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


class ScramCredential(NamedTuple):
    """A credential of a user for one mechanism. All but the iterations is secret."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


class DelegationToken(NamedTuple):
    """A delegation token; times in ms since the Unix epoch. Records never have its HMAC."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int
