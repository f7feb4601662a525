# SPDX-License-Identifier: Apache-2.0
"""One fault is told once, whatever number of replicas or places has it."""

import pytest

from raftlog.records.files.file_names import FileKind
from raftlog.tools.auditing.agreement.told_once import MOST_ALIKE, told_once
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence, Place, SurveyTask
from raftlog.tools.auditing.finding_limit import FindingLimit
from raftlog.tools.catalogue.findings import Finding

NAMES = "abcdefg"


def replica(name: str, *files: tuple[str, FileKind]) -> PartitionEvidence:
    """Return a replica of such files."""
    place = Place(name, "__cluster_metadata", 0)
    tasks = [SurveyTask(place, f"{name}/m-0/{file}", kind, is_raft=True) for file, kind in files]
    return PartitionEvidence(place, tuple(map(FileEvidence, tasks)))


def replicas(count: int) -> list[PartitionEvidence]:
    """Return replicas with segments that roll at different offsets, and a snapshot."""
    return [
        replica(name, (f"{index}.log", FileKind.LOG), ("8-1.checkpoint", FileKind.SNAPSHOT))
        for index, name in enumerate(NAMES[:count])
    ]


def found(index: int, rule: str = "batch-attributes", reason: str = "wrong", *, offset: int | None = 5) -> Finding:
    """Return a finding about a segment of one of the replicas."""
    return Finding(f"{NAMES[index]}/m-0/{index}.log", rule, reason, 70 + index, offset=offset, epoch=1)


@pytest.mark.parametrize("count", [2, 3, 7])
def test_a_fault_of_a_batch_that_replicas_share_is_one_finding(count: int) -> None:
    """It is about the first replica's segment, and its reason names the others, up to four."""
    (only,) = told_once([found(index) for index in reversed(range(count))], [replicas(7)])
    assert (only.path, only.position, only.offset) == ("a/m-0/0.log", 70, 5)
    assert "b/m-0/1.log" in only.reason
    assert ("g/m-0/6.log" in only.reason, "and 2 more have the same" in only.reason) == (False, count == 7)
    assert only.reason.endswith("has the same") == (count == 2)


@pytest.mark.parametrize(
    ("other", "is_one"),
    [
        pytest.param(found(1), True, id="the same"),
        pytest.param(found(1, offset=6), False, id="another offset"),
        pytest.param(found(1, reason="else"), False, id="another reason"),
        pytest.param(found(1, rule="batch-codec"), False, id="another rule"),
        pytest.param(Finding("b/m-0/1.log", "batch-attributes", "wrong", 71, offset=5, epoch=2), False, id="epoch"),
        pytest.param(
            Finding("b/m-0/quorum-state", "batch-attributes", "wrong", 71, offset=5, epoch=1), False, id="file"
        ),
        pytest.param(
            Finding("x/m-0/1.log", "batch-attributes", "wrong", 71, offset=5, epoch=1), False, id="no replica"
        ),
        pytest.param(
            Finding("a/m-0/9.log", "batch-attributes", "wrong", 71, offset=5, epoch=1), False, id="one replica"
        ),
    ],
)
def test_only_the_same_fault_of_the_same_batch_is_shared(other: Finding, is_one: bool) -> None:
    """Faults of other batches, of other files, or twice in one replica stay as they are."""
    known = [*replicas(2), replica("a", ("9.log", FileKind.LOG))]
    assert len(told_once([found(0), other], [known])) == (1 if is_one else 2)


@pytest.mark.parametrize("rule", ["tail-torn", "batch-length", "file-unreadable", "replica-behind"])
def test_what_happened_on_each_disk_is_told_of_each(rule: str) -> None:
    """A torn write, unknown bytes or a difference between replicas is never that of another replica."""
    said = [found(0, rule), found(1, rule)]
    assert told_once(said, [replicas(2)]) == said


def test_snapshots_are_shared_under_one_name() -> None:
    """A fault of a snapshot is shared with snapshots of its id, and with nothing else."""
    said = [Finding(f"{name}/m-0/8-1.checkpoint", "batch-attributes", "wrong", 9, offset=1) for name in "ab"]
    assert len(told_once(said, [replicas(2)])) == 1
    other = Finding("b/m-0/1.log", "batch-attributes", "wrong", 9, offset=1)
    assert len(told_once([said[0], other], [replicas(2)])) == 2


def test_findings_without_a_place_are_not_shared() -> None:
    """Each replica that lacks a file lacks its own."""
    said = [Finding(f"{name}/m-0/{index}.log", "epochs-missing", "gone") for index, name in enumerate("ab")]
    assert told_once(said, [replicas(2)]) == said


@pytest.mark.parametrize("count", [MOST_ALIKE, MOST_ALIKE + 1, 50])
def test_many_places_that_say_the_same_are_one_finding(count: int) -> None:
    """Up to three are told one by one, and more are counted, with the last offset and all lost bytes."""
    said = [Finding(f"a/m-0/{at}.log", "batch-magic", "wrong", 3, 10, offset=at) for at in range(10, 10 + count)]
    told = told_once(said, [])
    if count == MOST_ALIKE:
        assert told == said
        return
    (only,) = told
    assert (only.path, only.offset, only.size_bytes) == ("a/m-0/10.log", 10, 10 * count)
    assert only.reason == f"wrong; so it is at {count - 1} more places, the last at offset {9 + count}"


def test_those_beyond_a_limit_are_counted_too() -> None:
    """Of 20,000 findings in a file that say the same there is one; of two reasons the rest cannot be told apart."""
    limit = FindingLimit("a/m-0/0.log")
    limit.add_rows("batch-magic", range(20_000), lambda row: Finding("a/m-0/0.log", "batch-magic", "wrong", row))
    (only,) = told_once(limit.findings(), [])
    assert only.reason == "wrong; so it is at 19999 more places"
    limit = FindingLimit("a/m-0/0.log")
    for row in range(200):
        limit.add(Finding("a/m-0/0.log", "batch-magic", f"wrong {row % 2}", row))
    assert sorted(finding.reason for finding in told_once(limit.findings(), [])) == [
        "there are 100 more of these",
        "wrong 0; so it is at 49 more places",
        "wrong 1; so it is at 49 more places",
    ]


def test_other_logs_and_files_that_cannot_be_read_are_told_one_by_one() -> None:
    """Findings of several directories are not counted together, and each unread file is named."""
    said = [Finding(f"{name}/m-0/1.log", "batch-magic", "wrong", 3) for name in NAMES]
    assert told_once(said, []) == said
    said = [Finding(f"a/m-0/{number}.log", "file-unreadable", "denied") for number in range(9)]
    assert told_once(said, []) == said
