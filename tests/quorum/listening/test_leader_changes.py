# SPDX-License-Identifier: Apache-2.0
"""What listeners are told of epochs and leaders."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.offsets import MAX_EPOCH
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Follower, Leader, Resigned
from raftlog.quorum.seam.effects import NotifyLeaderChange, StoreElectionState
from raftlog.quorum.seam.identity import ReceivedRequest
from raftlog.records.files.quorum_state import QuorumStateData
from tests.quorum.leading.leaders import ENDS, EPOCH_START, LOG_END, fetch, leader_of
from tests.quorum.listening.following_core import EPOCH, LEADER, fetched, follower
from tests.quorum.messages import begin_quorum_epoch_request, vote_request
from tests.quorum.single_replica import LISTENER, SingleReplica, log_with, replica_key, voter_set_of

Told = list[tuple[int, int | None]]


def told(core: SingleReplica, listener: int) -> Told:
    """Return the epochs and leaders that a listener was told."""
    return [(each.epoch, each.leader_id) for each in core.leader_changes if each.listener == listener]


def caught_up_leader(read_to: int) -> tuple[SingleReplica, int]:
    """Return the leader of epoch 3, which has committed its whole log, and a listener that has read up to an offset."""
    core = leader_of((1, 2))
    listener = core.raft.register_listener()
    fetch(core, replica_key(2), ENDS[3])
    core.close(core.deliveries[-1].number, 0)
    core.close(core.deliveries[-1].number, read_to)
    return core, listener


def test_a_listener_is_told_the_leader_when_it_is_registered() -> None:
    """It need not wait for a change; another one is not told again."""
    core = follower()
    first, second = core.raft.register_listener(), core.raft.register_listener()
    core.settle()
    assert told(core, first) == told(core, second) == [(EPOCH, LEADER)]


def test_a_listener_is_told_of_an_epoch_and_then_of_its_leader() -> None:
    """Each once, however often the messages come."""
    core = follower()
    listener = core.raft.register_listener()
    core.settle()
    for _ in range(2):
        core.request("", vote_request(replica_key(LEADER), EPOCH + 1, ENDS[3]), version=2)
    assert told(core, listener)[1:] == [(EPOCH + 1, None)]
    for _ in range(2):
        core.request("", begin_quorum_epoch_request(LEADER, EPOCH + 1), version=1)
    assert told(core, listener)[1:] == [(EPOCH + 1, None), (EPOCH + 1, LEADER)]


@pytest.mark.parametrize("read_to", [EPOCH_START - 1, EPOCH_START, EPOCH_START + 1])
def test_a_listener_learns_that_its_replica_leads_after_the_start_of_the_epoch(read_to: int) -> None:
    """Before, its state lacks records that earlier leaders have committed: KAFKA-17333."""
    core, listener = caught_up_leader(read_to)
    assert told(core, listener) == ([(3, 1)] if read_to > EPOCH_START else [])
    core.close(core.deliveries[-1].number, LOG_END)
    assert told(core, listener) == [(3, 1)]


def test_a_resigned_leader_tells_nothing() -> None:
    """Not even a listener that has all records, or a new one; the next epoch is told."""
    core, listener = caught_up_leader(EPOCH_START)
    core.sleep(3000)
    assert isinstance(core.raft.role, Resigned)
    core.close(core.deliveries[-1].number, LOG_END)
    other = core.raft.register_listener()
    core.sleep(500)
    assert told(core, listener) == told(core, other) == []
    core.request("", begin_quorum_epoch_request(2, 4), version=1)
    assert told(core, listener) == told(core, other) == [(4, 2)]


def test_listeners_are_told_when_the_election_state_is_durable() -> None:
    """They may act on it, and a replica that starts again must not know less."""
    core = follower()
    core.raft.register_listener()
    core.settle()
    request = begin_quorum_epoch_request(LEADER, EPOCH + 1)
    core.raft.receive_request(request, ReceivedRequest("", 1, LISTENER))
    effects = core.raft.take_effects()
    (store,) = [each for each in effects if isinstance(each, StoreElectionState)]
    assert not any(isinstance(each, NotifyLeaderChange) for each in effects)
    core.raft.stored(store.number)
    (change,) = [each for each in core.raft.take_effects() if isinstance(each, NotifyLeaderChange)]
    assert (change.epoch, change.leader_id) == (EPOCH + 1, LEADER)


def test_an_unregistered_listener_is_told_nothing() -> None:
    """Even if it still reads."""
    core = follower()
    listener = core.raft.register_listener()
    fetched(core, 0, 4)
    core.raft.unregister_listener(listener)
    core.request("", begin_quorum_epoch_request(LEADER, EPOCH + 1), version=1)
    assert told(core, listener) == [(EPOCH, LEADER)]


@given(st.lists(st.tuples(st.sampled_from(("vote", "begin", "register")), st.integers(0, 5)), max_size=20))
def test_changes_are_told_once_and_in_order(steps: Sequence[tuple[str, int]]) -> None:
    """Epochs never go back, an epoch has one leader, and the last one told is the state of the replica."""
    core = follower()
    listeners = [core.raft.register_listener()]
    core.settle()
    for step, number in steps:
        match step:
            case "vote":
                core.request("", vote_request(replica_key(LEADER), EPOCH + number, ENDS[3]), version=2)
            case "begin":
                core.request("", begin_quorum_epoch_request(LEADER, EPOCH + number), version=1)
            case "register":
                listeners.append(core.raft.register_listener())
                core.settle()
        role = core.raft.role
        leader = role.leader.id if isinstance(role, Follower) else None
        for each in listeners:
            changes = told(core, each)
            assert changes[-1] == (role.epoch, leader)
            assert len(changes) == len(set(changes))
            assert changes == sorted(changes, key=lambda change: (change[0], change[1] is not None))


@pytest.mark.parametrize("may_vote", [True, False])
@pytest.mark.parametrize("epoch", [1, MAX_EPOCH - 1, MAX_EPOCH])
@pytest.mark.parametrize("others", [(), (2,)])
def test_a_replica_that_led_before_its_start_is_not_told_that_it_leads(
    may_vote: bool, epoch: int, others: tuple[int, ...]
) -> None:
    """Only an election makes it a leader: the one voter that may vote is elected at once, while there are epochs."""
    voters = voter_set_of(map(replica_key, (1, *others)))
    stored = QuorumStateData(1, leader_id=1, leader_epoch=epoch)
    core = SingleReplica(
        follower().identity, QuorumConfig(), log=log_with([(1, 1)], voters), stored=stored, may_vote=may_vote
    )
    listener = core.raft.register_listener()
    core.settle()
    core.sleep(1)
    leads = may_vote and not others and epoch < MAX_EPOCH
    assert isinstance(core.raft.role, Leader if leads else Resigned)
    for each in range(2):
        if core.deliveries:
            core.close(core.deliveries[-1].number, core.log.end_offset.offset if each else 0)
    assert ((epoch + 1, 1) in told(core, listener)) == leads
    assert (epoch, 1) not in told(core, listener)
