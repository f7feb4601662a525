# SPDX-License-Identifier: Apache-2.0
"""What two clusters' files say of the flow from one to the other: its configuration, offset syncs and progress."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from raftlog.errors import MirrorFlowError
from raftlog.records.messages.mirrors.connect_records import ConfigType, read_connect_config, read_source_offset
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.mirrors.comparing.lifetimes import Syncs
from raftlog.tools.mirrors.naming import DEFAULT_EXCLUDES, DefaultPolicy, IdentityPolicy, KafkaLevel, TopicFilter
from raftlog.tools.mirrors.reading.clusters import Cluster
from raftlog.tools.mirrors.reading.metadata import ClusterMetadata
from raftlog.tools.mirrors.reading.sync_columns import SyncColumns
from raftlog.tools.spark.rows.options import TopicPartition

_CONFIGS: Final = ("mm2-configs.", ".internal")
_SOURCE_CONNECTOR: Final = "MirrorSourceConnector"
_SOURCE_ALIAS: Final = "source.cluster.alias"
_TARGET_ALIAS: Final = "target.cluster.alias"
_LOCATION: Final = "offset-syncs.topic.location"
_ISOLATION: Final = ("source.consumer.isolation.level", "consumer.isolation.level")
_TOPICS: Final = "topics"
_EXCLUDED: Final = "topics.exclude"
_HEARTBEATS: Final = "emit.heartbeats.interval.seconds"
_TRANSFORMS: Final = "transforms"
_ENABLED: Final = "enabled"


@attrs.frozen
class FoundConfig:
    """The configuration of a MirrorSourceConnector, as its target keeps it.

    Attributes:
        topic: where it was found.
        source_alias: of the cluster that is mirrored.
        target_alias: of the cluster that has the mirror.
        properties: of the connector.
    """

    topic: str
    source_alias: str
    target_alias: str
    properties: Mapping[str, str]

    @property
    def reads_committed(self) -> bool:
        """Whether records of aborted transactions are left out."""
        return any(self.properties.get(name) == "read_committed" for name in _ISOLATION)

    def topic_filter(self, kafka_level: KafkaLevel) -> TopicFilter | None:
        """Return which topics are mirrored; None if that is not configured.

        Args:
            kafka_level: of MirrorMaker: it says which topics are left out if that is not configured.
        """
        topics = self.properties.get(_TOPICS)
        if topics is None:
            return None
        default = ",".join(DEFAULT_EXCLUDES[kafka_level])
        return TopicFilter.of_lists(topics, self.properties.get(_EXCLUDED, default))

    @property
    def heartbeat_interval_ms(self) -> int | None:
        """How often heartbeats are written, in ms; None if that is not configured."""
        seconds = self.properties.get(_HEARTBEATS, "")
        return int(seconds) * 1000 if seconds.isdecimal() else None

    @property
    def is_enabled(self) -> bool:
        """Whether the flow mirrors topics: a disabled one has a connector too, for its heartbeats."""
        return self.properties.get(_ENABLED, "true").lower() == "true"

    @property
    def has_transforms(self) -> bool:
        """Whether records are changed on their way."""
        return bool(self.properties.get(_TRANSFORMS))

    @property
    def has_syncs_on_target(self) -> bool:
        """Whether the offset syncs are on the target, not on the source."""
        return self.properties.get(_LOCATION) == "target"


@attrs.frozen
class FoundSyncs:
    """The offset syncs of a flow.

    Attributes:
        topic: where they were found.
        is_on_target: in which cluster.
        syncs: by partition of the source, in the order of their topic.
        findings: about records that are no sync.
        is_whole: whether all syncs that were written are there: their topic was not compacted.
    """

    topic: str
    is_on_target: bool
    syncs: Mapping[TopicPartition, Syncs]
    findings: tuple[Finding, ...]
    is_whole: bool = True


def check_clusters(source: Cluster, target: Cluster, metadata: Sequence[ClusterMetadata | None]) -> None:
    """Refuse one cluster that is given twice, as it is, or as a copy or another replica.

    Args:
        source: the cluster that is mirrored.
        target: the cluster that has the mirror.
        metadata: of both, None if they are not here; nothing if both may have topics with the same ids.

    Raises:
        MirrorFlowError: both have a file, or a topic with the same id.
    """
    common = sorted(source.segment_paths & target.segment_paths)
    if common:
        raise MirrorFlowError(f"source and target are the same cluster: both have {common[0]}")
    ids = [set() if each is None else set(each.tables.topic_ids.items()) for each in metadata]
    for name, topic_id in sorted(set.intersection(*ids)) if ids else ():
        raise MirrorFlowError(f"source and target are the same cluster: both have topic {name} with the id {topic_id}")


def find_configs(target: Cluster) -> tuple[list[FoundConfig], list[Finding]]:
    """Return the newest configuration of each flow into a cluster, and what cannot be read.

    Raises:
        StorageError: a segment cannot be read.
    """
    found: dict[str, FoundConfig] = {}
    problems: list[Finding] = []
    for topic in target.topics:
        if not (topic.startswith(_CONFIGS[0]) and topic.endswith(_CONFIGS[1])):
            continue
        for _, config in target.decoded(topic, read_connect_config, problems):
            if config.type is not ConfigType.CONNECTOR or config.name != _SOURCE_CONNECTOR:
                continue
            found.pop(topic, None)
            properties = {name: value for name, value in (config.properties or {}).items() if value is not None}
            if _SOURCE_ALIAS in properties and _TARGET_ALIAS in properties:
                aliases = properties[_SOURCE_ALIAS], properties[_TARGET_ALIAS]
                found[topic] = FoundConfig(topic, *aliases, properties)
    return list(found.values()), problems


def find_syncs(
    source: Cluster,
    target: Cluster,
    policy: DefaultPolicy | IdentityPolicy,
    aliases: tuple[str, str],
    *,
    is_on_target: bool | None,
) -> FoundSyncs:
    """Return the offset syncs of a flow.

    Args:
        source: the cluster that is mirrored.
        target: the cluster that has the mirror.
        policy: names their topic.
        aliases: of the two clusters.
        is_on_target: in which cluster they are; None to look in both.

    Raises:
        MirrorFlowError: no cluster has their topic, or both have.
        StorageError: a segment cannot be read.
    """
    source_alias, target_alias = aliases
    places = [
        (cluster, policy.offset_syncs_topic(alias), on_target)
        for cluster, alias, on_target in ((source, target_alias, False), (target, source_alias, True))
        if is_on_target in (None, on_target)
    ]
    there = [each for each in places if each[1] in each[0].topics]
    if not there:
        names = " or ".join(name for _, name, _ in places)
        back = policy.offset_syncs_topic(source_alias)
        hint = f"; {back} is on the target: are source and target swapped?" if back in target.topics else ""
        raise MirrorFlowError(f"there are no offset syncs: no topic {names} is here{hint}")
    if len(there) > 1:
        raise MirrorFlowError("both clusters have offset syncs of this flow: say which with --syncs source or target")
    ((cluster, topic, on_target),) = there
    columns = SyncColumns()
    for each in cluster.chunks(topic):
        if isinstance(each, Finding):
            columns.findings.append(each)
        else:
            columns.add(each)
    return FoundSyncs(topic, on_target, columns.by_place(), tuple(columns.findings), columns.is_whole)


def find_progress(target: Cluster, source_alias: str) -> tuple[dict[TopicPartition, int], list[Finding]]:
    """Return the offset after the last record that was mirrored, by partition of the source, as Connect has stored it.

    Raises:
        StorageError: a segment cannot be read.
    """
    ends: dict[TopicPartition, int] = {}
    problems: list[Finding] = []
    for _, stored in target.decoded(f"mm2-offsets.{source_alias}.internal", read_source_offset, problems):
        place = stored.mirrored
        if place is None or place.cluster != source_alias:
            continue
        if stored.upstream_offset is None:
            ends.pop((place.topic, place.partition), None)
        else:
            ends[place.topic, place.partition] = stored.upstream_offset + 1
    return ends, problems


def said(configs: Sequence[FoundConfig]) -> Iterator[str]:
    """Yield each flow in words."""
    for each in configs:
        yield f"{each.source_alias} -> {each.target_alias} ({each.topic})"
