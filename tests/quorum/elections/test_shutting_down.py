# SPDX-License-Identifier: Apache-2.0
"""Shutting down: when a replica may stop, what it does until then, and what it does afterwards."""

import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from raftlog.quorum.seam.effects import (
    AppendOutcome,
    EndShutdown,
    NotifyShutdown,
    ReadOutcome,
    SendResponse,
    StoreElectionState,
)
from raftlog.quorum.seam.identity import ReceivedRequest, ReplicaIdentity
from raftlog.records.messages.raft.election_messages import EndQuorumEpochRequest
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.raft_messages import RaftRequest
from raftlog.voters.voter_set import Endpoints, HostPort
from tests.quorum.leading.leaders import ENDS, fetch, leader_of
from tests.quorum.listening.following_core import follower
from tests.quorum.messages import (
    CLUSTER,
    LOCAL,
    begin_quorum_epoch_request,
    begin_quorum_epoch_response,
    end_quorum_epoch_request,
    fetch_request,
    vote_request,
    vote_response,
)
from tests.quorum.single_replica import LISTENER, SingleReplica, log_with, replica_key, voter_set_of

TIMEOUT_MS = 10_000


def shut_down(core: SingleReplica, timeout_ms: int = TIMEOUT_MS) -> int:
    """Begin to shut down."""
    number = core.raft.shutdown(timeout_ms)
    core.settle()
    return number


def end(core: SingleReplica) -> bool | None:
    """Return whether the shutdown has timed out; None if it is not complete."""
    found = [each for each in core.shutdowns if isinstance(each, EndShutdown)]
    assert len(found) <= 1
    return found[0].has_timed_out if found else None


def voter(*others: int) -> SingleReplica:
    """Return replica 1, a voter with others that knows no leader."""
    identity = ReplicaIdentity(
        key=LOCAL,
        cluster_id=CLUSTER,
        endpoints=Endpoints.of({LISTENER: ("localhost", 9991)}),
        listener=LISTENER,
        bootstrap_servers=(HostPort("b1", 9991),),
    )
    return SingleReplica(identity, QuorumConfig(), log=log_with([(1, 3)], voter_set_of(map(replica_key, (1, *others)))))


def test_a_follower_stops_at_once() -> None:
    """Its quorum has a leader."""
    core = follower()
    number = shut_down(core)
    assert core.shutdowns == [EndShutdown(core.shutdowns[0].number, has_timed_out=False)]
    assert core.shutdowns[0].number == number
    assert core.raft.halt_reason == "it was shut down"
    assert core.raft.deadline_ms is None


def test_an_observer_stops_at_once() -> None:
    """Though it knows no leader."""
    identity = voter(2).identity
    core = SingleReplica(identity, QuorumConfig(), log=log_with([(1, 3)], voter_set_of(map(replica_key, (2, 3)))))
    assert isinstance(core.raft.role, Unattached)
    shut_down(core)
    assert end(core) is False


def test_the_only_voter_resigns_and_stops_at_once() -> None:
    """No other replica could lead. What it has not committed is told."""
    core = leader_of((1,))
    appended = core.append(b"a")
    shut_down(core)
    assert end(core) is False
    assert isinstance(core.raft.role, Resigned)
    assert [(each.number, each.outcome) for each in core.ended] == [(appended.number, AppendOutcome.FAILED)]


def test_a_leader_resigns_and_waits_for_its_successor() -> None:
    """Appends, reads and fetches end with the leadership, voters are told, and it is not left by a timeout."""
    core = leader_of((1, 2, 3))
    for each in core.take_requests():
        core.respond(each.number, begin_quorum_epoch_response(3, 1))
    fetch(core, replica_key(2), ENDS[3])
    fetch(core, replica_key(3), ENDS[3], wait=500)
    core.append(b"a")
    core.raft.read_barrier()
    shut_down(core)
    assert isinstance(core.raft.role, Resigned)
    assert [each.outcome for each in core.reads] == [ReadOutcome.FAILED]
    assert [each.outcome for each in core.ended] == [AppendOutcome.FAILED]
    assert len(core.take_responses()) == 1
    assert [type(each.message) for each in core.take_requests()][-2:] == [EndQuorumEpochRequest] * 2
    core.sleep(5000)
    assert isinstance(core.raft.role, Resigned)
    assert end(core) is None
    core.request("", begin_quorum_epoch_request(2, 4), version=1)
    assert end(core) is False
    assert isinstance(core.raft.role, Follower)


@pytest.mark.parametrize("slept_ms", [TIMEOUT_MS - 1, TIMEOUT_MS, TIMEOUT_MS + 1])
def test_a_leader_without_a_successor_stops_when_its_time_is_over(slept_ms: int) -> None:
    """The application is told so."""
    core = leader_of((1, 2, 3))
    shut_down(core)
    core.sleep(slept_ms)
    assert end(core) is (None if slept_ms < TIMEOUT_MS else True)
    assert core.raft.deadline_ms == (core.now_ms + 1 if slept_ms < TIMEOUT_MS else None)


def test_an_unattached_voter_waits_and_begins_no_election() -> None:
    """It asks no bootstrap server either; a vote is still given, and an epoch without a leader changes nothing."""
    core = voter(2, 3)
    core.take_requests()
    shut_down(core)
    core.sleep(5000)
    assert isinstance(core.raft.role, Unattached)
    assert core.take_requests() == []
    core.request("", vote_request(replica_key(2), 7, OffsetAndEpoch(3, 1)), version=2)
    assert (core.raft.role.epoch, end(core)) == (7, None)
    core.request("", end_quorum_epoch_request(2, 7), version=1)
    assert end(core) is False


def test_a_candidate_ends_its_election_and_resigns_if_it_wins() -> None:
    """Its timeouts are over for it; the answers of voters count."""
    core = voter(2, 3)
    core.sleep(1000)
    assert isinstance(core.raft.role, Prospective)
    shut_down(core)
    core.sleep(1500)
    assert isinstance(core.raft.role, Prospective)
    core.respond(core.take_requests()[-1].number, vote_response(is_granted=True, epoch=1))
    assert isinstance(core.raft.role, Candidate)
    core.sleep(2100)
    assert isinstance(core.raft.role, Candidate)
    core.respond(core.take_requests()[-1].number, vote_response(is_granted=True, epoch=2))
    assert isinstance(core.raft.role, Resigned)
    assert end(core) is None


def test_a_peer_is_answered_before_the_replica_stops() -> None:
    """The answer waits for the disk, and the replica for the answer, but not longer than its time."""
    for slept_ms in (0, TIMEOUT_MS):
        core = leader_of((1, 2, 3))
        shut_down(core)
        core.raft.receive_request(begin_quorum_epoch_request(2, 4), ReceivedRequest("leader", 1, LISTENER))
        effects = core.raft.take_effects()
        assert not any(isinstance(each, EndShutdown | SendResponse) for each in effects)
        core.raft.tick(core.now_ms + slept_ms, 0)
        (store,) = [each for each in effects if isinstance(each, StoreElectionState)]
        core.raft.stored(store.number)
        kinds = [type(each) for each in core.raft.take_effects()]
        assert kinds == ([EndShutdown] if slept_ms else [SendResponse, EndShutdown])


def test_listeners_are_told_before_the_replica_stops() -> None:
    """Each that is registered, once."""
    core = follower()
    first, second = core.raft.register_listener(), core.raft.register_listener()
    core.raft.unregister_listener(first)
    shut_down(core)
    told, ended = core.shutdowns
    assert isinstance(told, NotifyShutdown)
    assert told.listener == second
    assert isinstance(ended, EndShutdown)


def test_a_second_shutdown_changes_nothing() -> None:
    """It has the number of the first one, whose time counts."""
    core = leader_of((1, 2))
    number = shut_down(core, 100)
    assert shut_down(core, 50_000) == number
    core.sleep(100)
    assert end(core) is True
    assert shut_down(core) == number
    assert end(core) is True


@pytest.mark.parametrize(
    "message",
    [
        vote_request(replica_key(2), 9, ENDS[3]),
        begin_quorum_epoch_request(2, 9),
        end_quorum_epoch_request(2, 9),
        fetch_request(replica_key(2), 9, ENDS[3]),
    ],
)
def test_requests_after_a_shutdown_are_refused(message: RaftRequest) -> None:
    """With BROKER_NOT_AVAILABLE, for which peers pause; nothing changes, and nothing else is answered or done."""
    core = follower()
    core.take_requests()
    core.take_responses()
    shut_down(core)
    role, stored = core.raft.role, core.stored
    core.request("", message, version=1)
    (answer,) = core.take_responses()
    assert getattr(answer.message, "error_code", None) == ErrorCode.BROKER_NOT_AVAILABLE
    core.respond(1, vote_response(is_granted=True, epoch=9))
    core.sleep(100_000)
    core.raft.request_failed(1)
    core.raft.delivery_closed(1)
    core.settle()
    assert (core.raft.role, core.stored) == (role, stored)
    assert core.take_requests() == []


def test_a_halted_replica_is_shut_down_at_once() -> None:
    """It keeps its reason, and answers nothing."""
    core = leader_of((1, 2, 3))
    core.raft.effect_failed(1, "input/output error")
    core.take_responses()
    shut_down(core)
    assert end(core) is False
    assert core.raft.halt_reason == "effect 1: input/output error"
    core.request("", fetch_request(replica_key(2), 3, ENDS[3]), version=17)
    assert core.take_responses() == []


def test_a_halted_replica_is_shut_down_once() -> None:
    """Further calls return the number of the first one, and tell nobody, whether it has halted before or since."""
    for is_halted in (True, False):
        core = leader_of((1, 2, 3))
        core.raft.register_listener()
        if is_halted:
            core.raft.effect_failed(1, "input/output error")
        number = shut_down(core)
        core.raft.effect_failed(1, "input/output error")
        core.settle()
        told = list(core.shutdowns)
        assert [type(each) for each in told] == [NotifyShutdown, EndShutdown]
        assert [shut_down(core) for _ in range(3)] == [number] * 3
        assert core.shutdowns == told


def test_a_shutdown_ends_when_the_replica_halts() -> None:
    """The application must not wait for ever; a halted replica answers nothing."""
    core = leader_of((1, 2, 3))
    shut_down(core)
    core.take_responses()
    core.raft.effect_failed(1, "input/output error")
    core.settle()
    assert end(core) is False
    core.request("", fetch_request(replica_key(2), 3, ENDS[3]), version=17)
    assert core.take_responses() == []
    core.sleep(TIMEOUT_MS)
    assert end(core) is False


def test_a_negative_timeout_is_misuse() -> None:
    """Nothing has changed then."""
    core = leader_of((1, 2))
    with pytest.raises(ValueError, match="-1 ms"):
        shut_down(core, -1)
    core.sleep(0)
    assert isinstance(core.raft.role, Leader)


def test_a_timeout_of_zero_stops_at_once() -> None:
    """A leader has still resigned."""
    core = leader_of((1, 2))
    shut_down(core, 0)
    assert end(core) is True
    assert isinstance(core.raft.role, Resigned)
