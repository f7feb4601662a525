# SPDX-License-Identifier: Apache-2.0
"""Wrong accumulators: wrong epochs, orders, offsets and sizes."""

from typing import Any, Final

from raftlog.log import append_validation
from raftlog.records.batches import accumulator, open_batch
from raftlog.records.batches.accumulator import BatchAccumulator
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.memory_pool import MemoryPool
from tests.mutants.planting import Mutant, Wrong, instead, missing, swapped

ACCUMULATOR: Final = "tests/records/batches/test_accumulator.py"


def _unlimited(pool: Any, size_bytes: int) -> None:
    pool._held_bytes += size_bytes


def _after_the_drained(right: Wrong) -> Wrong:
    def append_control_messages(batches: Any, create: Any, now_ms: int) -> Any:
        return right(batches, lambda _, timestamp: create(batches.base_offset, timestamp), now_ms)

    return append_control_messages


def _wherever_it_lands(right: Wrong) -> Wrong:
    def append(batches: Any, *arguments: Any, required_base_offset: int | None = None, **keywords: Any) -> Any:
        return right(batches, *arguments, **keywords)

    return append


def _not_completing(right: Wrong) -> Wrong:
    def append_control_messages(batches: Any, *arguments: Any) -> Any:
        waiting, batches._open = batches._open, None
        try:
            return right(batches, *arguments)
        finally:
            batches._open = waiting

    return append_control_messages


def _still_there(right: Wrong) -> Wrong:
    def close(batches: Any) -> None:
        batches._is_closed = True

    return close


def _from_the_latest_on(right: Wrong) -> Wrong:
    def append(batches: Any, *arguments: Any) -> Any:
        start = batches._next_offset
        last_offset = right(batches, *arguments)
        if arguments[-1]:
            batches._drain_offset = start
        return last_offset

    return append


MUTANTS: Final = (
    Mutant(
        "R-compressed",
        "no record is longer than the batch that it is compressed in",
        "RecordsIterator",
        instead(open_batch, "too_long_for_raft", lambda *_: None),
        (
            "tests/records/batches/test_accumulator_compression.py::test_records_too_long_for_kafka_are_stored_uncompressed",
        ),
    ),
    Mutant(
        "R-compressed-leader",
        "a leader writes no compressed record that is longer than its batch",
        "RecordsIterator",
        instead(append_validation, "length_problem", lambda *_: None),
        ("tests/log/test_append_validation.py::test_a_leader_writes_no_record_that_kafka_finds_too_long",),
    ),
    Mutant(
        "K1-fenced",
        "an append for the leader of another epoch is refused",
        "BatchAccumulator#append",
        missing(BatchAccumulator, "_refuse_epoch"),
        (f"{ACCUMULATOR}::test_a_refused_append_changes_nothing",),
    ),
    Mutant(
        "K17",
        "a record that waits in the accumulator counts: an append goes after it, or is refused",
        "KAFKA-20661",
        swapped(BatchAccumulator, "append", _wherever_it_lands),
        (f"{ACCUMULATOR}::test_a_refused_append_changes_nothing",),
    ),
    Mutant(
        "K17-offset",
        "a control batch is written for the offset that it gets",
        "BatchAccumulatorTest#testInvalidControlRecordOffset",
        swapped(BatchAccumulator, "append_control_messages", _after_the_drained),
        (f"{ACCUMULATOR}::test_a_forced_batch_stays_before_a_leader_change",),
    ),
    Mutant(
        "K17-order",
        "what was appended before a control batch is drained before it",
        "BatchAccumulatorTest#testForceDrainBeforeAppendLeaderChangeMessage",
        swapped(BatchAccumulator, "append_control_messages", _not_completing),
        (f"{ACCUMULATOR}::test_a_forced_batch_stays_before_a_leader_change",),
    ),
    Mutant(
        "K17-unchecked",
        "a control batch that raft readers cannot read is refused",
        "BatchAccumulatorTest#testEmptyControlBatch",
        instead(accumulator, "read_control_batch", lambda data, **_: RecordBatch(data)),
        (f"{ACCUMULATOR}::test_a_refused_append_changes_nothing",),
    ),
    Mutant(
        "K34-delay",
        "nothing is drained before it may be",
        "BatchAccumulatorTest#testDelayedDrain",
        instead(BatchAccumulator, "_may_leave", lambda *_: True),
        (f"{ACCUMULATOR}::test_a_delayed_drain_holds_what_comes_after",),
    ),
    Mutant(
        "K34-moved",
        "a second delayed append holds back no less than the first",
        "BatchAccumulatorTest#testDelayedDrain",
        swapped(BatchAccumulator, "_append", _from_the_latest_on),
        (f"{ACCUMULATOR}::test_the_first_delayed_append_decides_the_start",),
    ),
    Mutant(
        "R24",
        "a leadership that is over leaves nothing to drain",
        "etcd, async_storage_writes_append_aba_race",
        swapped(BatchAccumulator, "close", _still_there),
        (f"{ACCUMULATOR}::test_closing_drops_what_was_not_drained",),
    ),
    Mutant(
        "S-memory",
        "what is held is bounded",
        "BatchMemoryPool",
        instead(MemoryPool, "take", _unlimited),
        (f"{ACCUMULATOR}::test_memory_is_held_until_the_release", "tests/records/batches/test_memory_pool.py"),
    ),
)
