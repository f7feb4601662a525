# SPDX-License-Identifier: Apache-2.0
"""The clauses of Kafka's BatchAccumulatorTest. A caller owns the thread, so nothing blocks and nothing is woken up."""

import pytest

from raftlog.errors import BufferExhaustedError, InvalidControlBatchError, NotLeaderError
from raftlog.records.batches.accumulator import BatchAccumulator
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.batches.memory_pool import MemoryPool
from raftlog.records.messages.control import (
    ControlValue,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotHeaderRecord,
    Voter,
    read_control_record,
)
from raftlog.records.messages.voters import voters_record
from raftlog.voters.voter_set import VoterSet
from tests.log.control_batches import voters
from tests.raises import raised

EPOCH, BASE_OFFSET = 17, 157
LEADER_CHANGE = LeaderChangeMessage(1, (Voter(1), Voter(2)), (Voter(1),))


def _accumulator(
    linger_ms: int = 50, memory: MemoryPool | None = None, max_undrained_batches: int = 10
) -> BatchAccumulator:
    return BatchAccumulator(
        EPOCH,
        BASE_OFFSET,
        linger_ms=linger_ms,
        max_batch_size_bytes=1024,
        max_undrained_batches=max_undrained_batches,
        memory=memory or MemoryPool(),
        voters_in_force=VoterSet(),
    )


def _drained(batches: BatchAccumulator) -> list[RecordBatch]:
    with batches.drain() as drained:
        return [RecordBatch(bytes(each.data), 0) for each in drained]


def _values(batch: RecordBatch) -> list[ControlValue | None]:
    return [read_control_record(record.key, record.value).value for record in batch.records()]


def test_leader_change_message_written() -> None:
    """The record that starts an epoch is a control batch of the epoch, due at once."""
    batches = _accumulator()
    assert batches.append_leader_change(LEADER_CHANGE, 5) == BASE_OFFSET
    assert batches.needs_drain(5)
    (batch,) = _drained(batches)
    assert (batch.is_control, batch.partition_leader_epoch, batch.base_offset) == (True, EPOCH, BASE_OFFSET)
    assert _values(batch) == [LEADER_CHANGE]


def test_force_drain() -> None:
    """A forced drain does not wait for the linger time, and leaves nothing."""
    batches = _accumulator()
    assert batches.append(EPOCH, [b"a", b"b", b"c"], 0) == BASE_OFFSET + 2
    assert not batches.needs_drain(0)
    batches.force_drain()
    assert batches.needs_drain(0)
    (batch,) = _drained(batches)
    assert (batch.base_offset, batch.record_count) == (BASE_OFFSET, 3)
    assert batches.is_empty
    assert batches.time_until_drain_ms(0) is None


def test_force_drain_before_append_leader_change_message() -> None:
    """What was appended before a leader change stays before it, in a batch of its own."""
    batches = _accumulator()
    batches.append(EPOCH, [b"a", b"b"], 0)
    batches.force_drain()
    batches.append_leader_change(LEADER_CHANGE, 0)
    first, second = _drained(batches)
    assert (first.base_offset, first.is_control) == (BASE_OFFSET, False)
    assert (second.base_offset, second.is_control) == (BASE_OFFSET + 2, True)


def test_linger_ignored_if_accumulator_empty() -> None:
    """Without records nothing becomes due, however late it is."""
    batches = _accumulator()
    assert batches.time_until_drain_ms(0) is None
    assert not batches.needs_drain(10_000)


@pytest.mark.parametrize(("now_ms", "left_ms"), [(1000, 50), (1049, 1), (1050, 0), (1051, 0)])
def test_linger_begins_on_first_write(now_ms: int, left_ms: int) -> None:
    """The linger time counts from the first record, however long the accumulator was empty before."""
    batches = _accumulator()
    batches.append(EPOCH, [b"a"], 1000)
    batches.append(EPOCH, [b"b"], 1020)
    assert batches.time_until_drain_ms(now_ms) == left_ms


def test_completed_batch_release_buffer() -> None:
    """The memory of a drained batch is held until it is released."""
    memory = MemoryPool()
    batches = _accumulator(memory=memory)
    batches.append(EPOCH, [b"a"], 0)
    drained = batches.drain()
    assert memory.held_bytes > 0
    drained[0].release()
    assert memory.held_bytes == 0


def test_unflushed_buffers_released_by_close() -> None:
    """Closing releases what was not drained."""
    memory = MemoryPool()
    batches = _accumulator(memory=memory)
    batches.append(EPOCH, [b"a"], 0)
    batches.force_drain()
    batches.append(EPOCH, [b"b"], 0)
    batches.close()
    assert memory.held_bytes == 0


def test_single_batch_accumulation() -> None:
    """Appends return the offset of their last record, and share a batch until the linger time is over."""
    batches = _accumulator()
    last_offsets = [batches.append(EPOCH, [b"x"] * count, 0) for count in (1, 3, 2, 3)]
    assert last_offsets == [157, 160, 162, 165]
    assert batches.needs_drain(50)
    (batch,) = _drained(batches)
    assert (batch.base_offset, batch.last_offset) == (157, 165)


def test_multiple_batch_accumulation() -> None:
    """Records fill batches up to the largest size, in order and without gaps."""
    batches = _accumulator()
    while not batches.needs_drain(0):
        batches.append(EPOCH, [b"v" * 64], 0)
    batches.append(EPOCH, [b"v" * 900], 0)
    found = _drained(batches)
    assert len(found) > 1
    assert max(each.size_bytes for each in found) <= 1024
    assert [each.base_offset for each in found[1:]] == [each.last_offset + 1 for each in found[:-1]]


def test_close_when_empty() -> None:
    """An empty accumulator can be closed; then it takes nothing."""
    batches = _accumulator()
    batches.close()
    assert raised(lambda: batches.append(EPOCH, [b"a"], 0)) is NotLeaderError


def test_drain_does_not_block_with_concurrent_append() -> None:
    """An append between a drain and the release of its batches goes on with the next offset.

    Kafka's test has a second thread; this accumulator has one owner, and the order of calls is all that matters.
    """
    batches = _accumulator()
    batches.append(EPOCH, [b"a"], 0)
    with batches.drain() as drained:
        assert batches.append(EPOCH, [b"b"], 0) == BASE_OFFSET + 1
        assert [each.base_offset for each in drained] == [BASE_OFFSET]
    (second,) = _drained(batches)
    assert second.base_offset == BASE_OFFSET + 1


def test_multiple_control_records() -> None:
    """Several control records make one batch with exact offsets."""
    batches = _accumulator()
    values: list[ControlValue] = [LEADER_CHANGE, KRaftVersionRecord(1), voters_record(voters(1, 2))]
    assert batches.append_control_records(values, 0) == BASE_OFFSET + 2
    assert batches.append(EPOCH, [b"a"], 0) == BASE_OFFSET + 3
    control, data = _drained(batches)
    assert (control.base_offset, control.record_count) == (BASE_OFFSET, 3)
    assert _values(control) == values
    assert data.base_offset == BASE_OFFSET + 3


def _control_batch(base_offset: int, epoch: int) -> bytes:
    return write_control_batch([SnapshotHeaderRecord(0)], base_offset=base_offset, epoch=epoch, timestamp=0)


@pytest.mark.parametrize("offset", [BASE_OFFSET - 1, BASE_OFFSET + 1])
def test_invalid_control_record_offset(offset: int) -> None:
    """A control batch of another offset is refused, and nothing changes."""
    batches = _accumulator()
    wrong = _control_batch(offset, EPOCH)
    assert raised(lambda: batches.append_control_messages(lambda _, __: wrong, 0)) is InvalidControlBatchError
    assert batches.is_empty
    assert batches.next_offset == BASE_OFFSET


@pytest.mark.parametrize("epoch", [EPOCH - 1, EPOCH + 1])
def test_invalid_control_record_epoch(epoch: int) -> None:
    """A control batch of another epoch is refused."""
    batches = _accumulator()
    wrong = _control_batch(BASE_OFFSET, epoch)
    assert raised(lambda: batches.append_control_messages(lambda _, __: wrong, 0)) is InvalidControlBatchError


def test_empty_control_batch() -> None:
    """A control batch without records is refused."""
    batches = _accumulator()
    assert raised(lambda: batches.append_control_records([], 0)) is InvalidControlBatchError
    assert raised(lambda: batches.append_control_messages(lambda _, __: b"", 0)) is InvalidControlBatchError


def test_delayed_drain() -> None:
    """Records that are held back are not drained, nor are later ones, until it is allowed."""
    batches = _accumulator(linger_ms=0)
    batches.append(EPOCH, [b"a"], 0)
    batches.force_drain()
    batches.append(EPOCH, [b"b"], 0, delay_drain=True)
    assert [each.base_offset for each in _drained(batches)] == [BASE_OFFSET]
    assert _drained(batches) == []
    batches.allow_drain()
    assert [each.base_offset for each in _drained(batches)] == [BASE_OFFSET + 1]


def test_delayed_drain_are_released() -> None:
    """Closing releases records that are held back, too."""
    memory = MemoryPool()
    batches = _accumulator(memory=memory)
    batches.append(EPOCH, [b"a"], 0, delay_drain=True)
    batches.close()
    assert memory.held_bytes == 0


def test_max_number_of_batches() -> None:
    """With the most batches that may be undrained, an append is refused; after a drain it is not."""
    batches = _accumulator(max_undrained_batches=2)
    for _ in range(2):
        batches.append(EPOCH, [b"a"], 0)
        batches.force_drain()
    assert raised(lambda: batches.append(EPOCH, [b"a"], 0)) is BufferExhaustedError
    _drained(batches)
    assert batches.append(EPOCH, [b"a"], 0) == BASE_OFFSET + 2
