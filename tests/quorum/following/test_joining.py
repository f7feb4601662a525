# SPDX-License-Identifier: Apache-2.0
"""Joining the voters: which observers do so, how they take the answer, and that a removed voter stays removed."""

import itertools

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Follower
from raftlog.quorum.seam.effects import SendRequest
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.fetch_messages import FetchRequest
from raftlog.records.messages.raft.raft_messages import read_rpc, write_rpc
from raftlog.records.messages.raft.voter_messages import AddRaftVoterRequest, RemoveRaftVoterRequest
from raftlog.voters.voter_set import HostPort, VoterSet
from tests.quorum.following.observers import (
    EPOCH,
    LEADER,
    answer_change,
    fetch_until_due,
    fetched,
    last_request,
    observer_of,
    upgrade_batch,
)
from tests.quorum.messages import CLUSTER, LOCAL, fetch_response
from tests.quorum.single_replica import LISTENER, SingleReplica, log_with, replica_key, voter_set_of

OTHERS = (replica_key(2), replica_key(3))
OLD = replica_key(1, 9)
PERIOD_MS = QuorumConfig().update_voter_period_ms


def observer_in(*keys: object, **options: bool) -> SingleReplica:
    """Return replica 1 as an observer of a quorum of voters."""
    return observer_of(log_with([(1, 2)], voter_set_of(keys)), **options)  # type: ignore[arg-type]


def kind(sent: SendRequest) -> type:
    """Return the class of a request."""
    return type(sent.message)


# The observers that join


@pytest.mark.parametrize("is_replaced", [False, True])
def test_an_observer_asks_after_a_period(is_replaced: bool) -> None:
    """Its own id with another directory is removed first."""
    core = observer_in(*OTHERS, *((OLD,) if is_replaced else ()))
    sent = fetch_until_due(core)
    assert core.now_ms == PERIOD_MS
    assert (sent.destination.id, sent.destination.port) == (LEADER, 9992)
    message = sent.message
    if is_replaced:
        assert isinstance(message, RemoveRaftVoterRequest)
        assert (message.voter_id, message.voter_directory_id) == (1, OLD.directory_id)
    else:
        assert isinstance(message, AddRaftVoterRequest)
        assert (message.voter_id, message.voter_directory_id) == (1, LOCAL.directory_id)
        assert (message.timeout_ms, message.ack_when_committed) == (QuorumConfig().request_timeout_ms, False)
        assert [(each.name, each.port) for each in message.listeners] == [(LISTENER, 9991)]
        assert read_rpc(AddRaftVoterRequest, write_rpc(message, 1), 1) == message
    assert message.cluster_id == CLUSTER


def test_before_the_period_is_over_it_fetches() -> None:
    """One millisecond before, at it, and after: only then is the leader asked."""
    core = observer_in(*OTHERS)
    fetched(core)
    core.sleep(PERIOD_MS - 1)
    fetched(core)
    sent = last_request(core)
    assert kind(sent) is FetchRequest
    core.sleep(1)
    assert core.take_requests() == []
    core.respond(sent.number, fetch_response(EPOCH, LEADER))
    assert kind(last_request(core)) is AddRaftVoterRequest


@pytest.mark.parametrize(
    "switches", list(itertools.product((True, False), repeat=4)), ids=lambda each: "".join("ny"[one] for one in each)
)
def test_the_conditions_for_asking(switches: tuple[bool, bool, bool, bool]) -> None:
    """Only if it is configured so, may be a voter, has not been one, and may vote; else it fetches."""
    auto_join, can_become_voter, may_vote, is_new = switches
    core = observer_in(
        *OTHERS,
        auto_join=auto_join,
        can_become_voter=can_become_voter,
        may_vote=may_vote,
        has_been_voter=not is_new,
    )
    assert kind(fetch_until_due(core)) is (AddRaftVoterRequest if all(switches) else FetchRequest)


def test_a_voter_and_a_static_quorum_are_not_joined() -> None:
    """With kraft.version 0 there is nothing to ask for; a voter has what it wants."""
    static = VoterSet.from_inet_addresses(LISTENER, {2: HostPort("localhost", 9992), 3: HostPort("localhost", 9993)})
    assert kind(fetch_until_due(observer_of(static_voters=static))) is FetchRequest
    assert kind(fetch_until_due(observer_in(LOCAL, *OTHERS))) is FetchRequest


def test_an_observer_that_was_due_before_it_may_join_asks_at_once() -> None:
    """Its quorum is upgraded to kraft.version 1 after its period is over."""
    static = VoterSet.from_inet_addresses(LISTENER, {2: HostPort("localhost", 9992)})
    core = observer_of(static_voters=static)
    sent = fetch_until_due(core)
    assert kind(sent) is FetchRequest
    core.respond(sent.number, fetch_response(EPOCH, LEADER, records=upgrade_batch(0, OTHERS)))
    assert kind(last_request(core)) is AddRaftVoterRequest


# How it takes the answer


@given(st.sampled_from(ErrorCode), st.booleans())
def test_each_answer_has_its_pause(error: ErrorCode, is_replaced: bool) -> None:
    """The expected ones start another period, and the next Fetch goes out at once; others are followed by a pause."""
    core = observer_in(*OTHERS, *((OLD,) if is_replaced else ()))
    sent = fetch_until_due(core)
    core.sleep(100)
    done = ErrorCode.VOTER_NOT_FOUND if is_replaced else ErrorCode.DUPLICATE_VOTER
    is_expected = error in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, done)

    answer_change(core, sent, error)

    role = core.raft.role
    assert isinstance(role, Follower)
    assert role.update_deadline_ms == PERIOD_MS + (PERIOD_MS + 100 if is_expected else PERIOD_MS)
    assert [kind(each) for each in core.requests] == [FetchRequest] * is_expected
    if not is_expected:
        core.sleep(QuorumConfig().retry_backoff_ms)
        assert kind(last_request(core)) is FetchRequest
    assert core.raft.halt_reason is None


def test_after_a_lost_answer_it_asks_again_after_a_period() -> None:
    """The request times out; the leader may have done what it was asked."""
    core = observer_in(*OTHERS)
    sent = fetch_until_due(core)
    core.raft.request_failed(sent.number)
    core.settle()
    core.sleep(QuorumConfig().retry_backoff_ms)
    assert kind(fetch_until_due(core)) is AddRaftVoterRequest
    answer_change(core, sent, ErrorCode.NONE)
    assert core.requests == []


def test_the_old_entry_is_removed_and_then_the_new_one_added() -> None:
    """Each is asked for once the voter set of the log says that it is due."""
    core = observer_in(*OTHERS, OLD)
    answer_change(core, fetch_until_due(core), ErrorCode.NONE)
    fetched(core, OTHERS, high_watermark=3)
    sent = fetch_until_due(core)
    assert kind(sent) is AddRaftVoterRequest
    answer_change(core, sent, ErrorCode.NONE)
    fetched(core, (LOCAL, *OTHERS), high_watermark=4)
    assert core.raft.status.is_voter
    assert kind(fetch_until_due(core)) is FetchRequest


# A removed voter stays removed (K15)


def removed(core: SingleReplica) -> SingleReplica:
    """Let a replica be added, and then removed; both are committed."""
    fetched(core, (LOCAL, *OTHERS))
    fetched(core, high_watermark=core.log.end_offset.offset)
    fetched(core, OTHERS)
    fetched(core, high_watermark=core.log.end_offset.offset)
    return core


def test_a_removed_voter_does_not_join_again() -> None:
    """Not by itself, however long it waits; nor after a restart, because its log says that it was a voter."""
    core = removed(observer_in(*OTHERS))
    for _ in range(3):
        sent = fetch_until_due(core)
        assert kind(sent) is FetchRequest
        core.requests.append(sent)
    assert core.raft.status.has_been_voter
    again = observer_of(core.log)
    assert again.raft.status.has_been_voter
    assert kind(fetch_until_due(again)) is FetchRequest


def test_a_removed_voter_whose_disk_is_replaced_joins() -> None:
    """Its new directory id has never been a voter's."""
    core = removed(observer_in(*OTHERS))
    other = attrs.evolve(core.identity, key=replica_key(1, 7))
    again = SingleReplica(other, QuorumConfig(auto_join=True), log=core.log)
    assert not again.raft.status.has_been_voter


def test_an_addition_that_was_truncated_is_none() -> None:
    """The new leader does not have it. It was not removed, so it asks again."""
    core = observer_in(*OTHERS)
    fetched(core, (LOCAL, *OTHERS), high_watermark=2)
    assert core.raft.status.is_voter
    assert not core.raft.status.has_been_voter
    core.respond(last_request(core).number, fetch_response(EPOCH, LEADER, diverging=OffsetAndEpoch(2, 1)))
    assert not core.raft.status.is_voter
    assert kind(fetch_until_due(core)) is AddRaftVoterRequest


def test_records_that_a_snapshot_replaces_are_remembered_until_a_restart() -> None:
    """From then on the embedder has to say so: the log does not."""
    core = removed(observer_in(*OTHERS))
    core.machine.truncate_old_entries(core.log.end_offset.offset)
    fetched(core, OTHERS)
    assert all(LOCAL not in each.value.voter_keys for each in core.machine.voter_sets())
    assert core.raft.status.has_been_voter
    assert kind(fetch_until_due(core)) is FetchRequest
