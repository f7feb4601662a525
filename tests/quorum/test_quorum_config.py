# SPDX-License-Identifier: Apache-2.0
"""Settings: the least value of each is one that a replica can run with, and a lower one is refused."""

from contextlib import suppress
from typing import Any, Final

import attrs
import pytest

from raftlog.errors import BufferExhaustedError
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Leader
from raftlog.quorum.seam.effects import Delivering, Notice, NotifyLeaderChange, SendRequest, SendResponse
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.messages.raft.election_messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    VoteRequest,
)
from raftlog.voters.voter_set import Endpoints, HostPort
from tests.quorum.messages import (
    CLUSTER,
    LOCAL,
    begin_quorum_epoch_request,
    begin_quorum_epoch_response,
    end_quorum_epoch_response,
    vote_response,
)
from tests.quorum.single_replica import LISTENER, SingleReplica, log_with, replica_key, voter_set_of

LEAST: Final = {
    "election_timeout_ms": 1,
    "fetch_timeout_ms": 1,
    "election_backoff_max_ms": 0,
    "append_linger_ms": 0,
    "request_timeout_ms": 1,
    "retry_backoff_ms": 1,
    "new_voter_max_lag_ms": 0,
    "new_voter_stabilization_ms": 0,
    "fetch_max_bytes": 1,
    "fetch_snapshot_max_bytes": 1,
    "max_uncommitted_appends": 1,
    "fetch_max_wait_ms": 0,
    "cleaning_interval_ms": 1,
}
RUN_MS: Final = 10_000
MOST_CALLS: Final = 50
"""How often the network and a listener may be called at one time."""


class FastPeers(SingleReplica):
    """A replica whose requests are answered, or fail, at once, and whose listeners take nothing of what they get."""

    are_up = False
    calls = 0

    def send(self, effect: SendRequest | SendResponse) -> None:
        """Answer as a voter that agrees, if the peers are up; a Fetch fails in any case."""
        if not isinstance(effect, SendRequest):
            return
        self._count()
        epoch = self.raft.role.epoch
        leader = LOCAL.id if isinstance(self.raft.role, Leader) else -1
        match effect.message:
            case VoteRequest() if self.are_up:
                self.raft.receive_response(effect.number, vote_response(is_granted=True, epoch=epoch))
            case BeginQuorumEpochRequest() if self.are_up:
                self.raft.receive_response(effect.number, begin_quorum_epoch_response(epoch, leader))
            case EndQuorumEpochRequest() if self.are_up:
                self.raft.receive_response(effect.number, end_quorum_epoch_response(epoch))
            case _:
                self.raft.request_failed(effect.number)

    def tell(self, effect: Notice | NotifyLeaderChange) -> None:
        """Close what a listener is given, which has taken none of it."""
        if isinstance(effect, Delivering):
            self._count()
            self.raft.delivery_closed(effect.number, None)

    def _count(self) -> None:
        self.calls += 1
        assert self.calls <= MOST_CALLS, f"called {self.calls} times at {self.now_ms} ms"

    def run(self) -> None:
        """Let ten seconds pass: it is ticked whenever it wants to be, and has appends while it leads."""
        while self.now_ms < RUN_MS:
            self.calls = 0
            if isinstance(self.raft.role, Leader) and self.raft.status.high_watermark is not None:
                with suppress(BufferExhaustedError):
                    self.append(b"r")
            due_ms = self.raft.deadline_ms
            self.sleep(RUN_MS if due_ms is None else due_ms - self.now_ms)


def _config(name: str, value: int) -> QuorumConfig:
    settings: dict[str, Any] = {name: value}
    return QuorumConfig(**settings)


def test_every_number_is_tried() -> None:
    """A new setting needs its least value here."""
    assert {each.name for each in attrs.fields(QuorumConfig) if each.type is int} == set(LEAST)


@pytest.mark.parametrize("name", LEAST)
def test_a_number_below_the_least_is_refused(name: str) -> None:
    """So is one that Kafka's settings cannot be."""
    for value in (LEAST[name] - 1, 2**31):
        with pytest.raises(ValueError, match=f"{name} is {value}, not {LEAST[name]} to 2147483647"):
            _config(name, value)
    for value in (LEAST[name], 2**31 - 1):
        assert getattr(_config(name, value), name) == value


def _replica(name: str, *voter_ids: int) -> FastPeers:
    identity = ReplicaIdentity(
        key=LOCAL,
        cluster_id=CLUSTER,
        endpoints=Endpoints.of({LISTENER: ("localhost", 9991)}),
        listener=LISTENER,
        bootstrap_servers=(HostPort("b1", 9991),),
    )
    log = log_with([(1, 3)], voter_set_of(map(replica_key, voter_ids)))
    core = FastPeers(identity, _config(name, LEAST[name]), log=log)
    core.raft.register_listener()
    core.settle()
    return core


@pytest.mark.parametrize("name", LEAST)
def test_a_replica_can_run_with_the_least(name: str) -> None:
    """As the only voter, a candidate in vain, a leader without followers, and a follower of a leader that is gone.

    Nothing is tried for ever at one time, and no deadline is in the past.
    """
    alone, candidate, elected, follower = (_replica(name, *ids) for ids in ((1,), (1, 2, 3), (1, 2, 3), (1, 2, 3)))
    elected.are_up = True
    follower.request("", begin_quorum_epoch_request(2, 5), version=1)
    for core in (alone, candidate, elected, follower):
        core.run()
        assert core.raft.halt_reason is None
    assert isinstance(alone.raft.role, Leader)
    assert elected.raft.role.epoch > candidate.raft.role.epoch
