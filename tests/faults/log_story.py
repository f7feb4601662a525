# SPDX-License-Identifier: Apache-2.0
"""Records, during a log's life, which records must and which may exist after a crash at any moment."""

import functools
from collections.abc import Callable
from typing import Final

import attrs

from raftlog.errors import QuarantinedLogError
from raftlog.log.control_records import KRaftControlRecordStateMachine, update_state
from raftlog.log.replicated_log import Isolation, ReplicatedLog
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch, whole_batches
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.messages.control import (
    ControlValue,
    KRaftVersionRecord,
    VotersRecord,
    read_control_record,
)
from raftlog.records.messages.voters import voter_set, voters_record
from raftlog.snapshot.memory_raw import MemoryRawSnapshotWriter
from raftlog.snapshot.writer import RecordsSnapshotWriter
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.recovery.recovery_report import ActionKind
from raftlog.storage.segments.log_config import LogConfig
from raftlog.testing.crash_points import Promise
from raftlog.testing.file_system.crash_states import CrashModel, DiskState, PossibleStates
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import VoterSet
from tests.log.control_batches import LEADER_CHANGE, TIMESTAMP, voters

DIRECTORY: Final = "log"
CONFIG: Final = LogConfig(
    segment_size_bytes=1000,
    index_interval_bytes=100,
    retention_bytes=None,
    retention_ms=1000,
    recovery_point_interval_bytes=400,
)
STATIC_VOTERS: Final = voters(1, 2, 3)

_once_a_disk: Final = functools.lru_cache(4096)
"""Many crashes leave disks that recovery makes the same: what is asked of one is not asked of it again."""

History = tuple[bytes, ...]
"""The batches of a log from offset 0 on, those that a snapshot stands for by now included."""


@attrs.frozen
class Promised:
    """The promises at a moment.

    Attributes:
        histories: the log is a part of one of these.
        flushed_offset: the least end offset of the log (exclusive).
        starts: the possible start offsets.
        snapshots: the ids that must be listed, unless they are below the start.
        possible_snapshots: the ids that may be.
        damaged_bytes: damaged bytes that must be kept; None if there are none. With them the log may be in quarantine;
            if it is not, it is complete, unless a part of it is being given up.
    """

    histories: tuple[History, ...] = ((),)
    flushed_offset: int = 0
    starts: frozenset[int] = frozenset({0})
    snapshots: frozenset[OffsetAndEpoch] = frozenset()
    possible_snapshots: frozenset[OffsetAndEpoch] = frozenset()
    damaged_bytes: bytes | None = None


class LogStory:
    """Changes a log, and promises before and after each change.

    Args:
        file_system: where the log is.
        promise: the enumeration's.
        promised: what holds at first.
    """

    def __init__(self, file_system: MemoryFileSystem, promise: Promise, promised: Promised) -> None:
        self.file_system = file_system
        self._promise = promise
        self.promised = promised
        self._note()
        self.log = FileLog.open(file_system, DIRECTORY, CONFIG)
        if self.log.quarantine is not None and promised.damaged_bytes is None:
            # A disk that fails in a read may be the reason; nobody goes on then.
            raise QuarantinedLogError(self.log.quarantine.reason)

    def _note(self, **changes: object) -> None:
        self.promised = attrs.evolve(self.promised, **changes)  # type: ignore[arg-type]
        self._promise(self.promised)

    @property
    def history(self) -> History:
        """The batches of the log, from offset 0 on."""
        (history,) = self.promised.histories
        return history

    def log_path(self, base_offset: int) -> str:
        """Return the path of a segment."""
        return f"{DIRECTORY}/{base_offset:020}.log"

    def append(self, *batches: Callable[[int], bytes]) -> None:
        """Append some batches, one by one."""
        for make in batches:
            data = make(end_of(self.history))
            self._note(histories=((*self.history, data),))
            self.log.append_as_leader(data, batch_of(data).partition_leader_epoch)

    def flush(self) -> None:
        """Flush the log."""
        self.log.flush()
        self._note(flushed_offset=self.log.end_offset.offset)

    def truncate(self, offset: int) -> None:
        """Truncate the log to where a batch starts."""
        old = self.history
        kept = tuple(data for data in old if batch_of(data).base_offset < offset)
        self._note(histories=(old, kept), flushed_offset=min(self.promised.flushed_offset, offset))
        self.log.truncate_to(offset)
        self._note(histories=(kept,), flushed_offset=offset)

    def damage(self, base_offset: int) -> None:
        """Flip a bit of the batch at an offset, in the first segment, on the disk; the process has been killed."""
        position = sum(map(len, part(self.history, 0, base_offset)))
        file = self.file_system.open(self.log_path(0))
        file.write_at(position + 70, bytes([file.read_at(position + 70, 1)[0] ^ 1]))
        file.sync()
        damaged_bytes = bytes(file.read_at(position, file.size()))
        self._note(flushed_offset=base_offset, damaged_bytes=damaged_bytes)

    def repair(self) -> None:
        """Fetch from a leader what is missing, as a follower, and flush it."""
        fetch(self.log, self.history)
        self.log.flush()
        assert self.log.quarantine is None
        self._note(flushed_offset=end_of(self.history), damaged_bytes=None)

    def give_up(self, offset: int) -> None:
        """Truncate a log in quarantine by hand."""
        self.truncate(offset)
        assert self.log.quarantine is None
        self._note(damaged_bytes=None)

    def diverge(self, offset: int) -> None:
        """Truncate a log in quarantine to a leader's history; the quarantine continues."""
        self._note(flushed_offset=offset)
        self.log.truncate_to_end_offset(OffsetAndEpoch(offset, epoch_at(self.history, offset)))
        assert self.log.quarantine is not None

    def snapshot(self, offset: int) -> OffsetAndEpoch:
        """Make a snapshot of the records below an offset."""
        snapshot_id = OffsetAndEpoch(offset, epoch_at(self.history, offset))
        self.log.update_high_watermark(self.log.end_offset.offset)
        self._note(possible_snapshots=self.promised.possible_snapshots | {snapshot_id})
        if offset > self.promised.flushed_offset:  # A start may find the snapshot ahead of the log, and begin there.
            self._note(starts=self.promised.starts | {offset})
        writer = self.log.create_snapshot(snapshot_id)
        assert writer is not None
        data = snapshot_data(snapshot_id, self.history)
        with writer:
            writer.append(data[:200])
            writer.append(data[200:])
            writer.freeze()
        self._note(snapshots=self.promised.snapshots | {snapshot_id})
        return snapshot_id

    def start_at(self, snapshot_id: OffsetAndEpoch) -> None:
        """Let a snapshot take the place of what is below."""
        self._note(starts=self.promised.starts | {snapshot_id.offset})
        assert self.log.delete_before_snapshot(snapshot_id)
        self._note(starts=frozenset({snapshot_id.offset}))

    def clean(self) -> None:
        """Let the newest snapshot take the place of what is below, as all others are old."""
        self._note(starts=self.promised.starts | {each.offset for each in self.promised.snapshots})
        self.log.update_high_watermark(self.log.end_offset.offset)
        assert self.log.clean(TIMESTAMP + 1_000_000)
        self._note(starts=frozenset({self.log.start_offset}))

    def install(self, leaders: History) -> OffsetAndEpoch:
        """Fetch a snapshot of all that the leader has, and restart at it."""
        offset = end_of(leaders)
        snapshot_id = OffsetAndEpoch(offset, epoch_at(leaders, offset))
        self._note(possible_snapshots=self.promised.possible_snapshots | {snapshot_id})
        writer = self.log.create_snapshot_unchecked(snapshot_id)
        assert writer is not None
        with writer:
            writer.append(snapshot_data(snapshot_id, leaders))
            # What the snapshot does not have was flushed, and yet never committed.
            flushed_offset = min(self.promised.flushed_offset, offset)
            starts = self.promised.starts | {offset}
            self._note(histories=(self.history, leaders), starts=starts, flushed_offset=flushed_offset)
            writer.freeze()
        self._note(snapshots=self.promised.snapshots | {snapshot_id})
        assert self.log.truncate_to_latest_snapshot()
        self._note(histories=(leaders,), starts=frozenset({offset}), flushed_offset=offset)
        return snapshot_id


def data_batch(epoch: int, size: int = 10, count: int = 1) -> Callable[[int], bytes]:
    """Make batches of records with values of a size."""

    def make(base_offset: int) -> bytes:
        builder = RecordBatchBuilder(base_offset, partition_leader_epoch=epoch)
        builder.extend([(TIMESTAMP + base_offset, None, bytes([97 + base_offset % 26]) * size)] * count)
        return builder.build()

    return make


def leader_batch(epoch: int) -> Callable[[int], bytes]:
    """Make the first batch of an epoch."""
    return lambda base_offset: write_control_batch(
        [LEADER_CHANGE], base_offset=base_offset, epoch=epoch, timestamp=TIMESTAMP
    )


def voters_batch(epoch: int, *ids: int) -> Callable[[int], bytes]:
    """Make a batch that names voters, and finalizes kraft.version 1."""
    values: list[ControlValue] = [KRaftVersionRecord(1), voters_record(voters(*ids))]
    return lambda base_offset: write_control_batch(values, base_offset=base_offset, epoch=epoch, timestamp=TIMESTAMP)


def extended(history: History, *batches: Callable[[int], bytes]) -> History:
    """Append batches to a history."""
    for make in batches:
        history = (*history, make(end_of(history)))
    return history


@functools.cache
def batch_of(data: bytes) -> RecordBatch:
    """View a batch; the same one again and again."""
    return RecordBatch(data)


def end_of(history: History) -> int:
    """Return the offset after the last record."""
    return batch_of(history[-1]).next_offset if history else 0


def epoch_at(history: History, end_offset: int) -> int:
    """Return the epoch of the last record below an offset; 0 if there is none."""
    return max((batch_of(data).partition_leader_epoch for data in part(history, 0, end_offset)), default=0)


def part(history: History, start_offset: int, end_offset: int) -> list[bytes]:
    """Return the batches that start in a range of offsets."""
    return [data for data in history if start_offset <= batch_of(data).base_offset < end_offset]


@functools.cache
def control_states(history: History) -> list[tuple[int, VotersRecord | KRaftVersionRecord]]:
    """Return each record that changes what a state machine knows, with its offset: by a scan of everything."""
    states = []
    for batch in map(batch_of, history):
        for record in batch.records() if batch.is_control else ():
            value = read_control_record(record.key, record.value).value
            if isinstance(value, VotersRecord | KRaftVersionRecord):
                states.append((record.offset, value))
    return states


@functools.cache
def voters_at(history: History, offset: int) -> VoterSet | None:
    """Return the voters that were named last, up to an offset, inclusive."""
    named = [value for at, value in control_states(history) if at <= offset and isinstance(value, VotersRecord)]
    return voter_set(named[-1]) if named else None


def snapshot_data(snapshot_id: OffsetAndEpoch, history: History) -> bytes:
    """Return a snapshot of the records below an offset, with a record that is larger than a sector."""
    named = voters_at(history, snapshot_id.offset - 1)
    snapshots: dict[OffsetAndEpoch, bytes] = {}
    with RecordsSnapshotWriter(
        MemoryRawSnapshotWriter(snapshots, snapshot_id),
        TIMESTAMP,
        last_contained_log_timestamp=TIMESTAMP,
        kraft_version=KRaftVersion.KRAFT_VERSION_1 if named is not None else KRaftVersion.KRAFT_VERSION_0,
        voter_set=named,
    ) as writer:
        writer.append([b"state" * 120], TIMESTAMP)
        writer.freeze(TIMESTAMP)
    return snapshots[snapshot_id]


def check_log(file_system: MemoryFileSystem, promised: Promised) -> Promised:
    """Open the log of a story after a crash: it is as it was promised, opens the same once more, and takes a batch.

    Returns:
        The state that the log reported: it must survive the next crash.
    """
    log = FileLog.open(file_system, DIRECTORY, CONFIG)
    assert log.quarantine is None, log.recovery.lines()
    alarms = {ActionKind.LOST, ActionKind.SET_ASIDE, ActionKind.IGNORED}
    is_sound = promised.damaged_bytes is None
    assert not (is_sound and alarms & {each.kind for each in log.recovery.actions}), log.recovery.lines()
    batches = contents(log)
    history = check_contents(log, batches, promised)
    check_state_machine(log, history)
    check_second_opening(disk_of(file_system), tuple(batches), tuple(log.snapshot_ids))
    return Promised(
        (history,),
        log.flushed_offset,
        frozenset({log.start_offset}),
        frozenset(log.snapshot_ids),
        promised.possible_snapshots,
    )


def check_log_or_quarantine(file_system: MemoryFileSystem, promised: Promised) -> Promised | None:
    """Check a log with two or more unflushed batches: a later one may survive without an earlier one.

    That looks like damage, and is quarantined; the acknowledged records before it can be read.
    """
    log = FileLog.open(file_system.settled(), DIRECTORY, CONFIG)
    if log.quarantine is None:
        return check_log(file_system, promised)
    end = log.end_offset.offset
    assert promised.flushed_offset <= log.quarantine.first_bad_offset == end
    assert any(contents(log) == part(each, log.start_offset, end) for each in promised.histories)
    assert any(len(part(each, promised.flushed_offset, end_of(each))) > 1 for each in promised.histories)
    return None


def check_damaged_log(file_system: MemoryFileSystem, promised: Promised) -> Promised:
    """Check a log that began damaged: it is in quarantine until all is there again, and all that was there is kept."""
    log = FileLog.open(file_system.settled(), DIRECTORY, CONFIG)
    if promised.damaged_bytes is not None:
        assert any(promised.damaged_bytes in data for data in file_system.contents().values())
    if log.quarantine is None:
        if promised.damaged_bytes is not None:  # It is whole, or part of it is being given up.
            ends = {end_of(each) for each in promised.histories}
            assert len(ends) > 1 or log.end_offset.offset in ends
        return check_log(file_system, promised)
    assert promised.damaged_bytes is not None
    log = FileLog.open(file_system, DIRECTORY, CONFIG)
    history = promised.histories[0]
    end = log.end_offset.offset
    assert promised.flushed_offset <= end
    assert log.quarantine is not None
    assert log.quarantine.durable_end_offset >= end_of(history)
    assert contents(log) == part(history, log.start_offset, end)
    check_repair(disk_of(file_system), history)
    return attrs.evolve(promised, flushed_offset=end)


def disk_of(file_system: MemoryFileSystem) -> DiskState:
    """Return a copy of the disk, so that operations on it are not part of the story in which a second crash comes."""
    (disk,) = PossibleStates(file_system.settled().image(), CrashModel())
    return disk


@_once_a_disk
def check_repair(disk: DiskState, history: History) -> None:
    """Fetch what is missing: the log is whole then, and after the next start."""
    file_system = MemoryFileSystem(disk)
    log = FileLog.open(file_system, DIRECTORY, CONFIG)
    fetch(log, history)
    log.flush()
    assert log.quarantine is None
    again = FileLog.open(file_system.crash(lambda count: 0), DIRECTORY, CONFIG)
    assert again.quarantine is None
    assert contents(again) == part(history, again.start_offset, end_of(history))


def fetch(log: FileLog, history: History) -> None:
    """Append, one by one, the batches that a log lacks."""
    for data in part(history, log.end_offset.offset, end_of(history)):
        log.append_as_follower(data, batch_of(history[-1]).partition_leader_epoch)


@_once_a_disk
def check_second_opening(disk: DiskState, batches: tuple[bytes, ...], snapshot_ids: tuple[OffsetAndEpoch, ...]) -> None:
    """Open the log once more to the same, append a batch, flush, lose what is not durable, and find it."""
    file_system = MemoryFileSystem(disk)
    again = FileLog.open(file_system, DIRECTORY, CONFIG)
    assert {action.kind for action in again.recovery.actions} <= {ActionKind.REBUILT}, again.recovery.lines()
    assert contents(again) == [*batches]
    assert (*again.snapshot_ids,) == snapshot_ids
    data = leader_batch(again.last_fetched_epoch + 1)(again.end_offset.offset)
    again.append_as_leader(data, again.last_fetched_epoch + 1)
    again.flush()
    after = FileLog.open(file_system.crash(lambda count: 0), DIRECTORY, CONFIG)
    assert contents(after) == [*batches, data]


def check_contents(log: FileLog, batches: list[bytes], promised: Promised) -> History:
    """Check records, start, end, epoch and snapshots, and return the history that the log is a part of."""
    start, end = log.start_offset, log.end_offset.offset
    fitting = [each for each in promised.histories if batches == part(each, start, end) and end <= end_of(each)]
    assert fitting, "a record that nobody wrote, a hole, or what was truncated"
    assert end == start or end == end_of(tuple(batches))
    assert end >= promised.flushed_offset, "an acknowledged record is lost"
    assert start in promised.starts
    fitting = [each for each in fitting if log.last_fetched_epoch == epoch_at(each, end)]
    assert fitting, "an epoch that the log does not have"
    assert log.flushed_offset == end
    listed = frozenset(log.snapshot_ids)
    assert {each for each in promised.snapshots if each.offset >= start} <= listed <= promised.possible_snapshots
    assert start == 0 or any(each.offset >= start for each in listed)
    return fitting[0]


def contents(log: ReplicatedLog) -> list[bytes]:
    """Return all batches of a log."""
    batches: list[bytes] = []
    offset = log.start_offset
    while offset < log.end_offset.offset:
        data = bytes(log.read(offset, Isolation.UNCOMMITTED).records)
        assert data
        for batch in whole_batches(data):
            assert batch.base_offset == offset
            batches.append(bytes(batch.buffer))
            offset = batch.next_offset
    return batches


def check_state_machine(log: FileLog, history: History) -> None:
    """Compare a state machine that has read the log with a scan of everything below each offset."""
    machine = KRaftControlRecordStateMachine(STATIC_VOTERS)
    update_state(machine, log)
    assert machine.next_offset == log.end_offset.offset
    for offset in range(max(machine.start_offset, 0), machine.next_offset):
        assert machine.voter_set_at_offset(offset) == voters_at(history, offset)
