# SPDX-License-Identifier: Apache-2.0
"""Tracks a log's control records: which voter set and which kraft.version are in force at every offset.

A record is in force from its own offset on, committed or not, as raft requires for membership changes. The values of a
snapshot are in force from its last offset on, which is its end offset minus one. Nothing is known about offsets below
that.
"""

import weakref
from collections.abc import Iterator
from typing import Final

from raftlog.errors import (
    CorruptBatchError,
    DecodeError,
    NonContiguousAppendError,
    OffsetOutOfRangeError,
    SnapshotNotFoundError,
)
from raftlog.invariants import instance_of, invariant
from raftlog.log.replicated_log import Isolation, ReplicatedLog
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.control_batch import check_is_bare
from raftlog.records.batches.iterator import BufferSource, Corruption, split_runs
from raftlog.records.batches.record import Record
from raftlog.records.kernel_choice import kernel
from raftlog.records.messages.control import (
    ControlRecordType,
    KRaftVersionRecord,
    VotersRecord,
    read_control_key,
    read_control_record,
)
from raftlog.records.messages.voters import voter_set
from raftlog.snapshot.reader import RecordsSnapshotReader
from raftlog.voters.history import HistoryEntry, TreeMapLogHistory
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import VoterSet
from raftlog.voters.voter_set_change import check_voter_set_change
from raftlog.voters.voter_set_history import VoterSetHistory, VoterSetViolation

NOTHING_READ: Final = -1
"""The next offset of a state machine that has read nothing, and does not yet know whether there is a snapshot."""

_READ_SIZE_BYTES: Final = 1024 * 1024


class KRaftControlRecordStateMachine:
    """Reads the control records of a log, in order, and reports what is in force at every offset that it has read.

    Its owner feeds it, with ``update_state`` or batch by batch. It takes no locks: the owner serialises access. A batch
    that is refused leaves it as it was.

    It refuses records that cannot be read, but no voter set, because a replica must be able to follow what its quorum
    has committed. ``violations`` lists the sets that should not have been written (DECISIONS.md 39). Call
    ``check_voter_set`` before you write one.

    Args:
        static_voters: the configured set, in force until a record names another; it may be empty.

    Source: KRaftControlRecordStateMachine. Differs: truncation moves ``next_offset`` back, so that the records written
    there instead are read; offsets outside of what was read and kept raise an error, also those below.
    """

    def __init__(self, static_voters: VoterSet) -> None:
        self._voter_sets = VoterSetHistory(static_voters)
        self._kraft_versions: TreeMapLogHistory[KRaftVersion] = TreeMapLogHistory()
        self._sets_by_bytes: weakref.WeakValueDictionary[bytes | None, VoterSet] = weakref.WeakValueDictionary()
        self._start_offset = NOTHING_READ
        self._next_offset = NOTHING_READ
        self._changes = 0

    @property
    def changes(self) -> int:
        """How often entries were added or forgotten: as long as this is equal, so are the histories."""
        return self._changes

    @property
    def next_offset(self) -> int:
        """The offset of the record to be read next; -1 until it is known whether there is a snapshot."""
        return self._next_offset

    @property
    def start_offset(self) -> int:
        """The first offset, inclusive, that can be queried: -1, or one below the end of a snapshot."""
        return self._start_offset

    @property
    def static_voters(self) -> VoterSet:
        """The configured voter set."""
        return self._voter_sets.static_voters

    @property
    def last_voter_set(self) -> VoterSet:
        """The voter set in force at the end: that of the last VotersRecord, or the static one."""
        return self._voter_sets.last_value()

    @property
    def last_voter_set_offset(self) -> int | None:
        """The offset of the last VotersRecord: None while the static set is in force, -1 for the bootstrap snapshot."""
        return self._voter_sets.last_voter_set_offset()

    @property
    def last_kraft_version(self) -> KRaftVersion:
        """The kraft.version in force at the end."""
        last = self._kraft_versions.last_entry()
        return KRaftVersion.KRAFT_VERSION_0 if last is None else last.value

    def voter_set_at_offset(self, offset: int) -> VoterSet | None:
        """Return the voter set of the last VotersRecord up to an offset, inclusive; None if there was none.

        Raises:
            OffsetOutOfRangeError: the offset is at or above ``next_offset``, or below ``start_offset``.

        Source: KRaftControlRecordStateMachine#voterSetAtOffset.
        """
        if not self._start_offset <= offset < self._next_offset:
            raise self._unknown(offset)
        return self._voter_sets.value_at_or_before(offset)

    def kraft_version_at_offset(self, offset: int) -> KRaftVersion:
        """Return the kraft.version in force at an offset: 0 if no record had named one.

        Raises:
            OffsetOutOfRangeError: the offset is at or above ``next_offset``, or below ``start_offset``.

        Source: KRaftControlRecordStateMachine#kraftVersionAtOffset.
        """
        if not self._start_offset <= offset < self._next_offset:
            raise self._unknown(offset)
        return self._kraft_versions.value_at_or_before(offset) or KRaftVersion.KRAFT_VERSION_0

    def _unknown(self, offset: int) -> OffsetOutOfRangeError:
        return OffsetOutOfRangeError(f"offset {offset} is not in [{self._start_offset}, {self._next_offset})")

    def voter_sets(self) -> Iterator[HistoryEntry[VoterSet]]:
        """Yield the known voter sets with the offsets of their records, oldest first."""
        return self._voter_sets.entries()

    def kraft_versions(self) -> Iterator[HistoryEntry[KRaftVersion]]:
        """Yield the known levels of kraft.version with the offsets of their records, oldest first."""
        return self._kraft_versions.entries()

    @property
    def voters_in_force(self) -> VoterSet:
        """The voter set of the last VotersRecord; empty if there is none, because static voters restrict no change.

        ``BatchAccumulator`` needs it to check a VotersRecord. Empty always means that there was no VotersRecord: no
        record can put an empty set in force.
        """
        return VoterSet() if self._voter_sets.last_entry() is None else self._voter_sets.last_value()

    def check_voter_set(self, voters: VoterSet) -> None:
        """Check that a voter set may be written after the last record read. Nothing is changed.

        It must be able to follow the set of a bootstrap snapshot too, which is in force, although replay accepts any
        set after that.

        Raises:
            EmptyVoterSetError, NoOverlappingMajorityError, TooManyVoterChangesError: as for ``check_voter_set_change``.
        """
        check_voter_set_change(self.voters_in_force, voters)

    def violations(self) -> tuple[VoterSetViolation, ...]:
        """Return the voter sets that should not have been written, oldest first, among those that were not trimmed.

        The set of a snapshot is not compared with the one before it; it is a violation only if it is empty.
        """
        return self._voter_sets.violations()

    def handle_batch(self, batch: RecordBatch) -> None:
        """Read the batch at ``next_offset``: only the header of a data batch, and only those two control records.

        Raises:
            NonContiguousAppendError: the batch has another base offset.
            CorruptBatchError: its CRC does not match, or it does not hold a record for each of its offsets.
            InvalidRecordError: a control record is damaged, or of a kind that raft does not write.
            UnsupportedVersionError: a KRaftVersionRecord has an unknown level.
            DecodeError, MissingExtraError: as ``RecordBatch.records``.

        Source: KRaftControlRecordStateMachine#handleBatch.
        """
        if batch.base_offset != self._expected_offset:
            raise NonContiguousAppendError(f"a batch at {batch.base_offset}, not at {self._expected_offset}")
        for offset, state in list(self._states(batch)):  # Read all before adding any, so that an error changes nothing.
            self._add(offset, state)
        self._next_offset = batch.next_offset
        self._check_invariants()

    def _check_invariants(self) -> None:
        """Check the offsets that are known against each other, and against the ends of both histories."""
        start, end = self._start_offset, self._next_offset
        invariant(NOTHING_READ <= start <= end, "control records are known from {} to {}", start, end)
        for history in (self._voter_sets, self._kraft_versions):
            last = history.last_entry()
            is_known = last is None or last.offset < end
            invariant(is_known, "{}, but control records are known from {} to {}", last, start, end)

    def handle_run(self, run: BatchRun) -> None:
        """Read batches as ``handle_batch`` does, but let the kernel skip those without control records of interest.

        Raises:
            RaftLogError: as ``handle_batch``. The batches before the refused one have been read.
        """
        index = 0
        while index < len(run):
            skipped, next_offset = kernel.skip_uneventful(
                run.data, run.positions, run.sizes, index, self._expected_offset
            )
            if skipped:
                before = self._next_offset
                invariant(index + skipped <= len(run), "{} skipped, of {} from {} on", skipped, len(run), index)
                invariant(before < next_offset, "control records read to {}, then to {}", before, next_offset)
                self._next_offset = next_offset
            if (index := index + skipped) < len(run):
                self.handle_batch(run.batch(index))
                index += 1

    def handle_snapshot(self, snapshot: RecordsSnapshotReader) -> None:
        """Forget everything, and begin with a snapshot: only its first batch is read.

        Args:
            snapshot: one that was verified, as all are that a log lists.

        Raises:
            DecodeError, MissingExtraError, StorageError: as ``RecordsSnapshotReader``.

        Source: KRaftControlRecordStateMachine#maybeLoadSnapshot.
        """
        header = snapshot.header
        self._begin(snapshot.snapshot_id.offset)
        if header.kraft_version:
            self._add(self._start_offset, header.kraft_version)
        if header.voter_set is not None:
            self._add(self._start_offset, header.voter_set)

    def handle_no_snapshot(self) -> None:
        """Forget everything, and begin at offset 0, with the static voters."""
        self._begin(0)

    def _forget(self) -> None:
        self._changes += 1
        self._voter_sets.clear()
        self._kraft_versions.clear()
        self._start_offset = self._next_offset = NOTHING_READ
        self._check_invariants()

    def _begin(self, end_offset: int) -> None:
        self._forget()
        self._start_offset, self._next_offset = end_offset - 1, end_offset
        self._check_invariants()

    def truncate_new_entries(self, end_offset: int) -> None:
        """Go back to the end of a truncated log; reading continues from there.

        If the log now ends at or below ``start_offset``, everything is forgotten, and a snapshot must be read again.

        Args:
            end_offset: of the log, exclusive; if it is at or above ``next_offset``, nothing changes.

        Source: KRaftControlRecordStateMachine#truncateNewEntries. Differs: ``next_offset`` moves too.
        """
        if end_offset >= self._next_offset:
            return
        if end_offset <= self._start_offset:
            self._forget()
            return
        self._truncate_histories(end_offset)
        self._next_offset = end_offset
        self._check_invariants()

    def truncate_old_entries(self, start_offset: int) -> None:
        """Trim to a snapshot: keep only the state in force at the snapshot's end, and what follows it.

        Args:
            start_offset: end offset of the snapshot, exclusive.

        Raises:
            OffsetOutOfRangeError: the records below it have not been read.

        Source: KRaftControlRecordStateMachine#truncateOldEntries. Differs: the state at the last offset of the snapshot
        remains known, even if a record follows immediately.
        """
        if start_offset > self._next_offset:
            raise OffsetOutOfRangeError(f"a snapshot to {start_offset}, but the log is read to {self._next_offset}")
        self._changes += 1
        self._start_offset = max(self._start_offset, start_offset - 1)
        self._voter_sets.truncate_old_entries(self._start_offset)
        self._kraft_versions.truncate_old_entries(self._start_offset)
        self._check_invariants()

    @property
    def _expected_offset(self) -> int:
        return max(self._next_offset, 0)

    def _truncate_histories(self, end_offset: int) -> None:
        self._changes += 1
        self._voter_sets.truncate_new_entries(end_offset)
        self._kraft_versions.truncate_new_entries(end_offset)

    def _add(self, offset: int, state: VoterSet | KRaftVersion) -> None:
        self._changes += 1
        if isinstance(state, VoterSet):
            self._voter_sets.add(offset, state)
        else:
            self._kraft_versions.add(offset, state)

    def _states(self, batch: RecordBatch) -> Iterator[tuple[int, VoterSet | KRaftVersion]]:
        """Yield what a batch's records put in force, each with its offset."""
        _check_header(batch)
        if not batch.is_control:
            return
        for offset, record in enumerate(batch.records(), batch.base_offset):
            try:
                check_is_bare(record)
                if (state := self._state(record)) is not None:
                    yield offset, state
            except DecodeError as error:
                raise error.located(position=batch.position, base_offset=batch.base_offset) from None

    def _state(self, record: Record) -> VoterSet | KRaftVersion | None:
        match read_control_key(record.key):
            case ControlRecordType.KRAFT_VERSION:
                value = instance_of(read_control_record(record.key, record.value).value, KRaftVersionRecord)
                return KRaftVersion.from_level(value.kraft_version)
            case ControlRecordType.KRAFT_VOTERS:
                return self._voter_set(record)
        return None

    def _voter_set(self, record: Record) -> VoterSet:
        """Return the set of a VotersRecord: the same object for the same bytes, as long as it is referenced."""
        known = self._sets_by_bytes.get(record.value)
        if known is not None:
            return known
        value = instance_of(read_control_record(record.key, record.value).value, VotersRecord)
        return self._sets_by_bytes.setdefault(record.value, voter_set(value))


def update_state(machine: KRaftControlRecordStateMachine, log: ReplicatedLog) -> None:
    """Let a state machine read a log up to its end, committed or not. Call this after every change of the log.

    If the log ends below what was read, it was truncated, and the state machine goes back first. The latest snapshot is
    read first if the state machine has read nothing, if the log starts above what was read, or if the log is empty,
    because it may have replaced the log that was read.

    Raises:
        SnapshotNotFoundError: the log starts above what was read, and no snapshot reaches its start.
        QuarantinedLogError, StorageError: as ``log.read``.
        RaftLogError: as ``handle_batch``. Batches before the refused one remain read.

    Source: KRaftControlRecordStateMachine#updateState. Differs: if a snapshot replaces the log and ends below what was
    read, Kafka keeps what it has read.
    """
    end_offset = log.end_offset.offset
    if machine.next_offset == end_offset > log.start_offset:
        return
    machine.truncate_new_entries(end_offset)
    if machine.next_offset < max(log.start_offset, 0) or log.start_offset == end_offset:
        _load_latest_snapshot(machine, log)
    while machine.next_offset < end_offset:
        records = log.read(machine.next_offset, Isolation.UNCOMMITTED, _READ_SIZE_BYTES).records
        machine.handle_run(_first_run(records))


def _load_latest_snapshot(machine: KRaftControlRecordStateMachine, log: ReplicatedLog) -> None:
    snapshot_id = log.latest_snapshot_id
    if log.start_offset > (0 if snapshot_id is None else snapshot_id.offset):
        raise SnapshotNotFoundError(f"the log starts at offset {log.start_offset}, and no snapshot reaches there")
    if snapshot_id is None:
        machine.handle_no_snapshot()
        return
    raw = log.read_snapshot(snapshot_id)
    if raw is None:
        raise SnapshotNotFoundError(f"{snapshot_id} is listed, but cannot be opened")
    with raw:
        machine.handle_snapshot(RecordsSnapshotReader.of(raw))


def _first_run(records: memoryview) -> BatchRun:
    """Return the whole batches at the start of what a log has read; a cut-off batch at the end is left out.

    Raises:
        CorruptBatchError: the first batch is not sound.
    """
    piece = next(split_runs(BufferSource(records)), None)
    if isinstance(piece, BatchRun):
        return piece
    reason = piece.reason if isinstance(piece, Corruption) else "no whole batch of magic 2"
    raise CorruptBatchError(reason, getattr(piece, "rule", None))


def _check_header(batch: RecordBatch) -> None:
    """Check that a batch is sound, and holds a record for each of its offsets, as all of raft's do."""
    batch.ensure_valid()
    count = batch.record_count
    if count < 1 or count != batch.last_offset_delta + 1 or batch.next_offset <= batch.base_offset:
        reason = f"{count} records, but the last one has offset {batch.last_offset}"
        raise CorruptBatchError(reason, "raft-batch", position=batch.position, base_offset=batch.base_offset)
