# SPDX-License-Identifier: Apache-2.0
"""The state machine by example: what Kafka's does, what it does not, and what is refused."""

import gc
from typing import Any, cast

import attrs
import pytest

from raftlog.errors import (
    CorruptBatchError,
    EmptyVoterSetError,
    InvalidRecordError,
    NonContiguousAppendError,
    OffsetOutOfRangeError,
    RaftLogError,
    SnapshotNotFoundError,
    TooManyVoterChangesError,
    UnsupportedVersionError,
)
from raftlog.log.control_records import NOTHING_READ, KRaftControlRecordStateMachine, update_state
from raftlog.log.memory_log import MemoryLog
from raftlog.log.replicated_log import LogFetchInfo, ReplicatedLog
from raftlog.offsets import LogOffsetMetadata, OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.messages.control import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
    write_control_record,
)
from raftlog.records.messages.voters import voters_record
from raftlog.snapshot.raw import RawSnapshotReader
from raftlog.snapshot.reader import RecordsSnapshotReader
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import Endpoints, SupportedVersionRange, VoterSet
from raftlog.voters.voter_set_change import VoterSetProblem
from raftlog.voters.voter_set_history import VoterSetViolation
from tests.log.control_batches import (
    LEADER_CHANGE,
    TIMESTAMP,
    batch_of,
    control_bytes,
    data_bytes,
    run_of,
    snapshot_of,
    voters,
)
from tests.strategies import batch_bytes

STATIC = voters(8, 9)
VERSION_0, VERSION_1 = KRaftVersion
FIRST, SECOND = voters(1, 2, 3), voters(1, 2, 3, 4)


def machine_of(*batches: bytes) -> KRaftControlRecordStateMachine:
    """Make a state machine that has read these batches."""
    machine = KRaftControlRecordStateMachine(STATIC)
    machine.handle_no_snapshot()
    for batch in batches:
        machine.handle_batch(batch_of(batch))
    return machine


def bootstrap_records(base_offset: int = 0) -> bytes:
    """Write what a first leader writes: three records in one batch."""
    return control_bytes(base_offset, [LEADER_CHANGE, KRaftVersionRecord(1), voters_record(FIRST)])


def snapshot_at(offset: int, *values: KRaftVersionRecord | VotersRecord, epoch: int = 0) -> RecordsSnapshotReader:
    """Make a snapshot whose first batch has these values after its header."""
    header = control_bytes(0, [SnapshotHeaderRecord(TIMESTAMP), *values], epoch=epoch)
    footer = control_bytes(len(values) + 1, [SnapshotFooterRecord()], epoch=epoch)
    return snapshot_of(OffsetAndEpoch(offset, epoch), [header, footer])


def test_nothing_is_known_before_anything_was_read() -> None:
    """Before a snapshot or the log was read no offset is answered for, not even -1; the static voters are in force."""
    machine = KRaftControlRecordStateMachine(STATIC)
    assert (machine.next_offset, machine.start_offset) == (NOTHING_READ, -1)
    assert (machine.last_voter_set, machine.last_voter_set_offset) == (STATIC, None)
    assert machine.last_kraft_version == VERSION_0
    for offset in (-2, -1, 0):
        with pytest.raises(OffsetOutOfRangeError):
            machine.voter_set_at_offset(offset)
        with pytest.raises(OffsetOutOfRangeError):
            machine.kraft_version_at_offset(offset)


def test_an_empty_log_has_static_voters() -> None:
    """Without a snapshot, nothing is in force at -1, and nothing is known at 0."""
    machine = machine_of()
    assert machine.next_offset == 0
    assert machine.voter_set_at_offset(-1) is None
    assert machine.kraft_version_at_offset(-1) == VERSION_0
    with pytest.raises(OffsetOutOfRangeError, match=r"offset 0 is not in \[-1, 0\)"):
        machine.voter_set_at_offset(0)


def test_records_of_one_batch_count_from_their_own_offsets() -> None:
    """Neither the batch's first nor its last offset is that of a record inside it."""
    machine = machine_of(data_bytes(0, 2), bootstrap_records(2), data_bytes(5, 3))
    assert machine.next_offset == 8
    assert [machine.kraft_version_at_offset(offset) for offset in range(-1, 8)] == [VERSION_0] * 4 + [VERSION_1] * 5
    assert [machine.voter_set_at_offset(offset) for offset in range(-1, 8)] == [None] * 5 + [FIRST] * 4
    assert (machine.last_voter_set, machine.last_voter_set_offset) == (FIRST, 4)


def test_truncation_goes_back_to_the_set_before_and_then_to_the_static_one() -> None:
    """A truncated record is out of force, and what is written in its place is read (Kafka would pass it over)."""
    machine = machine_of(bootstrap_records(), control_bytes(3, [voters_record(SECOND)]), data_bytes(4, 6))
    machine.truncate_new_entries(12)
    assert machine.next_offset == 10
    machine.truncate_new_entries(3)
    assert (machine.next_offset, machine.last_voter_set, machine.last_voter_set_offset) == (3, FIRST, 2)
    machine.handle_batch(batch_of(control_bytes(3, [voters_record(voters(1, 2))])))
    assert machine.voter_set_at_offset(3) == voters(1, 2)
    machine.truncate_new_entries(0)
    assert (machine.next_offset, machine.last_voter_set, machine.last_kraft_version) == (0, STATIC, VERSION_0)
    machine.handle_batch(batch_of(control_bytes(0, [voters_record(voters(5, 6, 7))])))
    assert machine.last_voter_set == voters(5, 6, 7)


def test_all_levels_of_truncated_changes_go() -> None:
    """Where two changes are truncated, the set from before both is in force."""
    changes = (control_bytes(offset, [voters_record(voters(*range(1, offset + 2)))]) for offset in (3, 4))
    machine = machine_of(bootstrap_records(), *changes)
    machine.truncate_new_entries(3)
    assert machine.last_voter_set == FIRST


@pytest.mark.parametrize("offset", [0, 1, 50])
def test_a_snapshot_counts_from_its_last_offset(offset: int) -> None:
    """Its voters and kraft.version are in force one below its end, and nothing is known of what lies below that."""
    machine = machine_of(bootstrap_records(), data_bytes(3, 100))
    machine.handle_snapshot(snapshot_at(offset, KRaftVersionRecord(1), voters_record(SECOND)))
    assert (machine.start_offset, machine.next_offset) == (offset - 1, offset)
    assert (machine.last_voter_set, machine.last_voter_set_offset) == (SECOND, offset - 1)
    assert machine.voter_set_at_offset(offset - 1) == SECOND
    assert machine.kraft_version_at_offset(offset - 1) == VERSION_1
    for unknown in (offset - 2, offset):
        with pytest.raises(OffsetOutOfRangeError):
            machine.voter_set_at_offset(unknown)


def test_a_snapshot_without_voters_means_the_static_ones() -> None:
    """Values from before are forgotten."""
    machine = machine_of(bootstrap_records())
    machine.handle_snapshot(snapshot_at(7))
    assert (machine.last_voter_set, machine.last_voter_set_offset) == (STATIC, None)
    assert machine.voter_set_at_offset(6) is None
    assert machine.kraft_version_at_offset(6) == VERSION_0


def test_a_bad_snapshot_changes_nothing() -> None:
    """A kraft.version that is not known is refused, and the state machine is as it was."""
    machine = machine_of(bootstrap_records())
    with pytest.raises(UnsupportedVersionError):
        machine.handle_snapshot(snapshot_at(7, KRaftVersionRecord(2)))
    assert (machine.next_offset, machine.last_voter_set) == (3, FIRST)


def test_the_log_overrides_the_snapshot() -> None:
    """A later record counts from its offset; below it the snapshot's does."""
    machine = KRaftControlRecordStateMachine(STATIC)
    machine.handle_snapshot(snapshot_at(10, KRaftVersionRecord(1), voters_record(FIRST)))
    machine.handle_batch(batch_of(control_bytes(10, [voters_record(SECOND)])))
    assert [machine.voter_set_at_offset(offset) for offset in (9, 10)] == [FIRST, SECOND]
    machine.truncate_new_entries(10)
    assert machine.last_voter_set == FIRST


def test_a_trimmed_state_machine_knows_what_one_knows_that_begins_with_the_snapshot() -> None:
    """Also at the last offset of the snapshot, where the very next record changes the voters."""
    machine = machine_of(bootstrap_records(), data_bytes(3, 7), control_bytes(10, [voters_record(SECOND)]))
    machine.truncate_old_entries(10)
    assert machine.start_offset == 9
    assert [machine.voter_set_at_offset(offset) for offset in (9, 10)] == [FIRST, SECOND]
    assert machine.kraft_version_at_offset(9) == VERSION_1
    machine.truncate_old_entries(11)
    machine.truncate_old_entries(4)
    assert machine.start_offset == 10
    assert [entry.offset for entry in machine.voter_sets()] == [10]
    with pytest.raises(OffsetOutOfRangeError):
        machine.voter_set_at_offset(9)
    with pytest.raises(OffsetOutOfRangeError, match="read to 11"):
        machine.truncate_old_entries(12)
    assert machine.start_offset == 10


def test_truncation_below_a_snapshot_forgets_everything() -> None:
    """There is nothing to go back to: nothing is answered until a snapshot was read again."""
    machine = KRaftControlRecordStateMachine(STATIC)
    machine.handle_snapshot(snapshot_at(10, KRaftVersionRecord(1), voters_record(FIRST)))
    machine.truncate_new_entries(9)
    assert (machine.next_offset, machine.start_offset, machine.last_voter_set) == (NOTHING_READ, -1, STATIC)


def test_truncation_below_what_was_trimmed_forgets_everything() -> None:
    """So is the value in force below: it would be a guess, and would conflict with the next records."""
    machine = machine_of(bootstrap_records(), data_bytes(3, 10))
    machine.truncate_old_entries(10)
    machine.truncate_new_entries(5)
    assert (machine.next_offset, machine.start_offset) == (NOTHING_READ, -1)
    assert (machine.last_voter_set, machine.last_voter_set_offset) == (STATIC, None)
    assert (machine.last_kraft_version, list(machine.voter_sets())) == (KRaftVersion.KRAFT_VERSION_0, [])
    machine.handle_batch(batch_of(bootstrap_records()))
    assert (machine.next_offset, machine.last_voter_set) == (3, FIRST)


@pytest.mark.parametrize("base_offset", [0, 2, 4])
def test_only_the_next_batch_is_read(base_offset: int) -> None:
    """One that lies below, or leaves a gap, is refused."""
    machine = machine_of(data_bytes(0, 3))
    with pytest.raises(NonContiguousAppendError, match="not at 3"):
        machine.handle_batch(batch_of(data_bytes(base_offset)))
    assert machine.next_offset == 3


def test_a_set_that_should_not_have_been_written_is_taken_and_named() -> None:
    """A follower continues after a violation that its quorum committed, and reports it; truncation undoes it."""
    rewritten = control_bytes(3, [voters_record(SECOND), voters_record(voters(7, 8, 9))])
    machine = machine_of(bootstrap_records(), rewritten, control_bytes(5, [voters_record(voters(7, 8))]))
    assert (machine.next_offset, machine.last_voter_set, machine.last_voter_set_offset) == (6, voters(7, 8), 5)
    assert machine.violations() == (
        VoterSetViolation(
            4,
            voters(7, 8, 9),
            3,
            SECOND,
            (VoterSetProblem.NO_OVERLAPPING_MAJORITY, VoterSetProblem.TOO_MANY_CHANGES),
        ),
    )
    machine.truncate_new_entries(3)
    assert (machine.last_voter_set, machine.violations()) == (FIRST, ())


def test_an_empty_voters_record_leaves_the_set_before_in_force() -> None:
    """In the log, and as all that a snapshot says of voters."""
    machine = machine_of(bootstrap_records(), control_bytes(3, [VotersRecord()]))
    assert (machine.next_offset, machine.last_voter_set, machine.last_voter_set_offset) == (4, FIRST, 2)
    assert machine.voter_set_at_offset(3) == FIRST
    assert [(each.offset, each.problems) for each in machine.violations()] == [(3, (VoterSetProblem.EMPTY,))]
    machine.handle_snapshot(snapshot_at(7, KRaftVersionRecord(1), VotersRecord()))
    assert (machine.next_offset, machine.last_voter_set, machine.last_voter_set_offset) == (7, STATIC, None)
    assert [each.offset for each in machine.violations()] == [6]


def test_a_writer_is_held_to_what_replay_takes() -> None:
    """The allowed changes depend on the set in a record, or in a bootstrap snapshot, but not on static voters."""
    machine = machine_of()
    assert machine.voters_in_force == VoterSet()
    machine.check_voter_set(voters(1, 2, 3))
    machine.handle_snapshot(snapshot_at(0, KRaftVersionRecord(1), voters_record(voters(1, 2))))
    assert machine.voters_in_force == voters(1, 2)
    machine.check_voter_set(voters(1, 2, 3))
    with pytest.raises(TooManyVoterChangesError):
        machine.check_voter_set(voters(1, 2, 3, 4))
    with pytest.raises(EmptyVoterSetError):
        machine.check_voter_set(VoterSet())
    machine.handle_batch(batch_of(control_bytes(0, [voters_record(voters(1, 2, 3, 4))])))
    assert (machine.voters_in_force, machine.violations()) == (voters(1, 2, 3, 4), ())


def test_a_weaker_or_equal_record_changes_nothing() -> None:
    """A key that does not change, an endpoint that does: at each offset the machine has what its own record said."""
    other_port = VoterSet.of(
        attrs.evolve(node, listeners=Endpoints.of({"CONTROLLER": ("elsewhere", 9999)}))
        for node in FIRST.voters.values()
    )
    other_versions = VoterSet.of(
        attrs.evolve(node, supported_kraft_versions=SupportedVersionRange(1, 1)) for node in FIRST.voters.values()
    )
    sets = [FIRST, FIRST, other_port, other_port, other_versions, FIRST]
    machine = machine_of(*(control_bytes(offset, [voters_record(each)]) for offset, each in enumerate(sets)))
    assert [machine.voter_set_at_offset(offset) for offset in range(6)] == sets
    assert machine.last_voter_set_offset == 5
    machine.truncate_new_entries(1)
    assert (machine.last_voter_set, machine.last_voter_set_offset) == (FIRST, 0)
    levels = machine_of(*(control_bytes(offset, [KRaftVersionRecord(1)]) for offset in range(3)))
    assert [entry.offset for entry in levels.kraft_versions()] == [0, 1, 2]
    levels.truncate_new_entries(1)
    assert levels.last_kraft_version == VERSION_1
    levels.truncate_new_entries(0)
    assert levels.last_kraft_version == VERSION_0


def raw_control(base_offset: int = 3, **arguments: Any) -> bytes:
    """Write a control batch whose one record has these fields."""
    last_offset_delta = arguments.pop("last_offset_delta", None)
    builder = RecordBatchBuilder(base_offset, is_control=True, last_offset_delta=last_offset_delta)
    key, value = write_control_record(LEADER_CHANGE)
    builder.append(**{"timestamp": TIMESTAMP, "key": key, "value": value, **arguments})
    return builder.build()


@pytest.mark.parametrize(
    ("batch", "error", "rule"),
    [
        (raw_control(headers=[(b"h", None)]), InvalidRecordError, "raft-batch"),
        (raw_control(offset=4), CorruptBatchError, "raft-batch"),
        (raw_control(last_offset_delta=5), CorruptBatchError, "raft-batch"),
        (batch_bytes(base_offset=3), CorruptBatchError, "raft-batch"),
        (raw_control(key=None), InvalidRecordError, "control-key"),
        (control_bytes(3, [KRaftVersionRecord(7)]), UnsupportedVersionError, None),
        (control_bytes(3, [voters_record(SECOND), (b"\0\0\0\6", b"\0")]), InvalidRecordError, "control-value"),
        (data_bytes(3)[:-1] + b"\1", CorruptBatchError, "batch-crc"),
    ],
    ids=["headers", "offset", "last offset", "no record", "no key", "kraft.version 7", "a bad record last", "damaged"],
)
def test_batches_that_raft_does_not_write_are_refused(
    batch: bytes, error: type[RaftLogError], rule: str | None
) -> None:
    """Refused by its rule and with its base offset, and nothing has changed."""
    machine = machine_of(bootstrap_records())
    with pytest.raises(error) as caught:
        machine.handle_batch(batch_of(batch))
    assert (getattr(caught.value, "rule", None), getattr(caught.value, "base_offset", None)) == (rule, 3)
    assert (machine.next_offset, machine.last_voter_set, machine.last_kraft_version) == (3, FIRST, VERSION_1)


def test_equal_voter_sets_are_shared() -> None:
    """Two sets that alternate a thousand times are two objects, and are released when no longer referenced."""
    steps = [control_bytes(offset, [voters_record((FIRST, SECOND)[offset % 2])]) for offset in range(1000)]
    machine = machine_of()
    machine.handle_run(run_of(steps))
    assert len({id(entry.value) for entry in machine.voter_sets()}) == 2
    machine.handle_no_snapshot()
    gc.collect()
    assert len(vars(machine)["_sets_by_bytes"]) == 0


def test_a_run_that_is_refused_is_read_up_to_there() -> None:
    """The batches before the bad one have been read."""
    machine = machine_of()
    with pytest.raises(NonContiguousAppendError, match="a batch at 9, not at 4"):
        machine.handle_run(run_of([bootstrap_records(), data_bytes(3), data_bytes(9)]))
    assert (machine.next_offset, machine.last_voter_set) == (4, FIRST)


def log_of(*batches: bytes) -> MemoryLog:
    """Make a log of these batches."""
    log = MemoryLog()
    for batch in batches:
        log.append_as_leader(batch, RecordBatch(batch).partition_leader_epoch)
    return log


def install(log: MemoryLog, snapshot: RecordsSnapshotReader) -> None:
    """Let a log fetch a snapshot, and restart at it if it is ahead."""
    writer = log.create_snapshot_unchecked(snapshot.snapshot_id)
    assert writer is not None
    for batch in snapshot:
        writer.append(batch.buffer if isinstance(batch, RecordBatch) else batch.batch.buffer)
    writer.freeze()
    log.truncate_to_latest_snapshot()


@pytest.mark.parametrize("offset", [2, 5, 9])
def test_a_log_that_a_snapshot_replaced_is_read_again(offset: int) -> None:
    """Wherever the snapshot ends: below, at, or above what was read of the log before."""
    log = log_of(bootstrap_records(), data_bytes(3, 2))
    machine = KRaftControlRecordStateMachine(STATIC)
    update_state(machine, log)
    assert (machine.next_offset, machine.last_voter_set) == (5, FIRST)
    install(log, snapshot_at(offset, KRaftVersionRecord(1), voters_record(SECOND), epoch=3))
    update_state(machine, log)
    assert (machine.start_offset, machine.next_offset) == (offset - 1, offset)
    assert list(machine.voter_sets()) == [(offset - 1, SECOND)]


def test_a_log_that_starts_above_what_was_read_is_read_from_its_snapshot() -> None:
    """As Kafka does; records written after the snapshot meanwhile are read too."""
    log = log_of(bootstrap_records())
    machine = KRaftControlRecordStateMachine(STATIC)
    update_state(machine, log)
    install(log, snapshot_at(9, KRaftVersionRecord(1), voters_record(SECOND), epoch=3))
    log.append_as_leader(data_bytes(9, 2, epoch=3), 3)
    update_state(machine, log)
    assert (machine.start_offset, machine.next_offset) == (8, 11)
    assert list(machine.voter_sets()) == [(8, SECOND)]


def test_reading_follows_a_truncation_backwards() -> None:
    """Also without a notification."""
    log = log_of(bootstrap_records(), control_bytes(3, [voters_record(SECOND)]))
    machine = KRaftControlRecordStateMachine(STATIC)
    update_state(machine, log)
    log.truncate_to(3)
    update_state(machine, log)
    assert (machine.next_offset, machine.last_voter_set) == (3, FIRST)


class CountedSnapshots(MemoryLog):
    """A log that counts how often a snapshot of it is opened."""

    opened = 0

    def read_snapshot(self, snapshot_id: OffsetAndEpoch) -> RawSnapshotReader | None:
        """Open a snapshot, and count it."""
        self.opened += 1
        return super().read_snapshot(snapshot_id)


@pytest.mark.parametrize(("read_to", "opened"), [(3, 1), (4, 1), (5, 0), (6, 0)])
def test_only_what_was_not_read_is_taken_from_the_snapshot(read_to: int, opened: int) -> None:
    """A reader that has read up to the log's start needs no snapshot, and keeps what it knows of lower offsets."""
    log = CountedSnapshots()
    log.append_as_leader(bootstrap_records(), 0)
    machine = KRaftControlRecordStateMachine(STATIC)
    for offset in range(3, 8):
        if machine.next_offset < read_to:
            update_state(machine, log)
        log.append_as_leader(data_bytes(offset), 0)
    assert machine.next_offset == read_to
    install(log, snapshot_at(5, KRaftVersionRecord(1), voters_record(FIRST)))
    log.update_high_watermark(8)
    assert log.delete_before_snapshot(OffsetAndEpoch(5, 0))
    log.opened = 0
    update_state(machine, log)
    assert (log.opened, machine.next_offset, machine.start_offset) == (opened, 8, 4 if opened else -1)
    assert machine.last_voter_set_offset == (4 if opened else 2)


def test_the_bytes_of_voters_are_voters_only_in_a_voters_record() -> None:
    """A KRaftVersionRecord of the same bytes is read as what it is."""
    key, value = write_control_record(voters_record(FIRST))
    machine = machine_of(control_bytes(0, [(key, value)]))
    with pytest.raises(UnsupportedVersionError):
        machine.handle_batch(batch_of(control_bytes(1, [(write_control_record(KRaftVersionRecord(1))[0], value)])))


def test_a_log_larger_than_one_read_is_read_to_its_end() -> None:
    """Batch for batch, also where what was read ends inside one."""
    log = log_of()
    for offset in range(4):
        builder = RecordBatchBuilder(offset, partition_leader_epoch=0)
        builder.append(TIMESTAMP, None, b"v" * 600_000)
        log.append_as_leader(builder.build(), 0)
    log.append_as_leader(bootstrap_records(4), 0)
    machine = KRaftControlRecordStateMachine(STATIC)
    update_state(machine, log)
    assert (machine.next_offset, machine.last_voter_set_offset) == (7, 6)


class BrokenLog:
    """A log that says one thing and holds another."""

    def __init__(self, start_offset: int, end_offset: int, records: bytes, snapshot_id: OffsetAndEpoch | None) -> None:
        self.start_offset = start_offset
        self.end_offset = LogOffsetMetadata(end_offset)
        self.latest_snapshot_id = snapshot_id
        self._records = records

    def read(self, *_: object) -> LogFetchInfo:
        """Return the same bytes from any offset on."""
        return LogFetchInfo(memoryview(self._records), LogOffsetMetadata(0))

    def read_snapshot(self, _: object) -> None:
        """Return none of the snapshots."""


@pytest.mark.parametrize(
    ("log", "error"),
    [
        (BrokenLog(5, 9, b"", None), SnapshotNotFoundError),
        (BrokenLog(5, 9, b"", OffsetAndEpoch(4, 1)), SnapshotNotFoundError),
        (BrokenLog(5, 9, b"", OffsetAndEpoch(5, 1)), SnapshotNotFoundError),
        (BrokenLog(0, 9, b"", None), CorruptBatchError),
        (BrokenLog(0, 9, data_bytes(0)[:-1], None), CorruptBatchError),
        (BrokenLog(0, 9, data_bytes(0)[:-1] + b"\1", None), CorruptBatchError),
        (BrokenLog(0, 9, data_bytes(0), None), NonContiguousAppendError),
    ],
    ids=["no snapshot", "too low", "not there", "empty", "cut off", "damaged", "twice the same"],
)
def test_a_log_without_the_claimed_records_is_refused(log: BrokenLog, error: type[RaftLogError]) -> None:
    """With a typed error, and without going round in circles."""
    with pytest.raises(error):
        update_state(KRaftControlRecordStateMachine(STATIC), cast(ReplicatedLog, log))
