# SPDX-License-Identifier: Apache-2.0
"""The log in files of the simulator keeps the contract of a log, and tells its witness what the model tells it."""

import contextlib
from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import given

from raftlog.errors import OutOfSpaceError, StorageError
from raftlog.invariants import present
from raftlog.log.replicated_log import Isolation, ReplicatedLog
from raftlog.log.retention import Retention
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.storage.segments.log_config import LogConfig
from raftlog.storage.state.leading import open_quorum_state
from raftlog.testing.contracts.log_harness import KEEP_ALL, LogHarness
from raftlog.testing.contracts.made_batches import raft_batch, snapshot_bytes
from raftlog.testing.contracts.replicated_log import ReplicatedLogContract
from raftlog.testing.file_system.faults import Fault, Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from raftlog.testing.log_stories import LogStory, log_stories
from raftlog.testing.simulator.disks.simulated_log import SimulatedLog
from raftlog.testing.simulator.disks.watched_file_log import Watched, WatchedElectionState, WatchedFileLog
from raftlog.testing.simulator.violation import ViolationError
from tests.file_logs import flip
from tests.testing.simulator.checks.quorum_disks import QuorumDisks
from tests.testing.simulator.disks.recorder import Recorder

TOLD_BY_OPENING = ("restarted", "lost", "snapshots_kept", "reopened")


class WatchedHarness:
    """A log in files, in a file system that is ended by a crash, whose witness has no objections."""

    def __init__(self, retention: Retention, config: LogConfig | None = None) -> None:
        self.recorder = Recorder()
        self.ledger = QuorumDisks(1).ledgers[1]
        self._config = config or LogConfig(retention_bytes=retention.max_bytes, retention_ms=retention.max_age_ms)
        self.files = MemoryFileSystem()
        self._open()

    def _open(self) -> None:
        self.watched = WatchedFileLog.open(self.files, "log", self._config)
        self.watched.watch(Watched(cast("Any", self.recorder), self.ledger, contextlib.nullcontext))

    @property
    def log(self) -> ReplicatedLog:
        """The log."""
        return self.watched

    def reopen(self) -> None:
        """Close the log, and open it again."""
        self.watched.close()
        self._open()

    def crash(self) -> None:
        """Lose what is not durable, and open the log again."""
        self.watched.end_work()
        self.files = self.files.crash(lambda _: 0)
        self._open()


class TestWatchedFileLog(ReplicatedLogContract):
    """The log in files, watched."""

    def make_harness(self, retention: Retention) -> LogHarness:
        """Make an empty log."""
        return WatchedHarness(retention)


@given(log_stories())
def test_the_witness_is_told_what_the_model_tells(story: LogStory) -> None:
    """The same, in the same order, but that other steps of a log in files sync it, too."""
    model, in_files = Recorder(), WatchedHarness(KEEP_ALL)
    log = SimulatedLog(cast("Any", model), QuorumDisks(1).ledgers[1], KEEP_ALL)
    for each in (log, in_files.log):
        story.replay(each)
        each.flush()
    told = [
        [(name, _plain(what)) for name, what in each.told if name not in ("synced", *TOLD_BY_OPENING)]
        for each in (model, in_files.recorder)
    ]
    assert told[0] == told[1]
    assert log.flushed_offset == in_files.log.flushed_offset


def _plain(what: Any) -> Any:
    """Return something in a form that is equal for both logs: of batches, their bytes."""
    return [bytes(each.buffer) for each in what] if isinstance(what, list) else what


@pytest.mark.parametrize("is_leader", [True, False])
@pytest.mark.parametrize("is_slow", [True, False])
def test_a_witness_knows_who_appends(is_leader: bool, is_slow: bool) -> None:
    """A leader or a follower, whether the append needs the disk first, as that of a new epoch does, or not."""
    told = []

    class Asking(Recorder):
        def appended(self, _: object, batches: Any, *, is_leader: bool) -> None:
            told.append((len(batches), is_leader))

    harness = WatchedHarness(KEEP_ALL)
    harness.watched.watch(Watched(cast("Any", Asking()), harness.ledger, contextlib.nullcontext))
    log = harness.log
    if not is_slow:
        log.append_as_follower(raft_batch(0, 1), 1)
        told.clear()
    first = log.end_offset.offset
    batches = raft_batch(first, 1, 2) + raft_batch(first + 2, 1)
    (log.append_as_leader if is_leader else log.append_as_follower)(batches, 1)
    assert told == [(2, is_leader)]
    assert [each.base_offset for each in log.batches(first, Isolation.UNCOMMITTED)] == [first, first + 2]


@pytest.mark.parametrize("is_leader", [True, False])
@pytest.mark.parametrize("is_slow", [True, False])
def test_a_witness_is_told_of_each_append_without_room(is_leader: bool, is_slow: bool) -> None:
    """Once, and of no append that is taken."""
    harness = WatchedHarness(KEEP_ALL)
    log = harness.log
    append = log.append_as_leader if is_leader else log.append_as_follower
    if not is_slow:
        append(raft_batch(0, 1), 1)
    harness.recorder.told.clear()
    harness.files.faults.append(full := Fault(Operation.WRITE, path_end=".log", is_full=True, is_lasting=True))
    first = log.end_offset.offset
    for _ in range(2):
        with pytest.raises(OutOfSpaceError):
            append(raft_batch(first, 1), 1)
    assert [each[0] for each in harness.recorder.told] == ["refused"] * 2
    harness.files.faults.remove(full)
    append(raft_batch(first, 1), 1)
    assert [each[0] for each in harness.recorder.told].count("refused") == 2


def _new_epoch(log: ReplicatedLog) -> None:
    log.initialize_leader_epoch(5)


def _roll(log: ReplicatedLog) -> None:
    log.append_as_follower(raft_batch(log.end_offset.offset, 1, value=b"x" * 300), 1)


def _truncate(log: ReplicatedLog) -> None:
    log.truncate_to_end_offset(OffsetAndEpoch(2, 1))


@pytest.mark.parametrize("refused", [_new_epoch, _roll, _truncate])
def test_a_witness_is_told_of_all_that_a_full_disk_refuses(refused: Callable[[ReplicatedLog], None]) -> None:
    """A new epoch, a new segment, and a truncation, whose replica holds back as after an append; once each."""
    harness = WatchedHarness(KEEP_ALL, LogConfig(segment_size_bytes=512))
    log = harness.log
    for offset in range(3):
        log.append_as_follower(raft_batch(offset, 1), 1)
    log.flush()
    harness.recorder.told.clear()
    harness.files.faults.append(full := Fault(is_full=True, is_lasting=True))
    for _ in range(2):
        with pytest.raises(OutOfSpaceError):
            refused(log)
    assert [each[0] for each in harness.recorder.told] == ["refused"] * 2
    harness.files.faults.remove(full)
    refused(log)
    assert [each[0] for each in harness.recorder.told].count("refused") == 2


def test_damage_that_cannot_be_set_aside_is_a_refusal() -> None:
    """A log in quarantine sets the damage aside before it takes records, which needs room."""
    harness = WatchedHarness(KEEP_ALL)
    for offset in range(3):
        harness.log.append_as_follower(raft_batch(offset, 1), 1)
    harness.log.flush()
    (path,) = (path for path in harness.files.contents() if path.endswith(".log"))
    flip(harness.files, path, len(raft_batch(0, 1)) + 70)
    harness.reopen()
    assert present(harness.watched.quarantine, "damage").first_bad_offset == 1
    harness.recorder.told.clear()
    harness.files.faults.append(Fault(is_full=True, is_lasting=True))
    with pytest.raises(OutOfSpaceError):
        harness.log.append_as_follower(raft_batch(1, 1), 1)
    assert [each[0] for each in harness.recorder.told] == ["refused"]


def test_a_cleaning_without_room_is_no_refusal() -> None:
    """It is tried again in its time, and the replica goes on as before: nothing is told."""
    harness = WatchedHarness(KEEP_ALL)
    log = harness.log
    log.append_as_follower(raft_batch(0, 1) + raft_batch(1, 1), 1)
    log.flush()
    log.update_high_watermark(2)
    with present(log.create_snapshot(OffsetAndEpoch(1, 1)), "a snapshot") as writer:
        writer.append(snapshot_bytes(OffsetAndEpoch(1, 1)))
        writer.freeze()
    harness.recorder.told.clear()
    harness.files.faults.append(Fault(is_full=True, is_lasting=True))
    with pytest.raises(OutOfSpaceError):
        log.delete_before_snapshot(OffsetAndEpoch(1, 1))
    assert harness.recorder.told == []


def test_what_was_not_synced_is_not_told() -> None:
    """A sync that fails makes nothing durable; one that is prepared, nothing yet."""
    harness = WatchedHarness(KEEP_ALL)
    log = harness.log
    log.append_as_leader(raft_batch(0, 1), 1)
    harness.recorder.told.clear()
    work = log.prepare_flush()
    assert harness.recorder.told == []
    harness.files.faults.append(Fault(Operation.SYNC))
    work.run()
    with pytest.raises(StorageError):
        work.finish()
    assert harness.recorder.told == []


def test_an_election_state_is_told_when_all_files_have_it() -> None:
    """Before its owner knows; one that could not be written is not told."""
    harness = WatchedHarness(KEEP_ALL)
    store = open_quorum_state(harness.files, "log", harness.log)
    states = WatchedElectionState(store, Watched(cast("Any", harness.recorder), harness.ledger, contextlib.nullcontext))
    first, second = (QuorumStateData(1, leader_epoch=epoch, voted_id=2) for epoch in (1, 2))
    work = states.prepare_write(first)
    assert (harness.recorder.told, states.requested) == ([], first)
    work.run()
    assert harness.recorder.told == [("stored", first)]
    assert states.state is None
    states.end_work()
    assert states.state == first
    harness.files.faults.append(Fault(Operation.SYNC, skip=2))
    states.prepare_write(second).run()
    assert (harness.recorder.told, states.requested) == ([("stored", first)], second)
    states.end_work()
    assert states.state == first


@pytest.mark.parametrize("is_left", [False, True])
def test_a_restart_at_a_snapshot_leaves_no_old_segment(is_left: bool) -> None:
    """One that is still there is a violation."""
    harness = WatchedHarness(KEEP_ALL)
    for offset in range(3):
        harness.log.append_as_follower(raft_batch(offset, 1), 1)
    with present(harness.log.create_snapshot_unchecked(OffsetAndEpoch(9, 2)), "a snapshot") as writer:
        writer.append(snapshot_bytes(OffsetAndEpoch(9, 2)))
        writer.freeze()
    if is_left:
        harness.files.open("log/00000000000000000003.log", create=True).close()
        with pytest.raises(ViolationError, match="restarts-leave-nothing"):
            harness.log.truncate_to_latest_snapshot()
    else:
        assert harness.log.truncate_to_latest_snapshot()
