# SPDX-License-Identifier: Apache-2.0
"""Rules about the records in a batch."""

from unittest import mock

import pytest

from raftlog.errors import MissingExtraError
from raftlog.records.batches import batch as batch_module
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.compression import CompressionType, compress
from raftlog.records.batches.record import Header, RawRecord, encode_record
from tests.raft_frames import batch_with_a_record_longer_by
from tests.strategies import TIMESTAMP, batch_bytes
from tests.tools.auditing.made_segments import data_batch, finding, places, survey

_AT = len(data_batch(0))


def _record(offset_delta: int, timestamp_delta: int = 0, key: bytes | None = None, value: bytes | None = b"v") -> bytes:
    return encode_record(RawRecord(0, timestamp_delta, offset_delta, key, value, ()))


def _log(
    *deltas: int, last: int, codec: CompressionType = CompressionType.NONE, max_timestamp: int = TIMESTAMP
) -> bytes:
    """A sound batch, one with records at some offsets, and a sound one."""
    area = compress(codec, b"".join(map(_record, deltas)))
    batch = batch_bytes(
        area,
        base_offset=1,
        epoch=1,
        attributes=codec,
        last_offset_delta=last,
        max_timestamp=max_timestamp,
        count=len(deltas),
    )
    return data_batch(0) + batch + data_batch(last + 2)


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP])
@pytest.mark.parametrize("deltas", [(0, 2, 1), (1, 1), (-1, 2), (0, 3)])
def test_records_out_of_order(deltas: tuple[int, ...], codec: CompressionType) -> None:
    """Offsets that do not increase, or are not those of the batch, are damage, whether it is compressed or not."""
    evidence = survey(_log(*deltas, last=2, codec=codec), is_raft=False)
    assert places(evidence) == [("record-offset", _AT, 1)]


@pytest.mark.parametrize("deltas", [(0, 2), (1, 2), (2,), ()])
def test_records_that_compaction_removed(deltas: tuple[int, ...]) -> None:
    """Any offset may be missing in a log that is not of raft; in raft each has a record."""
    log = _log(*deltas, last=2)
    assert survey(log, is_raft=False).findings == ()
    assert places(survey(log))[0] == ("raft-batch", _AT, 1)


def test_a_record_for_each_offset() -> None:
    """In raft a batch that leaves one offset out is one finding."""
    assert places(survey(_log(0, 2, 3, last=2))) == [("record-offset", _AT, 1)]
    gap = batch_bytes(_record(0) + _record(2), base_offset=1, epoch=1, last_offset_delta=2, count=2)
    assert finding(survey(data_batch(0) + gap), "raft-batch").reason == "2 records for offsets 1 to 3"


def test_a_max_timestamp_of_no_record() -> None:
    """The max timestamp of a batch is that of its latest record."""
    log = _log(0, last=0, max_timestamp=TIMESTAMP + 5)
    assert places(survey(log, is_raft=False)) == [("timestamp-max", _AT, 1)]
    assert finding(survey(log), "timestamp-max").reason.endswith(f"the latest record is of {TIMESTAMP}")
    append_time = batch_bytes(_record(0), epoch=1, attributes=8, max_timestamp=TIMESTAMP + 5, count=1)
    assert survey(append_time, is_raft=False).findings == ()
    assert survey(_log(last=3, max_timestamp=TIMESTAMP + 5), is_raft=False).findings[0].rule == "timestamp-back"


@pytest.mark.parametrize(
    ("record", "rule"),
    [
        (_record(0, key=b"k"), "frame-empty"),
        (_record(0, value=None), "frame-empty"),
        (_record(0, value=b""), "frame-empty"),
        (encode_record(RawRecord(0, 0, 0, None, b"v", (Header(b"h", b"x"),))), "raft-record"),
    ],
)
def test_batches_that_raft_does_not_write(record: bytes, rule: str) -> None:
    """A key, a missing value and headers are findings in the metadata log alone."""
    log = data_batch(0) + batch_bytes(record, base_offset=1, epoch=1, count=1)
    assert places(survey(log)) == [(rule, _AT, 1)]
    assert survey(log, is_raft=False).findings == ()


@pytest.mark.parametrize(("difference", "before"), [(-1, 2), (0, 2), (1, 0), (1, 2)])
def test_records_longer_than_their_batch(difference: int, before: int) -> None:
    """A compressed record may be as long as the whole batch in raft, and no longer; elsewhere of any length."""
    log = data_batch(0) + batch_with_a_record_longer_by(difference, base_offset=1, before=before)
    assert places(survey(log)) == ([("raft-frame", _AT, 1)] if difference > 0 else [])
    assert places(survey(log, is_raft=False)) == []


def test_a_time_of_its_own() -> None:
    """Records of different times are what Kafka's raft reader stops at."""
    builder = RecordBatchBuilder(0, partition_leader_epoch=1)
    builder.extend([(TIMESTAMP, None, b"v"), (TIMESTAMP + 1, None, b"v")])
    assert places(survey(builder.build())) == [("raft-record", 0, 0)]
    assert survey(builder.build(), is_raft=False).findings == ()
    behind = encode_record(RawRecord(0, 5, 0, None, b"v", ()))
    one_time = batch_bytes(behind, epoch=1, attributes=8, count=1)
    assert [record.timestamp for record in RecordBatch(memoryview(one_time), 0).records()] == [TIMESTAMP]
    # Kafka's reader does not ask what kind of time it is; and no leader of raft writes that kind.
    assert places(survey(one_time)) == [("batch-bare", 0, 0), ("raft-record", 0, 0)]
    assert survey(one_time, is_raft=False).findings == ()


def test_a_control_record_that_is_not_bare() -> None:
    """Headers and own timestamps of control records are reported as such."""
    key, value = b"\0\0\0\x63", b"\0\0"
    area = encode_record(RawRecord(0, 5, 0, key, value, ()))
    log = batch_bytes(area, epoch=1, attributes=0x20, max_timestamp=TIMESTAMP + 5, count=1)
    assert places(survey(log)) == [("raft-batch", 0, 0), ("control-type", 0, 0)]


def test_records_that_do_not_read() -> None:
    """A batch that its reader refuses is a finding by that rule, and no other rule is checked."""
    wrong = batch_bytes(_record(5, 9)[:-1], base_offset=1, epoch=1, count=1)
    evidence = survey(data_batch(0) + wrong + data_batch(2))
    assert [each.rule for each in evidence.findings] == ["record-length"]
    assert evidence.findings[0].offset == 1


def test_a_codec_that_is_not_installed() -> None:
    """Records that cannot be decompressed here are one finding, but not damage."""
    log = b"".join(
        batch_bytes(b"?", base_offset=offset, epoch=1, attributes=CompressionType.ZSTD, count=1) for offset in range(3)
    )
    missing = MissingExtraError("codecs", "zstd")
    with mock.patch.object(batch_module, "decompress", side_effect=missing):
        evidence = survey(log, is_raft=False)
    assert [each.rule for each in evidence.findings] == ["file-unreadable"]
    assert evidence.findings[0].reason == f"records of 3 batches: {missing}"


@pytest.mark.parametrize("codec", list(CompressionType))
def test_bytes_after_a_compressed_stream(codec: CompressionType) -> None:
    """What follows a stream in its batch is not read by Kafka, or makes it fail; a sound batch has nothing there."""
    records = _record(0) + _record(1)
    stream = compress(codec, records)
    for rest in (b"", b"junk", bytes(3)):
        log = data_batch(0) + batch_bytes(
            stream + rest, base_offset=1, epoch=1, attributes=codec, last_offset_delta=1, count=2
        )
        found = [rule for rule, _, _ in places(survey(log, is_raft=False))]
        ignored = codec in {CompressionType.GZIP, CompressionType.LZ4}
        broken = "batch-trailing" if codec is CompressionType.NONE else "codec-stream"
        assert found == ([] if not rest else ["codec-trailing"] if ignored else [broken])


@pytest.mark.parametrize(
    ("delta", "key", "count", "is_found"),
    [(1, None, 2, False), (2, None, 2, True), (900, None, 2, True), (2, b"k", 2, False), (0, None, 0, False)],
)
def test_the_last_offset_of_the_last_batch(delta: int, key: bytes | None, count: int, is_found: bool) -> None:
    """Records without keys are never compacted, so that their batch has as many offsets; no next batch shows it."""
    area = b"".join(encode_record(RawRecord(0, 0, number, key, b"v", ())) for number in range(count))
    log = data_batch(0) + batch_bytes(area, base_offset=1, epoch=1, last_offset_delta=delta, count=count)
    expected = [("batch-span", len(data_batch(0)), 1)] if is_found else []
    assert places(survey(log, is_raft=False)) == expected
    assert places(survey(log + data_batch(2 + delta), is_raft=False)) == []
