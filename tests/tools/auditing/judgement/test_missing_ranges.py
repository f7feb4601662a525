# SPDX-License-Identifier: Apache-2.0
"""Offsets that are missing outside of raft, and what may show that compaction took them."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.files.file_names import FileKind
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence, Place, SurveyTask
from raftlog.tools.auditing.judgement.missing_ranges import judge_holes
from raftlog.tools.catalogue.findings import Finding
from tests.strategies import TIMESTAMP
from tests.tools.auditing.made_segments import data_batch, survey

LISTED = PartitionEvidence(Place("logs"), (FileEvidence(SurveyTask(Place("logs"), "logs/x", None)),))
WITHOUT_5_TO_8 = (range(5), range(9, 10))
"""The offsets of two batches, with a hole between them."""


def compacted(*names: str) -> PartitionEvidence:
    """Return a log directory whose cleaner has compacted partition 0 of some topics; without any, it does not read."""
    task = SurveyTask(Place("logs"), "logs/cleaner", FileKind.CLEANER_OFFSET_CHECKPOINT)
    entries = [{"topic": name, "partition": 0, "offset": 1} for name in names]
    return PartitionEvidence(Place("logs"), (FileEvidence(task, contents={"entries": entries} if names else None),))


def segment(*batches: range, base_offset: int = 0, topic: str = "orders") -> FileEvidence:
    """Return the survey of batches, each with a record at each offset of a range."""
    log = b"".join(data_batch(offsets.start, count=len(offsets)) for offsets in batches)
    evidence = survey(log, base_offset, is_raft=False)
    place = Place("logs", topic, 0)
    return attrs.evolve(evidence, task=attrs.evolve(evidence.task, place=place, path=f"{base_offset}.log"))


def judged(*segments: FileEvidence, directory: PartitionEvidence | None = LISTED) -> list[Finding]:
    """Return what is said of a partition."""
    return list(judge_holes(PartitionEvidence(segments[0].task.place, segments), directory))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=12), st.integers(0, 12))
def test_holes_are_counted(steps: list[tuple[int, int]], split: int) -> None:
    """For batches with gaps between them, in one segment or two, the first gap is reported with their number."""
    batches, end, holes = [], 0, []
    for hole, count in steps:
        if hole:
            holes.append((end, hole))
        batches.append(range(end + hole, end + hole + count))
        end += hole + count
    parts = [part for part in (batches[:split], batches[split:]) if part]
    segments = [segment(*part, base_offset=part[0].start if number else 0) for number, part in enumerate(parts)]
    found = judged(*segments)
    assert [finding.offset for finding in found] == [offset for offset, _ in holes[:1]]
    for finding in found:
        counts = f"{sum(size for _, size in holes)} offsets are missing at {len(holes)} places"
        assert (finding.rule, finding.reason.startswith(counts)) == ("offset-missing", True)


def test_the_place_of_a_hole() -> None:
    """It is at the position of the batch after it."""
    (found,) = judged(segment(*WITHOUT_5_TO_8))
    assert (found.path, found.position, found.offset) == ("0.log", len(data_batch(0, count=5)), 5)


def spoiled(builder: RecordBatchBuilder, records: int) -> bytes:
    """Return a batch that compaction has been at."""
    builder.extend([(TIMESTAMP, b"key", b"x")] * records)
    return builder.build()


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param(spoiled(RecordBatchBuilder(20, last_offset_delta=5), 2), id="fewer records than offsets"),
        pytest.param(spoiled(RecordBatchBuilder(20, delete_horizon_ms=TIMESTAMP), 2), id="a delete horizon"),
    ],
)
def test_batches_that_explain_it(batch: bytes) -> None:
    """One batch that compaction has left its mark on shows that it was there."""
    evidence = survey(data_batch(0, count=5) + batch + data_batch(26), is_raft=False)
    assert evidence.holes is not None
    assert judged(evidence) == []


@pytest.mark.parametrize("directory", [None, compacted("orders"), compacted()])
def test_log_directories_that_explain_it(directory: PartitionEvidence | None) -> None:
    """Nothing is said where the cleaner's checkpoint names the partition, cannot be read, or was not looked for."""
    assert judged(segment(*WITHOUT_5_TO_8), directory=directory) == []


def test_another_partition_is_compacted() -> None:
    """That the cleaner was at work on others says nothing."""
    assert len(judged(segment(*WITHOUT_5_TO_8), directory=compacted("returns"))) == 1


@pytest.mark.parametrize(
    ("topic", "is_compacted"),
    [
        ("__consumer_offsets", True),
        ("__transaction_state", True),
        ("__share_group_state", True),
        ("my-connect-configs", True),
        ("mm2-offset-syncs.B.internal", True),
        ("A.heartbeats", True),
        ("sums-store-changelog", True),
        ("orders", False),
        ("internal-looking", False),
        ("connect", False),
    ],
)
def test_topics_that_are_compacted_by_name(topic: str, is_compacted: bool) -> None:
    """Some topics of Kafka and its tools are always compacted."""
    assert (judged(segment(*WITHOUT_5_TO_8, topic=topic)) == []) is is_compacted


def test_a_segment_that_lost_its_log_is_reported_as_that() -> None:
    """The remaining index of a segment between two others already shows it."""
    lost = FileEvidence(
        SurveyTask(Place("logs", "orders", 0), "5.index", FileKind.OFFSET_INDEX, base_offset=5),
        (Finding("5.index", "index-orphan", ""),),
    )
    assert judged(segment(range(5)), lost, segment(range(9, 10), base_offset=9)) == []
    assert len(judged(segment(range(5)), segment(range(9, 10), base_offset=9))) == 1


def test_batches_in_another_order_are_not_missing() -> None:
    """The records of two batches that changed places exist; missing ones are reported."""
    assert judged(segment(range(5), range(9, 10), range(5, 9), range(10, 11))) == []
    (found,) = judged(segment(range(5), range(9, 10), range(5, 8), range(10, 11)))
    assert (found.rule, found.offset) == ("offset-missing", 5)
