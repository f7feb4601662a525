# SPDX-License-Identifier: Apache-2.0
"""Replicas in a quorum of three, whose disk work another thread does, or a test; and inputs for them."""

import contextlib
import queue
import random
from collections import deque
from collections.abc import Callable

from raftlog.errors import NotLeaderError
from raftlog.log.memory_log import MemoryLog
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.driving.ports import Executor
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Follower
from raftlog.quorum.seam.effects import Effect, SendRequest
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.messages.raft.election_messages import BeginQuorumEpochRequest, EndQuorumEpochRequest, VoteRequest
from raftlog.records.messages.raft.raft_messages import RaftRequest, RaftResponse
from raftlog.voters.voter_set import Endpoints, VoterSet
from tests.hang_limit import HANG_S
from tests.quorum.messages import (
    CLUSTER,
    LOCAL,
    begin_quorum_epoch_request,
    begin_quorum_epoch_response,
    end_quorum_epoch_request,
    end_quorum_epoch_response,
    fetch_request,
    fetch_response,
    records_at,
    vote_request,
    vote_response,
)
from tests.quorum.single_replica import LISTENER, SingleReplica, log_with, replica_key, voter_set_of

IDENTITY = ReplicaIdentity(
    key=LOCAL, cluster_id=CLUSTER, endpoints=Endpoints.of({LISTENER: ("localhost", 9991)}), listener=LISTENER
)
VOTERS: VoterSet = voter_set_of(map(replica_key, (1, 2, 3)))
RUNS = ((1, 3), (2, 2))


class ByHand:
    """An executor that runs the oldest work when it is told to."""

    def __init__(self) -> None:
        self.waiting: deque[Callable[[], object]] = deque()

    def submit(self, work: Callable[[], object], /) -> None:
        """Keep some work."""
        self.waiting.append(work)

    def run(self) -> None:
        """Run the oldest work, if there is any."""
        if self.waiting:
            self.waiting.popleft()()


class Recorded(SingleReplica):
    """A replica that records its effects in their order."""

    def __init__(self, log: MemoryLog | None = None, executor: Executor | None = None) -> None:
        self.effects: list[Effect] = []
        self.wakes: queue.SimpleQueue[None] = queue.SimpleQueue()
        super().__init__(
            IDENTITY,
            QuorumConfig(),
            log=log or log_with(RUNS, VOTERS),
            executor=executor,
            wake=lambda: self.wakes.put(None),
            watch=self.effects.append,
        )

    def wait(self) -> None:
        """Settle until the disk is at rest, whatever thread does its work."""
        self.settle()
        while not self.is_settled:
            self.wakes.get(timeout=HANG_S)
            self.settle()


def some_input(core: Recorded, draw: random.Random) -> None:
    """Give a replica some input, most of which make sense, and let it settle."""
    choice = draw.random()
    if choice < 0.2:
        core.sleep(draw.choice((0, 1, 20, 25, 500, 1000, 3000)))
    elif choice < 0.65 and core.requests:
        sent = draw.choice(core.requests[-3:])
        core.respond(sent.number, _response(core, draw, sent))
    elif choice < 0.8:
        with contextlib.suppress(NotLeaderError):
            core.append(b"a", b"b")
    else:
        core.request(None, _request(core, draw), version=draw.choice((1, 17)))


def _request(core: Recorded, draw: random.Random) -> RaftRequest:
    epoch = max(0, core.raft.role.epoch + draw.choice((-1, 0, 0, 0, 1)))
    later = core.raft.role.epoch + 1  # Two leaders in an epoch would stop the replica.
    other, end = replica_key(draw.choice((2, 3))), core.log.end_offset.offset
    log_end = OffsetAndEpoch(max(0, end - draw.choice((0, 0, 0, 1, 2, 3))), core.log.last_fetched_epoch)
    return draw.choice(
        (
            vote_request(other, epoch, log_end, is_pre_vote=draw.random() < 0.5),
            begin_quorum_epoch_request(other.id, later),
            end_quorum_epoch_request(other.id, epoch, (LOCAL,)),
            fetch_request(other, epoch, log_end, max_wait_ms=draw.choice((0, 500))),
            fetch_request(other, core.raft.role.epoch, log_end, max_wait_ms=draw.choice((0, 500))),
        )
    )


def _response(core: Recorded, draw: random.Random, sent: SendRequest) -> RaftResponse:
    epoch, end = core.raft.role.epoch, core.log.end_offset.offset
    match sent.message:
        case VoteRequest():
            return vote_response(is_granted=draw.random() < 0.8, epoch=epoch)
        case EndQuorumEpochRequest():
            return end_quorum_epoch_response(epoch)
        case BeginQuorumEpochRequest():
            return begin_quorum_epoch_response(epoch, LOCAL.id)
    leader = core.raft.role.leader.id if isinstance(core.raft.role, Follower) else draw.choice((-1, 2, 3))
    records = records_at(end, max(epoch, 1), draw.randint(1, 3)) if draw.random() < 0.6 else b""
    high_watermark = core.raft.high_watermark or 0
    diverging = OffsetAndEpoch(draw.randint(high_watermark, end), 2) if draw.random() < 0.2 else None
    return fetch_response(epoch, leader, records=records, high_watermark=draw.randint(-1, end), diverging=diverging)
