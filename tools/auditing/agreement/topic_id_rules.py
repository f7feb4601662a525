# SPDX-License-Identifier: Apache-2.0
"""Compares the topic ids of partitions: a topic has one id, on all nodes and in all partitions, and no other has it."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import attrs

from raftlog.records.files.file_names import FileKind
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence
from raftlog.tools.auditing.history.histories import by_history
from raftlog.tools.auditing.history.log_directories import by_cluster, log_directories
from raftlog.tools.catalogue.findings import Finding

_FEW: Final = 3
"""Up to so many topics of a log directory that have ids of their own are reported one by one."""


@attrs.frozen
class _Named:
    """A topic's id, as a file says.

    Attributes:
        file: the partition.metadata.
        topic: its topic.
        topic_id: the id in it.
    """

    file: FileEvidence
    topic: str
    topic_id: str

    @property
    def log_directory(self) -> str:
        return self.file.task.place.log_directory


def judge_topic_ids(evidence: Sequence[PartitionEvidence]) -> Iterator[Finding]:
    """Report each partition.metadata whose topic id contradicts the others of its cluster.

    If most topics of a log directory do, that is one finding: the directory belongs to another cluster, though it may
    have the same cluster id. Directories whose metadata logs show that they belong to two clusters are not compared.

    Args:
        evidence: all log directories, and the partitions in them. Files with findings are left out, and so are
            partitions whose files were named one by one.
    """
    directories = log_directories(evidence)
    named = [each for each in map(_named, evidence) if each is not None]
    logs: dict[str | None, list[PartitionEvidence]] = {}
    for log in (each for each in evidence if each.is_raft):
        logs.setdefault(directories[log.place.log_directory].cluster_id, []).append(log)
    for of_one_id in by_cluster(named, lambda each: directories[each.log_directory].cluster_id).values():
        cluster_ids = dict.fromkeys(directories[each.log_directory].cluster_id for each in of_one_id)
        history = _histories(log for cluster_id in cluster_ids for log in logs.get(cluster_id, ()))
        of_one_cluster: dict[int, list[_Named]] = {}
        for each in of_one_id:
            of_one_cluster.setdefault(history.get(each.log_directory, 0), []).append(each)
        for together in of_one_cluster.values():
            yield from _judge(together)


def topic_id_file(partition: PartitionEvidence) -> FileEvidence | None:
    """Return the file with a partition's topic id; None if it cannot be read, or has a finding."""
    file = partition.small_file(FileKind.PARTITION_METADATA)
    return None if file is None or file.findings or file.contents is None else file


def _named(partition: PartitionEvidence) -> _Named | None:
    file = topic_id_file(partition)
    is_named_alone = any(each.task.was_named for each in partition.files)
    if file is None or file.contents is None or is_named_alone or partition.place.partition < 0:
        return None  # A directory without a partition's number is a copy in the making, or was set aside.
    return _Named(file, partition.place.topic, file.contents["topic_id"])


def _histories(logs: Iterable[PartitionEvidence]) -> dict[str, int]:
    """Return, by log directory, the number of the history that its metadata log is of."""
    numbered = enumerate(by_history(logs, lambda log: log))
    return {log.place.log_directory: number for number, logs_of_one in numbered for log in logs_of_one}


def _judge(named: Sequence[_Named]) -> Iterator[Finding]:
    by_topic: dict[str, list[_Named]] = {}
    for each in named:
        by_topic.setdefault(each.topic, []).append(each)
    usual = {topic: _usual(each.topic_id for each in files) for topic, files in by_topic.items()}
    foreign = dict(_foreign_directories(named, usual))
    for directory in foreign:
        yield foreign[directory]
    rest = [each for each in named if each.log_directory not in foreign]
    for each in rest:
        if each.topic_id != usual[each.topic]:
            others = sum(other.topic_id == usual[each.topic] for other in by_topic[each.topic])
            of_others = "another file of the topic has" if others == 1 else f"{others} other files of the topic have"
            reason = f"the topic id is {each.topic_id}, but {of_others} {usual[each.topic]}"
            yield Finding(each.file.task.path, "topic-id", reason)
    yield from _judge_shared([each for each in rest if each.topic_id == usual[each.topic]])


def _usual(topic_ids: Iterable[str]) -> str:
    return Counter(topic_ids).most_common(1)[0][0]


def _foreign_directories(named: Iterable[_Named], usual: dict[str, str]) -> Iterator[tuple[str, Finding]]:
    """Yield the log directories most topics of which have other ids than elsewhere, each with its finding."""
    by_directory: dict[str, list[_Named]] = {}
    for each in named:
        by_directory.setdefault(each.log_directory, []).append(each)
    for directory, files in by_directory.items():
        topics = {each.topic for each in files}
        other = {each.topic: each for each in reversed(files) if each.topic_id != usual[each.topic]}
        if len(other) > max(_FEW, len(topics) // 2):
            first, names = next(reversed(other.values())), ", ".join(itertools.islice(sorted(other), _FEW))
            count = f"{len(other)} of the {len(topics)} topics in {directory}"
            reason = f"{count} have other topic ids than elsewhere, such as {names}: it belongs to another cluster"
            yield directory, Finding(first.file.task.path, "topic-id", reason)


def _judge_shared(named: Iterable[_Named]) -> Iterator[Finding]:
    """Report topics with the id of another topic: that which fewer files name, or the later one by name."""
    by_id: dict[str, dict[str, list[_Named]]] = {}
    for each in named:
        by_id.setdefault(each.topic_id, {}).setdefault(each.topic, []).append(each)
    for topic_id, topics in by_id.items():
        if len(topics) > 1:
            owner, *others = sorted(topics, key=lambda topic: (-len(topics[topic]), topic))
            for topic in others:
                first, count = topics[topic][0], len(topics[topic])
                more = f", and in {count - 1} more files of the topic" if count > 1 else ""
                reason = f"the topic id {topic_id} is that of topic {owner} in {topics[owner][0].file.task.path}{more}"
                yield Finding(first.file.task.path, "topic-id", reason)
