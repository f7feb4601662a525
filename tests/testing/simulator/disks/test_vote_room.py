# SPDX-License-Identifier: Apache-2.0
"""A full disk has room for a vote in the reserve, and a store that does not use it, or keep it again, is found."""

from collections import Counter

import pytest

from raftlog.errors import OutOfSpaceError, StorageError
from raftlog.file_system import join, remove_if_there
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.storage.state.quorum_state_store import RESERVE_NAME, QuorumStateStore
from raftlog.testing.file_system.faults import Fault
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from raftlog.testing.simulator.choices import ReplayedChoices
from raftlog.testing.simulator.disks.simulated_disk import SimulatedDisk
from raftlog.testing.simulator.disks.vote_room import VoteRoom
from raftlog.testing.simulator.disks.watched_file_log import Watched, WatchedElectionState
from raftlog.testing.simulator.violation import ViolationError
from tests.mutants.of_quorum_state import _without_a_new_reserve, _without_a_reserve
from tests.testing.simulator.checks.quorum_disks import QuorumDisks

CALM = ReplayedChoices({})


def opened() -> tuple[SimulatedDisk, WatchedElectionState]:
    """Return a disk, and the election state on it, of epoch 1."""
    disks = QuorumDisks(1)
    disk, ledger = SimulatedDisk(1, Counter()), disks.ledgers[1]
    disk.files.make_directory("log")
    store = QuorumStateStore.open(disk.files, "log", has_log=False)
    state = WatchedElectionState(store, Watched(disks.witness, ledger, disk.quietly), VoteRoom(ledger, disk, "log"))
    vote(state, 1)
    return disk, state


def vote(state: WatchedElectionState, epoch: int) -> None:
    """Store a vote."""
    state.prepare_write(QuorumStateData(1, leader_epoch=epoch, voted_id=1)).complete()


def has_reserve(files: MemoryFileSystem) -> bool:
    """Whether the reserve is there."""
    return files.exists(join("log", RESERVE_NAME))


def test_a_full_disk_takes_one_vote_after_another() -> None:
    """In the room of the reserve, which is kept again each time; but it takes nothing else."""
    disk, state = opened()
    disk.plan_error("disk-full", CALM)
    for epoch in range(2, 6):
        vote(state, epoch)
        assert has_reserve(disk.files)
        with pytest.raises(OutOfSpaceError):
            disk.files.open("log/other", create=True).append(b"x")
    state.end_work()


def test_without_a_reserve_a_full_disk_takes_no_vote() -> None:
    """The store may say so then, and the room is not there."""
    disk, state = opened()
    remove_if_there(disk.files, join("log", RESERVE_NAME))
    disk.plan_error("disk-full", CALM)
    with pytest.raises(OutOfSpaceError):
        vote(state, 2)
    state.end_work()


def test_a_store_that_does_not_use_the_reserve(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found as the process ends, or stores the next one."""
    monkeypatch.setattr(QuorumStateStore, "_store", _without_a_reserve)
    for end in (WatchedElectionState.end_work, lambda state: vote(state, 3)):
        disk, state = opened()
        disk.plan_error("disk-full", CALM)
        with pytest.raises(OutOfSpaceError):
            vote(state, 2)
        with pytest.raises(ViolationError, match="votes-have-room"):
            end(state)


@pytest.mark.parametrize("is_failing", [False, True])
def test_a_store_that_does_not_keep_the_reserve_again(is_failing: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found at once, unless the disk may have failed in that."""
    monkeypatch.setattr(QuorumStateStore, "_store", _without_a_new_reserve)
    disk, state = opened()
    disk.plan_error("disk-full", CALM)
    if is_failing:
        disk.files.faults.append(Fault(skip=100, is_lasting=True))
        vote(state, 2)
        assert not has_reserve(disk.files)
    else:
        with pytest.raises(ViolationError, match="votes-have-room"):
            vote(state, 2)


def test_another_error_is_none_of_its_business() -> None:
    """A disk that fails in the middle of a store, and a process that ends before it."""
    disk, state = opened()
    disk.fail_after(3)
    with pytest.raises(StorageError):
        vote(state, 2)
    state.end_work()
    _, state = opened()
    work = state.prepare_write(QuorumStateData(1, leader_epoch=2, voted_id=1))
    state.end_work()
    with pytest.raises(Exception, match="the process has ended"):
        work.finish()
