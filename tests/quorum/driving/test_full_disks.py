# SPDX-License-Identifier: Apache-2.0
"""A quorum over real logs whose disks become full: nothing is lost, replicas stay up, and go on when there is room."""

import random

import pytest

from raftlog.errors import NotLeaderError
from raftlog.file_system import join
from raftlog.log.replicated_log import Isolation
from raftlog.quorum.roles.roles import Leader
from raftlog.quorum.seam.effects import AppendOutcome
from raftlog.testing.file_system.faults import Fault, Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.quorum.driving.file_cluster import FileCluster, FileReplica

STEPS = 200


class Disks:
    """A quorum in which each replica has a disk of its own."""

    def __init__(self, voter_ids: tuple[int, ...] = (1, 2, 3)) -> None:
        self.disks = {each: MemoryFileSystem() for each in voter_ids}
        for each, files in self.disks.items():
            files.make_directory(FileCluster.directory_of("c", each))
        self.disks = {each: files.settled() for each, files in self.disks.items()}
        self.cluster = FileCluster("c", MemoryFileSystem(), voter_ids, disks=self.disks)

    def fill(self, replica_id: int, written_bytes: int = 0) -> None:
        """Make a disk full for the records of the log; a first write may be cut short."""
        files = self.disks[replica_id]
        files.faults.append(Fault(Operation.WRITE, path_end=".log", is_full=True, written_bytes=written_bytes))
        files.faults.append(Fault(Operation.WRITE, path_end=".log", is_full=True, is_lasting=True))

    def free(self, replica_id: int) -> None:
        """Make room."""
        self.disks[replica_id].faults.clear()

    def crash(self, replica_id: int, choose: random.Random) -> None:
        """Cut the power of a replica: what is not synced may be lost. Start it again."""
        self.cluster.kill(replica_id)
        crashed = self.disks[replica_id].crash(choose.randrange)
        self.disks[replica_id] = self.cluster.disks[replica_id] = crashed
        self.cluster.start(replica_id)

    def run(self, steps: int = STEPS) -> None:
        """Let time pass."""
        for _ in range(steps):
            self.cluster.step()

    def halted(self) -> list[str]:
        """Return why replicas have halted."""
        reasons = [each.driver.raft.halt_reason for each in self.cluster.running.values()]
        return [each for each in reasons if each is not None]


def committed(replica: FileReplica) -> list[bytes | None]:
    """Return what the log has of committed records: a replica with a full disk can be read."""
    return [each.value for each in replica.log.records(isolation=Isolation.COMMITTED)]


@pytest.mark.parametrize("written_bytes", [0, 1, 90])
def test_another_replica_leads_while_the_disk_of_the_leader_is_full(written_bytes: int) -> None:
    """The append has failed, the others go on, and the replica catches up when there is room."""
    disks = Disks()
    leader = disks.cluster.elect()
    assert disks.cluster.append(leader, b"before").outcome is AppendOutcome.COMMITTED
    disks.fill(leader.id, written_bytes)
    assert disks.cluster.append(leader, b"refused").outcome is AppendOutcome.FAILED
    assert leader.driver.raft.status.is_disk_full
    with pytest.raises(NotLeaderError, match="no space left"):
        leader.driver.raft.append([b"not taken"], epoch=leader.driver.raft.role.epoch)
    other = disks.cluster.elect()
    assert other.id != leader.id
    for each in range(5):
        assert disks.cluster.append(other, b"%d" % each).outcome is AppendOutcome.COMMITTED
    disks.run()
    assert disks.cluster.leader() is other
    assert leader.driver.raft.status.is_disk_full
    assert committed(leader) == [b"before"]
    disks.free(leader.id)
    disks.cluster.equalize()
    assert committed(leader) == [b"before", b"0", b"1", b"2", b"3", b"4"]
    assert disks.halted() == []


def test_a_full_voter_votes_and_delays_what_needs_it() -> None:
    """With the leader gone, the voter with room is elected by the full one; it commits when that has room."""
    disks = Disks()
    leader = disks.cluster.elect()
    disks.cluster.append(leader, b"before")
    disks.cluster.equalize()
    full, other = (each for each in (1, 2, 3) if each != leader.id)
    disks.fill(full)
    assert disks.cluster.append(leader, b"with two").outcome is AppendOutcome.COMMITTED
    disks.run()
    disks.cluster.kill(leader.id)
    disks.run(2_000)
    elected = [each.id for each in disks.cluster.running.values() if isinstance(each.driver.raft.role, Leader)]
    assert elected == [other]
    assert disks.cluster.leader() is None
    disks.free(full)
    assert disks.cluster.append(disks.cluster.elect(), b"after").outcome is AppendOutcome.COMMITTED
    disks.cluster.equalize()
    assert committed(disks.cluster.running[full]) == [b"before", b"with two", b"after"]
    assert disks.halted() == []


def test_the_only_voter_leads_again_when_there_is_room() -> None:
    """It needs no restart, and has used few epochs."""
    disks = Disks((1,))
    leader = disks.cluster.elect()
    disks.cluster.append(leader, b"before")
    disks.fill(1)
    assert disks.cluster.append(leader, b"refused").outcome is AppendOutcome.FAILED
    disks.run(6_000)
    assert leader.driver.raft.role.epoch < 25
    assert committed(leader) == [b"before"]
    disks.free(1)
    assert disks.cluster.append(disks.cluster.elect(), b"after").outcome is AppendOutcome.COMMITTED
    assert committed(leader) == [b"before", b"after"]


def test_all_disks_full_and_free_again() -> None:
    """No replica can lead; all are up, and the first one with room and a majority goes on."""
    disks = Disks()
    leader = disks.cluster.elect()
    disks.cluster.append(leader, b"before")
    disks.cluster.equalize()
    for each in (1, 2, 3):
        disks.fill(each)
    assert disks.cluster.append(leader, b"refused").outcome is AppendOutcome.FAILED
    disks.run(3_000)
    assert disks.halted() == []
    assert max(each.driver.raft.role.epoch for each in disks.cluster.running.values()) < 40
    for each in (1, 2, 3):
        disks.free(each)
    assert disks.cluster.append(_elected(disks), b"after").outcome is AppendOutcome.COMMITTED
    disks.cluster.equalize()
    assert [committed(each) for each in disks.cluster.running.values()] == [[b"before", b"after"]] * 3


def _elected(disks: Disks) -> FileReplica:
    """Wait for a leader: for as long as the longest pause, and the elections after it."""
    for _ in range(3):
        if disks.cluster.leader() is None:
            disks.run(1_000)
    return disks.cluster.elect()


@pytest.mark.parametrize("seed", range(12))
def test_what_was_told_holds_however_disks_fill_up_and_power_fails(seed: int) -> None:
    """Committed appends are in every log, once and in order; failed ones are in none, after any loss of power."""
    draw, disks = random.Random(seed), Disks()
    cluster, appended = disks.cluster, dict[tuple[int, int], bytes]()
    told = dict[bytes, AppendOutcome]()
    for count in range(600):
        _note(cluster, appended, told)
        replica_id, choice = draw.choice((1, 2, 3)), draw.random()
        if choice < 0.02:
            disks.fill(replica_id, draw.choice((0, 30, 90, 200)))
        elif choice < 0.05:
            disks.free(replica_id)
        elif choice < 0.06:
            disks.crash(replica_id, draw)
        leader = cluster.leader()
        if leader is not None and draw.random() < 0.6:
            value = b"%d" % count
            number = leader.driver.raft.append([value], epoch=leader.driver.raft.role.epoch).number
            appended[leader.id, number] = value
        disks.run(draw.choice((0, 1, 1, 5, 30)))
    for each in (1, 2, 3):
        disks.free(each)
    _elected(disks)
    cluster.equalize()
    _note(cluster, appended, told)
    assert disks.halted() == []
    logs = [committed(each) for each in cluster.running.values()]
    assert logs[0] == logs[1] == logs[2]
    found = [each for each in logs[0] if each is not None]
    assert len(set(found)) == len(found)
    acknowledged = [each for each, outcome in told.items() if outcome is AppendOutcome.COMMITTED]
    assert set(acknowledged) <= set(found)
    assert not {each for each, outcome in told.items() if outcome is AppendOutcome.FAILED} & set(found)
    assert len(acknowledged) > 10


def _note(cluster: FileCluster, appended: dict[tuple[int, int], bytes], told: dict[bytes, AppendOutcome]) -> None:
    for replica_id, replica in cluster.running.items():
        for number, ended in replica.outcomes.items():
            told[appended.pop((replica_id, number))] = ended.outcome
        replica.outcomes.clear()


def test_the_segment_of_a_full_disk_is_as_long_as_before() -> None:
    """Half a batch does not precede a whole one."""
    disks = Disks((1,))
    leader = disks.cluster.elect()
    disks.cluster.append(leader, b"before")
    path = join(FileCluster.directory_of("c", 1), "00000000000000000000.log")
    before = disks.disks[1].contents()[path]
    disks.fill(1, written_bytes=40)
    assert disks.cluster.append(leader, b"refused").outcome is AppendOutcome.FAILED
    assert disks.disks[1].contents()[path] == before
