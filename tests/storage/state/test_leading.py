# SPDX-License-Identifier: Apache-2.0
"""An epoch is entered by who has noted, durably, that he leads it."""

import pytest

from raftlog.errors import (
    FencedEpochError,
    IllegalTransitionError,
    QuarantinedLogError,
    StorageError,
    WorkUnderWayError,
)
from raftlog.log.memory_log import MemoryLog
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.segments.log_config import LogConfig
from raftlog.storage.state.leading import lead_epoch, prepare_to_lead
from raftlog.storage.state.quorum_state_store import QuorumStateStore
from raftlog.testing.contracts.made_batches import raft_batch
from raftlog.testing.file_system.faults import Fault, Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.file_logs import DIRECTORY, fill, flip, kill, open_log, segment_path


def leader(epoch: int, leader_id: int = 1) -> QuorumStateData:
    """The batches of a leader."""
    return QuorumStateData(1, leader_id=leader_id, leader_epoch=epoch)


def opened(file_system: MemoryFileSystem) -> tuple[FileLog, QuorumStateStore]:
    """A replica that starts."""
    log = open_log(file_system)
    has_log = log.end_offset.offset > 0
    store = QuorumStateStore.open(file_system, DIRECTORY, has_log=has_log, last_epoch=log.last_fetched_epoch)
    return log, store


def begin() -> tuple[MemoryFileSystem, FileLog, QuorumStateStore]:
    """A replica that leads epoch 3."""
    log, store = opened(file_system := MemoryFileSystem())
    batches = lead_epoch(log, store, leader(3))
    assert (batches.epoch, batches.base_offset) == (3, 0)
    fill(log, 2, epoch=3)
    log.flush()
    return file_system, log, store


def test_a_leader_continues_at_the_log_end() -> None:
    """The epoch is in the log and in the election state, and the accumulator begins where the log ends."""
    _, log, store = begin()
    batches = lead_epoch(log, store, leader(5))
    assert (batches.epoch, batches.base_offset, log.last_fetched_epoch) == (5, 2, 5)
    assert store.state == leader(5)


def test_no_crash_leaves_a_log_ahead_of_the_election_state() -> None:
    """At each moment of it, and of the append after it, the replica may vote, and knows the epoch of its log."""
    file_system, log, store = begin()
    found = set()

    def crash(*_: object) -> None:
        for after_crash in file_system.crash_states():
            again, votes = opened(after_crash)
            assert votes.may_vote
            assert votes.state is not None
            assert votes.state.leader_epoch >= again.last_fetched_epoch >= 3
            found.add(votes.state.leader_epoch)

    work = prepare_to_lead(log, store, leader(4))
    crash()
    file_system.during_sync = crash
    work.run()
    result = work.finish()
    assert (result.epoch, result.generation) == (4, log.generation)
    log.append_as_leader(*batch_of(log, 4))
    crash()
    file_system.during_sync = None
    assert found == {3, 4}


def batch_of(log: FileLog, epoch: int) -> tuple[bytes, int]:
    """The next batch."""
    return raft_batch(log.end_offset.offset, epoch), epoch


def test_nothing_is_synced_but_by_the_run() -> None:
    """The three files of the election state first, then the two that bear witness of epochs."""
    file_system, log, store = begin()
    syncs = (Operation.SYNC, Operation.SYNC_DIRECTORY)
    before = len([step for step in file_system.steps if step.operation in syncs])
    work = prepare_to_lead(log, store, leader(4))
    assert len([step for step in file_system.steps if step.operation in syncs]) == before
    count = len(file_system.steps)
    work.run()
    renamed = [step.path for step in list(file_system.steps)[count:] if step.operation is Operation.RENAME]
    names = ["raftlog-quorum-state-1", "raftlog-quorum-state-2", "quorum-state", "leader-epoch-checkpoint"]
    assert renamed == [f"{DIRECTORY}/{name}.tmp" for name in (*names, "raftlog-recovery-point")]
    count = len(file_system.steps)
    work.finish()
    assert not [step for step in list(file_system.steps)[count:] if step.operation in syncs]


def test_a_refusal_changes_nothing() -> None:
    """An epoch that is over for the log or the election state, another leader of it, no leader, work under way."""
    file_system, log, store = begin()
    store.write(QuorumStateData(1, leader_epoch=7, voted_id=2))
    before = file_system.contents()
    for state, error in (
        (leader(6), FencedEpochError),
        (leader(2), FencedEpochError),
        (QuorumStateData(1, leader_epoch=8, voted_id=1), ValueError),
    ):
        with pytest.raises(error):
            lead_epoch(log, store, state)
    store.write(leader(8, leader_id=2))
    with pytest.raises(IllegalTransitionError):
        lead_epoch(log, store, leader(8))
    assert file_system.contents() != before
    before = file_system.contents()
    flush = log.prepare_leader_epoch(9)
    with pytest.raises(WorkUnderWayError):
        lead_epoch(log, store, leader(9))
    flush.complete()
    writing = store.prepare_write(leader(10))
    with pytest.raises(WorkUnderWayError):
        lead_epoch(log, store, leader(11))
    writing.complete()
    assert lead_epoch(log, store, leader(11)).epoch == 11


def test_both_are_free_again_whatever_came_of_it() -> None:
    """Without room, the same epoch can be entered later."""
    for name in ("raftlog-quorum-state-1.tmp", "leader-epoch-checkpoint.tmp"):
        file_system, log, store = begin()
        file_system.faults.append(Fault(Operation.WRITE, path_end=name, is_full=True, is_lasting=True))
        with pytest.raises(StorageError):
            lead_epoch(log, store, leader(4))
        file_system.faults.clear()
        assert lead_epoch(log, store, leader(4)).epoch == 4
        fill(log, 1, epoch=4)
        log.close()
        again, votes = opened(kill(file_system))
        assert (again.last_fetched_epoch, votes.state, votes.may_vote) == (4, leader(4), True)


def test_a_disk_that_fails_at_the_vote_does_not_touch_the_log() -> None:
    """The election state is not to be trusted any more; the log has no part in that."""
    file_system, log, store = begin()
    file_system.faults.append(Fault(Operation.SYNC))
    with pytest.raises(StorageError):
        lead_epoch(log, store, leader(4))
    assert log.last_fetched_epoch == 3
    fill(log, 1, epoch=3)
    log.flush()
    with pytest.raises(StorageError):
        store.write(leader(5))


def test_a_damaged_log_does_not_lead() -> None:
    """And nothing is noted of an epoch that it will not lead."""
    file_system, log, store = begin()
    log.close()
    flip(file_system, segment_path(0), 70)
    log, store = opened(file_system)
    with pytest.raises(QuarantinedLogError):
        lead_epoch(log, store, leader(4))
    assert store.state == leader(3)


def forgotten(before: QuorumStateData | None) -> tuple[FileLog, QuorumStateStore]:
    """A replica that has lost its election state, and knows of one since."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 2)
    store = QuorumStateStore.open(file_system, DIRECTORY, has_log=True)
    if before is not None:
        store.write(before)
    return log, store


NOT_ELECTED = (None, leader(3), leader(3, leader_id=2), leader(4, leader_id=2), QuorumStateData(1, leader_epoch=4))


@pytest.mark.parametrize("before", NOT_ELECTED)
def test_a_replica_that_may_have_forgotten_a_vote_does_not_lead(before: QuorumStateData | None) -> None:
    """Another leader may have been elected by that vote: only an operator says otherwise, and votes stay refused."""
    log, store = forgotten(before)
    epoch = 5 if before == leader(4, leader_id=2) else 4
    for lead in (lead_epoch, prepare_to_lead):
        with pytest.raises(IllegalTransitionError, match=f"epoch {epoch}: this replica may have forgotten"):
            lead(log, store, leader(epoch))
    assert (log.last_fetched_epoch, store.state) == (1, before)
    assert lead_epoch(log, store, leader(epoch), is_forced=True).epoch == epoch
    assert (log.last_fetched_epoch, store.state, store.may_vote) == (epoch, leader(epoch), False)


def test_an_elected_replica_leads_in_spite_of_forgotten_votes() -> None:
    """It leads the epoch already: to enter that again changes nothing."""
    log, store = forgotten(leader(4))
    assert lead_epoch(log, store, leader(4)).epoch == 4
    with pytest.raises(IllegalTransitionError):
        lead_epoch(log, store, leader(5))
    store.accept_loss()
    store.write(QuorumStateData(1, leader_epoch=5, voted_id=1))
    assert lead_epoch(log, store, leader(5)).epoch == 5


def test_a_log_that_is_in_the_epoch_continues() -> None:
    """It waits for nothing while the election state is written again."""
    _, log, store = begin()
    work = prepare_to_lead(log, store, leader(3))
    fill(log, 1, epoch=3)
    assert work.complete().value.base_offset == log.end_offset.offset == 3


def test_a_log_in_memory_is_led_likewise() -> None:
    """The operation knows logs by their protocol alone."""
    file_system = MemoryFileSystem()
    file_system.make_directory(DIRECTORY)
    store = QuorumStateStore.open(file_system, DIRECTORY, has_log=False)
    log = MemoryLog()
    assert lead_epoch(log, store, leader(2)).base_offset == 0
    assert log.last_fetched_epoch == 2


@pytest.mark.parametrize("in_parts", [False, True])
def test_the_first_batch_of_an_epoch_that_was_entered_syncs_nothing(in_parts: bool) -> None:
    """Entering the epoch has written it: the batches after it are one write, also for a second epoch."""
    file_system = MemoryFileSystem()
    log = open_log(file_system, LogConfig())
    for epoch in (1, 2):
        log.prepare_leader_epoch(epoch).complete() if in_parts else log.initialize_leader_epoch(epoch)
        assert not log.prepare_leader_epoch(epoch).is_needed
        file_system.steps.clear()
        fill(log, 1, epoch=epoch)
        assert [step.operation for step in file_system.steps] == [Operation.WRITE]
