# SPDX-License-Identifier: Apache-2.0
"""Control records of a raft log."""

import pytest
from hypothesis import given, settings

from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.messages.control import (
    ControlValue,
    EndTxnMarker,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    write_control_record,
)
from raftlog.testing.strategies import control_values
from tests.strategies import TIMESTAMP
from tests.tools.auditing.made_segments import data_batch, finding, leader_change, places, survey

_AT = len(leader_change(0, 1))


def _log(*records: tuple[bytes | None, bytes | None]) -> bytes:
    """An epoch's start, and a control batch of some records."""
    builder = RecordBatchBuilder(1, partition_leader_epoch=1, is_control=True)
    builder.extend([(TIMESTAMP, *record) for record in records])
    return leader_change(0, 1) + builder.build()


@settings(max_examples=40, deadline=None)
@given(control_values())
def test_control_records_are_evidence(value: ControlValue) -> None:
    """Every control record that reads is kept, with its place, and says what was written."""
    evidence = survey(data_batch(0, 3) + write_control_batch([value, value], base_offset=1, epoch=3, timestamp=9))
    assert [seen.read().value for seen in evidence.controls] == [value, value]
    at = len(data_batch(0, 3))
    assert [
        (seen.offset, seen.epoch, seen.timestamp, seen.batch_offset, seen.position) for seen in evidence.controls
    ] == [
        (1, 3, 9, 1, at),
        (2, 3, 9, 1, at),
    ]
    assert [seen.opens_with_leader for seen in evidence.epochs] == [False]


def test_compressed_control_records_are_evidence() -> None:
    """A control batch may be compressed."""
    log = write_control_batch(
        [LeaderChangeMessage(1)], base_offset=0, epoch=1, timestamp=9, compression_type=CompressionType.GZIP
    )
    evidence = survey(log)
    assert [seen.offset for seen in evidence.controls] == [0]
    assert evidence.epochs[0].opens_with_leader
    assert places(evidence) == []


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        (b"", b"\0\0", "control-key"),
        (None, b"\0\0", "control-key"),
        (b"\xff\xff\0\2", b"\0\0", "control-key"),
        (b"\0\0\0\x63", b"\0\0", "control-type"),
        (b"\0\1\0\5", b"\0\0\0\1\0", "control-version"),
        (b"\0\0\0\5", b"\0\1\0\1\0", "control-version"),
        (b"\0\0\0\5", b"\0", "control-value"),
        (b"\0\0\0\2", None, "control-value"),
        (*write_control_record(SnapshotHeaderRecord(5)), "control-place"),
        (*write_control_record(SnapshotFooterRecord()), "control-place"),
        (*write_control_record(EndTxnMarker(committed=True, coordinator_epoch=1)), "control-place"),
    ],
)
def test_problems_of_control_records(key: bytes | None, value: bytes | None, rule: str) -> None:
    """Each fault is one finding at its batch; an unreadable record is not evidence. The next one is read."""
    good = write_control_record(LeaderChangeMessage(1))
    evidence = survey(_log((key, value), good))
    assert places(evidence) == [(rule, _AT, 1)]
    is_kept = rule not in {"control-key", "control-value"}
    assert [seen.offset for seen in evidence.controls] == ([0, 1, 2] if is_kept else [0, 2])
    assert survey(_log((key, value)), is_raft=False).controls == ()
    assert finding(survey(_log(good, (key, value))), rule).reason.endswith(", at offset 2")
