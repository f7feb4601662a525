# SPDX-License-Identifier: Apache-2.0
"""An election state is durable when its disk work is run: the witness knows then, and a crash forgets it before."""

import pytest

from raftlog.log.retention import Retention
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.snapshot.paths import BOOTSTRAP_SNAPSHOT_ID
from raftlog.testing.simulator.checks.committed_history import CommittedHistory
from raftlog.testing.simulator.checks.disk_witness import DiskWitness
from raftlog.testing.simulator.checks.replay import Replay, VotersAt
from raftlog.testing.simulator.disks.memory_directory import MemoryDirectory
from raftlog.testing.simulator.simulation import LISTENER, replica_key, voter_node
from raftlog.testing.simulator.violation import ViolationError
from raftlog.voters.voter_set import VoterSet


def directory(kraft_version: int = 1) -> MemoryDirectory:
    """Return the empty directory of a quorum of one."""
    node = voter_node(replica_key(1))
    identity = ReplicaIdentity(key=node.voter_key, cluster_id="simulated", endpoints=node.listeners, listener=LISTENER)
    replay = Replay(VotersAt(-1, kraft_version, frozenset([node.voter_key])))
    witness = DiskWitness(CommittedHistory(replay.committed), replay)
    return MemoryDirectory(witness, identity, VoterSet.of([node]), Retention(), kraft_version)


def vote(epoch: int, candidate: int = 2) -> QuorumStateData:
    """Return an election state with a vote."""
    return QuorumStateData(1, leader_epoch=epoch, voted_id=candidate)


@pytest.mark.parametrize("is_finished", [False, True])
def test_a_state_is_durable_when_its_work_was_run(is_finished: bool) -> None:
    """A crash after that does not lose it, whether the process was told or not."""
    disk = directory()
    work = disk.election_state.prepare_write(vote(3))
    assert disk.ledger.state is None
    work.run()
    assert disk.ledger.state == vote(3)
    if is_finished:
        assert work.finish().value == vote(3)
    disk.end_work()
    assert disk.election_state.state == vote(3)


def test_a_crash_forgets_work_that_was_not_run() -> None:
    """The state before it is the one that the next process finds."""
    disk = directory()
    disk.election_state.prepare_write(vote(3)).complete()
    work = disk.election_state.prepare_write(vote(4))
    disk.end_work()
    assert disk.election_state.state == vote(3)
    assert not work.cancel(RuntimeError())


@pytest.mark.parametrize("is_crash", [False, True])
def test_a_state_that_must_not_be_stored_is_a_violation(is_crash: bool) -> None:
    """Work runs where no error may leave; so the owner gets the violation, or the crash does."""
    disk = directory()
    disk.election_state.prepare_write(vote(3)).complete()
    work = disk.election_state.prepare_write(vote(3, candidate=1))
    work.run()
    with pytest.raises(ViolationError, match="one-vote-per-epoch"):
        disk.end_work() if is_crash else work.finish()


@pytest.mark.parametrize("kraft_version", [0, 1])
def test_the_first_voters_are_static_or_those_of_a_snapshot(kraft_version: int) -> None:
    """At kraft.version 0 a configuration names them, by ids and addresses; at 1 the bootstrap snapshot does."""
    disk = directory(kraft_version)
    names = {each.voter_key.id: each.voter_key.directory_id for each in disk.static_voters.voters.values()}
    assert names == ({} if kraft_version else {1: None})
    assert disk.log.snapshot_ids == ((BOOTSTRAP_SNAPSHOT_ID,) if kraft_version else ())
    assert disk.ledger.levels == [(-1, kraft_version)]
