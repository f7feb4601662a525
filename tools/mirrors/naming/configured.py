# SPDX-License-Identifier: Apache-2.0
"""The policy that the properties of MirrorMaker, or of one of its connectors, configure."""

from collections.abc import Iterable, Mapping
from typing import Final

from raftlog.errors import NamingPolicyError
from raftlog.tools.mirrors.naming.policies import (
    DEFAULT_SEPARATOR,
    DefaultPolicy,
    IdentityPolicy,
    KafkaLevel,
)

CLASS_PROPERTY: Final = "replication.policy.class"
SEPARATOR_PROPERTY: Final = "replication.policy.separator"
INTERNAL_SEPARATOR_PROPERTY: Final = "replication.policy.internal.topic.separator.enabled"
SOURCE_PROPERTY: Final = "source.cluster.alias"

DEFAULT_CLASS: Final = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
IDENTITY_CLASS: Final = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


def configured_policy(
    properties: Mapping[str, str], kafka_level: KafkaLevel = "4.0", aliases: Iterable[str] = ()
) -> DefaultPolicy | IdentityPolicy:
    """Return the policy that properties configure, as Kafka's policies read them.

    Args:
        properties: by name; others than those of policies are ignored.
        kafka_level: the rule for internal topics.
        aliases: of the clusters that are known to be mirrored.

    Raises:
        NamingPolicyError: the class is not one of Kafka's two, or a value is invalid.

    Source: DefaultReplicationPolicy#configure, IdentityReplicationPolicy#configure.
    """
    separator = properties.get(SEPARATOR_PROPERTY, DEFAULT_SEPARATOR)
    # Boolean.parseBoolean: all but "true" is false.
    enabled = properties.get(INTERNAL_SEPARATOR_PROPERTY, "true").lower() == "true"
    match properties.get(CLASS_PROPERTY, DEFAULT_CLASS):
        case "org.apache.kafka.connect.mirror.DefaultReplicationPolicy":
            return DefaultPolicy(separator, enabled, kafka_level, tuple(aliases))
        case "org.apache.kafka.connect.mirror.IdentityReplicationPolicy":
            return IdentityPolicy(properties.get(SOURCE_PROPERTY), separator, enabled, kafka_level, tuple(aliases))
        case other:
            raise NamingPolicyError(f"{CLASS_PROPERTY} {other!r} is not one of Kafka's two policies")
