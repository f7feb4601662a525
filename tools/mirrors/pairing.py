# SPDX-License-Identifier: Apache-2.0
"""Which partition of a cluster mirrors which one of another."""

from collections.abc import Iterator, Mapping, Sequence

import attrs

from raftlog.tools.mirrors.naming import DefaultPolicy, IdentityPolicy, TopicKind, classify


@attrs.frozen(order=True)
class MirrorPair:
    """A partition and its mirror.

    Attributes:
        source: the topic in the cluster that is mirrored.
        target: the topic in the cluster that has the mirror.
        partition: the number of both partitions.
    """

    source: str
    target: str
    partition: int

    def __str__(self) -> str:
        return f"{self.source}-{self.partition} -> {self.target}-{self.partition}"


def find_same_names(
    source: Mapping[str, Sequence[int]], target: Mapping[str, Sequence[int]], policy: IdentityPolicy
) -> Iterator[MirrorPair]:
    """Yield the partitions that are in both clusters under one name, by topic and partition.

    Topics that each cluster has for itself, such as ``__consumer_offsets``, are no pairs.

    Args:
        source: the numbers of the partitions that are here, by topic, of the cluster that is mirrored.
        target: the same of the cluster that has the mirror.
        policy: says which topics a cluster has for itself.
    """
    for topic in sorted(set(source) & set(target)):
        if classify(topic, policy).kind in {TopicKind.REMOTE, TopicKind.LOCAL}:
            for partition in sorted(set(source[topic]) & set(target[topic])):
                yield MirrorPair(topic, topic, partition)


def find_pairs(
    source: Mapping[str, Sequence[int]],
    target: Mapping[str, Sequence[int]],
    policy: DefaultPolicy | IdentityPolicy,
    source_alias: str,
    synced: Sequence[str],
) -> Iterator[MirrorPair]:
    """Yield the pairs whose partitions are in both clusters, by topic and partition.

    Args:
        source: the numbers of the partitions that are here, by topic, of the cluster that is mirrored.
        target: the same of the cluster that has the mirror.
        policy: names mirrors; its aliases are those of the two clusters.
        source_alias: of the cluster that is mirrored.
        synced: the topics of the source that have offset syncs.
    """
    mirrors = {topic: policy.format_remote_topic(source_alias, topic) for topic in synced}
    for topic in target:
        found = classify(topic, policy)
        is_mirror = found.kind in {TopicKind.REMOTE, TopicKind.MM2_HEARTBEATS} and found.source == source_alias
        if is_mirror and found.upstream and not isinstance(policy, IdentityPolicy):
            mirrors.setdefault(found.upstream, topic)
    for upstream, topic in sorted(mirrors.items()):
        for partition in sorted(set(source.get(upstream, ())) & set(target.get(topic, ()))):
            yield MirrorPair(upstream, topic, partition)
