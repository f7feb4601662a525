# SPDX-License-Identifier: Apache-2.0
"""Resigning on request, and handing the leadership to a voter."""

import pytest

from raftlog.errors import NotLeaderError, RaftLogError, TransferTargetError, UnknownEpochError
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Follower, Leader, Resigned
from raftlog.quorum.seam.effects import AppendOutcome
from raftlog.records.messages.raft.election_messages import EndQuorumEpochRequest
from raftlog.voters.voter_set import ReplicaKey
from tests.quorum.leading.leaders import ENDS, LOG_END, SlowDisk, fetch, leader_of
from tests.quorum.messages import begin_quorum_epoch_request
from tests.quorum.single_replica import SingleReplica, replica_key
from tests.quorum.three_replicas import ThreeReplicas


def resign(core: SingleReplica, epoch: int = 3, preferred: ReplicaKey | None = None) -> None:
    """Resign."""
    core.raft.resign(epoch, preferred)
    core.settle()


def candidates(core: SingleReplica) -> list[list[int]]:
    """Return the preferred candidates of each EndQuorumEpoch that was sent and not taken."""
    ends = [each.message for each in core.take_requests() if isinstance(each.message, EndQuorumEpochRequest)]
    return [[each.candidate_id for each in end.topics[0].partitions[0].preferred_candidates] for end in ends]


def caught_up_leader() -> SlowDisk:
    """Return a leader; voters 2 and 4 have all of its log, voter 3 less, and voter 5 has not fetched."""
    core = leader_of((1, 2, 3, 4, 5))
    for each in core.take_requests():
        core.raft.request_failed(each.number)
    core.sleep(20)
    for voter, end in ((2, ENDS[3]), (3, ENDS[2]), (4, ENDS[3])):
        fetch(core, replica_key(voter), end)
    assert core.raft.high_watermark == LOG_END
    return core


def test_a_leader_resigns_on_request() -> None:
    """The voters are told, and the one with the longest log stands for election first."""
    core = caught_up_leader()
    resign(core)
    assert isinstance(core.raft.role, Resigned)
    assert candidates(core) == [[2, 4, 3, 5]] * 4


def test_the_preferred_voter_comes_first() -> None:
    """The others follow, those with the longest logs first."""
    core = caught_up_leader()
    resign(core, preferred=replica_key(4))
    assert candidates(core) == [[4, 2, 3, 5]] * 4


@pytest.mark.parametrize(
    "preferred", [replica_key(1), replica_key(6), replica_key(2, 9), ReplicaKey(2), replica_key(5)]
)
def test_a_voter_that_could_not_win_is_refused(preferred: ReplicaKey) -> None:
    """This replica itself, an observer, another directory, and one that has not fetched; nothing has changed then."""
    core = caught_up_leader()
    with pytest.raises(TransferTargetError):
        resign(core, preferred=preferred)
    core.sleep(0)
    assert isinstance(core.raft.role, Leader)


@pytest.mark.parametrize("end_offset", [LOG_END - 1, LOG_END, LOG_END + 1])
def test_a_voter_that_lacks_committed_records_is_refused(end_offset: int) -> None:
    """It would lose the election. One that lacks only uncommitted records may win."""
    core = caught_up_leader()
    core.append(b"a", b"b")
    core.sleep(QuorumConfig().append_linger_ms)
    leadership = core.raft._replica.leadership
    assert leadership is not None
    before = leadership.progress[replica_key(4)]
    leadership.progress[replica_key(4)] = before._replace(end_offset=end_offset)
    if end_offset < LOG_END:
        with pytest.raises(TransferTargetError, match=f"up to {end_offset}, and {LOG_END} is committed"):
            resign(core, preferred=replica_key(4))
    else:
        resign(core, preferred=replica_key(4))
    assert isinstance(core.raft.role, Leader) == (end_offset < LOG_END)


@pytest.mark.parametrize(("epoch", "error"), [(-1, ValueError), (4, UnknownEpochError), (2**31 - 1, UnknownEpochError)])
def test_an_impossible_epoch_is_refused(epoch: int, error: type[RaftLogError | ValueError]) -> None:
    """A negative one, and one that this replica does not know; nothing has changed then."""
    core = leader_of((1, 2))
    with pytest.raises(error):
        resign(core, epoch)
    core.sleep(0)
    assert isinstance(core.raft.role, Leader)


def test_an_earlier_epoch_is_over_already() -> None:
    """The caller has not heard of it yet."""
    core = leader_of((1, 2))
    resign(core, 2)
    core.sleep(0)
    assert isinstance(core.raft.role, Leader)


def test_a_resigned_leader_has_resigned_already() -> None:
    """A second call changes nothing."""
    core = leader_of((1, 2))
    resign(core)
    before = core.raft.role
    resign(core, preferred=replica_key(9))
    assert core.raft.role == before


def test_only_the_leader_can_resign() -> None:
    """Neither a follower, nor a leader that has halted."""
    core = leader_of((1, 2))
    core.request("", begin_quorum_epoch_request(2, 4), version=1)
    with pytest.raises(NotLeaderError, match="Follower in epoch 4"):
        resign(core, 4)
    halted = leader_of((1, 2))
    halted.raft.effect_failed(1, "input/output error")
    with pytest.raises(NotLeaderError):
        resign(halted)


def test_appends_end_with_a_resignation() -> None:
    """What is in the log may be committed by the next leader; what was only collected is lost."""
    core = leader_of((1, 2))
    written = core.append(b"a")
    core.sleep(QuorumConfig().append_linger_ms)
    collected = core.append(b"b")
    resign(core)
    ended = {each.number: each.outcome for each in core.ended}
    assert ended == {written.number: AppendOutcome.UNKNOWN, collected.number: AppendOutcome.FAILED}


@pytest.mark.parametrize("preferred", [2, 3])
def test_the_preferred_voter_becomes_the_leader(preferred: int) -> None:
    """Of three real replicas, it wins the next epoch before any timeout."""
    replicas = ThreeReplicas(0)
    core = replicas.replicas[1]
    core.sleep(3000)
    replicas.deliver_all()
    assert isinstance(core.raft.role, Leader)
    epoch = core.raft.role.epoch
    resign(core, epoch, replica_key(preferred))
    replicas.deliver_all()
    role = replicas.replicas[preferred].raft.role
    assert isinstance(role, Leader)
    assert role.epoch == epoch + 1
    assert isinstance(core.raft.role, Follower)
