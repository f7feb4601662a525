# SPDX-License-Identifier: Apache-2.0
"""Who grants a pre-vote without having to, and when a voter that refuses as another replica is asked again."""

import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Candidate, Follower, Prospective
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.records.messages.raft.election_messages import VoteRequest, VoteResponse
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.fetch_messages import FetchRequest
from raftlog.voters.voter_set import Endpoints, HostPort
from tests.quorum.messages import CLUSTER, LOCAL, fetch_response, vote_request, vote_response
from tests.quorum.single_replica import LISTENER, SingleReplica, log_with, replica_key, voter_set_of

CONFIG = QuorumConfig()
LOG = ((1, 3),)
IDENTITY = ReplicaIdentity(
    key=LOCAL,
    cluster_id=CLUSTER,
    endpoints=Endpoints.of({LISTENER: ("localhost", 9991)}),
    listener=LISTENER,
    bootstrap_servers=(HostPort("b1", 9991),),
)


def replica(*voter_ids: int, config: QuorumConfig = CONFIG) -> SingleReplica:
    """Replica 1, with three records of epoch 1, follows 2 in it."""
    log = log_with(LOG, voter_set_of(map(replica_key, voter_ids)))
    return SingleReplica(IDENTITY, config, log=log, stored=QuorumStateData(1, leader_id=2, leader_epoch=1))


def is_pre_vote_granted(core: SingleReplica) -> bool:
    """Whether the replica grants a pre-vote to 3, whose log is as long."""
    request = vote_request(replica_key(3), 1, OffsetAndEpoch(3, 1), is_pre_vote=True)
    core.request("token", request, 2)
    (response,) = [each.message for each in core.take_responses() if isinstance(each.message, VoteResponse)]
    return response.topics[0].partitions[0].vote_granted


def test_an_observer_out_of_touch_grants_pre_votes() -> None:
    """It has fetched from the leader, and may be a voter without knowing: of four, two others cannot do without it."""
    core = replica(2, 3, 4)
    assert is_pre_vote_granted(core)  # It has not fetched yet.
    fetch = [each for each in core.take_requests() if isinstance(each.message, FetchRequest)][-1]
    core.respond(fetch.number, fetch_response(1, 2))
    core.sleep(CONFIG.fetch_timeout_ms - 1)
    assert not is_pre_vote_granted(core)
    core.sleep(1)
    assert isinstance(core.raft.role, Follower)
    assert is_pre_vote_granted(core)


@pytest.mark.parametrize("does_pause", [True, False])
@pytest.mark.parametrize("error", [ErrorCode.INVALID_VOTER_KEY, ErrorCode.UNKNOWN_LEADER_EPOCH])
@pytest.mark.parametrize("role", [Prospective, Candidate])
def test_a_voter_that_is_another_replica_is_asked_after_a_pause(
    role: type[Prospective | Candidate], error: ErrorCode, does_pause: bool
) -> None:
    """A voter with a new disk says so whenever it is asked; without the setting it is asked as fast as it answers."""
    core = replica(1, 2, 3, config=QuorumConfig(pause_after_refusal=does_pause))
    core.sleep(CONFIG.fetch_timeout_ms)
    if role is Candidate:
        asked = vote_requests(core)
        core.respond(asked[3], vote_response(is_granted=True, epoch=1))
    assert isinstance(core.raft.role, role)
    core.respond(vote_requests(core)[2], vote_response(is_granted=False, epoch=core.raft.role.epoch, error=error))
    assert (2 in vote_requests(core)) is not does_pause
    core.sleep(CONFIG.retry_backoff_ms - 1)
    assert 2 not in vote_requests(core)
    core.sleep(1)
    assert (2 in vote_requests(core)) is does_pause


def vote_requests(core: SingleReplica) -> dict[int, int]:
    """The numbers of the Vote requests that were sent, by voter; they are forgotten."""
    return {each.destination.id: each.number for each in core.take_requests() if isinstance(each.message, VoteRequest)}
