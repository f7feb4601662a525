# SPDX-License-Identifier: Apache-2.0
"""Leaders, for tests: replica 1 leads epoch 3, and its disk may be slow."""

from collections.abc import Sequence

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Leader
from raftlog.quorum.seam.effects import Effect, LogWork
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.messages.raft.fetch_messages import FetchResponse, FetchResponsePartitionData
from raftlog.voters.voter_set import Endpoints, ReplicaKey
from tests.quorum.messages import CLUSTER, LOCAL, fetch_request, vote_response
from tests.quorum.single_replica import LISTENER, SingleReplica, log_with, replica_key, voter_set_of

RUNS = ((1, 3), (2, 2))
EPOCH_START = 5
LOG_END = 8
ENDS = (OffsetAndEpoch(0, 0), OffsetAndEpoch(3, 1), OffsetAndEpoch(EPOCH_START, 2), OffsetAndEpoch(LOG_END, 3))
"""Where the batches of a leader's log end, with the epochs: two runs of records, and the records that start epoch 3."""

KNOWS_ALL = 2**63 - 1


class SlowDisk(SingleReplica):
    """A replica whose flushes, or reads, wait until the test carries them out, and the work on the log after them."""

    held: Sequence[Effect] = ()
    slow: type[Effect] | None = None

    def _carry_out(self, effect: Effect) -> None:
        waits = self.slow is not None and isinstance(effect, self.slow)
        if waits or (self.held and isinstance(effect, LogWork)):
            self.held = (*self.held, effect)
        else:
            super()._carry_out(effect)

    def let_go(self) -> None:
        """Carry out what waits."""
        held, self.held = self.held, ()
        for effect in held:
            super()._carry_out(effect)
        self.settle()


def leader_of(
    voter_ids: Sequence[int],
    slow: type[Effect] | None = None,
    *,
    config: QuorumConfig | None = None,
    port: int = 9991,
    is_static: bool = False,
) -> SlowDisk:
    """Return replica 1 as the leader of epoch 3: all other voters have voted for it.

    Args:
        voter_ids: of the voters, which listen at ``localhost:9990 + id``.
        slow: what its disk does not do before it is told to.
        config: its settings.
        port: where it listens.
        is_static: whether the voters are fixed by kraft.version 0, and not those of a bootstrap snapshot.
    """
    identity = ReplicaIdentity(
        key=LOCAL, cluster_id=CLUSTER, endpoints=Endpoints.of({LISTENER: ("localhost", port)}), listener=LISTENER
    )
    voters = voter_set_of(map(replica_key, voter_ids))
    log = log_with(RUNS, None if is_static else voters)
    core = SlowDisk(identity, config or QuorumConfig(), static_voters=voters if is_static else None, log=log)
    core.slow = slow
    if voter_ids != (1,):
        core.sleep(1000)
    for _ in range(2):
        for each in core.take_requests():
            core.respond(each.number, vote_response(is_granted=True, epoch=core.raft.role.epoch))
    assert isinstance(core.raft.role, Leader)
    return core


def fetch(
    core: SingleReplica, key: ReplicaKey, end: OffsetAndEpoch, *, wait: int = 0, mark: int = KNOWS_ALL
) -> list[FetchResponsePartitionData]:
    """Deliver a Fetch, and return what has been answered since."""
    core.request(key, fetch_request(key, core.raft.role.epoch, end, max_wait_ms=wait, high_watermark=mark), version=17)
    return answers(core)


def answers(core: SingleReplica) -> list[FetchResponsePartitionData]:
    """Return the answers to fetches."""
    messages = [each.message for each in core.take_responses()]
    return [each.responses[0].partitions[0] for each in messages if isinstance(each, FetchResponse)]
