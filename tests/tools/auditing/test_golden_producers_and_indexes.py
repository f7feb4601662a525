# SPDX-License-Identifier: Apache-2.0
"""Producers, transactions and indexes of real Kafka logs."""

import shutil
from pathlib import Path

import attrs
import pytest

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.files.file_names import FileKind, FileState
from raftlog.records.rules import Severity
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence, SurveyTask, group_by_place
from raftlog.tools.auditing.producers.producer_rules import judge_producers
from raftlog.tools.auditing.survey.small_file_survey import survey_small_file
from raftlog.tools.auditing.survey.survey import survey
from raftlog.tools.auditing.survey.tasks import find_tasks
from raftlog.tools.catalogue.findings import Finding
from tests.golden_files import GOLDEN
from tests.tools.auditing.produced_logs import last_stable_offset
from tests.tools.auditing.produced_logs import survey as survey_alone

SCENARIOS = ["data-topics", "dynamic-quorum", "groups", "killed", "mirror", "static-upgrade", "wire"]


def evidence_of(path: Path) -> list[PartitionEvidence]:
    """Survey the segments and producer snapshots below a folder."""
    tasks = [task for task in find_tasks([str(path)]) if isinstance(task, SurveyTask)]
    kinds = {FileKind.LOG, FileKind.PRODUCER_SNAPSHOT}
    return group_by_place(look(task) for task in tasks if task.kind in kinds and task.state is FileState.CURRENT)


def look(task: SurveyTask) -> FileEvidence:
    """Survey one of them."""
    data = Path(task.path).read_bytes()
    if task.kind is FileKind.PRODUCER_SNAPSHOT:
        return survey_small_file(task, data)
    indexes = {kind: Path(path).read_bytes() for kind, path in task.indexes.items()}
    return survey_alone(data, task=task, indexes=indexes, chunk=3)


def findings_of(evidence: PartitionEvidence) -> list[Finding]:
    """Return all findings."""
    return [*(finding for file in evidence.files for finding in file.findings), *judge_producers(evidence)]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_what_kafka_wrote_has_no_findings(scenario: str) -> None:
    """Not even harmless ones; and every transaction of these logs has ended."""
    partitions = evidence_of(GOLDEN / scenario)
    assert partitions
    for evidence in partitions:
        assert findings_of(evidence) == []
        assert last_stable_offset(evidence) == evidence.end_offset


def test_kafkas_producer_snapshots_are_judged() -> None:
    """A field that is changed in the snapshot at a border is found, so they are compared."""
    (evidence,) = evidence_of(GOLDEN / "data-topics/data/n1/txn-0")
    judged = []
    for number, file in enumerate(evidence.files):
        if file.contents is not None:
            (entry,) = file.contents["entries"]
            stale = attrs.evolve(file, contents={"entries": [entry | {"last_sequence": 3}]})
            files = (*evidence.files[:number], stale, *evidence.files[number + 1 :])
            judged += [(each.rule, each.offset) for each in findings_of(PartitionEvidence(evidence.place, files))]
    assert judged == [("producer-snapshot", 35), ("producer-snapshot", 92)]


def copy_of(topic: str, folder: Path) -> Path:
    """Copy the directory of a partition."""
    return Path(shutil.copytree(GOLDEN / "data-topics/data/n1" / topic, folder / topic))


def wrong_in(path: Path) -> list[tuple[str, int | None]]:
    """Survey a partition as an audit does, and return the findings above harmless, except those of other judgements."""
    files = [survey(task) for task in find_tasks([str(path)]) if isinstance(task, SurveyTask)]
    (evidence,) = group_by_place(files)
    return [(each.rule, each.offset) for each in findings_of(evidence) if each.severity is not Severity.HARMLESS]


@pytest.mark.parametrize("position", range(0, 68, 3))
def test_each_byte_of_a_transaction_index_matters(position: int, tmp_path: Path) -> None:
    """Wherever a bit is flipped, there is one finding, of that index."""
    path = copy_of("txn-1", tmp_path)
    index = path / "00000000000000000025.txnindex"
    data = bytearray(index.read_bytes())
    data[position] ^= 1
    index.write_bytes(data)
    assert len(wrong_in(path)) == 1


def test_indexes_that_were_all_removed_are_rebuilt(tmp_path: Path) -> None:
    """Kafka rebuilds a transaction index with the offset index; if only the former is missing, aborts are lost."""
    path = copy_of("txn-1", tmp_path)
    index = path / "00000000000000000025.txnindex"
    index.unlink()
    assert wrong_in(path) == [("transaction-index", 51), ("transaction-index", 25)]
    index.with_suffix(".index").unlink()
    assert wrong_in(path) == []
    index.with_suffix(".timeindex").unlink()
    assert wrong_in(path) == []


@pytest.mark.parametrize("first", [0, 1])
def test_swapped_batches_of_a_transaction_are_one_finding(first: int, tmp_path: Path) -> None:
    """A marker before its records is found by its offset, and not by its meaning."""
    path = copy_of("txn-1", tmp_path)
    log = path / "00000000000000000025.log"
    parts = [bytes(piece.buffer) for piece in split(BufferSource(log.read_bytes())) if isinstance(piece, RecordBatch)]
    parts[first], parts[first + 1] = parts[first + 1], parts[first]
    log.write_bytes(b"".join(parts))
    assert [rule for rule, _ in wrong_in(path)] == ["offset-order"]


@pytest.mark.parametrize(("base_offset", "size"), [(0, 1800), (0, 0), (25, 1900), (25, 60)])
def test_a_torn_segment_of_a_transaction_is_no_other_finding(base_offset: int, size: int, tmp_path: Path) -> None:
    """The lost bytes explain what is missing in indexes, transactions and producer snapshots."""
    path = copy_of("txn-1", tmp_path)
    log = path / f"{base_offset:020}.log"
    log.write_bytes(log.read_bytes()[:size])
    assert [rule for rule, _ in wrong_in(path)] == (["tail-torn"] if size else ["index-beyond"])


def test_a_lost_marker_leaves_its_transaction_open() -> None:
    """Without its second segment, where the marker is, the log of a topic is stable up to the transaction alone."""
    (evidence,) = evidence_of(GOLDEN / "data-topics/data/n1/txn-1")
    first = PartitionEvidence(evidence.place, tuple(evidence.segments[:1]))
    assert [(each.rule, each.offset) for each in findings_of(first)] == [("transaction-open", 0)]
    assert last_stable_offset(first) == 0
