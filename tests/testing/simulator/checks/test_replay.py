# SPDX-License-Identifier: Apache-2.0
"""Snapshots and states are compared with a replay of all that is committed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.log.memory_log import MemoryLog
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.accumulator import BatchAccumulator
from raftlog.records.batches.batch import RecordBatch
from raftlog.snapshot.writer import RecordsSnapshotWriter
from raftlog.testing.simulator.applications.checked_machine import CheckedMachine, value_of
from raftlog.testing.simulator.applications.registers import BUILT_IN, REGISTERS
from raftlog.testing.simulator.checks.ledger import StoredBatch
from raftlog.testing.simulator.checks.replay import Replay, VotersAt
from raftlog.testing.simulator.violation import ViolationError
from raftlog.voters.kraft_version import KRaftVersion
from tests.quorum.single_replica import replica_key, voter_set_of

Numbers = dict[int, int]
"""The last number of each register."""
KEYS = [replica_key(1), replica_key(2)]
VOTERS = voter_set_of(KEYS)


def replayed(numbers: list[int], *, at_a_time: int = 3) -> Replay:
    """Return a replay of some numbers of epoch 2, in batches."""
    replay, offset = Replay(VotersAt(-1, 1, frozenset(KEYS))), 0
    for first in range(0, len(numbers), at_a_time):
        some = numbers[first : first + at_a_time]
        batches = BatchAccumulator(2, offset)
        batches.append(2, [value_of(each) for each in some], 0)
        batches.force_drain()
        with batches.drain() as drained:
            content = RecordBatch(drained[0].data)
        offset += len(some)
        replay.committed(StoredBatch(content.base_offset, 2, content.next_offset, content.crc), content)
    return replay


def snapshot(
    end_offset: int, registers: Numbers, *, epoch: int = 2, count: int = 2, version: int = 1
) -> tuple[OffsetAndEpoch, bytes]:
    """Return a snapshot with registers, and voters 1 to ``count``."""
    log, snapshot_id = MemoryLog(), OffsetAndEpoch(end_offset, epoch)
    raw = log.create_snapshot_unchecked(snapshot_id)
    assert raw is not None
    voters = voter_set_of(map(replica_key, range(1, count + 1))) if version else None
    level = KRaftVersion.from_level(version)
    with RecordsSnapshotWriter(raw, 0, last_contained_log_timestamp=0, kraft_version=level, voter_set=voters) as writer:
        if registers:
            writer.append([value_of(each) for each in registers.values()], 0)
        writer.freeze(0)
    return snapshot_id, log._snapshots[snapshot_id]


@given(st.lists(st.integers(0, 100), min_size=3, max_size=60), st.data())
def test_a_state_is_that_of_all_numbers_before_it(numbers: list[int], data: st.DataObject) -> None:
    """The last number of each remainder, below the offset; any other register is a violation, in a snapshot too."""
    replay, end = replayed(numbers), data.draw(st.integers(0, len(numbers)))
    registers = {number % REGISTERS: number for number in numbers[:end]}
    assert replay.records_at(end) == tuple(map(value_of, registers.values()))
    replay.check_state(end, replay.records_at(end), [])
    wrong = registers | {data.draw(st.integers(0, REGISTERS - 1)): 1000}
    records = tuple(map(value_of, wrong.values()))
    with pytest.raises(ViolationError, match="listener-is-replay"):
        replay.check_state(end, records, [])
    with pytest.raises(ViolationError, match="listener-is-replay"):
        replay.restore(CheckedMachine(BUILT_IN), end, records)


def test_a_snapshot_is_what_replay_gives() -> None:
    """At the end of any batch."""
    replay = replayed([5, 6, 5 + REGISTERS, 8])
    replay.check_snapshot(*snapshot(3, {5: 5 + REGISTERS, 6: 6}))
    replay.check_snapshot(*snapshot(4, {5: 5 + REGISTERS, 6: 6, 8: 8}))
    replay.check_snapshot(*snapshot(0, {}, epoch=0))


@pytest.mark.parametrize(
    ("registers", "count", "version"),
    [({5: 5, 6: 6}, 2, 1), ({6: 6}, 2, 1), ({5: 5 + REGISTERS, 6: 6}, 1, 1), ({5: 5 + REGISTERS, 6: 6}, 2, 0)],
    ids=["an old value", "a missing one", "other voters", "another kraft.version"],
)
def test_a_snapshot_with_another_content_is_a_violation(registers: Numbers, count: int, version: int) -> None:
    """Whether its records or its header differ."""
    replay = replayed([5, 6, 5 + REGISTERS, 8])
    with pytest.raises(ViolationError, match="snapshot-is-replay"):
        replay.check_snapshot(*snapshot(3, registers, count=count, version=version))


@pytest.mark.parametrize(("end_offset", "epoch"), [(3, 1), (2, 2), (5, 2)])
def test_a_snapshot_of_what_is_not_committed_is_a_violation(end_offset: int, epoch: int) -> None:
    """It must end where a committed batch of its epoch ends."""
    numbers = [5, 6, 5 + REGISTERS, 8]
    replay = replayed(numbers)
    registers = {number % REGISTERS: number for number in numbers[:end_offset]}
    with pytest.raises(ViolationError, match="snapshot-is-committed"):
        replay.check_snapshot(*snapshot(end_offset, registers, epoch=epoch))
