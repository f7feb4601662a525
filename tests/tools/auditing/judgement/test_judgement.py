# SPDX-License-Identifier: Apache-2.0
"""Putting judgements together: one partition of all replicas at a time, in an order that the evidence alone decides."""

import itertools
import random
from collections.abc import Iterable, Iterator, Sequence

from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.files.file_names import FileKind
from raftlog.tools.auditing.evidence import FileEvidence, LogExtent, PartitionEvidence, Place, SurveyTask, in_partitions
from raftlog.tools.auditing.judgement.judgement import Judges, in_order, judge, judge_in_groups
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.input.coverage import Coverage


def file(node: str, topic: str = "", partition: int = -1, **options: object) -> FileEvidence:
    """The evidence of a segment, or of a node's meta.properties that names its cluster."""
    cluster = options.pop("cluster", None)
    kind = FileKind.LOG if topic else FileKind.META_PROPERTIES
    path = f"{node}/{topic}-{partition}/{options.pop('name', 0):020}.log" if topic else f"{node}/meta.properties"
    task = SurveyTask(Place(node, topic, partition), path, kind, base_offset=0, **options)  # type: ignore[arg-type]
    return FileEvidence(
        task, (Finding(path, "tail-torn", "survey"),), contents=None if topic else {"cluster_id": cluster}
    )


def judges() -> Judges:
    """Judges that say what they were given."""

    def partition(evidence: PartitionEvidence) -> Iterator[Finding]:
        yield Finding(evidence.files[0].task.path, "segment-gap", f"{len(evidence.files)} files")

    def replicas(evidence: Sequence[PartitionEvidence]) -> Iterator[Finding]:
        nodes = [each.place.log_directory for each in evidence]
        yield Finding(evidence[0].files[0].task.path, "replica-batch", " ".join(nodes))

    def directories(evidence: Sequence[PartitionEvidence]) -> Iterator[Finding]:
        yield Finding("all", "node-twice", " ".join(str(len(each.files)) for each in evidence))

    return Judges(partition, replicas, directories)


def reasons(files: Iterable[FileEvidence]) -> list[tuple[str, str]]:
    """The findings, in order."""
    return [(finding.rule, finding.reason) for finding in judge(in_partitions(files), judges())]


def test_each_rule_has_its_judge() -> None:
    """Each partition is judged, then its replicas together, and the directories at the end, with all log ends."""
    files = [
        file("n1", cluster="A"),
        file("n2", cluster="A"),
        *(file("n1", "t", 0, name=number) for number in range(3)),
        file("n2", "t", 0),
        file("n1", "t", 1),
    ]
    found = reasons(files)

    assert found.count(("tail-torn", "survey")) == 7
    assert [each for each in found if each[0] != "tail-torn"] == [
        ("replica-batch", "n1 n2"),
        ("segment-gap", "3 files"),
        ("segment-gap", "1 files"),
        ("replica-batch", "n1"),
        ("segment-gap", "1 files"),
        ("node-twice", "1 1 2 1 1"),  # Of the three segments the first and the last are kept.
    ]


def test_clusters_are_not_compared() -> None:
    """Partitions of one name in two clusters are not replicas; one without a cluster id belongs to the only cluster."""
    two = [file("n1", cluster="A"), file("n2", cluster="B"), *(file(node, "t", 0) for node in ("n1", "n2", "n3"))]
    one = [file("n1", cluster="A"), *(file(node, "t", 0) for node in ("n1", "n2"))]

    assert [reason for rule, reason in reasons(two) if rule == "replica-batch"] == ["n1", "n2", "n3"]
    assert [reason for rule, reason in reasons(one) if rule == "replica-batch"] == ["n1 n2"]


def test_named_files_are_not_judged_as_a_partition() -> None:
    """If files were named one by one, others are not reported as missing."""
    found = reasons([file("n1", "t", 0, was_named=True), file("n2", "t", 0)])

    assert [each for each in found if each[0] != "tail-torn"] == [
        ("replica-batch", "n2"),
        ("segment-gap", "1 files"),
        ("node-twice", "1 1"),
    ]


def test_little_is_kept() -> None:
    """Of a partition that is not raft's, only where the log ends is kept for the directories; of raft's all is."""
    seen: list[PartitionEvidence] = []
    given = [
        FileEvidence(
            SurveyTask(
                Place("n1", topic, 0), f"n1/{topic}/{number}.log", FileKind.LOG, base_offset=number, is_raft=is_raft
            ),
            (Finding("x", "tail-torn", "x"),),
            coverage=Coverage(number),
            extent=LogExtent(number, number + 1, 0, 0, 0, 1, 1),
        )
        for topic, is_raft in (("__cluster_metadata", True), ("t", False))
        for number in range(5)
    ]

    def keep(evidence: Sequence[PartitionEvidence]) -> Iterator[Finding]:
        seen.extend(evidence)
        yield from ()

    list(judge(in_partitions(given), Judges(lambda _: (), lambda _: (), keep)))

    raft, other = seen
    assert [len(file.findings) for file in raft.files] == [1] * 5
    assert [(file.task.base_offset, file.findings) for file in other.files] == [(0, ()), (4, ())]
    assert [file.coverage for file in other.files] == [Coverage(0), Coverage(4)]
    assert (other.start_offset, other.end_offset) == (0, 5)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.none() | st.integers(0, 3), st.sampled_from(["x", "y"]))))
def test_the_order_is_that_of_the_findings_alone(places: list[tuple[str, int | None, str]]) -> None:
    """However findings come, they are put in one order: by path, position and rule; a whole file comes first."""
    findings = [Finding(path, f"rule-{rule}", "reason", position) for path, position, rule in places]
    ordered = in_order(findings)
    shuffled = list(findings)
    random.Random(1).shuffle(shuffled)

    assert in_order(shuffled) == ordered
    keys = [(f.path, -1 if f.position is None else f.position, f.rule) for f in ordered]
    assert keys == sorted(keys)


def test_evidence_is_asked_for_a_partition_at_a_time() -> None:
    """Groups are given as soon as the next partition begins: nothing waits for the end of the input."""
    taken = itertools.count()
    reached = 0

    def files() -> Iterator[FileEvidence]:
        nonlocal reached
        for number in range(1000):
            reached = next(taken)
            yield file("n1", "t", number)

    groups = judge_in_groups(in_partitions(files()), Judges(lambda _: (), lambda _: (), lambda _: ()))
    for number, group in zip(range(10), groups, strict=False):
        assert group.places[0].place.partition == number
        assert reached <= number + 2
