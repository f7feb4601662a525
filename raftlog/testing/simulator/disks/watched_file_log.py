# SPDX-License-Identifier: Apache-2.0
"""The log in files, and a store of election states, that tell a witness what they do, as they do it."""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

import attrs

from raftlog.disk_work import DiskResult, DiskStep, DiskWork, nothing
from raftlog.errors import LogDirectoryError, OutOfSpaceError
from raftlog.file_system import FileSystem
from raftlog.invariants import present
from raftlog.log.append_validation import CheckedAppend
from raftlog.log.epochs import LeaderEpochs
from raftlog.log.replicated_log import LogAppendInfo, ReplicatedLog
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.files.file_names import FileKind
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.records.limits import LOG_OVERHEAD
from raftlog.snapshot.raw import RawSnapshotWriter
from raftlog.storage.log.appendable_log import Flush
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.recovery.startup import RecoveredLog
from raftlog.storage.segments.log_config import LogConfig
from raftlog.storage.state.quorum_state_store import QuorumStateStore
from raftlog.testing.simulator.checks.disk_witness import DiskWitness
from raftlog.testing.simulator.checks.ledger import Ledger
from raftlog.testing.simulator.disks.fetched_writer import FetchedSnapshotWriter, Spoil
from raftlog.testing.simulator.disks.naive_files import kind_of
from raftlog.testing.simulator.disks.vote_room import VoteRoom
from raftlog.testing.simulator.violation import check

T = TypeVar("T")


def content_of(log: ReplicatedLog, snapshot_id: OffsetAndEpoch) -> bytes:
    """Return the bytes of a snapshot that a log lists."""
    with present(log.read_snapshot(snapshot_id), "a snapshot that is listed") as raw:
        return bytes(raw.read_at(0, raw.size()))


def _batches_in(data: bytes | memoryview) -> list[RecordBatch]:
    """Return the batches that some bytes consist of; the log has accepted them."""
    held, start, found = memoryview(bytes(data)), 0, []
    while start < len(held):
        size = LOG_OVERHEAD + int.from_bytes(held[start + 8 : start + LOG_OVERHEAD])
        found.append(RecordBatch(held[start : start + size], start, crc_is_checked=True))
        start += size
    return found


@attrs.define
class Watched:
    """What a log tells, and to whom.

    Attributes:
        witness: is told.
        ledger: of the log's directory.
        quietly: lets no fault strike in a block.
        truncating_to: the offset of a truncation that may be on the disk already; None if none is under way.
        begin_work: is called as work for the disk begins that an epoch, a segment, a truncation or a deletion needs,
            with the first batch of an epoch that it writes, and the epoch, or None.
        spoil: returns what is written of a part of a snapshot that is fetched.
        check_witnessed: checks that what is durable has its epochs in the files that witness them.
    """

    witness: DiskWitness
    ledger: Ledger
    quietly: Callable[[], AbstractContextManager[None]]
    truncating_to: int | None = None
    begin_work: Callable[[OffsetAndEpoch | None], object] = nothing
    spoil: Spoil = bytes
    check_witnessed: Callable[[], object] = nothing


class WatchedFileLog(FileLog):
    """A ``FileLog`` that is watched once ``watch`` was called.

    The disk makes records durable in one place, ``_run_flush``, whatever they are flushed for.
    """

    def __init__(self, file_system: FileSystem, directory: str, config: LogConfig, recovered: RecoveredLog) -> None:
        super().__init__(file_system, directory, config, recovered)
        self._watched: Watched | None = None
        self._is_leader = True
        self._is_slow_append_leaders = True
        self._is_refusable = self._was_refused = False
        self._begun: OffsetAndEpoch | None = None

    def watch(self, watched: Watched) -> None:
        """Tell a witness from now on."""
        self._watched = watched

    # What a full disk refuses

    def _begin(self, steps: Sequence[DiskStep], result: Callable[[], T], **held: Any) -> DiskWork[DiskResult[T]]:
        if self._is_refusable:
            steps = [attrs.evolve(each, disk=functools.partial(self._noting_refusals, each.disk)) for each in steps]
        if self._watched is not None:
            self._watched.begin_work(self._begun)
        return super()._begin(steps, result, **held)

    def _noting_refusals(self, disk: Callable[[], T]) -> T:
        with self._refusals_noted():
            return disk()

    @contextmanager
    def _refusals_noted(self) -> Iterator[None]:
        try:
            yield
        except OutOfSpaceError:
            if self._watched is not None:
                self._watched.witness.refused(self._watched.ledger)
            raise

    @contextmanager
    def _refusable(self) -> Iterator[None]:
        """Note refusals of the work that is prepared in a block. A cleaning that is refused delays nothing else."""
        self._is_refusable = True
        try:
            yield
        finally:
            self._is_refusable = False

    # Appends

    def _append(self, checked: CheckedAppend) -> DiskWork[DiskResult[LogAppendInfo]]:
        epoch = checked.batches[-1].epoch
        if epoch != self._epochs.latest_epoch:
            first = next(each for each in checked.batches if each.epoch == epoch)
            self._begun = OffsetAndEpoch(first.base_offset, epoch)
        try:
            with self._refusable():
                return super()._append(checked)
        finally:
            self._begun = None

    def _append_plainly(self, batches: bytes | memoryview, epoch: int) -> LogAppendInfo | None:
        with self._refusals_noted():
            info = super()._append_plainly(batches, epoch)
        if info is not None:
            self._note_appended(batches, is_leader=self._is_leader)
        return info

    def _follow_plainly(self, batches: bytes | memoryview, epoch: int) -> LogAppendInfo | None:
        self._is_leader = False
        try:
            return super()._follow_plainly(batches, epoch)
        finally:
            self._is_leader = True

    def _prepare_append_as_leader(self, batches: bytes | memoryview, epoch: int) -> DiskWork[DiskResult[LogAppendInfo]]:
        self._is_slow_append_leaders = True
        return super()._prepare_append_as_leader(batches, epoch)

    def _prepare_append_as_follower(
        self, batches: bytes | memoryview, epoch: int
    ) -> DiskWork[DiskResult[LogAppendInfo | None]]:
        self._is_slow_append_leaders = False
        return super()._prepare_append_as_follower(batches, epoch)

    def _write(self, checked: CheckedAppend, epochs: LeaderEpochs) -> LogAppendInfo:
        with self._refusals_noted():
            info = super()._write(checked, epochs)
        self._note_appended(checked.data, is_leader=self._is_slow_append_leaders)
        return info

    def _note_appended(self, data: bytes | memoryview, *, is_leader: bool) -> None:
        if self._watched is not None:
            self._was_refused = self._was_refused or self._watched.ledger.refusals > 0
            self._watched.witness.appended(self._watched.ledger, _batches_in(data), is_leader=is_leader)

    # What becomes durable, and what is dropped

    def _run_flush(self, flush: Flush) -> None:
        super()._run_flush(flush)
        if self._watched is not None and flush.is_sync_needed:
            self._watched.witness.synced(self._watched.ledger, flush.end_offset)
            if self._was_refused:
                self._was_refused = False
                self._watched.check_witnessed()

    def _truncate(self, offset: int, *, ends_quarantine: bool) -> DiskWork[DiskResult[int]]:
        with self._refusable():
            work = super()._truncate(offset, ends_quarantine=ends_quarantine)
        watched = self._watched
        if watched is None or self._cut is None:
            return work
        watched.truncating_to, before = self._cut.end.offset, self._segments.end_offset

        def note(result: DiskResult[int]) -> DiskResult[int]:
            watched.truncating_to = None
            if result.value < before:
                watched.witness.truncated(watched.ledger, result.value)
            return result

        return work.then(note)

    def prepare_leader_epoch(self, epoch: int) -> DiskWork[DiskResult[None]]:
        """Prepare ``initialize_leader_epoch``."""
        with self._refusable():
            work = super().prepare_leader_epoch(epoch)
        return self._noted(work, lambda watched, _: watched.witness.entered_epoch(watched.ledger, epoch))

    def update_high_watermark(self, offset: int) -> None:
        """Raise the high watermark."""
        if self._watched is not None:
            self._watched.witness.raised_high_watermark(self._watched.ledger, offset)
        super().update_high_watermark(offset)

    # Snapshots

    def create_snapshot_unchecked(self, snapshot_id: OffsetAndEpoch) -> RawSnapshotWriter | None:
        """Begin a snapshot that is fetched from the leader."""
        writer, watched = super().create_snapshot_unchecked(snapshot_id), self._watched
        if writer is None or watched is None:
            return writer
        return FetchedSnapshotWriter(writer, watched.witness, watched.ledger, watched.spoil)

    def _take_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        super()._take_snapshot(snapshot_id)
        watched = self._watched
        if watched is not None and snapshot_id in self._snapshot_ids:
            with watched.quietly():
                content = content_of(self, snapshot_id)
            watched.witness.snapshot_taken(watched.ledger, snapshot_id, content)
            watched.witness.proved(watched.ledger, self._high_watermark)

    def prepare_truncate_to_latest_snapshot(self) -> DiskWork[DiskResult[bool]]:
        """Prepare ``truncate_to_latest_snapshot``."""

        def note(watched: Watched, is_done: bool) -> None:
            if is_done:
                with watched.quietly():
                    names = [each for each in self._file_system.list(self._directory) if kind_of(each) is FileKind.LOG]
                check(len(names) == 1, "restarts-leave-nothing", "{}: {}", watched.ledger.key, names)
                watched.witness.restarted(watched.ledger, self._start_offset)
                watched.witness.snapshots_kept(watched.ledger, self._snapshot_ids)

        return self._noted(super().prepare_truncate_to_latest_snapshot(), note)

    def prepare_delete_before_snapshot(self, snapshot_id: OffsetAndEpoch) -> DiskWork[DiskResult[bool]]:
        """Prepare ``delete_before_snapshot``."""

        def note(watched: Watched, is_done: bool) -> None:
            if is_done:
                watched.witness.started_at(watched.ledger, self._start_offset)
                watched.witness.snapshots_kept(watched.ledger, self._snapshot_ids)

        return self._noted(super().prepare_delete_before_snapshot(snapshot_id), note)

    def _noted(
        self, work: DiskWork[DiskResult[Any]], note: Callable[[Watched, Any], None]
    ) -> DiskWork[DiskResult[Any]]:
        def after(result: DiskResult[Any]) -> DiskResult[Any]:
            if self._watched is not None:
                note(self._watched, result.value)
            return result

        return work.then(after)

    def end_work(self) -> None:
        """Finish the work that was run, and forget the work that was not, because the process has ended."""
        self._end_work(self._directory)
        if self._watched is not None and self._watched.ledger.fetched_snapshot is not None:
            self._watched.witness.fetched(self._watched.ledger)


class WatchedElectionState:
    """A ``QuorumStateStore`` whose states a witness is told of as they become durable.

    Args:
        store: of the states.
        watched: whom to tell.
        room: watches the reserve of the directory; None if nobody does.

    Attributes:
        requested: the last state that was to be written in this run; None before the first.
    """

    def __init__(self, store: QuorumStateStore, watched: Watched, room: VoteRoom | None = None) -> None:
        self._store = store
        self._watched = watched
        self._room = room
        self._work: DiskWork[Any] | None = None
        self.requested: QuorumStateData | None = None

    @property
    def state(self) -> QuorumStateData | None:
        """The state that was written last."""
        return self._store.state

    @property
    def may_vote(self) -> bool:
        """Whether the replica has forgotten no vote."""
        return self._store.may_vote

    def prepare_write(self, state: QuorumStateData) -> DiskWork[DiskResult[QuorumStateData]]:
        """Prepare to make a state durable."""
        work = self._store.prepare_write(state)
        self._look_at_room()
        self.requested = state
        watched = self._watched
        self._work = work.add(DiskStep(lambda: watched.witness.stored(watched.ledger, state)))
        if self._room is not None:
            work.precede(DiskStep(self._room.storing)).add(DiskStep(self._room.stored))
        return work

    def _look_at_room(self) -> None:
        if self._room is not None and self._work is not None:
            self._room.ended(self._work)

    def end_work(self) -> None:
        """Finish the work that was run, and forget the work that was not, because the process has ended."""
        if self._work is not None:
            self._work.end(LogDirectoryError("the process has ended"))
            self._look_at_room()
            self._work = None
