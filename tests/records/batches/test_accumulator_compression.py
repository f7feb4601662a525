# SPDX-License-Identifier: Apache-2.0
"""Which batches an accumulator compresses."""

import pytest

from raftlog.errors import (
    InvalidControlBatchError,
)
from raftlog.records.batches.compression import CompressionType
from raftlog.records.messages.control import (
    LeaderChangeMessage,
    Voter,
)
from tests.raft_frames import batch_with_a_record_longer_by
from tests.records.batches.test_accumulator import EPOCH, accumulator, values_of
from tests.strategies import TIMESTAMP


def test_incompressible_batches_are_stored_uncompressed() -> None:
    """Compressed batches never get larger than uncompressed ones, and give memory back when they get smaller."""
    one = accumulator(compression_type=CompressionType.GZIP)
    one.append(EPOCH, [b"a"], TIMESTAMP)
    one.force_drain()
    one.append(EPOCH, [b"a" * 50] * 100, TIMESTAMP)
    assert one.memory.held_bytes > 5000
    small, large = one.drain()
    assert (small.batch.compression_type, large.batch.compression_type) == (CompressionType.NONE, CompressionType.GZIP)
    assert (values_of(small.data), values_of(large.data)) == ([b"a"], [b"a" * 50] * 100)
    assert one.memory.held_bytes == len(small.data) + len(large.data) < 600


@pytest.mark.parametrize("codec", [CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4])
def test_records_too_long_for_kafka_are_stored_uncompressed(codec: CompressionType) -> None:
    """A record that is longer than its compressed batch is not compressed, whether of data or of control."""
    one = accumulator(compression_type=codec)
    one.append(EPOCH, [b"a", b"a" * 5000], TIMESTAMP)
    one.append_leader_change(LeaderChangeMessage(1, (Voter(1),) * 2000), TIMESTAMP)
    data, control = one.drain()
    assert values_of(data.data) == [b"a", b"a" * 5000]
    assert (data.batch.compression_type, control.batch.compression_type) == (CompressionType.NONE, CompressionType.NONE)
    too_long = batch_with_a_record_longer_by(1, base_offset=one.next_offset, epoch=EPOCH, attributes=0x21)
    with pytest.raises(InvalidControlBatchError, match="compressed in"):
        one.append_control_messages(lambda _offset, _time: too_long, TIMESTAMP)
