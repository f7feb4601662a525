# SPDX-License-Identifier: Apache-2.0
"""The state that follows from what is committed, found by replaying all of it, and what a snapshot must have of it."""

import zlib
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from raftlog.errors import DecodeError
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.snapshot.memory_raw import MemoryRawSnapshotReader
from raftlog.snapshot.reader import RecordsSnapshotReader
from raftlog.testing.simulator.applications.checked_machine import CheckedMachine, MachineKind, Records
from raftlog.testing.simulator.applications.difference import Restored, Truth, check_restored, check_same
from raftlog.testing.simulator.applications.registers import BUILT_IN
from raftlog.testing.simulator.checks.decoded import put_in_force, values_in
from raftlog.testing.simulator.checks.ledger import StoredBatch
from raftlog.testing.simulator.violation import ViolationError, check
from raftlog.voters.voter_set import ReplicaKey


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


def records_of(reader: RecordsSnapshotReader) -> Records:
    """Return the records that an application has written into a snapshot."""
    batches = (batch for batch in reader if isinstance(batch, RecordBatch))
    return tuple(value for batch in batches for _, value in values_in(batch))


class Replay:
    """All committed batches, one after the other.

    Args:
        first: what is in force before the first record.
        kind: of the state machines.

    Attributes:
        kind: likewise.
    """

    def __init__(self, first: VotersAt, kind: MachineKind = BUILT_IN) -> None:
        self.kind = kind
        self._batches: dict[int, StoredBatch] = {}
        self._unread: list[RecordBatch] = []
        self._machine = CheckedMachine(kind)
        self._values: list[tuple[int, bytes]] = []
        self._ends = [0]
        self._states = [self._machine.records()]
        self._truth = Truth(kind, self._values, self.records_at)
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

    def records_at(self, end_offset: int) -> Records:
        """Return the records of a state machine that has read the records below an offset."""
        unread, self._unread = self._unread, []
        for content in unread:
            for offset, value in values_in(content):
                self._machine.apply(offset, value)
                self._machine.check()
                self._values.append((offset, value))
                self._ends.append(offset + 1)
                self._states.append(self._machine.records())
        return self._states[bisect_right(self._ends, end_offset) - 1]

    def states_crc(self) -> int:
        """Return a checksum of the state after each record, equal in all processes if the machine is right."""
        self.records_at(0)
        return zlib.crc32(b"\0".join(b"".join(each) for each in self._states))

    def check_state(self, end_offset: int, found: Records, restores: Sequence[Restored]) -> None:
        """Check the state of an application that has read the records below an offset.

        Args:
            end_offset: exclusive.
            found: the state.
            restores: the snapshots from which it has been restored, in order.
        """
        check_same(self._truth, end_offset, found, restores)

    def restore(self, instance: CheckedMachine, end_offset: int, records: Records) -> None:
        """Restore a state machine from a snapshot, and check both."""
        expected = self.records_at(end_offset)
        check(records == expected, "listener-is-replay", "at {}: {}, not {}", end_offset, records, expected)
        check_restored(self._truth, instance, end_offset)

    def check_snapshot(self, snapshot_id: OffsetAndEpoch, content: bytes) -> None:
        """Check that a snapshot is what replaying the committed records up to its end gives."""
        end_offset = snapshot_id.offset
        reader = RecordsSnapshotReader(MemoryRawSnapshotReader(snapshot_id, content), snapshot_id)
        try:
            found = records_of(reader)
        except DecodeError as error:
            raise ViolationError("snapshot-is-replay", f"{snapshot_id}: {error}") from error
        expected = self.records_at(end_offset) if end_offset else ()  # The first snapshot names voters only.
        right = self.in_force_before(end_offset)
        check(found == expected, "snapshot-is-replay", "{} has {}, not {}", snapshot_id, found, expected)
        named = frozenset() if reader.voter_set is None else reader.voter_set.voter_keys
        is_right = reader.kraft_version == right.kraft_version and (not right.kraft_version or named == right.keys)
        check(is_right, "snapshot-is-replay", "{} has {} at {}", snapshot_id, named, right)
        if end_offset:
            last = self.batch_before(end_offset)
            is_committed = last is not None and last.epoch == snapshot_id.epoch
            check(is_committed, "snapshot-is-committed", "{}: committed is {}", snapshot_id, last)
