# SPDX-License-Identifier: Apache-2.0
"""Surveying snapshots: nothing is said of sound ones, and each fault is one finding at its place."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.iterator import BufferSource
from raftlog.records.files.file_names import FileKind
from raftlog.records.messages.control import ControlRecordType
from raftlog.records.rules import Severity
from raftlog.snapshot.paths import parse_snapshot_name
from raftlog.snapshot.reader import RecordsSnapshotReader
from raftlog.tools.auditing.evidence import FileEvidence, Place, SurveyTask
from raftlog.tools.auditing.survey.snapshot_survey import survey_snapshot
from tests.golden_files import golden_id, record_files
from tests.snapshot.snapshot_bytes import FOOTER, HEADER, ID, control, data
from tests.strategies import TIMESTAMP, batch_bytes, legacy_message, mutated
from tests.tools.auditing.made_segments import with_base_offset, with_epoch

SNAPSHOTS = [path for path in record_files() if path.suffix == ".checkpoint"]
PATH = "node/__cluster_metadata-0/x.checkpoint"
WHOLE = [control(HEADER, 0), data(2), data(4), control(FOOTER, 6)]
STARTS = [0, len(WHOLE[0]), len(WHOLE[0] + WHOLE[1]), len(b"".join(WHOLE[:3])), len(b"".join(WHOLE))]


def survey(snapshot: bytes, snapshot_id: OffsetAndEpoch | None = ID) -> FileEvidence:
    """Survey bytes."""
    kind = FileKind.BOOTSTRAP_SNAPSHOT if snapshot_id is None else FileKind.SNAPSHOT
    task = SurveyTask(Place("node", "__cluster_metadata", 0), PATH, kind, snapshot_id=snapshot_id)
    return survey_snapshot(task, BufferSource(snapshot))


@pytest.mark.parametrize("path", SNAPSHOTS, ids=golden_id)
def test_kafkas_files_have_no_findings(path: Path) -> None:
    """A real snapshot has no finding, all its bytes are explained, and its header and footer are seen."""
    name = parse_snapshot_name(path.name)
    id_ = None if name is None else name.snapshot_id

    evidence = survey(path.read_bytes(), id_)

    assert evidence.findings == ()
    assert evidence.coverage is not None
    assert evidence.coverage.explained_bytes == path.stat().st_size
    types = [seen.read().type for seen in evidence.controls]
    assert (types[0], types[-1]) == (ControlRecordType.SNAPSHOT_HEADER, ControlRecordType.SNAPSHOT_FOOTER)
    reader = RecordsSnapshotReader(BufferSource(path.read_bytes()), id_ or OffsetAndEpoch(0, 0))
    batches = [each if isinstance(each, RecordBatch) else each.batch for each in reader]
    assert evidence.extent is not None
    assert evidence.extent.batch_count == len(batches)
    assert evidence.extent.record_count == sum(batch.record_count for batch in batches) == evidence.extent.end_offset


def made(area: bytes) -> list[bytes]:
    """Return a snapshot whose second data batch has other records."""
    batch = batch_bytes(area, base_offset=4, epoch=ID.epoch, last_offset_delta=1, count=2)
    return [WHOLE[0], WHOLE[1], batch, WHOLE[3]]


AREA = data(4)[61:]
KEYED = data(4, key=b"k")
OLD = legacy_message(1, 0, None, b"")
WRONG_FOOTER = WHOLE[3][:-1] + b"\xff"

FAULTS: dict[str, tuple[Callable[[list[bytes]], list[bytes]], str, int]] = {
    "no header": (lambda batches: batches[1:], "snapshot-header", 0),
    "no footer": (lambda batches: batches[:-1], "snapshot-footer", STARTS[3]),
    "a lost batch": (lambda batches: [batches[0], *batches[2:]], "snapshot-offset", STARTS[1]),
    "a wrong base offset": (
        lambda batches: [batches[0], with_base_offset(batches[1], 3), *batches[2:]],
        "snapshot-offset",
        STARTS[1],
    ),
    "a wrong epoch": (
        lambda batches: [batches[0], with_epoch(batches[1], 9), *batches[2:]],
        "snapshot-epoch",
        STARTS[1],
    ),
    "another epoch": (lambda batches: [with_epoch(batch, 9) for batch in batches], "snapshot-epoch", 0),
    "a header twice": (lambda batches: [batches[0], *batches], "snapshot-control", STARTS[1]),
    "a batch behind the footer": (lambda batches: [*batches, data(7)], "snapshot-footer", STARTS[4]),
    "a flipped bit": (
        lambda batches: [batches[0], batches[1][:-1] + b"\xff", *batches[2:]],
        "batch-crc",
        STARTS[1],
    ),
    "a flipped bit in the header": (lambda batches: [batches[0][:-1] + b"\xff", *batches[1:]], "batch-crc", 0),
    "a flipped bit in the footer": (lambda batches: [*batches[:-1], WRONG_FOOTER], "batch-crc", STARTS[3]),
    "a cut": (lambda batches: [*batches[:-1], batches[-1][:-5]], "snapshot-footer", STARTS[3]),
    "zeros for the footer": (lambda batches: [*batches[:-1], bytes(75)], "snapshot-footer", STARTS[3]),
    "zeros alone": (lambda batches: [bytes(500)], "snapshot-footer", 0),
    "nothing": (lambda batches: [], "snapshot-header", 0),
    "bytes behind the footer": (lambda batches: [*batches, b"rest"], "tail-torn", STARTS[4]),
    "zeros behind the footer": (lambda batches: [*batches, bytes(500)], "tail-zero", STARTS[4]),
    "a message of old": (lambda batches: [*batches[:2], OLD, *batches[2:]], "batch-magic", STARTS[2]),
    "records that are no records": (lambda batches: made(b"\x7f\x7f"), "record-length", STARTS[2]),
    "records out of order": (lambda batches: made(AREA[12:] + AREA[:12]), "record-offset", STARTS[2]),
    "a key": (lambda batches: [*batches[:2], KEYED, batches[3]], "frame-empty", STARTS[2]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_finding(fault: str) -> None:
    """Each fault is one finding with its rule and place; the bytes after it are read."""
    spoil, rule, position = FAULTS[fault]

    evidence = survey(b"".join(spoil(list(WHOLE))))

    assert [(finding.rule, finding.path) for finding in evidence.findings] == [(rule, PATH)]
    (found,) = evidence.findings
    assert found.position is not None
    assert position <= found.position <= position + 61  # A record that does not read has a place of its own.
    is_read_to_its_end = rule not in {"snapshot-footer"} and "footer" not in fault and fault != "nothing"
    assert (ControlRecordType.SNAPSHOT_FOOTER in [each.read().type for each in evidence.controls]) >= is_read_to_its_end


def test_bootstrap_checkpoint_is_of_epoch_0() -> None:
    """A snapshot without an id is judged as one of epoch 0."""
    assert [finding.rule for finding in survey(b"".join(WHOLE), None).findings] == ["snapshot-epoch"]
    of_epoch_0 = b"".join(with_epoch(batch, 0) for batch in WHOLE)
    assert survey(of_epoch_0, None).findings == ()


@given(st.data())
def test_any_bytes_are_accounted_for(draw: st.DataObject) -> None:
    """Whatever is done to a snapshot, its bytes are counted, and a change that it has not survived is found."""
    changed = draw.draw(mutated(b"".join(WHOLE)))
    evidence = survey(changed)
    coverage = evidence.coverage
    assert coverage is not None
    assert coverage.explained_bytes + coverage.damaged_bytes + coverage.padding_bytes == len(changed)
    if coverage.explained_bytes < len(changed) or not changed:
        assert evidence.findings


def test_findings_of_a_rule_are_limited() -> None:
    """A thousand faults of a kind are a hundred findings, and one that says how many more there are."""
    batches = [data(2, epoch=5 + index % 2) for index in range(1000)]
    findings = survey(b"".join([WHOLE[0], *batches, WHOLE[3]])).findings
    offsets = [finding for finding in findings if finding.rule == "snapshot-offset"]
    assert len(offsets) == 101
    assert "more" in offsets[-1].reason


def test_a_compressed_snapshot_is_read() -> None:
    """Records are checked whatever their codec; compression in a raft log is reported."""
    builder = RecordBatchBuilder(2, partition_leader_epoch=3, compression_type=CompressionType.GZIP)
    builder.extend([(TIMESTAMP, None, b"value")] * 4)
    findings = survey(WHOLE[0] + builder.build() + WHOLE[3]).findings
    assert {finding.severity for finding in findings} <= {Severity.SUSPICIOUS}
