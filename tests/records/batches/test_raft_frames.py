# SPDX-License-Identifier: Apache-2.0
"""Which compressed batches Kafka's raft readers stop at: by the length of a record beside the size of the batch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import DecodeError
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.compression import CompressionType, compress
from raftlog.records.batches.raft_frames import length_problem, too_long_for_raft
from raftlog.records.batches.record import RawRecord, encode_record
from raftlog.records.varint import read_varint
from tests.raft_frames import batch_with_a_record_longer_by
from tests.strategies import TIMESTAMP, batch_bytes

CODECS = [CompressionType.NONE, CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4, CompressionType.ZSTD]


@given(
    st.lists(st.builds(lambda size, byte: bytes([byte]) * size, st.integers(1, 4000), st.integers(0, 255)), min_size=1),
    st.sampled_from(CODECS),
)
def test_the_first_record_that_is_too_long(values: list[bytes], codec: CompressionType) -> None:
    """It is the first record longer than the batch, whatever the codec; None without one."""
    builder = RecordBatchBuilder(7, partition_leader_epoch=1, compression_type=codec)
    builder.extend([(TIMESTAMP, None, value) for value in values])
    batch = RecordBatch(builder.build())
    records = (encode_record(RawRecord(0, 0, index, None, value, ())) for index, value in enumerate(values))
    lengths = [read_varint(record, 0)[0] for record in records]

    expected = next(((index, each) for index, each in enumerate(lengths) if each > batch.size_bytes), None)

    assert too_long_for_raft(batch) == expected


@pytest.mark.parametrize("before", [0, 3])
@pytest.mark.parametrize("difference", [-1, 0, 1])
def test_the_limit(difference: int, before: int) -> None:
    """A record as long as the whole batch is taken, and one byte more is not."""
    batch = RecordBatch(batch_with_a_record_longer_by(difference, before=before, base_offset=5))

    found = too_long_for_raft(batch)

    if difference <= 0:
        assert (found, length_problem(batch)) == (None, None)
        return
    assert found == (before, batch.size_bytes + 1)
    length = f"the record at offset {5 + before} is {batch.size_bytes + 1} bytes long"
    assert length_problem(batch) == f"{length}, the batch that it is compressed in {batch.size_bytes}"


@pytest.mark.parametrize("area", [b"", b"\0" * 500, b"\1" * 500, b"\xff" * 500])
def test_records_that_are_none(area: bytes) -> None:
    """Behind a record without a length that can be, nothing is said: another rule has that."""
    batch = RecordBatch(batch_bytes(compress(CompressionType.GZIP, area), attributes=1, count=3))

    assert too_long_for_raft(batch) is None


def test_what_does_not_decompress() -> None:
    """It raises what reading the records does."""
    with pytest.raises(DecodeError):
        too_long_for_raft(RecordBatch(batch_bytes(b"no gzip", attributes=1, count=1)))
    with pytest.raises(DecodeError, match="100"):
        too_long_for_raft(RecordBatch(batch_with_a_record_longer_by(1)), 100)
