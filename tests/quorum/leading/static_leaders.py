# SPDX-License-Identifier: Apache-2.0
"""Leaders of quorums with kraft.version 0, for tests: replica 1 leads epoch 1 of static voters."""

from collections.abc import Sequence

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Leader
from raftlog.quorum.seam.effects import FlushLog
from raftlog.quorum.seam.identity import KRAFT_VERSIONS, ReplicaIdentity
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.voter_messages import UpdateRaftVoterResponse
from raftlog.voters.voter_set import (
    Endpoints,
    HostPort,
    ReplicaKey,
    SupportedVersionRange,
    VoterSet,
)
from tests.quorum.leading.leaders import SlowDisk, fetch
from tests.quorum.messages import CLUSTER, LOCAL, update_voter_request, vote_response
from tests.quorum.single_replica import LISTENER, replica_key

LOCAL_ENDPOINTS = Endpoints.of({LISTENER: ("localhost", 9991), "OTHER": ("localhost", 8991)})


def static_voters(voter_ids: Sequence[int]) -> VoterSet:
    """Return voters as a configuration names them: by ids and addresses."""
    return VoterSet.from_inet_addresses(LISTENER, {each: HostPort("localhost", 9990 + each) for each in voter_ids})


def static_leader_of(
    voter_ids: Sequence[int],
    *,
    levels: SupportedVersionRange = KRAFT_VERSIONS,
    slow: type[FlushLog] | None = None,
    voters: VoterSet | None = None,
    config: QuorumConfig | None = None,
) -> SlowDisk:
    """Return replica 1 as the leader of epoch 1: all other voters have voted for it, and have what it has written.

    Args:
        voter_ids: of the voters.
        levels: of kraft.version that the leader supports.
        slow: what its disk does not do before it is told to.
        voters: as they are configured; by ids and addresses if it is None.
        config: of the leader; the default one if it is None.
    """
    identity = ReplicaIdentity(
        key=LOCAL,
        cluster_id=CLUSTER,
        endpoints=LOCAL_ENDPOINTS,
        listener=LISTENER,
        supported_kraft_versions=levels,
    )
    core = SlowDisk(identity, config or QuorumConfig(), static_voters=voters or static_voters(voter_ids))
    if voter_ids != (1,):
        core.sleep(1000)
    for _ in range(2):
        for each in core.take_requests():
            core.respond(each.number, vote_response(is_granted=True, epoch=core.raft.role.epoch))
    assert isinstance(core.raft.role, Leader)
    for other in voter_ids[1:]:
        fetch_all(core, replica_key(other))
    core.slow = slow
    return core


def fetch_all(core: SlowDisk, key: ReplicaKey) -> None:
    """Let a replica fetch from the log end: it has all of the leader's log."""
    end = core.raft.status.log_end
    fetch(core, key, OffsetAndEpoch(end.offset, end.epoch))


def tell(core: SlowDisk, key: ReplicaKey, levels: SupportedVersionRange = KRAFT_VERSIONS) -> ErrorCode:
    """Let a voter tell the leader of itself, and return the error of the answer."""
    core.request(
        "", update_voter_request(key, core.raft.role.epoch, levels=(levels.minimum, levels.maximum)), version=0
    )
    (answer,) = core.take_responses()
    assert isinstance(answer.message, UpdateRaftVoterResponse)
    return ErrorCode(answer.message.error_code)


def leader_that_was_told(
    voter_ids: Sequence[int], *, slow: type[FlushLog] | None = None, config: QuorumConfig | None = None
) -> SlowDisk:
    """Return a leader that all other voters have told of themselves."""
    core = static_leader_of(voter_ids, config=config)
    for each in voter_ids[1:]:
        assert tell(core, replica_key(each)) is ErrorCode.NONE
    core.slow = slow
    return core
