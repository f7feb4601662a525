# SPDX-License-Identifier: Apache-2.0
"""The clauses of Kafka's KRaftControlRecordStateMachineTest."""

from raftlog.errors import OffsetOutOfRangeError
from raftlog.log.control_records import KRaftControlRecordStateMachine
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.messages.control import (
    ControlValue,
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
)
from raftlog.records.messages.voters import voters_record
from raftlog.snapshot.reader import RecordsSnapshotReader
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import VoterSet
from tests.log.control_batches import TIMESTAMP, batch_of, control_bytes, data_bytes, snapshot_of, voters
from tests.raises import raised

STATIC, FIRST, SECOND = voters(1, 2), voters(1, 2, 3), voters(1, 2, 3, 4)
VERSION_0, VERSION_1 = KRaftVersion


def _snapshot(end_offset: int, *values: ControlValue) -> RecordsSnapshotReader:
    header = control_bytes(0, [SnapshotHeaderRecord(TIMESTAMP), *values], epoch=1)
    footer = control_bytes(len(values) + 1, [SnapshotFooterRecord()], epoch=1)
    return snapshot_of(OffsetAndEpoch(end_offset, 1), [header, footer])


def _machine(
    static_voters: VoterSet = STATIC, snapshot: RecordsSnapshotReader | None = None
) -> KRaftControlRecordStateMachine:
    machine = KRaftControlRecordStateMachine(static_voters)
    if snapshot is None:
        machine.handle_no_snapshot()
    else:
        machine.handle_snapshot(snapshot)
    return machine


def _read(machine: KRaftControlRecordStateMachine, *values: ControlValue) -> None:
    machine.handle_batch(batch_of(control_bytes(machine.next_offset, list(values))))


def test_empty_partition() -> None:
    """An empty log keeps the static voters, at kraft.version 0."""
    machine = _machine()
    assert machine.last_voter_set == STATIC
    assert machine.last_voter_set_offset is None
    assert machine.last_kraft_version is VERSION_0


def test_empty_partition_with_no_static_voters() -> None:
    """Without static voters, an empty log has the empty set."""
    assert _machine(VoterSet()).last_voter_set == VoterSet()


def test_update_without_snapshot() -> None:
    """Records of the log are the latest state, and readable at the last offset."""
    machine = _machine()
    _read(machine, KRaftVersionRecord(1))
    _read(machine, voters_record(FIRST))
    assert (machine.last_kraft_version, machine.last_voter_set) == (VERSION_1, FIRST)
    assert machine.kraft_version_at_offset(0) is VERSION_1
    assert machine.voter_set_at_offset(0) is None
    assert machine.voter_set_at_offset(1) == FIRST


def test_update_with_empty_snapshot() -> None:
    """A snapshot without voters and kraft.version is read; the log's records replace the static voters."""
    machine = _machine(snapshot=_snapshot(10))
    assert (machine.last_kraft_version, machine.last_voter_set) == (VERSION_0, STATIC)
    _read(machine, KRaftVersionRecord(1))
    _read(machine, voters_record(FIRST))
    assert machine.voter_set_at_offset(11) == FIRST
    assert machine.kraft_version_at_offset(11) is VERSION_1


def test_update_with_snapshot() -> None:
    """The state of a snapshot is in force at its last offset, one below its end."""
    machine = _machine(snapshot=_snapshot(10, KRaftVersionRecord(1), voters_record(FIRST)))
    assert machine.last_voter_set == machine.voter_set_at_offset(9) == FIRST
    assert machine.last_voter_set_offset == 9
    assert machine.kraft_version_at_offset(9) is VERSION_1
    assert raised(lambda: machine.voter_set_at_offset(8)) is OffsetOutOfRangeError


def test_update_with_snapshot_and_log_override() -> None:
    """Voters of the log follow those of the snapshot, which are still found at the snapshot's last offset."""
    machine = _machine(snapshot=_snapshot(10, KRaftVersionRecord(1), voters_record(FIRST)))
    _read(machine, voters_record(SECOND))
    assert machine.last_voter_set == machine.voter_set_at_offset(10) == SECOND
    assert machine.voter_set_at_offset(9) == FIRST


def test_truncate_to() -> None:
    """A truncation goes back to the set before, and then to the static one; what follows is read anew."""
    machine = _machine()
    _read(machine, KRaftVersionRecord(1))
    _read(machine, voters_record(FIRST))
    _read(machine, voters_record(SECOND))
    machine.truncate_new_entries(2)
    assert machine.last_voter_set == FIRST
    machine.truncate_new_entries(1)
    assert (machine.last_voter_set, machine.last_kraft_version) == (STATIC, VERSION_1)
    machine.truncate_new_entries(0)
    assert (machine.last_voter_set, machine.last_kraft_version, machine.next_offset) == (STATIC, VERSION_0, 0)


def test_trim_prefix_to() -> None:
    """A trim keeps the state in force at the cut; offsets below it are no longer known."""
    machine = _machine()
    _read(machine, KRaftVersionRecord(1))
    _read(machine, voters_record(FIRST))
    machine.handle_batch(batch_of(data_bytes(2, 3)))
    _read(machine, voters_record(SECOND))
    machine.truncate_old_entries(4)
    assert machine.voter_set_at_offset(3) == FIRST
    assert machine.kraft_version_at_offset(3) is VERSION_1
    assert raised(lambda: machine.voter_set_at_offset(2)) is OffsetOutOfRangeError
    machine.truncate_old_entries(6)
    assert [each.value for each in machine.voter_sets()] == [SECOND]
