# SPDX-License-Identifier: Apache-2.0
"""The directory of a simulated replica in files: the real log, election state and snapshots, on a disk with faults.

After a crash, and after damage, the log is opened again, and what it says is compared with what the disk was given.
What was durable is there, or the log says that it is not: by a quarantine, by refusing votes, or by refusing to open.

**What no log can tell.** A disk is damaged after the log was opened, not between a crash and that: the flush mark is
never synced, so a crash may take it, and the damage of a batch above the recovery point then looks like a torn write.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from raftlog.errors import RaftLogError, TruncationBelowHighWatermarkError
from raftlog.log.replicated_log import Isolation
from raftlog.log.retention import Retention
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.recovery.recovery_point import FLUSH_MARK_NAME
from raftlog.storage.recovery.recovery_report import ActionKind
from raftlog.storage.segments.log_config import LogConfig
from raftlog.storage.state.leading import open_quorum_state
from raftlog.testing.file_system.crash_states import DiskState
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from raftlog.testing.simulator.checks.disk_witness import DiskWitness
from raftlog.testing.simulator.checks.ledger import Ledger, StoredBatch
from raftlog.testing.simulator.checks.reopening import FoundLog, check_log, check_state
from raftlog.testing.simulator.choices import Choices
from raftlog.testing.simulator.disks.aiming import Aim
from raftlog.testing.simulator.disks.damage import Damaged, damage_disk
from raftlog.testing.simulator.disks.directory import DiskJob, static_voters_of, write_bootstrap
from raftlog.testing.simulator.disks.moving_opens import MovingOpen, moving_open, reads_of
from raftlog.testing.simulator.disks.naive_files import (
    check_settled,
    check_witnessed,
    durable_end_in,
    is_whole_up_to,
    whole_in,
    written_end,
)
from raftlog.testing.simulator.disks.simulated_disk import SimulatedDisk
from raftlog.testing.simulator.disks.vote_room import VoteRoom
from raftlog.testing.simulator.disks.watched_file_log import Watched, WatchedElectionState, WatchedFileLog, content_of
from raftlog.testing.simulator.violation import check
from raftlog.voters.voter_set import VoterSet

CRASH_FAULTS: Final = ("work-cut", "torn-crash", "lying-sync", "recovery-crash")
"""The kinds of faults that crashes of a disk have: in the middle of work, in any order of sectors, with syncs that were
not done, and again while the log is opened."""
PATH: Final = "__cluster_metadata-0"
_SEGMENT_BYTES: Final = 6_000
_FEW_BYTES: Final = 1_500
"""Of a segment, in schedules with aimed faults: logs have many of them."""
_STEPS_OF_WORK: Final = 12
_STEPS_OF_RECOVERY: Final = 100
_RECOVERY_CRASHES: Final = 0.15
_OPENS_PER_CHECK: Final = 2
"""So seldom what an open leaves is opened a second time: that takes as long as the open."""
_LOSSES: Final = frozenset({ActionKind.LOST, ActionKind.SET_ASIDE, ActionKind.IGNORED})
_MARK_PATH: Final = f"{PATH}/{FLUSH_MARK_NAME}"


class FileDirectory:
    """A ``Directory`` in files.

    Args:
        witness: to be told of all that is done to the directory.
        identity: of the replica.
        voters: the first ones.
        retention: what cleaning keeps.
        kraft_version: the first one. At 0 the voters are static: no snapshot names them.
        counts: of what was injected, by kind.
        torn_crashes: the share of crashes in which sectors may have reached the disk in any order.
        lies: the share of crashes that lose what was synced, because the disk has not done what it said.
        aim: aims faults at rare moments; None if they come at random times only.

    Attributes:
        disk: of the machine.
        was_damaged: whether any of its files ever was.
    """

    def __init__(
        self,
        witness: DiskWitness,
        identity: ReplicaIdentity,
        voters: VoterSet,
        retention: Retention,
        kraft_version: int,
        counts: Counter[str],
        torn_crashes: float,
        lies: float,
        aim: Aim | None = None,
    ) -> None:
        self.identity = identity
        self.witness = witness
        self.ledger: Ledger = witness.add(identity.key, voters.voter_keys, kraft_version)
        self.disk = SimulatedDisk(identity.key.id, counts)
        self.static_voters = VoterSet() if kraft_version else static_voters_of(identity, voters)
        self._counts = counts
        self._torn_crashes = torn_crashes
        self._lies = lies
        self._aim = aim
        segment_bytes = _SEGMENT_BYTES if aim is None else _FEW_BYTES
        self._config = LogConfig(
            segment_size_bytes=segment_bytes,
            index_interval_bytes=512,
            retention_bytes=retention.max_bytes,
            retention_ms=retention.max_age_ms,
            recovery_point_interval_bytes=segment_bytes // 2,
        )
        self._opens = 0
        self._is_damaged = self._is_torn = self.was_damaged = self._is_open = False
        self._watched = Watched(witness, self.ledger, self.disk.quietly)
        self._requested: QuorumStateData | None = None
        if kraft_version:
            with FileLog.open(self.disk.files, PATH, self._config) as log:
                write_bootstrap(log, voters)
        self._open()

    @property
    def has_failed(self) -> bool:
        """Whether a fault has struck since the last open, or the disk is full."""
        return self.disk.has_failed

    @property
    def is_suspect(self) -> bool:
        """Whether a read will mislead, or the log was not opened since a crash that may have damaged it."""
        return self.disk.may_mislead or (not self._is_open and (self._is_damaged or self._is_torn))

    def open(self) -> str | None:
        """Open the log and the election state again, if that has failed; return why it fails now, or None."""
        if self._is_open:
            return None
        try:
            self._open()
        except RaftLogError as error:
            may_fail = self.has_failed or (self._is_damaged and isinstance(error, TruncationBelowHighWatermarkError))
            check(may_fail, "a-sound-directory-opens", "{}: {}", self.ledger.key, error)
            self.ledger.is_refused = not self.has_failed
            return f"{type(error).__name__}: {error}"
        return None

    def _open(self) -> None:
        """Open log and election state, and check what they have."""
        files, ledger = self.disk.files, self.ledger
        if not (self._is_damaged or self.has_failed or ledger.needs_others):
            check_witnessed(files.state(), PATH, ledger, self._watched.truncating_to)
        log = WatchedFileLog.open(files, PATH, self._config)
        store = open_quorum_state(files, PATH, log)
        is_damaged = self._is_damaged or self.has_failed
        with self.disk.quietly():
            found = _found_in(log, is_torn=self._is_torn)
            if not is_damaged and found.quarantine_end == 0 and self._opens % _OPENS_PER_CHECK == 0:
                check_settled(files.state(), PATH, self._config, ledger)
        self._opens += 1
        opened = store.state, self._requested
        check_state(self.witness, ledger, *opened, may_vote=store.may_vote, is_damaged=is_damaged)
        is_forgotten = ledger.is_vote_lost and store.may_vote and not is_damaged
        check(not is_forgotten, "lost-votes-stay-lost", "{} may vote again, with {}", ledger.key, store.state)
        ledger.is_vote_lost, ledger.is_refused = not store.may_vote, False
        if found.quarantine_end > ledger.furthest_end:  # A write that was cut short may be on the disk as a whole.
            ledger.furthest_end = max(ledger.furthest_end, written_end(files.state(), ledger.end_offset))
        self._found = found
        self._lost = check_log(self.witness, ledger, found, self._watched.truncating_to, is_damaged=is_damaged)
        self._watched, self._requested = Watched(self.witness, ledger, self.disk.quietly), None
        if self._aim is not None:
            aim = self._aim
            self._watched.begin_work = lambda begun: aim.begin_work(self.disk, begun=begun)
            self._watched.spoil = lambda part: part if self.disk.is_healed else aim.spoil(part)
        self._watched.check_witnessed = self._check_witnessed
        log.watch(self._watched)
        room = VoteRoom(ledger, self.disk, PATH)
        self.log, self.election_state = log, WatchedElectionState(store, self._watched, room)
        self._is_open, self._is_damaged, self._is_torn = True, False, False

    def _check_witnessed(self) -> None:
        """Check, after a sync, that what is durable has its epochs in the recovery point."""
        if not (self.disk.has_erred or self.ledger.needs_others):
            check_witnessed(self.disk.files.state(), PATH, self.ledger, self._watched.truncating_to)

    # Crashes

    def crash(self, choices: Choices, jobs: Iterable[DiskJob], may_damage: Callable[[], bool]) -> int:
        """Crash the machine, perhaps in the middle of its work, and again while the log is opened."""
        replica_id = self.identity.key.id
        self._end(choices, jobs)
        self._is_torn = is_torn = choices.happens(self._torn_crashes, "torn-crash", replica_id) and may_damage()
        is_lie = choices.happens(self._lies, "lying-sync", replica_id) and may_damage()
        self._counts["torn-crash"] += is_torn
        self.disk.crash(choices, is_torn=is_torn)
        if is_lie:
            self._lose_synced(choices)
        while choices.happens(_RECOVERY_CRASHES, "recovery-crash", replica_id):
            self._crash_open(choices, choices.number(1, _STEPS_OF_RECOVERY, "recovery-steps", replica_id))
        self._crash_moving_opens(choices)
        if self._aim is not None and (self.ledger.is_quarantined or may_damage()) and self._fails_open(self._aim):
            return self._open_after_failure()
        return self._reopen()

    def _fails_open(self, aim: Aim) -> bool:
        """Whether reads of the next open fail."""
        return aim.fail_open(self.disk, lambda: reads_of(self.disk.files.state(), self._open_files))

    def _open_files(self, files: MemoryFileSystem) -> None:
        open_quorum_state(files, PATH, FileLog.open(files, PATH, self._config))

    def _crash_open(self, choices: Choices, steps: int) -> None:
        """Open the log, and crash after so many operations."""
        self._counts["recovery-crash"] += 1
        self.disk.fail_after(steps)
        with contextlib.suppress(RaftLogError):
            self._open_files(self.disk.files)
        self.disk.crash(choices, is_torn=False)

    def _crash_moving_opens(self, choices: Choices) -> bool:
        """Crash some opens that move files, one after the other; return whether there was one."""
        has_crashed = False
        while self._aim is not None:
            state = self.disk.files.state()
            moving = moving_open(state, self._open_files)
            if moving is None:
                break
            self._check_cuts(state, moving)
            steps = self._aim.steps_of_open(moving)
            if steps is None:
                break
            self._crash_open(choices, steps)
            has_crashed = True
        return has_crashed

    def _check_cuts(self, state: DiskState, moving: MovingOpen) -> None:
        """Check that an open comes to the same wherever the one before it was cut, and if none was."""
        is_sound = not (self._is_torn or self._is_damaged or self.ledger.needs_others)
        wanted = self._found_on(state, is_sound=is_sound)
        for left, step in moving.left.items():
            found = self._found_on(left, is_sound=is_sound)
            values = self.ledger.key, step, found, wanted
            check(found == wanted, "cut-opens-end-alike", "{}, after step {}: {}, and else {}", *values)

    def _found_on(self, state: DiskState, *, is_sound: bool) -> tuple[object, ...] | None:
        """Return what a log says that is opened on a copy of the disk; None if it cannot be opened.

        Args:
            state: of the disk.
            is_sound: whether it was not damaged: all is told then that was lost.
        """
        files = MemoryFileSystem(state)
        try:
            log = WatchedFileLog.open(files, PATH, self._config)
            open_quorum_state(files, PATH, log)
        except RaftLogError:
            return None
        found = _found_in(log, is_torn=False)
        ends = found.start_offset, found.end_offset, found.quarantine_end, found.high_watermark
        return *ends, sorted(found.snapshots), list(map(StoredBatch.of, found.batches)), is_sound and found.told

    def _open_after_failure(self) -> int:
        """Open the log while a read fails, end the process at once, and open it again: what was sound is all there.

        Returns how many batches the first of the two opens has lost.
        """
        ledger = self.ledger
        is_sound = not (self._is_torn or self._is_damaged or ledger.needs_others)
        durable = [each for each in ledger.batches if each.next_offset <= ledger.durable_end]
        self._reopen()
        if not self._is_open:
            self.disk.forget_faults()
            return self._lost
        self.log.end_work()
        self.disk.forget_faults()
        self._reopen()
        if is_sound and self._is_open:
            self._check_whole(durable)
        return self._lost

    def _check_whole(self, durable: Sequence[StoredBatch]) -> None:
        """Check that an open has found batches, but for those that it has deleted, and is in no quarantine."""
        found, names = self._found, set(map(StoredBatch.of, self._found.batches))
        missing = [each for each in durable if each not in names and each.base_offset >= found.start_offset]
        is_whole = not (missing or found.quarantine_end)
        values = self.ledger.key, missing, found.quarantine_end
        check(is_whole, "failed-reads-lose-nothing", "{} lacks {}, in quarantine up to {}", *values)

    def exit(self, choices: Choices, jobs: Iterable[DiskJob]) -> None:
        """End the process, perhaps in the middle of its work."""
        self._end(choices, jobs)
        self.disk.forget_faults()
        self._reopen()

    def _end(self, choices: Choices, jobs: Iterable[DiskJob]) -> None:
        replica_id = self.identity.key.id
        for job in jobs:
            if choices.happens(0.2, "work-done", replica_id):
                job()
            elif choices.happens(0.3, "work-cut", replica_id):
                self._counts["work-cut"] += 1
                self.disk.fail_after(choices.number(1, _STEPS_OF_WORK, "work-steps", replica_id))
                job()
        self.log.end_work()
        self.election_state.end_work()
        self._requested = self.election_state.requested

    def _reopen(self) -> int:
        self._is_open, self._lost = False, 0
        self.open()
        return self._lost

    def _lose_synced(self, choices: Choices) -> None:
        """Lose the end of the last segment, although it was synced, and keep the flush mark, which was not.

        That is so if its file has a name, and the recovery point is of its generation: the loss can be found.
        """
        state = self.disk.files.state()
        last = max((path for path, data, _ in state if data and path.endswith(".log")), default=None)
        if last is None:
            return
        lost = choices.number(1, _SEGMENT_BYTES // 4, "lost-bytes", self.identity.key.id)
        changed = {_MARK_PATH: self.disk.before.get(_MARK_PATH, b"")}
        changed |= {path: data[: max(0, len(data) - lost)] for path, data, _ in state if path == last and data}
        after = tuple((path, changed.get(path, data), is_only) for path, data, is_only in state)
        known_end = durable_end_in(after, PATH)
        if known_end is None or known_end < self.ledger.durable_end:
            return
        self.disk.replace_state(after)
        self._counts["lying-sync"] += 1
        self._is_damaged = self.was_damaged = True

    def damage(self, choices: Choices) -> str | None:
        """Damage the disk, and open the log again. What could not be opened after a crash is not damaged."""
        if not self._is_open:
            return None
        state, aim = self.disk.files.state(), self._aim
        damaged = None if aim is None else aim.damage(state, self.ledger)
        damaged = damaged or damage_disk(state, self.disk.before, choices, self.identity.key.id)
        if damaged is None:
            return None
        self._open_damaged(damaged, choices)
        again = None
        if aim is not None and self._is_open:
            again = aim.damage_again(self.disk.files.state(), self.ledger)
        if again is None:
            return damaged.words
        self._open_damaged(again, choices)
        return f"{damaged.words}, and {again.words}"

    def _open_damaged(self, damaged: Damaged, choices: Choices) -> None:
        """Open the log on a damaged disk, and check what it says."""
        self._counts[damaged.kind] += 1
        self.disk.replace_state(damaged.state)
        self._is_damaged = self.was_damaged = True
        before = self.ledger.start_offset, list(self.ledger.batches)
        has_crashed = self._crash_moving_opens(choices)
        if self._aim is not None and self._fails_open(self._aim):
            self._open_after_failure()
            return
        self._reopen()
        if self._is_open and not has_crashed:
            self._check_losses(damaged.state, *before)

    def _check_losses(self, state: DiskState, start_offset: int, batches: Sequence[StoredBatch]) -> None:
        """Check what an open has dropped of a damaged disk: what it drops at the start it tells, and no sound record.

        A log of which the beginning of the first segment is not whole may be replaced, even if it starts after that.

        Args:
            state: the files after the damage.
            start_offset: of the log before the damage.
            batches: of the log before the damage.
        """
        found, key = self._found, self.ledger.key
        if found.start_offset <= start_offset:
            return
        is_told = bool(found.told)
        check(is_told, "losses-are-told", "{} starts at {} after {}", key, found.start_offset, start_offset)
        whole = whole_in(state, batches)
        is_begun = bool(batches) and is_whole_up_to(state, batches[0])
        later = [each for each in whole if each.next_offset > found.start_offset]
        left = [each for each in later if self.witness.history.is_committed(each)]
        is_kept = not (is_begun and left) or bool(found.batches)
        check(is_kept, "losses-are-told", "{} restarts at {}, and has {}", key, found.start_offset, left)


def _found_in(log: WatchedFileLog, *, is_torn: bool) -> FoundLog:
    told = [str(each) for each in log.recovery.actions if each.kind in _LOSSES]
    quarantine, end_offset = log.quarantine, log.end_offset.offset
    return FoundLog(
        start_offset=log.start_offset,
        batches=list(log.batches(log.start_offset, Isolation.UNCOMMITTED)) if end_offset > log.start_offset else [],
        end_offset=end_offset,
        high_watermark=log.high_watermark.offset,
        quarantine_end=0 if quarantine is None else quarantine.durable_end_offset,
        snapshots={each: content_of(log, each) for each in log.snapshot_ids},
        told=told if quarantine is None or is_torn else [*told, quarantine.reason],
    )
