# SPDX-License-Identifier: Apache-2.0
"""An election state that another thread makes durable is not in force before it is finished."""

from typing import Final

import pytest

from raftlog.errors import FencedEpochError, IllegalTransitionError, OutOfSpaceError, StorageError, WorkUnderWayError
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.storage.state.quorum_state_store import COPY_NAMES, QuorumStateStore, read_quorum_state_copy
from raftlog.testing.file_system.faults import Fault, Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.file_logs import DIRECTORY, kill

SYNCS: Final = (Operation.SYNC, Operation.SYNC_DIRECTORY)
BEFORE: Final = QuorumStateData(leader_epoch=4, voted_id=1, data_version=1)
VOTE: Final = QuorumStateData(leader_epoch=5, voted_id=2, data_version=1)


def begin() -> tuple[MemoryFileSystem, QuorumStateStore]:
    """A store that knows a state."""
    file_system = MemoryFileSystem()
    file_system.make_directory(DIRECTORY)
    file_system.sync_directory(".")
    store = opened(file_system)
    store.write(BEFORE)
    return file_system, store


def opened(file_system: MemoryFileSystem) -> QuorumStateStore:
    """The store of a replica that starts."""
    return QuorumStateStore.open(file_system, DIRECTORY, has_log=False)


def syncs_of(file_system: MemoryFileSystem) -> int:
    """How often something was synced."""
    return len([step for step in file_system.steps if step.operation in SYNCS])


def test_a_vote_is_known_once_it_is_finished() -> None:
    """Only the run writes and syncs it, within the stated paths, and it has its epoch and number."""
    file_system, store = begin()
    before, steps = syncs_of(file_system), len(file_system.steps)
    work = store.prepare_write(VOTE)
    assert (syncs_of(file_system), store.state) == (before, BEFORE)
    work.run()
    assert (syncs_of(file_system), store.state) == (before + 6, BEFORE)
    for step in list(file_system.steps)[steps:]:
        assert step.path.removesuffix(".tmp") in work.paths
    result = work.finish()
    assert (syncs_of(file_system), store.state, result.value, result.epoch) == (before + 6, VOTE, VOTE, 5)
    copies = [read_quorum_state_copy(file_system.contents()[f"{DIRECTORY}/{name}"]) for name in COPY_NAMES]
    assert {(copy.state, copy.sequence) for copy in copies} == {(VOTE, result.generation)}
    later = store.prepare_write(QuorumStateData(leader_epoch=6, voted_id=1, data_version=1)).complete()
    assert later.generation > result.generation


def test_no_second_vote_is_begun() -> None:
    """Until the first one is finished: two for one epoch must not cross."""
    file_system, store = begin()
    work = store.prepare_write(VOTE)
    before = file_system.contents()
    for is_run in (False, True):
        if is_run:
            work.run()
            before = file_system.contents()
        for state in (VOTE, QuorumStateData(leader_epoch=5, voted_id=3, data_version=1)):
            with pytest.raises(WorkUnderWayError):
                store.write(state)
        assert file_system.contents() == before
    work.finish()
    with pytest.raises(IllegalTransitionError):
        store.prepare_write(QuorumStateData(leader_epoch=5, voted_id=3, data_version=1))
    with pytest.raises(FencedEpochError):
        store.prepare_write(BEFORE)


def test_a_crash_at_any_moment_leaves_one_of_the_two() -> None:
    """The state before until it is finished, or the new one; once it is finished, only the new one."""
    file_system, store = begin()
    work = store.prepare_write(VOTE)
    found: set[int | None] = set()

    def crash(*_: object) -> None:
        for after_crash in file_system.crash_states():
            state = opened(after_crash).state
            found.add(None if state is None else state.leader_epoch)

    file_system.during_sync = crash
    work.run()
    file_system.during_sync = None
    assert found == {4, 5}
    work.finish()
    found.clear()
    crash()
    assert found == {5}


@pytest.mark.parametrize("operation", SYNCS)
def test_a_failed_sync_is_reported_when_it_is_finished(operation: Operation) -> None:
    """The state stays what it was, and nothing is written any more."""
    for skip in range(3):
        file_system, store = begin()
        work = store.prepare_write(VOTE)
        file_system.faults.append(Fault(operation, skip=skip))
        work.run()
        with pytest.raises(StorageError) as raised:
            work.finish()
        assert store.state == BEFORE
        with pytest.raises(StorageError) as again:
            store.prepare_write(VOTE)
        assert str(again.value) == str(raised.value)
        state = opened(kill(file_system)).state
        assert state in (BEFORE, VOTE)


def test_without_room_it_can_be_tried_again() -> None:
    """The reserve makes room for a state once; where that is not enough, the state before stays, and more may come."""
    file_system, store = begin()
    file_system.faults.append(Fault(Operation.WRITE, is_full=True))
    assert store.prepare_write(VOTE).complete().value == VOTE
    file_system.faults.append(Fault(Operation.WRITE, is_full=True, is_lasting=True))
    later = QuorumStateData(leader_epoch=6, voted_id=1, data_version=1)
    with pytest.raises(OutOfSpaceError):
        store.prepare_write(later).complete()
    assert store.state == VOTE
    file_system.faults.clear()
    assert store.prepare_write(later).complete().value == later
    assert opened(kill(file_system)).state == later
