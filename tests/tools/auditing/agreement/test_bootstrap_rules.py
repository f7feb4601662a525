# SPDX-License-Identifier: Apache-2.0
"""What the nodes of a cluster were formatted with."""

from collections.abc import Iterable

import attrs
import pytest

from raftlog.records.files.file_names import FileKind
from raftlog.tools.auditing.agreement.bootstrap_rules import judge_bootstraps
from raftlog.tools.auditing.agreement.snapshot_contents import StoredValue
from raftlog.tools.auditing.evidence import Block, FileEvidence, PartitionEvidence, Place, SurveyTask
from raftlog.tools.catalogue.findings import Finding
from raftlog.voters.voter_set import VoterSet
from tests.tools.auditing.made_quorum import MadeLog, log_directory, voter, voters


def directory(
    number: int, value: bytes = b"same", *, cluster_id: str = "A", is_sound: bool = True
) -> PartitionEvidence:
    """Return a log directory with a bootstrap.checkpoint of one record."""
    place = Place(f"n{number}")
    path = f"n{number}/bootstrap.checkpoint"
    findings = () if is_sound else (Finding(path, "batch-crc", ""),)
    task = SurveyTask(place, path, FileKind.BOOTSTRAP_SNAPSHOT)
    checkpoint = FileEvidence(task, findings, blocks=(Block(0, 1, number, 0, 1, 0),), contents={"value": value})
    meta = log_directory(f"n{number}", number, voter(number).voter_key.directory_id, cluster_id)
    return PartitionEvidence(place, (*meta.files, checkpoint))


def read(file: FileEvidence) -> Iterable[StoredValue]:
    """Read such a file."""
    return [StoredValue(0, None, (file.contents or {})["value"])]


def found(*evidence: PartitionEvidence) -> list[tuple[str, str]]:
    """Return rules and paths."""
    return [(finding.rule, finding.path) for finding in judge_bootstraps(evidence, read)]


def test_the_checkpoint_that_differs_from_most_is_named() -> None:
    """Before the first start it matters which node leads first, and afterwards no more."""
    same = [directory(1), directory(2)]
    assert found(*same) == []
    assert found(*same, directory(3, b"other")) == [("bootstrap-differs", "n3/bootstrap.checkpoint")]
    assert found(directory(1, b"other"), directory(2), directory(3)) == [
        ("bootstrap-differs", "n1/bootstrap.checkpoint")
    ]
    log = MadeLog(node="n1").bootstrap(voters(1, 2)).evidence()
    assert found(*same, directory(3, b"other"), log) == [("bootstrap-unlike", "n3/bootstrap.checkpoint")]


@pytest.mark.parametrize(
    "other", [directory(3, b"other", cluster_id="B"), directory(3, b"other", is_sound=False)], ids=["cluster", "damage"]
)
def test_what_is_not_compared(other: PartitionEvidence) -> None:
    """Checkpoints of another cluster, and those with findings."""
    assert found(directory(1), other) == []


@pytest.mark.parametrize(
    ("second", "is_other"),
    [
        (voters(1, 2, 3), False),
        (voters(1, 2), True),
        (VoterSet.of([voter(1, port=1), voter(2), voter(3)]), True),
        (VoterSet.of([voter(1, directory=7), voter(2), voter(3)]), True),
        (None, False),
    ],
)
def test_initial_voters(second: VoterSet | None, is_other: bool) -> None:
    """Nodes are formatted with the same voters, or with none."""
    logs = [MadeLog(node=f"n{number}").snapshot(0, epoch=0, named=voters(1, 2, 3)) for number in (1, 3)]
    logs.append(MadeLog(node="n2").snapshot(0, epoch=0, named=second))
    directories = [log_directory(f"n{number}", number, None) for number in (1, 2, 3)]
    other = [("bootstrap-differs", f"n2/__cluster_metadata-0/{0:020}-{0:010}.checkpoint")]
    assert found(*directories, *(log.evidence() for log in logs)) == (other if is_other else [])
    assert found(*(log.evidence() for log in logs)) == []
    logs[2].others = [attrs.evolve(file, findings=(Finding("x", "batch-crc", ""),)) for file in logs[2].others]
    assert found(*directories, *(log.evidence() for log in logs)) == []
