# SPDX-License-Identifier: Apache-2.0
"""Following a leader with kraft.version 0, and what an upgrade changes."""

import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Candidate, Follower, Prospective, Unattached
from raftlog.quorum.seam.effects import FlushLog, SendRequest
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.records.messages.control import KRaftVersionRecord
from raftlog.records.messages.raft.fetch_messages import FetchRequest, FetchSnapshotRequest
from raftlog.records.messages.raft.voter_messages import UpdateRaftVoterRequest
from raftlog.records.messages.voters import voters_record
from raftlog.voters.voter_set import Endpoints, HostPort, ReplicaKey
from tests.quorum.messages import CLUSTER, LOCAL, fetch_response
from tests.quorum.single_replica import LISTENER, SingleReplica, replica_key, voter_set_of

IDENTITY = ReplicaIdentity(
    key=LOCAL,
    cluster_id=CLUSTER,
    endpoints=Endpoints.of({LISTENER: ("localhost", 9991)}),
    listener=LISTENER,
    bootstrap_servers=(HostPort("b1", 9990),),
)


def test_asking_for_pre_votes_stores_nothing() -> None:
    """Not even in the version of an upgrade that was fetched meanwhile: a truncation may undo it, and a vote stays."""
    stored = QuorumStateData(0, leader_id=2, leader_epoch=1, voted_id=3, current_voters=(1, 2, 3))
    voters = voter_set_of(ReplicaKey(each) for each in (1, 2, 3))
    core = SingleReplica(IDENTITY, QuorumConfig(), static_voters=voters, stored=stored)
    upgraded = voters_record(voter_set_of(map(replica_key, (1, 2, 3))))
    records = write_control_batch([KRaftVersionRecord(1), upgraded], base_offset=0, epoch=1, timestamp=0)
    core.respond(core.take_requests()[-1].number, fetch_response(1, 2, records=bytes(records)))
    assert core.machine.last_kraft_version == 1
    core.sleep(2000)
    assert isinstance(core.raft.role, Prospective)
    assert core.stored == stored


@pytest.mark.parametrize("snapshot_id", [None, OffsetAndEpoch(9, 2)])
def test_a_leader_whose_id_alone_is_stored_is_followed_once_it_answers(snapshot_id: OffsetAndEpoch | None) -> None:
    """Of an empty log no voters are known, so that only a bootstrap server says where the leader is: here, itself."""
    core = SingleReplica(IDENTITY, QuorumConfig(), stored=QuorumStateData(1, leader_id=2, leader_epoch=3))
    assert core.raft.role == Unattached(3, 2)
    (fetch,) = core.take_requests()
    core.respond(fetch.number, fetch_response(3, 2, snapshot_id=snapshot_id))
    assert isinstance(core.raft.role, Follower)
    assert core.raft.role.leader.id == 2
    (request,) = core.take_requests()
    assert (request.destination.id, request.destination.port) == (2, 9992)
    assert isinstance(request.message, FetchRequest if snapshot_id is None else FetchSnapshotRequest)


@pytest.mark.parametrize("is_version_unsupported", [False, True])
def test_after_a_failed_update_of_the_voter_the_leader_is_asked_at_once(*, is_version_unsupported: bool) -> None:
    """As in Kafka, no pause follows: its network answers for the leader, with an epoch below every other."""
    stored = QuorumStateData(0, leader_id=2, leader_epoch=1)
    voters = voter_set_of(ReplicaKey(each) for each in (1, 2, 3))
    core = SingleReplica(IDENTITY, QuorumConfig(), static_voters=voters, stored=stored)
    update = core.take_requests()[-1]
    while isinstance(update.message, FetchRequest):
        core.sleep(1000)
        core.respond(update.number, fetch_response(1, 2))
        update = core.take_requests()[-1]
    assert isinstance(update.message, UpdateRaftVoterRequest)
    core.raft.request_failed(update.number, is_version_unsupported=is_version_unsupported)
    core.settle()
    assert [(each.destination.id, type(each.message)) for each in core.take_requests()] == [(2, FetchRequest)]


@pytest.mark.parametrize(
    "stored", [QuorumStateData(0, leader_id=2, leader_epoch=1), QuorumStateData(0, leader_epoch=2, voted_id=1)]
)
def test_while_the_log_is_worked_on_nothing_is_sent_after_the_time_is_over(stored: QuorumStateData) -> None:
    """A follower whose leader is silent, or a candidate, waits with its next election until it knows its log."""
    voters = voter_set_of(ReplicaKey(each) for each in (1, 2, 3))
    core = SingleReplica(IDENTITY, QuorumConfig(), static_voters=voters, stored=stored)
    assert isinstance(core.raft.role, Follower | Candidate)
    core.raft._replica.work_on_log(FlushLog)
    core.raft.tick(5_000, 0)
    assert not any(isinstance(each, SendRequest) for each in core.raft.take_effects())
