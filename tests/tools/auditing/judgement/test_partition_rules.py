# SPDX-License-Identifier: Apache-2.0
"""Comparisons of a partition's files: no finding for Kafka's files, one finding per fault otherwise."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.rules import Severity
from raftlog.tools.auditing.evidence import SurveyTask, group_by_place
from raftlog.tools.auditing.judgement.checkpoint_rules import judge_checkpoints
from raftlog.tools.auditing.judgement.partition_rules import judge_partition
from raftlog.tools.auditing.survey.survey import survey
from raftlog.tools.auditing.survey.tasks import find_tasks
from raftlog.tools.catalogue.findings import Finding
from tests.golden_files import GOLDEN
from tests.tools.auditing.made_segments import with_base_offset, with_epoch
from tests.tools.auditing.spoiled_logs import (
    LOG,
    METADATA,
    batches_of,
    change_batches,
    change_text,
    copy_of,
    index_at,
    partition,
    partitions,
)

UPGRADE = "static-upgrade/data/n1"
SCENARIOS = ("dynamic-quorum", "static-upgrade", "wire", "killed", "data-topics", "groups", "mirror")
NODES = [
    path.relative_to(GOLDEN).as_posix()
    for scenario in SCENARIOS
    for path in sorted((GOLDEN / scenario).glob("*/n*"))
    if path.is_dir()
]


@pytest.mark.parametrize("node", NODES)
def test_kafkas_files_have_no_finding_above_harmless(node: str) -> None:
    """Directories of a real Kafka, killed or not, have only harmless findings."""
    everything = partitions(GOLDEN / node)
    findings = [finding for place in everything for file in place.files for finding in file.findings]
    for place in everything:
        findings += judge_partition(place) if place.place.topic else judge_checkpoints(place, everything)
    assert everything
    assert [finding for finding in findings if finding.severity is not Severity.HARMLESS] == []


Change = Callable[[list[bytes]], list[bytes]]
EPOCH_3, EPOCH_5 = (index_at(GOLDEN / UPGRADE / METADATA / LOG, offset) for offset in (68, 126))
LEADER_CHANGE = batches_of(GOLDEN / UPGRADE / METADATA / LOG)[EPOCH_3]
SNAPSHOT = "00000000000000000173-0000000005.checkpoint"
EPOCHS = "leader-epoch-checkpoint"


def renamed(old: str, new: str) -> Callable[[Path], None]:
    """Rename all files of a name, whatever their suffix, except producer snapshots, which are not part of a segment."""

    def spoil(directory: Path) -> None:
        for path in list(directory.glob(f"{old}*")):
            if path.suffix != ".snapshot":
                path.rename(directory / path.name.replace(old, new))

    return spoil


def removed(*names: str) -> Callable[[Path], None]:
    """Remove files."""

    def spoil(directory: Path) -> None:
        for pattern in names:
            for path in list(directory.glob(pattern)):
                path.unlink()

    return spoil


def of_epoch(index: int, epoch: int) -> Callable[[Path], None]:
    """Give a batch of the log another epoch."""

    def change(batches: list[bytes]) -> list[bytes]:
        batches[index] = with_epoch(batches[index], epoch)
        return batches

    return in_log(change)


def in_log(change: Change, name: str = LOG) -> Callable[[Path], None]:
    """Change the batches of a file. Its indexes go: they would say so, too, or instead."""

    def spoil(directory: Path) -> None:
        change_batches(directory / name, change)
        for suffix in (".index", ".timeindex"):
            (directory / name).with_suffix(suffix).unlink(missing_ok=True)

    return spoil


def with_entry(old: str, new: str, count: int = 3) -> Callable[[Path], None]:
    """Change a line of leader-epoch-checkpoint."""

    def spoil(directory: Path) -> None:
        change_text(directory / EPOCHS, old, new)
        change_text(directory / EPOCHS, "0\n3\n", f"0\n{count}\n")

    return spoil


def copied(source: str, target: str) -> Callable[[Path], None]:
    """Copy a file over another one."""

    def spoil(directory: Path) -> None:
        shutil.copyfile(directory / source, directory / target)

    return spoil


def emptied(directory: Path) -> None:
    """Leave no entries in leader-epoch-checkpoint."""
    (directory / EPOCHS).write_bytes(b"")


def rewritten_in_epoch_4(directory: Path) -> None:
    """Give a snapshot another epoch, in its name and in its batches."""
    change_batches(directory / SNAPSHOT, lambda batches: [with_epoch(batch, 4) for batch in batches])
    (directory / SNAPSHOT).rename(directory / "00000000000000000173-0000000004.checkpoint")


def forged(batches: list[bytes]) -> list[bytes]:
    """Put a LeaderChange in place of a batch of its epoch."""
    batches[EPOCH_3 + 3] = with_base_offset(LEADER_CHANGE, 71)
    return batches


FAULTS: dict[str, tuple[str, Callable[[Path], None], str, str, int | None]] = {
    # An epoch that is wrong in one batch
    "a LeaderChange of the epoch before": (UPGRADE, of_epoch(EPOCH_3, 1), "epoch-opening", LOG, 69),
    "a last batch of the next epoch": (UPGRADE, of_epoch(EPOCH_3 - 1, 3), "epoch-opening", LOG, 67),
    "a last batch of an epoch between": (UPGRADE, of_epoch(EPOCH_3 - 1, 2), "epoch-opening", LOG, 67),
    "the last batch of an epoch to come": (UPGRADE, of_epoch(-1, 9), "epoch-opening", LOG, 213),
    "the first batch of an epoch before": (UPGRADE, of_epoch(0, 0), "epoch-opening", LOG, 1),
    "a forged leader": (UPGRADE, in_log(forged), "epoch-leader", LOG, 71),
    # leader-epoch-checkpoint
    "an entry too early": (UPGRADE, with_entry("3 68", "3 67"), "epochs-start", EPOCHS, 67),
    "an entry too late": (UPGRADE, with_entry("3 68", "3 69"), "epochs-start", EPOCHS, 69),
    "a first entry too late": (UPGRADE, with_entry("1 0", "1 1"), "epochs-start", EPOCHS, 1),
    "a last entry beyond the log": (UPGRADE, with_entry("5 126", "5 500"), "epochs-start", EPOCHS, 500),
    "an entry of another epoch": (UPGRADE, with_entry("3 68", "4 68"), "epochs-start", EPOCHS, 68),
    "an entry too many": (UPGRADE, with_entry("3 68", "2 60\n3 68", 4), "epochs-start", EPOCHS, 60),
    "an entry that is missing": (UPGRADE, with_entry("3 68\n", "", 2), "epochs-missing", EPOCHS, 68),
    "no entries": (UPGRADE, emptied, "epochs-missing", EPOCHS, 0),
    "no leader-epoch-checkpoint": (UPGRADE, removed(EPOCHS), "epochs-missing", LOG, None),
    "an epoch to come": (UPGRADE, with_entry("5 126", "5 126\n8 214", 4), "epochs-beyond", EPOCHS, 214),
    # Segments
    "a first segment without its end": (
        "dynamic-quorum/data/n3",
        in_log(lambda batches: batches[:-2]),
        "segment-gap",
        "00000000000000000193.log",
        191,
    ),
    "a segment under a name of no segment": (
        "dynamic-quorum/data/n4",
        copied("00000000000000000081.log", "81.log"),
        "file-unknown",
        "81.log",
        None,
    ),
    "no index": (UPGRADE, removed("*.index"), "index-missing", LOG, None),
    "an end that is cut": (UPGRADE, in_log(lambda batches: batches[:-3]), "log-end", LOG, 198),
    # Snapshots
    "an end cut below a snapshot": (
        UPGRADE,
        in_log(lambda batches: batches[: EPOCH_3 + 3]),
        "snapshot-ahead",
        SNAPSHOT,
        173,
    ),
    "no snapshot of the start": ("wire/data/n4", removed("*.checkpoint"), "log-start-uncovered", "*138.log", 138),
    "another epoch in a name": (
        UPGRADE,
        renamed(SNAPSHOT, "00000000000000000173-0000000004.checkpoint"),
        "snapshot-epoch",
        "*173-0000000004.checkpoint",
        0,
    ),
    "an end amid a batch": (
        "killed/data/n1",
        renamed("00000000000000000250-", "00000000000000000245-"),
        "snapshot-boundary",
        "*245-0000000004.checkpoint",
        245,
    ),
    "another snapshot's content": (
        "wire/data/n2",
        copied("00000000000000000070-0000000001.checkpoint", "00000000000000000138-0000000001.checkpoint"),
        "snapshot-timestamp",
        "*138-0000000001.checkpoint",
        0,
    ),
    "content of another epoch": (
        UPGRADE,
        copied("00000000000000000055-0000000001.checkpoint", SNAPSHOT),
        "snapshot-epoch",
        SNAPSHOT,
        0,
    ),
    "another epoch in name and batches": (
        UPGRADE,
        rewritten_in_epoch_4,
        "snapshot-id",
        "*173-0000000004.checkpoint",
        173,
    ),
}


def findings_of(scenario: str, spoil: Callable[[Path], None], tmp_path: Path) -> list[Finding]:
    """Return what is said of a spoiled metadata log."""
    directory = copy_of(scenario, tmp_path) / METADATA
    spoil(directory)
    found = partition(directory)
    own = [finding for file in found.files for finding in file.findings]
    return [*own, *judge_partition(found)]


@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_is_one_finding(fault: str, tmp_path: Path) -> None:
    """Each fault is found by its rule, in its file, at its offset; and nothing else is said."""
    scenario, spoil, rule, name, offset = FAULTS[fault]

    found = findings_of(scenario, spoil, tmp_path)

    if rule not in {"epochs-beyond", "file-unknown", "index-missing"}:
        found = [finding for finding in found if finding.severity is not Severity.HARMLESS]
    (finding,) = [each for each in found if each.rule != "file-left-over"]
    assert (finding.rule, finding.offset) == (rule, offset)
    assert Path(finding.path).match(name)


@pytest.mark.parametrize("size", [9000, 12000, 17000])
def test_a_torn_tail_explains_the_files_beside_it(size: int, tmp_path: Path) -> None:
    """Checkpoint, snapshots and producer snapshots beyond a torn tail are not reported, too."""

    def cut(directory: Path) -> None:
        (directory / LOG).write_bytes((directory / LOG).read_bytes()[:size])

    found = findings_of(UPGRADE, cut, tmp_path)

    assert [each.rule for each in found if each.severity is not Severity.HARMLESS] == ["tail-torn"]


@pytest.mark.parametrize("index", [0, EPOCH_3, EPOCH_5, EPOCH_3 + 1, -1])
def test_a_batch_that_does_not_check_hides_no_more_than_itself(index: int, tmp_path: Path) -> None:
    """A batch that is lost to a flipped bit, be it the one that opens an epoch, is not found by other rules again."""

    def flip(batches: list[bytes]) -> list[bytes]:
        batches[index] = batches[index][:-1] + bytes((batches[index][-1] ^ 1,))
        return batches

    found = findings_of(UPGRADE, in_log(flip), tmp_path)

    assert [each.rule for each in found if each.severity is not Severity.HARMLESS] == ["batch-crc"]


@pytest.mark.parametrize("index", [0, 40, 76, -1])
def test_a_lost_voter_change_does_not_make_snapshots_wrong(index: int, tmp_path: Path) -> None:
    """If a batch is lost, even the one with a voter change (76), snapshots before and after it may differ."""
    directory = copy_of("wire/data/n4", tmp_path) / METADATA
    path = directory / "00000000000000000138.log"
    batches = batches_of(path)
    batches[index] = batches[index][:-1] + bytes((batches[index][-1] ^ 1,))
    path.write_bytes(b"".join(batches))

    tasks = [task for task in find_tasks([str(directory)]) if isinstance(task, SurveyTask)]
    (found,) = (each for each in group_by_place(map(survey, tasks)) if each.place.topic)

    own = [finding for file in found.files for finding in file.findings]
    above = [each for each in [*own, *judge_partition(found)] if each.severity is not Severity.HARMLESS]
    assert [(each.rule, each.offset) for each in above] == [("batch-crc", RecordBatch(batches[index]).base_offset)]
