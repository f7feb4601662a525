# SPDX-License-Identifier: Apache-2.0
"""Rules about the header of a batch, and about timestamps from batch to batch."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.compression import CompressionType
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
