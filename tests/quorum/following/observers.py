# SPDX-License-Identifier: Apache-2.0
"""Followers that are no voters, for tests: replica 1 follows leader 2, whose answers the test gives."""

from collections.abc import Iterable

from raftlog.log.replicated_log import ReplicatedLog
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.seam.effects import SendRequest
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.batches.accumulator import BatchAccumulator
from raftlog.records.messages.control import KRaftVersionRecord
from raftlog.records.messages.raft.fetch_messages import FetchRequest
from raftlog.records.messages.raft.voter_messages import AddRaftVoterResponse, RemoveRaftVoterResponse
from raftlog.records.messages.voters import voters_record
from raftlog.voters.voter_set import Endpoints, ReplicaKey, VoterSet
from tests.quorum.messages import CLUSTER, LOCAL, begin_quorum_epoch_request, fetch_response
from tests.quorum.single_replica import LISTENER, SingleReplica, voter_set_of

EPOCH = 3
LEADER = 2


def observer_of(
    log: ReplicatedLog | None = None,
    *,
    static_voters: VoterSet | None = None,
    auto_join: bool = True,
    can_become_voter: bool = True,
    may_vote: bool = True,
    has_been_voter: bool = False,
) -> SingleReplica:
    """Return replica 1, which has learned that 2 leads epoch 3."""
    identity = ReplicaIdentity(
        key=LOCAL,
        cluster_id=CLUSTER,
        endpoints=Endpoints.of({LISTENER: ("localhost", 9991)}),
        listener=LISTENER,
        can_become_voter=can_become_voter,
    )
    core = SingleReplica(
        identity,
        QuorumConfig(auto_join=auto_join),
        log=log,
        static_voters=static_voters,
        may_vote=may_vote,
        has_been_voter=has_been_voter,
    )
    core.request("", begin_quorum_epoch_request(LEADER, EPOCH), version=1)
    core.take_responses()
    return core


def voters_batch(offset: int, keys: Iterable[ReplicaKey], epoch: int = EPOCH) -> bytes:
    """Return the batch in which the leader names voters."""
    batches = BatchAccumulator(epoch, offset, voters_in_force=VoterSet())
    batches.append_voters(voters_record(voter_set_of(keys)), 0)
    with batches.drain() as drained:
        return b"".join(bytes(each.data) for each in drained)


def upgrade_batch(offset: int, keys: Iterable[ReplicaKey]) -> bytes:
    """Return the batch in which the leader upgrades kraft.version, and names voters."""
    batches = BatchAccumulator(EPOCH, offset, voters_in_force=VoterSet())
    batches.append_control_records([KRaftVersionRecord(1), voters_record(voter_set_of(keys))], 0)
    with batches.drain() as drained:
        return b"".join(bytes(each.data) for each in drained)


def fetched(core: SingleReplica, keys: Iterable[ReplicaKey] = (), high_watermark: int = -1) -> None:
    """Answer the Fetch that waits: with a voter set if keys are given."""
    sent = last_request(core)
    assert isinstance(sent.message, FetchRequest)
    records = voters_batch(core.log.end_offset.offset, keys) if keys else b""
    epoch = core.raft.role.epoch
    core.respond(sent.number, fetch_response(epoch, LEADER, records=records, high_watermark=high_watermark))


def last_request(core: SingleReplica) -> SendRequest:
    """Return the one request that was sent and not taken."""
    (sent,) = core.take_requests()
    return sent


def fetch_until_due(core: SingleReplica) -> SendRequest:
    """Let an update period pass, in which fetches are answered, and return the request that is sent then."""
    fetched(core)
    core.sleep(1000)
    fetched(core)
    core.sleep(1000)
    fetched(core)
    return last_request(core)


def answer_change(core: SingleReplica, sent: SendRequest, error: int) -> None:
    """Answer a request to add or remove a voter."""
    kind = AddRaftVoterResponse if hasattr(sent.message, "ack_when_committed") else RemoveRaftVoterResponse
    core.respond(sent.number, kind(throttle_time_ms=0, error_code=error, error_message=None))
