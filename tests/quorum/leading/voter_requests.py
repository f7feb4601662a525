# SPDX-License-Identifier: Apache-2.0
"""Leaders that are asked to change voters, for tests."""

from collections.abc import Sequence

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Leader, Resigned
from raftlog.quorum.seam.effects import FlushLog, ReadLog, SendRequest
from raftlog.quorum.seam.identity import ReceivedRequest
from raftlog.records.messages.raft.api_versions_messages import ApiVersionsRequest
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.raft_messages import RaftRequest
from raftlog.records.messages.raft.voter_messages import (
    AddRaftVoterResponse,
    RemoveRaftVoterResponse,
    UpdateRaftVoterResponse,
)
from raftlog.voters.voter_set import ReplicaKey
from tests.quorum.leading.leaders import ENDS, LOG_END, SlowDisk, fetch, leader_of
from tests.quorum.messages import LOCAL, add_voter_request, api_versions_response, fetch_request, vote_response
from tests.quorum.single_replica import LISTENER, replica_key

EPOCH = 3
_RESPONSES = AddRaftVoterResponse, RemoveRaftVoterResponse, UpdateRaftVoterResponse


def fenced_leader(
    voter_ids: Sequence[int] = (1, 2, 3),
    slow: type[FlushLog | ReadLog] | None = None,
    *,
    config: QuorumConfig | None = None,
) -> SlowDisk:
    """Return replica 1 as the leader of epoch 3. Its voters have all that it has, and all is committed."""
    core = leader_of(voter_ids, config=config)
    for each in voter_ids[1:]:
        fetch(core, replica_key(each), ENDS[3])
    assert core.raft.high_watermark == LOG_END
    core.slow = slow
    return core


def static_leader() -> SlowDisk:
    """Return replica 1 as the leader of epoch 3, with three voters that kraft.version 0 fixes. All is committed."""
    core = leader_of((1, 2, 3), is_static=True)
    fetch_at_end(core, replica_key(2))
    assert core.raft.high_watermark == core.log.end_offset.offset
    return core


def leader_again(voter_ids: Sequence[int]) -> SlowDisk:
    """Return replica 1 as the leader of a later epoch, of which nothing is committed, though its voters are."""
    core = fenced_leader(voter_ids)
    core.sleep(3_000)
    assert isinstance(core.raft.role, Resigned)
    core.take_requests()
    core.take_responses()
    core.sleep(1_000)
    for _ in range(2):
        for each in core.take_requests():
            core.respond(each.number, vote_response(is_granted=True, epoch=core.raft.role.epoch))
    assert isinstance(core.raft.role, Leader)
    return core


def ask(core: SlowDisk, message: RaftRequest, *, expected: int | None = None) -> list[ErrorCode]:
    """Deliver a request about voters, and return the errors of the answers since the last time."""
    core.raft.receive_request(message, ReceivedRequest("", 1, LISTENER, expected))
    core.settle()
    return errors(core)


def catch_up(core: SlowDisk, *keys: ReplicaKey, ms: int = 2_000) -> None:
    """Let replicas fetch at the log end, at once and for some time; all voters do so too."""
    others = {*keys, *core.machine.last_voter_set.voter_keys} - {LOCAL}
    for pause_ms in (0, *[500] * (ms // 500)):
        core.sleep(pause_ms)
        for key in sorted(others):
            fetch_at_end(core, key)


def fetch_at_end(core: SlowDisk, key: ReplicaKey) -> None:
    """Let a replica fetch at the log end: it has flushed all that the leader has."""
    end = OffsetAndEpoch(core.log.end_offset.offset, core.log.last_fetched_epoch)
    core.request(key, fetch_request(key, core.raft.role.epoch, end, max_wait_ms=0), version=17)


def question(core: SlowDisk) -> SendRequest:
    """Return the request for its versions that a new voter has been sent, and forget all other requests."""
    (asked,) = [each for each in core.take_requests() if isinstance(each.message, ApiVersionsRequest)]
    return asked


def add(core: SlowDisk, key: ReplicaKey, *, ack_when_committed: bool = True) -> list[ErrorCode]:
    """Ask for a new voter that has caught up, and answer what it is asked; return the errors of the answers so far."""
    assert ask(core, add_voter_request(key, ack_when_committed=ack_when_committed)) == []
    core.respond(question(core).number, api_versions_response())
    return errors(core)


def voter_ids(core: SlowDisk) -> set[int]:
    """Return the ids of the voters in force."""
    return set(core.machine.last_voter_set.voter_ids)


def errors(core: SlowDisk) -> list[ErrorCode]:
    """Return the errors of the answers to requests about voters."""
    messages = [each.message for each in core.take_responses()]
    return [ErrorCode(each.error_code) for each in messages if isinstance(each, _RESPONSES)]
