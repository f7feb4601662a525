# SPDX-License-Identifier: Apache-2.0
"""The clauses of Kafka's KafkaRaftClientReconfigTest about bootstrap records, followers and observers."""

import attrs

from raftlog.log.replicated_log import Isolation
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Follower
from raftlog.quorum.seam.effects import SendRequest
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.messages.control import KRaftVersionRecord, LeaderChangeMessage, VotersRecord, read_control_record
from raftlog.records.messages.raft.endpoints import LeaderEndpoint
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.fetch_messages import FetchRequest, FetchResponseSnapshotId
from raftlog.records.messages.raft.voter_messages import (
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
    UpdateRaftVoterResponseCurrentLeader,
)
from raftlog.records.messages.voters import voters_record
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import Endpoints, HostPort, VoterSet
from tests.quorum.leading.leaders import ENDS, EPOCH_START, fetch, leader_of
from tests.quorum.leading.voter_requests import (
    EPOCH,
)
from tests.quorum.messages import (
    CLUSTER,
    LOCAL,
    begin_quorum_epoch_request,
    fetch_response,
)
from tests.quorum.single_replica import LISTENER, SingleReplica, log_with, replica_key, voter_set_of

VOTERS = voter_set_of(map(replica_key, (1, 2, 3)))


def follower(log_voters: VoterSet | None, *, port: int = 9991, servers: tuple[HostPort, ...] = ()) -> SingleReplica:
    """Return replica 1 as the follower of leader 2 in epoch 3, with a bootstrap snapshot if there are voters."""
    identity = ReplicaIdentity(
        key=LOCAL,
        cluster_id=CLUSTER,
        endpoints=Endpoints.of({LISTENER: ("localhost", port)}),
        listener=LISTENER,
        bootstrap_servers=servers,
    )
    core = SingleReplica(identity, QuorumConfig(), log=log_with((), log_voters))
    core.take_requests()
    core.request("", begin_quorum_epoch_request(2, EPOCH), version=1)
    return core


def fetched(core: SingleReplica) -> int:
    """Return the number of the Fetch that was sent last, and forget all requests."""
    return [each.number for each in core.take_requests() if isinstance(each.message, FetchRequest)][-1]


def reports(core: SingleReplica, ms: int) -> list[SendRequest]:
    """Return what a follower reports of itself within a time in which its leader answers each Fetch."""
    found = []
    for _ in range(ms // 500):
        core.sleep(500)
        for each in core.take_requests():
            if isinstance(each.message, FetchRequest):
                core.respond(each.number, fetch_response(EPOCH, 2))
            else:
                found.append(each)
    return found + [each for each in core.requests if not isinstance(each.message, FetchRequest)]


# Bootstrap records


def test_leader_writes_bootstrap_records() -> None:
    """The first batch of the first epoch: leader, kraft.version and voters of the bootstrap snapshot."""
    core = leader_of((1, 2, 3))
    batch = list(core.log.batches(isolation=Isolation.UNCOMMITTED))[-1]
    assert batch.base_offset == EPOCH_START
    values = [read_control_record(each.key, each.value).value for each in batch.records()]
    assert [type(each) for each in values] == [LeaderChangeMessage, KRaftVersionRecord, VotersRecord]
    assert values[2] == voters_record(VOTERS)


def test_bootstrap_checkpoint_is_not_returned_on_fetch() -> None:
    """A replica with an empty log gets records."""
    core = leader_of((1, 2, 3))
    (answer,) = fetch(core, replica_key(2), ENDS[0])
    assert answer.snapshot_id == FetchResponseSnapshotId()
    assert RecordBatch(bytes(answer.records or b""), 0).base_offset == 0


def test_leader_does_not_bootstrap_records_with_kraft_version_0() -> None:
    """The first batch of an epoch has the leader alone."""
    core = leader_of((1, 2, 3), is_static=True)
    batch = list(core.log.batches(isolation=Isolation.UNCOMMITTED))[-1]
    assert batch.base_offset == EPOCH_START
    values = [read_control_record(each.key, each.value).value for each in batch.records()]
    assert [type(each) for each in values] == [LeaderChangeMessage]


def test_follower_does_not_request_leader_bootstrap_snapshot() -> None:
    """A leader that offers its bootstrap snapshot gets a Fetch, and no FetchSnapshot."""
    core = follower(VOTERS)
    answer = fetch_response(EPOCH, 2)
    partition = attrs.evolve(
        answer.responses[0].partitions[0], snapshot_id=FetchResponseSnapshotId(end_offset=0, epoch=0)
    )
    topic = attrs.evolve(answer.responses[0], partitions=(partition,))
    core.respond(fetched(core), attrs.evolve(answer, responses=(topic,)))
    core.sleep(50)
    assert [type(each.message) for each in core.take_requests()] == [FetchRequest]


def test_follower_reads_kraft_bootstrap_records() -> None:
    """The voters of the records are in force once they are in the log, committed or not."""
    core = follower(None)
    records = write_control_batch(
        [LeaderChangeMessage(2, (), ()), KRaftVersionRecord(1), voters_record(VOTERS)],
        base_offset=0,
        epoch=EPOCH,
        timestamp=0,
    )
    core.respond(fetched(core), fetch_response(EPOCH, 2, records=records))
    assert (core.machine.last_voter_set, core.machine.last_kraft_version) == (VOTERS, KRaftVersion.KRAFT_VERSION_1)
    assert core.raft.high_watermark is None


# What followers report, and where they find a leader


def test_follower_sends_update_voter() -> None:
    """A voter whose entry is outdated reports itself once the update period is over."""
    core = follower(VOTERS, port=77)
    assert reports(core, 1_500) == []
    (sent,) = reports(core, 500)
    assert isinstance(sent.message, UpdateRaftVoterRequest)
    assert sent.destination == (2, "localhost", 9992)
    assert [(each.name, each.port) for each in sent.message.listeners] == [(LISTENER, 77)]


def test_follower_sends_update_voter_when_different() -> None:
    """A voter whose entry is right reports nothing, and is not busy without a reason."""
    core = follower(VOTERS)
    for _ in range(10):
        core.respond(fetched(core), fetch_response(EPOCH, 2))
        core.sleep(500)
        assert core.raft.deadline_ms is not None
        assert core.raft.deadline_ms > core.now_ms
        assert not [each for each in core.requests if isinstance(each.message, UpdateRaftVoterRequest)]


def test_update_voter_response_causes_epoch_change() -> None:
    """A newer leader in the answer is followed."""
    core = follower(VOTERS, port=77)
    (sent,) = reports(core, 2_000)
    leader = UpdateRaftVoterResponseCurrentLeader(leader_id=3, leader_epoch=EPOCH + 1, host="localhost", port=9993)
    fenced = ErrorCode.FENCED_LEADER_EPOCH
    core.respond(sent.number, UpdateRaftVoterResponse(throttle_time_ms=0, error_code=fenced, current_leader=leader))
    assert isinstance(core.raft.role, Follower)
    assert (core.raft.role.epoch, core.raft.role.leader.id) == (EPOCH + 1, 3)


def test_observer_discovers_leader_with_unknown_voters() -> None:
    """Bootstrap servers have ids from -2 down."""
    servers = HostPort("b1", 1), HostPort("b2", 2)
    identity = ReplicaIdentity(
        key=LOCAL,
        cluster_id=CLUSTER,
        endpoints=Endpoints.of({LISTENER: ("localhost", 9991)}),
        listener=LISTENER,
        bootstrap_servers=servers,
    )
    core = SingleReplica(identity, QuorumConfig())
    (sent,) = core.take_requests()
    assert (sent.destination.id, sent.destination.host) == (-2, "b1")
    core.respond(sent.number, fetch_response(EPOCH, 5, error=ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert isinstance(core.raft.role, Follower)
    (sent,) = core.take_requests()
    assert sent.destination == (5, "localhost", 9995)


def test_handle_begin_quorum_request_more_endpoints() -> None:
    """A leader of the same epoch may name more endpoints than were known."""
    core = follower(VOTERS)
    more = LeaderEndpoint(name="OTHER", host="other", port=1)
    request = begin_quorum_epoch_request(2, EPOCH)
    core.request("", attrs.evolve(request, leader_endpoints=(*request.leader_endpoints, more)), version=1)
    assert isinstance(core.raft.role, Follower)
    assert len(core.raft.role.leader.endpoints) == 2
