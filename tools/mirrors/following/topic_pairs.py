# SPDX-License-Identifier: Apache-2.0
"""Topics that go round in a cycle, and topics and mirrors that do not have each other.

Source: MirrorSourceConnector.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import attrs

from raftlog.tools.mirrors.following.mirror_findings import MirrorFinding
from raftlog.tools.mirrors.naming.policies import NamingPolicy
from raftlog.tools.mirrors.naming.replication import TopicFilter, should_replicate
from raftlog.tools.mirrors.naming.topic_class import classify

_CYCLE: Final = "mirror.cycle"
_UNPAIRED: Final = "mirror.unpaired"


@attrs.frozen
class ClusterTopics:
    """The topics of one cluster, all of them.

    Attributes:
        alias: of the cluster, in the flows of MirrorMaker.
        partitions: how many partitions each topic has, by its name.
    """

    alias: str
    partitions: Mapping[str, int]


@attrs.frozen
class MirrorFlow:
    """A flow that is enabled, as it is configured.

    Attributes:
        source: the alias of the cluster that it reads.
        target: the alias of the cluster that it writes to.
        policy: how it names mirrors; its aliases, if there are any, are those of all clusters.
        topic_filter: which topics it mirrors; None if that is not known.
        heartbeats_replication_enabled: whether topics of heartbeats pass whatever the filter says.
    """

    source: str
    target: str
    policy: NamingPolicy
    topic_filter: TopicFilter | None = None
    heartbeats_replication_enabled: bool = True

    def mirrors(self, topic: str) -> bool:
        """Whether it mirrors a topic of its source; never if its filter is not known."""
        if self.topic_filter is None:
            return False
        enabled = self.heartbeats_replication_enabled
        return should_replicate(
            topic, self.policy, self.target, self.topic_filter, heartbeats_replication_enabled=enabled
        )

    def keeps_name(self, topic: str) -> bool:
        """Whether the mirror of a topic has the same name."""
        return self.policy.format_remote_topic(self.source, topic) == topic


def find_cycles(
    source: ClusterTopics, target: ClusterTopics, policy: NamingPolicy, flows: Iterable[MirrorFlow] = ()
) -> tuple[MirrorFinding, ...]:
    """Return the topics that were mirrored back to where they came from, by cluster and name.

    A name shows it if it has the alias of the topic's own cluster among its sources. Under the identity policy names
    do not; there, two flows show it that copy one name both ways.

    Args:
        source: one cluster.
        target: the other.
        policy: how mirrors are named; only its aliases, if it has any, are taken for sources.
        flows: those that are enabled, at most one from one cluster to another.
    """
    found = []
    for cluster in (source, target):
        for topic in sorted(cluster.partitions):
            if cluster.alias in _sources(topic, policy):
                reason = f"topic {topic} of cluster {cluster.alias} comes from that cluster itself"
                found.append(MirrorFinding(_CYCLE, topic, reason))
    by_clusters = {(each.source, each.target): each for each in flows}
    there = by_clusters.get((source.alias, target.alias))
    back = by_clusters.get((target.alias, source.alias))
    for topic in sorted(set(source.partitions) & set(target.partitions)) if there and back else ():
        if all(each is not None and each.mirrors(topic) and each.keeps_name(topic) for each in (there, back)):
            reason = f"{source.alias} -> {target.alias} and {target.alias} -> {source.alias} both mirror {topic}"
            found.append(MirrorFinding(_CYCLE, topic, f"{reason}, under the same name"))
    return tuple(found)


def find_unpaired(
    source: ClusterTopics, target: ClusterTopics, flow: MirrorFlow, mirrored: Iterable[str] = ()
) -> tuple[MirrorFinding, ...]:
    """Return the topics without a mirror, the mirrors with another number of partitions, and those without a source.

    Args:
        source: the cluster that the flow reads.
        target: the cluster that it writes to.
        flow: from one to the other.
        mirrored: names of topics of the source that were mirrored, as offset syncs or Connect's offsets have them. If
            names do not change, a topic of the target is taken for a mirror only if it is one of these.
    """
    names = set(mirrored)
    found = [*_without_mirror(source, target, flow, names)]
    for topic in sorted(target.partitions):
        upstream = _upstream(topic, flow, names)
        if upstream is not None and upstream not in source.partitions:
            reason = f"{topic} is a mirror of {upstream}, which cluster {source.alias} does not have"
            found.append(MirrorFinding(_UNPAIRED, topic, reason))
    return tuple(found)


def _without_mirror(
    source: ClusterTopics, target: ClusterTopics, flow: MirrorFlow, mirrored: set[str]
) -> Iterator[MirrorFinding]:
    for topic, count in sorted(source.partitions.items()):
        remote = flow.policy.format_remote_topic(source.alias, topic)
        found = target.partitions.get(remote)
        is_pair = flow.mirrors(topic) if flow.topic_filter else remote != topic or topic in mirrored
        if found is None and flow.mirrors(topic):
            yield MirrorFinding(_UNPAIRED, topic, f"cluster {target.alias} has no mirror {remote} of it")
        elif is_pair and found not in (None, count):
            reason = f"it has partitions: {count}, and its mirror {remote}: {found}"
            yield MirrorFinding(_UNPAIRED, topic, reason)


def _sources(topic: str, policy: NamingPolicy) -> Iterator[str]:
    """Yield the clusters that a topic's name says it came through; none if its upstream topic has the same name."""
    found = classify(topic, policy)
    while found.source is not None and found.upstream is not None and found.upstream != topic:
        yield found.source
        topic = found.upstream
        found = classify(topic, policy)


def _upstream(topic: str, flow: MirrorFlow, mirrored: set[str]) -> str | None:
    """Return the name that a topic of the target has on the source, if it is a mirror of this flow."""
    found = classify(topic, flow.policy)
    if found.source != flow.source or (found.upstream == topic and topic not in mirrored):
        return None
    return found.upstream
