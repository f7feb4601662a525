# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of offsets beside their logs."""

from collections.abc import Iterable

import attrs
import pytest

from raftlog.records.files.file_names import FileKind
from raftlog.tools.auditing.evidence import EpochSeen, FileEvidence, LogExtent, PartitionEvidence, Place, SurveyTask
from raftlog.tools.auditing.judgement.checkpoint_rules import judge_checkpoints, judge_log_starts
from raftlog.tools.input.coverage import Coverage

DIRECTORY = Place("node")
KINDS = (
    FileKind.RECOVERY_POINT_CHECKPOINT,
    FileKind.REPLICATION_OFFSET_CHECKPOINT,
    FileKind.LOG_START_OFFSET_CHECKPOINT,
    FileKind.CLEANER_OFFSET_CHECKPOINT,
)


def log(topic: str, end_offset: int, directory: str = "node", damaged_bytes: int = 0) -> PartitionEvidence:
    """Return a partition."""
    place = Place(directory, topic, 0)
    task = SurveyTask(place, f"{directory}/{topic}-0/{0:020}.log", FileKind.LOG, base_offset=0)
    extent = LogExtent(0, end_offset, 0, 0, -1, 1, 1) if end_offset else None
    coverage = Coverage(100, damaged_bytes)
    return PartitionEvidence(place, (FileEvidence(task, coverage=coverage, extent=extent),))


def directory(entries: Iterable[tuple[FileKind, str, int]]) -> PartitionEvidence:
    """Return a log directory with checkpoints."""
    by_kind: dict[FileKind, list[dict[str, object]]] = {}
    for kind, topic, offset in entries:
        by_kind.setdefault(kind, []).append({"topic": topic, "partition": 0, "offset": offset})
    files = (
        FileEvidence(SurveyTask(DIRECTORY, f"node/{kind.value}", kind), contents={"entries": rows})
        for kind, rows in by_kind.items()
    )
    return PartitionEvidence(DIRECTORY, tuple(files))


@pytest.mark.parametrize("kind", KINDS)
def test_an_offset_beyond_the_end_is_reported(kind: FileKind) -> None:
    """Each checkpoint may name the end of a log, and nothing beyond it."""
    logs = [log("orders", 320), log("empty", 0)]
    assert list(judge_checkpoints(directory([(kind, "orders", 320), (kind, "empty", 0)]), logs)) == []
    (finding,) = judge_checkpoints(directory([(kind, "orders", 500), (kind, "empty", 0)]), logs)
    assert (finding.rule, finding.path, finding.offset) == ("offset-checkpoint", f"node/{kind.value}", 500)
    assert "orders-0, which ends at 320" in finding.reason


def test_a_log_whose_offsets_are_too_low_is_not_reported() -> None:
    """Where as many offsets are reported to be out of line, the log may end there."""
    (segment,) = log("orders", 318).files
    strayed = PartitionEvidence(segment.task.place, (attrs.evolve(segment, stray_offsets=2),))
    assert list(judge_checkpoints(directory([(KINDS[0], "orders", 320)]), [strayed])) == []
    assert len(list(judge_checkpoints(directory([(KINDS[0], "orders", 321)]), [strayed]))) == 1


def test_one_log_is_one_finding() -> None:
    """A truncated log is not reported for each checkpoint that names its old end."""
    cut = directory([(kind, "orders", 500) for kind in KINDS])
    assert len(list(judge_checkpoints(cut, [log("orders", 320)]))) == 1


@pytest.mark.parametrize(
    "logs",
    [
        pytest.param([log("orders", 320, damaged_bytes=9)], id="damaged at its end"),
        pytest.param([PartitionEvidence(Place("node", "orders", 0), ())], id="without segments"),
    ],
)
def test_logs_that_explain_it_or_show_nothing(logs: list[PartitionEvidence]) -> None:
    """A log that has no segments, or whose damage is reported, is not reported again."""
    assert list(judge_checkpoints(directory([(KINDS[0], "orders", 500)]), logs)) == []


@pytest.mark.parametrize(
    "others",
    [
        pytest.param([], id="nothing else"),
        pytest.param([log("orders", 600, directory="other")], id="in another log directory"),
        pytest.param([log("returns", 600), directory([])], id="others in this one"),
    ],
)
def test_a_missing_partition(others: list[PartitionEvidence]) -> None:
    """A missing partition with records by two checkpoints is reported once; one without records need not exist."""
    named = directory([*((kind, "orders", 500) for kind in KINDS), *((kind, "empty", 0) for kind in KINDS)])
    (finding,) = judge_checkpoints(named, others)
    assert (finding.rule, finding.path, finding.offset) == ("partition-missing", "node/orders-0", 500)
    assert "recovery-point-offset-checkpoint has a recovery point of 500" in finding.reason


@pytest.mark.parametrize("kind", [FileKind.LOG_START_OFFSET_CHECKPOINT, FileKind.CLEANER_OFFSET_CHECKPOINT])
def test_checkpoints_that_may_lag(kind: FileKind) -> None:
    """These are not written for each log each time; what they name alone is not missed."""
    assert list(judge_checkpoints(directory([(kind, "orders", 500)]), [])) == []


def test_files_that_were_named_one_by_one() -> None:
    """If only a checkpoint was named, partitions need not be beside it."""
    named = directory([(KINDS[0], "orders", 500)])
    files = tuple(attrs.evolve(file, task=attrs.evolve(file.task, was_named=True)) for file in named.files)
    assert list(judge_checkpoints(PartitionEvidence(DIRECTORY, files), [])) == []


@pytest.mark.parametrize("count", [4, 150])
def test_a_checkpoint_of_another_directory_is_one_finding(count: int) -> None:
    """Where most partitions that it names are not there, it says nothing of the others."""
    named = directory([(KINDS[0], f"topic{number}", 1) for number in range(count)] + [(KINDS[0], "orders", 500)])
    (finding,) = judge_checkpoints(named, [log("orders", 320)])
    assert (finding.rule, finding.path) == ("partition-missing", f"node/{KINDS[0].value}")
    assert f"{count} of {count + 1} partitions" in finding.reason


def test_a_few_of_many_partitions_are_each_reported() -> None:
    """As long as they are less than half."""
    logs = [log(f"topic{number}", 1) for number in range(10)]
    named = directory([(KINDS[0], f"topic{number}", 1) for number in range(14)])
    assert len(list(judge_checkpoints(named, logs))) == 4


def test_a_checkpoint_that_does_not_read_is_not_judged() -> None:
    """It has been reported, and says nothing."""
    task = SurveyTask(DIRECTORY, "node/x", KINDS[0])
    assert list(judge_checkpoints(PartitionEvidence(DIRECTORY, (FileEvidence(task),)), [log("orders", 1)])) == []


_ID = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("topic", "name", "is_missing"),
    [
        ("orders", f"orders-0.{_ID}-delete", False),
        ("orders", f"orders-0.{_ID}-stray", False),
        ("orders", f"orders-1.{_ID}-stray", True),
        ("orders", f"order-0.{_ID}-delete", True),
        ("orders", f"orders2-0.{_ID}-delete", True),
        ("t" * 249, f"{'t' * 213}-0.{_ID}-delete", False),
        ("t" * 249, f"{'t' * 214}-0.{_ID}-stray", False),
        ("t" * 249, f"{'t' * 212}-0.{_ID}-stray", True),
    ],
)
def test_a_partition_that_was_set_aside_is_not_missing(topic: str, name: str, is_missing: bool) -> None:
    """A checkpoint that still names a deleted or stray partition is only older than its directory's name."""
    named = directory([(KINDS[0], topic, 500)])
    files = tuple(attrs.evolve(file, task=attrs.evolve(file.task, set_aside=(name,))) for file in named.files)
    assert len(list(judge_checkpoints(PartitionEvidence(DIRECTORY, files), []))) == is_missing


def _starting_at(base_offset: int, first_epoch_start: int) -> PartitionEvidence:
    place = Place("node", "orders", 0)
    path = f"node/orders-0/{base_offset:020}.log"
    segment = FileEvidence(SurveyTask(place, path, FileKind.LOG, base_offset=base_offset))
    task = SurveyTask(place, "node/orders-0/leader-epoch-checkpoint", FileKind.LEADER_EPOCH_CHECKPOINT)
    epochs = FileEvidence(task, epochs=(EpochSeen(3, first_epoch_start), EpochSeen(4, base_offset + 9)))
    return PartitionEvidence(place, (segment, epochs))


@pytest.mark.parametrize(
    ("start", "is_clean", "first_epoch", "rule"),
    [
        (250, True, 250, None),
        (251, True, 250, None),
        (249, True, 250, "log-start-below"),
        (249, False, 250, "log-start-stale"),
        (249, True, 249, "log-start-stale"),
        (249, True, 100, "log-start-stale"),
        (0, False, 0, "log-start-stale"),
    ],
)
def test_a_log_start_before_the_first_segment(start: int, is_clean: bool, first_epoch: int, rule: str | None) -> None:
    """A crash explains it, and so do remote segments, of which the leader epochs tell; a clean shutdown does not."""
    named = directory([(FileKind.LOG_START_OFFSET_CHECKPOINT, "orders", start)])
    if is_clean:
        clean = FileEvidence(SurveyTask(DIRECTORY, "node/.kafka_cleanshutdown", FileKind.CLEAN_SHUTDOWN))
        named = PartitionEvidence(DIRECTORY, (*named.files, clean))
    found = list(judge_log_starts(named, [_starting_at(250, first_epoch)]))
    assert [(finding.rule, finding.offset) for finding in found] == ([] if rule is None else [(rule, start)])
    assert list(judge_log_starts(named, [])) == []


@pytest.mark.parametrize(("start", "is_above"), [(299, False), (300, False), (301, True)])
def test_a_log_start_above_the_high_watermark(start: int, is_above: bool) -> None:
    """A log may start at its high watermark."""
    kinds = FileKind.LOG_START_OFFSET_CHECKPOINT, FileKind.REPLICATION_OFFSET_CHECKPOINT
    named = directory([(kinds[0], "orders", start), (kinds[1], "orders", 300), (kinds[1], "bills", 1)])
    found = list(judge_log_starts(named, [log("orders", 400)]))
    assert [(each.rule, each.path) for each in found] == (
        [("log-start-above", f"node/{kinds[0].value}")] if is_above else []
    )
