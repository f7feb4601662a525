# SPDX-License-Identifier: Apache-2.0
"""Control batches: written as Kafka writes them, and refused if a raft reader would stop at them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import InvalidControlBatchError
from raftlog.records.batches.batch import RecordBatch, TimestampType
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.control_batch import read_control_batch, write_control_batch
from raftlog.records.messages.control import KRaftVersionRecord, LeaderChangeMessage, SnapshotFooterRecord, Voter
from tests.records import vectors
from tests.strategies import TIMESTAMP, mutated, with_crc

LEADER_CHANGE = LeaderChangeMessage(1, (Voter(1), Voter(2), Voter(3)), (Voter(1), Voter(3)))
FOOTER = (b"\0\0\0\4", b"\0\0\0")


def built(*records: tuple[Any, ...], offset: int | None = None, base_offset: int = 10, **options: Any) -> bytes:
    """Write a control batch of pairs of key and value, and headers if there is a third part."""
    builder = RecordBatchBuilder(base_offset, **({"partition_leader_epoch": 5, "is_control": True} | options))
    for index, record in enumerate(records):
        builder.append(TIMESTAMP, *record, offset=offset if index else None)
    return builder.build()


def test_leader_change_vector() -> None:
    """A control batch is written as Kafka writes it."""
    data = write_control_batch([LEADER_CHANGE], base_offset=0, epoch=5, timestamp=TIMESTAMP)
    assert data == vectors.LEADER_CHANGE
    assert read_control_batch(data, base_offset=0, epoch=5) == RecordBatch(vectors.LEADER_CHANGE)


@given(st.lists(st.sampled_from([LEADER_CHANGE, KRaftVersionRecord(1), SnapshotFooterRecord()]), min_size=1))
def test_every_batch_that_is_written_is_accepted(values: list[Any]) -> None:
    """A written control batch is read at its position, compressed or not, and nowhere else."""
    for codec in (CompressionType.NONE, CompressionType.GZIP):
        data = write_control_batch(values, base_offset=10, epoch=5, timestamp=TIMESTAMP, compression_type=codec)
        assert read_control_batch(data, base_offset=10, epoch=5).record_count == len(values)
        for place in ({"base_offset": 11, "epoch": 5}, {"base_offset": 10, "epoch": 6}):
            with pytest.raises(InvalidControlBatchError):
                read_control_batch(data, **place)


@given(mutated(built(FOOTER, FOOTER), repair=True) | st.binary(max_size=200))
def test_any_bytes_are_a_control_batch_or_an_error(data: bytes) -> None:
    """Whatever the bytes are, they are accepted or refused with the one type."""
    try:
        batch = read_control_batch(data, base_offset=10, epoch=5)
    except InvalidControlBatchError:
        return
    assert (batch.base_offset, batch.partition_leader_epoch, batch.is_control) == (10, 5, True)
    assert [record.offset for record in batch.records()] == list(range(10, 10 + batch.record_count))
    assert batch.size_bytes == len(data)


GOOD = built(FOOTER)
GAP = built(FOOTER, FOOTER, offset=12)
EMPTY = with_crc(GOOD[:57] + bytes(4))


@pytest.mark.parametrize(
    ("problem", "data"),
    [
        ("not a batch that can be read", b""),
        ("not a batch that can be read", GOOD[:-1]),
        ("not a batch that can be read: .*CRC", GOOD[:-1] + b"\1"),
        ("bytes follow the control batch", GOOD + GOOD),
        ("no records", EMPTY[:8] + (49).to_bytes(4, "big") + EMPTY[12:61]),
        ("magic of the control batch is 1", GOOD[:16] + b"\1" + GOOD[17:]),
        ("control flag", built(FOOTER, is_control=False)),
        ("base offset of the control batch is 9, not 10", built(FOOTER, base_offset=9)),
        ("epoch of the control batch is 4, not 5", built(FOOTER, partition_leader_epoch=4)),
        ("last offset delta", built(FOOTER, last_offset_delta=1)),
        ("record 1 .*SNAPSHOT_FOOTER", with_crc(GAP[:26] + b"\1" + GAP[27:])),
        ("record 0 .*ABORT", built((b"\0\0\0\0", b"\0\0\0\0\0\0"))),
        ("record 0 .*type 77", built((b"\0\0\0\x4d", b"\0\0\0"))),
        ("record 0 ", built((*FOOTER, [(b"h", b"v")]))),
        ("record 1 ", built(FOOTER, (b"\0\0\0\x4d", b""))),
        ("record 0 ", built(FOOTER, delete_horizon_ms=TIMESTAMP - 1)),
        ("key is 3 bytes", built((b"\0\0\0", b"\0\0\0"))),
        ("does not read", built((b"\0\0\0\4", b"\0\0"))),
        ("more than 8388608 bytes", built((FOOTER[0], bytes(2**23)), compression_type=CompressionType.GZIP)),
    ],
)
def test_a_batch_that_a_raft_reader_stops_at_is_refused(problem: str, data: bytes) -> None:
    """Each way to be no proper control batch is refused, with words for it."""
    with pytest.raises(InvalidControlBatchError, match=problem):
        read_control_batch(data, base_offset=10, epoch=5)


def test_log_append_time_is_no_reason_to_refuse() -> None:
    """Kafka's readers take either type of timestamp."""
    data = built(FOOTER, timestamp_type=TimestampType.LOG_APPEND_TIME)
    assert read_control_batch(data, base_offset=10, epoch=5).record_count == 1
