# SPDX-License-Identifier: Apache-2.0
"""Snapshots of one id on several replicas: the one that differs is blamed, and nothing else is for it."""

from collections.abc import Sequence

import attrs
import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.file_names import FileKind
from raftlog.records.messages.control import (
    ControlValue,
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    write_control_record,
)
from raftlog.tools.auditing.agreement.twin_rules import judge_twins
from raftlog.tools.auditing.evidence import (
    BatchSeen,
    ControlSeen,
    FileEvidence,
    LogExtent,
    PartitionEvidence,
    Place,
    SurveyTask,
)
from raftlog.tools.auditing.judgement.judgement import judge
from raftlog.tools.catalogue.findings import Finding

VERSION = KRaftVersionRecord(1)
HEADER = SnapshotHeaderRecord(5)
ID = OffsetAndEpoch(30, 1)


def replica(
    name: str,
    values: Sequence[ControlValue] = (HEADER, VERSION),
    *,
    snapshot_id: OffsetAndEpoch = ID,
    has_log: bool = False,
    finding: str | None = None,
) -> PartitionEvidence:
    """Return a replica with a snapshot, and perhaps the log with the record before its end."""
    place = Place(name, "__cluster_metadata", 0)
    path = f"{name}/{snapshot_id.offset}-{snapshot_id.epoch}.checkpoint"
    task = SurveyTask(place, path, FileKind.SNAPSHOT, snapshot_id=snapshot_id, is_raft=True)
    controls = tuple(ControlSeen(at, 1, 0, 0, 0, *write_control_record(value)) for at, value in enumerate(values))
    findings = () if finding is None else (Finding(path, finding, ""),)
    snapshot = FileEvidence(task, findings, extent=LogExtent(0, 5, 1, 1, 0, 1, 5), controls=controls)
    log = SurveyTask(place, f"{name}/0.log", FileKind.LOG, base_offset=0, is_raft=True)
    end = BatchSeen(snapshot_id.offset, 29, 29, 1, 5, 0)
    files = (snapshot, FileEvidence(log, snapshot_batches=(end,))) if has_log else (snapshot,)
    return PartitionEvidence(place, files)


OTHER = (SnapshotHeaderRecord(6), VERSION)


@pytest.mark.parametrize(
    ("replicas", "blamed"),
    [
        pytest.param([replica("a"), replica("b")], [], id="equal"),
        pytest.param([replica("a"), replica("b", (HEADER,), snapshot_id=OffsetAndEpoch(40, 1))], [], id="another id"),
        pytest.param([replica("a"), replica("b", OTHER)], ["b"], id="one of two"),
        pytest.param([replica("a", OTHER), replica("b"), replica("c")], ["a"], id="one of three"),
        pytest.param([replica("a", OTHER), replica("b", has_log=True)], ["a"], id="a log vouches for the other"),
        pytest.param([replica("a", OTHER, has_log=True), replica("b")], ["b"], id="a log vouches for the first"),
        pytest.param([replica("a", OTHER, has_log=True), replica("b"), replica("c")], ["a"], id="most are believed"),
        pytest.param([replica("a", OTHER, finding="batch-crc"), replica("b")], [], id="one has a finding"),
        pytest.param([replica("a", (HEADER,)), replica("b"), replica("c")], ["a"], id="without a kraft.version"),
    ],
)
def test_the_snapshot_that_differs_is_blamed(replicas: list[PartitionEvidence], blamed: list[str]) -> None:
    """Of snapshots of one id, those of the fewest are wrong, or else those that no log vouches for."""
    found = list(judge_twins(replicas))
    assert [(finding.rule, finding.path, finding.offset, finding.epoch) for finding in found] == [
        ("snapshot-twins", f"{name}/30-1.checkpoint", 30, 1) for name in blamed
    ]


def test_the_reason_names_what_differs_and_from_which() -> None:
    """The first difference is named, and a file that has the usual content."""
    (finding,) = judge_twins([replica("a"), replica("b", OTHER)])
    assert finding.reason == "timestamp differs from that of a/30-1.checkpoint"
    (finding,) = judge_twins([replica("a"), replica("b", (HEADER, KRaftVersionRecord(0)))])
    assert finding.reason == "kraft version differs from that of a/30-1.checkpoint"


def test_a_log_is_not_judged_by_a_snapshot_that_differs_from_its_twins() -> None:
    """What such a snapshot says of voters and versions is not compared with the records after it."""
    levels = {"a": 1, "b": 1, "c": 0}
    replicas = []
    for name, level in levels.items():
        found = replica(name, (HEADER, KRaftVersionRecord(level), SnapshotFooterRecord()))
        later = replica(name, (HEADER, VERSION, SnapshotFooterRecord()), snapshot_id=OffsetAndEpoch(35, 1))
        log = SurveyTask(found.place, f"{name}/30.log", FileKind.LOG, base_offset=30, is_raft=True)
        extent = LogExtent(30, 40, 1, 1, 0, 1, 10)
        segment = FileEvidence(log, extent=extent, snapshot_batches=(BatchSeen(35, 34, 34, 1, 5, 0),))
        replicas.append(attrs.evolve(found, files=(*found.files, *later.files, segment)))
    said = [finding for finding in judge(replicas) if finding.rule.startswith(("snapshot", "kraft", "voters"))]
    assert [(finding.rule, finding.path) for finding in said] == [("snapshot-twins", "c/30-1.checkpoint")]
