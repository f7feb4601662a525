# SPDX-License-Identifier: Apache-2.0
"""Taking records out that nodes die of: by a snapshot where one covers them, by a no-op where none does."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import RepairRefusedError
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.compression import CompressionType
from raftlog.records.messages.metadata import metadata_record, read_metadata_record, write_metadata_record
from raftlog.tools.payloads.format_features import sets_the_version
from raftlog.tools.salvage.replacing import NO_OP, replaced_batch
from tests.tools.console import run
from tests.tools.made_logs import control_batch
from tests.tools.repair.repaired import LOG, STATIC, batches, copied, everything
from tests.tools.salvage.salvaged import apply, batch_at, content, plan

VALUES = st.lists(st.tuples(st.integers(0, 1 << 40), st.none() | st.binary(max_size=9)), min_size=1, max_size=9)


def built(values: list[tuple[int, bytes | None]], codec: CompressionType = CompressionType.NONE) -> RecordBatch:
    """A batch at offset 100, of epoch 7."""
    builder = RecordBatchBuilder(100, partition_leader_epoch=7, compression_type=codec)
    builder.extend([(time, None, value) for time, value in values])
    return RecordBatch(builder.build())


@given(VALUES, st.sampled_from([CompressionType.NONE, CompressionType.GZIP]), st.data())
def test_only_the_values_of_some_records_change(
    values: list[tuple[int, bytes | None]], codec: CompressionType, data: st.DataObject
) -> None:
    """Everything else of the batch and of its records is as it was."""
    offsets = data.draw(st.sets(st.integers(100, 99 + len(values)), min_size=1))
    before = built(values, codec)
    after = RecordBatch(replaced_batch(before, offsets))
    after.ensure_valid()
    for field in ("base_offset", "last_offset", "partition_leader_epoch", "attributes", "max_timestamp", "producer_id"):
        assert getattr(after, field) == getattr(before, field)
    for old, new in zip(before.records(), after.records(), strict=True):
        expected = old._replace(value=NO_OP) if old.offset in offsets else old
        assert new == expected


def test_a_no_op_is_kafkas() -> None:
    """The value is a NoOpRecord of version 0, with no field."""
    assert bytes.fromhex("01140000") == NO_OP
    assert read_metadata_record(NO_OP).type.name == "NoOpRecord"


def of(kind: str, **fields: object) -> RecordBatch:
    """A batch of one metadata record."""
    return built([(1, write_metadata_record(metadata_record(kind, fields)))])


@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        (RecordBatch(control_batch(100, b"\0\0\0\5", b"\0\0\0\1\0")), "is a control record"),
        (of("BeginTransactionRecord", name=None), "is a BeginTransactionRecord"),
        (of("EndTransactionRecord"), "is a EndTransactionRecord"),
        (of("AbortTransactionRecord", reason=None), "is a AbortTransactionRecord"),
        (of("FeatureLevelRecord", name="metadata.version", featureLevel=7), "sets metadata.version"),
    ],
)
def test_what_must_not_be_replaced(batch: RecordBatch, reason: str) -> None:
    """Control records, what begins and ends transactions, and the record without which Kafka does not start."""
    with pytest.raises(RepairRefusedError, match=reason):
        replaced_batch(batch, [100])


def test_an_offset_without_a_record() -> None:
    """It lies in the batch, where no record is."""
    builder = RecordBatchBuilder(100, partition_leader_epoch=7, last_offset_delta=3)
    builder.append(1, None, b"v")
    with pytest.raises(RepairRefusedError, match="no record at offset 102"):
        replaced_batch(RecordBatch(builder.build()), [100, 102])


@pytest.mark.parametrize("offset", [10, 230 - 1])
def test_a_snapshot_passes_the_record(offset: int, quorum: Path, tmp_path: Path) -> None:
    """The log begins after its batch, with no byte changed; nobody else needs to do anything."""
    before = everything(quorum)
    planned = plan(quorum / "n3", file=tmp_path / "plan", options=("--replace", str(offset)))
    assert planned.exit_code == 0, planned.messages
    assert apply(tmp_path / "plan", tmp_path / "new").exit_code == 0
    start = batch_at(quorum / "n3", offset)[1].next_offset
    assert batches(tmp_path / "new") == [each for each in batches(quorum / "n3") if each.base_offset >= start]
    assert (content(tmp_path / "plan")["replacements"], content(tmp_path / "plan")["passed"]) == ([], [offset])
    assert not (tmp_path / "new" / LOG / "00000000000000000000-0000000000.checkpoint").exists()
    assert everything(quorum) == before


def test_a_no_op_takes_the_place_of_the_record(quorum: Path, tmp_path: Path) -> None:
    """Without a snapshot, records of two batches become no-ops, where they were; the disks that have them are named."""
    for node in ("n2", "n3"):
        for path in (quorum / node / LOG).glob("*.checkpoint"):
            if int(path.name[:20]):
                path.unlink()
    offsets = [next(each.base_offset for each in batches(quorum / "n3") if is_plain(each, least)) for least in (20, 90)]
    options = [option for each in offsets for option in ("--replace", str(each))]
    planned = plan(quorum / "n3", quorum / "n2", file=tmp_path / "plan", options=tuple(options))
    assert planned.exit_code == 0, planned.messages
    assert apply(tmp_path / "plan", tmp_path / "new").exit_code == 0

    old = [record for batch in batches(quorum / "n3") for record in batch.records()]
    new = [record for batch in batches(tmp_path / "new") for record in batch.records()]
    assert new == [each._replace(value=NO_OP) if each.offset in offsets else each for each in old]
    epochs = [[each.partition_leader_epoch for each in batches(place)] for place in (quorum / "n3", tmp_path / "new")]
    assert epochs[0] == epochs[1]
    found = content(tmp_path / "plan")["replacements"]
    assert [each["offsets"] for each in found] == [[each] for each in offsets]
    assert [each["holders"] for each in found] == [[0, 1]] * 2
    text = run("salvage", quorum / "n3", quorum / "n2", *options, "--plan", tmp_path / "plan").text
    assert f"{quorum}/n3, {quorum}/n2 have the record itself" in text


def is_plain(batch: RecordBatch, least: int) -> bool:
    """Whether a batch has one record from an offset on, that may be replaced."""
    return batch.base_offset >= least and batch.record_count == 1 and not batch.is_control


def test_an_offset_that_is_not_in_the_log(quorum: Path, tmp_path: Path) -> None:
    """After the end there is no record; before the start there is nothing to do."""
    refused = plan(quorum / "n3", file=tmp_path / "plan", options=("--replace", "230"))
    assert (refused.exit_code, "the log ends at offset 230" in refused.messages) == (1, True)
    refused = plan(quorum / "n3", file=tmp_path / "plan", options=("--replace", "-1"))
    assert (refused.exit_code, "an offset is 0 or more" in refused.messages) == (1, True)
    assert not (tmp_path / "plan").exists()
    assert plan(quorum / "n4", file=tmp_path / "plan", options=("--replace", "0")).exit_code == 0
    assert content(tmp_path / "plan")["passed"] == [0]


def test_the_record_of_metadata_version_stays(tmp_path: Path) -> None:
    """Kafka does not start without it, and a log of static voters without snapshots has only one."""
    static = copied(tmp_path, "static", STATIC)
    for path in (static / "n1" / LOG).glob("*.checkpoint"):
        path.unlink()
    records = [record for batch in batches(static / "n1") for record in batch.records()]
    offset = next(each.offset for each in records if sets_the_version(each.value or b""))
    refused = plan(static / "n1", file=tmp_path / "plan", options=("--replace", str(offset)))
    assert (refused.exit_code, "sets metadata.version" in refused.messages) == (1, True), refused.messages
