# SPDX-License-Identifier: Apache-2.0
"""The state machine beside a log that is scanned again after every step: both agree at every offset."""

from collections.abc import Iterator

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from raftlog.errors import OffsetOutOfRangeError
from raftlog.log.control_records import KRaftControlRecordStateMachine, update_state
from raftlog.log.memory_log import MemoryLog
from raftlog.log.replicated_log import Isolation, ReplicatedLog
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.messages.control import KRaftVersionRecord, VotersRecord, read_control_record
from raftlog.records.messages.voters import voter_set, voters_record
from raftlog.snapshot.raw import RawSnapshotWriter
from raftlog.snapshot.reader import RecordsSnapshotReader
from raftlog.snapshot.writer import RecordsSnapshotWriter
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import VoterSet
from raftlog.voters.voter_set_change import VoterSetProblem, voter_set_change_problems
from tests.log.control_batches import (
    LEADER_CHANGE,
    TIMESTAMP,
    Change,
    Written,
    batch_of,
    control_bytes,
    data_bytes,
    states_at,
    voters,
)

STATIC = voters(8, 9)
UNKNOWN = ((0).to_bytes(2, "big") + (77).to_bytes(2, "big"), b"from the future")
voter_sets = st.lists(st.integers(1, 4), max_size=4).map(lambda ids: voters(*sorted(set(ids))))
Plan = int | list[VoterSet]
"""Of a batch: how many data records, or voter sets; none of them is a new epoch."""
plans: st.SearchStrategy[Plan] = st.integers(1, 3) | st.lists(voter_sets, max_size=2)


def batches_of(log: ReplicatedLog, start_offset: int) -> Iterator[RecordBatch]:
    """Yield all batches of a log from an offset on."""
    while start_offset < log.end_offset.offset:
        records = log.read(start_offset, Isolation.UNCOMMITTED).records
        for batch in split(BufferSource(records)):
            assert isinstance(batch, RecordBatch)
            yield batch
            start_offset = batch.next_offset


def scanned(log: ReplicatedLog) -> tuple[int, list[Change]]:
    """Scan the latest snapshot and the log after it; return the first known offset, and the values by offset."""
    changes: list[Change] = []
    end = 0
    if log.latest_snapshot_id is not None:
        end = log.latest_snapshot_id.offset
        raw = log.read_snapshot(log.latest_snapshot_id)
        assert raw is not None
        header = RecordsSnapshotReader.of(raw).header
        changes += [(end - 1, state) for state in (header.kraft_version, header.voter_set) if state is not None]
    for batch in batches_of(log, end):
        for record in batch.records() if batch.is_control else ():
            match read_control_record(record.key, record.value).value:
                case KRaftVersionRecord() as version:
                    changes.append((record.offset, KRaftVersion(version.kraft_version)))
                case VotersRecord() as value:
                    changes.append((record.offset, voter_set(value)))
    return end - 1, changes


def violations_in(first: int, changes: list[Change]) -> list[tuple[int, VoterSet, tuple[VoterSetProblem, ...]]]:
    """Return the voter sets above an offset that must not follow the one before, with their problems."""
    found, before = [], VoterSet()
    for offset, state in changes:
        if isinstance(state, VoterSet):
            if offset > first and (problems := voter_set_change_problems(before, state)):
                found.append((offset, state, problems))
            before = (state if offset >= 0 else VoterSet()) if state else before
    return found


class StateMachineBesideALog(RuleBasedStateMachine):
    """Appends, truncations, snapshots, installs, re-opens and crashes, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.log = MemoryLog()
        self.machine = KRaftControlRecordStateMachine(STATIC)
        self.epoch = 1
        update_state(self.machine, self.log)

    def _end_offset(self) -> int:
        return self.log.end_offset.offset

    def _append(self, batch: bytes, is_fed_first: bool) -> None:
        """Append a batch; the state machine gets it directly or reads it from the log."""
        self.machine.handle_batch(batch_of(batch))
        if not is_fed_first:
            self.machine.truncate_new_entries(self._end_offset())
        self.log.append_as_follower(batch, self.epoch)  # Which must take whoever votes.
        update_state(self.machine, self.log)

    @rule(plans=st.lists(plans, min_size=1, max_size=4), is_fed_first=st.booleans())
    def append(self, plans: list[Plan], is_fed_first: bool) -> None:
        """Write some batches: data, the beginning of an epoch, voters."""
        for plan in plans:
            self._append(self._batch(plan), is_fed_first)

    def _batch(self, plan: Plan) -> bytes:
        base_offset = self._end_offset()
        match plan:
            case int(count):
                return data_bytes(base_offset, count, epoch=self.epoch)
            case []:
                self.epoch += 1
                return control_bytes(base_offset, [LEADER_CHANGE, UNKNOWN], epoch=self.epoch)
        values: list[Written] = list(map(voters_record, plan))
        if not self.machine.last_kraft_version:
            values = [LEADER_CHANGE, KRaftVersionRecord(1), *values]
        codec = CompressionType.GZIP if len(plan) > 1 else CompressionType.NONE
        return control_bytes(base_offset, values, epoch=self.epoch, codec=codec)

    @rule(data=st.data(), is_flushed=st.booleans())
    def commit(self, data: st.DataObject, is_flushed: bool) -> None:
        """Raise the high watermark, and perhaps sync."""
        self.log.update_high_watermark(data.draw(st.integers(self.log.high_watermark.offset, self._end_offset())))
        if is_flushed:
            self.log.flush()

    @rule(data=st.data(), is_told=st.booleans())
    def truncate(self, data: st.DataObject, is_told: bool) -> None:
        """Truncate the diverged tail; the state machine is notified, or finds out."""
        latest = self.log.latest_snapshot_id
        least = max(self.log.high_watermark.offset, 0 if latest is None else latest.offset)
        bases = [batch.base_offset for batch in batches_of(self.log, self.log.start_offset)]
        ends = [base for base in bases if base >= least]
        if not ends:
            return
        self.log.truncate_to(data.draw(st.sampled_from(ends)))
        if is_told:
            self.machine.truncate_new_entries(self._end_offset())
        update_state(self.machine, self.log)

    @rule(data=st.data(), is_deleted_before=st.booleans())
    def take_snapshot(self, data: st.DataObject, is_deleted_before: bool) -> None:
        """Freeze a snapshot of the state machine's values, and delete the log before it."""
        latest = self.log.latest_snapshot_id or OffsetAndEpoch(0, 0)
        batches = [batch for batch in batches_of(self.log, self.log.start_offset) if batch.next_offset > latest.offset]
        if not batches:
            return
        last = data.draw(st.sampled_from(batches))
        self.log.update_high_watermark(last.next_offset)
        snapshot_id = OffsetAndEpoch(last.next_offset, last.partition_leader_epoch)
        version = self.machine.kraft_version_at_offset(snapshot_id.offset - 1)
        known = self.machine.voter_set_at_offset(snapshot_id.offset - 1)
        self._write(self.log.create_snapshot(snapshot_id), version, known)
        self.machine.truncate_old_entries(snapshot_id.offset)
        if is_deleted_before:
            assert self.log.delete_before_snapshot(snapshot_id)

    @precondition(lambda self: self.log.start_offset + 5 < self._end_offset())
    @rule(distance=st.integers(0, 12), known=st.none() | voter_sets.filter(len))
    def install_snapshot(self, distance: int, known: VoterSet | None) -> None:
        """Fetch a snapshot of a later epoch, which replaces the log, whether or not it ends after it."""
        self.epoch += 1
        snapshot_id = OffsetAndEpoch(self.log.high_watermark.offset + distance, self.epoch)
        self._write(self.log.create_snapshot_unchecked(snapshot_id), KRaftVersion(known is not None), known)
        self.log.truncate_to_latest_snapshot()
        assert self._end_offset() == self.log.start_offset == snapshot_id.offset
        update_state(self.machine, self.log)

    def _write(self, raw: RawSnapshotWriter | None, version: KRaftVersion, known: VoterSet | None) -> None:
        assert raw is not None
        with RecordsSnapshotWriter(
            raw, TIMESTAMP, last_contained_log_timestamp=TIMESTAMP, kraft_version=version, voter_set=known
        ) as writer:
            writer.append([b"value"], TIMESTAMP)
            writer.freeze(TIMESTAMP)

    @rule(is_crash=st.booleans(), kept=st.integers(0, 2))
    def reopen(self, is_crash: bool, kept: int) -> None:
        """Begin with an empty state machine, at the same log or at what a crash left of it."""
        if is_crash:
            self.log.crash(kept)
        else:
            self.log.reopen()
        self.machine = KRaftControlRecordStateMachine(STATIC)
        update_state(self.machine, self.log)

    @invariant()
    def equals_the_scan(self) -> None:
        """At every offset that is known, and nowhere else."""
        machine = self.machine
        first, changes = scanned(self.log)
        assert (machine.start_offset, machine.next_offset) == (first, self._end_offset())
        in_force = [(offset, state) for offset, state in changes if not isinstance(state, VoterSet) or state]
        states = states_at(in_force, first, self._end_offset())
        violations = [(each.offset, each.voters, each.problems) for each in machine.violations()]
        assert violations == violations_in(first, changes)
        for offset, state in states.items():
            assert (machine.voter_set_at_offset(offset), machine.kraft_version_at_offset(offset)) == state
        known, version = states[self._end_offset() - 1]
        assert machine.last_voter_set == (STATIC if known is None else known)
        assert machine.last_kraft_version == version
        assert (machine.last_voter_set_offset is None) == (known is None)
        self._refuses(first - 1)
        self._refuses(self._end_offset())

    def _refuses(self, offset: int) -> None:
        for question in (self.machine.voter_set_at_offset, self.machine.kraft_version_at_offset):
            try:
                question(offset)
            except OffsetOutOfRangeError:
                continue
            raise AssertionError(f"offset {offset} is answered for, and was not read")


TestStateMachineBesideALog = StateMachineBesideALog.TestCase
TestStateMachineBesideALog.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
