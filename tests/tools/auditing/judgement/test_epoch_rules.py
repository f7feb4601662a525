# SPDX-License-Identifier: Apache-2.0
"""Epochs of a log beside its checkpoint, on evidence made by hand: what only some logs show."""

from collections.abc import Iterable

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.file_names import FileKind
from raftlog.records.messages.control import LeaderChangeMessage, write_control_record
from raftlog.tools.auditing.evidence import (
    ControlSeen,
    EpochSeen,
    FileEvidence,
    LogExtent,
    PartitionEvidence,
    Place,
    SurveyTask,
)
from raftlog.tools.auditing.history.epoch_runs import LogEpochs
from raftlog.tools.auditing.judgement.epoch_rules import judge_epochs
from raftlog.tools.catalogue.findings import Finding

Runs = list[tuple[int, int, int]]


def log(
    runs: Runs,
    entries: Iterable[tuple[int, int]] | None,
    *,
    is_raft: bool = True,
    leaders: Iterable[tuple[int, int]] | None = None,
    snapshots: Iterable[int] = (),
    base_offset: int | None = None,
) -> PartitionEvidence:
    """Return a log of one segment.

    Args:
        runs: epochs, each with its start and end.
        entries: of the checkpoint; None for no checkpoint.
        is_raft: whether it is a raft log.
        leaders: offsets and epochs of LeaderChanges; None for one at the start of each epoch.
        snapshots: their end offsets.
        base_offset: of the segment; None for that of its first batch.
    """
    place = Place("node", "__cluster_metadata" if is_raft else "orders", 0)
    start = runs[0][1] if base_offset is None else base_offset
    changes = [(first, epoch) for epoch, first, _ in runs] if leaders is None else list(leaders)
    key, value = write_control_record(LeaderChangeMessage(1))
    segment = FileEvidence(
        SurveyTask(place, "s.log", FileKind.LOG, base_offset=start, is_raft=is_raft),
        extent=LogExtent(runs[0][1], runs[-1][2], runs[0][0], runs[-1][0], -1, 1, 1),
        epochs=tuple(
            EpochSeen(epoch, first, first * 10, end, 5, (first, epoch) in changes) for epoch, first, end in runs
        ),
        controls=tuple(ControlSeen(offset, epoch, 5, offset, offset * 10, key, value) for offset, epoch in changes),
    )
    files = [segment]
    if entries is not None:
        task = SurveyTask(place, "leader-epoch-checkpoint", FileKind.LEADER_EPOCH_CHECKPOINT, is_raft=is_raft)
        files.append(FileEvidence(task, epochs=tuple(EpochSeen(*entry) for entry in entries)))
    for offset in snapshots:
        task = SurveyTask(place, f"{offset}.checkpoint", FileKind.SNAPSHOT, snapshot_id=OffsetAndEpoch(offset, 1))
        files.append(FileEvidence(task))
    return PartitionEvidence(place, tuple(files))


def judged(evidence: PartitionEvidence) -> list[tuple[str, int | None, int | None]]:
    """Return rules, offsets and epochs."""
    found = judge_epochs(evidence, LogEpochs(evidence))
    return [(finding.rule, finding.offset, finding.epoch) for finding in found]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.booleans())
def test_a_checkpoint_that_agrees(sizes: list[int], is_raft: bool) -> None:
    """Whatever the epochs, a checkpoint that names where each starts is sound; one that is off by one is not."""
    runs, offset = [], 0
    for epoch, size in enumerate(sizes):
        runs.append((epoch, offset, offset + size))
        offset += size
    entries = [(epoch, first) for epoch, first, _ in runs]
    assert judged(log(runs, entries, is_raft=is_raft)) == []
    for index, (epoch, first) in enumerate(entries[1:], start=1):
        moved = [*entries[:index], (epoch, first + 1), *entries[index + 1 :]]
        assert ("epochs-start", first + 1, epoch) in judged(log(runs, moved, is_raft=is_raft))


SOUND = [(1, 0, 10), (3, 10, 20)]


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        pytest.param(log([(1, 102, 150), (4, 150, 200)], [(4, 180)], snapshots=[180]), [], id="start amid a segment"),
        *(
            pytest.param(
                log([(1, 102, 150), (4, 150, 200)], [(4, start)], snapshots=[start]),
                expected,
                id=f"log start at {start}",
            )
            for start, expected in ((149, [("epochs-missing", 102, 1)]), (150, []), (151, []))
        ),
        *(
            pytest.param(
                log([(1, 102, 150), (4, 150, 200), (5, 200, 210)], [(4, start), (5, 200)], is_raft=False),
                expected,
                id=f"log of a topic that starts at {start}",
            )
            for start, expected in ((149, [("epochs-missing", 102, 1)]), (150, []), (151, []))
        ),
        pytest.param(
            log([(1, 102, 150), (4, 150, 200)], [(4, 180)], snapshots=[170]),
            [("epochs-start", 180, 4)],
            id="start that no snapshot explains",
        ),
        pytest.param(log([(4, 120, 200)], [(4, 120)]), [], id="start behind a snapshot"),
        pytest.param(log([(4, 120, 200)], [(2, 50), (4, 120)]), [], id="entry of what is deleted"),
        pytest.param(log(SOUND, [(1, 0), (2, 5), (3, 10)], is_raft=False), [], id="epoch that compaction has emptied"),
        pytest.param(log([(1, 0, 10), (3, 14, 20)], [(1, 0), (3, 12)], leaders=[(0, 1)]), [], id="entry in a hole"),
        pytest.param(
            log([(1, 0, 10), (3, 14, 20)], [(1, 0), (2, 11), (3, 12)], leaders=[(0, 1)]), [], id="epoch in a hole"
        ),
        pytest.param(log([(1, 5, 10)], [(1, 0)], leaders=[], base_offset=0), [], id="hole at the start"),
        pytest.param(log(SOUND, [(1, 0), (3, 10), (5, 20)]), [("epochs-beyond", 20, 5)], id="epoch to come"),
        pytest.param(
            log(SOUND, [(1, 0), (3, 10), (5, 20), (6, 25)]), [("epochs-beyond", 25, 6)], id="two epochs to come"
        ),
        pytest.param(log(SOUND, None), [("epochs-missing", None, None)], id="no checkpoint"),
        pytest.param(log(SOUND, [(1, 0), (3, 10)], leaders=[(0, 1)]), [("epoch-opening", 10, 3)], id="no leader"),
        pytest.param(
            log(SOUND, [(1, 0), (3, 10)], leaders=[(0, 1), (10, 3), (15, 3)]),
            [("epoch-leader", 15, 3)],
            id="two leaders",
        ),
        pytest.param(log(SOUND, [(1, 0), (3, 10)], leaders=[], is_raft=False), [], id="topics have no LeaderChange"),
    ],
)
def test_epochs_beside_a_checkpoint(
    evidence: PartitionEvidence, expected: list[tuple[str, int | None, int | None]]
) -> None:
    """Each entry of the checkpoint is explained, or reported once."""
    assert judged(evidence) == expected


def test_epochs_go_back_between_segments() -> None:
    """A batch that breaks the order at the border of two segments is reported where it is."""
    first, second = log([(5, 0, 10)], None), log([(3, 10, 11), (5, 11, 30)], None, leaders=[])
    files = (first.files[0], attrs.evolve(second.files[0], task=attrs.evolve(second.files[0].task, path="t.log")))
    evidence = PartitionEvidence(first.place, files)
    found: list[Finding] = list(judge_epochs(evidence, LogEpochs(evidence)))
    assert [(each.rule, each.path, each.position, each.epoch) for each in found][:1] == [
        ("epoch-order", "t.log", 100, 3)
    ]
    assert {each.rule for each in found} == {"epoch-order", "epochs-missing"}


def test_a_checkpoint_that_was_reported_is_not_compared() -> None:
    """Entries that do not increase say nothing of the log."""
    evidence = log(SOUND, [(3, 10), (1, 0)])
    spoiled = attrs.evolve(evidence.files[1], findings=(Finding("leader-epoch-checkpoint", "epochs-order", ""),))
    assert judged(PartitionEvidence(evidence.place, (evidence.files[0], spoiled))) == []


def test_a_leader_change_in_a_misplaced_batch_is_not_reported_again() -> None:
    """A batch whose base offset is wrong has been reported."""
    evidence = log(SOUND, [(1, 0), (3, 10)], leaders=[(0, 1), (10, 3), (15, 3)])
    spoiled = attrs.evolve(evidence.files[0], findings=(Finding("s.log", "offset-order", "", position=150),))
    assert judged(PartitionEvidence(evidence.place, (spoiled, evidence.files[1]))) == []


def test_a_damaged_first_batch_opens_an_epoch_as_well_as_it_can() -> None:
    """If the records of an epoch's first batch are unreadable, a missing LeaderChange is not reported."""
    evidence = log(SOUND, [(1, 0), (3, 10)], leaders=[(0, 1)])
    finding = Finding("s.log", "control-value", "it does not read", position=100)
    spoiled = attrs.evolve(evidence.files[0], findings=(finding,))
    assert judged(PartitionEvidence(evidence.place, (spoiled, evidence.files[1]))) == []
