# SPDX-License-Identifier: Apache-2.0
"""Rules about the header of a batch, and about timestamps from batch to batch."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.record import RawRecord, encode_record
from raftlog.records.messages.control import EndTxnMarker, write_control_record
from tests.strategies import TIMESTAMP, batch_bytes, with_crc
from tests.tools.auditing.made_segments import TINY_CHUNK, data_batch, finding, places, survey, with_epoch

_AREA = data_batch(0)[61:]


@pytest.mark.parametrize("attributes", [0x80, 0x100, -0x8000])
def test_unused_attributes(attributes: int) -> None:
    """A bit above the sixth is suspicious, in any log."""
    log = data_batch(0) + batch_bytes(_AREA, base_offset=1, epoch=1, attributes=attributes, count=1)
    evidence = survey(log, is_raft=False)
    assert places(evidence) == [("batch-attributes", len(log) // 2, 1)]
    assert finding(evidence, "batch-attributes").reason == f"attributes 0x{attributes & 0xFFFF:04x}"
    assert places(survey(log)) == places(evidence)


@pytest.mark.parametrize(
    "builder",
    [
        RecordBatchBuilder(1, partition_leader_epoch=1, producer_id=7, producer_epoch=0, base_sequence=0),
        RecordBatchBuilder(1, partition_leader_epoch=1, base_sequence=0),
    ],
)
def test_a_batch_of_raft_is_bare(builder: RecordBatchBuilder) -> None:
    """A producer is suspicious in a log of raft, and nothing in another."""
    builder.append(TIMESTAMP, None, b"v")
    log = data_batch(0) + builder.build()
    assert places(survey(log)) == [("batch-bare", len(data_batch(0)), 1)]
    assert places(survey(log, is_raft=False)) == []


@pytest.mark.parametrize("attributes", [0x08, 0x40, 0x48])
def test_a_batch_of_raft_has_create_times_and_no_delete_horizon(attributes: int) -> None:
    """A broker stamps and compacts batches of topics, and never those of raft."""
    log = data_batch(0) + batch_bytes(_AREA, base_offset=1, epoch=1, attributes=attributes, count=1)
    assert places(survey(log)) == [("batch-bare", len(data_batch(0)), 1)]
    assert places(survey(log, is_raft=False)) == []


@pytest.mark.parametrize(
    ("attributes", "producer_id", "producer_epoch", "sequence", "is_found"),
    [
        (0, -1, -1, -1, False),
        (0, -1, 0, 0, False),  # Clients that are not idempotent may write 0.
        (0, 7, 0, 0, False),
        (0, 7, 0, -1, True),
        (0x10, 7, 0, 0, False),
        (0x10, -1, -1, -1, True),
        (0x10, -1, 0, 0, True),
        (0x30, 7, 0, -1, False),
        (0x30, -1, 0, -1, True),
    ],
)
def test_what_a_batch_says_of_its_producer(
    attributes: int, producer_id: int, producer_epoch: int, sequence: int, is_found: bool
) -> None:
    """A producer has a sequence, except for markers; a transaction has a producer."""
    marker = encode_record(
        RawRecord(0, 0, 0, *write_control_record(EndTxnMarker(committed=True, coordinator_epoch=0)), ())
    )
    area = marker if attributes & 0x20 else _AREA
    batch = batch_bytes(
        area,
        base_offset=1,
        epoch=1,
        attributes=attributes,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
        count=1,
    )
    found = [place for place in places(survey(data_batch(0) + batch, is_raft=False)) if place[0] == "batch-producer"]
    assert found == ([("batch-producer", len(data_batch(0)), 1)] if is_found else [])


@pytest.mark.parametrize(("count", "is_found"), [(0, False), (1, False), (2, True)])
def test_a_marker_is_alone(count: int, is_found: bool) -> None:
    """A control batch of a topic has one record, or none if it was compacted; one of raft may have more."""
    log = batch_bytes(_AREA * count, epoch=1, attributes=0x20, last_offset_delta=max(0, count - 1), count=count)
    found = [place for place in places(survey(log, is_raft=False)) if place[0] == "control-alone"]
    assert found == ([("control-alone", 0, 0)] if is_found else [])
    assert not [place for place in places(survey(log)) if place[0] == "control-alone"]


def test_a_batch_of_raft_may_be_compressed() -> None:
    """Kafka writes none, and reads what raftlog compresses."""
    builder = RecordBatchBuilder(1, partition_leader_epoch=1, compression_type=CompressionType.GZIP)
    builder.append(TIMESTAMP, None, b"v")
    assert survey(data_batch(0) + builder.build()).findings == ()


def test_an_epoch_below_zero() -> None:
    """No epoch is an epoch below 0: damage in a log of raft, and what an old broker wrote elsewhere."""
    log = data_batch(0) + with_epoch(data_batch(1), -1) + data_batch(2)
    assert places(survey(log)) == [("epoch-negative", len(data_batch(0)), 1)]
    assert places(survey(log, is_raft=False)) == []


def test_timestamps_below_none() -> None:
    """-1 means no timestamp; a lower one is suspicious."""
    low = batch_bytes(_AREA, epoch=1, base_timestamp=-9, max_timestamp=-9, count=1)
    assert places(survey(low)) == [("timestamp-negative", 0, 0)]
    assert finding(survey(low), "timestamp-negative").reason == "base timestamp -9, max timestamp -9"
    assert places(survey(batch_bytes(_AREA, epoch=1, base_timestamp=-1, max_timestamp=-1, count=1))) == []


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-1, 9), min_size=1, max_size=12), st.sampled_from([TINY_CHUNK, 300, None]))
def test_timestamps_that_go_back_are_counted(times: list[int], chunk_size: int | None) -> None:
    """One harmless finding a file says at how many batches max timestamps go back, and how far; -1 does not count."""
    log = b"".join(data_batch(offset, timestamp=time) for offset, time in enumerate(times))
    back = [max(times[:at]) - time for at, time in enumerate(times) if at and 0 <= time < max(times[:at])]
    evidence = survey(log, chunk_size=chunk_size)
    expected = [f"max timestamps go back at {len(back)} batches, by {max(back)} ms at most"] if back else []
    assert [each.reason for each in evidence.findings] == expected
    if back:
        assert evidence.findings[0].offset == next(
            at for at, time in enumerate(times) if at and 0 <= time < max(times[:at])
        )


def test_offsets_that_cannot_be() -> None:
    """An offset or a delta below 0, and an end beyond 64 bits, are damage; what follows is judged as before."""
    for offset, delta in ((-5, 0), (1, -2), (2**63 - 1, 0), (2**63 - 5, 9)):
        wrong = with_crc(batch_bytes(_AREA, base_offset=offset, last_offset_delta=delta, epoch=1, count=1))
        evidence = survey(data_batch(0) + wrong + data_batch(2) + data_batch(3), is_raft=False)
        assert places(evidence) == [("offset-negative", len(data_batch(0)), offset)]
