# SPDX-License-Identifier: Apache-2.0
"""Segments beside each other, and where a log ends, on evidence made by hand."""

from collections.abc import Mapping

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.offsets import EpochEntry
from raftlog.records.files.file_names import FileKind
from raftlog.storage.recovery.recovery_point import FlushMark, RecoveryPoint
from raftlog.tools.auditing.evidence import (
    EpochSeen,
    FileEvidence,
    LogExtent,
    PartitionEvidence,
    Place,
    SurveyTask,
)
from raftlog.tools.auditing.judgement.judgement import judge
from raftlog.tools.auditing.judgement.segment_rules import (
    explained_elsewhere,
    has_lost_tail,
    holes_between,
    judge_log_end,
    judge_segments,
    misnamed_segments,
)
from raftlog.tools.auditing.survey.small_file_survey import survey_small_file
from raftlog.tools.catalogue.findings import Finding
from tests.flush_marks import slot_of

RAFT = Place("node", "__cluster_metadata", 0)
TOPIC = Place("node", "orders", 3)
INDEXES = {FileKind.OFFSET_INDEX: "x.index", FileKind.TIME_INDEX: "x.timeindex"}


def segment(
    base_offset: int,
    end_offset: int,
    *,
    place: Place = RAFT,
    start_offset: int | None = None,
    path: str | None = None,
    size_bytes: int = 500,
    indexes: Mapping[FileKind, str] = INDEXES,
    finding: str | None = None,
    epoch: int = 4,
) -> FileEvidence:
    """Return a segment that ends at an offset, exclusive; a finding is about its last 100 bytes."""
    name = path or f"{base_offset:020}.log"
    task = SurveyTask(
        place,
        name,
        FileKind.LOG,
        base_offset=base_offset,
        is_raft=place is RAFT,
        indexes=indexes,
        size_bytes=size_bytes,
    )
    start = base_offset if start_offset is None else start_offset
    extent = LogExtent(start, end_offset, epoch, epoch, -1, 1, 1) if end_offset > start else None
    findings = () if finding is None else (Finding(name, finding, "", size_bytes - 100, 100),)
    return FileEvidence(task, findings, extent=extent)


def log(*files: FileEvidence) -> PartitionEvidence:
    """Return a log."""
    return PartitionEvidence(files[0].task.place, files)


def judged(evidence: PartitionEvidence) -> list[tuple[str, str, int | None]]:
    """Return rules, paths and offsets."""
    return [(finding.rule, finding.path, finding.offset) for finding in judge_segments(evidence)]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6), st.booleans())
def test_consecutive_segments(sizes: list[int], is_raft: bool) -> None:
    """A log without gaps has no findings, also where its last segment is empty; one without its middle has one."""
    place = RAFT if is_raft else TOPIC
    segments, offset = [], 7
    for size in (*(size + 1 for size in sizes[:-1]), sizes[-1]):
        segments.append(segment(offset, offset + size, place=place))
        offset += size
    assert judged(log(*segments)) == []
    for index in range(1, len(segments) - 1):
        left = [*segments[:index], *segments[index + 1 :]]
        after = segments[index + 1].task
        (found,) = judged(log(*left))
        rule = "segment-gap" if is_raft else "offset-compacted"
        assert found == (rule, after.path, segments[index].task.base_offset)


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        pytest.param(
            log(segment(0, 10), segment(8, 20)), [("segment-overlap", f"{8:020}.log", 8)], id="offsets in two segments"
        ),
        pytest.param(
            log(segment(0, 10, place=TOPIC), segment(5, 20, start_offset=10, place=TOPIC)),
            [("segment-start", f"{5:020}.log", 10)],
            id="a name that is too low",
        ),
        pytest.param(
            log(segment(0, 10), segment(5, 20, start_offset=10)),
            [("segment-start", f"{5:020}.log", 10)],
            id="in raft, a name that is too low",
        ),
        pytest.param(
            log(segment(0, 10), segment(15, 20, start_offset=10)), [], id="a name that is too high, which is reported"
        ),
        pytest.param(log(segment(0, 10, finding="batch-crc"), segment(15, 20)), [], id="a gap that damage explains"),
        pytest.param(
            log(segment(0, 10, finding="tail-torn"), segment(15, 20)),
            [("segment-gap", f"{15:020}.log", 10)],
            id="a tail that is torn where no crash tears it",
        ),
        pytest.param(
            log(segment(0, 10), segment(0, 10, path="0.log")),
            [("segment-twice", "0.log", 0)],
            id="one segment twice",
        ),
        pytest.param(
            log(segment(0, 10, size_bytes=1 << 31)), [("segment-size", f"{0:020}.log", None)], id="3 GiB and more"
        ),
        pytest.param(log(segment(0, 10, size_bytes=4096, indexes={})), [], id="too small for an index"),
        pytest.param(
            log(segment(0, 10, size_bytes=4097, indexes={})),
            [("index-missing", f"{0:020}.log", None)],
            id="no indexes",
        ),
    ],
)
def test_segments(evidence: PartitionEvidence, expected: list[tuple[str, str, int | None]]) -> None:
    """Each fault is one finding, at the segment that shows it."""
    assert judged(evidence) == expected


@pytest.mark.parametrize("rule", ["file-unreadable", "audit-failed"])
def test_a_segment_that_was_not_surveyed_may_have_held_anything(rule: str) -> None:
    """The segment after it is not a gap, and a log may have continued after it."""
    failed = FileEvidence(segment(10, 10).task, (Finding(f"{10:020}.log", rule, "it failed"),))

    assert judged(log(segment(0, 10), failed, segment(30, 40))) == []
    assert has_lost_tail(log(segment(0, 10), failed))


def small(name: str, data: bytes) -> FileEvidence:
    """Return one of raftlog's files."""
    return survey_small_file(SurveyTask(RAFT, f"node/{name}", None, is_raft=True), data)


def producer_snapshot(offset: int) -> FileEvidence:
    """Return a producer snapshot."""
    return FileEvidence(SurveyTask(RAFT, f"{offset:020}.snapshot", FileKind.PRODUCER_SNAPSHOT, base_offset=offset))


def checkpoint(start_offsets: dict[int, int]) -> FileEvidence:
    """Return a leader-epoch-checkpoint: the start offset of each epoch."""
    task = SurveyTask(RAFT, "leader-epoch-checkpoint", FileKind.LEADER_EPOCH_CHECKPOINT)
    return FileEvidence(task, epochs=tuple(EpochSeen(epoch, start) for epoch, start in start_offsets.items()))


def orphan(base_offset: int) -> FileEvidence:
    """Return an index without its segment."""
    name = f"{base_offset:020}.index"
    task = SurveyTask(RAFT, name, FileKind.OFFSET_INDEX, base_offset=base_offset)
    return FileEvidence(task, (Finding(name, "index-orphan", ""),))


def point(end_offset: int, generation: int = 2) -> FileEvidence:
    """Return a recovery point of epoch 4."""
    data = RecoveryPoint(end_offset, generation=generation, epochs=(EpochEntry(4, 0),)).encode()
    return small("raftlog-recovery-point", data)


def mark(end_offset: int, *, generation: int) -> FlushMark:
    """Return a flush mark: so much was durable in a generation of the log."""
    return FlushMark(generation, end_offset)


def marks(*both: FlushMark) -> FileEvidence:
    """Return the file of the two flush marks."""
    slots = [slot_of(each) for each in both]
    return small("raftlog-flush-mark", slots[0].ljust(4096, b"\0") + b"".join(slots[1:]))


WHOLE = segment(0, 50)


@pytest.mark.parametrize(
    ("evidence", "rule"),
    [
        pytest.param(log(WHOLE, producer_snapshot(50), checkpoint({4: 0})), None, id="nothing beyond"),
        pytest.param(log(WHOLE, checkpoint({4: 0, 5: 50})), None, id="an epoch to come"),
        pytest.param(log(WHOLE, producer_snapshot(60)), "log-end", id="a producer snapshot beyond"),
        pytest.param(log(WHOLE, checkpoint({4: 0, 5: 60})), "log-end", id="an epoch beyond"),
        pytest.param(log(WHOLE, checkpoint({4: 60})), None, id="an entry that is wrong"),
        pytest.param(log(segment(0, 50, finding="tail-torn"), producer_snapshot(60)), None, id="a torn tail"),
        pytest.param(log(segment(0, 50, finding="index-beyond"), producer_snapshot(60)), None, id="an index beyond"),
        pytest.param(log(WHOLE, producer_snapshot(60), orphan(50)), None, id="a segment that is lost"),
        pytest.param(
            log(WHOLE, point(50), marks(mark(50, generation=2), mark(49, generation=2))),
            None,
            id="durable as far as it goes",
        ),
        pytest.param(log(WHOLE, point(51)), "log-end-durable", id="a recovery point beyond"),
        pytest.param(
            log(WHOLE, point(40), marks(mark(41, generation=2), mark(51, generation=2))),
            "log-end-durable",
            id="a mark beyond",
        ),
        pytest.param(
            log(WHOLE, point(40), marks(mark(60, generation=1), mark(45, generation=2))),
            None,
            id="a mark that was taken back",
        ),
        pytest.param(
            log(WHOLE, marks(mark(40, generation=1), mark(60, generation=1))), "log-end-durable", id="a mark alone"
        ),
        pytest.param(log(segment(0, 50, epoch=5), point(60)), None, id="a log that Kafka wrote since"),
        pytest.param(log(segment(0, 50, finding="tail-torn"), point(60)), "log-end-durable", id="torn, and durable"),
        pytest.param(log(producer_snapshot(60)), None, id="no log"),
    ],
)
def test_where_a_log_ends(evidence: PartitionEvidence, rule: str | None) -> None:
    """Files that saw a later log end are reported once; a durable end in any case."""
    found = list(judge_log_end(evidence))
    assert [finding.rule for finding in found] == ([] if rule is None else [rule])
    assert all(finding.offset == 50 for finding in found)


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (log(WHOLE), False),
        (log(segment(0, 50, finding="tail-torn")), True),
        (log(segment(0, 50, finding="tail-zero")), True),
        (log(segment(0, 50, finding="timestamp-max")), False),
        (log(segment(0, 50, finding="batch-crc"), segment(50, 60)), False),
        (log(WHOLE, orphan(50)), True),
        (log(WHOLE, orphan(0)), False),
    ],
)
def test_a_lost_tail(evidence: PartitionEvidence, expected: bool) -> None:
    """A tail is lost if bytes, or a segment, follow the last batch."""
    assert has_lost_tail(evidence) is expected


def test_a_damaged_tail_that_was_durable_is_one_finding() -> None:
    """Damage at the end of what was durable is data loss, and its reason says how the bytes are damaged."""
    torn = log(segment(0, 50, finding="tail-torn", path="node/__cluster_metadata-0/0.log"), point(60))
    ends = {"tail-torn", "log-end-durable"}
    (found,) = (finding for finding in judge([torn]) if finding.rule in ends)
    assert (found.rule, "tail-torn" in found.reason) == ("log-end-durable", True)
    kept = log(segment(0, 50, finding="tail-torn"), point(50))
    assert [finding.rule for finding in judge([kept]) if finding.rule in ends] == ["tail-torn"]


def test_a_torn_segment_that_another_one_follows_is_one_finding() -> None:
    """Missing records after it are data loss in a raft log, and otherwise reported with the tail itself."""
    path = "node/__cluster_metadata-0/0.log"
    following = segment(15, 20, path="node/__cluster_metadata-0/15.log")
    torn = log(segment(0, 10, finding="tail-torn", path=path), following)
    (found,) = (finding for finding in judge([torn]) if finding.rule in {"tail-torn", "segment-gap"})
    assert (found.rule, "tail-torn" in found.reason) == ("segment-gap", True)
    torn = log(segment(0, 10, finding="tail-torn", place=TOPIC), segment(15, 20, place=TOPIC))
    assert list(holes_between(torn)) == []


def test_a_gap_of_offsets_that_are_out_of_line_is_explained() -> None:
    """A segment whose batches are numbered too low ends too early, by as many offsets as are reported, or less."""
    short = attrs.evolve(segment(0, 10), stray_offsets=2)
    assert judged(log(short, segment(12, 20))) == []
    assert judged(log(short, segment(13, 20))) == [("segment-gap", f"{13:020}.log", 10)]
    assert list(judge_log_end(log(short, producer_snapshot(12)))) == []
    assert [finding.rule for finding in judge_log_end(log(short, producer_snapshot(13)))] == ["log-end"]


def test_only_what_reaches_the_end_is_its_tail() -> None:
    """Damage followed by sound batches is not a tail; of several faults in a row at the end, each is part of it."""
    last = segment(0, 50, finding="tail-torn")
    path = last.task.path
    rest = (Finding(path, "batch-crc", "", 100, 50), Finding(path, "batch-length", "", 350, 50), *last.findings)
    damaged = attrs.evolve(last, findings=rest)
    durable = [Finding(path, "log-end-durable", "")]
    assert [finding.rule for finding in explained_elsewhere(log(damaged), durable)] == ["batch-length", "tail-torn"]
    assert list(explained_elsewhere(log(damaged), [])) == []
    assert list(explained_elsewhere(log(segment(0, 50, finding="timestamp-max")), durable)) == []
    assert list(explained_elsewhere(log(producer_snapshot(60)), durable)) == []


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        pytest.param(log(segment(0, 10), segment(5, 20, start_offset=10)), [5], id="the next one begins there"),
        pytest.param(log(segment(0, 10), segment(5, 20, start_offset=11)), [], id="a record of raft is missing"),
        pytest.param(log(segment(0, 10), segment(10, 20)), [], id="named as it should be"),
        pytest.param(log(segment(0, 10), segment(5, 20, start_offset=9)), [], id="an overlap"),
        pytest.param(log(segment(5, 20, start_offset=10)), [], id="no snapshot"),
        pytest.param(
            log(segment(0, 10, place=TOPIC), segment(5, 20, start_offset=10, place=TOPIC)), [5], id="of a topic"
        ),
        pytest.param(
            log(segment(0, 10, place=TOPIC), segment(9, 20, start_offset=12, place=TOPIC)), [9], id="compacted"
        ),
        pytest.param(
            log(segment(0, 10, place=TOPIC), segment(10, 20, start_offset=12, place=TOPIC)), [], id="compacted only"
        ),
        pytest.param(
            log(segment(0, 0, place=TOPIC), segment(10, 20, start_offset=12, place=TOPIC)),
            [],
            id="compacted, and nothing is left of the first segment",
        ),
    ],
)
def test_a_name_below_the_end_of_the_segment_before_is_wrong(evidence: PartitionEvidence, expected: list[int]) -> None:
    """A segment starts where the one before it ends, but its name is lower: then no record is missing."""
    found = list(judge_segments(evidence))
    assert [each.base_offset for each in misnamed_segments(evidence)] == expected
    assert [finding.path for finding in found if finding.rule == "segment-start"] == [
        f"{at:020}.log" for at in expected
    ]
    assert not expected or {finding.rule for finding in found} == {"segment-start"}


def test_what_follows_from_a_name_that_is_too_low_is_no_finding() -> None:
    """The gap before its first batch, wrong index entries and indexes that kept their name are explained by it."""
    renamed = segment(5, 20, start_offset=10)
    path = renamed.task.path
    own = (
        Finding(path, "offset-gap", "", 0, offset=10),
        Finding("x.index", "index-entry", "", 0),
        Finding(path, "offset-gap", "", 70, offset=15),
        Finding(path, "batch-crc", "", 90),
    )
    evidence = log(segment(0, 10), attrs.evolve(renamed, findings=own), orphan(10), orphan(40))
    said = list(judge_segments(evidence))
    explained = [(finding.rule, finding.position) for finding in explained_elsewhere(evidence, said)]
    assert explained == [("offset-gap", 0), ("index-entry", 0), ("index-orphan", None)]
