# SPDX-License-Identifier: Apache-2.0
"""Snapshots beside their log, on evidence made by hand."""

import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.file_names import FileKind
from raftlog.records.messages.control import SnapshotHeaderRecord, write_control_record
from raftlog.tools.auditing.evidence import (
    BatchSeen,
    ControlSeen,
    EpochSeen,
    FileEvidence,
    LogExtent,
    PartitionEvidence,
    Place,
    SurveyTask,
)
from raftlog.tools.auditing.history.epoch_runs import LogEpochs
from raftlog.tools.auditing.judgement.snapshot_rules import judge_snapshots
from raftlog.tools.catalogue.findings import Finding

PLACE = Place("node", "__cluster_metadata", 0)


def segment(base_offset: int = 0, start_offset: int | None = None) -> FileEvidence:
    """Return a segment with batches of ten offsets: epoch 1 up to 50, epoch 3 up to 100; timestamps are offsets."""
    start = base_offset if start_offset is None else start_offset
    runs = [(1, start, 50), (3, max(50, start), 100)]
    return FileEvidence(
        SurveyTask(PLACE, "s.log", FileKind.LOG, base_offset=base_offset, is_raft=True),
        extent=LogExtent(start, 100, 1, 3, -1, 1, 1),
        epochs=tuple(EpochSeen(epoch, first, first, end) for epoch, first, end in runs if first < end),
        snapshot_batches=tuple(
            BatchSeen(offset, (offset - 1) // 10 * 10, (offset - 1) // 10 * 10 + 9, 1, (offset - 1) // 10 * 10, 0)
            for offset in range(start + 1, 101)
        ),
    )


def snapshot(offset: int, epoch: int, timestamp: int | None = None, finding: str | None = None) -> FileEvidence:
    """Return a snapshot; its timestamp is that of its last batch, unless it is given."""
    path = f"{offset}-{epoch}.checkpoint"
    header = SnapshotHeaderRecord((offset - 1) // 10 * 10 if timestamp is None else timestamp)
    return FileEvidence(
        SurveyTask(PLACE, path, FileKind.SNAPSHOT, snapshot_id=OffsetAndEpoch(offset, epoch), is_raft=True),
        () if finding is None else (Finding(path, finding, ""),),
        controls=(ControlSeen(0, epoch, 0, 0, 0, *write_control_record(header)),),
    )


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param([segment(), snapshot(0, 0, 7), snapshot(50, 1), snapshot(100, 3)], [], id="sound"),
        pytest.param([segment(), snapshot(50, 3)], [("snapshot-id", "50-3.checkpoint", 50)], id="the next epoch"),
        pytest.param([segment(), snapshot(60, 1)], [("snapshot-id", "60-1.checkpoint", 60)], id="epoch before"),
        pytest.param([segment(), snapshot(60, 4)], [("snapshot-id", "60-4.checkpoint", 60)], id="epoch to come"),
        pytest.param([segment(), snapshot(55, 3)], [("snapshot-boundary", "55-3.checkpoint", 55)], id="amid a batch"),
        pytest.param(
            [segment(), snapshot(60, 3, 99)], [("snapshot-timestamp", "60-3.checkpoint", 0)], id="another timestamp"
        ),
        pytest.param([segment(), snapshot(60, 1, 99, "snapshot-epoch")], [], id="reported by its survey"),
        pytest.param([segment(), snapshot(101, 3)], [("snapshot-ahead", "101-3.checkpoint", 101)], id="ahead"),
        pytest.param([segment(30), snapshot(30, 1, 7)], [], id="at the start, which the log cannot tell"),
        pytest.param([segment(30), snapshot(30, 3)], [("snapshot-id", "30-3.checkpoint", 30)], id="what follows tells"),
        pytest.param([segment(30), snapshot(20, 9), snapshot(60, 3)], [], id="older than the log"),
        pytest.param([segment(30)], [("log-start-uncovered", "s.log", 30)], id="no snapshot"),
        pytest.param(
            [segment(30), snapshot(20, 1)], [("log-start-uncovered", "s.log", 30)], id="a snapshot that is too old"
        ),
        pytest.param([segment(30, start_offset=0)], [], id="a misnamed segment that starts at 0"),
        pytest.param([snapshot(30, 1)], [], id="no log"),
    ],
)
def test_snapshots(files: list[FileEvidence], expected: list[tuple[str, str, int | None]]) -> None:
    """A contradiction of a snapshot's name or header to the log is one finding, at the snapshot."""
    evidence = PartitionEvidence(PLACE, tuple(files))
    found = judge_snapshots(evidence, LogEpochs(evidence), is_tail_lost=False)
    assert [(finding.rule, finding.path, finding.offset) for finding in found] == expected


def test_a_lost_tail_leaves_snapshots_ahead() -> None:
    """Where it is known that the log has lost its end, a snapshot beyond it says nothing new."""
    evidence = PartitionEvidence(PLACE, (segment(), snapshot(130, 3)))
    assert list(judge_snapshots(evidence, LogEpochs(evidence), is_tail_lost=True)) == []
