# SPDX-License-Identifier: Apache-2.0
"""Differences of a pair in words: every kind has its rule, and names the places on both sides."""

import pytest

from raftlog.records.rules import Severity
from raftlog.tools.mirrors.comparing.differences import MirrorDifference, MirrorFault, OffsetRange
from raftlog.tools.mirrors.comparing.pair import PairCounts, PairResult
from raftlog.tools.mirrors.pair_findings import PairFinding, findings_of
from raftlog.tools.mirrors.pairing import MirrorPair
from raftlog.tools.mirrors.reading.clusters import Cluster, PartitionLog
from tests.tools.mirrors.changed_mirror import MIRROR

PAIR = MirrorPair("orders", "A.orders", 0)
ONE, TWO = OffsetRange(40, 41), OffsetRange(50, 53)


@pytest.fixture(scope="module")
def logs() -> tuple[PartitionLog, PartitionLog]:
    """Both logs of a real pair."""
    source = Cluster([str(MIRROR / "n1")]).log("orders", 0)
    target = Cluster([str(MIRROR / "n2")]).log("A.orders", 0)
    assert source is not None
    assert target is not None
    return source, target


def told(logs: tuple[PartitionLog, PartitionLog], *found: MirrorDifference, **counts: int) -> list[PairFinding]:
    """The findings of a result."""
    return list(findings_of(PAIR, logs, PairResult(found, PairCounts(**counts), 0, 0, 0, 1, 0)))


@pytest.mark.parametrize(
    ("difference", "rule", "words"),
    [
        (
            MirrorDifference(MirrorFault.LATE_START, OffsetRange(0, 5), OffsetRange(0, 0), 5),
            "mirror.late-start",
            "the mirror begins after offsets 0 to 4 of orders-0: 5 records were never mirrored",
        ),
        (
            MirrorDifference(MirrorFault.LOST, TWO, OffsetRange(50, 52), 1, is_open=True),
            "mirror.lost",
            "one of the equal records at offsets 50 to 52 of orders-0 is missing in A.orders-0 (offset 50)",
        ),
        (
            MirrorDifference(MirrorFault.LOST, TWO, OffsetRange(50, 50), 2),
            "mirror.lost",
            "2 records at offsets 50 to 52 of orders-0 are missing in A.orders-0 (offset 50)",
        ),
        (
            MirrorDifference(MirrorFault.LOST, TWO, OffsetRange(50, 50), 3),
            "mirror.lost",
            "offsets 50 to 52 of orders-0 are missing in A.orders-0 (offset 50)",
        ),
        (
            MirrorDifference(MirrorFault.DUPLICATE, ONE, TWO, 3),
            "mirror.duplicate",
            "offsets 50 to 52 of A.orders-0: the same as before offset 40 of orders-0, once more",
        ),
        (
            MirrorDifference(MirrorFault.COPIED_AGAIN, TWO, OffsetRange(60, 63), 3),
            "mirror.copied-again",
            "3 records at offsets 50 to 52 of orders-0 were mirrored again, to offsets 60 to 62 of A.orders-0, when"
            " another task went on",
        ),
        (
            MirrorDifference(MirrorFault.COPIED_AGAIN, TWO, OffsetRange(60, 63), 3, by_one_task=True),
            "mirror.copied-again",
            "3 records at offsets 50 to 52 of orders-0 were mirrored again, to offsets 60 to 62 of A.orders-0, when"
            " the task went back to offset 50, since its offset was out of range",
        ),
        (
            MirrorDifference(MirrorFault.PASSED_OVER, TWO, OffsetRange(50, 50), 3),
            "mirror.lost",
            "the task passed over offsets 50 to 52 of orders-0 before it mirrored to offset 50 of A.orders-0: its"
            " offset was out of range, since retention had removed them before they were mirrored",
        ),
        (
            MirrorDifference(MirrorFault.SOURCE_RECREATED, ONE, TWO, 3),
            "mirror.source-recreated",
            "orders-0 is another topic than the one that was mirrored to offsets 50 to 52 of A.orders-0: it was made"
            " anew",
        ),
        (
            MirrorDifference(MirrorFault.TARGET_SHRUNK, ONE, TWO, 3),
            "mirror.shrunk",
            "A.orders-0 has gone back to offset 50: it was cut, or made anew",
        ),
        (
            MirrorDifference(MirrorFault.LOST, TWO, ONE, 900, is_exact=False),
            "mirror.lost",
            "offsets 50 to 52 of orders-0 and offset 40 of A.orders-0 have too many differences to tell them apart",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("mirror.") else "",
)
def test_a_difference_is_told_by_its_rule(
    difference: MirrorDifference, rule: str, words: str, logs: tuple[PartitionLog, PartitionLog]
) -> None:
    """The sentence names how many records, and where they are on both sides."""
    (finding,) = told(logs, difference)
    assert (finding.rule, finding.reason) == (rule, words)
    assert (finding.source, finding.target) == (difference.source, difference.target)


def test_counts_are_harmless_findings(logs: tuple[PartitionLog, PartitionLog]) -> None:
    """What is not mirrored yet, cannot be compared, or was left out, is said once each."""
    assert [(each.rule, each.reason, each.severity) for each in told(logs, lag=1, unverifiable=1000, aborted=2)] == [
        ("mirror.lag", "1 record at the end of the source not mirrored yet", Severity.HARMLESS),
        (
            "mirror.below-log-start",
            "1,000 records not compared: one side is gone, or cannot be read",
            Severity.HARMLESS,
        ),
        ("mirror.aborted", "2 records of aborted transactions left out", Severity.HARMLESS),
    ]


@pytest.mark.parametrize("has_transforms", [False, True])
def test_transforms_explain_a_change(has_transforms: bool, logs: tuple[PartitionLog, PartitionLog]) -> None:
    """If the connector changes records, another content is only suspicious; a loss stays one."""
    kinds = (MirrorFault.CHANGED, MirrorFault.REORDERED, MirrorFault.LOST)
    found = tuple(MirrorDifference(kind, ONE, TWO) for kind in kinds)
    result = PairResult(found, PairCounts(), 0, 0, 0, 1, 0)
    severities = [each.severity for each in findings_of(PAIR, logs, result, has_transforms=has_transforms)]
    assert severities == [*[Severity.SUSPICIOUS if has_transforms else Severity.DAMAGED] * 2, Severity.DATA_LOSS]


@pytest.mark.parametrize(
    ("is_compacted", "severities"),
    [(False, [Severity.DATA_LOSS]), (None, [Severity.SUSPICIOUS]), (True, [])],
)
def test_compaction_explains_what_was_passed_over(
    is_compacted: bool | None, severities: list[Severity], logs: tuple[PartitionLog, PartitionLog]
) -> None:
    """In a source that is compacted it is nothing, and it is suspicious if that is not known."""
    result = PairResult((MirrorDifference(MirrorFault.PASSED_OVER, TWO, ONE, 3),), PairCounts(), 0, 0, 0, 1, 0)
    found = list(findings_of(PAIR, logs, result, is_source_compacted=is_compacted))
    assert [each.severity for each in found] == severities
    assert all(("compaction" in each.reason) == (is_compacted is None) for each in found)


def test_every_fault_has_a_rule(logs: tuple[PartitionLog, PartitionLog]) -> None:
    """No kind of difference is left out, and each sentence is one line."""
    for kind in MirrorFault:
        (finding,) = told(logs, MirrorDifference(kind, ONE, TWO, why="it is bad"))
        assert finding.rule.startswith("mirror.")
        assert "\n" not in str(finding)
