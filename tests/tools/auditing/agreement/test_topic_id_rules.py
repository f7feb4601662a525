# SPDX-License-Identifier: Apache-2.0
"""Topic ids over replicas, partitions and log directories."""

import attrs
import pytest

from raftlog.records.files.file_names import FileKind
from raftlog.tools.auditing.agreement.topic_id_rules import judge_topic_ids
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence, Place, SurveyTask
from raftlog.tools.auditing.judgement.judgement import judge
from raftlog.tools.catalogue.findings import Finding
from tests.tools.auditing.made_quorum import MadeLog
from tests.work_counts import calls_made


def partition(
    name: str, topic_id: str, topic: str = "orders", number: int = 0, *, finding: str | None = None
) -> PartitionEvidence:
    """Return a partition with its topic id."""
    place = Place(name, topic, number)
    path = f"{name}/{topic}-{number}/partition.metadata"
    task = SurveyTask(place, path, FileKind.PARTITION_METADATA)
    findings = () if finding is None else (Finding(path, finding, ""),)
    return PartitionEvidence(place, (FileEvidence(task, findings, contents={"version": 0, "topic_id": topic_id}),))


OTHER = partition("b", "y")


def directory(name: str, cluster_id: str) -> PartitionEvidence:
    """Return a log directory of a cluster."""
    place = Place(name)
    task = SurveyTask(place, f"{name}/meta.properties", FileKind.META_PROPERTIES)
    return PartitionEvidence(place, (FileEvidence(task, contents={"cluster_id": cluster_id, "node_id": 1}),))


def blamed(*evidence: PartitionEvidence) -> list[str]:
    """Return the partitions whose ids are reported."""
    found = list(judge_topic_ids(evidence))
    assert {finding.rule for finding in found} <= {"topic-id"}
    return [finding.path.removesuffix("/partition.metadata") for finding in found]


def test_a_topic_has_one_id() -> None:
    """The replica, or the partition, that has another one than most is reported, and which that is."""
    same = [partition("a", "x"), partition("b", "x")]
    assert blamed(*same, partition("c", "x", number=1)) == []
    (finding,) = judge_topic_ids([*same, partition("c", "y")])
    assert finding.path == "c/orders-0/partition.metadata"
    assert finding.reason == "the topic id is y, but 2 other files of the topic have x"
    assert blamed(partition("a", "x"), partition("a", "x", number=1), partition("a", "y", number=2)) == ["a/orders-2"]
    (finding,) = judge_topic_ids([partition("a", "x"), partition("a", "y", number=1)])
    assert finding.reason == "the topic id is y, but another file of the topic has x"


def test_an_id_is_of_one_topic() -> None:
    """Two topics with one id are one finding: at the topic with fewer files, or else the later one by name."""
    orders = [partition("a", "x"), partition("a", "x", number=1)]
    assert blamed(*orders, partition("a", "x", "bills")) == ["a/bills-0"]
    (finding,) = judge_topic_ids([partition("a", "x"), partition("a", "x", "bills"), partition("a", "z", "other")])
    assert finding.path == "a/orders-0/partition.metadata"
    assert finding.reason == "the topic id x is that of topic bills in a/bills-0/partition.metadata"
    (finding,) = judge_topic_ids([*orders, *(partition("a", "x", "a", number) for number in (0, 1, 2))])
    assert finding.reason.endswith("a/a-0/partition.metadata, and in 1 more files of the topic")


@pytest.mark.parametrize(("differing", "is_one"), [(3, False), (4, True), (7, True)])
def test_a_directory_of_another_cluster_is_one_finding(differing: int, is_one: bool) -> None:
    """If most topics of a log directory have other ids, it is not each topic that is wrong."""
    topics = [f"topic{number}" for number in range(7)]
    home = [partition(name, topic, topic) for name in "ab" for topic in topics]
    foreign = [
        partition("c", f"other {topic}" if number < differing else topic, topic) for number, topic in enumerate(topics)
    ]
    found = blamed(*home, *foreign)
    assert found == (["c/topic0-0"] if is_one else [f"c/topic{number}-0" for number in range(differing)])


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(partition("b", "y", finding="file-format"), id="a file with a finding"),
        pytest.param(partition("b", "y", "orders-0.0123-stray", -1), id="a directory that was set aside"),
        pytest.param(partition("b", "x", "orders-0.0123-future", -1), id="a copy in the making"),
        pytest.param(
            PartitionEvidence(
                Place("b", "orders", 0),
                tuple(attrs.evolve(each, task=attrs.evolve(each.task, was_named=True)) for each in OTHER.files),
            ),
            id="a file that was named alone",
        ),
    ],
)
def test_what_is_not_compared(other: PartitionEvidence) -> None:
    """An id that is known to be wrong, or that is not of a current partition."""
    assert blamed(partition("a", "x"), other) == []


def test_clusters_are_not_compared() -> None:
    """Topics of two clusters have two ids, whether the clusters have two names or one."""
    mine, theirs = partition("a", "x"), partition("b", "y")
    assert blamed(directory("a", "one"), directory("b", "two"), mine, theirs) == []
    assert blamed(directory("a", "one"), directory("b", "one"), mine, theirs) == ["b/orders-0"]
    logs = [MadeLog(node="a"), MadeLog(node="b")]
    logs[0].lead(1, (1, 2, 3))
    logs[1].lead(2, (1, 2, 3))
    logs[1].epochs = [attrs.evolve(seen, timestamp=seen.timestamp + 1) for seen in logs[1].epochs]
    same = [directory("a", "one"), directory("b", "one")]
    assert blamed(*same, *(log.evidence() for log in logs), mine, theirs) == []
    logs[1] = MadeLog(node="b")
    logs[1].lead(1, (1, 2, 3))
    assert blamed(*same, *(log.evidence() for log in logs), mine, theirs) == ["b/orders-0"]


def test_another_cluster_does_not_divide_one() -> None:
    """A log that shows nothing belongs with those of its cluster id, and not with any other log that it may fit."""
    other, empty, led = MadeLog(node="a"), MadeLog(node="b"), MadeLog(node="c")
    other.lead(2, (1, 2, 3))
    led.lead(1, (1, 2, 3))
    led.epochs = [attrs.evolve(seen, timestamp=seen.timestamp + 1) for seen in led.epochs]
    named = [directory("a", "one"), directory("b", "two"), directory("c", "two")]
    logs = [log.evidence() for log in (other, empty, led)]
    assert blamed(*named, *logs, partition("b", "x"), partition("c", "y")) == ["c/orders-0"]


def test_ids_are_compared_without_log_directories() -> None:
    """Partitions that were named as such are compared too."""
    assert [finding.rule for finding in judge([partition("a", "x"), partition("b", "y")])].count("topic-id") == 1


def test_twice_as_many_clusters_are_twice_the_work() -> None:
    """Topic ids, metadata logs and log directories are compared with those of their own cluster only."""

    def work(clusters: int) -> int:
        evidence: list[PartitionEvidence] = []
        for number in range(clusters):
            log = MadeLog(node=f"n{number:03}")
            log.lead(1, (1, 2, 3))
            evidence += [directory(log.node, f"cluster {number}"), log.evidence(), partition(log.node, "x")]
        evidence.sort(key=lambda each: (each.place.topic_partition, each.place))
        return calls_made(lambda: list(judge(evidence)))

    assert work(120) < 2.2 * work(60)
