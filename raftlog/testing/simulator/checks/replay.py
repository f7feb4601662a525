# SPDX-License-Identifier: Apache-2.0
"""The state that follows from what is committed, found by replaying all of it, and what a snapshot must have of it.

The application of the simulator has a register for each remainder that a value can have; a value is kept in its own.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.snapshot.memory_raw import MemoryRawSnapshotReader
from raftlog.snapshot.reader import RecordsSnapshotReader
from raftlog.testing.simulator.checks.decoded import numbers_in, put_in_force
from raftlog.testing.simulator.checks.ledger import StoredBatch
from raftlog.testing.simulator.violation import check
from raftlog.voters.voter_set import ReplicaKey

REGISTERS: Final = 24
Registers = dict[int, int]
"""The last value of each register that has any."""


class VotersAt(NamedTuple):
    """What control records have put in force.

    Attributes:
        offset: of the record; -1 if it was so before the first one.
        kraft_version: the level.
        keys: of the voters.
    """

    offset: int
    kraft_version: int
    keys: frozenset[ReplicaKey]


def registers_after(numbers: Sequence[tuple[int, int]], end_offset: int) -> Registers:
    """Return the registers after the values below an offset, exclusive."""
    registers: Registers = {}
    for offset, number in numbers:
        if offset >= end_offset:
            break
        registers[number % REGISTERS] = number
    return registers


class Replay:
    """All committed batches, one after the other.

    Args:
        first: what is in force before the first record.
    """

    def __init__(self, first: VotersAt) -> None:
        self._batches: dict[int, StoredBatch] = {}
        self._unread: list[RecordBatch] = []
        self._numbers: list[tuple[int, int]] = []
        self._in_force = [first]

    def committed(self, batch: StoredBatch, content: RecordBatch) -> None:
        """Note a batch that is committed now."""
        self._batches[batch.next_offset] = batch
        if not content.is_control:
            self._unread.append(content)
            return
        for offset, value in put_in_force(content):
            last = self._in_force[-1]
            level, keys = (value, last.keys) if isinstance(value, int) else (last.kraft_version, value)
            self._in_force.append(VotersAt(offset, level, keys))

    def batch_before(self, end_offset: int) -> StoredBatch | None:
        """Return the committed batch that ends at an offset."""
        return self._batches.get(end_offset)

    def in_force_before(self, end_offset: int) -> VotersAt:
        """Return what is in force at the last record below an offset, exclusive."""
        return next(each for each in reversed(self._in_force) if each.offset < max(end_offset, 0))

    def _registers_after(self, end_offset: int) -> Registers:
        for content in self._unread:
            self._numbers += numbers_in(content)
        self._unread.clear()
        return registers_after(self._numbers, end_offset)

    def check_registers(self, end_offset: int, registers: Registers) -> None:
        """Check the state of an application that has read the records below an offset."""
        expected = self._registers_after(end_offset)
        check(registers == expected, "listener-is-replay", "at {}: {}, not {}", end_offset, registers, expected)

    def check_snapshot(self, snapshot_id: OffsetAndEpoch, content: bytes) -> None:
        """Check that a snapshot is what replaying the committed records up to its end gives."""
        end_offset = snapshot_id.offset
        reader = RecordsSnapshotReader(MemoryRawSnapshotReader(snapshot_id, content), snapshot_id)
        found: Registers = {}
        for batch in reader:
            if isinstance(batch, RecordBatch):
                found |= {number % REGISTERS: number for _, number in numbers_in(batch)}
        expected, right = self._registers_after(end_offset), self.in_force_before(end_offset)
        check(found == expected, "snapshot-is-replay", "{} has {}, not {}", snapshot_id, found, expected)
        named = frozenset() if reader.voter_set is None else reader.voter_set.voter_keys
        is_right = reader.kraft_version == right.kraft_version and (not right.kraft_version or named == right.keys)
        check(is_right, "snapshot-is-replay", "{} has {} at {}", snapshot_id, named, right)
        if end_offset:
            last = self.batch_before(end_offset)
            is_committed = last is not None and last.epoch == snapshot_id.epoch
            check(is_committed, "snapshot-is-committed", "{}: committed is {}", snapshot_id, last)
