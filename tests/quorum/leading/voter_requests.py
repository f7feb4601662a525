# SPDX-License-Identifier: Apache-2.0
"""Leaders that are asked to change voters, for tests."""

from collections.abc import Sequence

from raftlog.quorum.roles.roles import Leader, Resigned
from raftlog.quorum.seam.effects import FlushLog, ReadLog
from raftlog.quorum.seam.identity import ReceivedRequest
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.raft_messages import RaftRequest
from raftlog.records.messages.raft.voter_messages import (
    AddRaftVoterResponse,
    RemoveRaftVoterResponse,
    UpdateRaftVoterResponse,
)
from tests.quorum.leading.leaders import ENDS, LOG_END, SlowDisk, fetch, leader_of
from tests.quorum.messages import vote_response
from tests.quorum.single_replica import LISTENER, replica_key

EPOCH = 3
_RESPONSES = AddRaftVoterResponse, RemoveRaftVoterResponse, UpdateRaftVoterResponse


def fenced_leader(voter_ids: Sequence[int] = (1, 2, 3), slow: type[FlushLog | ReadLog] | None = None) -> SlowDisk:
    """Return replica 1 as the leader of epoch 3. Its voters have all that it has, and all is committed."""
    core = leader_of(voter_ids)
    for each in voter_ids[1:]:
        fetch(core, replica_key(each), ENDS[3])
    assert core.raft.high_watermark == LOG_END
    core.slow = slow
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


def errors(core: SlowDisk) -> list[ErrorCode]:
    """Return the errors of the answers to requests about voters."""
    messages = [each.message for each in core.take_responses()]
    return [ErrorCode(each.error_code) for each in messages if isinstance(each, _RESPONSES)]
