# SPDX-License-Identifier: Apache-2.0
"""A replica that may have forgotten a vote does not vote, whatever its disk says, until an operator accepts that."""

import itertools

import attrs
import pytest

from raftlog.errors import IllegalTransitionError, StorageError
from raftlog.records.files.quorum_state import QuorumStateData, write_quorum_state
from raftlog.storage.state.quorum_state_store import (
    COPY_NAMES,
    QuorumStateOrigin,
    QuorumStateStore,
    load_quorum_state,
)
from raftlog.testing.file_system.faults import Fault, Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.storage.state.stored_states import FILES, LED, NEXT_EPOCH, VOTED, put, stored


def lost(state: QuorumStateData) -> MemoryFileSystem:
    """Return a directory that has lost its state, and in which this one was written since."""
    file_system = MemoryFileSystem()
    QuorumStateStore.open(file_system, ".", has_log=True).write(state)
    return file_system


def test_a_lost_vote_stays_lost() -> None:
    """No write, no start and no later file of Kafka's lets a replica vote that may have forgotten a vote."""
    file_system = lost(LED)
    for state in (attrs.evolve(LED, leader_epoch=6), attrs.evolve(LED, leader_epoch=7)):
        store = QuorumStateStore.open(file_system, ".", has_log=True)
        assert (store.recovered.origin, store.may_vote) == (QuorumStateOrigin.COPIES, False)
        store.write(state)
    put(file_system, "quorum-state", write_quorum_state(attrs.evolve(VOTED, leader_epoch=8)))
    found = load_quorum_state(file_system, ".", has_log=True)
    assert (found.origin, found.may_vote) == (QuorumStateOrigin.KAFKA, False)
    assert not QuorumStateStore.open(file_system, ".", has_log=True).may_vote
    assert not load_quorum_state(file_system, ".", has_log=True).may_vote


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_lost_vote_is_not_forgotten_where_reads_fail(count: int) -> None:
    """One copy says so. If the disk gives back none just now, the state is unknown, and nothing is written."""
    for names in itertools.combinations(FILES, count):
        file_system = lost(LED)
        before = file_system.contents()
        file_system.faults.extend(Fault(Operation.READ, path_end=f"/{name}") for name in names)
        if {*COPY_NAMES} <= {*names}:
            with pytest.raises(StorageError, match=COPY_NAMES[0]):
                QuorumStateStore.open(file_system, ".", has_log=True)
            assert file_system.contents() == before
        store = QuorumStateStore.open(file_system, ".", has_log=True)
        assert (store.state, store.may_vote) == (LED, False)


@pytest.mark.parametrize("has_damaged_copies", [False, True])
def test_a_state_that_cannot_be_read_is_not_lost(*, has_damaged_copies: bool) -> None:
    """Without a sound copy, as where Kafka alone has run, its file counts, and the next start may read it."""
    file_system = MemoryFileSystem()
    put(file_system, "quorum-state", write_quorum_state(VOTED))
    for name in COPY_NAMES if has_damaged_copies else ():
        put(file_system, name, b"?")
    file_system.faults.append(Fault(Operation.READ, path_end="quorum-state"))
    with pytest.raises(StorageError, match="quorum-state"):
        load_quorum_state(file_system, ".", has_log=True)
    found = load_quorum_state(file_system, ".", has_log=True)
    assert (found.origin, found.state, found.may_vote) == (QuorumStateOrigin.KAFKA, VOTED, True)


def test_a_replica_that_may_not_vote_does_not() -> None:
    """A vote is refused, in any epoch; what it hears of leaders is written."""
    store = QuorumStateStore.open(lost(LED), ".", has_log=True)
    for vote in (attrs.evolve(LED, voted_id=1), NEXT_EPOCH):
        with pytest.raises(IllegalTransitionError):
            store.write(vote)
    store.write(attrs.evolve(LED, leader_epoch=6))
    assert store.state == attrs.evolve(LED, leader_epoch=6)


def test_an_operator_may_accept_the_loss() -> None:
    """From the next write on the replica votes again, after a start too; without a write nothing has changed."""
    file_system = lost(LED)
    QuorumStateStore.open(file_system, ".", has_log=True).accept_loss()
    store = QuorumStateStore.open(file_system, ".", has_log=True)
    assert not store.may_vote
    store.accept_loss()
    store.write(NEXT_EPOCH)
    assert QuorumStateStore.open(file_system, ".", has_log=True).may_vote
    assert load_quorum_state(file_system, ".", has_log=True).state == NEXT_EPOCH


@pytest.mark.parametrize("last_epoch", [0, 4, 5, 6, 2**31 - 1])
@pytest.mark.parametrize("is_kafkas", [False, True])
def test_a_state_older_than_the_log_is_stale(is_kafkas: bool, last_epoch: int) -> None:
    """An epoch is noted before there is a record of it: below the log's, votes may be lost, now and at later starts."""
    file_system = stored(VOTED)
    if is_kafkas:
        for name in COPY_NAMES:
            file_system.remove(name)
    is_behind = last_epoch > VOTED.leader_epoch
    store = QuorumStateStore.open(file_system, ".", has_log=True, last_epoch=last_epoch)
    assert (store.recovered.origin is QuorumStateOrigin.STALE) == is_behind
    assert (store.state, store.may_vote, store.recovered.may_vote) == (VOTED, not is_behind, not is_behind)
    again = load_quorum_state(file_system, ".", has_log=True, last_epoch=last_epoch)
    assert (again.state, again.is_settled, again.may_vote) == (VOTED, True, not is_behind)
    store.write(attrs.evolve(LED, leader_epoch=2**31 - 1))
    after = load_quorum_state(file_system, ".", has_log=True, last_epoch=last_epoch)
    assert (after.origin, after.may_vote) == (QuorumStateOrigin.COPIES, not is_behind)
