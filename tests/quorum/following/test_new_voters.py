# SPDX-License-Identifier: Apache-2.0
"""A follower that becomes a voter by what it appends."""

import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Prospective, Unattached
from raftlog.quorum.seam.effects import AppendAsFollower, FlushLog
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.messages.raft.election_messages import VoteRequest
from raftlog.records.messages.raft.fetch_messages import FetchRequest
from raftlog.records.messages.voters import voters_record
from raftlog.voters.voter_set import Endpoints
from tests.quorum.following.followers import FollowerOfTwo
from tests.quorum.leading.leaders import SlowDisk
from tests.quorum.messages import (
    CLUSTER,
    LOCAL,
    begin_quorum_epoch_request,
    fetch_response,
    records_at,
    vote_request,
)
from tests.quorum.single_replica import LISTENER, log_with, replica_key, voter_set_of


def test_a_new_voter_that_has_just_lost_its_leader_begins_an_election() -> None:
    """A later epoch is learned while the disk writes the record that makes this replica a voter."""
    identity = ReplicaIdentity(
        key=LOCAL, cluster_id=CLUSTER, endpoints=Endpoints.of({LISTENER: ("localhost", 9991)}), listener=LISTENER
    )
    core = SlowDisk(identity, QuorumConfig(), log=log_with([(1, 3)], voter_set_of(map(replica_key, (2, 3)))))
    core.slow = AppendAsFollower
    core.request("", begin_quorum_epoch_request(2, 2), version=1)
    (sent,) = core.take_requests()
    voters = voters_record(voter_set_of(map(replica_key, (1, 2, 3))))
    records = write_control_batch([voters], base_offset=3, epoch=2, timestamp=0)
    core.respond(sent.number, fetch_response(2, 2, records=records))
    core.request("", vote_request(replica_key(3), 3, OffsetAndEpoch(0, 0)), version=2)
    assert core.raft.role == Unattached(3)
    core.let_go()
    assert core.machine.last_voter_set.is_voter(LOCAL)
    core.sleep(1_000)
    assert isinstance(core.raft.role, Prospective)


def fetched_as_an_observer(*, is_added: bool) -> FollowerOfTwo:
    """Return an observer that flushes nothing, after it has fetched records and, it may be, its addition."""
    core = FollowerOfTwo(can_become_voter=False, voters=(2, 3))
    end = core.log.end_offset.offset
    (sent,) = core.take_requests()
    records = records_at(end, 2, 2)
    if is_added:
        voters = voters_record(voter_set_of(map(replica_key, (1, 2, 3))))
        records += write_control_batch([voters], base_offset=end + 2, epoch=2, timestamp=0)
    core.respond(sent.number, fetch_response(2, 2, records=records))
    return core


@pytest.mark.parametrize("is_added", [False, True])
def test_an_observer_that_becomes_a_voter_flushes_before_it_fetches_again(is_added: bool) -> None:
    """The leader counts what a voter's Fetch says; other observers never flush."""
    core = fetched_as_an_observer(is_added=is_added)
    (sent,) = core.take_requests()
    assert isinstance(sent.message, FetchRequest)
    end = core.log.end_offset.offset
    assert sent.message.topics[0].partitions[0].fetch_offset == end
    assert (core.log.flushed_offset == end) == is_added


def test_a_new_voter_asks_for_no_votes_before_it_has_flushed() -> None:
    """Voters compare what its requests say: it must not lose that in a crash."""
    core = FollowerOfTwo(can_become_voter=False, voters=(2, 3))
    core.is_slow = True
    end = core.log.end_offset.offset
    (sent,) = core.take_requests()
    voters = voters_record(voter_set_of(map(replica_key, (1, 2, 3))))
    records = write_control_batch([voters], base_offset=end, epoch=2, timestamp=0)
    core.respond(sent.number, fetch_response(2, 2, records=records))
    core.work()
    assert core.log.flushed_offset < core.log.end_offset.offset
    core.sleep(10_000)
    assert core.take_requests() == []
    assert [type(each) for each in core.waiting] == [FlushLog]
    core.work()
    asked = [each.message for each in core.take_requests()]
    assert {type(each) for each in asked} == {VoteRequest}
    assert core.log.flushed_offset == core.log.end_offset.offset


def test_a_lost_fetch_is_sent_again_without_bootstrap_servers() -> None:
    """After the time for its answer; a pause follows a failed one."""
    core = FollowerOfTwo(config=QuorumConfig(request_timeout_ms=500, fetch_timeout_ms=10_000))
    (lost,) = core.take_requests()
    core.sleep(499)
    assert core.take_requests() == []
    assert core.raft.deadline_ms == core.now_ms + 1
    core.sleep(1)
    (again,) = core.take_requests()
    assert isinstance(again.message, FetchRequest)
    core.respond(lost.number, fetch_response(2, 2, records=records_at(core.log.end_offset.offset, 2, 1)))
    assert core.log.end_offset.offset == again.message.topics[0].partitions[0].fetch_offset
    core.raft.request_failed(again.number)
    core.settle()
    core.sleep(19)
    assert core.take_requests() == []
    core.sleep(1)
    assert len(core.take_requests()) == 1


def test_requests_that_were_given_up_are_forgotten() -> None:
    """A network may lose any number of requests without a word."""
    core = FollowerOfTwo(config=QuorumConfig(request_timeout_ms=500, fetch_timeout_ms=1_000_000))
    for _ in range(1_000):
        core.sleep(500)
    assert len(core.take_requests()) > 900
    assert len(core.raft._replica.sent) == 1
