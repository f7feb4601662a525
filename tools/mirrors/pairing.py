# SPDX-License-Identifier: Apache-2.0
"""Which partition of a cluster mirrors which one of another."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from raftlog.tools.mirrors.following import MirrorFinding
from raftlog.tools.mirrors.naming import DefaultPolicy, IdentityPolicy, TopicKind, classify

_MOST_NAMES: Final = 5
_OWN: Final = "__"


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


def find_same_names(source: Mapping[str, Sequence[int]], target: Mapping[str, Sequence[int]]) -> Iterator[MirrorPair]:
    """Yield the partitions that are in both clusters under one name, by topic and partition.

    Topics that each cluster has for itself are no pairs.

    Args:
        source: the numbers of the partitions that are here, by topic, of the cluster that is mirrored.
        target: the same of the cluster that has the mirror.
    """
    for topic in sorted(set(source) & set(target)):
        if not is_own(topic):
            for partition in sorted(set(source[topic]) & set(target[topic])):
                yield MirrorPair(topic, topic, partition)


def is_own(topic: str) -> bool:
    """Whether each cluster has a topic of a name for itself, as ``__consumer_offsets``: no mirror has its offsets."""
    return topic.startswith(_OWN)


def find_missing_names(
    files: tuple[Mapping[str, Collection[int]], Mapping[str, Collection[int]]],
    named: Sequence[Mapping[str, Collection[int]]] = (),
) -> Iterator[MirrorFinding]:
    """Yield the partitions that one cluster has, and the other one not under the same name; by topic.

    Args:
        files: the numbers of the partitions that are here, by topic, of the source and of the target.
        named: likewise, what the metadata of both have; nothing if the metadata of one are not here.
    """
    for topic in sorted({name for each in (*files, *named) for name in each if not is_own(name)}):
        for side, here, there in (("source", 0, 1), ("target", 1, 0)):
            missing = set(files[there].get(topic, ()))
            if named:
                missing |= set(named[there].get(topic, ())).difference(named[here].get(topic, ()))
            numbers = missing.difference(files[here].get(topic, ()))
            if numbers:
                reason = f"the given directories of the {side} do not have {_some(topic, numbers)}"
                yield MirrorFinding("mirror.unpaired", topic, reason)


def find_pairs(
    source: Mapping[str, Sequence[int]],
    target: Mapping[str, Sequence[int]],
    policy: DefaultPolicy | IdentityPolicy,
    source_alias: str,
    synced: Iterable[str],
) -> Iterator[MirrorPair]:
    """Yield the pairs whose partitions are in both clusters, by topic and partition.

    Args:
        source: the numbers of the partitions that are here, by topic, of the cluster that is mirrored.
        target: the same of the cluster that has the mirror.
        policy: names mirrors; its aliases are those of the two clusters.
        source_alias: of the cluster that is mirrored.
        synced: the topics of the source that have offset syncs.
    """
    for upstream, topic in _mirrors(target, policy, source_alias, synced):
        for partition in sorted(set(source.get(upstream, ())) & set(target.get(topic, ()))):
            yield MirrorPair(upstream, topic, partition)


def find_one_sided(
    source: Mapping[str, Sequence[int]],
    target: Mapping[str, Sequence[int]],
    policy: DefaultPolicy | IdentityPolicy,
    source_alias: str,
    synced: Collection[tuple[str, int]],
) -> Iterator[MirrorFinding]:
    """Yield the partitions that cannot be compared, as the log of one side is not here, or neither is; by topic.

    Args:
        source: the numbers of the partitions that are here, by topic, of the cluster that is mirrored.
        target: the same of the cluster that has the mirror.
        policy: names mirrors; its aliases are those of the two clusters.
        source_alias: of the cluster that is mirrored.
        synced: topic and partition of the source of all offset syncs.
    """
    named: dict[str, set[int]] = defaultdict(set)
    for topic, partition in synced:
        named[topic].add(partition)
    for upstream, mirror in _mirrors(target, policy, source_alias, named):
        ours, theirs = set(source.get(upstream, ())), set(target.get(mirror, ()))
        for words, topic, numbers in (
            ("the given directories of the target do not have {}, the mirror of {}", mirror, ours - theirs),
            ("the given directories of the source do not have {1}, whose mirror is {0}", mirror, theirs - ours),
            (
                "offset syncs name {}, and no given directory has it or its mirror",
                upstream,
                named[upstream] - ours - theirs,
            ),
        ):
            if numbers:
                reason = words.format(_some(topic, numbers), _some(upstream, numbers))
                yield MirrorFinding("mirror.unpaired", upstream, reason)


def _mirrors(
    target: Iterable[str], policy: DefaultPolicy | IdentityPolicy, source_alias: str, synced: Iterable[str]
) -> Sequence[tuple[str, str]]:
    """Return the topics that are mirrored, each with the name of its mirror."""
    mirrors = {topic: policy.format_remote_topic(source_alias, topic) for topic in synced}
    for topic in target:
        found = classify(topic, policy)
        is_mirror = found.kind in {TopicKind.REMOTE, TopicKind.MM2_HEARTBEATS} and found.source == source_alias
        if is_mirror and found.upstream and not isinstance(policy, IdentityPolicy):
            mirrors.setdefault(found.upstream, topic)
    return sorted(mirrors.items())


def _some(topic: str, numbers: Collection[int]) -> str:
    """Return the names of some partitions."""
    names = [f"{topic}-{number}" for number in sorted(numbers)[:_MOST_NAMES]]
    more = len(numbers) - len(names)
    return ", ".join(names) + (f" and {more:,} more" if more else "")
